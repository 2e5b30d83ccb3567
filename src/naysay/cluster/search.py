"""The neighbours of all rows, block by block: each job writes one block's part of the graph to the work folder.

The exact search compares every block with all blocks, one in memory at a time. It is the search of `naysay.neighbors`
for new rows (`exact_cpu.ask`), with one set of heaps that goes from block to block: what a row has found so far bounds
what the next blocks can offer. Keys hold the distance and the row's number in the whole, so the tie rule is that of the
whole, and the result is bit for bit what one machine finds.

The approximate search uses inverted lists (Jegou, Douze, Schmid 2011), as faiss has them: it looks only into the lists
of the nearest centres. These are found once, on a sample. All rows are sorted into their lists, some blocks at a time,
in parallel, and kept as faiss indexes in files, which the search maps. A row's `nprobe` nearest centres are found once
for all files. What the lists propose is measured by the one formula of `naysay.neighbors`, in its order.

The rule for n rows: nlist is the power of two nearest to 4 sqrt(n), so that the centres and the rows of a list take
about as long to look at; nprobe is the least of PROBES at which a sample of some 300 rows finds GOAL of its neighbours.
Another sample, looked up in the finished graph, gives the recall.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay.cluster.connection import Crew
from naysay.cluster.folders import Work, save
from naysay.cluster.prepare import Block, take
from naysay.errors import InputError
from naysay.files import replacing
from naysay.neighbors import POOR, Graph
from naysay.neighbors.approximate import JUDGE, STEER
from naysay.neighbors.blocks import even_edges
from naysay.neighbors.exact_cpu import ask, make_side, read_heaps
from naysay.neighbors.proposals import choose, encode, find_centre
from naysay.neighbors.rows import APART
from naysay.seeds import stream

CENTRE_SAMPLE, GROUP = 4096, 4
SAMPLE, STEER_EVERY = STEER + JUDGE, 4  # rows whose true neighbours are found; every fourth steers, the others judge
GOAL = 0.98
PROBES = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
SAMPLE_PER_LIST, STEPS = 40, 5  # rows that a centre is the mean of, at least about; and how often it is found anew
ADDED = 65_536  # rows sorted into lists at once
SPARE = 8  # proposals beyond k: the row itself, and what float32 puts in the wrong order at the end


@dataclass(frozen=True)
class Search:
    """What a worker must know to find a block's neighbours; nprobe 0 is the exact search."""

    work: Work
    blocks: tuple[Block, ...]
    groups: tuple[tuple[int, int], ...]  # the rows first..last-1 that are in lists together
    centre: Any  # a point (d,) amid all rows; it changes how long the exact search takes and not what it finds
    k: int
    metric: str
    nprobe: int = 0

    @property
    def n(self) -> int:
        return self.blocks[-1].first + self.blocks[-1].rows

    def find(self, rows: Any, own: Any, first: int = 0) -> Graph:
        """The neighbours of the rows (m, d) with the numbers `own` (m,), beginning with the block `first`."""
        if self.nprobe:
            return Graph(*search_lists(self, rows, own), self.metric, "approximate", None, self.n)
        # its own block first: the nearest are there, or as likely as elsewhere
        around = (*self.blocks[first:], *self.blocks[:first])
        return Graph(*search_others(rows, own, around, self.centre, self.k), self.metric, "exact", 1.0, self.n)


def find_neighbors(crew: Crew, plan: Search, *, method: str, nlist: int | None, nprobe: int | None) -> dict[str, Any]:
    """See that every block's part of the graph is in the work folder; the recall, and what the lists were."""
    sample = take(plan.blocks, draw(plan.n, CENTRE_SAMPLE, "sharded/centre"))
    plan = replace(plan, centre=find_centre(torch.from_numpy(sample)).numpy())
    parts = [plan.work.graph(at) for at in range(len(plan.blocks))]
    if method == "exact":
        crew.finish(partial(search_block, plan), parts, "finding neighbours")
        return {"method": method, "recall": 1.0}
    nlist = nlist or choose_nlist(plan.n)
    if not (nprobe or 1) <= nlist <= plan.n:
        got = f"nlist={nlist} and nprobe={nprobe}"
        raise InputError(f"nlist must be from nprobe to the {plan.n} rows there are; got {got}.")
    crew.finish(partial(find_centres, plan, nlist), [plan.work.named("centres.npy")], "finding centres")
    indexes = [plan.work.index(at) for at in range(len(plan.groups))]
    crew.finish(partial(index_group, plan), indexes, "sorting rows into lists")
    asked, furthest = _truth(crew, plan)
    steer = np.arange(len(asked)) % STEER_EVERY == 0
    if nprobe is None:
        samples = [(asked[steer], furthest[steer])]
        (nprobe,) = crew.each(partial(choose_nprobe, plan, nlist), samples, "choosing how far to look")
    plan = replace(plan, nprobe=nprobe)
    crew.finish(partial(search_block, plan), parts, "finding neighbours")
    judged = partial(judge_block, plan, asked[~steer], furthest[~steer])
    found = sum(crew.each(judged, range(len(plan.blocks)), "measuring recall"))
    recall = found / (int((~steer).sum()) * plan.k)
    if recall < POOR:
        warnings.warn(
            f"A sample shows that the approximate graph has {recall:.0%} of the nearest neighbours. Look into more "
            f"lists (nprobe, now {nprobe}), or use method='exact' if that is too few.",
            stacklevel=5,
        )
    return {"method": method, "recall": recall, "nlist": nlist, "nprobe": nprobe}


