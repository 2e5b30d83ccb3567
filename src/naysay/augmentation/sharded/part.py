"""A worker's part of the propagation: some of the graph's rows in its memory, through which the labels of all rows pass
round by round.

A part is made from the work folder alone and keeps nothing from one round to the next, so it can be made anew where a
worker dies. The arithmetic of a row is that of `kernel_cpu`, whatever part it is in: the result does not depend on how
the rows are divided.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch

from naysay.augmentation import weights
from naysay.augmentation.sharded.blocks import File, read_run
from naysay.neighbors import Graph


@dataclass(frozen=True)
class Recipe:
    """What a part is made of: the rows first..last-1 of n, of the graph and the labels `comp` in these files.

    gamma: of weights by distance; None weighs by rank. alpha: the weight of a row's own labels.
    """

    n: int
    k: int
    classes: int
    alpha: float
    gamma: float | None
    graph: tuple[File, ...]
    comp: tuple[File, ...]
    first: int
    last: int


class Part:
    """The recipe's rows: their neighbours and weights, in an order in which neighbours come one after the other."""

    def __init__(self, recipe: Recipe) -> None:
        from naysay.augmentation import kernel_cpu

        self.recipe, m = recipe, recipe.last - recipe.first
        indices, damped, self.effective, self.nearest = _read_graph(recipe)
        # neighbours in other parts are left out of the walk: a row in their place has been seen
        here, mine = indices[:, : kernel_cpu.FOLLOWED] - recipe.first, np.arange(m, dtype=np.int32)[:, None]
        here = np.where((here >= 0) & (here < m), here, mine)
        self.order = kernel_cpu.compiled_depth_first(here, here.shape[1])
        self.indices = indices[self.order].view(np.uint32)
        if recipe.n <= 2**16:
            self.indices = self.indices.astype(np.uint16)
        self.weights = damped[self.order]
        width = kernel_cpu.padded(recipe.classes)
        self.shared = kernel_cpu.buffers(1, recipe.n, width)[0].numpy()
        self.own, self.out = (array.numpy() for array in kernel_cpu.buffers(2, m, width))
        given = torch.from_numpy(read_run(recipe.comp, recipe.first, recipe.last))
        self.own[:, : recipe.classes] = (given * recipe.alpha).numpy()[self.order]

    def step(self, *labels: Any) -> tuple[Any, float]:
        """The labels (m, K) of the part's rows after one more round, and their largest change; `labels` are all rows'
        blocks in order.
        """
        from naysay.augmentation import kernel_cpu

        recipe, threads = self.recipe, torch.get_num_threads()
        m, starts = recipe.last - recipe.first, accumulate(map(len, labels), initial=0)
        arrays = self.indices, self.weights, self.own, self.shared, self.out
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(self._receive, starts, labels))
            cuts = pairwise(m * cut // threads for cut in range(threads + 1))
            for part in [pool.submit(kernel_cpu.compiled_rows, *arrays, *cut) for cut in cuts]:
                part.result()
        new = np.empty((m, recipe.classes), np.float32)
        new[self.order] = self.out[:, : recipe.classes]
        return new, float(np.abs(new - self.shared[recipe.first : recipe.last, : recipe.classes]).max())

    def _receive(self, start: int, block: Any) -> None:
        """Put a block of labels where the kernel reads them: rows of whole vectors, one after the other."""
        self.shared[start : start + len(block), : self.recipe.classes] = block

    def spread(self) -> tuple[Any, Any]:
        """How many neighbours each row in effect listens to, and the squared distance to its nearest (m,)."""
        return self.effective, self.nearest


def _read_graph(recipe: Recipe) -> tuple[Any, Any, Any, Any]:
    """Indices and damped weights (m, k) of the rows, and of each its effective neighbours and its nearest distance
    (m,).
    """
    first, last, m = recipe.first, recipe.last, recipe.last - recipe.first
    indices, damped = np.empty((m, recipe.k), np.int32), np.empty((m, recipe.k), np.float32)
    effective, nearest = np.empty((2, m), np.float32)
    for path, start, rows in recipe.graph:
        if not (start < last and first < start + rows):
            continue
        found = Graph.load(path)
        some = slice(max(0, first - start), last - start)
        distances = found.distances[some]
        at = slice(max(0, start - first), max(0, start - first) + len(distances))
        W = (
            weights.by_rank(len(distances), recipe.k)
            if recipe.gamma is None
            else weights.by_distance(distances, recipe.gamma)
        )
        indices[at], damped[at] = found.indices[some].numpy(), (W * (1 - recipe.alpha)).numpy()
        effective[at], nearest[at] = weights.effective_neighbours(W).numpy(), distances[:, 0].numpy()
    return indices, damped, effective, nearest


def read_labels(files: Sequence[File], span: tuple[int, int]) -> Any:
    """The labels of the rows first..last-1, from files of all rows."""
    return read_run(files, *span)
