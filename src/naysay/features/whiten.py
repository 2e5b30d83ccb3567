"""Whitened embeddings: compared by angle, with directions of more equal spread.

A few broad directions of an embedding decide who is near, and they need not be those of the classes. Scaled along its
principal axes, the others count too. Wholly whitened, narrow directions count as much as broad ones, though they hold
more noise; half way, where each spread becomes its square root, neighbours were the better (docs/FEATURES.md). A tenth
of the mean variance is added to every axis's (the shrinkage of Ledoit and Wolf 2004, with a fixed weight).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.errors import InputError
from naysay.features.ready import as_features

NOISE = 0.1  # of the mean variance


def whiten(x: Any, like: Any = None, *, strength: float = 0.5) -> NDArray[np.float32]:
    """Embeddings (n, d) as float32 (n, d) to be compared by angle: of length 1, centred, and whitened.

    The mean and the axes are those of the rows `like` (m, d), of `x` itself unless given: new rows are whitened like
    those that they are compared with. strength: 0 only centres, 1 makes all spreads equal but for the shrinkage.
    """
    if not 0 <= strength <= 1:
        raise InputError(f"strength must be between 0 and 1; got {strength}.")
    rows = _unit(x, "x")
    base = rows if like is None else _unit(like, "like")
    if base.shape[1] != rows.shape[1]:
        raise InputError(f"like must have the {rows.shape[1]} columns of x; got {base.shape[1]}.")
    mean = base.mean(0, dtype=np.float64)
    centred = base - mean.astype(np.float32)
    variances, axes = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(base))
    shrunk = variances.clip(0) + NOISE * variances.mean()
    if len(base) < 2 or shrunk.min() <= 0:
        raise InputError(
            f"rows to whiten must point in different directions; got {len(base)} that do not. Leave whiten out."
        )
    scale = (axes * shrunk ** (-strength / 2)).astype(np.float32)
    scaled: NDArray[np.float32] = (rows - mean.astype(np.float32)) @ scale
    return scaled


def _unit(x: Any, what: str) -> NDArray[np.float32]:
    """Rows of length 1; a row of zeros stays."""
    rows = as_features(x, None, what)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return unit
