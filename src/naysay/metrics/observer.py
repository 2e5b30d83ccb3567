"""Where the truth is known: what training calls after every epoch for figures; nothing is chosen by them."""

from typing import Any

import torch
from torch import Tensor

from naysay.learning import Observer, Snapshot
from naysay.metrics.oracles import (
    oracle_accuracy,
    oracle_confidence,
    oracle_neighboring_noise,
    oracle_sharing_efficiency,
)


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
) -> Observer:
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
