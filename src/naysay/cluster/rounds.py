"""Propagation by rounds: every worker holds a part of the graph, and the labels of all rows pass through it.

In a round each part reads the blocks of labels of all rows from Ray's object store, by reference and without a copy
where they are on its machine, and gives its own new block. When the next round is there nobody refers to the old blocks
any more, and Ray frees them: about two rounds of labels are in the store at a time. (If they don't fit, Ray writes the
oldest to disk and reads them again: slow, and right.) Every few rounds the blocks are written to the work folder; a run
that was killed goes on from there.

A part is made from the work folder alone and keeps nothing from one round to the next, so it can be made anew where a
worker dies. The arithmetic of a row is that of `kernel_cpu`: the result does not depend on how the rows are divided.
"""

import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from naysay.augmentation.schemes import Sharing, get
from naysay.augmentation.weights import effective_neighbors
from naysay.cluster.connection import Crew
from naysay.cluster.folders import File, Work, save
from naysay.cluster.prepare import read_run
from naysay.neighbors import Graph
from naysay.progress import track

STATE = "rounds.json"


@dataclass(frozen=True)
class Recipe:
    """What a part is made of: the rows first..last-1 of n, of the graph and the labels `comp` in these files.

    gamma: of the scheme's weights, None where it uses none. alpha: the weight of a row's own labels.
    """

    n: int
    k: int
    classes: int
    scheme: str
    alpha: float
    gamma: float | None
    graph: tuple[File, ...]
    comp: tuple[File, ...]
    first: int
    last: int


@dataclass(frozen=True)
class Rounds:
    """The labels after the last round, in files; the rounds done, the largest change in the last, the seconds of each.

    effective, spread: of each row (n,), from the weights and the graph.
    """

    files: Sequence[File]
    done: int
    change: float
    seconds: list[float]
    effective: Any
    spread: Any


def share_labels(ray: Any, crew: Crew, work: Work, whole: Recipe, sharing: Sharing, checkpoint_every: int) -> Rounds:
    """Run the rounds over the rows of the recipe `whole`, divided among the crew, from the last that was kept."""
    rounds, tol, team = sharing.total, sharing.tol, crew.workers[: whole.n]
    spans = list(pairwise(np.linspace(0, whole.n, len(team) + 1).round().astype(int).tolist()))
    recipes = [ray.put(replace(whole, first=first, last=last)) for first, last in spans]
    duties = list(zip(team, recipes, strict=True))
    with crew.timed("loading the graph"):
        heard = ray.get([worker.call.remote(hear, recipe) for worker, recipe in duties])
    state = work.read(STATE) or {"round": 0, "change": 0.0, "files": whole.comp}
    labels = [worker.call.remote(read_run, state["files"], *span) for worker, span in zip(team, spans, strict=True)]
    seconds = []
    with crew.timed("sharing labels"):
        left = range(0) if _converged(state, tol) else range(state["round"] + 1, rounds + 1)
        for done in track(left, len(left), "sharing labels"):
            start = time.perf_counter()
            news = [worker.call.options(num_returns=2).remote(step, recipe, *labels) for worker, recipe in duties]
            state |= {"round": done, "change": max(ray.get([change for _, change in news]))}
            labels = [block for block, _ in news]
            seconds.append(time.perf_counter() - start)
            if _converged(state, tol) or done == rounds or done % checkpoint_every == 0:
                paths = [str(work.labels(done, at)) for at in range(len(team))]
                keeping = zip(team, paths, labels, strict=True)
                kept = [worker.do.remote(partial(save, Path(path)), block) for worker, path, block in keeping]
                for _, peak in ray.get(kept):
                    crew.note(peak)
                state["files"] = [(path, first, last - first) for path, (first, last) in zip(paths, spans, strict=True)]
                work.write(STATE, state)
                for folder in {*work.named("labels").iterdir()} - {work.named("labels") / str(done)}:
                    shutil.rmtree(folder)
            if _converged(state, tol):
                break
    effective, spread = (np.concatenate(parts) for parts in zip(*heard, strict=True))
    return Rounds(state["files"], state["round"], state["change"], seconds, effective, spread)


