"""Losses of several complementary labels at once (Feng, Kaneko, Han, Niu, An, Sugiyama 2020).

A row whose labels weigh alike is a set of s labels and pays a loss of P, the probability outside the set, times
(K-1)/s. All other rows are soft: they pay what each label alone would cost, (K-1) times the loss of 1 - p_k, averaged
under the row, as augmented labels do with any loss of one label (R_LA of arXiv 2305.08344). For mcl-mae both are the
same; with the other two a set and a soft row that comes near it do not cost the same.

A row that names every class alike leaves nothing outside: it says nothing, and costs nothing, as an unlabelled one.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from naysay.losses.logspace import log_mass, log_not, with_floor

ALIKE = 1 - 1e-6  # of the largest: weights from here on differ by rounding


def _loss(logits: Tensor, comp: Tensor, of: Callable[[Tensor], Tensor]) -> Tensor:
    """The loss (n,) of each row, from that of a logarithm of P."""
    largest = comp.amax(1, keepdim=True)
    named = comp > 0
    is_set = (~named | (comp >= ALIKE * largest)).all(1)
    everything = named.all(1, keepdim=True)
    # the masked copy keeps a P of 0 out of the logarithm, whose gradient would be NaN even where it is not used
    log_P = log_mass(logits.log_softmax(1), (~named | everything).to(logits))
    alone = (comp * of(log_not(logits))).sum(1)
    together = torch.where(everything, 0, largest).squeeze(1) * of(log_P)  # 1/s = the weight of a label of s
    return (logits.shape[1] - 1) * torch.where(is_set, together, alone)


def absolute(logits: Tensor, comp: Tensor) -> Tensor:
    """1 - P, (n,) times (K-1)/s. Bounded."""
    return _loss(logits, comp, lambda log_P: -log_P.expm1())


def exponential(logits: Tensor, comp: Tensor) -> Tensor:
    """exp(-P), (n,) times (K-1)/s. Bounded."""
    return _loss(logits, comp, lambda log_P: (-log_P.exp()).exp())


def logarithmic(logits: Tensor, comp: Tensor, eps: float = 0.0) -> Tensor:
    """-log P, (n,) times (K-1)/s."""
    return _loss(logits, comp, lambda log_P: -with_floor(log_P, eps))
