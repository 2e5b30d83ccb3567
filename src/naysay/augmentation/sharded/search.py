"""The neighbours of all rows, block by block: each job writes one block's part of the graph to the work folder.

The exact search compares every block with all blocks. The approximate one first finds centres on a sample, sorts every
block into lists, and finds out on a sample how many lists must be looked into; another sample, looked up in the
finished graph, gives the recall.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from naysay.augmentation.sharded import exact, lists
from naysay.augmentation.sharded.blocks import Block, take
from naysay.augmentation.sharded.crew import Crew
from naysay.augmentation.sharded.work import Work
from naysay.errors import InputError
from naysay.files import replacing
from naysay.neighbors import POOR, Graph
from naysay.neighbors.approximate import JUDGE, STEER
from naysay.neighbors.blocks import even_edges
from naysay.neighbors.proposals import find_centre
from naysay.seeds import stream

CENTRE_SAMPLE, GROUP = 4096, 4
SAMPLE, STEER_EVERY = STEER + JUDGE, 4  # rows whose true neighbours are found; every fourth steers, the others judge


def group(n: int, size: int) -> tuple[tuple[int, int], ...]:
    """n rows in groups of GROUP blocks of `size` rows: lists that are too short are slow to look into."""
    return tuple(pairwise(even_edges(n, GROUP * size).tolist()))


@dataclass(frozen=True)
class Search:
    """What a worker must know to find a block's neighbours; nprobe 0 is the exact search."""

    work: Work
    blocks: tuple[Block, ...]
    groups: tuple[tuple[int, int], ...]  # the rows first..last-1 that are in lists together
    centre: Any
    k: int
    metric: str
    nprobe: int = 0

    @property
    def n(self) -> int:
        """The number of all rows."""
        return self.blocks[-1].first + self.blocks[-1].rows

    def find(self, rows: Any, own: Any, first: int = 0) -> Graph:
        """The neighbours of the rows (m, d) with the numbers `own` (m,), beginning with the block `first`."""
        if not self.nprobe:
            # its own block first: the nearest are there, or as likely as elsewhere
            around = (*self.blocks[first:], *self.blocks[:first])
            return Graph(
                *exact.search_others(rows, own, around, self.centre, self.k), self.metric, "exact", 1.0, self.n
            )
        paths = [self.work.index(at) for at in range(len(self.groups))]
        centres = np.load(self.work.named("centres.npy"))
        found = lists.search(rows, own, self.blocks, paths, centres, self.centre, self.k, self.nprobe)
        return Graph(*found, self.metric, "approximate", None, self.n)


def find_neighbours(crew: Crew, plan: Search, *, method: str, nlist: int | None, nprobe: int | None) -> dict[str, Any]:
    """See that every block's part of the graph is in the work folder; the recall, and what the lists were."""
    sample = take(plan.blocks, draw(plan.n, CENTRE_SAMPLE, "sharded/centre"))
    plan = replace(plan, centre=find_centre(torch.from_numpy(sample)).numpy())
    about: dict[str, Any] = {"method": method, "recall": 1.0}
    if method == "approximate":
        chosen = nlist or lists.choose_nlist(plan.n)
        if not (nprobe or 1) <= chosen <= plan.n:
            raise InputError(
                f"nlist must be from nprobe to the {plan.n} rows there are; got nlist={chosen} and nprobe={nprobe}."
            )
        crew.finish(partial(find_centres, plan, chosen), [plan.work.named("centres.npy")], "finding centres")
        crew.finish(
            partial(index_group, plan),
            [plan.work.index(at) for at in range(len(plan.groups))],
            "sorting rows into lists",
        )
        asked, furthest = _truth(crew, plan)
        steer = np.arange(len(asked)) % STEER_EVERY == 0
        if nprobe is None:
            (nprobe,) = crew.each(
                partial(choose_nprobe, plan, chosen), [(asked[steer], furthest[steer])], "choosing how far to look"
            )
        plan, about = replace(plan, nprobe=nprobe), {**about, "nlist": chosen, "nprobe": nprobe}
    crew.finish(
        partial(search_block, plan), [plan.work.graph(at) for at in range(len(plan.blocks))], "finding neighbours"
    )
    if method == "approximate":
        judged = partial(judge_block, plan, asked[~steer], furthest[~steer])
        found = sum(crew.each(judged, range(len(plan.blocks)), "measuring recall"))
        about["recall"] = found / (int((~steer).sum()) * plan.k)
        if about["recall"] < POOR:
            warnings.warn(
                f"A sample shows that the approximate graph has {about['recall']:.0%} of the nearest neighbours. Look "
                "into more lists "
                f"(nprobe, now {nprobe}), or use method='exact' if that is too few.",
                stacklevel=5,
            )
    return about


