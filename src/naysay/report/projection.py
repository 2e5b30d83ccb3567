"""Features in a plane: the two directions of greatest variance (principal components), for the map in the report."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from naysay.errors import InputError
from naysay.report.data import Array
from naysay.seeds import stream, torch_stream


@dataclass(frozen=True, eq=False)
class Projection:
    """Rows (m,) of the features that were taken, rising; their points (m, 2); and the share of the variance along each
    axis (2,).
    """

    rows: Array
    points: Array
    explained: Array


def project_2d(features: Any, max_points: int = 5000, seed: int = 0) -> Projection:
    """The first two principal components of features (n, ...), or of a random sample of `max_points` rows of them.

    Works on numpy arrays (memory-mapped ones too) and tensors; the same input and seed give the same map, mirror image
    included.
    """
    if features.ndim < 2 or not len(features):
        raise InputError(f"features must be (n, d) with at least one row; got shape {tuple(features.shape)}.")
    n = len(features)
    rows = (
        np.arange(n) if n <= max_points else np.sort(stream(seed, "feature map").choice(n, max_points, replace=False))
    )
    x = torch.as_tensor(features[rows]).flatten(1).float().cpu()
    if not torch.isfinite(x).all():
        raise InputError("features must be finite; got NaN or infinity. Drop or fill those rows before drawing a map.")
    x = x - x.mean(0)
    # a second, zero direction where the features have one dimension only
    x = torch.nn.functional.pad(x, (0, max(0, 2 - x.shape[1])))
    directions = _principal(x, seed)
    # mirror images are equally good: take the one in which the largest loading of each direction is positive
    largest = directions.abs().argmax(0)
    directions = directions * directions[largest, torch.arange(2)].sign()
    points = x @ directions
    total = float((x**2).sum()) or 1.0
    return Projection(rows, points.numpy(), (points**2).sum(0).numpy() / total)


def _principal(x: torch.Tensor, seed: int) -> torch.Tensor:
    """The two leading eigenvectors (d, 2) of x^T x by subspace iteration, which stays cheap for raw images of thousands
    of pixels.

    Eight rounds with 14 spare directions leave an error of (eigenvalue 17 / eigenvalue 2)^8. torch.pca_lowrank does the
    same, but draws from torch's global generator and fails where there are fewer rows than directions.
    """
    basis = torch.randn(x.shape[1], min(16, x.shape[1]), generator=torch_stream(seed, "feature map"))
    for _ in range(8):
        basis = torch.linalg.qr(x.mT @ (x @ basis)).Q
    rotation: torch.Tensor = torch.linalg.eigh((x @ basis).mT @ (x @ basis)).eigenvectors
    return basis @ rotation[:, -2:].flip(1)
