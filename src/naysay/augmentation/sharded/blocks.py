"""Row blocks: the unit of the search. A block is a run of rows of one shard, small enough for a worker to hold several
of.

A block's file is mapped, so workers of one machine share its pages, and nobody holds more of the features than it is
looking at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from naysay.neighbors.blocks import even_edges
from naysay.neighbors.rows import open_rows

BLOCK_BYTES = 2**26  # of features in a block, unless the number of rows is given


File = tuple[str, int, int]  # a `.npy` file, the number of its first row in the whole, and how many rows it has


@dataclass(frozen=True)
class Block:
    """The rows `first` to `first + rows - 1` of the whole, which are those from `at` on of the `.npy` file `path`."""

    path: str
    at: int
    first: int
    rows: int

    @property
    def ids(self) -> Any:
        """The row numbers (rows,) in the whole."""
        return np.arange(self.first, self.first + self.rows, dtype=np.int32)

    def read(self) -> Any:
        """The rows (rows, d) float32, mapped; they were looked at once, when the shards were prepared."""
        mapped = np.load(self.path, mmap_mode="r")[self.at : self.at + self.rows]
        return open_rows(mapped, "euclidean").numbers.numpy()


def rows_of_a_block(width: int, block_rows: int | None) -> int:
    """The most rows of a block of rows of `width` numbers: `block_rows`, or what BLOCK_BYTES hold."""
    return block_rows or max(1024, BLOCK_BYTES // (4 * width))


def cut(files: Sequence[File], width: int, block_rows: int | None) -> list[Block]:
    """Each file of rows of `width` numbers cut evenly into blocks of at most `block_rows`."""
    blocks = []
    for path, first, rows in files:
        edges = even_edges(rows, rows_of_a_block(width, block_rows)).tolist()
        blocks += [Block(path, start, first + start, stop - start) for start, stop in pairwise(edges)]
    return blocks


def read_run(files: Sequence[File], first: int, last: int) -> Any:
    """The rows first..last-1 of the whole from the `.npy` files that hold them, in memory."""
    holding = [(path, start) for path, start, rows in files if start < last and first < start + rows]
    return np.concatenate(
        [np.load(path, mmap_mode="r")[max(0, first - start) : last - start] for path, start in holding]
    )


def take(blocks: Sequence[Block], numbers: Any) -> Any:
    """The rows (m, d) of those numbers, which are sorted, from wherever they are."""
    edges = np.searchsorted(numbers, [block.first for block in blocks] + [blocks[-1].first + blocks[-1].rows])
    parts = [
        (block, numbers[start:stop])
        for block, start, stop in zip(blocks, edges, edges[1:], strict=False)
        if stop > start
    ]
    return np.concatenate([np.load(block.path, mmap_mode="r")[some - block.first + block.at] for block, some in parts])