def group(n: int, size: int) -> tuple[tuple[int, int], ...]:
    """n rows in groups of GROUP blocks of `size` rows: lists that are too short are slow to look into."""
    return tuple(pairwise(even_edges(n, GROUP * size).tolist()))


def draw(n: int, wanted: int, name: str) -> Any:
    """`wanted` row numbers of n, or all, sorted: the same every time."""
    return np.sort(stream(0, name).choice(n, min(n, wanted), replace=False, shuffle=False))


def search_block(plan: Search, at: int) -> None:
    block = plan.blocks[at]
    plan.work.graph(at).parent.mkdir(parents=True, exist_ok=True)
    rows = block.read()
    found = plan.find(rows, block.ids, at)
    if plan.metric == "cosine":  # a row of zeros has no neighbours, and is nobody's
        nowhere = torch.from_numpy(rows[:, :1] == APART) | (found.distances > (APART - 2) ** 2 - 1)
        found = replace(found, distances=found.distances.masked_fill(nowhere, torch.inf))
    found.save(plan.work.graph(at))


def search_all(rows: Any, blocks: Sequence[Block], centre: Any, k: int) -> tuple[Tensor, Tensor]:
    """Row numbers and squared distances (m, k) of the blocks' k nearest rows to each of the float32 rows (m, d)."""
    dtype = choose(rows.shape[1])
    codes = encode(rows, centre, dtype)
    asking = make_side(rows, np.arange(len(rows)), codes, k)
    for block in blocks:
        theirs = block.read()
        their_codes = encode(theirs, centre, dtype)
        ask(asking, codes, make_side(theirs, block.ids, their_codes, 1), their_codes)
    return read_heaps(asking.heaps, np.arange(len(rows)))


def search_others(rows: Any, own: Any, blocks: Sequence[Block], centre: Any, k: int) -> tuple[Tensor, Tensor]:
    """The same among all rows but each one itself, whose number is in `own` (m,)."""
    indices, squared = search_all(rows, blocks, centre, k + 1)
    itself = indices == torch.from_numpy(own)[:, None]
    # among many duplicates a row may not be one of its own k + 1 nearest: then the last goes
    itself[:, -1] |= ~itself.any(1)
    return indices[~itself].view(len(own), -1), squared[~itself].view(len(own), -1)


def library() -> Any:
    """The faiss module, using as many threads as torch does."""
    try:
        import faiss
    except ImportError as error:
        way_out = "pip install 'naysay[ray]', or use method='exact'."
        raise InputError(f"the approximate search over shards needs faiss: {way_out}") from error
    faiss.omp_set_num_threads(torch.get_num_threads())
    return faiss


