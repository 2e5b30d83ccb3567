"""Cheap matrix products that propose neighbours and provably miss none.

Each row x is replaced by a code: x - c = s q + r, with one centre c for all rows, a scale s, q of small numbers, and
the length of the residual rho >= |r| computed from the row itself. Moving two points by r_i and r_j changes their
distance by at most |r_i| + |r_j|, so

    | |x_i - x_j| - |s_i q_i - s_j q_j| |  <=  rho_i + rho_j                                    (1)

and a row j that lies within t of row i satisfies |s_i q_i - s_j q_j|^2 <= (t + rho_i + rho_j)^2,
which with h = |s q|^2 / 2 reads

    s_i s_j <q_i, q_j> - h_j  >=  h_i - (t + rho_i + rho_j)^2 / 2                               (2)

The left side is what a matrix product gives. With t an upper bound of the distance to the k-th neighbour (the k-th
nearest found so far), the columns that fail (2) need not be measured, and those that pass are measured exactly. The
centre changes nothing in (1), and shortens the rows, hence the residuals.

Roundings. Evaluating (2) in float32 makes fewer than 16 roundings (u = 2^-24) of numbers no larger than h_i + h_j,
for |s_i s_j <q_i, q_j>| <= |s_i q_i| |s_j q_j| <= h_i + h_j. The product itself is exact for int8 (integers below
2^31 for rows shorter than MAX_INT8), and for float32 off by at most gamma |q_i| |q_j|, gamma = d u / (1 - d u), in
whatever order a library sums (Higham, Accuracy and Stability of Numerical Algorithms, 3.1). Both are at most
margin (h_i + h_j) with margin = 16 u + gamma, so (2) with each h lowered to (1 - margin) h rejects nothing that belongs
to the result; that is the h which `Codes` holds. Growing the reach by kernels.GROWTH covers the roundings of the reach
itself, FLOOR covers numbers that underflow.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay.errors import InputError
from naysay.neighbors.schedule import run, run_all

MIN_INT8 = 16  # products of shorter rows take no time, and torch's are wrong for rows of one number
MAX_INT8 = 2**31 // 127**2  # longer rows could overflow the int32 sums
LARGEST = 1e37  # of a squared length: sums of four of them must stay below float32's 3.4e38
_ROOM = threading.local()


@dataclass(frozen=True)
class Codes:
    """A set's rows as `codes` q (n, d), int8 or float32, with s, (1 - margin) h and rho of each row (n,) float32."""

    codes: Tensor
    scale: Any
    half: Any
    residual: Any

    @property
    def dtype(self) -> torch.dtype:
        """The kind of code."""
        return self.codes.dtype

    @property
    def margin(self) -> float:
        """What the roundings of (2) add up to, at most, as a share of h_i + h_j."""
        return find_margin(self.codes.shape[1], self.dtype)

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        """The codes of some rows."""
        return self.codes[rows]


def find_margin(d: int, dtype: torch.dtype) -> float:
    """16 u, and gamma where not every way to sum the products is exact (`kernels.offer` sums int8 in float32)."""
    exact = dtype == torch.int8 and d * 127**2 < 2**24
    return 2.0**-20 + (0.0 if exact else d * 2.0**-24 / (1 - d * 2.0**-24))


def find_centre(rows: Tensor) -> Tensor:
    """A point (d,) amid the rows: the mean of a sample whose columns are cut at their outer twentieths.

    Any point would do; a plain mean is dragged away by one wild row, and all residuals grow.
    """
    sample = rows[:: max(1, len(rows) // 256)]
    low, high = torch.quantile(sample, torch.tensor([0.05, 0.95], device=rows.device), dim=0)
    return sample.clamp(low, high).mean(0)


def check_size(half: float) -> None:
    """Raise InputError if the largest h is so large that squared distances could leave float32."""
    if not half < LARGEST:
        raise InputError(
            "features must be small enough for float32 squared distances; "
            f"got rows {(2 * half) ** 0.5:.3g} from their middle. Divide all features by one number."
        )


def encode(rows: Any, centre: Any, dtype: torch.dtype) -> Codes:
    """Codes of float32 rows (n, d) around the float32 `centre` (d,); dtype int8 (a quarter of the bytes) or float32."""
    from naysay.neighbors import kernels

    n, d = rows.shape
    codes = torch.empty(n, d, dtype=dtype, device="cpu")  # filled by a kernel that runs on the CPU
    outputs = codes.numpy(), *(np.empty(n, np.float32) for _ in range(3))
    kernel, margin = kernels.encode_int8 if dtype == torch.int8 else kernels.encode_float32, find_margin(d, dtype)
    parts = [slice(start, start + 4096) for start in range(0, n, 4096)]
    run_all(parts, lambda part: kernel(rows[part], centre, margin, *(out[part] for out in outputs)), "encoding rows")
    _, scale, half, residual = outputs
    check_size(float(half.max()))
    return Codes(codes, scale, half, residual)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """The products (h, w) of two blocks of codes (h, d) and (w, d): int32 for int8 codes, else float32.

    They lie in a workspace of the calling thread and last until its next call.
    """
    dtype = torch.int32 if a.dtype == torch.int8 else torch.float32
    room = getattr(_ROOM, "tile", None)
    if room is None or room.dtype != dtype or len(room) < len(a) * len(b):
        room = _ROOM.tile = torch.empty(len(a) * len(b), dtype=dtype, device=a.device)
    tile = room[: len(a) * len(b)].view(len(a), len(b))
    return torch._int_mm(a, b.T, out=tile) if dtype == torch.int32 else torch.mm(a, b.T, out=tile)


@contextmanager
def true_float32() -> Iterator[None]:
    """Float32 products in float32, which the proof is for, also where torch may round them to bfloat16."""
    settings: Any = torch.backends.mkldnn
    settings = settings.matmul  # torch's own annotations don't know it
    before = settings.fp32_precision
    settings.fp32_precision = "ieee"
    try:
        yield
    finally:
        settings.fp32_precision = before


def choose(d: int) -> torch.dtype:
    """The faster kind of code for rows of length d: int8 where this processor multiplies it fast and right."""
    return torch.int8 if MIN_INT8 <= d < MAX_INT8 and int8_pays() else torch.float32


@cache
def int8_pays() -> bool:
    """Whether int8 products are exact here and 1.5 times as fast as float32, measured once in some 20 ms of a thread.

    Without dot-product instructions a library may add pairs of products in 16 bits, which saturate: extremes go first.
    """
    # on the CPU, because its speed is what is measured
    extreme = torch.full((256, 512), 127, dtype=torch.int8, device="cpu")
    extreme[1::2, ::2] = -127
    true = (extreme.double() @ extreme.double().T).int()
    wide = torch.ones(512, 512, device="cpu")
    narrow = wide.to(torch.int8)

    def probe(_: int) -> bool:
        if not torch.equal(multiply(extreme, extreme), true):
            return False
        return 1.5 * _shortest(lambda: multiply(narrow, narrow)) < _shortest(lambda: multiply(wide, wide))

    return all(run([0], lambda _: set(), probe))


def _shortest(action: Callable[[], object]) -> float:
    """The least processor time of a few calls: unlike the clock's, it does not grow when other programs run."""
    times = []
    for _ in range(7):
        start = time.thread_time()
        action()
        times.append(time.thread_time() - start)
    return min(times)
