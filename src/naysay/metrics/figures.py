"""The figures of a run, one row each: what tables and charts call them, their unit, and which end is the good one.

`name` is the key in records and run.json, `also` are keys that other records have for the same figure. Where the truth
is known, `oracle_observer` measures figures after every epoch of training; nothing is chosen by one that needs it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from naysay.metrics.oracles import (
    oracle_accuracy,
    oracle_confidence,
    oracle_neighboring_noise,
    oracle_sharing_efficiency,
)


@dataclass(frozen=True)
class Figure:
    """A figure: its key, its words, which end is better, whether it needs the truth, its unit, and its other keys."""

    name: str
    words: str
    better: Literal["higher", "lower"] = "higher"
    needs_truth: bool = True
    unit: Literal["", "%"] = "%"
    also: tuple[str, ...] = ()


FIGURES = (
    Figure("test_accuracy", "test accuracy"),
    Figure("best_test_accuracy", "test accuracy at the chosen epoch"),
    Figure("train_accuracy", "training accuracy"),
    Figure("argmin_accuracy", "least named class is true", also=("augmented_accuracy",)),
    Figure("mass_on_true", "labels naming the true class", "lower", also=("wrong_mass",)),
    Figure("sharing_efficiency", "sharing efficiency"),
    Figure("neighbouring_noise", "neighbouring noise", "lower"),
    Figure("confidence_seen", "confidence on seen labels", "lower", needs_truth=False),
    Figure("confidence_augmented", "confidence on shared labels", "lower", needs_truth=False),
    Figure("confidence_unseen", "confidence on unseen labels", "lower"),
)


def find_figure(name: str) -> Figure:
    """The row of a key; a key that is not in the table, as an older or a newer record may have it, in its own words."""
    own_words = Figure(name, name.replace("_", " "))
    return next((figure for figure in FIGURES if name in (figure.name, *figure.also)), own_words)


class Predictor(Protocol):
    """What is evaluated: raw rows to logits (n, K), to representations (n, d), and logits to classes (n,)."""

    def logits(self, x: Any) -> Tensor: ...
    def represent(self, x: Any) -> Tensor: ...
    def decode(self, logits: Tensor) -> Tensor: ...


class Snapshot(Protocol):
    """A moment of training: the epoch's number, whether it is the last, and the model as it is then."""

    @property
    def epoch(self) -> int: ...
    @property
    def last(self) -> bool: ...
    @property
    def predictor(self) -> Predictor: ...


def oracle_observer(
    x: Any,
    comp: Tensor,
    y_true: Any,
    *,
    x_test: Any = None,
    y_test: Any = None,
    augmented: Tensor | None = None,
    noise_neighbors: int = 128,
    noise_every: int | None = None,
    noise_sample: int | None = None,
) -> Callable[[Snapshot], dict[str, float]]:
    """What training calls after each epoch for figures on its rows `x` with labels `comp` (n, K) and truth (n,).

    The truth is in it and nowhere in training. test_accuracy comes with x_test and y_test, confidence_augmented with
    `augmented` (n, K), and neighbouring_noise at the last epoch and every `noise_every` epochs (0: never), over all
    rows or a `noise_sample` of them.
    """
    y_true = torch.as_tensor(y_true)

    def observe(snapshot: Snapshot) -> dict[str, float]:
        predictor = snapshot.predictor
        logits = predictor.logits(x)
        confidence = oracle_confidence(logits, comp, y_true, augmented)
        figures = {
            "train_accuracy": oracle_accuracy(predictor.decode(logits), y_true),
            "confidence_seen": confidence.seen,
            "confidence_unseen": confidence.unseen,
            "sharing_efficiency": oracle_sharing_efficiency(logits, comp, y_true),
        }
        if confidence.augmented is not None:
            figures["confidence_augmented"] = confidence.augmented
        if x_test is not None:
            figures["test_accuracy"] = oracle_accuracy(predictor.decode(predictor.logits(x_test)), y_test)
        if noise_every != 0 and (snapshot.last or (noise_every is not None and snapshot.epoch % noise_every == 0)):
            figures["neighbouring_noise"] = oracle_neighboring_noise(
                predictor.represent(x), comp, y_true, noise_neighbors, sample=noise_sample
            )
        return figures

    return observe
