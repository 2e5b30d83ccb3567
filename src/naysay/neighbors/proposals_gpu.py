"""Cheap products that propose neighbours on a GPU, and what proves that none was missed.

The idea and the letters are those of `proposals`, with q = x - c rounded to the 11 bits of TF32 and s = 1; bfloat16's 8
bits would make the products faster and leave many rows unproven, float16 would overflow. For rows i and all columns j

    value_ij = <q_i, q_j> - g_j,      g_j = (1 - 4 margin) h_j - (1 + 4 margin) (A rho_j + rho_j^2 / 2)      (3)

comes out of one matrix product, for g_j cut in three pieces of 11 bits is three more columns of it. The `wanted` > k
columns of largest value are then measured exactly. Let t be the k-th smallest of these distances, and a = t + rho_i.
A column left out that belonged to the result would by (2) have <q_i, q_j> - h_j >= h_i - (a + rho_j)^2 / 2,
hence, if a <= A, and with what the roundings of (3) can take away,

    value_ij >= (1 - 4 margin) h_i - a^2 / 2                                                                 (4)

so a row whose smallest value taken is below that is proven. The others are done again with more columns, and at last
with all. A is chosen above the k-th distances of a sample, so that few rows fail by a > A. The margin: codes of 11 bits
enter a tensor core unchanged, their products are exact, and it adds with at least the 24 bits of float32 but truncates
(Fasi, Higham, Mikaitis, Pranesh 2021): 2^-23 for each of the d + 8 terms, doubled to be safe, on |q_i| |q_j| + |g_j|.
Where there are no tensor cores true float32 is no worse.

The largest values without sorting all columns: fold them into groups, take each group's maximum, keep the `wanted`
groups of largest maximum. A column outside is below the least of those maxima, so the `wanted` largest are inside.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from naysay.neighbors.proposals import check_size

WIDTH = 2**20  # columns at once; more are done in turn and merged
FOLDS = (64, 32, 16, 8)  # sizes of a group; the columns are padded to a multiple of the first
NOWHERE = -1e38  # the value of columns that are only padding


@dataclass(frozen=True)
class Codes:
    """Rows ready to ask or to answer: float32 rows (n, d), codes (n', e), e >= d + 3, and float64 h and rho (n,)."""

    rows: Tensor
    codes: Tensor
    half: Tensor
    residual: Tensor


def find_margin(d: int) -> float:
    return 2 * (d + 8) * 2.0**-23


def round_to_11_bits(numbers: Tensor) -> Tensor:
    """Float32 numbers rounded to the 11 significant bits of TF32, away from zero when halfway."""
    return ((numbers.float().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def _quantise(rows: Tensor, centre: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q (n, d), h and rho (n,) float64 of rows around the centre."""
    codes = torch.empty_like(rows)
    half, residual = torch.empty(2, len(rows), dtype=torch.float64, device=rows.device)
    for start in range(0, len(rows), 65536):
        part = slice(start, start + 65536)
        exact = rows[part].double() - centre.double()
        codes[part] = round_to_11_bits(exact)
        half[part] = codes[part].double().square().sum(1) / 2
        # the second term: subtracting the centre rounds in float64 too
        residual[part] = (exact - codes[part].double()).square().sum(1).sqrt() * (1 + 1e-6)
        residual[part] += 2.0**-44 * (exact.square() + centre.double().square()).sum(1).sqrt()
    check_size(float(half.max()))
    return codes, half, residual


def make_asking(rows: Tensor, centre: Tensor) -> Codes:
    q, half, residual = _quantise(rows, centre)
    codes = torch.zeros(len(rows), -(-(rows.shape[1] + 3) // 8) * 8, device=rows.device)
    codes[:, : rows.shape[1]] = q
    codes[:, rows.shape[1] : rows.shape[1] + 3] = 1
    return Codes(rows, codes, half, residual)


def make_answering(rows: Tensor, centre: Tensor, furthest: Tensor | float) -> Codes:
    n, d = rows.shape
    q, half, residual = _quantise(rows, centre)
    codes = torch.zeros(-(-n // FOLDS[0]) * FOLDS[0], -(-(d + 3) // 8) * 8, device=rows.device)
    codes[:n, :d] = q
    codes[n:, d] = NOWHERE
    rest = (1 + 4 * find_margin(d)) * (furthest * residual + residual.square() / 2) - (1 - 4 * find_margin(d)) * half
    for piece in range(d, d + 3):
        codes[:n, piece] = round_to_11_bits(rest)
        rest = rest - codes[:n, piece].double()
    return Codes(rows, codes, half, residual)


def typical_bound(columns: Tensor, asking: Codes, centre: Tensor, k: int) -> Tensor:
    """A: half as much again as the distance to the k-th neighbour, and the residual, of most rows of a small sample."""
    some = slice(None, None, max(1, len(asking.rows) // 256))
    answering = make_answering(columns[:: max(1, len(columns) // WIDTH)], centre, 0.0)
    values, _ = propose(asking.codes[some], answering.codes, k + 1, None, WIDTH)
    bound = (2 * (asking.half[some] - values.amin(1))).clamp(min=0).sqrt() + asking.residual[some]
    return 1.5 * torch.quantile(bound, 0.95)


def propose(asking: Tensor, answering: Tensor, wanted: int, own: Tensor | None, width: int) -> tuple[Tensor, Tensor]:
    """The `wanted` largest values (r, wanted) of each asking code and their columns, without the columns `own` (r,)."""
    found = []
    for start in range(0, len(answering), width):
        values = asking @ answering[start : start + width].T
        if own is not None:
            place = (own - start).clamp(0, values.shape[1] - 1)[:, None]
            here = place[:, 0] == own - start
            values.scatter_(1, place, torch.where(here[:, None], -torch.inf, values.gather(1, place)))
        most, places = largest(values, wanted)
        found.append((most, places + start))
    values, places = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
    if len(found) > 1:
        values, order = values.topk(min(wanted, values.shape[1]), sorted=False)
        places = places.gather(1, order)
    return values, places


def largest(values: Tensor, wanted: int) -> tuple[Tensor, Tensor]:
    """The `wanted` largest of each row of values (r, w), in no order, and their places."""
    r, w = values.shape
    fold = min(FOLDS, key=lambda fold: w // fold + wanted * fold)
    if w // fold <= wanted:
        return values.topk(min(wanted, w), sorted=False)
    groups = values.view(r, fold, w // fold)
    best = groups.amax(1).topk(wanted, sorted=False).indices
    inside = groups.gather(2, best[:, None, :].expand(r, fold, wanted)).flatten(1)
    most, at = inside.topk(wanted, sorted=False)
    return most, at // wanted * (w // fold) + best.gather(1, at % wanted)


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Float32 products on tensor cores, which cut their inputs to 11 bits: the codes have no more."""
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    settings.fp32_precision = "tf32"
    try:
        yield
    finally:
        settings.fp32_precision = before
