"""The network that self-supervised methods train: an encoder with a projector and a predictor, and perhaps a moving
average.

Rows come view after view: (views * batch, C, H, W). Batch statistics are taken per view (see viewnorm). Over several
processes each has an equal share of the batch's images, with all their views.
"""

import copy

import torch
from torch import Tensor, nn

from naysay.features.collapse import relative_spread
from naysay.features.fastsiam import views_loss
from naysay.features.recipes import Config
from naysay.features.simsiam import make_predictor, make_projector, pair_loss
from naysay.features.viewnorm import norm_by_view
from naysay.processes import ALONE, Processes
from naysay.seeds import lent

LOSSES = {"simsiam": pair_loss, "fastsiam": views_loss}


class Siamese(nn.Module):
    """`online` is encoder then projector; `target`, where there is a momentum, is their moving average."""

    def __init__(self, encoder: nn.Module, config: Config, width: int = 512, processes: Processes = ALONE) -> None:
        super().__init__()
        with lent(config.seed, "pretrain/heads"):
            projector = make_projector(width, config.projection)
            self.predictor = make_predictor(config.projection, config.bottleneck)
        self.views, self.method, self.processes = config.views, config.method, processes
        self.online = nn.Sequential(encoder, projector)
        norm_by_view(self, config.batch // processes.size, processes)
        self.target = copy.deepcopy(self.online).requires_grad_(False) if config.target_momentum else None

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of the views x, and the relative spread of the outputs: of projections or predictions, whichever is
        smaller.

        The loss is that of this process's views, the spread that of all processes'.
        """
        projections = self.online(x)
        predictions = self.predictor(projections)
        targets = projections.detach()
        if self.target is not None:
            with torch.no_grad():
                targets = self.target(x)
        by_view = (self.views, -1, projections.shape[1])
        projections, predictions = projections.reshape(by_view), predictions.reshape(by_view)
        loss = LOSSES[self.method](predictions, targets.reshape(by_view))
        spreads = [relative_spread(self.processes.rows(outputs[0])) for outputs in (projections, predictions)]
        return loss, torch.minimum(*spreads)

    def encoder(self) -> nn.Module:
        """The encoder to keep: of the moving average where there is one."""
        module: nn.Module = (self.online if self.target is None else self.target)[0]
        return module

    def average(self, momentum: float) -> None:
        """Move the target's weights a step of 1 - momentum towards the network's; its statistics are its own."""
        if self.target is not None:
            with torch.no_grad():
                torch._foreach_lerp_(list(self.target.parameters()), list(self.online.parameters()), 1 - momentum)
