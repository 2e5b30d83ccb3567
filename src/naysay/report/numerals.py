"""How numbers are written and axes ticked: fixed decimals, round ticks, and "–" for what is missing."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from naysay.report.records import Value

MISSING = "–"


def is_missing(value: float | None) -> bool:
    """Whether nothing was measured: None, NaN, or an infinity that a diverged run left."""
    return value is None or not math.isfinite(value)


def show(value: float | None, unit: str = "", digits: int = 1) -> str:
    """A number with `digits` decimals and a true minus sign; a share with the unit "%" as a percentage."""
    if value is None or is_missing(value):
        return MISSING
    text = f"{value * 100:.{digits}f}" if unit == "%" else f"{value:,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", "\N{MINUS SIGN}")


def show_with_unit(value: float | None, unit: str = "", digits: int = 1) -> str:
    """As `show`, with the unit behind it: "94.3 %"."""
    return show_value(Value(value), unit, digits)


def show_value(value: Value, unit: str = "", digits: int = 1) -> str:
    """A value with its uncertainty in words that a screen reader reads well: "94.3 ± 1.2 %", "94.3 [92.0, 96.1] %"."""
    text, error = show_parts(value, unit, digits)
    if text == MISSING:
        return text
    return " ".join(filter(None, (text, error))) + (f"\N{NO-BREAK SPACE}{unit}" if unit else "")


def show_parts(value: Value, unit: str = "", digits: int = 1) -> tuple[str, str]:
    """The figure and its uncertainty, "" where there is none; an interval without a figure takes its place."""
    text, low, high = (show(part, unit, digits) for part in (value.value, value.low, value.high))
    if MISSING not in (low, high):
        return (f"{low} to {high}", "") if text == MISSING else (text, f"[{low}, {high}]")
    return text, "" if text == MISSING or is_missing(value.error) else f"± {show(value.error, unit, digits)}"


@dataclass(frozen=True)
class Tick:
    """A tick: how far along its axis, in percent, and its text."""

    at: float
    text: str


def axis_ticks(low: float, high: float, unit: str, place: Callable[[float], float]) -> list[Tick]:
    """The ticks of an axis from `low` to `high`; `place` says how far along it, in percent, a value is."""
    marks = ticks(low, high)
    return [Tick(place(mark), show(mark, unit, tick_digits(marks, unit))) for mark in marks]


def widen(low: float, high: float) -> tuple[float, float]:
    """The range of an axis: that of its values and a little air, but none beyond a zero or a one that they keep to."""
    air = (high - low) * 0.04 or abs(low) / 10 or 1.0
    return (low if low == 0 else low - air), (max(high, 1.0) if high <= 1 < high + air else high + air)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers, 1, 2 or 5 times a power of ten apart, within `low` to `high`: about `wanted`, at least two."""
    power = 10.0 ** math.floor(math.log10((high - low) / wanted))
    steps = [factor * power for factor in (10, 5, 2, 1, 0.5)]
    step = min(steps, key=lambda step: abs(math.log(step * wanted / (high - low))))
    found = _multiples(low, high, step)
    return found if len(found) > 1 else _multiples(low, high, step / 5)


def _multiples(low: float, high: float, step: float) -> list[float]:
    return [round(k * step, 12) for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def tick_digits(values: list[float], unit: str = "") -> int:
    """The decimals that tell neighbouring ticks apart."""
    step = (values[1] - values[0]) * (100 if unit == "%" else 1)
    return max(0, -math.floor(math.log10(step) + 1e-9))
