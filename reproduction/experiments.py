"""The five kinds of run: from values to figures. Each is a function of `EXPERIMENTS`, by the name that specs call it.

    sharing      how labels are shared by training alone (Lin et al. 2023, sections 3 and 4)
    classifier   trained on complementary labels, augmented or not (section 6)
    consistent   trained by a recipe on all images, to the last epoch; by that of this name, which shares labels itself,
                 or by others beside it
    augmented    what sharing makes of the labels, before anything is trained
    decoding     classification without training (the baseline of section 6)

The truth enters figures and nothing else, but for `sharing = "explicit"`, which is about labels that truth allows, and
for `correction = "oracle"` and `supervision = "full"`, which are ceilings.
"""

import functools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from naysay import metrics, neighbors, selection, transition
from naysay.augmentation import augment
from naysay.decoding import choose_k
from naysay.holdout import Prepared, prepare
from naysay.learning import Config, Snapshot, configure, train
from naysay.neighbors import Graph
from reproduction import correction, sets
from reproduction.sets import Place
from reproduction.values import AUGMENTATION, LABELS, RECIPE, TRAINING, Value

LOOKS = 20  # at the test set, for the curve of a recipe
# the figures of a sharing run, as training's observer names them
OBSERVED = (
    "train_accuracy",
    "test_accuracy",
    "confidence_seen",
    "confidence_augmented",
    "confidence_unseen",
    "sharing_efficiency",
    "neighbouring_noise",
)


@dataclass(frozen=True)
class Result:
    """Figures by name; each epoch's, where the experiment is about epochs; the encoder, where one took part."""

    figures: Mapping[str, float | int | None]
    history: list[dict[str, Any]] | None = None
    encoder: dict[str, Any] | None = None


def config(values: Mapping[str, Value], encoder: str | None = None) -> Config:
    """The training settings among a run's values."""
    settings: dict[str, Any] = {name: values[name] for name in TRAINING if name in values and name != "width"}
    if "width" in values:
        settings["model_options"] = {"width": values["width"]}
    if "recipe" not in values:
        return Config(**settings, encoder=encoder)
    own: dict[str, Any] = {name: values[name] for name in RECIPE if name in values and name not in ("recipe", "scale")}
    if "scale" in values:
        own["view"] = {"scale": [values["scale"], 1.0]}
    if values["correction"] == "even":
        own["class_shares"] = "even"
    return configure(str(values["recipe"]), **settings, **own, encoder=encoder)


def sharing(values: Mapping[str, Value], place: Place) -> Result:
    """Confidence on labels never given, epoch by epoch, and the figures of the last epoch.

    `original` trains on the labels as they are, `explicit` on these and half of each image's unseen complementary
    labels. The figures are taken with the labels that were trained on: seen are those of before and those added, and
    confidence on the latter alone stands beside, as on augmented ones.
    """
    name, seed, n_train = str(values["dataset"]), int(values["seed"]), values["n_train"]
    images, comp = sets.images(name, place), sets.complementary(name, seed, place)
    added = None
    if values["sharing"] == "explicit":
        given, comp = comp, transition.explicit_sharing(comp, images.y_true, seed=seed)
        added = torch.nn.functional.normalize(comp.masked_fill(given > 0, 0.0), p=1.0, dim=1)
    rows = sets.training_rows(len(comp), n_train if isinstance(n_train, str) else int(n_train), seed)
    x, comp, y_true = images.x[rows.to(images.x.device)], comp[rows], images.y_true[rows]
    added = None if added is None else added[rows]
    observer = metrics.oracle_observer(x, comp, y_true, x_test=images.x_test, y_test=images.y_test, augmented=added)
    trained = train(config(values), x, comp, observers=[observer], progress=False)
    kept = ("epoch", "loss", *OBSERVED)
    history = [{name: epoch[name] for name in kept if name in epoch} for epoch in trained.history]
    return Result({name: trained.last_figures[name] for name in OBSERVED if name in trained.last_figures}, history)


