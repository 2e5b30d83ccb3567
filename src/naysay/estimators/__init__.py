"""scikit-learn's door: estimators that fit on complementary labels, and score without a single ordinary one.

A classifier is a network trained on shared labels, or neighbours without any training; the augmenter is for
complementary labels what LabelSpreading is for ordinary ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from naysay import losses, neighbors, selection, shares
from naysay.augmentation import Sharing, share
from naysay.augmentation.weights import by_rank
from naysay.decoding import NeighborDecoder, choose_k
from naysay.errors import InputError, unknown
from naysay.estimation import estimate_transition
from naysay.estimators.encoding import encode, encode_for
from naysay.features import find_space
from naysay.learning import Config, Predictor, configure, train
from naysay.learning.recipes import get as get_recipe
from naysay.statistics import Counts, above_ceiling
from naysay.transition import popularity, validate

__all__ = ["ComplementaryClassifier", "ComplementaryKNeighbors", "LabelAugmenter"]

FLOATS = [np.float32, np.float64]  # of rows that are compared: neighbours are found in either
NUMBERS = [np.float32, np.float64, np.uint8]  # what rows may be without being copied


def _shares_of(classes: NDArray[Any], class_shares: Any) -> Any:
    """The class shares, of as many columns as the labels of these classes have."""
    known = shares.read(class_shares, len(classes))
    if known is None or len(classes) > 2:
        return class_shares
    return [*known.tolist(), 0.0]  # the third class, which stands in for what two are missing, is nobody's


def _named(comp: torch.Tensor) -> Counts:
    """How many labels name each class (K,)."""
    named: Counts = comp.double().sum(0).round().long().numpy()
    return named


class _Complementary(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What fits on complementary labels, predicts classes, and is judged by complementary labels alone."""

    transition: Any
    class_shares: Any
    random_state: int
    classes_: NDArray[Any]
    judged_by_: torch.Tensor | None

    def _numbers(self, X: Any) -> torch.Tensor:
        """The predicted class numbers (n,)."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted class (n,) of each row."""
        check_is_fitted(self)
        named: NDArray[Any] = self.classes_[self._numbers(X).numpy()]
        return named

    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """The accuracy, estimated from complementary labels y alone (URE of the 0-1 loss): never accuracy against y."""
        check_is_fitted(self)
        comp, _ = encode(y, self.classes_)
        return selection.ure_accuracy(self._numbers(X), comp, self.judged_by_).value

    def _find_transition(self, comp: torch.Tensor, features: Any) -> torch.Tensor | None:
        """T as `transition` says: None, "popularity", "estimated" from the rows' `features` (a function), or given.

        `judged_by_` is the T by which `score` judges: where none is given, the popularity model if class shares are
        stated, since who states them expects uneven naming, or if the labels prove it; else uniform. So a grid of class
        shares is judged by one T: by a uniform one popular labels flatter whoever did not state shares.
        """
        asked = self.transition
        if isinstance(asked, str):
            if asked not in ("popularity", "estimated"):
                raise unknown("transition", asked, ("popularity", "estimated"))
            if len(self.classes_) == 2:  # the third class is named with every label, which is uniform over three
                self.judged_by_ = None
                return None
            known, seed = self.class_shares, self.random_state
            estimated = asked == "estimated"
            T = (
                estimate_transition(comp, features(), class_shares=known, seed=seed).T
                if estimated
                else popularity(comp)
            )
            self.judged_by_ = T
            return T
        given = None if asked is None else validate(torch.as_tensor(asked), comp.shape[1])
        uneven = len(self.classes_) > 2 and (self.class_shares is not None or bool(above_ceiling(_named(comp)).any()))
        self.judged_by_ = popularity(comp) if given is None and uneven else given
        return given

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks score against y, the very labels that must be avoided
        tags.classifier_tags.poor_score = True
        return tags


