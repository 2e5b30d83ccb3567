"""Line charts as positions in percent of the plot, so that text keeps its size when the page gets narrow.

The lines are SVG paths in a box of 1000 x 1000 that the page stretches; ticks are text at a percentage of its width or
height.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from naysay.report.data import Array, Curves, Numbers
from naysay.report.numerals import show, show_with_unit, tick_digits, ticks, widen

BOX = 1000
DASHES = ("", "7 4", "2 4", "11 4 2 4")  # colour is never the only difference between two lines


@dataclass(frozen=True)
class Tick:
    """A tick: how far along its axis, in percent, and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """A series as SVG: its path, its points without neighbours, its band, dash and colour number, and its last value in
    words.
    """

    name: str
    path: str
    lone: str
    band: str
    dash: str
    colour: int
    last: str
    needs_truth: bool


@dataclass(frozen=True)
class Chart:
    """A drawn line chart: lines, ticks, the sentence that says what is seen, the rows of the data table, and where
    hovering looks.
    """

    source: Curves
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    sentence: str
    rows: list[list[str]]
    hover: dict[str, Any]


def draw_curves(curves: Curves) -> Chart | None:
    """The chart of `curves`, or None where nothing was measured."""
    x, ys = _floats(curves.x), [_floats(series.y) for series in curves.series]
    none = np.full(len(x), np.nan)
    edges = [
        tuple(none if edge is None else _floats(edge) for edge in (series.low, series.high)) for series in curves.series
    ]
    kept = np.isfinite(x) & np.any([np.isfinite(y) for y in ys], axis=0) if ys else np.zeros(len(x), bool)
    if not kept.any():
        return None
    x, ys = x[kept], [y[kept] for y in ys]
    edges = [(low[kept], high[kept]) for low, high in edges]
    drawn = np.concatenate([*ys, *(edge for pair in edges for edge in pair)])
    bottom, top = _range(drawn[np.isfinite(drawn)])
    y_ticks = ticks(bottom, top)
    start, end = float(x.min()), float(x.max())
    length = end - start or 1.0
    px = (x - start) / length * BOX

    def height(y: Array) -> Array:
        return np.asarray(BOX - (y - bottom) / (top - bottom) * BOX)

    digits = tick_digits(y_ticks, curves.unit) + 1
    whole = bool(np.all(x % 1 == 0))
    inner = [tick for tick in ticks(start, end) if tick % 1 == 0 or not whole] if end > start else [start]
    x_digits = 0 if whole or len(inner) < 2 else tick_digits(inner)
    lines = [
        Line(
            series.name,
            _path(px, height(y)),
            _lone(px, height(y)),
            _band(px, height(low), height(high)),
            DASHES[index % len(DASHES)],
            index % 10,
            show_with_unit(_last(y), curves.unit, digits),
            series.needs_truth,
        )
        for index, (series, y, (low, high)) in enumerate(zip(curves.series, ys, edges, strict=True))
    ]
    return Chart(
        curves,
        lines,
        [Tick((tick - start) / length * 100, show(tick, "", x_digits)) for tick in inner],
        [Tick(float(height(np.array(tick))) / BOX * 100, show(tick, curves.unit, digits - 1)) for tick in y_ticks],
        _sentence(curves, x, ys, digits, x_digits),
        [
            [show(float(at), "", x_digits), *(show(float(y[i]), curves.unit, digits) for y in ys)]
            for i, at in enumerate(x)
        ],
        {"x": _rounded(px), "y": [_rounded(height(y)) for y in ys], "colours": [line.colour for line in lines]},
    )


def _floats(values: Numbers) -> Array:
    return np.array([np.nan if v is None else float(v) for v in values], float)


def _range(values: Array) -> tuple[float, float]:
    """What the y axis must hold; zero belongs to it where the values come near it anyway."""
    low, high = float(values.min()), float(values.max())
    return widen(0.0 if 0 <= low < high / 2 else low, high)


def _last(y: Array) -> float | None:
    known = y[np.isfinite(y)]
    return float(known[-1]) if len(known) else None


def _runs(known: Array) -> list[Array]:
    """The row numbers of each unbroken stretch of True in `known` (n,)."""
    rows = np.flatnonzero(known)
    return np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(rows) else []


def _points(px: Array, py: Array) -> str:
    return "L".join(f"{x:.4g} {y:.4g}" for x, y in zip(px, py, strict=True))


def _path(px: Array, py: Array) -> str:
    """The line through the points; a missing one leaves a gap."""
    return "".join(f"M{_points(px[run], py[run])}" for run in _runs(np.isfinite(py)) if len(run) > 1)


def _lone(px: Array, py: Array) -> str:
    """The points with a gap on both sides, as steps of length zero: dots, by their round caps."""
    return "".join(f"M{_points(px[run], py[run])}h0" for run in _runs(np.isfinite(py)) if len(run) == 1)


def _band(px: Array, low: Array, high: Array) -> str:
    return "".join(
        f"M{_points(np.r_[px[run], px[run][::-1]], np.r_[high[run], low[run][::-1]])}Z"
        for run in _runs(np.isfinite(low) & np.isfinite(high))
    )


def _sentence(curves: Curves, x: Array, ys: list[Array], digits: int, x_digits: int) -> str:
    """What the chart shows, in words: where each series begins and ends."""
    parts = []
    for series, y in zip(curves.series, ys, strict=True):
        known = [show_with_unit(float(value), curves.unit, digits) for value in y[np.isfinite(y)]]
        moved = (
            f"goes from {known[0]} to {known[-1]}"
            if len(known) > 1
            else f"is {known[0]}"
            if known
            else "was not measured"
        )
        parts.append(f"{series.name} {moved}")
    return f"From {curves.x_name} {show(float(x[0]), '', x_digits)} to {show(float(x[-1]), '', x_digits)}: {'; '.join(parts)}."


def _rounded(values: Array) -> list[float | None]:
    return [round(float(value), 1) if np.isfinite(value) else None for value in values]
