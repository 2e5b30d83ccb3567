"""Transition: how a class turns into complementary labels, `T[y, k] = P(k is named as wrong | true class y)`."""

from naysay.transition.matrices import HUMAN, biased, human, noisy, solve, uniform, validate
from naysay.transition.sampling import explicit_sharing, oracle_empirical, sample

__all__ = [
    "HUMAN",
    "biased",
    "explicit_sharing",
    "human",
    "noisy",
    "oracle_empirical",
    "sample",
    "solve",
    "uniform",
    "validate",
]
