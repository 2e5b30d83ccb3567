"""Line charts as positions in percent of the plot, so that text keeps its size when the page gets narrow.

The lines are SVG paths in a box of 1000 x 1000 that the page stretches; ticks are text at a percentage of its sides.
"""

import numpy as np

from naysay.report.numerals import MISSING, Tick, axis_ticks, show, show_with_unit, tick_digits, ticks, widen
from naysay.report.records import Array, Curves, Drawn, floats

BOX = 1000
DASHES = ("", "7 4", "2 4", "11 4 2 4")  # colour is never the only difference between two lines


def draw_curves(curves: Curves) -> Drawn | None:
    """The chart of `curves`, or None where nothing was measured.

    Lines as SVG (path, points with gaps around them, band), ticks, what is seen in words, the rows of the data table,
    and where hovering looks.
    """
    x, unit = floats(curves.x), curves.unit
    none = np.full(len(x), np.nan)
    # of each series y and both edges of its band, (series, 3, n)
    triples = [[none if v is None else floats(v) for v in (s.y, s.low, s.high)] for s in curves.series]
    drawn: Array = np.array(triples).reshape(len(triples), 3, len(x))
    kept = np.isfinite(x) & np.isfinite(drawn[:, 0]).any(0)
    if not kept.any():
        return None
    x, drawn = x[kept], drawn[:, :, kept]
    ys = drawn[:, 0]
    bottom, top = _range(drawn[np.isfinite(drawn)])
    start, end = float(x.min()), float(x.max())
    length = end - start or 1.0
    px, heights = (x - start) / length * BOX, BOX - (drawn - bottom) / (top - bottom) * BOX
    digits = tick_digits(ticks(bottom, top), unit) + 1
    told = [[show_with_unit(float(value), unit, digits) for value in y[np.isfinite(y)]] for y in ys]
    whole = bool(np.all(x % 1 == 0))
    inner = [tick for tick in ticks(start, end) if tick % 1 == 0 or not whole] if end > start else [start]
    x_digits = 0 if whole or len(inner) < 2 else tick_digits(inner)
    lines = [
        {
            "name": series.name,
            "path": "".join(f"M{_points(px[run], y[run])}" for run in _runs(y) if len(run) > 1),
            # points with a gap on both sides, as steps of length zero: dots, by their round caps
            "lone": "".join(f"M{_points(px[run], y[run])}h0" for run in _runs(y) if len(run) == 1),
            "band": _band(px, low, high),
            "dash": DASHES[index % len(DASHES)],
            "colour": index % 10,
            "last": told[index][-1] if told[index] else MISSING,
            "needs_truth": series.needs_truth,
        }
        for index, (series, (y, low, high)) in enumerate(zip(curves.series, heights, strict=True))
    ]
    hover = {"x": _rounded(px), "y": [_rounded(y) for y, _, _ in heights], "colours": [row["colour"] for row in lines]}
    cells = [[show(at, "", x_digits), *(show(y, unit, digits) for y in ys[:, i])] for i, at in enumerate(x.tolist())]
    return {
        "source": curves,
        "lines": lines,
        "x_ticks": [Tick((tick - start) / length * 100, show(tick, "", x_digits)) for tick in inner],
        "y_ticks": axis_ticks(bottom, top, unit, lambda y: 100 - (y - bottom) / (top - bottom) * 100),
        "sentence": _sentence(curves, told, *(show(float(at), "", x_digits) for at in (x[0], x[-1]))),
        "rows": cells,
        "hover": hover,
    }


def _range(values: Array) -> tuple[float, float]:
    """What the y axis must hold; zero belongs to it where the values come near it anyway."""
    low, high = float(values.min()), float(values.max())
    return widen(0.0 if 0 <= low < high / 2 else low, high)


def _runs(y: Array) -> list[Array]:
    """The row numbers of each unbroken stretch of finite numbers in y (n,)."""
    rows = np.flatnonzero(np.isfinite(y))
    return np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(rows) else []


def _points(px: Array, py: Array) -> str:
    return "L".join(f"{x:.4g} {y:.4g}" for x, y in zip(px, py, strict=True))


def _band(px: Array, low: Array, high: Array) -> str:
    return "".join(
        f"M{_points(np.r_[px[run], px[run][::-1]], np.r_[high[run], low[run][::-1]])}Z" for run in _runs(low + high)
    )


def _sentence(curves: Curves, told: list[list[str]], first: str, last: str) -> str:
    """What the chart shows, in words: where each series begins and ends."""
    parts = []
    for series, known in zip(curves.series, told, strict=True):
        moved = f"goes from {known[0]} to {known[-1]}" if len(known) > 1 else f"is {known[0]}" if known else ""
        parts.append(f"{series.name} {moved or 'was not measured'}")
    return f"From {curves.x_name} {first} to {last}: {'; '.join(parts)}."


def _rounded(values: Array) -> list[float | None]:
    return [round(float(value), 1) if np.isfinite(value) else None for value in values]
