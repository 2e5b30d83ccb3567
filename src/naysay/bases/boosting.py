"""Gradient boosting on the likelihood of the labels through T: each small tree goes down the loss of the ones before.

One tree a round predicts the gradients of all classes together; its leaves then take a Newton step, with the mean
squared gradient as the curvature (Fisher's information). Half of the rows, at random, grow each tree.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from naysay.bases.through import Floats, slope, softmax
from naysay.bases.trees import Trees
from naysay.seeds import stream

STEADY = 1.0  # added to a leaf's curvature, so that few rows move it little


@dataclass(frozen=True, eq=False)
class BoostedModel:
    """Trees whose sum is the scores."""

    trees: Trees

    def logits(self, x: Any) -> Floats:
        """Scores (n, K) of rows x (n, d)."""
        return self.trees.mean(x) * len(self.trees.roots)


@dataclass(frozen=True)
class Boosting:
    """rounds of trees with so many `leaves`, each taken by the rate; leaf: the fewest rows in a leaf."""

    rounds: int = 200
    leaves: int = 4
    rate: float = 0.1
    leaf: int = 15

    def fit(self, x: Any, comp: Floats, T: Floats, seed: int = 0) -> BoostedModel:
        """Boost on rows x (n, d) with labels `comp` (n, K)."""
        from sklearn.tree import DecisionTreeRegressor

        x, drawn = np.asarray(x, np.float32), stream(seed, "boosting")
        n, d = x.shape
        scores, grown, values = np.zeros(comp.shape), [], []
        columns = d if d <= 4 else max(4, d // 2)
        for turn in range(self.rounds):
            gradient, _ = slope(softmax(scores), comp, T)
            some = drawn.permutation(n)[: max(2, n // 2)]
            tree = DecisionTreeRegressor(
                max_leaf_nodes=self.leaves,
                min_samples_leaf=min(self.leaf, max(1, len(some) // 4)),
                max_features=columns,
                random_state=turn,
            ).fit(x[some], -gradient[some])
            leaf = tree.apply(x)
            step = self._step(leaf[some], gradient[some], tree.tree_.node_count)
            scores += step[leaf]
            grown.append(tree.tree_)
            values.append(step)
        return BoostedModel(Trees.of(grown, values))

    def _step(self, leaf: Any, gradient: Floats, n_nodes: int) -> Floats:
        total, curvature = np.zeros((2, n_nodes, gradient.shape[1]))
        np.add.at(total, leaf, gradient)
        np.add.at(curvature, leaf, gradient**2)
        step: Floats = -self.rate * total / (curvature + STEADY)
        return step