def draw(n: int, wanted: int, name: str) -> Any:
    """`wanted` row numbers of n, or all, sorted: the same every time."""
    return np.sort(stream(0, name).choice(n, min(n, wanted), replace=False, shuffle=False))


def find_centres(plan: Search, nlist: int, _: int) -> None:
    """Find the lists' centres on a sample and keep them."""
    sample = take(plan.blocks, draw(plan.n, lists.SAMPLE_PER_LIST * nlist, "sharded/centres"))
    with replacing(plan.work.named("centres.npy")) as unfinished:
        np.save(unfinished, lists.find_centres(sample, nlist))


def index_group(plan: Search, at: int) -> None:
    """Sort some rows into the lists."""
    first, last = plan.groups[at]
    rows = take(plan.blocks, np.arange(first, last))
    lists.write_index(rows, first, np.load(plan.work.named("centres.npy")), plan.work.index(at))


def search_block(plan: Search, at: int) -> None:
    """Find a block's neighbours and keep them."""
    block = plan.blocks[at]
    plan.work.graph(at).parent.mkdir(parents=True, exist_ok=True)
    plan.find(block.read(), block.ids, at).save(plan.work.graph(at))


def bound_block(plan: Search, asked: Any, at: int) -> Any:
    """The squared distances (m, k + 1) from the asked rows to their nearest of one block, at most as many as it has."""
    block = plan.blocks[at]
    return exact.search(take(plan.blocks, asked), [block], plan.centre, min(plan.k + 1, block.rows))[1].numpy()


def choose_nprobe(plan: Search, nlist: int, sample: tuple[Any, Any]) -> int:
    """The least number of lists at which the sample (row numbers, true k-th distances) finds GOAL of its neighbours."""
    asked, furthest = sample
    rows = take(plan.blocks, asked)
    for nprobe in lists.PROBES:
        if nprobe >= nlist:
            return nlist
        found = replace(plan, nprobe=nprobe).find(rows, asked).distances.numpy()
        if float((found <= furthest[:, None]).mean()) >= lists.GOAL:
            break
    return nprobe


def judge_block(plan: Search, asked: Any, furthest: Any, at: int) -> int:
    """How many neighbours of the asked rows of one block are no further than the true k-th: equally near ones count."""
    block = plan.blocks[at]
    here = (asked >= block.first) & (asked < block.first + block.rows)
    distances = Graph.load(plan.work.graph(at)).distances.numpy()[asked[here] - block.first]
    return int((distances <= furthest[here, None]).sum())


def _truth(crew: Crew, plan: Search) -> tuple[Any, Any]:
    """The numbers (m,) of a sample of rows, and the true squared distance (m,) of each to its k-th neighbour."""
    asked, path = draw(plan.n, SAMPLE, "sharded/recall"), plan.work.named("truth.npy")
    if not path.exists():
        bounds: Sequence[Any] = crew.each(
            partial(bound_block, plan, asked), range(len(plan.blocks)), "looking at a sample"
        )
        # the row itself, at distance 0, is among the k + 1
        with replacing(path) as unfinished:
            np.save(unfinished, np.sort(np.concatenate(bounds, 1), 1)[:, plan.k])
    return asked, np.load(path)
