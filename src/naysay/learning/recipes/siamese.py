"""The network that SimSiam and FastSiam train: an encoder with a projector and a predictor, and perhaps a target.

Batch statistics are taken per view (see viewnorm). The recipes are rows that differ in their loss and settings; a
momentum target (BYOL, Grill et al. 2020) is an option of both: the targets then come from a moving average of the
network instead of the network.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from naysay.errors import InputError
from naysay.learning.recipe import Learner, Recipe, Task
from naysay.learning.recipes import multiview
from naysay.learning.recipes.multiview import SETTINGS, UNUSED, MultiView, relative_spread
from naysay.learning.viewnorm import norm_by_view
from naysay.seeds import lent

Loss = Callable[[Tensor, Tensor], Tensor]  # of predictions and targets (views, n, d)


@dataclass(frozen=True)
class Options(multiview.Options):
    """What siamese recipes are told beside what all recipes of several views are."""

    constant_predictor: bool = False  # keep the predictor's rate at its peak
    target_momentum: float = 0.0  # 0: targets come from the network itself; 0.99: from its moving average
    projection: int = 2048  # width of the projections
    bottleneck: int = 512  # hidden units of the predictor

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.target_momentum < 1:
            raise InputError(f"target_momentum must be in [0, 1), 0 for no moving average; got {self.target_momentum}.")


class Siamese(MultiView):
    """`target`, where there is a momentum, is the moving average of `online`."""

    options: Options

    def __init__(self, task: Task, options: Options, loss: Loss, share: float) -> None:
        super().__init__(task, options, share)
        config, processes = task.config, task.processes
        self.loss = loss
        encoder = self.make_encoder(task)
        with lent(config.seed, "pretrain/heads"):
            projector = make_projector(options.width, options.projection)
            self.predictor = make_predictor(options.projection, options.bottleneck)
        self.online = nn.Sequential(encoder, projector)
        norm_by_view(self, config.batch_size // processes.size, processes)
        self.target = copy.deepcopy(self.online).requires_grad_(False) if options.target_momentum else None

    def groups(self) -> list[dict[str, Any]]:
        """The predictor's learning rate may stay at its peak, as in SimSiam."""
        return [
            {"params": list(self.online.parameters())},
            {"params": list(self.predictor.parameters()), "constant": self.options.constant_predictor},
        ]

    def forward(self, rows: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The loss of this process's views, and the relative spread of the outputs over all processes.

        The spread is that of projections or predictions, whichever is smaller.
        """
        x = self.make_views(rows, draws)
        projections = self.online(x)
        predictions = self.predictor(projections)
        targets = projections.detach()
        if self.target is not None:
            with torch.no_grad():
                targets = self.target(x)
        by_view = (self.options.views, -1, projections.shape[1])
        projections, predictions = projections.reshape(by_view), predictions.reshape(by_view)
        loss = self.loss(predictions, targets.reshape(by_view))
        spreads = [relative_spread(self.processes.rows(outputs[0])) for outputs in (projections, predictions)]
        return loss, torch.minimum(*spreads)[None]

    def after_step(self) -> None:
        """Move the target's weights a step towards the network's; its statistics are its own."""
        if self.target is not None:
            with torch.no_grad():
                step = 1 - self.options.target_momentum
                torch._foreach_lerp_(list(self.target.parameters()), list(self.online.parameters()), step)

    def product(self) -> nn.Module:
        """The encoder to keep: of the moving average where there is one."""
        return super().product() if self.target is None else self.target[0]


def row(
    name: str,
    loss: Loss,
    source: str,
    summary: str,
    options: type[Options],
    published: dict[str, Any],
    share: float = 1.0,
) -> Recipe:
    """The row of a siamese recipe with this loss, and views of `share` of the image's side."""

    def build(task: Task) -> Learner:
        return Siamese(task, made.read_options(task.config), loss, share)

    made = Recipe(name, build, source, summary, False, options, {**SETTINGS, **published}, UNUSED)
    return made


def make_projector(width: int, size: int = 2048) -> nn.Sequential:
    """The projector (n, width) -> (n, size) of two layers (Chen and He 2021)."""
    return nn.Sequential(
        nn.Linear(width, size, bias=False),
        nn.BatchNorm1d(size),
        nn.ReLU(),
        nn.Linear(size, size, bias=False),
        nn.BatchNorm1d(size, affine=False),
    )


def make_predictor(size: int = 2048, hidden: int = 512) -> nn.Sequential:
    """The predictor (n, size) -> (n, size) with its bottleneck (Chen and He 2021)."""
    return nn.Sequential(
        nn.Linear(size, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, size)
    )
