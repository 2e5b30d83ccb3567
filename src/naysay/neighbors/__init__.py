"""Nearest neighbours: the graph of a set of rows, and the neighbours of new rows in an old set.

    graph = naysay.neighbors.build(features, k=64)
    graph.indices, graph.distances          # (n, 64) int32 and float32, squared, nearest first

Distances are Euclidean between the rows as float32: the float64 sum of squared differences, rounded once to float32.
Columns of float64 or whole numbers that lie far from 0 lose their middle before they are rounded. Equal distances are
ordered by index. So an exact graph depends on the features alone: not on blocks, threads, or the device. A row is never
its own neighbour, and exact duplicates of a row are.
"""

import os
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from naysay.errors import InputError, unknown
from naysay.neighbors.foreign import from_arrays, from_csr
from naysay.neighbors.graph import Graph, check
from naysay.neighbors.rows import Rows, check_k, open_rows

__all__ = ["METHODS", "Graph", "build", "check", "from_arrays", "from_csr", "query"]

METHODS = ("auto", "exact", "approximate")
POOR = 0.95  # of recall, below which a warning says so
EXACT_UP_TO = 200_000  # rows: the exact graph of 512 columns then takes two cores about a minute (docs/PERFORMANCE.md)


def build(features: Any, k: int, method: str = "auto", metric: str = "euclidean") -> Graph:
    """The graph of the k nearest other rows of every row of `features` (n, d).

    features: an array, a tensor, or a memory-mapped `.npy` file, also one larger than memory (then approximate).
    A CUDA tensor is searched on its GPU, always exactly. The graph is where the features are.
    method: "exact"; "approximate" (the graph carries its recall in a sample); "auto", exact up to EXACT_UP_TO rows.
    metric: "euclidean", or "cosine": the Euclidean metric between rows scaled to length 1.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    rows = open_rows(features, metric).centred()
    check_k(k, len(rows) - 1, f"the number of other rows of {len(rows)}")
    device = rows.numbers.device
    if device.type == "cuda":
        if method == "approximate":
            raise InputError(
                f"The approximate search runs on a CPU; got features on {device}. "
                "Use method='exact', or features.cpu()."
            )
        from naysay.neighbors import exact_gpu

        return Graph(*exact_gpu.search(rows.read(), k), metric, "exact", 1.0)
    rows, on_disk = replace(rows, numbers=rows.numbers.cpu()), _is_large_file(features, rows)
    if method == "exact" and on_disk:
        raise InputError(
            f"The exact search needs the rows in memory; got a file of {_bytes(rows) / 2**30:.1f} GiB as float32, "
            "over a quarter of this machine's memory. Use method='approximate'."
        )
    if method == "exact" or (method == "auto" and not on_disk and len(rows) <= EXACT_UP_TO):
        from naysay.neighbors import exact_cpu

        return Graph(*exact_cpu.search(rows.read().numpy(), k), metric, "exact", 1.0).to(device)
    from naysay.neighbors import approximate

    indices, distances, recall = approximate.search(rows, k, on_disk=on_disk)
    if recall < POOR:
        warnings.warn(
            f"A sample shows that the approximate graph has {recall:.0%} of the nearest neighbours: "
            "these rows form few clusters. Use method='exact' if that is too few.",
            stacklevel=2,
        )
    return Graph(indices, distances, metric, "approximate", recall).to(device)


def query(features: Any, new: Any, k: int, metric: str = "euclidean") -> Graph:
    """The exact k nearest rows of `features` (n, d) to each row of `new` (m, d): a graph of m rows pointing into n."""
    rows = open_rows(features, metric).centred()
    asking = replace(open_rows(new, metric, "new"), centre=rows.centre)
    if rows.d != asking.d:
        raise InputError(f"new must have the {rows.d} columns that features has; got {asking.d}.")
    device = rows.numbers.device
    if device != asking.numbers.device:
        raise InputError(f"features and new must be on one device; got {device} and {asking.numbers.device}.")
    check_k(k, len(rows), "the number of rows of features")
    if device.type == "cuda":
        from naysay.neighbors import exact_gpu

        return Graph(*exact_gpu.search_among(rows.read(), asking.read(), k), metric, "exact", 1.0, len(rows))
    from naysay.neighbors import exact_cpu

    found = exact_cpu.search_among(rows.read().cpu().numpy(), asking.read().cpu().numpy(), k)
    return Graph(*found, metric, "exact", 1.0, len(rows)).to(device)


def _is_large_file(features: Any, rows: Rows) -> bool:
    """Whether the features are a memory map that would fill more than a quarter of the machine's memory."""
    if not isinstance(features, np.memmap):
        return False
    return _bytes(rows) > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 4


def _bytes(rows: Rows) -> int:
    return 4 * len(rows) * rows.d
