"""A table as scikit-learn's transformers take one: columns of any kind in, features (n, d) out (`naysay.datasets`).

model = make_pipeline(TableEncoder(), ComplementaryClassifier())
model.fit(frame, not_labels)              # a DataFrame, an Arrow table, or columns by name
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from naysay.datasets.recipe import Columns
from naysay.errors import InputError


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Turns the columns of a table into numbers as `naysay.read` does; `columns_.told()` says what each became."""

    columns_: Columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what the columns of the table X are."""
        columns = Columns.find(X)
        if not columns.used:
            raise InputError(f"no column can be a feature: {', '.join(columns.told()[:5])}.")
        self.columns_ = columns
        self.feature_names_in_ = np.array([column.name for column in columns.columns], object)
        self.n_features_in_ = len(columns.columns)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The features (n, d) of a table with the same columns; others may be there."""
        check_is_fitted(self)
        return self.columns_.apply(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the d features."""
        check_is_fitted(self)
        return np.array(self.columns_.names, object)
