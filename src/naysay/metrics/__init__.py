"""Figures for experiments in which the truth is known; every function that takes it is called `oracle_*`."""

from naysay.metrics.accuracy import oracle_accuracy
from naysay.metrics.augmented import oracle_argmin_accuracy, oracle_mass, oracle_noise_rate
from naysay.metrics.evaluation import oracle_observer
from naysay.metrics.sharing import Confidence, oracle_confidence, oracle_neighbouring_noise, oracle_sharing_efficiency

__all__ = [
    "Confidence",
    "oracle_accuracy",
    "oracle_argmin_accuracy",
    "oracle_confidence",
    "oracle_mass",
    "oracle_neighbouring_noise",
    "oracle_noise_rate",
    "oracle_observer",
    "oracle_sharing_efficiency",
]
