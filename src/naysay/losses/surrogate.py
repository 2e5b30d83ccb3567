"""Surrogates of the complementary 0-1 loss (Chou, Niu, Lin, Sugiyama 2020), and forward correction.

Forward correction is that of Yu, Liu, Gong and Tao (2018). All are biased on purpose, and have far less variance than
unbiased estimates.
"""

from torch import Tensor

from naysay.losses.logspace import log_mix, log_not, with_floor


def negative_learning(logits: Tensor, T: Tensor, eps: float = 0.0) -> Tensor:
    """L[., k] = -log(1 - p_k), (n, K)."""
    return -with_floor(log_not(logits), eps)


def exponential(logits: Tensor, T: Tensor) -> Tensor:
    """L[., k] = exp(p_k), (n, K). Bounded by e."""
    return logits.softmax(1).exp()


def forward_correction(logits: Tensor, T: Tensor, eps: float = 0.0) -> Tensor:
    """L[., k] = -log (T^T p)_k, (n, K): the log loss of the label that T says will be named."""
    return -with_floor(log_mix(logits.log_softmax(1), T), eps)
