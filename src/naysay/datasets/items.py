"""A user's own instances: one row each, with an id, features or an image, and whatever labels came with them.

Labels are kept as the text they were given in; which of them are classes, and what they mean, is for `naysay.labels` to
say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from naysay.datasets.dataset import Array, content_hash

Texts = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Items:
    """n instances: `x` is float (n, d) or uint8 images (n, H, W[, 3]); texts are str, or None where a cell was empty."""

    ids: Texts  # (n,), all different
    x: Array
    labels: Texts | None = None  # (n, m): up to m complementary labels each, in the order given
    y_true: Texts | None = None  # (n,): the ordinary labels, where they are known; for evaluation only
    features: tuple[str, ...] = ()  # the names of x's columns, where they have any

    @cached_property
    def fingerprint(self) -> str:
        """What `content_hash` says of the ids, the instances and the complementary labels."""
        return content_hash({"ids": self.ids, "x": self.x, "labels": self.labels})


def pad(rows: Sequence[Sequence[str | None]]) -> Texts:
    """Rows of different lengths as one (n, m) array, filled up with None."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), None, object)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded
