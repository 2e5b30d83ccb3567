"""Transition: how a class turns into complementary labels, `T[y, k] = P(k is named as wrong | true class y)`."""

from typing import Any

from naysay.transition.matrices import HUMAN, biased, human, invertible, noisy, popularity, solve, uniform, validate
from naysay.transition.sampling import explicit_sharing, oracle_empirical, sample

__all__ = [
    "HUMAN",
    "biased",
    "estimate",
    "explicit_sharing",
    "human",
    "invertible",
    "noisy",
    "oracle_empirical",
    "popularity",
    "sample",
    "solve",
    "uniform",
    "validate",
]


def estimate(comp: Any, features: Any = None, **settings: Any) -> Any:
    """T as labels and neighbours show it, with its errors: `naysay.estimation.estimate_transition`, which comes later
    in the flow, by the name under which T's other sources stand.
    """
    import naysay

    graph = isinstance(features, naysay.neighbors.Graph)
    return naysay.estimation.estimate_transition(comp, **({"graph" if graph else "features": features} | settings))
