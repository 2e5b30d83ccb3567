"""Classification without training as a scikit-learn estimator: the class that a row's neighbours are least often told
they are not.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from naysay import selection
from naysay.estimators.encoding import encode
from naysay.learning import NeighbourDecoder, choose_k


class ComplementaryKNeighbors(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Predicts the class least often named as wrong among the nearest rows; with a transition T, the class whose row of
    T is nearest.

    n_neighbors: a number, or "auto" to choose among 4, 8, ..., 1024 by complementary labels alone. classes: all
    classes, when the labels may not name each of them.
    """

    def __init__(
        self,
        n_neighbors: int | str = "auto",
        *,
        transition: Any = None,
        classes: Sequence[Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.transition = transition
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Keep rows X (n, d) with their complementary labels y, and choose the number of neighbours if asked to."""
        X = validate_data(self, X, dtype=np.float32, ensure_min_samples=2)
        comp, self.classes_ = encode(y, self.classes)
        if len(comp) != len(X):
            raise ValueError(f"X and y must have the same rows; got {len(X)} and {len(comp)}.")
        T = None if self.transition is None else torch.as_tensor(self.transition)
        features = torch.from_numpy(np.ascontiguousarray(X))
        if self.n_neighbors == "auto":
            # a tenth is held out to choose k; sets of a few rows have none to spare, and k is then as small as it gets
            chosen = choose_k(features, comp, T=T, seed=self.random_state)[0].k if len(X) >= 40 else min(4, len(X))
        else:
            chosen = min(int(self.n_neighbors), len(X))
        self.decoder_ = NeighbourDecoder(features, comp, chosen, T)
        self.n_neighbors_ = chosen
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability (n, K) of each of `classes_`: the neighbours' labels, solved for the classes that explain
        them.
        """
        explained = selection.ordinary(self._distribution(X), self.decoder_.T).clamp(min=0)[:, : len(self.classes_)]
        probabilities: NDArray[np.float64] = (explained / explained.sum(1, keepdim=True)).numpy()
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted class (n,) of each row."""
        check_is_fitted(self)
        return self.classes_[self._numbers(X)]

    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """The accuracy, estimated from complementary labels y alone (URE of the 0-1 loss): never accuracy against them."""
        check_is_fitted(self)
        comp, _ = encode(y, self.classes_)
        return selection.ure_accuracy(torch.from_numpy(self._numbers(X)), comp, self.decoder_.T).value

    def _numbers(self, X: Any) -> NDArray[np.int64]:
        from naysay.learning import decode

        numbers: NDArray[np.int64] = decode(self._distribution(X)[:, : len(self.classes_)], self.decoder_.T).numpy()
        return numbers

    def _distribution(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float32)
        return self.decoder_.distribution(np.ascontiguousarray(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks score against y, the very labels that must be avoided
        tags.classifier_tags.poor_score = True
        return tags
