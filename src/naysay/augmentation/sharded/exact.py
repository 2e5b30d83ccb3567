"""Exact neighbours of some rows among the rows of all blocks, one block in memory at a time.

It is the search of `naysay.neighbors` for new rows (`exact_cpu.ask`), with one set of heaps that goes from block to
block: what a row has found so far bounds what the next blocks can offer. Keys hold the distance and the row's number in
the whole, so the tie rule is that of the whole, and the result is bit for bit what one machine finds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay.augmentation.sharded.blocks import Block
from naysay.neighbors.exact_cpu import ask, make_side, read_heaps
from naysay.neighbors.proposals import choose, encode


def search(rows: Any, blocks: Sequence[Block], centre: Any, k: int) -> tuple[Tensor, Tensor]:
    """Row numbers and squared distances (m, k) of the k nearest rows of the blocks to each of the float32 rows (m, d).

    centre: a point (d,) amid all rows; it changes how long the search takes and not what it finds.
    """
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
    return without(own, *search(rows, blocks, centre, k + 1))


def without(own: Any, indices: Tensor, squared: Tensor) -> tuple[Tensor, Tensor]:
    """Neighbours (m, k) from k + 1 of which one may be the row itself, whose number is in `own` (m,)."""
    itself = indices == torch.from_numpy(own)[:, None]
    # among many duplicates a row may not be one of its own k + 1 nearest: then the last goes
    itself[:, -1] |= ~itself.any(1)
    return indices[~itself].view(len(own), -1), squared[~itself].view(len(own), -1)
