"""Exact neighbours on a GPU, in torch: tensor-core products propose, float64 sums decide, and every row is proven.

`proposals_gpu` has the products and the proof. A row for which the proof fails is done again with more columns, and at
last with all. The same code runs on any torch device with float64, a CPU's included. Memory is the rows, twice their
size for codes, and PRODUCTS.
"""

import torch
from torch import Tensor

from naysay.neighbors.distances import measure
from naysay.neighbors.proposals import find_centre
from naysay.neighbors.proposals_gpu import (
    NOWHERE,
    WIDTH,
    find_margin,
    make_answering,
    make_asking,
    propose,
    tensor_cores,
    typical_bound,
)
from naysay.neighbors.rows import Found
from naysay.progress import track

PRODUCTS = 2**29  # products held at once: 2 GiB of float32
GROWTH, TINY, FLOOR = 1 + 2.0**-20, 2.0**-72, 1e-36  # as in `kernels`
EMPTY = 0x7F800000_7FFFFFFF


def search(rows: Tensor, k: int, *, products: int = PRODUCTS, width: int = WIDTH) -> Found:
    """The k nearest other rows of each of the float32 rows (n, d): indices and squared distances (n, k)."""
    return _search(rows, rows, k, itself=True, products=products, width=width)


def search_among(rows: Tensor, new: Tensor, k: int, *, products: int = PRODUCTS, width: int = WIDTH) -> Found:
    """The k nearest of the float32 rows (n, d) to each of the new rows (m, d): indices and squared distances (m, k)."""
    return _search(rows, new, k, itself=False, products=products, width=width)


def _search(columns: Tensor, lines: Tensor, k: int, *, itself: bool, products: int, width: int) -> Found:
    n, m, device = len(columns), len(lines), columns.device
    centre = find_centre(columns)
    asking = make_asking(lines, centre)
    with tensor_cores():
        furthest = typical_bound(columns, asking, centre, k)
        answering = make_answering(columns, centre, furthest)
        keys = torch.empty(m, k, dtype=torch.int64, device=device)
        todo = torch.arange(m, device=device)
        for wanted in (k + max(16, k // 4), 8 * k):
            proven = torch.empty(len(todo), dtype=torch.bool, device=device)
            height = max(1, products // min(len(answering.codes), width))
            starts = range(0, len(todo), height)
            for start in track(starts, len(starts), "finding neighbours"):
                part = todo[start : start + height]
                values, picked = propose(asking.codes[part], answering.codes, wanted, part if itself else None, width)
                keys[part], bound = _decide(answering.rows, asking.rows[part], values, picked, k)
                reach = bound + asking.residual[part]
                least = (1 - 4 * find_margin(lines.shape[1])) * asking.half[part] - reach.square() / 2 * GROWTH - FLOOR
                everything = picked.shape[1] >= n - itself
                proven[start : start + height] = ((reach <= furthest) & (values.amin(1) < least)) | everything
            todo = todo[~proven]
            if len(todo) == 0:
                break
        for part in torch.split(todo, max(1, products // n)):
            keys[part] = _decide_among_all(columns, lines[part], part if itself else None, k)
    return (keys & 0x7FFFFFFF).int(), (keys >> 32).int().view(torch.float32)


def _decide(columns: Tensor, lines: Tensor, values: Tensor, picked: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k smallest keys (r, k) of the picked columns, sorted, and the last one's distance rounded up (r,) float64."""
    keys = _keys(measure(columns, lines, picked.clamp(max=len(columns) - 1)), picked)
    keys = torch.where(values > NOWHERE / 2, keys, EMPTY)
    keys = keys.topk(k, dim=1, largest=False).values if keys.shape[1] > k else keys.sort(1).values
    return keys, (keys[:, -1] >> 32).int().view(torch.float32).double().sqrt() * GROWTH + TINY


def _decide_among_all(columns: Tensor, lines: Tensor, own: Tensor | None, k: int) -> Tensor:
    """The k smallest keys (r, k) of each line, every column measured."""
    keys = torch.full((len(lines), k), EMPTY, device=columns.device)
    for part in torch.split(torch.arange(len(columns), device=columns.device), 4096):
        picked = part.expand(len(lines), len(part)).contiguous()
        new = _keys(measure(columns, lines, picked), picked)
        if own is not None:
            new = torch.where(picked == own[:, None], EMPTY, new)
        keys = torch.cat((keys, new), 1).topk(k, dim=1, largest=False).values
    return keys


def _keys(squared: Tensor, columns: Tensor) -> Tensor:
    """int64 keys that sort as (squared distance, column), as in `kernels`."""
    return (squared.view(torch.int32).long() << 32) | columns
