"""What a run tries: models, each trained without the labels that judge it, and what those labels say of them.

Judging goes by how the labels GIVEN come about; training by how those do that the loss sees, which sharing made.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from naysay import losses, neighbors, selection
from naysay.augmentation import Report, correct, share
from naysay.estimation import Accuracy, by_predictions, estimate_accuracy
from naysay.estimation import Estimate as EstimatedT
from naysay.estimation.noise import Noise
from naysay.holdout import Parted
from naysay.learning import RECIPES, Figures, Observer, Predictor, Snapshot, train
from naysay.learning.train import HeldOutJudge
from naysay.losses.table import softmax
from naysay.portfolio import Mixture
from naysay.processes import Processes
from naysay.reading import Oracle
from naysay.runs.settings import Settings
from naysay.selection import Estimate
from naysay.statistics import Fit
from naysay.transition import invertible

LOOKED_AT = 20_000  # training rows on which each epoch's confidence is measured: more would cost an epoch's time again

ASSUMED = "labels are assumed to name classes by their popularity, and nothing shows that they do"


@dataclass(frozen=True, eq=False)
class Ground:
    """What all schemes start from: rows in two parts, and the graph of the training rows, if any share.

    judged_by: how labels come about as all of them tell, the same for all models; T: as the training rows tell. None
    is every wrong class alike. by_T: whether labels are corrected by T beside class shares, since it tells much more.
    """

    part: Parted
    graph: neighbors.Graph | None
    judged_by: Tensor | None
    T: Tensor | None
    by_T: bool = False


@dataclass(frozen=True, eq=False)
class Model:
    """The labels that a scheme made of those of the training rows, what became of them, and the model trained on them.

    turned: the part of rows whose least named class the class shares change, or would if even ones were stated; None
    where nothing is shared.
    oracle: what the truth, where it is known, says of the labels.
    """

    ground: Ground
    shared: Tensor
    sharing: Report
    turned: float | None
    predictor: Predictor | Mixture
    history: tuple[Figures, ...]  # of its epochs
    oracle: dict[str, float]
    seconds: float


@dataclass(frozen=True, eq=False)
class Attempt:
    """A scheme or a candidate of the portfolio, and its estimates by the rows that its models did not see.

    models: one for each fold, in their order, where they are kept. weight: in the mixture, where one was made.
    loss: of the labels held out, given the models' probabilities (`selection.calibrated_scel`), by which schemes are
    chosen; sharpness: the factor of the logits that belongs to it, below 1 for models that are too sure of themselves.
    estimate: of the accuracy, row by row, for comparisons; accuracy: what may be said of it, error of T and all.
    """

    name: str
    models: tuple[Model, ...]
    loss: Estimate
    sharpness: float
    estimate: Estimate
    accuracy: Accuracy
    seconds: float  # that sharing and training took, all folds together
    weight: float | None = None

    @property
    def history(self) -> list[Figures]:
        """The figures of each epoch: of several models, the means over the rows that judge them."""
        return [self._epoch(of) for of in zip(*(model.history for model in self.models), strict=True)]

    @property
    def of_labels(self) -> Figures:
        """What the truth, where it is known, says of the labels trained on."""
        return _mean([model.oracle for model in self.models], self._judged_by())

    def _epoch(self, of: Sequence[Figures]) -> Figures:
        weights = self._judged_by()
        error = math.hypot(*(w * figures["held_out_error"] for w, figures in zip(weights, of, strict=True)))
        exact = {"epoch": of[0]["epoch"], "held_out_error": error / sum(weights)}
        return {**_mean(of, weights), **exact, "seconds": sum(figures["seconds"] for figures in of)}

    def _judged_by(self) -> list[int]:
        return [len(model.ground.part.held_rows) for model in self.models]


def attempt(scheme: str, models: Sequence[Model], near: EstimatedT | None, seen: float = 1.0) -> Attempt:
    """The scheme of these models, judged by the rows held out from each.

    near: what neighbours say of all labels, by which it is told whether the accuracy can be. seen: the part of the
    labels that each of the models saw, where the one that is kept sees all of them.
    """
    named, right, said, T = [], [], [], models[0].ground.judged_by
    for model in models:
        held = model.ground.part.held_out
        # a model without held-out rows is not judged here, and a mixture is judged by what it is made of
        assert held is not None
        assert isinstance(model.predictor, Predictor)
        logits = model.predictor.logits(held.x).cpu()
        # what cpe-i estimates is how often each label is named, without a T between
        label_T = torch.eye(logits.shape[1], device=logits.device) if model.predictor.config.loss == "cpe-i" else T
        predicted = model.predictor.decode(logits)
        named.append((logits, held.comp, label_T))
        right.append(selection.ure_accuracy(predicted, held.comp, usable(T)))
        said.append((predicted, held.comp))
    predicted, comp = (torch.cat(parts) for parts in zip(*said, strict=True))
    accuracy = told(predicted, comp, T, near, seen=seen)
    seconds = sum(model.seconds for model in models)
    return Attempt(scheme, tuple(models), *selection.calibrated_scel(named), selection.pool(right), accuracy, seconds)


def told(
    predicted: Tensor,
    comp: Tensor,
    T: Tensor | None,
    near: EstimatedT | None,
    assumed: str = ASSUMED,
    seen: float = 1.0,
    noise: Noise | None = None,
    even: Fit | None = None,
) -> Accuracy:
    """What may be said of the accuracy of predictions (n,) by labels `comp` (n, K) that come about by T.

    near: what neighbours say of all labels, by which it is told whether the accuracy can be; assumed: why it cannot
    where T is not theirs; seen: the part of the labels that the judged models were shown;
    noise: how much of it labels leave open, where more than neighbours tell it; even: what models say of even naming.
    """
    by_T = near if near is not None and near.told and T is not None and torch.equal(T, near.T) else None
    tested = None if near is None else near.even if by_T is None else near.follows
    if T is not None and by_T is None:  # popularity: what neighbours said tests the T they show, and even naming
        return Accuracy(None, None, math.nan, math.nan, assumed)
    tests = [by_predictions(predicted, comp, T), *([] if tested is None else [tested])]
    tests += [even] if T is None and even is not None else []
    if noise is None and near is not None and near.told:
        noise = near.likeliest
    noise = noise if by_T is None else None  # in T it is a part of the estimate
    return estimate_accuracy(predicted, comp, by_T, tests=tests, noise=noise, seen=seen, popular=True)


def calibrated(model: Model, sharpness: float) -> Model:
    """The model with the sharpness that labels held out called for, where a softmax of its scores is probabilities."""
    if not isinstance(model.predictor, Predictor) or losses.get(model.predictor.config.loss).normalise is not softmax:
        return model
    return replace(model, predictor=replace(model.predictor, sharpness=sharpness))


def usable(T: Tensor | None) -> Tensor | None:
    """T, or None, which is uniform, where T tells classes too little apart to be inverted: then nothing is said of the
    accuracy, and the figure only serves to compare.
    """
    return T if T is not None and invertible(T) else None


def learn(
    scheme: str,
    ground: Ground,
    x: Any,
    settings: Settings,
    *,
    oracle: Oracle | None,
    progress: bool | None,
    processes: Processes,
) -> Model:
    """Share the labels of the training rows (of all rows `x`) by the scheme, and train on what comes of it."""
    started, part = time.perf_counter(), ground.part
    how = replace(settings.sharing_by(scheme).within(*part.given.shape), transition=ground.T if ground.by_T else None)
    shared, sharing = share(ground.graph, part.given, how)
    # what knowing that classes are even would change, where nobody said how common they are
    turned = sharing.turned if how.corrects else correct(shared, part.given, replace(how, class_shares="even"))[1]
    shared = processes.agree(shared)
    # a row that no label reaches would only cost time
    reached = shared.sum(1) > 0
    rows, given = part.rows[reached], part.given[reached]
    # the oracle looks at rows as the model takes them
    oracle = oracle if oracle is None else replace(oracle, x=x)
    x, judge = x[rows.numpy()], [] if part.held_out is None else [HeldOutJudge(part.held_out, usable(ground.judged_by))]
    if oracle is None:
        observer = _confidence(x, given, shared[reached])
    else:
        observer = oracle.observer(rows, part.held_rows, given, shared[reached])
    seen_T = None if how.corrects else ground.T  # of the labels that the loss sees: corrected ones are uniform
    if RECIPES[settings.config.recipe].shares and settings.assume == "auto":
        seen_T = None  # an estimated T decodes worse than popularity with class shares, by which such a recipe goes
    trained = train(
        settings.training,
        x,
        shared[reached],
        T=seen_T,
        observers=[*judge, observer],
        progress=progress,
        processes=processes,
    )
    figures = {} if oracle is None else oracle.of_labels(part.rows, shared)
    seconds = time.perf_counter() - started
    predictor = replace(trained.predictor, flips=settings.flips)
    return Model(ground, shared, sharing, turned, predictor, tuple(trained.history), figures, seconds)


def _mean(of: Sequence[Mapping[str, Any]], weights: Sequence[int]) -> Figures:
    """The weighted mean of each figure over those that have it."""
    means: Figures = {}
    for name in {name: None for figures in of for name in figures}:
        known = [(w, figures[name]) for w, figures in zip(weights, of, strict=True) if figures.get(name) is not None]
        total = sum(w for w, _ in known)
        means[name] = sum(w * value for w, value in known) / total if known else None
    return means


def _confidence(x: Any, given: Tensor, shared: Tensor) -> Observer:
    """What can be seen without truth: the mean confidence of evenly spread training rows on labels given and shared."""
    step = max(1, len(given) // LOOKED_AT)
    looked, given, shared = x[::step], given[::step], shared[::step]
    labelled = given.sum(1) > 0

    def observe(snapshot: Snapshot) -> dict[str, float]:
        logits = snapshot.predictor.logits(looked)
        p = snapshot.predictor.probabilities(logits).cpu()
        return {
            "confidence_seen": float((p * given).sum(1)[labelled].mean()),
            "confidence_augmented": float((p * shared).sum(1).mean()),
        }

    return observe
