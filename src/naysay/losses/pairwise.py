"""Pairwise comparison by the sigmoid loss: the named class scores below all others (Ishida, Niu, Hu, Sugiyama 2017)."""

from torch import Tensor


def comparison(logits: Tensor, T: Tensor) -> Tensor:
    """L[., k] = sum over j != k of sigmoid(g_k - g_j), (n, K). Bounded: each comparison costs at most 1."""
    pairs = (logits.unsqueeze(2) - logits.unsqueeze(1)).sigmoid()
    return pairs.sum(2) - 0.5  # j = k contributes sigmoid(0)
