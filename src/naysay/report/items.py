"""Items for the eye: images as PNG data URIs, and each item's prediction, labels and neighbours as words and strips of
label mass.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from naysay.errors import InputError
from naysay.report.data import Array, Item, class_name
from naysay.report.heat import Cell
from naysay.report.numerals import show, show_with_unit

# pixels on the longer side; a photograph is scaled down to it, a small image is enlarged by the browser
LARGE, SMALL = 128, 64


@dataclass(frozen=True)
class View:
    """An item as the page shows it: names instead of class numbers, words instead of numbers."""

    name: str
    image: str
    alt: str
    labels: list[str]
    predicted: str
    probability: str
    runner_up: str
    runner_up_probability: str
    margin: str
    truth: str
    right: bool
    strip: list[tuple[str, Cell]]
    neighbours: list["View"]
    note: str


def view(item: Item, classes: Sequence[str], side: int = LARGE) -> View:
    """What the page shows of an item and of its neighbours."""
    p = (
        None
        if item.probabilities is None
        else np.array([np.nan if v is None else v for v in item.probabilities], float)
    )
    order = [] if p is None else np.argsort(-np.nan_to_num(p), kind="stable").tolist()
    predicted = item.predicted if item.predicted is not None else next(iter(order), None)
    runner_up = next((k for k in order if k != predicted), None)
    first, second = (None if p is None or k is None else float(p[k]) for k in (predicted, runner_up))
    words = "" if predicted is None else class_name(classes, predicted)
    return View(
        str(item.name),
        "" if item.image is None else png_uri(item.image, side),
        f"Item {item.name}" + (f", predicted {words}" if words else ""),
        [class_name(classes, label) for label in item.labels if label >= 0],
        words,
        show_with_unit(first, "%") if first is not None else "",
        "" if runner_up is None else class_name(classes, runner_up),
        show_with_unit(second, "%") if second is not None else "",
        show(first - second, "%") if first is not None and second is not None else "",
        "" if item.y_true is None else class_name(classes, item.y_true),
        item.y_true is not None and item.y_true == predicted,
        _strip(item, classes),
        [view(neighbour, classes, SMALL) for neighbour in item.neighbours],
        item.note,
    )


def png_uri(image: Array, side: int = LARGE) -> str:
    """A uint8 image, (H, W) or (H, W, 1 | 3 | 4), as the data URI of a PNG at most `side` pixels long."""
    from PIL import Image

    pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if (
        pixels.dtype != np.uint8
        or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4)))
        or not pixels.size
    ):
        raise InputError(
            f"an image must be uint8, (H, W) or (H, W, 1 | 3 | 4), channels last; got shape {np.shape(image)} of "
            f"{pixels.dtype}. "
            "Scale floats to 0-255 and move the channels to the end."
        )
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    picture.thumbnail((side, side))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _strip(item: Item, classes: Sequence[str]) -> list[tuple[str, Cell]]:
    """The augmented labels as cells, the largest at full depth, the least marked."""
    if item.augmented is None:
        return []
    mass = [float(v) if v is not None else float("nan") for v in item.augmented]
    known = [v for v in mass if np.isfinite(v)]
    full, least = max(known, default=0.0) or 1.0, min(known, default=0.0)
    return [
        (class_name(classes, k), Cell(v / full if np.isfinite(v) else None, show(v, "%", 0), least=v == least))
        for k, v in enumerate(mass)
    ]
