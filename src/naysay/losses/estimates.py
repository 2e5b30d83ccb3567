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


def score_direct(logits: Tensor, T: Tensor) -> Tensor:
    """How near softmax(g) is to each row of T, (n, K)."""
    return closeness(logits.softmax(1), T)


def score_through(logits: Tensor, T: Tensor) -> Tensor:
    """How near T^T softmax(g) is to each row of T, (n, K)."""
    return closeness(log_mix(logits.log_softmax(1), T).exp(), T)


def nearest_row(estimate: Tensor, T: Tensor) -> Tensor:
    """The class (n,) whose row of T is nearest in L1 to each estimated label distribution (n, K)."""
    return closeness(estimate, T).argmax(1)


def closeness(estimate: Tensor, T: Tensor) -> Tensor:
    """Minus the L1 distance (n, K) of each estimate (n, K) to each row of T, in units of the rows' mean distance.

    In these units that of T^T p under the uniform T is p_y - 1: its order and differences are those of p. Distances tie
    by construction: in float32, what differs by rounding alone ties too, and float64 keeps the order of the rest.
    """
    T = T.to(estimate)
    apart = torch.cdist(T, T, p=1).sum() / (len(T) * (len(T) - 1))
    return (-torch.cdist(estimate, T, p=1) / apart.clamp(min=1e-12)).float()


def onto_simplex(scores: Tensor) -> Tensor:
    """The distribution (n, K) nearest to each row of scores (Michelot 1986): their order and differences, cut at 0.

    Of the closeness of T^T p under the uniform T it is p itself.
    """
    falling = scores.sort(1, descending=True).values
    ranks = torch.arange(1, scores.shape[1] + 1, device=scores.device)
    excess = falling.cumsum(1) - 1
    kept = (falling * ranks > excess).sum(1, keepdim=True)
    return (scores - excess.gather(1, kept - 1) / kept).clamp(min=0)


class TrainableTransition(nn.Module):
    """A T whose rows stay distributions while it is trained: the softmax of its logarithm."""

    def __init__(self, T: Tensor) -> None:
        super().__init__()
        # a probability of 0 would be -inf, which no gradient moves
        self.log_T = nn.Parameter(T.clamp(min=1e-6).log().float())

    def forward(self) -> Tensor:
        return self.log_T.softmax(1)
