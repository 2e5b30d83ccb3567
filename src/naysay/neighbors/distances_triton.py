"""`distances.measure` as one Triton kernel: gather, subtract, square and sum; the differences are written nowhere."""

import torch
import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
from torch import Tensor

SLOTS, STRIDE = 16, 128  # columns and numbers of a row that one program handles at once


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _kernel(columns, lines, picked, out, width, d: tl.constexpr, SLOTS: tl.constexpr, STRIDE: tl.constexpr):  # type: ignore[no-untyped-def]
    line = tl.program_id(0).to(tl.int64)
    slots = tl.program_id(1) * SLOTS + tl.arange(0, SLOTS)
    taken = slots < width
    which = tl.load(picked + line * width + slots, mask=taken, other=0)
    total = tl.zeros([SLOTS], dtype=tl.float64)
    for start in range(0, d, STRIDE):
        places = start + tl.arange(0, STRIDE)
        inside = places < d
        own = tl.load(lines + line * d + places, mask=inside, other=0.0).to(tl.float64)
        at = columns + which[:, None] * d + places[None, :]
        other = tl.load(at, mask=taken[:, None] & inside[None, :], other=0.0).to(tl.float64)
        # rows past the end of `picked` are not stored, columns past d are 0 on both sides
        difference = other - own[None, :]
        total += tl.sum(difference * difference, axis=1)
    tl.store(out + line * width + slots, total.to(tl.float32), mask=taken)


def measure_fused(columns: Tensor, lines: Tensor, picked: Tensor) -> Tensor:
    """As `distances.measure`."""
    (m, width), d = picked.shape, columns.shape[1]
    columns, lines, picked = columns.contiguous(), lines.contiguous(), picked.contiguous()
    out = torch.empty(m, width, dtype=torch.float32, device=columns.device)
    _kernel[(m, triton.cdiv(width, SLOTS))](columns, lines, picked, out, width, d, SLOTS=SLOTS, STRIDE=STRIDE)
    return out