def _converged(state: dict[str, Any], tol: float | None) -> bool:
    return tol is not None and state["round"] > 0 and state["change"] <= tol


def hear(recipe: Recipe) -> tuple[Any, Any]:
    """How many neighbours each row of a part in effect listens to, and its last distance less its first (m,)."""
    part = _made(recipe)
    return part.effective, part.spread


def step(recipe: Recipe, *labels: Any) -> tuple[Any, float]:
    """The new labels (m, K) of a part's rows and their largest change, from `labels`: all rows' blocks in order."""
    return _made(recipe).step(labels)


class Part:
    """The recipe's rows: their neighbours and weights, in an order in which neighbours come one after the other."""

    def __init__(self, recipe: Recipe) -> None:
        from naysay.augmentation import kernel_cpu

        self.recipe, m = recipe, recipe.last - recipe.first
        indices, damped, self.effective, self.spread = _read_graph(recipe)
        # neighbours in other parts are left out of the walk: a row in their place has been seen
        here, mine = indices[:, : kernel_cpu.FOLLOWED] - recipe.first, np.arange(m, dtype=np.int32)[:, None]
        here = np.where((here >= 0) & (here < m), here, mine)
        self.order = kernel_cpu.depth_first(here, here.shape[1])
        self.indices = indices[self.order].view(np.uint32)
        if recipe.n <= 2**16:
            self.indices = self.indices.astype(np.uint16)
        self.weights = damped[self.order]
        width = kernel_cpu.padded(recipe.classes)
        self.shared = kernel_cpu.buffers(1, recipe.n, width)[0].numpy()
        self.own, self.out = (array.numpy() for array in kernel_cpu.buffers(2, m, width))
        given = torch.from_numpy(read_run(recipe.comp, recipe.first, recipe.last))
        self.own[:, : recipe.classes] = (given * recipe.alpha).numpy()[self.order]

    def step(self, labels: Sequence[Any]) -> tuple[Any, float]:
        from naysay.augmentation import kernel_cpu

        recipe, threads = self.recipe, torch.get_num_threads()
        m, starts = recipe.last - recipe.first, accumulate(map(len, labels), initial=0)
        arrays = self.indices, self.weights, self.own, self.shared, self.out

        def receive(start: int, block: Any) -> None:  # rows of whole vectors, one after the other, for the kernel
            self.shared[start : start + len(block), : recipe.classes] = block

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(receive, starts, labels))
            kernel_cpu.run_rows(pool, threads, m, *arrays)
        new = np.empty((m, recipe.classes), np.float32)
        new[self.order] = self.out[:, : recipe.classes]
        return new, float(np.abs(new - self.shared[recipe.first : recipe.last, : recipe.classes]).max())


# a worker keeps the part that it last shared labels over
_made = lru_cache(maxsize=1)(Part)


def _read_graph(recipe: Recipe) -> tuple[Any, Any, Any, Any]:
    """Indices and damped weights (m, k) of the rows; of each its effective neighbours and its spread (m,)."""
    first, last, m = recipe.first, recipe.last, recipe.last - recipe.first
    indices, damped = np.empty((m, recipe.k), np.int32), np.empty((m, recipe.k), np.float32)
    effective, spread = np.empty((2, m), np.float32)
    weigh = get(recipe.scheme).weigh
    assert weigh is not None, "a scheme that shares nothing has no rounds"
    for path, start, rows in recipe.graph:
        if not (start < last and first < start + rows):
            continue
        found = Graph.load(path)
        some = slice(max(0, first - start), last - start)
        distances = found.distances[some]
        at = slice(max(0, start - first), max(0, start - first) + len(distances))
        W = weigh(distances, recipe.gamma)
        indices[at], damped[at] = found.indices[some].numpy(), (W * (1 - recipe.alpha)).numpy()
        effective[at] = effective_neighbors(W).numpy()
        spread[at] = (distances[:, -1] - distances[:, 0]).numpy()
    return indices, damped, effective, spread
