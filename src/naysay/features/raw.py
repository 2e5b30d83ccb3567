"""Raw features, for tables and digits: the columns or pixels themselves, standardised, or their principal components.

Both read `x` in blocks, so that it may be mapped from a file, any numbers, or images; both work in float64 and return
float32. Means and deviations of blocks are merged as in Chan, Golub and LeVeque (1983); the randomised range finder is
that of Halko, Martinsson and Tropp (2011).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay.datasets.dataset import Array, unfinite_row
from naysay.errors import InputError
from naysay.seeds import stream

BLOCK = 1 << 17  # numbers summed at a time: a megabyte of float64, which stays in the processor's cache
PRODUCT = 1 << 22  # numbers multiplied at a time: on a busy machine small products wait more than they compute
EXACT = 1024  # columns up to which the covariance is decomposed exactly
OVERSAMPLE, POWERS = 32, 6  # of the randomised decomposition: columns beside those asked for, and rounds of refinement


def standardise(x: Any) -> NDArray[np.float32]:
    """Columns of mean 0 and standard deviation 1 (n, d) float32, from numbers (n, d) or images (n, H, W[, C]).

    The deviation is that of the rows themselves (over n); a constant column becomes 0. `x` is left as it is.
    """
    x = as_numbers(x)
    mean, deviation = _moments(x)
    scale = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    out = np.empty((len(x), len(mean)), np.float32)
    for start, block in _blocks(x, mean):
        np.multiply(block, scale, out=out[start : start + len(block)], casting="same_kind")
    return out


def pca(x: Any, n_components: int, seed: int = 0) -> NDArray[np.float32]:
    """The first principal components (n, n_components) float32 of numbers (n, d) or images (n, H, W[, C]) in [0, 1].

    Columns are centred, not scaled: for columns of different units pca(standardise(x), ...). A component's sign makes
    its largest weight positive. Beyond 1,024 columns the decomposition is randomised, from the stream of `seed`.
    """
    x = as_numbers(x)
    mean, axes = principal_axes(x, n_components, seed)
    return _project(x, mean, axes).astype(np.float32)


def principal_axes(x: Any, n_components: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean (d,) of the rows and their first principal axes (d, n_components), as `pca` takes them."""
    x = as_numbers(x)
    mean, _ = _moments(x)
    if not 1 <= n_components <= min(len(x), len(mean)):
        raise InputError(
            f"n_components must be between 1 and {min(len(x), len(mean))}, the smaller of rows and columns; "
            f"got {n_components}."
        )
    axes = _exact_axes(x, mean) if len(mean) <= EXACT else _random_axes(x, mean, n_components, seed)
    axes = axes[:, :n_components]
    largest = axes[np.abs(axes).argmax(0), np.arange(n_components)]
    return mean, axes * np.where(largest < 0, -1, 1)


def as_numbers(x: Any) -> Array:
    """`x` as an array of at least one row, of numbers (n, d) or images (n, H, W) or (n, H, W, C)."""
    array = to_numpy(x)
    if array.dtype.kind not in "buif":
        raise InputError(f"x must hold numbers; got {array.dtype}. Turn texts and dates into columns of numbers first.")
    if array.ndim not in (2, 3, 4) or not array.size:
        raise InputError(
            f"x must be (n, d), (n, H, W) or (n, H, W, C) with at least one row and column; got shape {array.shape}."
        )
    return array


def to_numpy(x: Any) -> Array:
    """`x` as a numpy array, tensors on any device included."""
    if not isinstance(x, Tensor):
        return np.asarray(x)
    x = x.detach().cpu()
    array: Array = (x.float() if x.dtype == torch.bfloat16 else x).numpy()  # numpy has no bfloat16
    return array


def _blocks(x: Array, mean: Any = 0.0, size: int = 0) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Block after block of rows: the number of its first, and the rows (b, d) less the `mean`, pixels in [0, 1]."""
    rows = max(1, (size or BLOCK) * len(x) // x.size)
    for start in range(0, len(x), rows):
        part = x[start : start + rows]
        block = part.reshape(len(part), -1).astype(np.float64)
        if x.ndim > 2 and x.dtype == np.uint8:
            block /= 255
        block -= mean
        yield start, block


def _moments(x: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (d,) of the columns; finite, or an error says why not."""
    first: NDArray[np.float64] = next(_blocks(x[:1]))[1][0]
    count, mean, squares = 0, np.zeros_like(first), np.zeros_like(first)
    with np.errstate(over="ignore", invalid="ignore"):
        # less the first row a constant column is exactly 0, and far from 0 nothing cancels
        for start, block in _blocks(x, first):
            part = block.mean(0)
            np.subtract(block, part, out=block)
            step, count = part - mean, start + len(block)
            mean += step * (len(block) / count)
            squares += np.einsum("ij,ij->j", block, block) + step * step * (start * len(block) / count)
    if not np.isfinite(squares).all():
        row = unfinite_row(x)
        if row is not None:
            raise InputError(
                f"x must be finite; got nan or inf in row {row}. Fill in the missing values, or leave the row out."
            )
        raise InputError(
            f"x must stay below 1e150, where squares overflow; got {np.abs(x).max():.3g}. Scale the columns first."
        )
    return first + mean, np.sqrt(squares / count)


def _exact_axes(x: Array, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """All principal axes (d, d), the one of most variance first."""
    covariance = sum(block.T @ block for _, block in _blocks(x, mean, PRODUCT))
    axes: NDArray[np.float64] = np.linalg.eigh(covariance)[1][:, ::-1]
    return axes


def _random_axes(x: Array, mean: NDArray[np.float64], n_components: int, seed: int) -> NDArray[np.float64]:
    """The first principal axes (d, n_components and some), by subspace iteration from random directions."""
    width = min(n_components + OVERSAMPLE, len(x), len(mean))
    axes = stream(seed, "pca").standard_normal((len(mean), width))
    for _ in range(POWERS):
        turned, product = axes.astype(np.float32), np.zeros_like(axes)
        for _, block in _blocks(x, mean, PRODUCT):
            centred = block.astype(np.float32)  # twice the speed, and each round mends the rounding of the last
            product += centred.T @ (centred @ turned)
        axes = np.linalg.qr(product)[0]
    scores = _project(x, mean, axes)
    turn: NDArray[np.float64] = np.linalg.eigh(scores.T @ scores)[1][:, ::-1]
    return axes @ turn


def _project(x: Array, mean: NDArray[np.float64], axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows less the mean, along the axes (d, k): (n, k)."""
    out = np.empty((len(x), axes.shape[1]))
    for start, block in _blocks(x, mean, PRODUCT):
        out[start : start + len(block)] = block @ axes
    return out
