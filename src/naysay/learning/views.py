"""Views of images, batched on the device: pure functions of images (uint8, channels last) and of numbers drawn before.

Because the randomness comes in as an argument, the same numbers give the same view on a CPU, on a GPU and inside a
captured graph, and a test can compare each view with its scalar definition.

The weak view moves an image: shifts it by a few pixels and flips it (`draw_moves`, `take_moved`). The strong view
(`make_views`, of `DRAWS` uniform numbers) is SimSiam's for CIFAR (Chen and He, 2021), with torchvision's meaning of
every step: random resized crop of 0.2-1.0 of the area, flip, colour jitter 0.4/0.4/0.4/0.1 in a random order with
probability 0.8, greyscale with probability 0.2, and no blur on 32 x 32. Crop, flip and resize are one linear map for
each axis: a row of triangle-filter weights over the source pixels (the antialiased bilinear filter), so that a view is
`rows @ image @ columns^T`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from naysay.errors import InputError, unknown
from naysay.learning.recipe import refuse_non_numbers
from naysay.seeds import torch_stream

TRIES = 10  # torchvision draws area and ratio this often before it falls back to the whole image
DRAWS = 2 * TRIES + 13  # tries, place (2), flip, jitter at all, strengths (4), order (4), grey
GREY = (0.2989, 0.587, 0.114)  # ITU-R 601-2 luma
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of CIFAR-10's pixels; any fixed numbers would do


def draw_moves(n: int, crop: int, flip: bool, seed: int, epoch: int) -> Tensor:
    """How each of n images is moved this epoch, (n, 3): pixels down and right, up to `crop`, and 1 where it is flipped.

    Drawn on the CPU for all rows, whatever their order: the numbers depend on seed and epoch alone.
    """
    generator = torch_stream(seed, f"views/{epoch}")
    shift = torch.randint(-crop, crop + 1, (n, 2), generator=generator, device=generator.device)
    flipped = torch.rand(n, generator=generator, device=generator.device) < (0.5 if flip else 0.0)
    return torch.cat([shift, flipped[:, None].long()], 1)


def take_moved(images: Tensor, rows: Tensor, moves: Tensor, padding: str) -> Tensor:
    """The images numbered `rows`, each moved as its row of `moves` (B, 3) says: one gather, whatever the padding.

    Pixel (i, j) of the result is pixel (i + down, j + right) of the padded image, and of its mirror image if flipped.
    """
    height, width = images.shape[1:3]
    down, right, flipped = moves.unbind(1)
    i = torch.arange(height, device=images.device) + down[:, None]
    j = torch.arange(width, device=images.device) + right[:, None]
    j = torch.where(flipped[:, None] > 0, j.flip(1), j)
    if padding == "zero":
        inside = ((i >= 0) & (i < height))[:, :, None] & ((j >= 0) & (j < width))[:, None, :]
        i, j = i.clamp(0, height - 1), j.clamp(0, width - 1)
        return images[rows[:, None, None], i[:, :, None], j[:, None, :]] * inside[..., None]
    i, j = (height - 1 - (height - 1 - i.abs()).abs(), width - 1 - (width - 1 - j.abs()).abs())
    return images[rows[:, None, None], i[:, :, None], j[:, None, :]]


@dataclass(frozen=True)
class View:
    """What a strong view may do: pixels a side, the crop's share of the area and ratio, strengths and chances."""

    size: int = 32
    scale: tuple[float, float] = (0.2, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1
    jitter: float = 0.8
    grey: float = 0.2


def checked_view(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a `View` by name, checked, and as JSON gives them back, so that a run's settings are known again."""
    for name in settings:
        if name not in View.__dataclass_fields__:
            raise unknown("setting of a view", name, View.__dataclass_fields__)
    refuse_non_numbers(View(**settings))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}


def normalise(x: Tensor) -> Tensor:
    """Images (n, C, H, W) in [0, 1] as a network takes them: less the mean, over the spread, of each channel."""
    if x.shape[1] != len(MEAN):
        return (x - 0.5) / 0.5
    return torch.stack([(x[:, c] - MEAN[c]) / STD[c] for c in range(len(MEAN))], 1)


def to_float(images: Tensor) -> Tensor:
    """uint8 images (n, H, W) or (n, H, W, C) as floats (n, C, H, W) in [0, 1]."""
    if images.dtype != torch.uint8 or images.ndim not in (3, 4):
        got = f"{images.dtype} of shape {tuple(images.shape)}"
        raise InputError(f"images must be uint8, (n, H, W) or (n, H, W, C); got {got}.")
    x = images if images.ndim == 4 else images[..., None]
    return x.permute(0, 3, 1, 2).float() / 255


def make_views(images: Tensor, draws: Tensor, view: View) -> Tensor:
    """One view (n, C, size, size), normalised, of each image (n, H, W, C) uint8 by its uniform numbers (n, DRAWS)."""
    return normalise(distort(images, draws, view))


def distort(images: Tensor, draws: Tensor, view: View) -> Tensor:
    """What `make_views` makes, before it is normalised: (n, C, size, size) in [0, 1]."""
    x = to_float(images)
    u = draws.unbind(1)
    flip, apply, strength, order, grey = u[22], u[23], draws[:, 24:28], draws[:, 28:32], u[32]
    top, left, height, width = crop_boxes(draws[:, : 2 * TRIES], draws[:, 20:22], (x.shape[2], x.shape[3]), view)
    rows = filter_weights(top, height, x.shape[2], view.size, torch.zeros_like(flip, dtype=torch.bool))
    columns = filter_weights(left, width, x.shape[3], view.size, flip < view.flip)
    x = rows[:, None] @ x @ columns[:, None].transpose(-1, -2)
    jittered = colour_jitter(x, strength, order, view)
    x = torch.where((apply < view.jitter)[:, None, None, None], jittered, x)
    if x.shape[1] == 3:
        x = torch.where((grey < view.grey)[:, None, None, None], luma(x).expand_as(x), x)
    return x


def cut_out(x: Tensor, place: Tensor, side: int) -> Tensor:
    """Images (n, C, H, W) with a square of zeros (DeVries and Taylor 2017), its middle at `place` (n, 2) in [0, 1)."""
    down, across = (
        (torch.arange(size, device=x.device) - torch.floor(at * size)[:, None] + side // 2)
        for at, size in zip(place.unbind(1), x.shape[2:], strict=True)
    )
    inside = ((down >= 0) & (down < side))[:, :, None] & ((across >= 0) & (across < side))[:, None, :]
    return x.masked_fill(inside[:, None], 0.0)


def crop_boxes(tries: Tensor, place: Tensor, image: tuple[int, int], view: View) -> tuple[Tensor, ...]:
    """Top, left, height and width (n,) of each crop of an image (height, width), whole pixels.

    The first of the tries (n, 2 * TRIES), areas then ratios, that fits is put at `place` (n, 2), down and across.
    """
    (height, width), (down, across) = image, place.unbind(1)
    area = height * width * (view.scale[0] + (view.scale[1] - view.scale[0]) * tries[:, :TRIES])
    low, high = math.log(view.ratio[0]), math.log(view.ratio[1])
    ratio = torch.exp(low + (high - low) * tries[:, TRIES:])
    w, h = torch.round(torch.sqrt(area * ratio)), torch.round(torch.sqrt(area / ratio))
    fits = (w > 0) & (w <= width) & (h > 0) & (h <= height)
    # argmax of booleans is not defined on every device: the first fit is where the fits so far first count one
    first = (fits & (fits.int().cumsum(1) == 1)).float()
    found = fits.any(1)
    # torchvision's way out is the largest centred box of an allowed ratio, which for a square image is the whole of it
    fallback_w = min(float(width), round(height * view.ratio[1])) if width / height > view.ratio[1] else float(width)
    fallback_h = min(float(height), round(width / view.ratio[0])) if width / height < view.ratio[0] else float(height)
    w = torch.where(found, (w * first).sum(1), torch.full_like(down, fallback_w))
    h = torch.where(found, (h * first).sum(1), torch.full_like(down, fallback_h))
    top = torch.where(found, torch.floor(down * (height - h + 1)), torch.floor((height - h) / 2))
    left = torch.where(found, torch.floor(across * (width - w + 1)), torch.floor((width - w) / 2))
    return top, left, h, w


def filter_weights(start: Tensor, length: Tensor, source: int, size: int, mirror: Tensor) -> Tensor:
    """Weights (n, size, source) that resample pixels [start, start + length) of an axis to `size`, or its mirror."""
    out = torch.arange(size, device=start.device, dtype=start.dtype).expand(len(start), size)
    out = torch.where(mirror[:, None], size - 1 - out, out)
    scale = (length / size)[:, None]
    centre = (start[:, None] + (out + 0.5) * scale)[:, :, None]
    pixel = torch.arange(source, device=start.device, dtype=start.dtype) + 0.5
    weight = (1 - (pixel - centre).abs() / scale.clamp_min(1)[:, :, None]).clamp_min(0)
    inside = (pixel > start[:, None, None]) & (pixel < (start + length)[:, None, None])
    weight = torch.where(inside, weight, torch.zeros_like(weight))
    return weight / weight.sum(2, keepdim=True)


def luma(x: Tensor) -> Tensor:
    """The greyscale (n, 1, H, W) of colour images (n, 3, H, W)."""
    return (GREY[0] * x[:, 0] + GREY[1] * x[:, 1] + GREY[2] * x[:, 2])[:, None]


def colour_jitter(x: Tensor, strength: Tensor, order: Tensor, view: View) -> Tensor:
    """Brightness, contrast, saturation and hue, each image in its own order: that of its numbers in `order` (n, 4)."""
    reach = [(max(0.0, 1 - a), 1 + a) for a in (view.brightness, view.contrast, view.saturation)]
    factor = [(low + (high - low) * strength[:, i])[:, None, None, None] for i, (low, high) in enumerate(reach)]
    shift = (view.hue * (2 * strength[:, 3] - 1))[:, None, None]
    colour = x.shape[1] == 3
    rank = (order[:, None, :] < order[:, :, None]).sum(2)  # of each operation: how many come before it
    for turn in range(4):
        now = [(rank[:, i] == turn)[:, None, None, None] for i in range(4)]
        grey = luma(x) if colour else x
        other = torch.where(now[1], grey.mean((2, 3), keepdim=True), torch.zeros_like(grey))
        scale = torch.where(now[0], factor[0], torch.where(now[1], factor[1], torch.ones_like(factor[0])))
        if colour:
            other = torch.where(now[2], grey, other)
            scale = torch.where(now[2], factor[2], scale)
        blended = (scale * x + (1 - scale) * other).clamp(0, 1)
        x = torch.where(now[3], shift_hue(x, shift), blended) if colour else blended
    return x


def shift_hue(x: Tensor, shift: Tensor) -> Tensor:
    """Colour images with their hue in HSV moved by `shift` (n, 1, 1), in turns of the colour circle."""
    red, green, blue = x.unbind(1)
    value = torch.maximum(torch.maximum(red, green), blue)
    chroma = value - torch.minimum(torch.minimum(red, green), blue)
    safe = torch.where(chroma == 0, torch.ones_like(chroma), chroma)
    sixth = torch.where(value == green, (blue - red) / safe + 2, (red - green) / safe + 4)
    sixth = torch.where(value == red, (green - blue) / safe, sixth) + 6 * shift
    # back to colours in closed form: each channel falls from the value by the chroma over a trapezium of the circle
    channels = []
    for offset in (5.0, 3.0, 1.0):
        k = torch.remainder(offset + sixth, 6)
        channels.append(value - chroma * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(channels, 1)
