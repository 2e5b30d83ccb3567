"""Optimisers and learning rates. The rate is a closed formula of the step, so that a resumed run needs no scheduler's
state.
"""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from naysay.training.config import Config


def build_optimizer(config: Config, parameters: Iterable[nn.Parameter], device: torch.device) -> torch.optim.Optimizer:
    """AdamW or SGD over `parameters`, in its fused form where torch has one (one kernel instead of a dozen)."""
    fused = device.type in ("cpu", "cuda")
    if config.optimizer == "sgd":
        return torch.optim.SGD(
            parameters, lr=config.learning_rate, momentum=config.momentum, weight_decay=config.weight_decay, fused=fused
        )
    return torch.optim.AdamW(parameters, lr=config.learning_rate, weight_decay=config.weight_decay, fused=fused)


def learning_rate(config: Config, step: int, steps_per_epoch: int) -> float:
    """The rate at `step`, counted from 0: linear over the warm-up, then constant, or half a cosine down to 0 at the
    end.
    """
    warmup, total = config.warmup_epochs * steps_per_epoch, config.epochs * steps_per_epoch
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    if config.schedule == "constant":
        return config.learning_rate
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def set_learning_rate(optimizer: Any, rate: float) -> None:
    """Give every parameter group the learning rate `rate`."""
    for group in optimizer.param_groups:
        group["lr"] = rate
