"""Consistent: images are taught by a teacher, neighbours and own labels (`recipes.teaching`), on stronger views.

The teacher looks at a weak view of an image (shifted, flipped); the student at a view that is strong (resized crop,
colours, cutout) for some images and weak for the others, mixed with another image's. Weak and strong views and a
teacher are FixMatch's (Sohn et al. 2020).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from naysay.errors import InputError
from naysay.learning.recipe import Recipe, Task
from naysay.learning.recipes import teaching
from naysay.learning.views import DRAWS, View, checked_view, cut_out, distort, draw_moves
from naysay.seeds import torch_stream


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
        if self.x.dtype != torch.uint8 or self.x.shape[3] not in (1, 3):
            raise InputError(
                "the recipe consistent compares views of images, uint8 (n, H, W) or (n, H, W, 1 or 3); got "
                f"{self.x.dtype} of shape {tuple(self.x.shape)}. Use the recipe plain."
            )
        usual = {"flip": 0.5 if self.config.flip else 0.0, "size": self.x.shape[1]}
        self.view = View(**{**usual, **options.view})
        if self.view.size != usual["size"] or self.x.shape[1] != self.x.shape[2]:
            got = f"images of {self.x.shape[1]} x {self.x.shape[2]} pixels and views of {self.view.size}"
            raise InputError(f"the recipe consistent mixes weak and strong views, which must be as large; got {got}.")
        self.side = round(options.cutout * self.x.shape[1])
        self.register_buffer("weakly", torch.tensor([options.weak], device=self.x.device), persistent=False)

    def first_space(self) -> Tensor:
        """The encoder's, which the teacher starts from; without one, the pixels."""
        return F.normalize(self.x.flatten(1).float(), dim=1) if self.config.encoder is None else self.space(1)

    def draw(self, epoch: int, order: Tensor) -> Tensor:
        """How each image is moved in its weak view, the numbers of its strong one, the cut's place, view and mix."""
        moves = draw_moves(len(self.x), self.config.crop, self.config.flip, self.config.seed, epoch)
        numbers = torch_stream(self.config.seed, f"strong views/{epoch}")
        strong = torch.rand(len(self.x), DRAWS + 4, generator=numbers)
        return torch.cat([moves, strong], 1).to(order.device).index_select(0, order)

    def see(self, rows: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Weak views (b, C, H, W), and views of which some are weak and some strong."""
        weak = self.inputs(rows, draws[:, :3].long())
        return weak, torch.where((draws[:, -2] < self.weakly)[:, None, None, None], weak, self.strong_view(rows, draws))

    def strong_view(self, rows: Tensor, draws: Tensor) -> Tensor:
        """Images (b, C, H, W), normalised: cropped, coloured, and a square cut out of them."""
        pixels = distort(self.x[rows], draws[:, 3:-4], self.view).permute(0, 2, 3, 1)
        normal = (pixels - self.normaliser.mean) / self.normaliser.deviation
        return cut_out(normal.permute(0, 3, 1, 2), draws[:, -4:-2], self.side)


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
    shares=True,
    takes="images",
)
