"""Dots with whiskers: the same figure of several methods on one axis, say an estimate with its standard error beside
the truth.
"""

from dataclasses import dataclass

from naysay.report.data import Column, Results, Value
from naysay.report.lines import Tick
from naysay.report.numerals import is_missing, show, show_value, tick_digits, ticks, widen


@dataclass(frozen=True)
class Dot:
    """A value on the axis: its place and its whisker (left end, length), in percent, and its words; `at` is None where
    it is missing.
    """

    at: float | None
    whisker: tuple[float, float] | None
    text: str


@dataclass(frozen=True)
class Dots:
    """Methods as rows, each with a dot for every drawn column; whiskers reach one uncertainty to each side."""

    columns: list[Column]
    rows: list[tuple[str, list[Dot]]]
    ticks: list[Tick]
    unit: str


def draw_dots(results: Results) -> Dots | None:
    """The columns in `results.drawn` on one axis (they share the unit of the first), or None where nothing was
    measured.
    """
    drawn = [(index, column) for index, column in enumerate(results.columns) if column.name in results.drawn]
    ends = [end for method in results.methods for index, _ in drawn for end in _ends(method.values[index])]
    if not ends:
        return None
    unit = drawn[0][1].unit
    start, end = widen(min(ends), max(ends))
    marks = ticks(start, end)

    def place(value: float) -> float:
        return (value - start) / (end - start) * 100

    def dot(value: Value, column: Column) -> Dot:
        ends = [place(end) for end in _ends(value)]
        whisker = None if not ends or is_missing(value.error) else (ends[0], ends[-1] - ends[0])
        return Dot(sum(ends) / len(ends) if ends else None, whisker, show_value(value, column.unit, column.digits))

    rows = [(method.name, [dot(method.values[index], column) for index, column in drawn]) for method in results.methods]
    digits = tick_digits(marks, unit)
    axis = [Tick(place(mark), show(mark, unit, digits)) for mark in marks]
    return Dots([column for _, column in drawn], rows, axis, unit)


def _ends(value: Value) -> list[float]:
    """The two ends of the value's whisker, equal without an uncertainty; none where it is missing."""
    if value.value is None or is_missing(value.value):
        return []
    error = 0.0 if value.error is None or is_missing(value.error) else value.error
    return [value.value - error, value.value + error]
