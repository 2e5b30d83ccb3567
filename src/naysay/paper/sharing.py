"""How labels are shared by training alone (Lin et al. 2023, sections 3 and 4): confidence on labels never given, epoch
by epoch.

`original` trains on the labels as they are, `explicit` on these and half of each image's unseen complementary labels;
the figures are taken with the labels that were trained on.
"""

from collections.abc import Mapping

from naysay import metrics, transition
from naysay.paper import data
from naysay.paper.data import Place
from naysay.paper.result import Result, config
from naysay.paper.values import Value
from naysay.learning import train

FIGURES = (
    "train_accuracy",
    "test_accuracy",
    "confidence_seen",
    "confidence_unseen",
    "sharing_efficiency",
    "neighbouring_noise",
)


def run(values: Mapping[str, Value], place: Place) -> Result:
    """The figures of the last epoch, and each epoch's."""
    name, seed = str(values["dataset"]), int(values["seed"])
    images, comp = data.images(name, place), data.complementary(name, seed, place)
    if values["sharing"] == "explicit":
        comp = transition.explicit_sharing(comp, images.y_true, seed=seed)
    rows = data.training_rows(len(comp), _size(values["n_train"]), seed)
    x, comp, y_true = images.x[rows.to(images.x.device)], comp[rows], images.y_true[rows]
    observer = metrics.oracle_observer(x, comp, y_true, x_test=images.x_test, y_test=images.y_test)
    trained = train(config(values), x, comp, observers=[observer], progress=False)
    history = [
        {name: epoch[name] for name in ("epoch", "loss", *FIGURES) if name in epoch} for epoch in trained.history
    ]
    return Result({name: trained.last_figures[name] for name in FIGURES}, history)


def _size(n_train: Value) -> int | str:
    return n_train if isinstance(n_train, str) else int(n_train)
