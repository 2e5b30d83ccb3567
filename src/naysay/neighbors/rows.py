"""What a caller may give as features, and the float32 rows that the searches take.

Cosine neighbours are the Euclidean ones of rows of length 1: |a - b|^2 = 2 - 2 cos(a, b). One search serves both. A row
of zeros has no direction: it has no neighbours, and is nobody's.

A float32 has 24 bits: of a time in seconds, 1.7e9 give or take a day, it keeps hours and loses minutes. What all rows
have in common is no distance, so it is taken away from numbers of more bits before they are rounded.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from naysay.errors import InputError, unknown
from naysay.neighbors.graph import METRICS

MAX_ROWS = 2**31 - 1
PART = 65536  # rows checked and normalised at once
WIDE = (torch.float64, torch.int64, torch.int32)  # numbers that float32 cannot hold
APART = 4.0  # the first number of a row without direction, at least 3 from every row of length 1; those are 2 at most
FAR = 4  # spreads of a column from 0, beyond which its middle is taken away
Found = tuple[Tensor, Tensor]  # what a search gives: int32 indices, float32 squared distances; nearest first


@dataclass(frozen=True)
class Rows:
    """A matrix (n, d) of any numbers, in memory, on a device or on disk, that is read as finite float32 rows."""

    numbers: Tensor
    unit: bool = False
    name: str = "features"
    centre: Tensor | None = None  # (d,) float64, taken away from every row
    kept: Tensor | None = None  # (n,): the numbers of the rows that are read, if not all are

    def __len__(self) -> int:
        """The number of rows, n."""
        return len(self.numbers if self.kept is None else self.kept)

    @property
    def d(self) -> int:
        """The length of a row."""
        return self.numbers.shape[1]

    def read(self, which: slice | Tensor = slice(None)) -> Tensor:
        """The rows `which` as float32, copied only if changed; by cosine of length 1, those of zeros APART."""
        given = self.numbers[which if self.kept is None else self.kept[which]]
        if self.centre is None:
            rows = given.to(torch.float32).contiguous()
        else:
            rows = torch.empty(given.shape, dtype=torch.float32, device=given.device)
        unit = torch.empty_like(rows) if self.unit else rows
        for start in range(0, len(rows), PART):
            part = rows[start : start + PART]
            if self.centre is not None:
                part.copy_(given[start : start + PART].double() - self.centre.to(given.device))
            bad = ~part.isfinite().all(1)
            if bool(bad.any()):
                where = self._number(which, start + int(bad.nonzero()[0]))
                got = f"NaN, inf or more than 3.4e38 in row {where}"
                raise InputError(f"{self.name} must be finite float32 numbers; got {got}.")
            if self.unit:
                exact = given[start : start + PART].double().contiguous()
                lengths = exact.square().sum(1, keepdim=True).sqrt()
                nowhere = lengths[:, 0] == 0
                unit[start : start + PART] = exact / lengths.where(lengths > 0, 1)
                unit[start : start + PART, 0].masked_fill_(nowhere, APART)
        return unit

    def directed(self) -> Self:
        """The same rows, less those of zeros, which have no direction: for the cosine metric they are near to none."""
        if not self.unit:
            return self
        parts = (self.numbers[start : start + PART].double() for start in range(0, len(self.numbers), PART))
        there = torch.cat([part.square().sum(1) != 0 for part in parts])
        return self if bool(there.all()) else replace(self, kept=there.nonzero().flatten())

    def centred(self) -> Self:
        """The same rows, less the middle of columns that lie far from 0, where their numbers have the bits for it."""
        if self.unit or self.numbers.dtype not in WIDE:
            return self
        # a sample's own numbers, so that whole numbers stay whole
        low, middle, high = _sorted_sample(self.numbers).double()
        far = (middle.abs() > FAR * (high - low)) & middle.isfinite()
        return replace(self, centre=torch.where(far, middle, 0)) if bool(far.any()) else self

    def _number(self, which: slice | Tensor, place: int) -> int:
        return int(torch.arange(len(self))[which][place] if self.kept is None else self.kept[which][place])


def open_rows(features: Any, metric: str, name: str = "features") -> Rows:
    """`features` (n, d): an array, a memory map, a tensor or lists, checked but for what only reading it shows."""
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    numbers = features.detach() if isinstance(features, Tensor) else _as_tensor(features, name)
    if numbers.ndim != 2 or 0 in numbers.shape:
        got = f"{tuple(numbers.shape)}.{_hint(numbers)}"
        raise InputError(f"{name} must be an (n, d) matrix, one row per instance; got shape {got}")
    if numbers.is_complex() or numbers.is_sparse:
        got = f"{numbers.dtype} in {numbers.layout} layout"
        raise InputError(f"{name} must be a dense matrix of real numbers; got {got}.")
    if len(numbers) > MAX_ROWS:
        raise InputError(f"{name} must have at most {MAX_ROWS} rows; got {len(numbers)}. Work on shards.")
    return Rows(numbers, metric == "cosine", name)


def check_k(k: int, available: int, what: str) -> None:
    """Raise InputError unless 1 <= k <= available."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError(f"k must be a whole number of neighbours; got {k!r}.")
    if not 1 <= k <= available:
        raise InputError(f"k must be between 1 and {available}, {what}; got {k}.")


def _sorted_sample(numbers: Tensor) -> Tensor:
    """The 5, 50 and 95 % places (3, d) of each column of a few hundred rows."""
    sample = numbers[:: max(1, len(numbers) // 256)].sort(0).values
    last = len(sample) - 1
    return sample[[last // 20, last // 2, last - last // 20]]


def _as_tensor(features: Any, name: str) -> Tensor:
    array = np.asarray(features)
    if array.dtype.kind not in "fiub":
        got = f"{type(features).__name__} of {array.dtype}"
        raise InputError(f"{name} must be a dense (n, d) matrix of numbers; got {got}.")
    # torch has no such numbers, or no such strides
    if not array.dtype.isnative or array.itemsize > 8 or array.dtype.kind == "u" or min(array.strides, default=0) < 0:
        wide = array.itemsize > 4 or (array.itemsize == 4 and array.dtype.kind != "f")
        array = array.astype(np.float64 if wide else np.float32)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # nor written to
        return torch.from_numpy(array)


def _hint(numbers: Tensor) -> str:
    if numbers.ndim == 1:
        return " For one feature per instance use features.reshape(-1, 1)."
    return " Flatten each instance: features.reshape(len(features), -1)." if numbers.ndim > 2 else ""
