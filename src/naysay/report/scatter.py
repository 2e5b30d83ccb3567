"""The feature map: one SVG polyline for each class whose corners carry a marker, so a point costs a few bytes and takes
the page's colours.

Classes differ by colour and by shape (50 pairs before one repeats), and each one's name stands at the middle of its
points.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from naysay.report.data import Array, FeatureMap, class_name
from naysay.report.numerals import show, show_with_unit

BOX = 1000  # the map's width; its height follows from the points, whose two axes keep one scale
MARGIN = 30

# Markers of about one area around (0, 0): circle, square, triangle, diamond, cross.
SHAPES = (
    "M-10 0a10 10 0 1 0 20 0a10 10 0 1 0-20 0z",
    "M-9-9h18v18h-18z",
    "M0-13l12 21h-24z",
    "M0-13l12 13l-12 13l-12-13z",
    "M-12-4h8v-8h8v8h8v8h-8v8h-8v-8h-8z",
)


@dataclass(frozen=True)
class Cluster:
    """A class on the map: its number and name, colour and shape, its points, the middle of them in percent, whether
    there is room for its name there, how many they are, and its line in the table.
    """

    number: int
    name: str
    colour: int
    shape: str
    points: str
    left: float
    top: float
    placed: bool
    count: int
    cells: list[str]


@dataclass(frozen=True)
class Map:
    """A drawn feature map; `mistakes` are the points whose prediction is not the truth, where that is known."""

    source: FeatureMap
    height: int
    radius: float
    clusters: list[Cluster]
    mistakes: str
    n_mistakes: int
    columns: list[str]
    sentence: str
    hover: dict[str, Any]


def draw_map(source: FeatureMap, classes: Sequence[str]) -> Map | None:
    """The map of all points with finite coordinates, or None where there are none."""
    points = np.asarray(source.points, dtype=float)
    kept = np.flatnonzero(np.isfinite(points).all(1))
    if not len(kept):
        return None
    xy, height = _place(points[kept])
    predicted = np.asarray(source.predicted)[kept]
    truth = None if source.y_true is None else np.asarray(source.y_true)[kept]
    sure = (
        None
        if source.probability is None
        else np.array([np.nan if p is None else p for p in source.probability], float)[kept]
    )
    wrong = np.zeros(len(kept), bool) if truth is None else predicted != truth
    clusters = []
    for number in np.unique(predicted).tolist():
        mine = predicted == number
        middle = np.median(xy[mine], axis=0)
        cells = [f"{int(mine.sum()):,}"]
        cells += [] if sure is None else [show(float(sure[mine].mean()), "%")]
        cells += [] if truth is None else [show(float(1 - wrong[mine].mean()), "%")]
        colour, shape = number % 10, SHAPES[(number + number // 10) % len(SHAPES)]
        left, top = float(middle[0]) / BOX * 100, float(middle[1]) / height * 100
        name = class_name(classes, number)
        clusters.append(
            Cluster(number, name, colour, shape, _points(xy[mine]), left, top, True, int(mine.sum()), cells)
        )
    clusters = _without_overlap(clusters, height)
    largest = max(clusters, key=lambda cluster: cluster.count)
    named = (
        [str(name) for name in source.names] if source.names is not None else [str(row) for row in range(len(points))]
    )
    given = (
        []
        if source.labels is None
        else [[int(label) for label in source.labels[row] if label >= 0] for row in kept.tolist()]
    )
    return Map(
        source,
        height,
        float(np.interp(np.log10(len(kept)), [2, 3.7], [8.5, 4])),  # fewer points, larger marks
        clusters,
        _points(xy[wrong]),
        int(wrong.sum()),
        [
            "predicted class",
            "items",
            *([] if sure is None else ["mean probability, %"]),
            *([] if truth is None else ["correct, % (truth)"]),
        ],
        f"{len(kept):,} items in {len(clusters)} predicted classes. The largest is {largest.name} with "
        f"{largest.count:,} items "
        f"({show_with_unit(largest.count / len(kept), '%', 0)}).",
        {
            "x": xy[:, 0].tolist(),
            "y": xy[:, 1].tolist(),
            "predicted": predicted.tolist(),
            "names": [named[row] for row in kept],
            "probability": None if sure is None else [round(p, 3) if np.isfinite(p) else None for p in sure.tolist()],
            "labels": given,
            "truth": None if truth is None else truth.tolist(),
            "classes": {str(number): class_name(classes, number) for number in _mentioned(predicted, truth, given)},
        },
    )


def _place(points: Array) -> tuple[Array, int]:
    """The points in whole units of the box (y down), and the box's height: between 0.5 and 0.9 of its width."""
    low, span = points.min(0), np.ptp(points, axis=0)
    height = int(np.clip(span[1] / (span[0] or 1) * (BOX - 2 * MARGIN) + 2 * MARGIN, 0.5 * BOX, 0.9 * BOX))
    room = np.array([BOX, height]) - 2 * MARGIN
    unit = min((r / s for r, s in zip(room, span, strict=True) if s > 0), default=1.0)
    xy = (np.array([BOX, height]) - span * unit) / 2 + (points - low) * unit
    xy[:, 1] = height - xy[:, 1]
    return xy.round().astype(int), height


def _without_overlap(clusters: list[Cluster], height: int) -> list[Cluster]:
    """The clusters, of which those keep their name on the map that do not cover that of a larger one."""
    taken: list[tuple[float, float, float]] = []
    kept = set()
    for cluster in sorted(clusters, key=lambda cluster: -cluster.count):
        x, y = cluster.left / 100 * BOX, cluster.top / 100 * height
        half = (min(len(cluster.name), 16) * 10 + 16) / 2  # letters of about 10 units on a wide screen, cut off at 16
        if all(abs(x - left) > half + other or abs(y - top) > 30 for left, top, other in taken):
            taken.append((x, y, half))
            kept.add(cluster.number)
    return [replace(cluster, placed=cluster.number in kept) for cluster in clusters]


def _points(xy: Array) -> str:
    """The corners of a polyline; a lone one is given twice, since a line of one corner is not drawn."""
    pairs = [f"{x},{y}" for x, y in xy.tolist()]
    return " ".join(pairs * 2 if len(pairs) == 1 else pairs)


def _mentioned(predicted: Array, truth: Array | None, given: list[list[int]]) -> list[int]:
    numbers = {*predicted.tolist(), *(label for labels in given for label in labels)}
    return sorted(numbers if truth is None else numbers | set(truth.tolist()))
