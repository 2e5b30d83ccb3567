"""Estimation: how labels come about, and how right predictions are, without an ordinary label."""

from naysay.estimation.accuracy import Accuracy, by_predictions, estimate_accuracy
from naysay.estimation.matrix import neighborhoods, rejects
from naysay.estimation.meaning import Agreement, ask_meaning, ordinary
from naysay.estimation.neighborhood import SAMPLE, Estimate, ask_neighbors, estimate_transition, label_counts, not_told
from naysay.estimation.votes import AnnotatorT, Votes

__all__ = [
    "SAMPLE",
    "Accuracy",
    "Agreement",
    "AnnotatorT",
    "Estimate",
    "Votes",
    "ask_meaning",
    "ask_neighbors",
    "by_predictions",
    "estimate_accuracy",
    "estimate_transition",
    "label_counts",
    "neighborhoods",
    "not_told",
    "ordinary",
    "rejects",
]
