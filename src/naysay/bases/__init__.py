"""Bases: whatever can be fitted to complementary labels through T, and then gives scores of classes.

A base is a frozen record of settings with `fit(x, comp, T, seed)`; what comes of it has `logits(x)`. Rows are numpy
(sparse where the base takes them), labels (n, K) and T (K, K) are float64 and need not be uniform. To add one: write
the two records in a file of its own, and give it a row in `naysay.portfolio.candidates`.
"""

from typing import Any, Protocol

from naysay.bases.boosting import BoostedModel, Boosting
from naysay.bases.foreign import Foreign, ForeignModel
from naysay.bases.forest import Forest, ForestModel
from naysay.bases.linear import Linear, LinearModel
from naysay.bases.nearest import Nearest, NearestModel
from naysay.bases.network import Network, NetworkModel
from naysay.bases.through import Floats
from naysay.bases.trees import Trees

__all__ = [
    "Base",
    "BaseModel",
    "BoostedModel",
    "Boosting",
    "Foreign",
    "ForeignModel",
    "Forest",
    "ForestModel",
    "Linear",
    "LinearModel",
    "Nearest",
    "NearestModel",
    "Network",
    "NetworkModel",
    "Trees",
]


class BaseModel(Protocol):
    """A fitted base."""

    def logits(self, x: Any) -> Floats:
        """Scores (n, K) of the classes at rows x; the largest is the prediction."""
        ...


class Base(Protocol):
    """Settings of a base, ready to fit."""

    def fit(self, x: Any, comp: Floats, T: Floats, seed: int = 0) -> BaseModel:
        """Fit to rows x with labels `comp` (n, K) that come about by T (K, K)."""
        ...
