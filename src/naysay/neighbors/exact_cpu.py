"""Exact neighbours on the CPU: products of block pairs propose, float64 sums decide.

Every pair of blocks is multiplied once and serves both its rows and its columns. `proposals` proves that the product's
inaccuracy loses no neighbour; `kernels` measures what was proposed. Memory is the rows, their codes, and n x k keys:
one tile of products per core.
"""

from typing import Any

import numpy as np
import torch

from naysay.neighbors.blocks import cluster_order, even_edges, near_pairs_first
from naysay.neighbors.proposals import Codes, choose, encode, find_centre, multiply, true_float32
from naysay.neighbors.rows import Found, Rows
from naysay.neighbors.schedule import run, run_all
from naysay.progress import track

BLOCK = 1024
CLUSTER_FROM = 4 * BLOCK  # fewer rows are done sooner than sorted
IDEAL, WASTEFUL = 8, 0.02  # finer products pay when more than 8 k distances a row and 2 % of all pairs were measured


def search(rows: Any, k: int, *, block: int = BLOCK, dtype: torch.dtype | None = None) -> Found:
    """The k nearest other rows of each of the float32 rows (n, d): indices and squared distances (n, k).

    block and dtype change the time and not the result. dtype: of the codes; None takes the faster, and changes to the
    finer one when too many of its proposals are wrong.
    """
    from naysay.neighbors import kernels

    order = np.arange(len(rows))
    if len(rows) >= CLUSTER_FROM:
        order, _ = cluster_order(Rows(torch.from_numpy(rows)), len(rows) // (block // 2))
        rows = torch.from_numpy(rows)[order].numpy()
    edges = even_edges(len(rows), block)
    pairs = near_pairs_first(rows, edges)
    centre = find_centre(torch.from_numpy(rows)).numpy()
    codes = encode(rows, centre, dtype or choose(rows.shape[1]))
    # one name for both, so that a thread never pairs old codes with a new side
    state = codes, make_side(rows, order, codes, k)

    def work(pair: Any) -> tuple[int, int]:
        codes, side = state
        (i, i_end), (j, j_end) = edges[pair[0] : pair[0] + 2], edges[pair[1] : pair[1] + 2]
        products = multiply(codes[i:i_end], codes[j:j_end]).numpy()
        mode = kernels.ITSELF if i == j else kernels.TOGETHER
        return products.size, kernels.filter_tile(products, side, np.arange(i, i_end), side, j, codes.margin, mode)

    compared = measured = 0
    with true_float32():
        for compared_here, measured_here in track(run(pairs, set, work), len(pairs), "finding neighbours"):
            compared, measured = compared + 2 * compared_here, measured + measured_here
            too_many = measured > IDEAL * k * len(rows) + WASTEFUL * compared
            if dtype is None and state[0].dtype == torch.int8 and too_many:
                finer = encode(rows, centre, torch.float32)
                state = finer, state[1]._replace(scale=finer.scale, half=finer.half, residual=finer.residual)
    return read_heaps(state[1].heaps, order)


def search_among(rows: Any, new: Any, k: int, *, block: int = BLOCK, dtype: torch.dtype | None = None) -> Found:
    """The k nearest of the float32 rows (n, d) to each of the new rows (m, d): indices and squared distances (m, k)."""
    centre = find_centre(torch.from_numpy(rows)).numpy()
    dtype = dtype or choose(rows.shape[1])
    codes, asking_codes = encode(rows, centre, dtype), encode(new, centre, dtype)
    side, asking = make_side(rows, np.arange(len(rows)), codes, 1), make_side(new, np.arange(len(new)), asking_codes, k)
    ask(asking, asking_codes, side, codes, block=block)
    return read_heaps(asking.heaps, asking.ids)


def ask(asking: Any, asking_codes: Codes, side: Any, codes: Codes, *, block: int = BLOCK) -> None:
    """Fill the heaps of the side `asking` with its nearest rows of `side`."""
    from naysay.neighbors import kernels

    m, n = len(asking.rows), len(side.rows)

    def work(lines: Any) -> None:
        for j in range(0, n, block):
            products = multiply(asking_codes[lines[0] : lines[-1] + 1], codes[j : j + block]).numpy()
            kernels.filter_tile(products, asking, lines, side, j, codes.margin, kernels.APART)

    # several parts for each core, since some take longer
    height = min(block, max(16, -(-m // (4 * torch.get_num_threads()))))
    parts = [np.arange(start, min(start + height, m)) for start in range(0, m, height)]
    with true_float32():
        run_all(parts, work, "finding neighbours")


def make_side(rows: Any, ids: Any, codes: Codes, k: int) -> Any:
    """A `kernels.Side` that knows no neighbour yet."""
    from naysay.neighbors import kernels

    bound, heaps = np.full(len(rows), np.inf, np.float32), np.full((len(rows), k), kernels.EMPTY)
    return kernels.Side(rows, ids.astype(np.int32), codes.scale, codes.half, codes.residual, bound, heaps)


def read_heaps(heaps: Any, places: Any) -> Found:
    """Indices and squared distances (n, k), nearest first, of heap i at row places[i]."""
    from naysay.neighbors import kernels

    indices, squared = np.empty(heaps.shape, np.int32), np.empty(heaps.shape, np.float32)
    kernels.read_heaps(heaps, places, indices, squared)
    return torch.from_numpy(indices), torch.from_numpy(squared)
