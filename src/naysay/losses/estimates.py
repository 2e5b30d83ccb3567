"""Complementary probability estimates (Lin & Lin 2023): estimate how likely each label is to be named, then decode.

The estimate is a distribution over labels; the prediction is the class whose row of T is nearest to it in the L1
distance. cpe-i takes softmax(g) itself as the estimate, cpe-f takes T^T p, and cpe-t trains T along, from the given T.
"""

import torch
from torch import Tensor, nn

from naysay.losses.logspace import log_mix


def direct(logits: Tensor, T: Tensor) -> Tensor:
    """L[., k] = -log softmax(g)_k, (n, K): the log loss of the named label."""
    return -logits.log_softmax(1)


def decode_direct(logits: Tensor, T: Tensor) -> Tensor:
    """The class (n,) whose row of T is nearest to softmax(g)."""
    return nearest_row(logits.softmax(1), T)


def decode_through(logits: Tensor, T: Tensor) -> Tensor:
    """The class (n,) whose row of T is nearest to T^T softmax(g)."""
    return nearest_row(log_mix(logits.log_softmax(1), T).exp(), T)


def nearest_row(estimate: Tensor, T: Tensor) -> Tensor:
    """The class (n,) whose row of T is nearest in L1 to each estimated label distribution (n, K)."""
    return torch.cdist(estimate, T.to(estimate), p=1).argmin(1)


class TrainableTransition(nn.Module):
    """A T whose rows stay distributions while it is trained: the softmax of its logarithm."""

    def __init__(self, T: Tensor) -> None:
        super().__init__()
        # a probability of 0 would be -inf, which no gradient moves
        self.log_T = nn.Parameter(T.clamp(min=1e-6).log().float())

    def forward(self) -> Tensor:
        return self.log_T.softmax(1)
