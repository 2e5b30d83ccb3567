"""What `score` may say: no accuracy outside of 0 and 1, and a warning where it says little or nothing.

A model that was trained on the very labels that judge it has learned to avoid them, and seems better than it is. Rows
are known again by a hash each, eight bytes a row.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.selection import Estimate

Hashes = NDArray[np.uint64]
MOST_OPEN = 0.15  # a standard error beyond which the figure tells nothing, as in naysay.estimation.accuracy
SEEN = (
    "score judges rows that the model was trained on, whose labels it has learned to avoid: it looks better than it "
    "is. Hold rows out, or score by cross-validation."
)
OPEN = (
    "these labels leave the score open by more than 30 points to each side, because they are few or name classes too "
    "unevenly. Compare by more labels, and do not read it as an accuracy."
)


def hash_rows(X: Any) -> Hashes:
    """The sorted hashes of the rows of X, dense or sparse: the same for equal numbers, in 32 bits or 64."""
    rng = np.random.default_rng(0)
    if hasattr(X, "tocsr"):  # a row's numbers are added in the order of its columns, so equal rows have equal sums
        summed: Hashes = (X.tocsr().sorted_indices().astype(np.float32) @ rng.normal(size=X.shape[1])).view(np.uint64)
        return np.unique(summed)
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(np.asarray(X, dtype=np.float32)).reshape(len(X), -1).view(np.uint32)
    factors = rng.integers(1, 2**63, rows.shape[1], dtype=np.uint64) | np.uint64(1)
    mixed = np.zeros(len(rows), np.uint64)
    for column, factor in zip(rows.T, factors, strict=True):
        mixed = (mixed ^ (column.astype(np.uint64) + np.uint64(1)) * factor) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return np.unique(mixed)


def judge(found: Estimate, X: Any, trained_on: Hashes) -> float:
    """The estimate within 0 and 1, with a warning where most rows X were trained on or where labels leave it open."""
    hashes = hash_rows(X)
    if 2 * np.isin(hashes, trained_on).sum() > len(hashes):
        warnings.warn(SEEN, stacklevel=3)
    if found.standard_error > MOST_OPEN or not -MOST_OPEN <= found.value <= 1 + MOST_OPEN:
        warnings.warn(OPEN, stacklevel=3)
    return min(max(found.value, 0.0), 1.0)
