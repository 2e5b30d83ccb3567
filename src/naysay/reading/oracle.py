"""The truth, where it is known: an oracle that is asked for figures. No other part of what is read holds it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import metrics
from naysay.learning import Observer

LOOKED_AT = 20_000  # training rows on which each epoch is looked at, spread evenly
NOISE_NEIGHBORS = 128  # the paper's number, for the neighbouring noise rate


@dataclass(frozen=True, eq=False)
class Oracle:
    """True class numbers (n,) of the items, -1 where unknown, and test items if there are any."""

    x: Any
    y_true: NDArray[np.int64]
    x_test: Any = None
    y_test: NDArray[np.int64] | None = None

    def through(self, encoder: Callable[[Any], Any], rows: Any) -> Self:
        """The same of `rows`, which the encoder made of the items, and of what it makes of the test items."""
        return replace(self, x=rows, x_test=None if self.x_test is None else encoder(self.x_test))

    @property
    def tested_on(self) -> str:
        """What test accuracy is counted on, in words."""
        return "the held-out items" if self.y_test is None else f"{len(self.y_test):,} test items"

    def observer(self, rows: Tensor, held: Tensor, given: Tensor, shared: Tensor) -> Observer:
        """What training calls after each epoch, for the sharing metrics: `rows` and `held` number the training and
        held-out rows, labels are (len(rows), K). Test accuracy is on the test items, or else on the held-out rows.
        """
        known = self.y_true[rows.numpy()] >= 0
        part = np.flatnonzero(known)[:: max(1, int(known.sum()) // LOOKED_AT)]
        looked = rows[part].numpy()
        tested = held.numpy()[self.y_true[held.numpy()] >= 0]
        x_test, y_test = (self.x[tested], self.y_true[tested]) if self.y_test is None else (self.x_test, self.y_test)
        k = min(NOISE_NEIGHBORS, len(looked) - 1)
        return metrics.oracle_observer(
            self.x[looked],
            given[part],
            self.y_true[looked],
            x_test=x_test if len(x_test) else None,
            y_test=y_test,
            augmented=shared[part],
            noise_neighbors=max(k, 1),
            noise_every=None if k > 0 and len(part) == len(rows) else 0,
        )

    def of_labels(self, rows: Tensor, shared: Tensor) -> dict[str, float]:
        """How right the labels are that training takes: mass on the true class, and how often it is named least."""
        y_true = torch.from_numpy(self.of_rows(rows.numpy()))
        known = y_true >= 0
        return {
            "mass_on_true": metrics.oracle_mass(shared[known], y_true[known]),
            "argmin_accuracy": metrics.oracle_argmin_accuracy(shared[known], y_true[known]),
        }

    def of_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The true class numbers of rows, -1 where unknown."""
        return self.y_true[rows]
