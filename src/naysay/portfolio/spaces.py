"""Spaces that can be entered later: what is learned from the training rows is kept, and applied to rows to come.

| space | what |
| --- | --- |
| as-given | rows as they are, images as images |
| flat | rows as they are, the pixels of images side by side |
| standardised | columns of mean 0 and deviation 1 |
| ranks | each column by its quantiles, as a normal variable: outliers and scales do not count |
| angle | rows of one length: for texts and embeddings, whose direction is their meaning |
| components | the first principal components, all on the scale of the first |
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.bases.through import Floats
from naysay.errors import unknown
from naysay.features.raw import principal_axes

COMPONENTS = 50
QUANTILES = 101
FAR = 1e6  # how far, in deviations, a row to come may lie: beyond, float32 would lose it


@dataclass(frozen=True, eq=False)
class Space:
    """Rows flattened, then (x - shift) @ axes * scale, or by the quantiles (q, d) of each column, or by length."""

    kind: str
    shift: Floats
    scale: Floats
    axes: Floats
    quantiles: Floats

    def __call__(self, x: Any) -> Any:
        """Rows x, as they are given, in this space: float64 (n, d)."""
        if self.kind == "as-given":
            return x
        rows = flat(x)
        if self.kind == "flat":
            return rows
        if self.kind == "ranks":
            return _normal_scores(rows, self.quantiles)
        if self.kind == "angle":
            length = np.sqrt((rows**2).sum(1, keepdims=True))
            return rows / np.where(length > 0, length, 1.0) * self.scale
        rows = rows - self.shift
        moved = rows @ self.axes if self.axes.size else rows
        return np.clip(moved * self.scale, -FAR, FAR)

    def fits(self, n_columns: int) -> bool:
        """Whether its arrays belong to rows of so many columns: what a changed file may not promise."""
        wanted: dict[str, tuple[tuple[int, ...], ...]] = {
            "as-given": ((0,), (0,), (0,), (0,)),
            "flat": ((0,), (0,), (0,), (0,)),
            "standardised": ((n_columns,), (n_columns,), (0,), (0,)),
            "ranks": ((0,), (0,), (0,), (QUANTILES, n_columns)),
            "angle": ((0,), (1,), (0,), (0,)),
            "components": ((n_columns,), self.axes.shape[1:], (n_columns, *self.axes.shape[1:]), (0,)),
        }
        found = tuple(array.shape for array in (self.shift, self.scale, self.axes, self.quantiles))
        return found == wanted[self.kind]


def flat(x: Any) -> Floats:
    """Rows (n, d) float64 of a table or of images, whose pixels of 0 to 255 become 0 to 1."""
    rows = np.asarray(x)
    scale = 255.0 if rows.dtype == np.uint8 else 1.0
    out: Floats = rows.reshape(len(rows), -1).astype(np.float64) / scale
    return out


def enter(kind: str, x: Any, seed: int = 0) -> Space:
    """The space of this kind, learned from rows x (n, ...)."""
    nothing = np.zeros(0)
    if kind in ("as-given", "flat"):
        return Space(kind, nothing, nothing, nothing, nothing)
    rows = flat(x)
    mean, deviation = rows.mean(0), rows.std(0)
    if kind == "standardised":
        return Space(kind, mean, _inverse(deviation), nothing, nothing)
    if kind == "ranks":
        return Space(kind, nothing, nothing, nothing, np.quantile(rows, np.linspace(0, 1, QUANTILES), axis=0))
    if kind == "angle":  # of a length that gives columns a size of about 1, as the other spaces have it
        return Space(kind, nothing, np.full(1, np.sqrt(rows.shape[1])), nothing, nothing)
    if kind == "components":
        mean, axes = principal_axes(rows, min(COMPONENTS, *rows.shape), seed)
        largest = ((rows - mean) @ axes[:, :1]).std()
        return Space(kind, mean, _inverse(np.full(axes.shape[1], largest)), axes, nothing)
    raise unknown("space", kind, ("as-given", "flat", "standardised", "ranks", "angle", "components"))


def _inverse(deviation: Floats) -> Floats:
    return np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-12)


def _normal_scores(rows: Floats, quantiles: Floats) -> Floats:
    from scipy.special import ndtri

    levels, out = np.linspace(0, 1, len(quantiles)), np.empty_like(rows)
    for column in range(rows.shape[1]):
        steps: NDArray[np.float64] = quantiles[:, column]
        # the middle between both sides: a value that many rows share has one rank, whichever way it is counted
        below = np.interp(rows[:, column], steps, levels)
        above = 1 - np.interp(-rows[:, column], -steps[::-1], levels)
        out[:, column] = ndtri(np.clip((below + above) / 2, 0.005, 0.995))
    return out