def classifier(values: Mapping[str, Value], place: Place) -> Result:
    """The figures of the last and of the best epoch: rows are held out first, then labels shared, then it is trained.

    It is trained on the images or, with `inputs = "features"`, on what the encoder makes of them. Each epoch is judged
    by the held-out labels; the test set is asked twice, at the end: of the last epoch and of the best.
    """
    name = str(values["dataset"])
    images = sets.images(name, place)
    augmentation = tuple((key, values[key]) for key in (*AUGMENTATION, *LABELS) if key in values)
    judged = float(values["held_out"]), str(values.get("criterion", "ure-accuracy"))
    encoded, shared = values.get("inputs") == "features", values["scheme"] != "none"
    ready = _prepared(name, encoded, int(values["seed"]), *judged, augmentation, place)
    x_test = sets.space(name, place).test if encoded else images.x_test
    start = str(sets.encoder_file(name, place)) if values.get("fine_tune") else None
    trained = train(config(values, start), ready.x, ready.comp, held_out=ready.held_out, progress=False)
    last, best = trained.last_figures, trained.best_figures or {}
    at_last = metrics.oracle_accuracy(trained.predictor.predict(x_test), images.y_test)
    at_best = metrics.oracle_accuracy(trained.best.predict(x_test), images.y_test) if trained.best else None
    figures = {
        "test_accuracy": at_last,
        "held_out": last.get("held_out"),
        "held_out_error": last.get("held_out_error"),
        "best_test_accuracy": at_best,
        "best_held_out": best.get("held_out"),
        "best_epoch": trained.best_epoch,
        "augmented_accuracy": metrics.oracle_argmin_accuracy(ready.comp, images.y_true[ready.rows]) if shared else None,
    }
    if shared or encoded:
        return Result(figures, encoder=sets.space(name, place).encoder)
    return Result(figures, encoder=sets.encoder_card(name, place) if start else None)


