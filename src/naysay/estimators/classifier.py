"""The whole flow as one scikit-learn estimator: labels shared between neighbours, then a network trained on them."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from naysay import selection
from naysay.augmentation import Sharing, share
from naysay.estimators.encoding import encode
from naysay.features.extract import standardise
from naysay.learning import Config, Predictor, train


def neighbour_space(X: NDArray[Any]) -> NDArray[np.float32]:
    """Features (n, d) in which rows have neighbours: a table's columns standardised, an image's pixels as they are, in
    one scale.
    """
    return standardise(X) if X.ndim == 2 else X.reshape(len(X), -1).astype(np.float32)


class ComplementaryClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Fits on labels that say what rows are not; predicts what they are.

    loss: a name of `naysay.losses.LOSSES`. scheme: how labels are shared first (none, rss, rms, dss, dms). encoder:
    None (standardised columns, or pixels) or a callable X -> (n, d) that gives the features in which neighbours are
    looked up. model: a name of `naysay.models.MODELS`. transition: T (K, K), how classes turn into labels, uniform
    unless given. classes: all classes, when the labels may not name each of them. n_neighbors: None takes as many as
    the classes are large enough for, at most 64. The rest are settings of `naysay.augment` and
    `naysay.learning.Config`.

    `score(X, y)` takes complementary labels and estimates the accuracy without truth; higher is better.
    """

    def __init__(
        self,
        loss: str = "scl-nl",
        scheme: str = "dms",
        encoder: Callable[[Any], Any] | None = None,
        model: str = "mlp",
        *,
        n_neighbors: int | None = None,
        alpha: float = 0.1,
        gamma: float | str = "auto",
        transition: Any = None,
        classes: Sequence[Any] | None = None,
        epochs: int = 30,
        batch_size: int = 64,
        learning_rate: float = 3e-3,
        weight_decay: float = 0.1,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.scheme = scheme
        self.encoder = encoder
        self.model = model
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.gamma = gamma
        self.transition = transition
        self.classes = classes
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows X (n, d), or images (n, H, W[, C]), with complementary labels y: see
        `naysay.estimators.encoding.encode`.
        """
        X = validate_data(self, X, allow_nd=True, dtype=[np.float32, np.float64, np.uint8], ensure_min_samples=2)
        comp, self.classes_ = encode(y, self.classes)
        if len(comp) != len(X):
            raise ValueError(f"X and y must have the same rows; got {len(X)} and {len(comp)}.")
        if self.scheme != "none":
            features = neighbour_space(X) if self.encoder is None else self.encoder(X)
            sharing = Sharing(self.scheme, self.n_neighbors, self.alpha, self.gamma)
            comp, _ = share(features, comp, sharing.within(*comp.shape))
        config = Config(
            loss=self.loss,
            model=self.model,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=self.random_state,
        )
        self.predictor_: Predictor = train(config, X, comp, T=self.transition).predictor
        return self

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Logits (n, K); with two classes, as scikit-learn has it, the second's minus the first's (n,)."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability (n, K) of each of `classes_`."""
        logits = self._logits(X).astype(np.float64)
        odds = np.exp(logits - logits.max(1, keepdims=True))
        probabilities: NDArray[np.float64] = odds / odds.sum(1, keepdims=True)
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted class (n,) of each row."""
        check_is_fitted(self)
        named: NDArray[Any] = self.classes_[self._numbers(X)]
        return named

    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """The accuracy, estimated from complementary labels y alone (URE of the 0-1 loss): never accuracy against them."""
        check_is_fitted(self)
        comp, _ = encode(y, self.classes_)
        return selection.ure_accuracy(self._numbers(X), comp, self.transition).value

    def _numbers(self, X: Any) -> Any:
        import torch

        logits = torch.from_numpy(self._logits(X))
        return (self.predictor_.decode(logits) if len(self.classes_) > 2 else logits.argmax(1)).numpy()

    def _logits(self, X: Any) -> NDArray[np.float32]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, allow_nd=True, dtype=[np.float32, np.float64, np.uint8])
        return self.predictor_.logits(X).cpu().numpy()[:, : len(self.classes_)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        # scikit-learn's checks score against y, the very labels that must be avoided
        tags.classifier_tags.poor_score = True
        return tags
