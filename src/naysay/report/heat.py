"""Heat maps as real tables: each cell holds its number for readers and its share of the scale for the eye, so both are
one thing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from naysay.report.data import Array, HeatMap
from naysay.report.numerals import MISSING, show, show_with_unit

MOST = 100  # rows or columns: beyond it a cell is narrower than three pixels on a phone


@dataclass(frozen=True)
class Cell:
    """A cell: its depth on the scale, from 0 to 1, its percentage, and whether it is marked as the least of its row."""

    depth: float | None
    text: str
    least: bool = False

    @property
    def tone(self) -> str:
        """The cell's CSS classes; with them its text keeps a contrast of 4.5 in light and in dark."""
        depth = self.depth or 0.0
        return " ".join(["deep"] * (depth > 0.7) + ["mid"] * (0.55 < depth <= 0.7) + ["least"] * self.least)


@dataclass(frozen=True)
class Heat:
    """A drawn heat map: the longest row name's length, cells by row, the sentence that says what is seen, and what was
    left out.
    """

    source: HeatMap
    head: int
    columns: Sequence[str]
    rows: list[tuple[str, list[Cell]]]
    sentence: str
    cut: str


def scale(maps: Sequence[HeatMap]) -> float:
    """The value that gets the full colour: the largest of all maps, so that before and after can be compared."""
    known = [float(values[np.isfinite(values)].max()) for values in map(_array, maps) if np.isfinite(values).any()]
    return max(known, default=0.0) or 1.0


def draw_heat(heat: HeatMap, full: float) -> Heat:
    """The heat map with `full` as the value of full colour; of a very large one the first 100 rows and columns."""
    values = _array(heat)
    shown = values[:MOST, :MOST]
    rows = [
        (
            str(name),
            [Cell(min(1.0, max(0.0, v / full)) if np.isfinite(v) else None, show(v, "%", 0)) for v in row.tolist()],
        )
        for name, row in zip(heat.row_names, shown, strict=False)
    ]
    n_rows, n_columns = values.shape
    cut = (
        f"Shown: the first {shown.shape[0]} of {n_rows} rows and {shown.shape[1]} of {n_columns} columns."
        if shown.size < values.size
        else ""
    )
    head = max((len(name) for name, _ in rows), default=0)
    return Heat(heat, head, list(heat.column_names)[:MOST], rows, _sentence(heat, values), cut)


def _array(heat: HeatMap) -> Array:
    return np.asarray(heat.values, dtype=float)


def _sentence(heat: HeatMap, values: Array) -> str:
    known = np.where(np.isfinite(values), values, -np.inf)
    if not np.isfinite(known).any():
        return f"Nothing was measured ({MISSING})."
    row, column = divmod(int(known.argmax()), known.shape[1])
    words = (
        f"The largest cell is {show_with_unit(values[row, column], '%')}: row {heat.row_names[row]}, column "
        f"{heat.column_names[column]}."
    )
    if list(heat.row_names) == list(heat.column_names):
        words += f" The diagonal has a mean of {show_with_unit(float(np.nanmean(np.diag(values))), '%')}."
    return words
