"""An encoder from images alone, by several strong views of each image: what such recipes share, whatever their loss.

Each step takes several views of each image. Rows come view after view, (views * batch, C, H, W). Over several processes
each has an equal share of the batch's images, with all their views.

Views are changed images; what they cannot show is another thing of the same kind. With `neighbors` k, the later part
of a run takes some views of an image from one of its k nearest images, in the space learned so far, if each is among
the other's k (neighbours stand in for images in NNCLR, Dwibedi et al. 2021, and SCAN, Van Gansbeke et al. 2020). They
are looked up now and again, and cost nothing in a step.

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

from naysay.errors import InputError, unknown
from naysay.learning.recipe import Figures, Learner, Task, refuse_non_numbers
from naysay.learning.views import DRAWS, View, checked_view, make_views, normalise, to_float
from naysay.models import resnet18_encoder, small_resnet_encoder
from naysay.models.resnet import SMALL
from naysay.seeds import lent, torch_stream
from naysay.words import joined

DEAD = 0.1  # of what live outputs have; a collapsed run falls far below it
WIDEST = 65_536  # of a layer: more is a slip, and would take the machine's memory
SHARE = (
    0.75  # of the image's side, for the side of a view: 9/16 of the arithmetic, and objects as large as in whole images
)
BLOCK = 2048  # images at a time, where neighbours are looked up
RENEWED = 0.05  # of the run's epochs, between two looks at neighbours
PATIENCE = 3  # epochs: young predictions may be flat for a moment
NETWORKS = ("resnet18", "small")
# with heads that suit the small network; a recipe takes those that it has
SMALL_NETWORK = {"network": "small", "width": SMALL, "projection": 512, "bottleneck": 128, "hidden": 512}
# as lightly's CIFAR-10 benchmark has them; a recipe says what else it is published with
SETTINGS = {"optimizer": "sgd", "weight_decay": 5e-4, "precision": "auto"}
UNUSED = ("loss", "eps", "model", "model_options", "encoder", "normalise", "crop", "padding", "flip")


@dataclass(frozen=True)
class Options:
    """What these recipes are told beside `Config`; `view` changes settings of `naysay.learning.views.View`."""

    views: int = 4
    network: str = "resnet18"  # or "small", for a CPU; see `SMALL_NETWORK`
    width: int = 512  # of the encoder's output
    view: Mapping[str, Any] = field(default_factory=dict)
    neighbors: int = 0  # how many nearest images may stand for an image in its views; 0: none
    neighbor_chance: float = 0.5  # that a view is of a neighbour, once neighbours are looked up
    neighbors_from: float = 0.5  # the part of the run after which they are

    def __post_init__(self) -> None:
        refuse_non_numbers(self)
        if self.network not in NETWORKS:
            raise unknown("network", self.network, NETWORKS)
        if self.neighbors < 0:
            raise InputError(f"neighbors must be at least 0; got {self.neighbors}. 0 looks none up.")
        for name in ("neighbor_chance", "neighbors_from"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} must be in [0, 1); got {getattr(self, name)}.")
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
    near: Tensor
    chance: Tensor

    def __init__(self, task: Task, options: Options, share: float) -> None:
        """Views are squares of `share` of the image's shorter side, unless the options say their size."""
        super().__init__(task)
        self.x = _checked(task)
        size = math.ceil(share * min(self.x.shape[1:3]))
        self.options, self.view = options, View(**{"size": size, **options.view})
        if options.neighbors:
            self.register_buffer("near", own_rows(len(self.x), options.neighbors, self.x.device))
            self.register_buffer("chance", torch.zeros((), device=self.x.device))

    def make_encoder(self, task: Task) -> nn.Module:
        """The task's own encoder, or a fresh one."""
        make = small_resnet_encoder if self.options.network == "small" else resnet18_encoder
        with lent(task.config.seed, "pretrain/encoder"):
            return make(self.x.shape[3]) if task.model is None else task.model

    def before_epoch(self, epoch: int) -> None:
        """Look up neighbours, in the second part of the run and now and again."""
        options, epochs = self.options, self.config.epochs
        since = epoch - math.ceil(options.neighbors_from * epochs)
        if options.neighbors and since >= 0 and since % math.ceil(RENEWED * epochs) == 0:
            self.near.copy_(mutual_neighbors(self._represent(), options.neighbors))
            self.processes.copy_first_([self.near])
            self.chance.fill_(options.neighbor_chance)

    def draw(self, epoch: int, order: Tensor) -> Tensor:
        """The uniform numbers of every view of every image, and one more that says whether it is of a neighbour."""
        generator = torch_stream(self.config.seed, f"pretrain/views/{epoch}", order.device)
        each = DRAWS + bool(self.options.neighbors)
        return torch.rand(len(order), self.options.views * each, generator=generator, device=order.device)

    def make_views(self, rows: Tensor, draws: Tensor | None) -> Tensor:
        """All views (views * b, C, H, W), view after view, of the images that are this process's part of `rows`."""
        if draws is None:
            raise AssertionError("draw gives numbers for every image")
        mine, views = self.processes.part(rows), self.options.views
        with torch.no_grad():
            numbers = draws.view(len(mine), views, -1).transpose(0, 1).flatten(0, 1)
            of = mine.repeat(views)
            if self.options.neighbors:
                of = in_company(of, self.near, self.chance, numbers[:, DRAWS])
            x = make_views(self.x.index_select(0, of), numbers[:, :DRAWS], self.view)
            return x.contiguous(memory_format=torch.channels_last)

    def _represent(self) -> Tensor:
        """The encoder's unit vectors (n, d) of whole images, in eval mode, in which it is left for a moment only."""
        encoder, device = self.product().eval(), self.x.device
        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=self.config.mixed(device)):
            inputs = (normalise(to_float(self.x[start : start + BLOCK])) for start in range(0, len(self.x), BLOCK))
            parts = [encoder(x.contiguous(memory_format=torch.channels_last)) for x in inputs]
        encoder.train()
        return F.normalize(torch.cat(parts).float(), dim=1)

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


