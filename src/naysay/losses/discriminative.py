"""Discriminative losses (Gao & Zhang 2021): 1 - p, normalised by a softmax, models the label that is named."""

from torch import Tensor

from naysay.losses.logspace import with_floor


def unweighted(logits: Tensor, T: Tensor, eps: float = 0.0) -> Tensor:
    """u_k = -log softmax(1 - p)_k, (n, K). Bounded, because p is."""
    return -with_floor((1 - logits.softmax(1)).log_softmax(1), eps)


def weighted(logits: Tensor, T: Tensor, eps: float = 0.0) -> Tensor:
    """u_k (1 + (1 - p_k) / (K-1)), (n, K), with the gradient through the weight too."""
    not_p = 1 - logits.softmax(1)
    return unweighted(logits, T, eps) * (1 + not_p / (logits.shape[1] - 1))
