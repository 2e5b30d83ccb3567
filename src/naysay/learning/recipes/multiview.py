"""An encoder from images alone, by several strong views of each image: what such recipes share, whatever their loss.

Each step takes several views of each image. Rows come view after view, (views * batch, C, H, W). Over several processes
each has an equal share of the batch's images, with all their views.

A network that gives every image the same output has collapsed. Unit vectors that point everywhere have a spread
(standard deviation over images, averaged over the d coordinates) of about 1/sqrt(d); identical ones have 0 (Chen and He
2021, section 4.1). The spread times sqrt(d) is therefore near 1 in a live run and near 0 in a dead one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from naysay.errors import InputError
from naysay.learning.recipe import Figures, Learner, Task, refuse_non_numbers
from naysay.learning.views import DRAWS, View, checked_view, make_views
from naysay.models import resnet18_encoder
from naysay.seeds import lent, torch_stream
from naysay.words import joined

DEAD = 0.1  # of what live outputs have; a collapsed run falls far below it
WIDEST = 65_536  # of a layer: more is a slip, and would take the machine's memory
PATIENCE = 3  # epochs: young predictions may be flat for a moment
# as lightly's CIFAR-10 benchmark has them; a recipe says what else it is published with
SETTINGS = {"optimizer": "sgd", "weight_decay": 5e-4, "precision": "auto"}
UNUSED = ("loss", "eps", "model", "model_options", "encoder", "normalise", "crop", "padding", "flip")


@dataclass(frozen=True)
class Options:
    """What these recipes are told beside `Config`; `view` changes settings of `naysay.learning.views.View`."""

    views: int = 4
    width: int = 512  # of the encoder's output
    view: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_non_numbers(self)
        object.__setattr__(self, "view", checked_view(self.view))
        wide = {
            name: value for name in ("projection", "bottleneck", "hidden", "width") if (value := getattr(self, name, 0))
        }
        if max(wide.values()) > WIDEST:
            names = joined(list(wide))
            raise InputError(f"{names} must be at most {WIDEST:,}; got {max(wide.values()):,}.")
        if self.views < 2:
            raise InputError(f"siamese recipes compare at least 2 views; got views={self.views}.")


class MultiView(Learner):
    """`online` is encoder then projector; a recipe says the projector, and the loss of what comes out."""

    figures = ("spread",)
    whole_batches = True
    worth_compiling = True
    online: nn.Sequential

    def __init__(self, task: Task, options: Options, view: View) -> None:
        super().__init__(task)
        self.x = _checked(task)
        self.options, self.view = options, view

    def make_encoder(self, task: Task) -> nn.Module:
        """The task's own encoder, or a fresh ResNet-18."""
        with lent(task.config.seed, "pretrain/encoder"):
            return resnet18_encoder(self.x.shape[3]) if task.model is None else task.model

    def draw(self, epoch: int, order: Tensor) -> Tensor:
        """The uniform numbers of every view of every image."""
        generator = torch_stream(self.config.seed, f"pretrain/views/{epoch}", order.device)
        return torch.rand(len(order), self.options.views * DRAWS, generator=generator, device=order.device)

    def make_views(self, rows: Tensor, draws: Tensor | None) -> Tensor:
        """All views (views * b, C, H, W), view after view, of the images that are this process's part of `rows`."""
        if draws is None:
            raise AssertionError("draw gives numbers for every image")
        mine, views = self.processes.part(rows), self.options.views
        with torch.no_grad():
            images = self.x.index_select(0, mine).repeat(views, 1, 1, 1)
            numbers = draws.view(len(mine), views, DRAWS).transpose(0, 1).reshape(-1, DRAWS)
            return make_views(images, numbers, self.view).contiguous(memory_format=torch.channels_last)

    def check(self, history: Sequence[Figures], kept: str) -> None:
        """Stop a run whose outputs have collapsed to one point."""
        check_alive(history)

    def product(self) -> nn.Module:
        """The encoder to keep."""
        return self.online[0]

    @property
    def images_in_all(self) -> int:
        """Every view counts."""
        return super().images_in_all * self.options.views


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
