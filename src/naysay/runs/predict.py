"""Predictions: the class of each row and the probability of every class."""

from torch import Tensor

from naysay import selection
from naysay.learning import Predictor


def probabilities(predictor: Predictor, logits: Tensor) -> Tensor:
    """The probability (n, K) of each class; for cpe-i, whose outputs estimate the labels, the classes that would
    explain them.
    """
    p = logits.double().softmax(1)
    if predictor.config.loss != "cpe-i":
        return p.float()
    behind = selection.ordinary(p.cpu(), None if predictor.T is None else predictor.T.cpu()).clamp_min(0)
    return (behind / behind.sum(1, keepdim=True)).float()
