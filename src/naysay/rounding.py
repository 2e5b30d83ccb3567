"""What float32 would lose of numbers with more bits, and the middle that is taken away from them first.

A float32 has 24 bits: of a time in seconds, 1.7e9 give or take a day, it keeps hours and loses minutes. What all rows
have in common is no distance, so it is taken away from numbers of more bits before they are rounded. Where a part of a
column lies elsewhere (times that are missing, as 0), what counts is the part where different numbers are closest
together: there the bits are needed, and what is far from it loses none that could tell it from the rest. Numbers near 0
stay as they are, bit for bit.
"""

import torch
from torch import Tensor

WIDE = (torch.float64, torch.int64, torch.int32)  # numbers that float32 cannot hold
SAMPLE = 256  # rows that are looked at, at least, where there are as many
FAR = 4  # spreads of a column from 0, beyond which its middle is taken away
PACKED = 1024  # widths of its closest quarter from 0, likewise: float32 then has 14 bits left within that width
FEWEST = 4  # different numbers that are a part of a column; fewer lie close together by chance


def find_centre(numbers: Tensor, *, unit: bool = False) -> Tensor | None:
    """What to take away from rows (n, d), or from these at length 1, before they are float32; None for nothing.

    (d,) float64, and 0 for columns near 0.
    """
    if numbers.dtype not in WIDE:
        return None
    sample = _sample(numbers, unit)
    if not len(sample):
        return None
    ordered, last = sample.sort(0).values, len(sample) - 1
    # a sample's own numbers, so that whole numbers stay whole
    low, middle, high = ordered[[last // 20, last // 2, last - last // 20]].double()
    far = (middle.abs() > FAR * (high - low)) & middle.isfinite()
    dense, width = _densest(ordered.double())
    packed = dense.abs() > PACKED * width
    centre = torch.where(far, middle, torch.where(packed, dense, 0))
    return centre if bool(centre.any()) else None


def needs_bits(numbers: Tensor) -> bool:
    """Whether float32 would lose what tells rows (n, d) apart, as they are or by their directions."""
    if numbers.dtype not in WIDE:
        return False
    stretches = (_densest(_sample(numbers, unit).sort(0).values.double()) for unit in (False, True))
    return any(bool((middle.abs() > PACKED * width).any()) for middle, width in stretches)


def to_unit(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (n, d) at length 1, in float64, and which of them (n,) are of zeros; those stay so."""
    exact = rows.double().contiguous()
    lengths = exact.square().sum(1, keepdim=True).sqrt()
    return exact / lengths.where(lengths > 0, 1), lengths[:, 0] == 0


def _sample(numbers: Tensor, unit: bool) -> Tensor:
    """Some of the rows as they are, or those of them that have a direction, at length 1."""
    sample = numbers[:: max(1, len(numbers) // SAMPLE)]
    if not unit:
        return sample
    sample, nowhere = to_unit(sample)
    return sample[~nowhere]


def _densest(ordered: Tensor) -> tuple[Tensor, Tensor]:
    """The middle (d,) of the shortest stretch with a quarter of a sorted column's different numbers, and its width.

    Equal numbers count once: rounding cannot make them differ. The width is inf where numbers are too few.
    """
    if not len(ordered):
        return ordered.new_zeros(ordered.shape[1]), ordered.new_full(ordered.shape[1:], torch.inf)
    fresh = ordered.isfinite()
    fresh[1:] &= ordered[1:] != ordered[:-1]
    values, count = ordered.where(fresh, torch.inf).sort(0).values, fresh.sum(0)
    held = (count // 4 + 1).clamp(min=FEWEST)
    first = torch.arange(len(values), device=values.device)[:, None]
    ends = values.gather(0, (first + held - 1).clamp(max=len(values) - 1))
    widths = (ends - values).where(first + held <= count, torch.inf)
    width, at = widths.min(0)
    middle = values.gather(0, (at + held // 2).clamp(max=len(values) - 1)[None])[0]
    return middle, width