def choose_nlist(n: int) -> int:
    """The number of lists for n rows, at least one and so many that a sample can be had."""
    return int(min(2 ** round(math.log2(4 * math.sqrt(n))), max(1, n // SAMPLE_PER_LIST)))


def find_centres(plan: Search, nlist: int, _: int) -> None:
    """Find the lists' centres (nlist, d) on a sample and keep them."""
    sample = take(plan.blocks, draw(plan.n, SAMPLE_PER_LIST * nlist, "sharded/centres"))
    # at most: of a sample that is larger than was asked for
    points = {"min_points_per_centroid": 1, "max_points_per_centroid": 4 * SAMPLE_PER_LIST}
    means = library().Kmeans(sample.shape[1], nlist, niter=STEPS, seed=0, **points)
    means.train(np.ascontiguousarray(sample))
    save(plan.work.named("centres.npy"), means.centroids)


def index_group(plan: Search, at: int) -> None:
    """Sort some rows into the lists of the centres, as a faiss index in a file."""
    faiss, (first, last) = library(), plan.groups[at]
    rows, centres = take(plan.blocks, np.arange(first, last)), np.load(plan.work.named("centres.npy"))
    index = faiss.IndexIVFFlat(_quantizer(centres), centres.shape[1], len(centres))
    for start in range(0, len(rows), ADDED):
        part = rows[start : start + ADDED]
        index.add_with_ids(part, np.arange(first + start, first + start + len(part)))
    with replacing(plan.work.index(at)) as unfinished:
        faiss.write_index(index, str(unfinished))


def search_lists(plan: Search, rows: Any, own: Any) -> tuple[Tensor, Tensor]:
    """Numbers and squared distances (m, k) of most of the k nearest other rows of the rows (m, d) numbered `own`."""
    from naysay.neighbors.kernels import EMPTY, measure

    proposed = _propose(plan, rows)
    keys = np.full(proposed.shape, EMPTY)
    for block in plan.blocks:
        measure(rows, own, proposed, block.read(), block.first, keys)
    keys.sort(axis=1)
    indices, squared = read_heaps(np.ascontiguousarray(keys[:, : plan.k]), np.arange(len(rows)))
    short = np.flatnonzero(keys[:, plan.k - 1] == EMPTY)
    if len(short):  # its lists held fewer than k rows
        indices[short], squared[short] = search_others(rows[short], own[short], plan.blocks, plan.centre, plan.k)
    return indices, squared


def _propose(plan: Search, rows: Any) -> Any:
    """The numbers (m, k + SPARE) of the rows that faiss finds nearest in the lists, unordered; -1 is none."""
    faiss, wanted = library(), plan.k + SPARE
    apart, lists = _quantizer(np.load(plan.work.named("centres.npy"))).search(rows, plan.nprobe)
    # rows that ask the same lists one after the other, so that a list is in the cache when it is asked again
    order = np.argsort(lists[:, 0], kind="stable")
    asking, apart, lists = rows[order], apart[order], lists[order]
    best = faiss.ResultHeap(len(rows), wanted)
    for at in range(len(plan.groups)):
        index = faiss.read_index(str(plan.work.index(at)), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        index.nprobe = plan.nprobe
        faiss.downcast_InvertedLists(index.invlists).prefetch_nthread = 0  # its pages come when they are read
        best.add_result(*index.search_preassigned(asking, wanted, lists, apart))
    proposed = np.empty_like(best.I)
    proposed[order] = best.I
    return proposed


def _quantizer(centres: Any) -> Any:
    flat = library().IndexFlatL2(centres.shape[1])
    flat.add(np.ascontiguousarray(centres))
    return flat


def _truth(crew: Crew, plan: Search) -> tuple[Any, Any]:
    """The numbers (m,) of a sample of rows, and the true squared distance (m,) of each to its k-th neighbour."""
    asked, path = draw(plan.n, SAMPLE, "sharded/recall"), plan.work.named("truth.npy")
    if not path.exists():
        bounds = crew.each(partial(bound_block, plan, asked), range(len(plan.blocks)), "looking at a sample")
        # the row itself, at distance 0, is among the k + 1
        save(path, np.sort(np.concatenate(bounds, 1), 1)[:, plan.k])
    return asked, np.load(path)


def bound_block(plan: Search, asked: Any, at: int) -> Any:
    """The squared distances (m, k + 1) from the asked rows to their nearest of one block, at most as many as it has."""
    block = plan.blocks[at]
    return search_all(take(plan.blocks, asked), [block], plan.centre, min(plan.k + 1, block.rows))[1].numpy()


def choose_nprobe(plan: Search, nlist: int, sample: tuple[Any, Any]) -> int:
    """The least number of lists at which the sample (row numbers, true k-th distances) finds GOAL of its neighbours."""
    asked, furthest = sample
    rows = take(plan.blocks, asked)
    for nprobe in PROBES:
        if nprobe >= nlist:
            return nlist
        found = replace(plan, nprobe=nprobe).find(rows, asked).distances.numpy()
        if float((found <= furthest[:, None]).mean()) >= GOAL:
            break
    return nprobe


def judge_block(plan: Search, asked: Any, furthest: Any, at: int) -> int:
    """How many neighbours of the asked rows of one block are no further than the true k-th: equally near ones count.

    A place that stays free because there is no neighbour is rightly free.
    """
    block = plan.blocks[at]
    here = (asked >= block.first) & (asked < block.first + block.rows)
    distances = Graph.load(plan.work.graph(at)).distances.numpy()[asked[here] - block.first]
    return int(((distances <= furthest[here, None]) | np.isinf(distances)).sum())
