"""SimSiam (Chen and He 2021, arXiv 2011.10566): each view predicts the other, and the predicted side is held still.

With z the projection of a view and p the prediction made from it, the loss of a pair is
-(cos(p1, stop(z2)) + cos(p2, stop(z1))) / 2; it needs no negatives, no queue and no momentum. As published for CIFAR: a
two-layer projector of 2048 (its last batch norm without scale and shift) and a predictor with a bottleneck of 512.
200-NN accuracy on CIFAR-10 after 800 epochs, in the lightly project's public benchmark: 90.4 %.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from naysay.errors import InputError
from naysay.learning.recipes import siamese


@dataclass(frozen=True)
class Options(siamese.Options):
    """Two views, and a predictor whose rate stays at its peak."""

    views: int = 2
    constant_predictor: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.views != 2:
            raise InputError(f"simsiam compares 2 views; got views={self.views}. For more use fastsiam.")


def pair_loss(predictions: Tensor, targets: Tensor) -> Tensor:
    """The loss of two views, predictions and targets (2, n, d): each prediction against the other view's target."""
    return -F.cosine_similarity(predictions.float(), targets.detach().float().flip(0), dim=-1).mean()


ROW = siamese.row(
    "simsiam",
    pair_loss,
    "Chen and He 2021",
    "an encoder from images alone, two views at a time",
    Options,
    {"batch_size": 512, "epochs": 800, "learning_rate": 0.03 * 512 / 256},
)
