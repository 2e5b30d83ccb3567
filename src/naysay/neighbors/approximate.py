"""Approximate neighbours for many rows, in memory or on disk: nearest clusters first, then neighbours' neighbours.

Rows are sorted into blocks by cluster (`blocks`). Each row is compared with its own block and those of the PROBES
nearest centres, by the products and the filter of the exact search. What lies across a border is found afterwards as in
nearest-neighbour descent (Dong, Charikar, Li 2011): each row is offered the nearest neighbours of its nearest
neighbours, and of the rows that it is a neighbour of. Such passes go on until a sample of rows, whose neighbours are
known exactly, has GOAL of them. A second sample measures the recall that the graph carries.

Distances are exact, order and ties are as in the exact search; only some of the neighbours are not the nearest.

Memory for n rows of d numbers: codes n d bytes, keys and lists 20 n k, and the sorted rows 4 n d, which for features in
a memory-mapped file that is large lie in a temporary file (in TMPDIR), as large as the features in float32.
"""

import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.format import open_memmap
from torch import Tensor

from naysay.errors import InputError
from naysay.neighbors.blocks import block_centres, closeness, cluster_edges, cluster_order
from naysay.neighbors.exact_cpu import BLOCK, ask, make_side, read_heaps
from naysay.neighbors.exact_cpu import search as search_exactly
from naysay.neighbors.proposals import Codes, choose, encode, find_centre, multiply, true_float32
from naysay.neighbors.rows import Rows
from naysay.neighbors.schedule import run_all
from naysay.seeds import stream

PROBES = 8  # blocks that a row looks into
GOAL, LEAST = 0.985, 0.98  # recall in the sample that steers: to aim at, and below which to go on with more effort
NARROW, WIDE = (16, 32), (32, 64)  # neighbours (and as many fans, see `kernels`) asked, and how many each names
STEER, JUDGE = 300, 1000  # rows of the two samples: the recall of the second has a standard error below 0.003
PART = 8192


