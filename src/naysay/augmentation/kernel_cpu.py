"""One round of sharing on a CPU: each row's weighted sum of its neighbours' rows, in vector registers, on all cores.

Import this module only where it is used: it imports numba. What makes it fast, each measured (docs/PERFORMANCE.md):

- The sum over neighbours is written as LLVM vector code. Left to numba, a short loop of fixed length is unrolled before
  the vectoriser sees it and then runs one number at a time, two to four times slower.
- Rows are visited neighbour after neighbour (`depth_first`): what a row reads was mostly read before, and is cached.
- A round is bound by the bytes it reads, so row numbers take 16 bits where that is enough, labels are padded no more
  than whole vectors ask for, and all of it is allocated by numpy, which asks for huge pages.

Threads are Python's, each inside a kernel that has let go of the interpreter: unlike OpenMP's they survive a fork, and
they obey torch.set_num_threads.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numba
import numpy as np
import torch
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from torch import Tensor

from naysay.augmentation.propagation import Rounds, Step

CACHE_LINE = 64
ROWS_PER_THREAD = 1024
FOLLOWED = 8

compiled: Callable[[Any], Any] = numba.njit(nogil=True, cache=True)


def _weighted_sum(lanes: int) -> Any:
    """A function (indices, weights, own, shared, out, row, column) for compiled code, that does for `lanes` columns

    out[row, column:] = own[row, column:] + sum over j of weights[row, j] * shared[indices[row, j], column:]
    """
    vector, numbers = ir.VectorType(ir.FloatType(), lanes), ir.VectorType(ir.IntType(32), lanes)
    undefined, first_lane = ir.Constant(vector, ir.Undefined), ir.Constant(numbers, [0] * lanes)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        int64 = ir.IntType(64)
        given = zip(signature.args[:5], values[:5], strict=True)
        arrays = [context.make_array(kind)(context, builder, value) for kind, value in given]
        indices, weights, own, shared, out = (array.data for array in arrays)
        k, width = (builder.extract_value(arrays[at].shape, 1) for at in (0, 3))
        row, column = values[5:]
        edges, here = builder.mul(row, k), builder.add(builder.mul(row, width), column)

        def labels(array: Any, at: Any) -> Any:
            return builder.bitcast(builder.gep(array, [at]), vector.as_pointer())

        start, before = builder.load(labels(own, here), align=4), builder.block
        loop, done = builder.append_basic_block("neighbours"), builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        j, total = builder.phi(int64), builder.phi(vector)
        edge = builder.add(edges, j)
        neighbor = builder.zext(builder.load(builder.gep(indices, [edge])), int64)
        theirs = builder.load(labels(shared, builder.add(builder.mul(neighbor, width), column)), align=4)
        weight = builder.insert_element(undefined, builder.load(builder.gep(weights, [edge])), ir.IntType(32)(0))
        share = builder.fmul(builder.shuffle_vector(weight, undefined, first_lane), theirs, flags=("contract",))
        added, following = builder.fadd(total, share, flags=("contract",)), builder.add(j, int64(1))
        j.add_incoming(int64(0), before)
        j.add_incoming(following, loop)
        total.add_incoming(start, before)
        total.add_incoming(added, loop)
        builder.cbranch(builder.icmp_signed("<", following, k), loop, done)
        builder.position_at_end(done)
        builder.store(added, labels(out, here), align=4)
        return context.get_dummy_value()

    # numba reads the names of these arguments and calls it with their types, which say how wide a row number is
    def typed(context: Any, indices: Any, weights: Any, own: Any, shared: Any, out: Any, row: Any, column: Any) -> Any:
        return types.void(indices, weights, own, shared, out, types.intp, types.intp), generate

    return intrinsic(typed)


sum_of_16, sum_of_4 = _weighted_sum(16), _weighted_sum(4)


@compiled
def run_some(indices: Any, weights: Any, own: Any, shared: Any, out: Any, first: int, last: int) -> None:
    """One round for the rows first..last-1: out = own + weights @ shared; labels are `padded` wide."""
    width = shared.shape[1]
    for row in range(first, last):
        for column in range(0, width - 15, 16):
            sum_of_16(indices, weights, own, shared, out, row, column)
        if width % 16:
            sum_of_4(indices, weights, own, shared, out, row, width - 4)


def padded(classes: int) -> int:
    """The number of columns for K classes: whole vectors of 16, and one of 4 where that is enough for the rest."""
    return -(-classes // 4) * 4 if 0 < classes % 16 <= 4 else -(-classes // 16) * 16


@compiled
def depth_first(indices: Any, followed: int) -> Any:
    """All rows in the order of a walk from each row to the nearest of its first `followed` neighbours not yet seen."""
    n = indices.shape[0]
    seen = np.zeros(n, dtype=np.bool_)
    order = np.empty(n, dtype=np.int32)
    waiting = np.empty(n * followed + 1, dtype=np.int32)
    visited = 0
    for root in range(n):
        waiting[0], left = root, 1
        while left > 0:
            left -= 1
            row = waiting[left]
            if seen[row]:
                continue
            seen[row], order[visited] = True, row
            visited += 1
            for j in range(followed - 1, -1, -1):
                if not seen[indices[row, j]]:
                    waiting[left] = indices[row, j]
                    left += 1
    return order


def run_rows(pool: ThreadPoolExecutor, threads: int, n: int, *arrays: Any) -> None:
    """One round for all n rows of the arrays of `run_some`, divided evenly among so many threads of the pool."""
    cuts = [n * part // threads for part in range(threads + 1)]
    list(pool.map(partial(run_some, *arrays), cuts[:-1], cuts[1:]))


def run(
    indices: Tensor, weights: Tensor, given: Tensor, alpha: float, iterate: Callable[[Step, Tensor, Tensor], Rounds]
) -> Rounds:
    """The rounds of `iterate` over rows in walking order; labels go in and come out (n, K) in the order given."""
    (n, classes), k = given.shape, indices.shape[1]
    order = torch.from_numpy(depth_first(indices.numpy(), min(FOLLOWED, k)))
    place = torch.empty_like(order).scatter_(0, order.long(), torch.arange(n, dtype=torch.int32, device=order.device))
    # indices are moved and renumbered; plain numpy arrays, for their huge pages
    walked = place.numpy()[indices.numpy()[order.numpy()]].astype(np.uint16 if n <= 2**16 else np.uint32)
    own, shared, spare = buffers(3, n, padded(classes))
    shared[:, :classes] = given.index_select(0, order)
    torch.mul(shared, alpha, out=own)
    fixed = walked, weights.numpy()[order.numpy()], own.numpy()
    threads = max(1, min(torch.get_num_threads(), n // ROWS_PER_THREAD))
    with ThreadPoolExecutor(threads) as pool:

        def step(source: Tensor, out: Tensor) -> None:
            run_rows(pool, threads, n, *fixed, source.numpy(), out.numpy())

        last, before, done = iterate(step, shared, spare)
    return last[:, :classes].index_select(0, place), before[:, :classes].index_select(0, place), done


def buffers(count: int, n: int, width: int) -> Tensor:
    """Zeros (count, n, width) float32 that start on a cache line."""
    size = count * n * width
    memory = np.zeros(size + CACHE_LINE // 4, dtype=np.float32)
    start = -memory.ctypes.data % CACHE_LINE // 4
    return torch.from_numpy(memory[start : start + size].reshape(count, n, width))
