"""Any classifier of scikit-learn as a base: it learns which label a row gets, and T turns that into what the row is.

A row with several or soft labels becomes several rows with weights. Whatever the classifier takes, sparse matrices and
data frames included, is handed to it as it is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from naysay.bases.through import UNSEEN, Floats, classes_of, told_apart
from naysay.errors import InputError


@dataclass(frozen=True, eq=False)
class ForeignModel:
    """A fitted classifier of the labels, and the T through which its probabilities become classes."""

    classifier: Any
    T: Floats

    def logits(self, x: Any) -> Floats:
        """Log probabilities (n, K) of the classes at rows x (n, d); many may be equal, up to a hair."""
        named = np.full((x.shape[0], len(self.T)), 0.0)
        named[:, self.classifier.classes_] = self.classifier.predict_proba(x)
        return told_apart(np.log(np.maximum(classes_of(named, self.T), UNSEEN)), x)


@dataclass(frozen=True)
class Foreign:
    """classifier: unfitted, with `predict_proba`; a copy of it is fitted."""

    classifier: Any

    def fit(self, x: Any, comp: Floats, T: Floats, seed: int = 0) -> ForeignModel:
        """Fit a copy on the rows of x (n, d), one for each class that their labels `comp` (n, K) name."""
        from sklearn.base import clone
        from sklearn.utils import _safe_indexing

        if not hasattr(self.classifier, "predict_proba"):
            name = type(self.classifier).__name__
            raise InputError(
                f"model must be able to give probabilities of labels; got {name}, which has no predict_proba. "
                "Use one that has, or wrap it in CalibratedClassifierCV."
            )
        rows, named = np.nonzero(comp)
        if len(different := np.unique(named)) < 2:
            got = f"all name class number {different[0]}" if len(different) else "there are none"
            raise InputError(f"model must be shown labels that name at least two different classes; {got}.")
        weights, copy = comp[rows, named], clone(self.classifier)
        if "random_state" in copy.get_params() and copy.get_params()["random_state"] is None:
            copy.set_params(random_state=seed % 2**32)
        some = _safe_indexing(x, rows)
        if np.ptp(weights) == 0:  # every label weighs the same
            return ForeignModel(copy.fit(some, named), T)
        return ForeignModel(copy.fit(some, named, **_weighted(copy, weights)), T)


def _weighted(classifier: Any, weights: Floats) -> dict[str, Floats]:
    """The keyword by which a classifier, or the last step of a pipeline, takes weights of rows."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    step, last = "", classifier
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        step += f"{name}__"
    if not has_fit_parameter(last, "sample_weight"):
        raise InputError(
            f"soft, shared or several labels a row need a model that weighs rows; got {type(last).__name__}, whose fit "
            "takes no sample_weight. Use one label a row and scheme='none', or another model."
        )
    return {f"{step}sample_weight": weights}
