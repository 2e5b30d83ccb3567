"""One classifier of several: their calibrated probabilities, mixed so that labels nobody was shown are likeliest.

The likelihood of a mixture's labels is concave in its weights, so expectation and maximisation finds the one best
mixture. No candidate has to be declared the winner by a difference that chance could make, and the mixture is mostly
better than its best part. Parts that hardly count are dropped: each has to be trained again, and kept.
"""

from collections.abc import Sequence

import numpy as np

from naysay.bases.through import LEAST, Floats, softmax
from naysay.selection import FACTORS

STEPS = 300
LIGHTEST = 0.05  # the weight below which a part is dropped


def loss_of(p: Floats, comp: Floats, T: Floats) -> Floats:
    """The loss (n,) of labels `comp` (n, K) under probabilities p (n, K) of the classes: -log (p T)_k."""
    loss: Floats = -(comp * np.log(np.maximum(p @ T, LEAST))).sum(1)
    return loss


def sharpness(logits: Floats, comp: Floats, T: Floats) -> float:
    """The factor of the logits that makes the labels likeliest: below 1 for a model that is too sure of itself."""
    return min(FACTORS, key=lambda factor: float(loss_of(softmax(factor * logits), comp, T).sum()))


def weights(parts: Sequence[Floats], comp: Floats, T: Floats) -> Floats:
    """The weights (m,) of the mixture of probabilities (n, K) under which labels `comp` (n, K) are likeliest."""
    likelihood = np.stack([-loss_of(p, comp, T) for p in parts])
    likelihood = np.exp(likelihood - likelihood.max(0))
    counts = comp.sum(1)
    weights = _mixture(likelihood, counts, np.full(len(parts), 1 / len(parts)))
    kept = weights >= min(LIGHTEST, weights.max())
    weights = _mixture(likelihood, counts, kept / kept.sum())
    # few steps, or a part that was dropped, may leave the mixture behind one of its parts
    alone = np.eye(len(parts))[np.log(np.maximum(likelihood, LEAST)).mean(1).argmax()]
    better = np.log(weights @ likelihood).mean() > np.log(np.maximum(alone @ likelihood, LEAST)).mean()
    return weights if better else alone


def _mixture(likelihood: Floats, counts: Floats, weights: Floats) -> Floats:
    for _ in range(STEPS):
        share = weights[:, None] * likelihood
        weights = (share / share.sum(0) * counts).sum(1) / counts.sum()
    return weights


def mix(parts: Sequence[Floats], weights: Floats) -> Floats:
    """The mixture (n, K) of probabilities (n, K)."""
    mixed: Floats = np.tensordot(weights, np.stack(parts), 1)
    return mixed
