"""Label mass for the eye: heat maps as real tables, and items with their images, words and strips of label mass.

Each cell holds its number for readers and its share of the scale for the eye, so both are one thing. Images are PNGs in
data URIs.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from naysay.errors import InputError
from naysay.report.numerals import MISSING, show, show_with_unit
from naysay.report.records import Array, Drawn, HeatMap, Item, class_name, floats

CROWDED, LARGE_MAP = 14, 400  # rows from which empty ones are left out, and cells from which a few may be beyond
MOST = 100  # rows or columns: beyond it a cell is narrower than three pixels on a phone
# pixels on an image's longer side; a photograph is scaled down to it, a small image is enlarged by the browser
LARGE, SMALL = 128, 64


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


def scale(maps: Sequence[HeatMap]) -> tuple[float, bool]:
    """The value that gets the full colour, one for all maps, so that before and after can be compared: the largest.

    In large maps one class with a single item would pale all others: there it is the largest but for 1 cell in 200,
    and whether some are beyond it is told too.
    """
    known = np.concatenate([np.empty(0), *(values[np.isfinite(values)] for values in map(_array, maps))])
    largest = float(known.max(initial=0.0))
    full = float(np.quantile(known, 0.995)) if len(known) > LARGE_MAP else largest
    return full or largest or 1.0, full < largest


def draw_heat(heat: HeatMap, full: float) -> Drawn:
    """The heat map with `full` as the value of full colour; of a very large one the first 100 rows and columns."""
    values = _array(heat)
    shown = values[:MOST, :MOST]
    cells = [[_cell(value, full) for value in row] for row in shown.tolist()]
    rows = [(str(name), row) for name, row in zip(heat.row_names, cells, strict=False)]
    empty = sum(all(cell.depth is None for cell in row) for _, row in rows) if len(rows) > CROWDED else 0
    rows = [(name, row) for name, row in rows if not empty or any(cell.depth is not None for cell in row)]
    left_out = f"Not drawn: {empty} rows in which nothing was measured." if empty else ""
    in_rows, in_columns = (f"{n} of {of}" for n, of in zip(shown.shape, values.shape, strict=True))
    return {
        "source": heat,
        "head": max((len(name) for name, _ in rows), default=0),  # letters of the longest row name
        "columns": list(heat.column_names)[:MOST],
        "rows": rows,
        "sentence": _sentence(heat, values),
        "cut": f"Shown: the first {in_rows} rows and {in_columns} columns." if shown.size < values.size else left_out,
    }


def _array(heat: HeatMap) -> Array:
    return np.asarray(heat.values, dtype=float)


def _cell(value: float, full: float, least: bool = False) -> Cell:
    return Cell(min(1.0, max(0.0, value / full)) if np.isfinite(value) else None, show(value, "%", 0), least)


def _sentence(heat: HeatMap, values: Array) -> str:
    known = np.where(np.isfinite(values), values, -np.inf)
    if not np.isfinite(known).any():
        return f"Nothing was measured ({MISSING})."
    row, column = divmod(int(known.argmax()), known.shape[1])
    where = f"row {heat.row_names[row]}, column {heat.column_names[column]}"
    words = f"The largest cell is {show_with_unit(values[row, column], '%')}: {where}."
    if list(heat.row_names) == list(heat.column_names):
        words += f" The diagonal has a mean of {show_with_unit(float(np.nanmean(np.diag(values))), '%')}."
    return words


def view(item: Item, classes: Sequence[str], side: int = LARGE) -> Drawn:
    """What the page shows of an item and of its neighbours: names and words instead of numbers."""
    p = None if item.probabilities is None else floats(item.probabilities)
    order = [] if p is None else np.argsort(-np.nan_to_num(p), kind="stable").tolist()
    predicted = item.predicted if item.predicted is not None else next(iter(order), None)
    runner_up = next((k for k in order if k != predicted), None)
    first, second = (None if p is None or k is None else float(p[k]) for k in (predicted, runner_up))
    words = "" if predicted is None else class_name(classes, predicted)
    return {
        "name": str(item.name),
        "image": "" if item.image is None else png_uri(item.image, side),
        "alt": f"Item {item.name}" + (f", predicted {words}" if words else ""),
        "labels": [class_name(classes, label) for label in item.labels if label >= 0],
        "predicted": words,
        "probability": "" if first is None else show_with_unit(first, "%"),
        "runner_up": "" if runner_up is None else class_name(classes, runner_up),
        "runner_up_probability": "" if second is None else show_with_unit(second, "%"),
        "margin": "" if first is None or second is None else show(first - second, "%"),
        "truth": "" if item.y_true is None else class_name(classes, item.y_true),
        "right": item.y_true is not None and item.y_true == predicted,
        "strip": _strip(item, classes),
        "neighbors": [view(neighbor, classes, SMALL) for neighbor in item.neighbors],
        "note": item.note,
        "values": item.values,
    }


def png_uri(image: Array, side: int = LARGE) -> str:
    """A uint8 image, (H, W) or (H, W, 1 | 3 | 4), as the data URI of a PNG at most `side` pixels long."""
    from PIL import Image

    pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    drawable = pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))
    if pixels.dtype != np.uint8 or not drawable or not pixels.size:
        must = "an image must be uint8, (H, W) or (H, W, 1 | 3 | 4), channels last"
        got = f"shape {np.shape(image)} of {pixels.dtype}"
        raise InputError(f"{must}; got {got}. Scale floats to 0-255 and move the channels to the end.")
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    picture.thumbnail((side, side))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _strip(item: Item, classes: Sequence[str]) -> list[tuple[str, Cell]]:
    """The augmented labels as cells, the largest at full depth, the least marked."""
    mass = [] if item.augmented is None else floats(item.augmented).tolist()
    known = [v for v in mass if np.isfinite(v)]
    full, least = max(known, default=0.0) or 1.0, min(known, default=0.0)
    return [(class_name(classes, k), _cell(v, full, v == least)) for k, v in enumerate(mass)]
