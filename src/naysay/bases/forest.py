"""A forest of the labels, turned into classes through T; and one that teaches itself.

The trees predict the labels (n, K) themselves, soft and shared ones as they are (a multi-output regression, whose
squared error is Gini's impurity). What they say of rows that a tree did not see (out of bag) is turned into classes,
and joined with the rows' own labels: the posteriors of the training rows. With `rounds`, another forest learns these,
and so on (expectation and maximisation, in which no row speaks about itself). Averages of many weak labels are what a
forest is good at, and columns of noise do it little harm.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from naysay.bases.through import UNSEEN, Floats, classes_of, own_evidence, softmax
from naysay.bases.trees import Trees


@dataclass(frozen=True, eq=False)
class ForestModel:
    """Trees whose mean is how often each label is given, and the T through which that becomes classes."""

    trees: Trees
    T: Floats

    def logits(self, x: Any) -> Floats:
        """Log probabilities (n, K) of the classes at rows x (n, d)."""
        return np.log(np.maximum(classes_of(self.trees.mean(x), self.T), UNSEEN))


@dataclass(frozen=True)
class Forest:
    """n_trees with at least `leaf` rows in each leaf; rounds: of self-training. best: take the best split of some
    columns, rather than the best of random ones; slower, and better where most columns say nothing.
    """

    n_trees: int = 200
    leaf: int = 5
    rounds: int = 0
    best: bool = False

    def fit(self, x: Any, comp: Floats, T: Floats, seed: int = 0) -> ForestModel:
        """Grow the forest on rows x (n, d) with labels `comp` (n, K)."""
        labelled = comp.sum(1) > 0
        target, through, leaf = comp, T, self.leaf
        rows, own = x[labelled], own_evidence(comp, T)
        for turn in range(self.rounds + 1):
            forest = self._grow(rows, target[labelled], leaf, seed + turn)
            if turn < self.rounds:
                p = np.full(comp.shape, 1 / comp.shape[1])
                p[labelled] = classes_of(np.nan_to_num(forest.oob_prediction_, nan=0.0), through)
                target = softmax(np.log(np.maximum(p, UNSEEN)) + own)
                through, leaf = np.eye(len(T)), max(1, self.leaf // 2)
        grown = [tree.tree_ for tree in forest.estimators_]
        return ForestModel(Trees.of(grown, [tree.value[:, :, 0] for tree in grown]), through)

    def _grow(self, x: Any, target: Floats, leaf: int, seed: int) -> Any:
        from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

        kind = RandomForestRegressor if self.best else ExtraTreesRegressor
        columns = min(x.shape[1], max(1, int(1.5 * x.shape[1] ** 0.5)))
        teaches = self.rounds > 0
        forest = kind(
            self.n_trees,
            min_samples_leaf=min(leaf, max(1, len(x) // 4)),
            max_features=columns,
            bootstrap=True,
            oob_score=_no_score if teaches else False,
            random_state=seed % 2**32,
        )
        return forest.fit(np.asarray(x, np.float32), target)


def _no_score(*_: Any) -> float:
    """What scikit-learn computes beside the out-of-bag predictions is not looked at."""
    return 0.0
