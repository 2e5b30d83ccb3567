"""The network that self-supervised methods train: an encoder with a projector and a predictor, and perhaps a target.

Each step takes several strong views of each image. Rows come view after view, (views * batch, C, H, W), and batch
statistics are taken per view (see viewnorm). Over several processes each has an equal share of the batch's images, with
all their views. SimSiam and FastSiam are rows that differ in their loss and settings; a momentum target (BYOL, Grill et
al. 2020) is an option of both: the targets then come from a moving average of the network instead of the network.

A network that gives every image the same output has collapsed. Unit vectors that point everywhere have a spread
(standard deviation over images, averaged over the d coordinates) of about 1/sqrt(d); identical ones have 0 (Chen and He
2021, section 4.1). The spread times sqrt(d) is therefore near 1 in a live run and near 0 in a dead one.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from naysay.errors import InputError, unknown
from naysay.learning.recipe import Figures, Learner, Recipe, Task, refuse_non_numbers
from naysay.learning.viewnorm import norm_by_view
from naysay.learning.views import DRAWS, View, make_views
from naysay.models import resnet18_encoder
from naysay.seeds import lent, torch_stream

Loss = Callable[[Tensor, Tensor], Tensor]  # of predictions and targets (views, n, d)
DEAD = 0.1  # of what live outputs have; a collapsed run falls far below it
WIDEST = 65_536  # of a layer: more is a slip, and would take the machine's memory
PATIENCE = 3  # epochs: young predictions may be flat for a moment


@dataclass(frozen=True)
class Options:
    """What siamese recipes are told beside `Config`; `view` changes settings of `naysay.learning.views.View`."""

    views: int = 4
    constant_predictor: bool = False  # keep the predictor's rate at its peak
    target_momentum: float = 0.0  # 0: targets come from the network itself; 0.99: from its moving average
    projection: int = 2048  # width of the projections
    bottleneck: int = 512  # hidden units of the predictor
    width: int = 512  # of the encoder's output
    view: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_non_numbers(self)
        for name in self.view:
            if name not in View.__dataclass_fields__:
                raise unknown("setting of a view", name, View.__dataclass_fields__)
        refuse_non_numbers(View(**self.view))
        widest = max(self.projection, self.bottleneck, self.width)
        if widest > WIDEST:
            raise InputError(f"projection, bottleneck and width must be at most {WIDEST:,}; got {widest:,}.")
        if self.views < 2:
            raise InputError(f"siamese recipes compare at least 2 views; got views={self.views}.")
        if not 0 <= self.target_momentum < 1:
            raise InputError(f"target_momentum must be in [0, 1), 0 for no moving average; got {self.target_momentum}.")


class Siamese(Learner):
    """`online` is encoder then projector; `target`, where there is a momentum, is their moving average."""

    figures = ("spread",)
    whole_batches = True
    worth_compiling = True

    def __init__(self, task: Task, options: Options, loss: Loss) -> None:
        super().__init__(task)
        config, processes = task.config, task.processes
        self.x = _checked(task)
        self.loss, self.options = loss, options
        self.view = View(**options.view)
        with lent(config.seed, "pretrain/encoder"):
            encoder = resnet18_encoder(self.x.shape[3]) if task.model is None else task.model
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

    def draw(self, epoch: int, order: Tensor) -> Tensor:
        """The uniform numbers of every view of every image."""
        generator = torch_stream(self.config.seed, f"pretrain/views/{epoch}", order.device)
        return torch.rand(len(order), self.options.views * DRAWS, generator=generator, device=order.device)

    def forward(self, rows: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The loss of this process's views, and the relative spread of the outputs over all processes.

        The spread is that of projections or predictions, whichever is smaller.
        """
        if draws is None:
            raise AssertionError("draw gives numbers for every image")
        x = self._views(self.processes.part(rows), draws)
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

    def _views(self, rows: Tensor, draws: Tensor) -> Tensor:
        """All views (views * b, C, H, W) of the images numbered `rows`, view after view."""
        views = self.options.views
        with torch.no_grad():
            images = self.x.index_select(0, rows).repeat(views, 1, 1, 1)
            numbers = draws.view(len(rows), views, DRAWS).transpose(0, 1).reshape(-1, DRAWS)
            return make_views(images, numbers, self.view).contiguous(memory_format=torch.channels_last)

    def after_step(self) -> None:
        """Move the target's weights a step towards the network's; its statistics are its own."""
        if self.target is not None:
            with torch.no_grad():
                step = 1 - self.options.target_momentum
                torch._foreach_lerp_(list(self.target.parameters()), list(self.online.parameters()), step)

    def check(self, history: Sequence[Figures], kept: str) -> None:
        """Stop a run whose outputs have collapsed to one point."""
        check_alive(history)

    def product(self) -> nn.Module:
        """The encoder to keep: of the moving average where there is one."""
        module: nn.Module = (self.online if self.target is None else self.target)[0]
        return module

    @property
    def images_in_all(self) -> int:
        """Every view counts."""
        return super().images_in_all * self.options.views


# as lightly's CIFAR-10 benchmark has them; a recipe says what else it is published with
SETTINGS = {"optimizer": "sgd", "weight_decay": 5e-4, "precision": "auto"}
UNUSED = ("loss", "eps", "model", "model_options", "encoder", "normalise", "crop", "padding", "flip")


def row(name: str, loss: Loss, source: str, summary: str, options: type[Options], published: dict[str, Any]) -> Recipe:
    """The row of a siamese recipe with this loss."""

    def build(task: Task) -> Learner:
        return Siamese(task, made.read_options(task.config), loss)

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


class CollapseError(RuntimeError):
    """The outputs have collapsed to one point; the message says what to change."""


def relative_spread(outputs: Tensor) -> Tensor:
    """The spread of the normalised outputs (n, d) over 1/sqrt(d): near 1 alive, near 0 collapsed."""
    unit = F.normalize(outputs.detach().float(), dim=-1)
    spread: Tensor = unit.std(0).mean() * math.sqrt(unit.shape[-1])
    return spread


def check_alive(curve: Sequence[Mapping[str, float]]) -> None:
    """Stop a dead run: over the last PATIENCE epochs of the curve the `spread` stayed under DEAD, or the loss is no
    number.
    """
    last = curve[-PATIENCE:]
    if math.isfinite(last[-1]["loss"]) and (len(last) < PATIENCE or any(line["spread"] >= DEAD for line in last)):
        return
    raise CollapseError(
        f"the outputs have collapsed: in epoch {last[-1]['epoch']} their spread is {last[-1]['spread']:.3f} of what "
        "live outputs have "
        f"(loss {last[-1]['loss']:.4f}). Lower the learning rate, lengthen the warm-up, or start the backbone and its "
        "heads afresh "
        "together: a trained backbone under fresh heads collapses at a high rate."
    )


def _checked(task: Task) -> Tensor:
    images, batch, size = task.x, task.config.batch_size, task.processes.size
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[3] not in (1, 3):
        raise InputError(
            f"images must be uint8, (n, H, W) or (n, H, W, 1 or 3); got {images.dtype} of shape {tuple(images.shape)}."
        )
    if batch < 2 or len(images) < batch:
        raise InputError(
            f"a step takes at least 2 images, and {batch} of them here; got {len(images)} in all. "
            "Give more images or another batch size."
        )
    if batch % size:
        raise InputError(
            f"every process takes an equal share of a batch; got a batch of {batch} and {size} processes. "
            f"A batch of {batch - batch % size or size} would do."
        )
    return images
