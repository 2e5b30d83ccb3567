"""Neighbours as a classifier: what the nearest rows are least said not to be (`naysay.decoding`)."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from naysay.augmentation import neighbors_for
from naysay.decoding import NeighborDecoder, choose_k
from naysay.errors import InputError
from naysay.estimators.encoding import encode_for
from naysay.estimators.judged import FLOATS, Complementary, draw_seed, shares_of
from naysay.estimators.judging import hash_rows


class ComplementaryKNeighbors(Complementary):
    """Predicts the class least often named as wrong among the nearest rows; with T, that whose row of T is nearest.

    n_neighbors: a number, or "auto": half a class, at most 64, unless another of 4, 8, ..., 1024 is clearly better by
    complementary labels alone. transition, class_shares: as for `ComplementaryClassifier`; with class shares the
    likeliest class under them is predicted.
    classes: all classes, when the labels may not name each of them. Equally little named classes are equally probable,
    and with a T or class shares those that half a label would tell apart; `predict` tells them apart by more
    neighbours, then by random_state, which may be None (see there).
    """

    def __init__(
        self,
        n_neighbors: int | str = "auto",
        *,
        transition: Any = None,
        class_shares: Any = None,
        classes: Sequence[Any] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.transition = transition
        self.class_shares = class_shares
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Keep rows X (n, d) with their complementary labels y, and choose the number of neighbours if asked to."""
        X = validate_data(self, X, dtype=FLOATS, ensure_min_samples=2)
        comp, self.classes_ = encode_for(X, y, self.classes)
        self._trained_on = hash_rows(X)
        features = torch.from_numpy(np.ascontiguousarray(X))
        known, self.seed_ = shares_of(self.classes_, self.class_shares), draw_seed(self.random_state)
        seed = self.seed_
        T = self._find_transition(comp, lambda: features)
        if isinstance(self.n_neighbors, str) and self.n_neighbors != "auto":
            raise InputError(f'n_neighbors must be a whole number, or "auto" to choose it; got {self.n_neighbors!r}.')
        if self.n_neighbors == "auto" and len(X) >= 40:
            usual = neighbors_for("rss", *comp.shape)  # what one step of sharing takes: half a class, at most 64
            self.n_neighbors_ = choose_k(features, comp, T=T, class_shares=known, usual=usual, seed=seed)[0].k
        else:
            # a tenth is held out to choose k; sets of a few rows have none to spare, and k is then as small as it gets
            self.n_neighbors_ = min(4 if self.n_neighbors == "auto" else int(self.n_neighbors), len(X))
        self.decoder_ = NeighborDecoder(features, comp, self.n_neighbors_, T, known, seed)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability (n, K) of each of `classes_`: as they explain the neighbours' labels. It shows ties."""
        rows = self._rows(X)
        explained, predicted = self.decoder_.classify(rows, len(self.classes_))
        # equals stay equal to four digits, and the largest of them is the class that is predicted
        chosen = torch.nn.functional.one_hot(predicted, len(self.classes_))
        explained = explained * (1 + 1e-5 * chosen)
        probabilities: NDArray[np.float64] = (explained / explained.sum(1, keepdim=True)).numpy()
        return probabilities

    def _numbers(self, X: Any) -> torch.Tensor:
        return self.decoder_.predict(self._rows(X), len(self.classes_))

    def _rows(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=FLOATS)
        return np.ascontiguousarray(X)
