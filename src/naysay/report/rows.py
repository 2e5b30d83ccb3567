"""Figures whose rows have names: dots with whiskers on one axis, and bars from zero. Rows beyond the first are folded.

Both are lists of HTML, so that a name is as long as it is and a phone shows them as well as a wide screen.
"""

from naysay.report.numerals import axis_ticks, is_missing, show_value, show_with_unit, widen
from naysay.report.records import Bars, Column, Dots, Drawn, Value

SHOWN = 12  # rows; where there are a few more than that, all are shown
SPARE = 4


def fold(rows: list[Drawn], shown: int = SHOWN) -> tuple[list[Drawn], list[Drawn]]:
    """The rows that are shown, and those that the reader unfolds."""
    return (rows, []) if len(rows) <= shown + SPARE else (rows[:shown], rows[shown:])


def draw_dots(dots: Dots) -> Drawn | None:
    """The columns of `dots` on one axis, in the unit of the first, or None where nothing was measured.

    Each row has a dot for every column: its place and whisker (left end, length) in percent, None where missing.
    """
    both = [end for _, values in dots.rows for value in values for end in ends(value)]
    if not both:
        return None
    unit = dots.columns[0].unit
    start, end = widen(min(both), max(both))

    def place(value: float) -> float:
        return (value - start) / (end - start) * 100

    def dot(value: Value, column: Column) -> Drawn:
        reach = [place(end) for end in ends(value)]
        whisker = None if not reach or reach[0] == reach[1] else (reach[0], reach[1] - reach[0])
        at = None if value.value is None or not reach else place(value.value)
        return {"at": at, "whisker": whisker, "text": show_value(value, column.unit, column.digits)}

    rows = [
        {"name": name, "dots": [dot(*of) for of in zip(values, dots.columns, strict=True)]}
        for name, values in dots.rows
        if any(ends(value) for value in values)
    ]
    drawn, folded = fold(rows)
    ticks = axis_ticks(start, end, unit, place)
    return {"kind": "dots", "source": dots, "rows": drawn, "folded": folded, "ticks": ticks, "unit": unit}


def draw_bars(bars: Bars) -> Drawn | None:
    """The bars, the longest as long as there is room; None where all are zero."""
    longest = max((value for _, value in bars.rows), default=0.0)
    if longest <= 0:
        return None
    rows = [
        {"name": name, "length": 100 * value / longest, "text": show_with_unit(value, bars.unit, bars.digits)}
        for name, value in bars.rows
    ]
    drawn, folded = fold(rows)
    return {"kind": "bars", "source": bars, "rows": drawn, "folded": folded}


def ends(value: Value) -> list[float]:
    """The two ends of the value's whisker, equal without an uncertainty; none where it is missing."""
    if value.low is not None and value.high is not None:
        return [value.low, value.high]
    if value.value is None or is_missing(value.value):
        return []
    error = 0.0 if value.error is None or is_missing(value.error) else value.error
    return [value.value - error, value.value + error]
