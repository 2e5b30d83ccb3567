"""Unbiased risk estimates (Ishida, Niu, Menon, Sugiyama 2019): the mean of L over labels equals the ordinary risk.

With l_j = -log p_j the cross entropy of class j, `sum_k T[y, k] L[., k] = l_y` holds exactly: that is unbiased. L has
negative parts, so a flexible model can push it to -infinity; `ure-nn` and `ure-ga` hold it back per ORDINARY class.
"""

import torch
from torch import Tensor

from naysay.transition import solve


def ordinary_weights(T: Tensor) -> Tensor:
    """Tinv (K, K), solved for: row k says what the label "not k" tells about each ordinary class."""
    return solve(T, torch.eye(len(T), dtype=T.dtype, device=T.device))


def unbiased(logits: Tensor, T_inverse: Tensor) -> Tensor:
    """L[., k] = sum_j Tinv[k, j] l_j, (n, K); for uniform T this is sum_j l_j - (K-1) l_k."""
    return -logits.log_softmax(1) @ T_inverse.T


def class_risks(logits: Tensor, comp: Tensor, T_inverse: Tensor) -> Tensor:
    """(z Tinv)_j l_j (n, K): its batch mean is r_j, the estimated risk of ordinary class j, and sum_j r_j the URE."""
    return -(comp @ T_inverse) * logits.log_softmax(1)


def non_negative(risks: Tensor) -> Tensor:
    """sum_j max(0, r_j): an ordinary class's risk cannot be negative, so below 0 it is only noise."""
    return risks.clamp(min=0).sum()


def gradient_ascent(risks: Tensor) -> Tensor:
    """What the step minimises: sum_j r_j while all are positive, else sum_j max(0, -r_j), to lift the negative ones."""
    return torch.where((risks < 0).any(), (-risks).clamp(min=0).sum(), risks.sum())
