"""The sharing metrics of every epoch, for experiments in which the truth is known.

`oracle_observer` makes a function that training calls after each epoch; the truth is in it and nowhere in training.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from naysay.metrics.accuracy import oracle_accuracy
from naysay.metrics.sharing import oracle_confidence, oracle_neighbouring_noise, oracle_sharing_efficiency


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
    """A function that gives an epoch's figures on training rows `x` with labels `comp` (n, K) and truth `y_true` (n,).

    train_accuracy, test_accuracy (with x_test and y_test), confidence_seen, confidence_unseen, confidence_augmented
    (with `augmented` (n, K)), sharing_efficiency, and neighbouring_noise: at the last epoch, and every `noise_every`
    epochs (0: never), over all rows or a `noise_sample` of them.
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
            representation = predictor.represent(x)
            figures["neighbouring_noise"] = oracle_neighbouring_noise(
                representation, comp, y_true, noise_neighbors, sample=noise_sample
            )
        return figures

    return observe
