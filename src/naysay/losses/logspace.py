"""Logarithms of probabilities without the probabilities: what keeps a confidently wrong prediction's gradient alive.

Where p_k rounds to 1, log(1 - p_k) from p_k is -inf and its gradient NaN; from the other logits it is a plain number.
"""

import math

import torch
from torch import Tensor

MANY = 32  # classes, from which (n, K, K) is too much to hold


def log_not(logits: Tensor) -> Tensor:
    """log(1 - p_k) (n, K) for p = softmax(logits): logsumexp of the other logits minus logsumexp of all.

    Only the largest p of a row can come near 1, so only it needs the other logits; for the rest log1p(-p) is exact.
    """
    top = logits.argmax(1, keepdim=True)
    is_top = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, top, True)
    log_p = logits.log_softmax(1)
    others = logits.masked_fill(is_top, -math.inf).logsumexp(1, keepdim=True) - logits.logsumexp(1, keepdim=True)
    # the masked copy keeps log1p away from p = 1, whose infinite slope would reach the gradient as 0 * inf
    rest = torch.log1p(-log_p.masked_fill(is_top, -math.inf).exp())
    return torch.where(is_top, others, rest)


def log_mix(log_p: Tensor, T: Tensor) -> Tensor:
    """log(p @ T) (n, K) from log p (n, K) and non-negative T (K, K)."""
    if len(T) > MANY:
        return _log_mix_of_many(log_p, T)
    return (log_p.unsqueeze(2) + T.log()).logsumexp(1)


def _log_mix_of_many(log_p: Tensor, T: Tensor) -> Tensor:
    """The same by a product of matrices, where the sum of (n, K, K) takes gigabytes and a second a batch.

    The likeliest class stands apart: where T never lets it name k, the others keep the logarithm and its gradient.
    """
    top = log_p.argmax(1, keepdim=True)
    others = log_p.scatter(1, top, -math.inf)
    most = others.detach().max(1, keepdim=True).values
    least = torch.finfo(log_p.dtype).tiny  # what neither it nor the second names, and all the rest hardly can
    rest = most + ((others - most).exp() @ T).clamp_min(least).log()
    return torch.logaddexp(log_p.gather(1, top) + T[top[:, 0]].log(), rest)


def log_mass(log_p: Tensor, membership: Tensor) -> Tensor:
    """log(sum_k p_k membership_k) (n,) from log p (n, K) and membership (n, K) in 0..1."""
    return (log_p + membership.log()).logsumexp(1)


def with_floor(log_value: Tensor, eps: float) -> Tensor:
    """log(value + eps) from log(value): the floor that published code has. 0 leaves the value as it is."""
    return torch.logaddexp(log_value, log_value.new_tensor(math.log(eps))) if eps else log_value
