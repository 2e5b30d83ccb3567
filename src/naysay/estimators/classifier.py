"""The classifier: a portfolio's mixture, a network on shared labels, or any classifier of scikit-learn through T."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from naysay import losses, portfolio, shares
from naysay.augmentation import Sharing, share
from naysay.bases import Foreign
from naysay.errors import InputError
from naysay.estimators.encoding import encode_for
from naysay.estimators.judged import NUMBERS, Complementary, draw_seed, shares_of
from naysay.estimators.judging import hash_rows
from naysay.features import Frozen, Space, find_space, is_encoder
from naysay.learning import RECIPES, Config, Predictor, Recipe, configure, model_of, train
from naysay.portfolio import Mixture, Part
from naysay.portfolio.spaces import enter
from naysay.transition import uniform

# settings of one network: where any is given, one is trained
NETWORK = (
    "recipe",
    "loss",
    "scheme",
    "encoder",
    "n_neighbors",
    "alpha",
    "gamma",
    "epochs",
    "batch_size",
    "learning_rate",
    "weight_decay",
)
COMPONENTS = 100  # of sparse rows


class ComplementaryClassifier(Complementary):
    """Fits on labels that say what rows are not; predicts what they are.

    model: "auto" tries what `naysay.portfolio` holds within the `budget` (seconds; None: by the number of rows) and
    mixes the best; or a name of `naysay.models.MODELS`, a torch module, or any classifier of scikit-learn that gives
    probabilities: it learns which label a row gets, which T turns into what the row is. Where any setting of a network
    is given, "auto" is "mlp"; of uint8 images with an encoder's file alone, it learns what the encoder makes of them.
    class_shares: how common the classes are, "even" or K shares: labels that favour some classes are corrected by it
    (`naysay.shares`), and are then uniform to the loss. transition: how classes turn into labels, T (K, K),
    "popularity", "estimated" by neighbours, or None: uniform, and found out by "auto". classes: all classes, when the
    labels may not name each of them. random_state: a seed; None, or a RandomState, draws one at each `fit`, and `seed_`
    is the one that was used.

    Settings of a network, None for their usual values. loss: a name of `naysay.losses.LOSSES` (scl-nl). scheme: how
    labels are shared first (none, rss, rms, dss, dms; usually dms, and none for a classifier of scikit-learn). encoder:
    a callable X -> (n, d), or an encoder's file, that gives the features in which neighbours are looked up, else
    standardised columns, or pixels. recipe (`naysay.learning.recipes`): plain; taught, for rows and embeddings; or one
    for uint8 images that starts from the encoder's file: consistent, which shares labels itself as taught does, or
    pocr, which learns them as given unless a scheme is named. n_neighbors: as many as the classes are large enough for,
    at most 64; "auto" chooses by hidden labels. The rest: see `naysay.augment` and `naysay.learning.Config`.

    `score(X, y)` takes complementary labels and estimates the accuracy without truth; higher is better.
    """

    def __init__(
        self,
        loss: str | None = None,
        scheme: str | None = None,
        encoder: Callable[[Any], Any] | str | PathLike[str] | None = None,
        model: Any = "auto",
        *,
        n_neighbors: int | str | None = None,
        alpha: float | str | None = None,
        gamma: float | str | None = None,
        transition: Any = None,
        class_shares: Any = None,
        classes: Sequence[Any] | None = None,
        recipe: str | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        budget: float | None = None,
        random_state: Any = 0,
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
        self.budget = budget
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows X (n, d), or images (n, H, W[, C]), with complementary labels y (`estimators.encoding`)."""
        kind = self._kind()
        if self.budget is not None and kind != "auto":
            raise InputError(f"budget={self.budget} is for trying several models, and one is asked for. Leave it out.")
        X = validate_data(
            self, X, accept_sparse=self._takes_sparse(), allow_nd=True, dtype=NUMBERS, ensure_min_samples=2
        )
        comp, self.classes_ = encode_for(X, y, self.classes)
        self.seed_ = draw_seed(self.random_state)
        self._trained_on, self._shape = hash_rows(X), X.shape[1:]
        self._reducer: Any = None
        self._encoder: Frozen | None = None
        ways: dict[str, Callable[[Any, torch.Tensor], Predictor | Mixture]] = {
            "auto": self._try_all,
            "foreign": self._by_foreign,
            "network": self._by_network,
        }
        self.predictor_ = ways[kind](X, comp)
        return self

    def _kind(self) -> str:
        """Whether several models are tried ("auto"), or one is trained: a "network", or one of scikit-learn's."""
        if hasattr(self.model, "fit") and hasattr(self.model, "get_params") and not isinstance(self.model, type):
            return "foreign"
        if not isinstance(self.model, str | torch.nn.Module):
            wanted = "a name, a torch module or a classifier of scikit-learn"
            raise InputError(f"model must be {wanted}; got {self.model!r}. 'auto' tries several.")
        given = [name for name in NETWORK if getattr(self, name) is not None]
        named = bool(given) and not (given == ["encoder"] and _is_file(self.encoder))
        return "auto" if isinstance(self.model, str) and self.model == "auto" and not named else "network"

    def _takes_sparse(self) -> bool:
        return self._kind() != "network"

    def _try_all(self, X: Any, comp: torch.Tensor) -> Mixture:
        """The portfolio's mixture; sparse rows by their first components, images by an encoder where there is one."""
        if isinstance(self.encoder, str | PathLike):
            self._encoder = Frozen.load(self.encoder)
            X = self._encoder(X)
        self._reducer = _reducer(X, self.seed_)
        X = _dense(X, self._reducer)
        T = self._find_transition(comp, lambda: find_space(X, "standardised" if X.ndim == 2 else "raw").features)
        known = shares.read(shares_of(self.classes_, self.class_shares), comp.shape[1])
        two = len(self.classes_) == 2  # the third class is named with every label, which is uniform over three
        found = portfolio.fit(
            X,
            comp,
            T=T,
            T_is_stated=not isinstance(self.transition, str),
            assume="uniform" if two else "auto",
            class_shares=known,
            budget=self.budget,
            seed=self.seed_,
        )
        self.tried_ = {one.row.name: float(one.loss.mean()) for one in found.tried}
        self.weights_ = {one.row.name: float(w) for one, w in zip(found.tried, found.weights, strict=True) if w > 0}
        if T is None and found.naming.how != "uniform":
            self.judged_by_ = torch.from_numpy(found.naming.T)
        return found.model

    def _by_foreign(self, X: Any, comp: torch.Tensor) -> Mixture:
        """One classifier of scikit-learn, through T."""
        shares_labels = self.scheme is not None and self.scheme != "none"
        needs_sharing = ("encoder", "n_neighbors", "alpha", "gamma", "class_shares")
        unused = [name for name in NETWORK if name != "scheme" and (name not in needs_sharing or not shares_labels)]
        unused += [] if shares_labels else ["class_shares"]
        for name in (name for name in unused if getattr(self, name) is not None):
            why = "needs scheme= to share labels by" if name in needs_sharing else "is for a network"
            got = type(self.model).__name__
            raise InputError(f"{name}={getattr(self, name)!r} {why}, and model is a {got}. Leave it out.")
        T = self._find_transition(comp, lambda: self._space(X).features)
        T = self.judged_by_ if T is None else T
        if shares_labels:
            comp, T = self._share(X, comp, T)
        matrix = uniform(comp.shape[1]) if T is None else T
        fitted = Foreign(self.model).fit(X, comp.double().numpy(), matrix.double().numpy(), self.seed_)
        part = Part("model", enter("as-given", X), fitted, 1.0)
        return Mixture((part,), np.ones(1), np.zeros(comp.shape[1]), tuple(X.shape[1:]))

    def _by_network(self, X: Any, comp: torch.Tensor) -> Predictor:
        """One network on shared labels."""
        T = self._find_transition(comp, lambda: self._space(X).features)
        config, shared = self._config(), comp
        if not RECIPES[config.recipe].as_given or self.scheme is not None:
            shared, T = self._share(X, comp, T)
        module = None if isinstance(self.model, str) else copy.deepcopy(self.model)
        return train(config, X, shared, T=T, model=module).predictor

    def _config(self) -> Config:
        """The settings of training; those that are None are the recipe's own."""
        names = ("loss", "epochs", "batch_size", "learning_rate", "weight_decay")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if isinstance(self.model, str) and self.model != "auto":
            given["model"] = self.model
        recipe = Config.recipe if self.recipe is None else self.recipe
        if recipe not in RECIPES or not RECIPES[recipe].as_given:
            return Config(**given, recipe=recipe, seed=self.seed_)
        if self.encoder is not None and "encoder" in RECIPES[recipe].unused:
            raise InputError(f"the recipe {recipe} learns rows as they are. Pass the encoder's features as X instead.")
        if callable(self.encoder):
            got = type(self.encoder).__name__
            raise InputError(f"the recipe {recipe} starts from the weights of an encoder's file; got a {got}.")
        self._refuse_unshared(RECIPES[recipe])
        if self.encoder is not None and "model" not in given and isinstance(self.model, str):
            given["model"] = model_of(self.encoder)
        told = {"class_shares": shares_of(self.classes_, self.class_shares)} if RECIPES[recipe].shares else {}
        return configure(recipe, **given, **told, encoder=self.encoder, seed=self.seed_)

    def _refuse_unshared(self, row: Recipe) -> None:
        """Raise InputError where a setting of sharing would change nothing, as the recipe learns labels as given."""
        if row.shares and self.scheme not in (None, "none"):
            itself = f"the recipe {row.name} shares labels itself, so that the scheme must be none"
            raise InputError(f"{itself}; got {self.scheme}.")
        for name in ("n_neighbors", "alpha", "gamma"):
            if self.scheme in (None, "none") and getattr(self, name) is not None:
                why = f"needs scheme= to share labels by, as the recipe {row.name} learns them as given"
                why = f"is for schemes, and the recipe {row.name} shares labels in its own way" if row.shares else why
                raise InputError(f"{name}={getattr(self, name)!r} {why}. Leave it out.")

    def _space(self, X: Any) -> Space:
        """Where neighbours are looked up: what an encoder says is compared by angle."""
        if callable(self.encoder):
            return Space(self.encoder(X), "cosine", "what the encoder says, by angle")
        X = _dense(X, _reducer(X, self.seed_))
        how = "auto" if self.encoder is not None else "standardised" if X.ndim == 2 else "raw"
        return find_space(X, how, self.encoder)

    def _share(self, X: Any, comp: torch.Tensor, T: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The labels after sharing, and the T by which those come about: corrected ones are uniform."""
        corrected = None if self.class_shares is None else T
        given = {name: getattr(self, name) for name in ("scheme", "alpha") if getattr(self, name) is not None}
        known = shares_of(self.classes_, self.class_shares)
        sharing = Sharing(n_neighbors=self.n_neighbors, gamma=self.gamma, class_shares=known, **given)
        sharing = replace(sharing.within(*comp.shape), transition=corrected)
        if not sharing.total:
            return comp, T
        space = self._space(X)
        shared, _ = share(space.features, comp, replace(sharing, metric=space.metric))
        return shared, None if sharing.corrects else T

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Scores (n, K), logits where the loss has them; with two classes, as scikit-learn has it, one (n,)."""
        scores = self._scores(X).numpy()
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability (n, K) of each of `classes_`."""
        scores, found = self._scores(X), self.predictor_
        if isinstance(found, Mixture):
            p = found.probabilities(scores)
        else:
            p = losses.probabilities(found.config.loss, scores)
        probabilities: NDArray[np.float64] = p.numpy()
        return probabilities

    def _numbers(self, X: Any) -> torch.Tensor:
        return self._scores(X).argmax(1)

    def _scores(self, X: Any) -> torch.Tensor:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=self._takes_sparse(), reset=False, allow_nd=True, dtype=NUMBERS)
        if (encoder := getattr(self, "_encoder", None)) is not None:
            wanted = getattr(self, "_shape", X.shape[1:])  # an estimator that was pickled before knows no shape
            if X.shape[1:3] != wanted[:2]:  # channels are the encoder's business
                raise InputError(f"X must hold images of shape {wanted}, as in fit; got shape {X.shape}. Resize them.")
            X = encoder(X)
        if self._kind() != "foreign":
            X = _dense(X, getattr(self, "_reducer", None))
        logits = self.predictor_.logits(X)
        return self.predictor_.scores(logits).cpu()[:, : len(self.classes_)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = self._takes_sparse()
        return tags


def _is_file(encoder: Any) -> bool:
    """Whether it is the file of a trained encoder, and neither a callable nor features that are made already."""
    return isinstance(encoder, str | PathLike) and is_encoder(encoder)


def _reducer(X: Any, seed: int) -> Any:
    """What finds the first components of wide sparse rows; None where rows are taken whole."""
    if not hasattr(X, "tocsr") or X.shape[1] <= COMPONENTS:
        return None
    from sklearn.decomposition import TruncatedSVD

    return TruncatedSVD(min(COMPONENTS, X.shape[0] - 1), random_state=seed % 2**32).fit(X)


def _dense(X: Any, reducer: Any) -> Any:
    """Rows, sparse ones too, as an array: by their components where there is a reducer."""
    if reducer is not None:
        return reducer.transform(X)
    return X.toarray() if hasattr(X, "tocsr") else X
