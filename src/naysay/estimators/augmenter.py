"""Sharing as a transformer: labels augmented by neighbours (`naysay.augmentation`)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch.nn.functional import embedding_bag

from naysay import neighbors
from naysay.augmentation import Sharing, read_space, share
from naysay.augmentation.weights import by_rank, without_gaps
from naysay.decoding import MORE, draw, pick
from naysay.estimators.encoding import encode_for
from naysay.estimators.judged import FLOATS, shares_of
from naysay.features import whiten


class LabelAugmenter(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Shares complementary labels between neighbours. After `fit`, `labels_` (n, K) are the augmented labels of the
    rows, a column per class of `classes_`, and `transduction_` (n,) the class that each row is least said not to be;
    among equals the one that four times as many neighbours pass on least, then one drawn with the seed 0.

    The settings are those of `naysay.augmentation.Sharing`; where any is "auto", `n_neighbors_`, `gamma_`, `alpha_` and
    `whiten_` are what was chosen, and `choice_` tells what was tried. `transform(X)` gives new rows the mean of their
    neighbours' augmented labels.
    """

    def __init__(
        self,
        scheme: str = "dms",
        *,
        n_neighbors: int | str | None = None,
        alpha: float | str = 0.1,
        gamma: float | str | None = None,
        rounds: int | None = None,
        metric: str = "euclidean",
        class_shares: Any = None,
        whiten: float | str | None = None,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.scheme = scheme
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.gamma = gamma
        self.rounds = rounds
        self.metric = metric
        self.class_shares = class_shares
        self.whiten = whiten
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Self:
        """Share the complementary labels y of rows X (n, d)."""
        X = validate_data(self, X, dtype=FLOATS, ensure_min_samples=2)
        comp, self.classes_ = encode_for(X, y, self.classes)
        known = shares_of(self.classes_, self.class_shares)
        sharing = replace(self._sharing(), class_shares=known).within(*comp.shape)
        found = read_space(X, comp, sharing)
        self.n_neighbors_, self.alpha_ = found.graph.k, found.alpha
        self.gamma_, self.whiten_ = found.sharing.gamma_for(found.graph), found.whiten
        self.choice_ = found.choice
        self._all_labels, _ = share(found, comp.numpy(), sharing)
        self._rows = X
        self.labels_: NDArray[np.float32] = self._all_labels[:, : len(self.classes_)]
        self.transduction_ = self.classes_[self._least().numpy()]
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Augmented labels (n, K) of new rows: what their nearest old rows pass on."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=FLOATS)
        return self._pass_on(X, self.n_neighbors_).numpy()

    def _pass_on(self, X: NDArray[Any], n_neighbors: int) -> torch.Tensor:
        """The mean (m, K) of the augmented labels of the nearest old rows of X (m, d), as the scheme weighs them."""
        if self.whiten_ is None:
            near = neighbors.query(self._rows, X, n_neighbors, metric=self.metric)
        else:
            old, new = (whiten(rows, self._rows, strength=self.whiten_) for rows in (self._rows, X))
            near = neighbors.query(old, new, n_neighbors, metric="cosine")
        weigh = self._sharing().row.weigh
        # where nothing was shared, the neighbours of new rows still have ranks
        ranks = without_gaps(by_rank(*near.distances.shape), near.distances)
        weights = weigh(near.distances, self.gamma_) if weigh else ranks
        given = torch.from_numpy(self._all_labels)
        passed = embedding_bag(near.indices, given, per_sample_weights=weights.to(given), mode="sum")
        return passed[:, : len(self.classes_)]

    def _least(self) -> torch.Tensor:
        """The numbers (n,) of the classes that the rows are least said not to be."""
        labels, more = torch.from_numpy(self.labels_), min(MORE * self.n_neighbors_, len(self._rows))

        def by_more(rows: torch.Tensor) -> torch.Tensor:
            return -self._pass_on(self._rows[rows.numpy()], more)

        return pick(-labels.double(), by_more, lambda rows: draw(labels, 0)[rows])

    def _sharing(self) -> Sharing:
        names = ("n_neighbors", "alpha", "gamma", "rounds", "metric", "class_shares", "whiten")
        return Sharing(self.scheme, **{name: getattr(self, name) for name in names})

    def fit_transform(self, X: Any, y: Any) -> NDArray[np.float32]:
        """The augmented labels (n, K) of the rows themselves."""
        return self.fit(X, y).labels_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []  # labels come out in float32, whatever the rows are
        return tags
