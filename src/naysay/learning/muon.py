"""Muon (Jordan et al. 2024): steps along the momentum made orthogonal, for weights that are matrices; else AdamW.

A matrix of weights moves by the orthogonal matrix nearest to its momentum, so that all of its directions learn at the
same pace, also those of small gradients. A convolution's weights (out, in, h, w) are a matrix (out, in h w). Nearest is
found by Newton and Schulz's iteration, with Jordan's coefficients, which bring the singular values to 0.7 to 1.2 in a
few products and no further. What is no matrix (biases, normalisation) and a classifier's last layer are AdamW's.

An orthogonal step is scaled by 0.2 sqrt(longer side), as large as AdamW's steps usually are (Liu et al. 2025): one rate
and one weight decay serve both. torch.optim.Muon (of torch 2.9) takes no convolutions, nor a captured step's rate.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from naysay.models import Classifier

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # Jordan's: the steepest at 0 that stay near 1
ROUNDS = 3  # of the iteration, as in Jordan's own for CIFAR-10
LIKE_ADAMW = 0.2  # the usual size of an entry of AdamW's step, in rates


class Muon(torch.optim.Optimizer):
    """Groups with "matrices": True are moved by orthogonal steps, the others by AdamW, in one record of state."""

    def __init__(self, groups: Iterable[dict[str, Any]], momentum: float, weight_decay: float, **adamw: Any) -> None:
        super().__init__(groups, {"momentum": momentum, "weight_decay": weight_decay, "matrices": False})
        # the same groups and the same state, so that rates and checkpoints need not know that there are two
        others = [group for group in self.param_groups if not group["matrices"]]
        self.others = torch.optim.AdamW(others, weight_decay=weight_decay, **adamw) if others else None
        if self.others is not None:
            self.others.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # torch overloads it
        """Move all weights that have a gradient."""
        for group in self.param_groups:
            for weight in group["params"] if group["matrices"] else ():
                if weight.grad is None:
                    continue
                momentum = self.state[weight]["momentum_buffer"]
                momentum.mul_(group["momentum"]).add_(weight.grad)
                ahead = weight.grad + group["momentum"] * momentum  # Nesterov's
                turned = orthogonal(ahead.flatten(1))
                size = LIKE_ADAMW * max(turned.shape) ** 0.5
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.sub_(turned.reshape(weight.shape) * (group["lr"] * size))
        if self.others is not None:
            self.others.step()


def orthogonal(matrix: Tensor) -> Tensor:
    """Nearly the orthogonal matrix next to `matrix` (m, n): its singular vectors, with singular values of about 1."""
    a, b, c = COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x: Tensor = matrix.T if tall else matrix
    x = x / x.norm().clamp_min(1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x


def parted(groups: Iterable[dict[str, Any]], module: nn.Module) -> list[dict[str, Any]]:
    """Groups of the parameters of `module`, each as two: its matrices but for last layers, and whatever else it has."""
    last = {id(p) for part in module.modules() if isinstance(part, Classifier) for p in part.head.parameters()}
    both = []
    for group in groups:
        for matrices in (True, False):
            chosen = [p for p in group["params"] if (p.ndim >= 2 and id(p) not in last) == matrices]
            if chosen:
                both.append({**group, "params": chosen, "matrices": matrices})
    return both