def consistent(values: Mapping[str, Value], place: Place) -> Result:
    """The last epoch's figures, and the test accuracy against the minutes; a flipped copy of each image is averaged.

    All images are trained on, none held out, as nothing is chosen in the run; the test set is looked at for the curve.
    With `inputs = "features"` it is trained on what the encoder makes of the images, and minutes count from there.
    """
    name, encoded = str(values["dataset"]), values.get("inputs") == "features"
    images, comp = sets.images(name, place), sets.complementary(name, int(values["seed"]), place)
    space = sets.space(name, place) if encoded else None
    x, x_test = (images.x, images.x_test) if space is None else (space.train, space.test)
    started = time.perf_counter()
    if values.get("supervision") == "full":
        comp = 1.0 - torch.nn.functional.one_hot(images.y_true, comp.shape[1])
        comp = comp / comp.sum(1, keepdim=True)
    its = config(values, str(sets.encoder_file(name, place)) if values.get("fine_tune") else None)
    every = max(1, its.epochs // LOOKS)

    def look(snapshot: Snapshot) -> dict[str, float]:
        minutes = (time.perf_counter() - started) / 60
        if snapshot.epoch % every and not snapshot.last:
            return {}
        one, both = (replace(snapshot.predictor, flips=flips).predict(x_test) for flips in (False, its.flip))
        seen = {"minutes": minutes, "test_accuracy": metrics.oracle_accuracy(both, images.y_test)}
        return {**seen, "unflipped_test_accuracy": metrics.oracle_accuracy(one, images.y_test)}

    trained = train(its, x, comp, observers=[look], progress=False)
    told = ("epoch", "minutes", "test_accuracy", "coverage", "agreement", "evenness", "noise", "linear")
    history = [{key: line[key] for key in told if key in line} for line in trained.history if "minutes" in line]
    figures = {key: trained.last_figures[key] for key in ("test_accuracy", "unflipped_test_accuracy", "minutes")}
    if space is not None:
        return Result(figures, history, space.encoder)
    return Result(figures, history, sets.encoder_card(name, place) if values.get("fine_tune") else None)


def augmented(values: Mapping[str, Value], place: Place) -> Result:
    """Of the labels of all training images: how often they tell the class, and how much of them is wrong.

    With `held_out`, that share of the images gives no label away, and its labels judge what the others' labels say of
    it: a setting of the sharing can so be chosen without the truth. The other figures are then of the other images.
    """
    name, seed = str(values["dataset"]), int(values["seed"])
    n_labels = int(values["n_labels"]) if "n_labels" in values else None
    comp, y_true = sets.complementary(name, seed, place, n_labels), sets.images(name, place).y_true
    settings: dict[str, Any] = {key: values[key] for key in AUGMENTATION if key in values}
    rows, held, given = torch.arange(len(comp)), None, comp
    if "held_out" in values:
        rows, held = selection.hold_out(len(comp), float(values["held_out"]), seed)
        given = comp.index_fill(0, held, 0.0)
    graph = _graph(name, int(values["n_neighbors"]), place)
    settings |= correction.settings(str(values.get("correction", "none")), given, graph, y_true)
    Z = torch.as_tensor(augment(graph, given, **settings)).cpu()
    figures = {
        "augmented_accuracy": metrics.oracle_argmin_accuracy(Z[rows], y_true[rows]),
        "wrong_mass": metrics.oracle_mass(Z[rows], y_true[rows]),
    }
    if held is not None:
        figures |= _least_named(Z[held], comp[held])
    return Result(figures, encoder=sets.space(name, place).encoder)


def _least_named(Z: Tensor, comp: Tensor) -> dict[str, float]:
    """The accuracy of each row's least named class, estimated by labels that were kept apart; of equals, their mean."""
    least = (Z.amin(1, keepdim=True) == Z).double()
    rows = (selection.ordinary(comp) * least).sum(1) / least.sum(1)
    return {"held_out": float(rows.mean()), "held_out_error": float(rows.std()) / math.sqrt(len(rows))}


def decoding(values: Mapping[str, Value], place: Place) -> Result:
    """The class that an image's neighbours name least; how many neighbours is chosen by complementary labels."""
    name, seed = str(values["dataset"]), int(values["seed"])
    images, space = sets.images(name, place), sets.space(name, place)
    comp = sets.complementary(name, seed, place).to(space.train.device)
    decoder, estimates = choose_k(space.train, comp, held_out=float(values["held_out"]), seed=seed)
    chosen = estimates[decoder.k]
    figures = {
        "test_accuracy": metrics.oracle_accuracy(decoder.predict(space.test), images.y_test),
        "held_out": chosen.value,
        "held_out_error": chosen.standard_error,
        "n_neighbors": decoder.k,
    }
    return Result(figures, encoder=space.encoder)


EXPERIMENTS: Mapping[str, Callable[[Mapping[str, Value], Place], Result]] = MappingProxyType(
    {
        "sharing": sharing,
        "classifier": classifier,
        "consistent": consistent,
        "augmented": augmented,
        "decoding": decoding,
    }
)


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
    options: dict[str, Any] = dict(augmentation)
    features = None if options["scheme"] == "none" else sets.space(name, place).train
    x = sets.space(name, place).train if encoded else sets.images(name, place).x
    comp = sets.complementary(name, seed, place, options.pop("n_labels", None))
    kind = options.pop("correction", "none")
    if kind != "none":  # a T must not have seen the labels that judge
        given = comp.index_fill(0, selection.hold_out(len(comp), held_out, seed)[1], 0.0)
        options |= correction.settings(kind, given, features, sets.images(name, place).y_true)
    return prepare(x, comp, features=features, held_out=held_out, criterion=criterion, seed=seed, **options)


@functools.lru_cache(maxsize=4)  # schemes and seeds share it; of 50,000 rows with 256 neighbours it takes 150 MB
def _graph(name: str, n_neighbors: int, place: Place) -> Graph:
    return neighbors.build(sets.space(name, place).train, n_neighbors)
