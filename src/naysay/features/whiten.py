"""Whitened embeddings: compared by angle, with directions of more equal spread.

A few broad directions of an embedding decide who is near, and they need not be those of the classes. Scaled along its
principal axes, the others count too. Wholly whitened, narrow directions count as much as broad ones, though they hold
more noise; half way, where each spread becomes its square root, neighbours were the better (docs/FEATURES.md). A tenth
of the mean variance is added to every axis's (the shrinkage of Ledoit and Wolf 2004, with a fixed weight).

Scaled rows are turned back to the columns they came in (whitening by the symmetric root), which changes no angle: they
then depend on no axis's sign or order, and a model that standardises columns does not whiten them wholly.
"""

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from naysay.errors import InputError
from naysay.features.cache import Features
from naysay.features.ready import as_features

NOISE = 0.1  # of the mean variance


class Readout(nn.Module):
    """What rows (n, d) are brought to: length 1, less the `mean` (d,), times the `axes` (d, d)."""

    mean: Tensor
    axes: Tensor

    def __init__(self, mean: Tensor, axes: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("axes", axes)

    @classmethod
    def fit(cls, base: Features, strength: float = 0.5) -> Self:
        """Mean and axes of the rows `base` (m, d), whitened by `strength`, from 0 to 1."""
        if not 0 <= strength <= 1:
            raise InputError(f"strength must be between 0 and 1; got {strength}.")
        unit = _unit(torch.from_numpy(base)).numpy()
        mean = unit.mean(0, dtype=np.float64).astype(unit.dtype)
        centred = (unit - mean).astype(np.float32, copy=False)
        variances, axes = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(base))
        shrunk = variances.clip(0) + NOISE * variances.mean()
        if len(base) < 2 or shrunk.min() <= 0:
            raise InputError(
                f"rows to whiten must point in different directions; got {len(base)} that do not. Leave them so."
            )
        root = (axes * shrunk ** (-strength / 2)) @ axes.T
        return cls(torch.from_numpy(mean), torch.from_numpy(root.astype(np.float32)))

    def forward(self, x: Tensor) -> Tensor:
        # in float32 also within an autocast or a half-precision module: what sets rows apart is small beside the mean
        wide = torch.float64 if x.dtype == self.mean.dtype == torch.float64 else torch.float32
        with torch.autocast(x.device.type, enabled=False):
            scaled: Tensor = (_unit(x.to(wide)) - self.mean.to(wide)).float() @ self.axes.float()
        return scaled


def whiten(x: Any, like: Any = None, *, strength: float = 0.5) -> NDArray[np.float32]:
    """Embeddings (n, d) as float32 (n, d) to be compared by angle: of length 1, centred, and whitened.

    The mean and the axes are those of the rows `like` (m, d), of `x` itself unless given: new rows are whitened like
    those that they are compared with. Rows of more bits that float32 would lose (`naysay.rounding`) are rounded once
    they are centred. strength: 0 only centres, 1 makes all spreads equal but for the shrinkage.
    """
    base = as_features(x if like is None else like, None, "x" if like is None else "like")
    # of new rows, which may be few, the old ones say how many bits they need
    rows = base if like is None else as_features(x, None, "x", wide=base.dtype == np.float64)
    if base.shape[1] != rows.shape[1]:
        raise InputError(f"like must have the {rows.shape[1]} columns of x; got {base.shape[1]}.")
    white: NDArray[np.float32] = Readout.fit(base, strength)(torch.from_numpy(rows)).numpy()
    return white


def _unit(rows: Tensor) -> Tensor:
    """Rows of length 1; a row of zeros stays."""
    length: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / length.where(length > 0, 1)