def search(rows: Rows, k: int, *, on_disk: bool = False) -> tuple[Tensor, Tensor, float]:
    """Indices and squared distances (n, k) of most of the k nearest other rows, and their share in a sample."""
    size = max(BLOCK, 8 * (k + 1))
    if len(rows) < 4 * size:
        return *search_exactly(rows.read().numpy(), k), 1.0
    with tempfile.TemporaryDirectory(prefix="naysay-neighbors-", ignore_cleanup_errors=True) as folder:
        order, clusters = cluster_order(rows, len(rows) // (size // 2))
        edges = cluster_edges(clusters, size)
        arranged = _arrange(rows, order, Path(folder) if on_disk else None)
        codes = encode(arranged, find_centre(torch.from_numpy(arranged)).numpy(), choose(rows.d))
        side = make_side(arranged, order, codes, k)
        drawn = stream(0, "neighbors/recall").permutation(len(rows))[: STEER + JUDGE]
        furthest = _true_bounds(side, codes, drawn, k)
        with true_float32():
            _look_into_blocks(side, codes, edges)
            _descend(side, codes, order, drawn[:STEER], furthest[:STEER])
        return *read_heaps(side.heaps, order), _recall(side, drawn[STEER:], furthest[STEER:])


def _arrange(rows: Rows, order: Any, folder: Path | None) -> Any:
    """The rows (n, d) in that order, in memory or in a file of the folder."""
    shape, needed = (len(rows), rows.d), 4 * len(rows) * rows.d
    if folder is not None and (free := shutil.disk_usage(folder).free) < needed:
        raise InputError(
            f"The approximate search of a large file needs {needed / 2**30:.1f} GiB for a sorted copy; "
            f"got {free / 2**30:.1f} GiB free in {folder.parent}. Set TMPDIR to a folder on a larger disk."
        )
    arranged = np.empty(shape, np.float32) if folder is None else open_memmap(folder / "rows.npy", "w+", "f4", shape)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    # read in the order in which they lie and written where they belong: disks are slower at reading here and there
    for start in range(0, len(rows), PART):
        arranged[places[start : start + PART]] = rows.read(slice(start, start + PART)).numpy()
    return np.asarray(arranged)


def _look_into_blocks(side: Any, codes: Codes, edges: Any) -> None:
    """Compare each row with the rows of its own block and of those with the PROBES nearest centres."""
    from naysay.neighbors import kernels

    centres = block_centres(side.rows, edges)
    probes = min(PROBES, len(centres))

    def work(block: int) -> None:
        start, stop = edges[block], edges[block + 1]
        nearest = closeness(torch.from_numpy(side.rows[start:stop]), centres).topk(probes).indices
        own = torch.full((len(nearest), 1), block, device=nearest.device)
        visits = torch.cat((nearest, own), 1).numpy()
        # its own block first, for all rows at once: that gives each a first bound
        for other in (block, *np.setdiff1d(visits, block)):
            lines = start + np.flatnonzero((visits == other).any(1))
            products = multiply(codes[torch.from_numpy(lines)], codes[edges[other] : edges[other + 1]]).numpy()
            kernels.filter_tile(products, side, lines, side, edges[other], codes.margin, kernels.ITSELF)

    run_all(range(len(centres)), work, "finding neighbours")


def _descend(side: Any, codes: Codes, order: Any, sample: Any, furthest: Any) -> None:
    """Ask neighbours' neighbours until the sample has GOAL of its own, wider if that helps little, while it helps."""
    n = len(order)
    places = np.empty(n, np.int32)
    places[order] = np.arange(n, dtype=np.int32)
    recall, width, near = _recall(side, sample, furthest), NARROW, np.empty((n, 0), np.int32)
    while recall < GOAL:
        near = _ask_around(side, codes, places, near, *width)
        before, recall = recall, _recall(side, sample, furthest)
        if recall - before < 0.002:
            if width == WIDE or recall >= LEAST:
                break
            width, near = WIDE, np.empty((n, 0), np.int32)


def _ask_around(side: Any, codes: Codes, places: Any, before: Any, fans: int, depth: int) -> Any:
    """One pass of `kernels.ask_around` over all rows; `before` and the result: lists (n, k) of `kernels.list_near`."""
    from naysay.neighbors import kernels

    n, k = side.heaps.shape
    near, own = np.empty((n, k), np.int32), threading.local()

    def seen(place: int) -> Any:
        if not hasattr(own, "seen"):
            own.seen = np.full(n, -1, np.int32)
        return own.seen

    def list_near(start: int) -> None:
        kernels.list_near(side.heaps, places, start, min(start + PART, n), before, near, seen(start))

    def ask(start: int) -> None:
        stop, plain = min(start + PART, n), codes.codes.numpy()
        kernels.ask_around(side, plain, start, stop, near, liked_by, min(depth, k), seen(start))

    run_all(range(0, n, PART), list_near, "asking neighbours")
    liked_by = kernels.find_fans(near, min(fans, k))
    run_all(range(0, n, PART), ask, "asking neighbours")
    return near


def _true_bounds(side: Any, codes: Codes, sample: Any, k: int) -> Any:
    """The squared distance (m,) to the k-th neighbour of each row of the sample, found among all rows."""
    some = torch.from_numpy(sample)
    own = Codes(codes[some], codes.scale[sample], codes.half[sample], codes.residual[sample])
    asking = make_side(side.rows[sample], sample, own, k + 1)
    # the row itself, at distance 0, is the nearest or as near as the nearest: with it the k-th other is the (k + 1)-th
    ask(asking, own, side, codes)
    return _squared(asking.heaps).max(1)


def _recall(side: Any, sample: Any, furthest: Any) -> float:
    """The share of the sample's neighbours that are no further than the true k-th: equally near ones count."""
    return float((_squared(side.heaps[sample]) <= furthest[:, None]).mean())


def _squared(keys: Any) -> Any:
    return (keys >> 32).astype(np.int32).view(np.float32)
