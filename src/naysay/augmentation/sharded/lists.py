"""Approximate neighbours by inverted lists (Jegou, Douze, Schmid 2011), as faiss has them: look only into the lists of
the nearest centres.

The centres are found once, on a sample. All rows are then sorted into the lists of the same centres, some blocks at a
time, in parallel, and kept as faiss indexes in files, which the search maps. A row's `nprobe` nearest centres are found
once for all files. What the lists propose is measured by the one formula of `naysay.neighbors`, in its order; only some
of the neighbours are not the nearest.

The rule for n rows: nlist is the power of two nearest to 4 sqrt(n), so that the centres and the rows of a list take
about as long to look at; nprobe is the least of PROBES at which a sample of some 300 rows finds GOAL of its neighbours.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay.augmentation.sharded import exact
from naysay.augmentation.sharded.blocks import Block
from naysay.errors import InputError
from naysay.files import replacing
from naysay.neighbors.exact_cpu import read_heaps

GOAL = 0.98
PROBES = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
SAMPLE_PER_LIST, STEPS = 40, 5  # rows that a centre is the mean of, at least about; and how often it is found anew
PART = 65_536  # rows added at once
SPARE = 8  # proposals beyond k: the row itself, and what float32 puts in the wrong order at the end


def library() -> Any:
    """The faiss module, using as many threads as torch does."""
    try:
        import faiss
    except ImportError as error:
        raise InputError(
            "the approximate search over shards needs faiss: pip install 'naysay[ray]', or use method='exact'."
        ) from error
    faiss.omp_set_num_threads(torch.get_num_threads())
    return faiss


def choose_nlist(n: int) -> int:
    """The number of lists for n rows, at least one and so many that a sample can be had."""
    return int(min(2 ** round(math.log2(4 * math.sqrt(n))), max(1, n // SAMPLE_PER_LIST)))


def find_centres(sample: Any, nlist: int) -> Any:
    """The centres (nlist, d) of a sample (m, d)."""
    most = 4 * SAMPLE_PER_LIST  # of a sample that is larger than was asked for
    means = library().Kmeans(
        sample.shape[1], nlist, niter=STEPS, seed=0, min_points_per_centroid=1, max_points_per_centroid=most
    )
    means.train(np.ascontiguousarray(sample))
    return means.centroids


def write_index(rows: Any, first: int, centres: Any, path: Path) -> None:
    """Rows (b, d), whose numbers in the whole begin at `first`, in the lists of the centres (nlist, d), as a faiss
    index in a file.
    """
    faiss = library()
    index = faiss.IndexIVFFlat(_quantizer(centres), centres.shape[1], len(centres))
    for start in range(0, len(rows), PART):
        part = rows[start : start + PART]
        index.add_with_ids(part, np.arange(first + start, first + start + len(part)))
    with replacing(path) as unfinished:
        faiss.write_index(index, str(unfinished))


def search(
    rows: Any,
    own: Any,
    blocks: Sequence[Block],
    indexes: Sequence[Path],
    centres: Any,
    centre: Any,
    k: int,
    nprobe: int,
) -> tuple[Tensor, Tensor]:
    """Row numbers and squared distances (m, k) of most of the k nearest other rows of each of the rows (m, d), whose
    numbers are `own`.
    """
    from naysay.augmentation.sharded import kernel
    from naysay.neighbors.kernels import EMPTY

    proposed = _propose(rows, indexes, centres, k + SPARE, nprobe)
    keys = np.full(proposed.shape, EMPTY)
    for block in blocks:
        kernel.measure(rows, own, proposed, block.read(), block.first, keys)
    keys.sort(axis=1)
    indices, squared = read_heaps(np.ascontiguousarray(keys[:, :k]), np.arange(len(rows)))
    short = np.flatnonzero(keys[:, k - 1] == EMPTY)
    if len(short):  # its lists held fewer than k rows
        indices[short], squared[short] = exact.search_others(rows[short], own[short], blocks, centre, k)
    return indices, squared


def _propose(rows: Any, indexes: Sequence[Path], centres: Any, wanted: int, nprobe: int) -> Any:
    """The numbers (m, wanted) of the rows that faiss finds nearest in the lists, in no order; -1 where there are not so
    many.
    """
    faiss = library()
    apart, lists = _quantizer(centres).search(rows, nprobe)
    # rows that ask the same lists one after the other, so that a list is in the cache when it is asked again
    order = np.argsort(lists[:, 0], kind="stable")
    asking, apart, lists = rows[order], apart[order], lists[order]
    best = faiss.ResultHeap(len(rows), wanted)
    for path in indexes:
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        index.nprobe = nprobe
        faiss.downcast_InvertedLists(index.invlists).prefetch_nthread = 0  # its pages come when they are read
        best.add_result(*index.search_preassigned(asking, wanted, lists, apart))
    proposed = np.empty_like(best.I)
    proposed[order] = best.I
    return proposed


def _quantizer(centres: Any) -> Any:
    flat = library().IndexFlatL2(centres.shape[1])
    flat.add(np.ascontiguousarray(centres))
    return flat
