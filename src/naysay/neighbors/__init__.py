"""Nearest neighbours: the graph of a set of rows, and the neighbours of new rows in an old set.

    graph = naysay.neighbors.build(features, k=64)
    graph.indices, graph.distances          # (n, 64) int32 and float32, squared, nearest first

Distances are Euclidean between the rows as float32: the float64 sum of squared differences, rounded once to float32.
Columns of float64 or whole numbers that lie far from 0 lose their middle before they are rounded, by cosine once the
rows have length 1 (`naysay.rounding`); a warning says where that does not help. Equal distances are ordered by index.
So an exact graph depends on the features alone: not on blocks, threads, or the device. A row is never its own
neighbour, and exact duplicates of a row are. A row of zeros has no neighbours by cosine, and is nobody's: in the places
that are left free distances are inf, and indices mean nothing.
"""

import os
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from naysay.errors import InputError, unknown
from naysay.neighbors.foreign import from_arrays, from_csr
from naysay.neighbors.gaps import with_gaps
from naysay.neighbors.graph import Graph, check
from naysay.neighbors.rows import Rows, check_k, open_rows, warn_if_rounded

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
    n = len(rows)
    check_k(k, n - 1, f"the number of other rows of {n}")
    rows = rows.directed()
    if rows.kept is None:
        return warn_if_rounded(_build(features, rows, k, method), rows, rows)
    found = _build(features, rows, min(k, len(rows) - 1), method) if len(rows) > 1 else None
    return with_gaps(found and warn_if_rounded(found, rows, rows), rows, rows, k)


def _build(features: Any, rows: Rows, k: int, method: str) -> Graph:
    """The graph of rows that can have neighbours."""
    device, metric = rows.numbers.device, "cosine" if rows.unit else "euclidean"
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
            stacklevel=3,
        )
    return Graph(indices, distances, metric, "approximate", recall).to(device)


def query(features: Any, new: Any, k: int, metric: str = "euclidean") -> Graph:
    """The exact k nearest rows of `features` (n, d) to each row of `new` (m, d): a graph of m rows pointing into n."""
    rows = open_rows(features, metric).centred()
    asking = replace(open_rows(new, metric, "new"), centre=rows.centre)
    if rows.d != asking.d:
        raise InputError(f"new must have the {rows.d} columns that features has; got {asking.d}.")
    if rows.numbers.device != asking.numbers.device:
        got = f"{rows.numbers.device} and {asking.numbers.device}"
        raise InputError(f"features and new must be on one device; got {got}.")
    check_k(k, len(rows), "the number of rows of features")
    rows, asking = rows.directed(), asking.directed()
    if rows.kept is None and asking.kept is None:
        return warn_if_rounded(_query(rows, asking, k), rows, asking)
    found = _query(rows, asking, min(k, len(rows))) if len(rows) and len(asking) else None
    return with_gaps(found and warn_if_rounded(found, rows, asking), rows, asking, k)


def _query(rows: Rows, asking: Rows, k: int) -> Graph:
    """The graph of rows that ask for their neighbours among others; all can have some."""
    device, metric = rows.numbers.device, "cosine" if rows.unit else "euclidean"
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