class ComplementaryClassifier(_Complementary):
    """Fits on labels that say what rows are not; predicts what they are.

    loss: a name of `naysay.losses.LOSSES`. scheme: how labels are shared first (none, rss, rms, dss, dms). encoder:
    None (standardised columns, or pixels), a callable X -> (n, d), or an encoder's file: the features in which
    neighbours are looked up. model: a name of `naysay.models.MODELS`.
    class_shares: how common the classes are, "even" or K shares: labels that favour some classes are corrected by it
    (`naysay.shares`), and are then uniform to the loss. transition: how classes turn into labels, T (K, K),
    "popularity", "estimated" by neighbours, or None: uniform. classes: all classes, when the labels may not name each
    of them. recipe: plain, or consistent for uint8 images (`naysay.learning.recipes`): it shares labels itself, starts
    from the encoder file that `encoder` names, and what is left at its default here is the recipe's own. n_neighbors:
    None takes as many as the classes are large enough for, at most 64. The rest: see `naysay.augment` and
    `naysay.learning.Config`.

    `score(X, y)` takes complementary labels and estimates the accuracy without truth; higher is better.
    """

    def __init__(
        self,
        loss: str = "scl-nl",
        scheme: str = "dms",
        encoder: Callable[[Any], Any] | str | None = None,
        model: str = "mlp",
        *,
        n_neighbors: int | None = None,
        alpha: float = 0.1,
        gamma: float | str = "auto",
        transition: Any = None,
        class_shares: Any = None,
        classes: Sequence[Any] | None = None,
        recipe: str = "plain",
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
        self.class_shares = class_shares
        self.classes = classes
        self.recipe = recipe
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows X (n, d), or images (n, H, W[, C]), with complementary labels y (`estimators.encoding`)."""
        X = validate_data(self, X, allow_nd=True, dtype=NUMBERS, ensure_min_samples=2)
        comp, self.classes_ = encode_for(X, y, self.classes)

        def features() -> Any:
            kind = "standardised" if X.ndim == 2 else "raw"
            return self.encoder(X) if callable(self.encoder) else find_space(X, kind, self.encoder).features

        T = self._find_transition(comp, features)
        corrected = None if self.class_shares is None else T
        sharing = Sharing(self.scheme, self.n_neighbors, self.alpha, self.gamma).within(*comp.shape)
        sharing = replace(sharing, class_shares=_shares_of(self.classes_, self.class_shares), transition=corrected)
        if sharing.total and not get_recipe(self.recipe).shares:
            comp, _ = share(features(), comp, sharing)
            T = None if sharing.corrects else T  # corrected labels are uniform ones
        self.predictor_: Predictor = train(self._config(), X, comp, T=T).predictor
        return self

    def _config(self) -> Config:
        """The settings of training; those left at their defaults are the recipe's own."""
        names = ("loss", "model", "epochs", "batch_size", "learning_rate", "weight_decay")
        given = {name: getattr(self, name) for name in names}
        if not get_recipe(self.recipe).shares:
            return Config(**given, recipe=self.recipe, seed=self.random_state)
        if callable(self.encoder):
            got = type(self.encoder).__name__
            raise InputError(f"the recipe {self.recipe} starts from the weights of an encoder's file; got a {got}.")
        usual = signature(type(self)).parameters
        changed = {name: value for name, value in given.items() if value != usual[name].default}
        told = {"class_shares": _shares_of(self.classes_, self.class_shares), "encoder": self.encoder}
        return configure(self.recipe, **changed, **told, seed=self.random_state)

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Scores (n, K), logits where the loss has them; with two classes, as scikit-learn has it, one (n,)."""
        scores = self._scores(X).numpy()
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability (n, K) of each of `classes_`."""
        scores = self._scores(X)
        probabilities: NDArray[np.float64] = losses.probabilities(self.predictor_.config.loss, scores).numpy()
        return probabilities

    def _numbers(self, X: Any) -> torch.Tensor:
        return self._scores(X).argmax(1)

    def _scores(self, X: Any) -> torch.Tensor:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, allow_nd=True, dtype=NUMBERS)
        logits = self.predictor_.logits(X)
        return self.predictor_.scores(logits).cpu()[:, : len(self.classes_)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


class ComplementaryKNeighbors(_Complementary):
    """Predicts the class least often named as wrong among the nearest rows; with T, that whose row of T is nearest.

    n_neighbors: a number, or "auto" to choose among 4, 8, ..., 1024 by complementary labels alone. transition,
    class_shares: as for `ComplementaryClassifier`; with class shares the likeliest class under them is predicted.
    classes: all classes, when the labels may not name each of them. Equally little named classes are equally probable,
    and `predict` tells them apart by more neighbours, then by random_state.
    """

    def __init__(
        self,
        n_neighbors: int | str = "auto",
        *,
        transition: Any = None,
        class_shares: Any = None,
        classes: Sequence[Any] | None = None,
        random_state: int = 0,
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
        features = torch.from_numpy(np.ascontiguousarray(X))
        known, seed = _shares_of(self.classes_, self.class_shares), self.random_state
        T = self._find_transition(comp, lambda: features)
        if self.n_neighbors == "auto" and len(X) >= 40:
            self.n_neighbors_ = choose_k(features, comp, T=T, class_shares=known, seed=seed)[0].k
        else:
            # a tenth is held out to choose k; sets of a few rows have none to spare, and k is then as small as it gets
            self.n_neighbors_ = min(4 if self.n_neighbors == "auto" else int(self.n_neighbors), len(X))
        self.decoder_ = NeighborDecoder(features, comp, self.n_neighbors_, T, known, seed)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability (n, K) of each of `classes_`: as they explain the neighbours' labels. It shows ties."""
        rows = self._rows(X)
        posterior, predicted = self.decoder_.classify(rows, len(self.classes_))
        explained = posterior[:, : len(self.classes_)].double()
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


class LabelAugmenter(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Shares complementary labels between neighbours. After `fit`, `labels_` (n, K) are the augmented labels of the
    rows, a column per class of `classes_`, and `transduction_` (n,) the class that each row is least said not to be.

    The settings are those of `naysay.augmentation.Sharing`. `transform(X)` gives new rows the mean of their neighbours'
    augmented labels.
    """

    def __init__(
        self,
        scheme: str = "dms",
        *,
        n_neighbors: int | None = None,
        alpha: float = 0.1,
        gamma: float | str = "auto",
        rounds: int | None = None,
        metric: str = "euclidean",
        class_shares: Any = None,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.scheme = scheme
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.gamma = gamma
        self.rounds = rounds
        self.metric = metric
        self.class_shares = class_shares
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Self:
        """Share the complementary labels y of rows X (n, d)."""
        X = validate_data(self, X, dtype=FLOATS, ensure_min_samples=2)
        comp, self.classes_ = encode_for(X, y, self.classes)
        known = _shares_of(self.classes_, self.class_shares)
        sharing = replace(self._sharing().within(*comp.shape), class_shares=known)
        graph = neighbors.build(X, sharing.neighbors(*comp.shape), metric=self.metric)
        self.n_neighbors_, self.gamma_ = graph.k, sharing.gamma_for(graph.distances)
        self._all_labels, _ = share(graph, comp.numpy(), sharing)
        self._rows = X
        self.labels_: NDArray[np.float32] = self._all_labels[:, : len(self.classes_)]
        self.transduction_ = self.classes_[self.labels_.argmin(1)]
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Augmented labels (n, K) of new rows: what their nearest old rows pass on."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=FLOATS)
        near = neighbors.query(self._rows, X, self.n_neighbors_, metric=self.metric)
        weigh = self._sharing().row.weigh
        # where nothing was shared, the neighbours of new rows still have ranks
        weights = weigh(near.distances, self.gamma_) if weigh else by_rank(*near.distances.shape)
        passed = torch.einsum("nk,nkc->nc", weights, torch.from_numpy(self._all_labels)[near.indices.long()])
        return passed.numpy()[:, : len(self.classes_)]

    def _sharing(self) -> Sharing:
        names = ("n_neighbors", "alpha", "gamma", "rounds", "metric", "class_shares")
        return Sharing(self.scheme, **{name: getattr(self, name) for name in names})

    def fit_transform(self, X: Any, y: Any) -> NDArray[np.float32]:
        """The augmented labels (n, K) of the rows themselves."""
        return self.fit(X, y).labels_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []  # labels come out in float32, whatever the rows are
        return tags
