"""What a caller may give as features, and the float32 rows that the searches take.

Cosine neighbours are the Euclidean ones of rows of length 1: |a - b|^2 = 2 - 2 cos(a, b). One search serves both. A row
of zeros has no direction: it has no neighbours, and is nobody's.

What all rows have in common is no distance, so where float32 would lose what is not, it is taken away first
(`naysay.rounding`); by cosine from the rows of length 1, which lie as close together as their directions do.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from naysay.errors import InputError, unknown
from naysay.neighbors.graph import METRICS, Graph
from naysay.rounding import WIDE, find_centre, to_unit

MAX_ROWS = 2**31 - 1
PART = 65536  # rows checked and normalised at once
# the first number of a row without direction, at least 3 from that of every row of length 1, from which 1 at most is
# taken away; any two of those are 2 apart at most
APART = 5.0
ASKED = 512  # rows whose distances are looked at again, about
BLURRED, FEW = 1 / 16, 0.01  # the part of a distance that rounding may falsify, and of the rows where it may do more
Found = tuple[Tensor, Tensor]  # what a search gives: int32 indices, float32 squared distances; nearest first


@dataclass(frozen=True)
class Rows:
    """A matrix (n, d) of any numbers, in memory, on a device or on disk, that is read as finite float32 rows."""

    numbers: Tensor
    unit: bool = False
    name: str = "features"
    centre: Tensor | None = None  # (d,) float64, taken away from every row, by cosine once it has length 1
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
        centre = None if self.centre is None else self.centre.to(given.device)
        if centre is None or self.unit:
            rows = given.to(torch.float32).contiguous()
        else:
            rows = torch.empty(given.shape, dtype=torch.float32, device=given.device)
        unit = torch.empty_like(rows) if self.unit else rows
        for start in range(0, len(rows), PART):
            part = rows[start : start + PART]
            if centre is not None and not self.unit:
                part.copy_(given[start : start + PART].double() - centre)
            bad = ~part.isfinite().all(1)
            if bool(bad.any()):
                where = self._number(which, start + int(bad.nonzero()[0]))
                got = f"NaN, inf or more than 3.4e38 in row {where}"
                raise InputError(f"{self.name} must be finite float32 numbers; got {got}.")
            if self.unit:
                exact, nowhere = to_unit(given[start : start + PART])
                unit[start : start + PART] = exact if centre is None else exact - centre
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
        """The same rows, less the middle of columns that float32 would round too much."""
        return replace(self, centre=find_centre(self.numbers, unit=self.unit))

    def exact(self, which: Tensor) -> Tensor:
        """The rows `which` before they are rounded, in float64; by cosine of length 1. All must have a direction."""
        given = self.numbers[which if self.kept is None else self.kept[which]]
        return to_unit(given)[0] if self.unit else given.double()

    def _number(self, which: slice | Tensor, place: int) -> int:
        numbers = torch.arange(len(self), device=self.numbers.device) if self.kept is None else self.kept
        return int(numbers[which][place])


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


def warn_if_rounded(graph: Graph, rows: Rows, asking: Rows) -> Graph:
    """The graph, with a warning where float32 told rows wrongly how far apart they are, as a sample shows."""
    if not {rows.numbers.dtype, asking.numbers.dtype} & set(WIDE):
        return graph
    some = torch.arange(0, graph.n, max(1, graph.n // ASKED), device=rows.numbers.device)
    furthest = graph.indices[some, -1].to(some.device).long()
    true = (asking.exact(some) - rows.exact(furthest)).square().sum(1).sqrt()
    told = (asking.read(some).double() - rows.read(furthest).double()).square().sum(1).sqrt()
    share = float(((told - true).abs() > BLURRED * true).double().mean())
    if share > FEW:
        warnings.warn(
            f"float32 must tell rows apart; got distances that it falsifies in {share:.0%} of a sample of rows, as the "
            "numbers of a column lie close together in several places far from each other. Bring these places nearer.",
            stacklevel=3,
        )
    return graph


def check_k(k: int, available: int, what: str) -> None:
    """Raise InputError unless 1 <= k <= available."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError(f"k must be a whole number of neighbours; got {k!r}.")
    if not 1 <= k <= available:
        raise InputError(f"k must be between 1 and {available}, {what}; got {k}.")


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
