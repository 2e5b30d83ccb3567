"""Batch normalisation with statistics per view, in one pass over all views.

Siamese methods forward each view on its own, so that batch statistics never mix views. Here the rows of all views come
as one batch, view after view, and only the statistics are taken in groups: the convolutions see one large batch, which
is what a GPU wants. It computes what forwarding the views one after another through `nn.BatchNorm` computes, running
statistics included, and has the same state, so that a state dict goes from one to the other unchanged. Over several
processes the statistics are those of all their rows: two processes then compute what one computes, to rounding.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from naysay.processes import ALONE, Processes


class ViewNorm(nn.Module):
    """Stands for a BatchNorm1d or 2d: rows (views * batch, C, ...), with statistics over each run of `batch` rows."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, norm: nn.BatchNorm1d | nn.BatchNorm2d, batch: int, processes: Processes = ALONE) -> None:
        super().__init__()
        self.processes = processes
        self.batch, self.eps, self.momentum = batch, norm.eps, 0.1 if norm.momentum is None else norm.momentum
        self.weight, self.bias = norm.weight, norm.bias
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, getattr(norm, name))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
        views = len(x) // self.batch
        y = x.float().reshape(views, self.batch, *x.shape[1:])
        over = (1, *range(3, y.ndim))
        # one pass of sums: activations are a few spreads from zero, so the difference of moments is safe in float32
        mean, square = y.mean(over, keepdim=True), (y * y).mean(over, keepdim=True)
        if self.processes.size > 1:
            mean, square = self.processes.mean(torch.stack([mean, square]))
        var = (square - mean * mean).clamp_min(0)
        count = self.processes.size * (y[0].numel() // x.shape[1])
        self._track(mean.detach().reshape(views, -1), var.detach().reshape(views, -1), count)
        # one scale and one shift for each view and channel: then the backward pass, too, is a single pass of sums
        scale, shift = torch.rsqrt(var + self.eps), torch.zeros_like(mean)
        if self.weight is not None:
            channels = (1, 1, -1, *[1] * (y.ndim - 3))
            scale, shift = scale * self.weight.view(channels), self.bias.view(channels)
        return (y * scale + (shift - mean * scale)).reshape(x.shape).to(x.dtype)

    def _track(self, mean: Tensor, var: Tensor, count: int) -> None:
        with torch.no_grad():
            for view in range(len(mean)):
                self.running_mean.lerp_(mean[view], self.momentum)
                self.running_var.lerp_(var[view] * (count / (count - 1)), self.momentum)
            self.num_batches_tracked.add_(len(mean))


def norm_by_view(module: nn.Module, batch: int, processes: Processes = ALONE) -> nn.Module:
    """`module`, each of its batch norms replaced in place by a ViewNorm over runs of `batch` rows (in each process)."""
    for name, child in module.named_children():
        if isinstance(child, (nn.BatchNorm1d, nn.BatchNorm2d)):
            setattr(module, name, ViewNorm(child, batch, processes))
        else:
            norm_by_view(child, batch, processes)
    return module
