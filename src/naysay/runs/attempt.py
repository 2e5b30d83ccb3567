"""One scheme of a run: its models, each trained without the labels that judge it, and what those labels say of it.

Judging goes by how the labels GIVEN come about; training by how those do that the loss sees, which sharing made.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from naysay import neighbors, selection
from naysay.augmentation import Report, share
from naysay.holdout import Parted
from naysay.learning import Figures, Observer, Predictor, Snapshot, Trained, train
from naysay.learning.train import HeldOutJudge
from naysay.processes import Processes
from naysay.reading import Oracle
from naysay.runs.settings import Settings
from naysay.selection import Estimate

LOOKED_AT = 20_000  # training rows on which each epoch's confidence is measured: more would cost an epoch's time again


@dataclass(frozen=True, eq=False)
class Ground:
    """What all schemes start from: rows in two parts, the graph of the training rows, if any share, and how labels come
    about as those rows tell it (T; None: every wrong class is named alike).
    """

    part: Parted
    graph: neighbors.Graph | None
    T: Tensor | None


@dataclass(frozen=True, eq=False)
class Model:
    """The labels that a scheme made of those of the training rows, what became of them, and the model trained on them.

    oracle: what the truth, where it is known, says of the labels.
    """

    ground: Ground
    shared: Tensor
    sharing: Report
    trained: Trained
    oracle: dict[str, float]
    seconds: float

    @property
    def predictor(self) -> Predictor:
        """The model of the last epoch."""
        return self.trained.predictor


@dataclass(frozen=True, eq=False)
class Attempt:
    """One scheme: a model for each fold, and its estimates by the rows that they did not see, in the order of folds.

    loss: of the labels held out, given the models' probabilities (`selection.calibrated_scel`), by which schemes are
    chosen; sharpness: the factor of the logits that belongs to it, below 1 for models that are too sure of themselves.
    estimate: of the accuracy.
    """

    scheme: str
    models: tuple[Model, ...]
    loss: Estimate
    sharpness: float
    estimate: Estimate

    @property
    def seconds(self) -> float:
        """What sharing and training took, all folds together."""
        return sum(model.seconds for model in self.models)

    @property
    def history(self) -> list[Figures]:
        """The figures of each epoch: of several models, the means over the rows that judge them."""
        return [self._epoch(of) for of in zip(*(model.trained.history for model in self.models), strict=True)]

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


def attempt(scheme: str, models: Sequence[Model]) -> Attempt:
    """The scheme of these models, judged by the rows held out from each."""
    named, right = [], []
    for model in models:
        held, given_T = model.ground.part.held_out, model.ground.T
        assert held is not None  # a model without held-out rows is not judged
        logits = model.predictor.logits(held.x).cpu()
        # what cpe-i estimates is how often each label is named, without a T between
        label_T = torch.eye(logits.shape[1]) if model.predictor.config.loss == "cpe-i" else given_T
        named.append((logits, held.comp, label_T))
        right.append(selection.ure_accuracy(model.predictor.decode(logits), held.comp, given_T))
    return Attempt(scheme, tuple(models), *selection.calibrated_scel(named), selection.pool(right))


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
    shared, sharing = share(ground.graph, part.given, settings.sharing_by(scheme).within(*part.given.shape))
    shared = processes.agree(shared)
    # a row that no label reaches would only cost time
    reached = shared.sum(1) > 0
    rows, given = part.rows[reached], part.given[reached]
    x, judge = x[rows.numpy()], [] if part.held_out is None else [HeldOutJudge(part.held_out, ground.T)]
    if oracle is None:
        observer = _confidence(x, given, shared[reached])
    else:
        observer = oracle.observer(rows, part.held_rows, given, shared[reached])
    seen_T = ground.T  # of the labels that the loss sees
    trained = train(
        settings.config,
        x,
        shared[reached],
        T=seen_T,
        observers=[*judge, observer],
        progress=progress,
        processes=processes,
    )
    figures = {} if oracle is None else oracle.of_labels(part.rows, shared)
    return Model(ground, shared, sharing, trained, figures, time.perf_counter() - started)


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
        p = snapshot.predictor.logits(looked).softmax(1).cpu()
        return {
            "confidence_seen": float((p * given).sum(1)[labelled].mean()),
            "confidence_augmented": float((p * shared).sum(1).mean()),
        }

    return observe
