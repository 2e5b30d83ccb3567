"""SimSiam (Chen and He 2021, arXiv 2011.10566): each view predicts the other, and the predicted side is held still.

With z the projection of a view and p the prediction made from it, the loss of a pair is
-(cos(p1, stop(z2)) + cos(p2, stop(z1))) / 2; it needs no negatives, no queue and no momentum. As published for CIFAR: a
two-layer projector of 2048 (its last batch norm without scale and shift) and a predictor with a bottleneck of 512.
"""

import torch.nn.functional as F
from torch import Tensor, nn


def make_projector(width: int, size: int = 2048) -> nn.Sequential:
    """The projector (n, width) -> (n, size) of two layers."""
    return nn.Sequential(
        nn.Linear(width, size, bias=False),
        nn.BatchNorm1d(size),
        nn.ReLU(),
        nn.Linear(size, size, bias=False),
        nn.BatchNorm1d(size, affine=False),
    )


def make_predictor(size: int = 2048, hidden: int = 512) -> nn.Sequential:
    """The predictor (n, size) -> (n, size) with its bottleneck."""
    return nn.Sequential(
        nn.Linear(size, hidden, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, size)
    )


def pair_loss(predictions: Tensor, targets: Tensor) -> Tensor:
    """The loss of two views, predictions and targets (2, n, d): each prediction against the other view's target."""
    return -F.cosine_similarity(predictions.float(), targets.detach().float().flip(0), dim=-1).mean()
