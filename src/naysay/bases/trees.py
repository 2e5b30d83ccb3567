"""Many decision trees as plain arrays: what is kept of a forest or of boosting, saved without a pickle.

scikit-learn grows the trees. Their nodes lie one tree after another; a leaf is its own child, so that walking down may
go on until every row has arrived.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from naysay.bases.through import Floats

AT_ONCE = 1 << 20  # rows x trees that walk down together


@dataclass(frozen=True, eq=False)
class Trees:
    """Node m asks whether column `feature[m]` is at most `threshold[m]`, and goes `left` or `right`; values (m, K).

    `roots` are the trees' first nodes.
    """

    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    values: NDArray[np.float32]
    roots: NDArray[np.int32]

    @classmethod
    def of(cls, grown: Sequence[Any], values: Sequence[Floats]) -> Self:
        """The trees that scikit-learn grew (`tree_` of each), with the values (m, K) of their nodes."""
        sizes = np.array([tree.node_count for tree in grown])
        roots = np.concatenate([[0], sizes.cumsum()[:-1]]).astype(np.int32)
        own = np.arange(sizes.sum())
        at = np.repeat(roots, sizes)

        def children(name: str) -> NDArray[np.int32]:
            child = np.concatenate([getattr(tree, name) for tree in grown])
            return np.where(child < 0, own, child + at).astype(np.int32)

        feature = np.concatenate([tree.feature for tree in grown])
        return cls(
            np.maximum(feature, 0).astype(np.int32),
            np.concatenate([tree.threshold for tree in grown]),
            children("children_left"),
            children("children_right"),
            np.concatenate(values).astype(np.float32),
            roots,
        )

    def mean(self, x: Any) -> Floats:
        """The mean (n, K) over the trees of the values of the leaves that rows x (n, d) fall into."""
        x = np.asarray(x, np.float32)  # as scikit-learn compares
        out = np.empty((len(x), self.values.shape[1]))
        step = max(1, AT_ONCE // len(self.roots))
        for start in range(0, len(x), step):
            out[start : start + step] = self._leaves(x[start : start + step])
        return out

    def _leaves(self, x: NDArray[np.float32]) -> Floats:
        node = np.tile(self.roots, (len(x), 1))
        row = np.arange(len(x))[:, None]
        while True:
            below = np.where(x[row, self.feature[node]] <= self.threshold[node], self.left[node], self.right[node])
            if np.array_equal(below, node):
                break
            node = below
        mean: Floats = self.values[node].mean(1, dtype=np.float64)
        return mean

    def sound(self, n_columns: int) -> bool:
        """Whether every way down ends, in nodes and columns that there are: what a changed file may not promise."""
        n = len(self.feature)
        same = all(len(part) == n for part in (self.threshold, self.left, self.right, self.values))
        if not same or not len(self.roots) or self.values.ndim != 2:
            return False
        own = np.arange(n)
        leaf = (self.left == own) & (self.right == own)
        down = leaf | ((self.left > own) & (self.right > own))  # children come after their parents
        inside = max(self.left.max(), self.right.max(), self.roots.max()) < n and self.roots.min() >= 0
        columns = self.feature.min() >= 0 and self.feature.max() < n_columns
        finite = np.isfinite(self.values).all() and not np.isnan(self.threshold).any()
        return bool(down.all() and inside and columns and finite)
