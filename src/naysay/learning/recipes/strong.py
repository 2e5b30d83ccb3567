"""What recipes share that show an image twice: as plain training does (the weak view), and harder to see (the strong).

The weak view is shifted and flipped. The strong one is cropped and resized, recoloured (`learning.views`), and a square
is cut out of it (DeVries and Taylor 2017). Both are normalised alike, and as large.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from naysay.errors import InputError
from naysay.learning.recipe import Task
from naysay.learning.recipes.plain import Plain
from naysay.learning.views import DRAWS, View, cut_out, distort

STRONG_DRAWS = DRAWS + 2  # uniform numbers of one strong view: what it does, and where the square is cut out
SURE = 0.95  # what a target's largest entry must be for it to count as covered


class StrongViews(Plain):
    """Plain, with `strong_view` beside `inputs`. cutout: the square's side, as a part of the image's."""

    def __init__(self, task: Task, cutout: float, view: Mapping[str, Any]) -> None:
        super().__init__(task)
        name = self.config.recipe
        if self.x.ndim != 4 or self.x.dtype != torch.uint8 or self.x.shape[3] not in (1, 3):
            raise InputError(
                f"the recipe {name} compares views of images, uint8 (n, H, W) or (n, H, W, 1 or 3); got "
                f"{self.x.dtype} of shape {tuple(self.x.shape)}. Use the recipe plain."
            )
        usual = {"flip": 0.5 if self.config.flip else 0.0, "size": self.x.shape[1]}
        self.view = View(**{**usual, **view})
        if self.view.size != usual["size"] or self.x.shape[1] != self.x.shape[2]:
            got = f"images of {self.x.shape[1]} x {self.x.shape[2]} pixels and views of {self.view.size}"
            raise InputError(
                f"the recipe {name} takes weak and strong views, squares that must be as large; got {got}."
            )
        self.side = round(cutout * self.x.shape[1])

    def strong_view(self, rows: Tensor, numbers: Tensor) -> Tensor:
        """Images (b, C, H, W) numbered `rows`, normalised: changed and cut by uniform numbers (b, STRONG_DRAWS)."""
        pixels = distort(self.x[rows], numbers[:, :-2], self.view).permute(0, 2, 3, 1)
        normal = (pixels - self.normaliser.mean) / self.normaliser.deviation
        return cut_out(normal.permute(0, 3, 1, 2), numbers[:, -2:], self.side)
