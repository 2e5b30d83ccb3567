"""Order-preserving losses (Liu, Cao, Zhang, Feng, An 2023): the order of -g is that of the labels' probabilities."""

from torch import Tensor

LARGEST_LOG_RATIO = 60.0  # exp(60) is finite in float32, and a softmax of such numbers is one-hot long before


def order_preserving(logits: Tensor, T: Tensor) -> Tensor:
    """L[., k] = -log softmax(-g)_k, (n, K)."""
    return -(-logits).log_softmax(1)


def weighted(logits: Tensor, T: Tensor) -> Tensor:
    """L times p_k softmax(1 / softmax(-g))_k, (n, K): favours labels that the model still believes in."""
    loss = order_preserving(logits, T)
    ratio = loss.clamp(max=LARGEST_LOG_RATIO).exp()  # 1 / softmax(-g)
    return loss * logits.softmax(1) * ratio.softmax(1)
