"""Data on the device: whole tensors, from which a batch is one index, images shifted and flipped by that same index.

Images are (n, H, W) or (n, H, W, C), channels last as in `naysay.datasets`, and stay uint8 until a batch is taken;
tables are (n, d) floats. Every random choice of an epoch (order, shifts, flips) is drawn on the CPU, per row, from
streams named by the epoch: so it depends on neither the device, nor the number of processes, nor on where a run was
interrupted.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from naysay import losses
from naysay.errors import InputError
from naysay.seeds import torch_stream
from naysay.training.config import Config

CHUNK = 4096  # rows that are converted to float at a time


def as_inputs(x: Any) -> Tensor:
    """`x` as a tensor: images uint8 or float32 (n, H, W, C), tables float32 (n, d)."""
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "biuf":
            raise InputError(
                f"x must hold numbers; got {x.dtype.name} values. Turn names and dates into numbers first."
            )
        x = np.require(x, requirements=["C", "W"])  # torch takes neither read-only nor reversed arrays
    x = torch.as_tensor(x)
    if x.ndim not in (2, 3, 4) or not len(x):
        raise InputError(
            "x must be a table (n, d) or images (n, H, W) or (n, H, W, C) with at least one row; got shape "
            f"{tuple(x.shape)}."
        )
    if x.ndim == 4 and x.shape[3] > 4 >= x.shape[1]:
        raise InputError(
            f"images must have their channels last, (n, H, W, C); got shape {tuple(x.shape)}. Use x.transpose(0, 2, "
            "3, 1)."
        )
    if x.ndim == 2 or x.dtype != torch.uint8:
        x = x.float()
        if not all(torch.isfinite(part).all() for part in torch.split(x, CHUNK)):
            raise InputError("x must be finite; got NaN or infinity. Fill or drop the missing values first.")
    return torch.unsqueeze(x, 3) if x.ndim == 3 else x


def input_shape(x: Tensor) -> tuple[int, ...]:
    """What a model is built for: (d,) for tables, (C, H, W) for images (n, H, W, C)."""
    return tuple(x.shape[1:]) if x.ndim == 2 else (x.shape[3], x.shape[1], x.shape[2])


@dataclass(frozen=True, eq=False)
class Normaliser:
    """What a model is fed: (value - mean) / deviation per channel or feature, images in [0, 1] before that and channels
    first after.
    """

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, x: Tensor, enabled: bool = True) -> Self:
        """From the rows of `x` themselves; a constant channel or feature keeps the deviation 1. Disabled: mean 0,
        deviation 1.
        """
        size = x.shape[-1]
        if not enabled:
            return cls(torch.zeros(size, device=x.device), torch.ones(size, device=x.device))
        axes, count = tuple(range(x.ndim - 1)), x.numel() // size
        total = torch.stack([_unit(part).double().sum(axes) for part in torch.split(x, CHUNK)]).sum(0)
        mean = total / count
        square = torch.stack([(_unit(part).double() - mean).square().sum(axes) for part in torch.split(x, CHUNK)]).sum(
            0
        )
        deviation = (square / count).sqrt()
        return cls(mean.float(), torch.where(deviation > 1e-8 * (1 + mean.abs()), deviation, 1).float())

    def __call__(self, x: Tensor) -> Tensor:
        """Raw rows (B, d) or (B, H, W, C) as floats (B, d) or (B, C, H, W), the latter in channels-last memory."""
        x = _unit(x).sub_(self.mean).div_(self.deviation)
        return x if x.ndim == 2 else x.permute(0, 3, 1, 2)

    def to(self, device: torch.device) -> Self:
        """The same on `device`."""
        return type(self)(self.mean.to(device), self.deviation.to(device))


def _unit(x: Tensor) -> Tensor:
    """A float copy; uint8 images in [0, 1]."""
    return x.float().div_(255) if x.dtype == torch.uint8 else x.clone()


@dataclass(frozen=True, eq=False)
class Views:
    """How each of n images is seen this epoch: its shift down and right (n, 2), in pixels, and whether it is flipped
    (n,).
    """

    shift: Tensor
    flip: Tensor

    @classmethod
    def draw(cls, n: int, config: Config, epoch: int, device: torch.device) -> Self:
        generator = torch_stream(config.seed, f"views/{epoch}")
        shift = torch.randint(-config.crop, config.crop + 1, (n, 2), generator=generator)
        flip = torch.rand(n, generator=generator) < (0.5 if config.flip else 0.0)
        return cls(shift.to(device), flip.to(device))


def take(images: Tensor, rows: Tensor, views: Views, padding: str) -> Tensor:
    """Images (B, H, W, C) numbered `rows`, each shifted and flipped: one gather, whatever the padding.

    Pixel (i, j) of the result is pixel (i + shift, j + shift) of the padded image, and of its mirror image where
    flipped.
    """
    height, width = images.shape[1:3]
    down, right = views.shift[rows].unbind(1)
    i = torch.arange(height, device=images.device) + down[:, None]
    j = torch.arange(width, device=images.device) + right[:, None]
    j = torch.where(views.flip[rows][:, None], j.flip(1), j)
    if padding == "zero":
        inside = ((i >= 0) & (i < height))[:, :, None] & ((j >= 0) & (j < width))[:, None, :]
        i, j = i.clamp(0, height - 1), j.clamp(0, width - 1)
        return images[rows[:, None, None], i[:, :, None], j[:, None, :]] * inside[..., None]
    i, j = (height - 1 - (height - 1 - i.abs()).abs(), width - 1 - (width - 1 - j.abs()).abs())
    return images[rows[:, None, None], i[:, :, None], j[:, None, :]]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows and labels on the device, cut into the batches of an epoch."""

    x: Tensor
    comp: Tensor
    normaliser: Normaliser
    config: Config
    frequency: Tensor | None  # (K,) how often each class is named, for losses of per-class risks

    @classmethod
    def load(cls, x: Any, comp: Tensor, config: Config, device: torch.device) -> Self:
        """Rows `x` and labels `comp` (n, K) moved to `device`; tables are normalised here, images when a batch is
        taken.
        """
        x = as_inputs(x).to(device)
        if len(x) != len(comp):
            raise InputError(f"x and comp must have the same rows; got {len(x)} and {len(comp)}.")
        if (config.crop or config.flip) and x.ndim == 2:
            raise InputError(
                "crop and flip are for images (n, H, W) or (n, H, W, C); got a table. Set crop=0 and flip=False."
            )
        if config.crop >= (min(x.shape[1:3]) if x.ndim == 4 else 1):
            raise InputError(f"crop must be below the images' {min(x.shape[1:3])} pixels; got {config.crop}.")
        normaliser, comp = Normaliser.of(x, config.normalise), comp.to(device, torch.float32)
        frequency = comp.mean(0) if isinstance(losses.get(config.loss), losses.PerClassRisk) else None
        return cls(normaliser(x) if x.ndim == 2 else x, comp, normaliser, config, frequency)

    def batches(self, epoch: int, *, whole: bool = False) -> tuple[Tensor, ...]:
        """The row numbers of each batch of the epoch, every row once; `whole` drops a last batch that is shorter than
        the others.
        """
        order = torch.randperm(len(self.x), generator=torch_stream(self.config.seed, f"order/{epoch}")).to(
            self.x.device
        )
        batches = torch.split(order, self.config.batch_size)
        return batches[:-1] if whole and len(batches) > 1 and len(batches[-1]) < len(batches[0]) else batches

    def views(self, epoch: int) -> Views | None:
        """How the images are seen this epoch; None where nothing is shifted or flipped."""
        return (
            Views.draw(len(self.x), self.config, epoch, self.x.device) if self.config.crop or self.config.flip else None
        )

    def inputs(self, rows: Tensor, views: Views | None) -> Tensor:
        """What the model is fed, (B, d) or (B, C, H, W), of the rows numbered `rows`."""
        raw = self.x.index_select(0, rows) if views is None else take(self.x, rows, views, self.config.padding)
        return raw if raw.ndim == 2 else self.normaliser(raw)

    def labels(self, rows: Tensor, mine: Tensor) -> Tensor:
        """The labels of the rows numbered `mine`, a part of the batch `rows`.

        Losses of per-class risks (ure-nn, ure-ga) get each label weighted so that the batch has the training set's
        label frequencies (Ishida et al. 2019 estimate with class priors). As drawn, a batch of 64 has some class named
        so often that its risk is negative before the model has learnt anything, and ure-ga then unlearns: on digits it
        ends at 0 % instead of 40 %.
        """
        comp = self.comp.index_select(0, mine)
        if self.frequency is None:
            return comp
        drawn = self.comp.index_select(0, rows).mean(0)
        return comp * torch.where(drawn > 0, self.frequency / drawn, 0)
