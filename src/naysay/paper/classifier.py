"""A classifier from complementary labels, augmented or not (Lin et al. 2023, section 6): rows held out first, then
sharing, then training.

It is trained on the images or, with `inputs = "features"`, on what the encoder makes of them. Each epoch is judged by
the held-out labels; the test set is asked twice, at the end: of the last epoch and of the best.
"""

import functools
from collections.abc import Mapping

from naysay import metrics
from naysay.holdout import Prepared, prepare
from naysay.paper import data, space
from naysay.paper.data import Place
from naysay.paper.result import Result, config
from naysay.paper.values import AUGMENTATION, Value
from naysay.training import train


def run(values: Mapping[str, Value], place: Place) -> Result:
    """The figures of the last and of the best epoch."""
    name = str(values["dataset"])
    images = data.images(name, place)
    augmentation = tuple((key, values[key]) for key in AUGMENTATION if key in values)
    judged = float(values["held_out"]), str(values.get("criterion", "ure-accuracy"))
    encoded = values.get("inputs") == "features"
    ready = _prepared(name, encoded, int(values["seed"]), *judged, augmentation, place)
    x_test = space.of(name, place).test if encoded else images.x_test
    start = str(space.encoder_file(name, place)) if values.get("fine_tune") else None
    trained = train(config(values, start), ready.x, ready.comp, held_out=ready.held_out, progress=False)
    last, best = trained.last_figures, trained.best_figures or {}
    shared = values["scheme"] != "none"
    figures = {
        "test_accuracy": metrics.oracle_accuracy(trained.predictor.predict(x_test), images.y_test),
        "held_out": last.get("held_out"),
        "held_out_error": last.get("held_out_error"),
        "best_test_accuracy": metrics.oracle_accuracy(trained.best.predict(x_test), images.y_test)
        if trained.best
        else None,
        "best_held_out": best.get("held_out"),
        "best_epoch": trained.best_epoch,
        "augmented_accuracy": metrics.oracle_argmin_accuracy(ready.comp, images.y_true[ready.rows]) if shared else None,
    }
    encoder = space.of(name, place).encoder if shared or encoded else space.encoder_card(name, place) if start else None
    return Result(figures, encoder=encoder)


# grid points share labels; losses come in other groups (`compiled`); each holds 140 MB of CIFAR
@functools.lru_cache(maxsize=8)
def _prepared(
    name: str,
    encoded: bool,
    seed: int,
    held_out: float,
    criterion: str,
    augmentation: tuple[tuple[str, Value], ...],
    place: Place,
) -> Prepared:
    """Training rows with their labels shared as the values say, and the held-out rows."""
    options = dict(augmentation)
    features = None if options["scheme"] == "none" else space.of(name, place).train
    x, comp = (
        space.of(name, place).train if encoded else data.images(name, place).x,
        data.complementary(name, seed, place),
    )
    return prepare(x, comp, features=features, held_out=held_out, criterion=criterion, seed=seed, **options)  # type: ignore[arg-type]