def own_rows(n: int, k: int, device: torch.device) -> Tensor:
    """The numbers (n, k) of rows that have no neighbours but themselves."""
    return torch.arange(n, dtype=torch.int32, device=device)[:, None].repeat(1, k)


def mutual_neighbors(unit: Tensor, k: int) -> Tensor:
    """The numbers (n, k) of the k nearest of n unit vectors (n, d), where each is among the other's k; else the own."""
    n, own = len(unit), own_rows(len(unit), k, unit.device)
    near, asked = own.clone(), min(k, n - 1)
    for start in range(0, n, BLOCK):
        likeness = unit[start : start + BLOCK] @ unit.T
        likeness.scatter_(1, own[start : start + BLOCK, :1].long(), -2.0)  # not itself, by position
        near[start : start + BLOCK, :asked] = likeness.topk(asked, dim=1).indices.int()
    mutual = torch.stack([(near[column.long()] == own[:, :1]).any(1) for column in near.unbind(1)], 1)
    return torch.where(mutual, near, own)


def in_company(rows: Tensor, near: Tensor, chance: Tensor, u: Tensor) -> Tensor:
    """The rows (m,), or where the uniform numbers u (m,) are below `chance` one of their neighbours `near` (n, k)."""
    which = (u / chance.clamp_min(1e-9) * near.shape[1]).long().clamp_max(near.shape[1] - 1)
    return torch.where(u < chance, near[rows, which].long(), rows)


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
        way_out = (
            "Give more images" if len(images) < 2 else f"Pass batch_size={len(images)} or less, or give more images"
        )
        what = f"a step takes at least 2 images, and {batch} of them here; got {len(images)} in all"
        raise InputError(f"{what}. {way_out}.")
    if batch % size:
        raise InputError(
            f"every process takes an equal share of a batch; got a batch of {batch} and {size} processes. "
            f"A batch of {batch - batch % size or size} would do."
        )
    return images
