"""Accuracy: hits over n, counted exactly, never a mean of batch means."""

from typing import Any

import torch

from naysay.errors import InputError


def oracle_accuracy(predicted: Any, y_true: Any) -> float:
    """The share of rows whose predicted class is the true one; `predicted` is class numbers (n,) or logits (n, K)."""
    predicted = torch.as_tensor(predicted)
    y_true = torch.as_tensor(y_true, device=predicted.device)
    if predicted.ndim == 2:
        predicted = predicted.argmax(1)
    if predicted.shape != y_true.shape or not len(y_true):
        raise InputError(
            f"predicted must be one class number (or one row of logits) per true class; "
            f"got {tuple(predicted.shape)} for {tuple(y_true.shape)} true classes."
        )
    return int((predicted == y_true).sum()) / len(y_true)
