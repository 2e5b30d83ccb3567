"""A linear model of the classes, trained on labels through T: softmax regression by L-BFGS.

Columns are expected on one scale (`naysay.portfolio.spaces`). Sparse rows are taken as they are.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from naysay.bases.through import Floats, slope, softmax

STOPS = {"maxiter": 150, "ftol": 1e-7, "gtol": 1e-4}  # of L-BFGS: what comes later changes no prediction


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores x W + b."""

    weights: Floats
    bias: Floats

    def logits(self, x: Any) -> Floats:
        """Scores (n, K) of rows x (n, d)."""
        scores: Floats = x @ self.weights + self.bias
        return scores


@dataclass(frozen=True)
class Linear:
    """strength: of the penalty on the squared weights, against the mean loss of a label."""

    strength: float = 1e-3

    def fit(self, x: Any, comp: Floats, T: Floats, seed: int = 0) -> LinearModel:
        """The weights that make the labels `comp` (n, K) of rows x (n, d) likeliest, within the penalty."""
        from scipy.optimize import minimize

        d, n_classes, total = x.shape[1], comp.shape[1], comp.sum()

        def loss(flat: Floats) -> tuple[float, Floats]:
            weights, bias = flat[:-n_classes].reshape(d, n_classes), flat[-n_classes:]
            gradient, value = slope(softmax(x @ weights + bias), comp, T)
            inner = x.T @ gradient / total + self.strength * weights
            whole = value / total + 0.5 * self.strength * float((weights**2).sum())
            return whole, np.concatenate([inner.ravel(), gradient.sum(0) / total])

        start = np.zeros((d + 1) * n_classes)
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=STOPS).x
        return LinearModel(found[:-n_classes].reshape(d, n_classes), found[-n_classes:])
