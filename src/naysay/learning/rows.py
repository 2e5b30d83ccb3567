"""Rows as a model takes them: checked, on the device, and normalised by the training rows' own statistics.

Images (n, H, W) or (n, H, W, C), channels last, stay uint8 until a batch is taken; tables are (n, d) floats: float32,
or float64 where a column lies so far from 0 that float32 would lose what tells its rows apart, as it does of times in
seconds. The mean is then taken away in float64 before rows are rounded.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from naysay.errors import InputError

CHUNK = 4096  # rows that are converted to float at a time
WIDE = (torch.float64, torch.int64, torch.int32)  # numbers that float32 cannot hold
LARGEST = 3e38  # of float32
FAR = 1e4  # deviations of a column from 0, beyond which rounding to float32 moves a row by 1e-3 of one, or more
CONSTANT = 1e-12  # of the mean: a deviation that the rounding of float64 alone may leave


def as_inputs(x: Any, exact: bool | None = None) -> Tensor:
    """`x` as a tensor: images uint8 or float32 (n, H, W, C), tables (n, d) float32, or float64 if `exact`.

    exact: None for tables with a column far from 0, as training rows decide it; those to come follow them.
    """
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "biuf":
            raise InputError(
                f"x must hold numbers; got {x.dtype.name} values. Turn names and dates into numbers first."
            )
        x = np.require(x, requirements=["C", "W"])  # torch takes neither read-only nor reversed arrays
    x = torch.as_tensor(x)
    if x.ndim not in (2, 3, 4) or not len(x):
        raise InputError(
            "x must be a table (n, d) or images (n, H, W) or (n, H, W, C) with at least one row; "
            f"got shape {tuple(x.shape)}."
        )
    if x.ndim == 4 and x.shape[3] > 4 >= x.shape[1]:
        raise InputError(
            f"images must have their channels last, (n, H, W, C); got shape {tuple(x.shape)}. "
            "Use x.transpose(0, 2, 3, 1)."
        )
    if x.ndim == 2 or x.dtype != torch.uint8:
        x = x.double() if x.ndim == 2 and (_is_far(x) if exact is None else exact) else x.float()
        if not all(torch.isfinite(part).all() for part in torch.split(x, CHUNK)):
            raise InputError("x must be finite; got NaN or infinity. Fill or drop the missing values first.")
    return torch.unsqueeze(x, 3) if x.ndim == 3 else x


def _is_far(x: Tensor) -> bool:
    """Whether rounding to float32 would move rows of the table by much of a column's deviation."""
    if x.dtype not in WIDE:
        return False
    deviation, mean = torch.std_mean(x.double(), 0, correction=0)
    offset = mean.abs()
    return bool(((offset > FAR * deviation) & (CONSTANT * offset < deviation) & (offset < LARGEST)).any())


def input_shape(x: Tensor) -> tuple[int, ...]:
    """What a model is built for: (d,) for tables, (C, H, W) for images (n, H, W, C)."""
    return tuple(x.shape[1:]) if x.ndim == 2 else (x.shape[3], x.shape[1], x.shape[2])


@dataclass(frozen=True, eq=False)
class Normaliser:
    """(value - mean) / deviation per channel or feature: images are in [0, 1] before that, and channels first after."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, x: Tensor, enabled: bool = True) -> Self:
        """From the rows of `x`; a constant channel or feature keeps the deviation 1. Disabled: mean 0, deviation 1."""
        size = x.shape[-1]
        if not enabled and x.dtype == torch.float64:
            raise InputError(
                "x has a column so far from 0 that float32 cannot tell its rows apart; got normalise=False. "
                "Subtract its mean first, or leave normalise out."
            )
        if not enabled:
            return cls(torch.zeros(size, device=x.device), torch.ones(size, device=x.device))
        axes, count, parts = tuple(range(x.ndim - 1)), x.numel() // size, torch.split(x, CHUNK)
        mean = torch.stack([_unit(part).double().sum(axes) for part in parts]).sum(0) / count
        squares = torch.stack([(_unit(part).double() - mean).square().sum(axes) for part in parts])
        deviation = (squares.sum(0) / count).sqrt()
        if x.dtype == torch.float64:  # the mean has as many bits as the rows from which it is taken away
            return cls(mean, torch.where(deviation > CONSTANT * mean.abs(), deviation, 1).float())
        return cls(mean.float(), torch.where(deviation > 1e-8 * mean.abs(), deviation, 1).float())

    def __call__(self, x: Tensor) -> Tensor:
        """Raw rows (B, d) or (B, H, W, C) as floats (B, d) or (B, C, H, W), the latter in channels-last memory."""
        x = _unit(x).sub_(self.mean).float().div_(self.deviation)
        return x if x.ndim == 2 else x.permute(0, 3, 1, 2)

    def to(self, device: torch.device) -> Self:
        """The same on `device`."""
        return type(self)(self.mean.to(device), self.deviation.to(device))


def _unit(x: Tensor) -> Tensor:
    """A float copy; uint8 images in [0, 1]."""
    return x.float().div_(255) if x.dtype == torch.uint8 else x.clone()
