"""Squared distances of given pairs of rows on any device: float64 sums of squared differences, rounded to float32 once.

On CUDA with Triton one kernel reads each row once; elsewhere torch forms the differences, in parts that fit.
"""

from importlib.util import find_spec

import torch
from torch import Tensor

PART = 2**25  # differences formed at once, 256 MiB of float64


def measure(columns: Tensor, lines: Tensor, picked: Tensor) -> Tensor:
    """float32 (m, w) squared distances of each line (m, d) to its columns, of (n, d), in `picked` (m, w) int64."""
    if columns.device.type == "cuda" and find_spec("triton"):
        from naysay.neighbors.distances_triton import measure_fused

        return measure_fused(columns, lines, picked)
    height = max(1, PART // (picked.shape[1] * columns.shape[1]))
    parts = zip(torch.split(lines, height), torch.split(picked, height), strict=True)
    return torch.cat([(columns[many].double() - few[:, None].double()).square().sum(2).float() for few, many in parts])
