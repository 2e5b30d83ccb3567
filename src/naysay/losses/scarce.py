"""One class against the rest, by what is named and what is not (Wang, Ishida, Zhang, Niu, Sugiyama 2024, SCARCE).

Labels "not k" are negatives of class k, and all instances are unlabelled: each class is a problem of negatives and
unlabelled ones. With c_k how often k is named where it is wrong, whatever the true class, and l(z) = log(1 + e^-z),
the positives' part of class k's risk is `r_k = mean_i (1 - z_ik / c_k) l(g_ik)`, which is no less than 0 but by chance,
and the negatives' `s_k = mean_i z_ik / c_k l(-g_ik)`. The loss is `sum_k |r_k| + s_k`. Published code takes even class
shares and the labels' counts; training weighs each batch's labels to the counts of the whole set, as for ure-nn.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def rarity(T: Tensor) -> Tensor:
    """1 / c_k (K,): c_k the mean of T[y, k] over y != k, K - 1 for uniform T; 0 of a class that is never named."""
    named = (T.sum(0) - T.diagonal()) / (len(T) - 1)
    return torch.where(named > 0, 1 / named.clamp_min(torch.finfo(T.dtype).tiny), 0.0)


def risks(logits: Tensor, comp: Tensor, rarity: Tensor) -> Tensor:
    """The positives' and the negatives' parts (n, 2K), whose batch means are r_k and s_k; 0 of an unlabelled row."""
    negative = comp * rarity
    positive = comp.sum(1, keepdim=True) - negative
    return torch.cat([positive * F.softplus(-logits), negative * F.softplus(logits)], 1)


def absolute(mean: Tensor) -> Tensor:
    """sum_k |r_k| + s_k."""
    positive, negative = mean.chunk(2)
    return positive.abs().sum() + negative.sum()
