"""What the classifiers share: classes out of numbers, a T from what was asked, and a score without ordinary labels."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from naysay import selection, shares
from naysay.errors import InputError, unknown
from naysay.estimation import estimate_transition
from naysay.estimators.encoding import encode
from naysay.estimators.judging import Hashes, judge
from naysay.statistics import Counts, above_ceiling
from naysay.transition import matrices, popularity, validate
from naysay.transition.matrices import check_rows

FLOATS = [np.float32, np.float64]  # of rows that are compared: neighbours are found in either
NUMBERS = [np.float32, np.float64, np.uint8]  # what rows may be without being copied


def shares_of(classes: NDArray[Any], class_shares: Any) -> Any:
    """The class shares, of as many columns as the labels of these classes have."""
    known = shares.read(class_shares, len(classes))
    if known is None or len(classes) > 2:
        return class_shares
    return [*known.tolist(), 0.0]  # the third class, which stands in for what two are missing, is nobody's


def draw_seed(random_state: Any) -> int:
    """The seed that `random_state` gives, by scikit-learn's contract: a whole number itself, a number drawn from a
    RandomState, or, for None, from numpy's global one, so that `np.random.seed` decides it.
    """
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if random_state is not None and not isinstance(random_state, np.random.RandomState):
        wanted = "a whole number, None to draw one, or a numpy RandomState"
        raise InputError(f"random_state must be {wanted}; got {random_state!r}.")
    return int(check_random_state(random_state).randint(2**31 - 1))


def _named(comp: torch.Tensor) -> Counts:
    """How many labels name each class (K,)."""
    named: Counts = comp.double().sum(0).round().long().numpy()
    return named


def _with_third(T: torch.Tensor) -> torch.Tensor:
    """T (2, 2) of two classes as labels of three have it: half of each label names the third, which nothing is."""
    if T.shape != (2, 2):
        raise InputError(f"transition must have a row and a column for each of the 2 classes; got {tuple(T.shape)}.")
    check_rows(T)
    return torch.cat([torch.cat([T / 2, T.new_full((2, 1), 0.5)], 1), T.new_tensor([[0.5, 0.5, 0.0]])])


class Complementary(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What fits on complementary labels, predicts classes, and is judged by complementary labels alone."""

    transition: Any
    class_shares: Any
    random_state: Any
    seed_: int
    classes_: NDArray[Any]
    judged_by_: torch.Tensor | None
    _trained_on: Hashes

    def _numbers(self, X: Any) -> torch.Tensor:
        """The predicted class numbers (n,)."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted class (n,) of each row."""
        check_is_fitted(self)
        named: NDArray[Any] = self.classes_[self._numbers(X).numpy()]
        return named

    def score(self, X: Any, y: Any, sample_weight: None = None) -> float:
        """The accuracy, estimated from complementary labels y alone (URE of the 0-1 loss): never accuracy against y.

        Rows that the model was trained on flatter it, and a warning says so.
        """
        check_is_fitted(self)
        comp, _ = encode(y, self.classes_)
        return judge(selection.ure_accuracy(self._numbers(X), comp, self.judged_by_), X, self._trained_on)

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
            known, seed = self.class_shares, self.seed_
            estimated = asked == "estimated"
            T = (
                estimate_transition(comp, features(), class_shares=known, seed=seed).T
                if estimated
                else popularity(comp)
            )
            self.judged_by_ = T
            return T
        if asked is not None and len(self.classes_) == 2:
            asked = _with_third(matrices.read(asked))
        given = None if asked is None else validate(asked, comp.shape[1])
        uneven = len(self.classes_) > 2 and (self.class_shares is not None or bool(above_ceiling(_named(comp)).any()))
        self.judged_by_ = popularity(comp) if given is None and uneven else given
        return given

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks score against y, the very labels that must be avoided
        tags.classifier_tags.poor_score = True
        return tags
