"""One round of sharing on a GPU as a Triton kernel, and its rounds replayed from a CUDA graph.

Import this module only where it is used: it imports triton. Every thread owns one entry (row, class) of the result and
walks its row's neighbours, so that the threads of one row read a neighbour's labels side by side and its index
together. Labels are small enough to stay in the chip's cache; what a round must read is the indices and weights. A
round takes tens of microseconds, about what launching it from Python takes, so a pair of rounds (there and back between
two buffers) is captured once and replayed.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from naysay.augmentation.propagation import Rounds, Step

THREADS = 256


def _entries(
    indices: tl.tensor,
    weights: tl.tensor,
    own: tl.tensor,
    shared: tl.tensor,
    out: tl.tensor,
    entries: tl.tensor,
    CLASSES: tl.constexpr,
    NEIGHBORS: tl.constexpr,
    UNROLL: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """out = own + weights @ shared for BLOCK entries of (n, CLASSES), all row by row; (n, NEIGHBORS) weigh them."""
    entry = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = entry < entries
    row = entry // CLASSES
    column = entry % CLASSES
    total = tl.load(own + entry, mask=inside, other=0.0)
    edge = row * NEIGHBORS
    for first in range(0, NEIGHBORS, UNROLL):
        for step in tl.static_range(UNROLL):
            neighbor = tl.load(indices + edge + first + step, mask=inside, other=0).to(tl.int64)
            weight = tl.load(weights + edge + first + step, mask=inside, other=0.0)
            total += weight * tl.load(shared + neighbor * CLASSES + column, mask=inside, other=0.0)
    tl.store(out + entry, total, mask=inside)


_kernel = triton.jit(_entries)


def step_of(indices: Tensor, weights: Tensor, own: Tensor) -> Step:
    """The step of `iterate`: indices and weights (n, k), own (n, K), all contiguous on one device."""
    classes, neighbors = own.shape[1], indices.shape[1]
    grid = (triton.cdiv(own.numel(), THREADS),)

    def step(shared: Tensor, out: Tensor) -> None:
        _kernel[grid](
            indices, weights, own, shared, out, own.numel(),
            CLASSES=classes, NEIGHBORS=neighbors, UNROLL=math.gcd(neighbors, 8), BLOCK=THREADS, num_warps=THREADS // 32,
        )  # fmt: skip

    return step


def replay(step: Step, shared: Tensor, spare: Tensor, rounds: int) -> Rounds:
    """What `iterate` does without a tolerance, with all but the first rounds replayed from a captured pair."""
    pairs, odd = divmod(rounds, 2)
    with torch.cuda.device(shared.device):
        if pairs:
            # the first pair runs outside the capture because it compiles the kernel
            _pair(step, shared, spare)
        if pairs > 1:
            graph = torch.cuda.CUDAGraph()
            # thread_local: what other threads do on the device meanwhile is their own affair
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                _pair(step, shared, spare)
            for _ in range(pairs - 1):
                graph.replay()
            # the graph is dropped on the way out, and must outlive its replays
            torch.cuda.current_stream().synchronize()
        if odd:
            step(shared, spare)
            return spare, shared, rounds
    return shared, spare, rounds


def _pair(step: Step, shared: Tensor, spare: Tensor) -> None:
    step(shared, spare)
    step(spare, shared)
