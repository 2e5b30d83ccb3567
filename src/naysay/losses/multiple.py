"""Losses of several complementary labels at once (Feng, Kaneko, Han, Niu, An, Sugiyama 2020).

Each is a loss of P, the probability outside the label set, times (K-1)/s for s labels. With soft labels z a class is in
the set to the degree z_k / max(z), and s = 1 / max(z): for m labels of 1/m each, that is the set itself and s = m.
"""

from torch import Tensor

from naysay.losses.logspace import log_mass, with_floor


def _log_outside(logits: Tensor, comp: Tensor) -> tuple[Tensor, Tensor]:
    """log P (n,) and (K-1)/s (n,); unlabelled rows (all zero) have factor 0."""
    largest = comp.amax(1, keepdim=True)
    membership = comp / largest.clamp(min=1e-12)  # a row of zeros stays zeros
    log_P = log_mass(logits.log_softmax(1), 1 - membership)
    return log_P, (logits.shape[1] - 1) * largest.squeeze(1)


def absolute(logits: Tensor, comp: Tensor) -> Tensor:
    """1 - P, (n,) times (K-1)/s. Bounded."""
    log_P, factor = _log_outside(logits, comp)
    return factor * -log_P.expm1()


def exponential(logits: Tensor, comp: Tensor) -> Tensor:
    """exp(-P), (n,) times (K-1)/s. Bounded."""
    log_P, factor = _log_outside(logits, comp)
    return factor * (-log_P.exp()).exp()


def logarithmic(logits: Tensor, comp: Tensor, eps: float = 0.0) -> Tensor:
    """-log P, (n,) times (K-1)/s."""
    log_P, factor = _log_outside(logits, comp)
    return -factor * with_floor(log_P, eps)
