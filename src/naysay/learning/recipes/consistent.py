"""Consistent: images are taught by a teacher, neighbours and own labels (`recipes.teaching`), on stronger views.

The teacher looks at a weak view of an image (shifted, flipped); the student at a view that is strong (resized crop,
colours, cutout) for some images and weak for the others, mixed with another image's. Weak and strong views and a
teacher are FixMatch's (Sohn et al. 2020). Without an encoder labels are first shared among images whose patches are
alike (`learning.patches`), or their pixels: as hidden labels are better foreseen (`naysay.augmentation.foresight`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from naysay.learning.patches import patch_space
from naysay.learning.recipe import Recipe, Task
from naysay.learning.recipes import teaching
from naysay.learning.recipes.strong import STRONG_DRAWS, StrongView
from naysay.learning.views import checked_view, draw_moves
from naysay.seeds import torch_stream

FITTED = 512  # axes of patches that a linear reading weighs


@dataclass(frozen=True)
class Options(teaching.Options):
    """The recipe's own settings: those of targets, and of views."""

    weak: float = 0.5  # the part of images that the student sees weakly
    cutout: float = 0.25  # the side of the square that is cut out of a strong view, as a part of the image's
    view: Mapping[str, Any] = field(default_factory=dict)  # settings of the strong view, as those of `views.View`

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "view", checked_view(self.view))
        teaching.refuse_non_shares(self, "weak", "cutout")


class Consistent(teaching.Teaching):
    """Images, seen weakly by the teacher and often strongly by the student."""

    weakly: Tensor  # (1,) the part of images that the student sees weakly

    def __init__(self, task: Task) -> None:
        options = Options(**task.config.options)
        super().__init__(task, options)
        self.strong = StrongView.of(self, options.cutout, options.view)
        self.register_buffer("weakly", torch.tensor([options.weak], device=self.x.device), persistent=False)

    def first_space(self) -> Tensor:
        """The encoder's, which the teacher starts from; without one, of patches or of pixels, as labels say."""
        if self.config.encoder is not None:
            return self.space(1)
        return self.best_foreseen([patch_space(self.x), F.normalize(self.x.flatten(1).float(), dim=1)], 1.0)[0]

    def staying_space(self) -> Tensor | None:
        """Without an encoder that of patches, with more axes than neighbours are looked up by: weights are fitted."""
        return patch_space(self.x, FITTED) if self.config.encoder is None else None

    def draw(self, epoch: int, order: Tensor) -> Tensor:
        """How each image is moved in its weak view, the numbers of its strong one, the cut's place, view and mix."""
        moves = draw_moves(len(self.x), self.config.crop, self.config.flip, self.config.seed, epoch)
        numbers = torch_stream(self.config.seed, f"strong views/{epoch}")
        strong = torch.rand(len(self.x), STRONG_DRAWS + 2, generator=numbers, device=numbers.device)
        return torch.cat([moves, strong], 1).to(order.device).index_select(0, order)

    def see(self, rows: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Weak views (b, C, H, W), and views of which some are weak and some strong."""
        weak = self.inputs(rows, draws[:, :3].long())
        weakly = draws[:, -2] < self.weakly
        if rows.is_cuda or torch.compiler.is_compiling():  # a compiled or captured step has one shape: all are made
            return weak, torch.where(weakly[:, None, None, None], weak, self.strong(self, rows, draws[:, 3:-2]))
        at = (~weakly).nonzero()[:, 0]
        return weak, weak.index_copy(0, at, self.strong(self, rows[at], draws[at, 3:-2]))


ROW = Recipe(
    "consistent",
    Consistent,
    "naysay",
    "images: a teacher, neighbours and own labels, taught on stronger views",
    options=Options,
    published={
        "model": "resnet18",
        "batch_size": 512,
        "epochs": 100,
        "learning_rate": 5e-4,
        "weight_decay": 0.05,
        "warmup_epochs": 1,
        "crop": 4,
        "flip": True,
        "precision": "auto",
    },
    unused=("loss", "eps"),
    as_given=True,
    shares=True,
    takes="images",
)
