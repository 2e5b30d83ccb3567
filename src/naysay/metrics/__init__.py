"""Figures for experiments in which the truth is known; every function that takes it is called `oracle_*`."""

from naysay.metrics.figures import FIGURES, Figure, find_figure, oracle_observer
from naysay.metrics.oracles import (
    Confidence,
    oracle_accuracy,
    oracle_argmin_accuracy,
    oracle_confidence,
    oracle_mass,
    oracle_neighboring_noise,
    oracle_sharing_efficiency,
)

__all__ = [
    "FIGURES",
    "Confidence",
    "Figure",
    "find_figure",
    "oracle_accuracy",
    "oracle_argmin_accuracy",
    "oracle_confidence",
    "oracle_mass",
    "oracle_neighboring_noise",
    "oracle_observer",
    "oracle_sharing_efficiency",
]
