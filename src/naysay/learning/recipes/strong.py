"""Views that are hard to see, for recipes that show an image twice: as plain training does (the weak view), and so.

The weak view is shifted and flipped. The strong one is cropped and resized, recoloured (`learning.views`), and a square
is cut out of it (DeVries and Taylor 2017). Both are normalised alike, and as large.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from naysay.errors import InputError
from naysay.learning.recipes.plain import Plain
from naysay.learning.views import DRAWS, View, cut_out, distort

STRONG_DRAWS = DRAWS + 2  # uniform numbers of one strong view: what it does, and where the square is cut out


@dataclass(frozen=True)
class StrongView:
    """How images are changed, and the side in pixels of the square that is cut out."""

    view: View
    side: int

    @classmethod
    def of(cls, learner: Plain, cutout: float, view: Mapping[str, Any]) -> Self:
        """As the settings have it, for a learner's images. cutout: the square's side, as a part of the image's."""
        x, config = learner.x, learner.config
        if x.ndim != 4 or x.dtype != torch.uint8 or x.shape[3] not in (1, 3):
            raise InputError(
                f"the recipe {config.recipe} compares views of images, uint8 (n, H, W) or (n, H, W, 1 or 3); got "
                f"{x.dtype} of shape {tuple(x.shape)}. Use the recipe plain."
            )
        strong = View(**{"flip": 0.5 if config.flip else 0.0, "size": x.shape[1], **view})
        if not strong.size == x.shape[1] == x.shape[2]:
            got = f"images of {x.shape[1]} x {x.shape[2]} pixels and views of {strong.size}"
            must = "takes weak and strong views, squares that must be as large"
            raise InputError(f"the recipe {config.recipe} {must}; got {got}.")
        return cls(strong, round(cutout * x.shape[1]))

    def __call__(self, learner: Plain, rows: Tensor, numbers: Tensor) -> Tensor:
        """Images (b, C, H, W) numbered `rows`, normalised: changed and cut by uniform numbers (b, STRONG_DRAWS)."""
        pixels = distort(learner.x[rows], numbers[:, :-2], self.view).permute(0, 2, 3, 1)
        normal = (pixels - learner.normaliser.mean) / learner.normaliser.deviation
        return cut_out(normal.permute(0, 3, 1, 2), numbers[:, -2:], self.side)
