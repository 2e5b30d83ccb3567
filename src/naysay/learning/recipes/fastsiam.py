"""Several views an image, each predicted against the mean of the others' targets (FastSiam, Pototzky et al. 2022).

One view is a noisy target; the mean of V - 1 views is a steady one, which bears small batches and high rates and
reaches SimSiam's quality in a fraction of its time. With V = 2 the loss is SimSiam's, exactly. The settings are those
of the lightly project's CIFAR-10 benchmark, where 200-NN accuracy after 200 epochs is 90.6 %, but for two: views are of
three quarters of the image's side, and the second half of a run takes some of them from neighbours. As published:
`configure("fastsiam", neighbors=0, view={"size": 32})` (what that changes: docs/FEATURES.md).
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from naysay.learning.recipes import siamese
from naysay.learning.recipes.multiview import SHARE


@dataclass(frozen=True)
class Options(siamese.Options):
    """What siamese recipes are told, with neighbours."""

    neighbors: int = 8


def mean_of_others(targets: Tensor) -> Tensor:
    """For each view of `targets` (V, n, d) the mean of the V - 1 other views."""
    return (targets.sum(0, keepdim=True) - targets) / (len(targets) - 1)


def views_loss(predictions: Tensor, targets: Tensor) -> Tensor:
    """The loss of V views, predictions and targets (V, n, d): each prediction against the mean of the others."""
    return -F.cosine_similarity(predictions.float(), mean_of_others(targets.detach().float()), dim=-1).mean()


ROW = siamese.row(
    "fastsiam",
    views_loss,
    "Pototzky et al. 2022",
    "an encoder from images alone, several views at a time",
    Options,
    {"batch_size": 128, "epochs": 200, "learning_rate": 0.06},
    SHARE,
)
