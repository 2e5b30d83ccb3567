"""The feature map: features in a plane by their principal components, drawn as one SVG polyline for each class.

The corners of a polyline carry a marker, so that a point costs a few bytes and takes the page's colours. Classes differ
by colour and by shape (60 pairs before one repeats), and each one's name stands at the middle of its points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from naysay.errors import InputError
from naysay.report.numerals import show, show_with_unit
from naysay.report.records import Array, Drawn, FeatureMap, class_name, floats
from naysay.seeds import stream, torch_stream

BOX = 1000  # the map's width; its height follows from the points, whose two axes keep one scale
MARGIN = 30

# Markers of about one area around (0, 0): circle, square, triangle, diamond, cross, and a triangle upside down.
SHAPES = (
    "M-10 0a10 10 0 1 0 20 0a10 10 0 1 0-20 0z",
    "M-9-9h18v18h-18z",
    "M0-13l12 21h-24z",
    "M0-13l12 13l-12 13l-12-13z",
    "M-12-4h8v-8h8v8h8v8h-8v8h-8v-8h-8z",
    "M0 13l12-21h-24z",
)


@dataclass(frozen=True, eq=False)
class Projection:
    """Rows (m,) of the features that were taken, rising, their points (m, 2), and each axis's share of the variance."""

    rows: Array
    points: Array
    explained: Array


def project_2d(features: Any, max_points: int = 5000, seed: int = 0) -> Projection:
    """The first two principal components of features (n, ...), or of a random sample of `max_points` rows of them.

    Works on numpy arrays (memory-mapped ones too) and tensors; the same input and seed give the same map, mirror image
    included.
    """
    if features.ndim < 2 or not len(features):
        raise InputError(f"features must be (n, d) with at least one row; got shape {tuple(features.shape)}.")
    rows = np.arange(len(features))
    if len(rows) > max_points:
        rows = np.sort(stream(seed, "feature map").choice(len(rows), max_points, replace=False))
    x = torch.as_tensor(features[rows]).flatten(1).float().cpu()
    if not torch.isfinite(x).all():
        raise InputError("features must be finite; got NaN or infinity. Drop or fill those rows before drawing a map.")
    x = x - x.mean(0)
    # a second, zero direction where the features have one dimension only
    x = torch.nn.functional.pad(x, (0, max(0, 2 - x.shape[1])))
    directions = _principal(x, seed)
    # mirror images are equally good: take the one in which the largest loading of each direction is positive
    largest = directions.abs().argmax(0)
    directions = directions * directions[largest, torch.arange(2, device=largest.device)].sign()
    points = x @ directions
    total = float((x**2).sum()) or 1.0
    return Projection(rows, points.numpy(), (points**2).sum(0).numpy() / total)


def _principal(x: torch.Tensor, seed: int) -> torch.Tensor:
    """The two leading eigenvectors (d, 2) of x^T x by subspace iteration, cheap for images of thousands of pixels too.

    Eight rounds with 14 spare directions leave an error of (eigenvalue 17 / eigenvalue 2)^8. torch.pca_lowrank does the
    same, but draws from torch's global generator and fails where there are fewer rows than directions.
    """
    generator = torch_stream(seed, "feature map")
    basis = torch.randn(x.shape[1], min(16, x.shape[1]), generator=generator, device=generator.device)
    for _ in range(8):
        basis = torch.linalg.qr(x.mT @ (x @ basis)).Q
    rotation: torch.Tensor = torch.linalg.eigh((x @ basis).mT @ (x @ basis)).eigenvectors
    return basis @ rotation[:, -2:].flip(1)


def draw_map(source: FeatureMap, classes: Sequence[str]) -> Drawn | None:
    """The map of all points with finite coordinates, or None where there are none.

    A cluster is a predicted class: its mark, its points, their middle in percent, and its line in the table. `mistakes`
    are the points whose prediction is not the truth, where that is known.
    """
    points = np.asarray(source.points, dtype=float)
    kept = np.flatnonzero(np.isfinite(points).all(1))
    if not len(kept):
        return None
    xy, height = _place(points[kept])
    predicted = np.asarray(source.predicted)[kept]
    truth = None if source.y_true is None else np.asarray(source.y_true)[kept]
    sure = None if source.probability is None else floats(source.probability)[kept]
    wrong = np.zeros(len(kept), bool) if truth is None else predicted != truth
    columns = ["predicted class", "items"]
    columns += [] if sure is None else ["mean probability, %"]
    columns += [] if truth is None else ["correct, % (truth)"]
    clusters: list[Drawn] = []
    for number in np.unique(predicted).tolist():
        mine = predicted == number
        left, top = (np.median(xy[mine], axis=0) / (BOX, height) * 100).tolist()
        count = int(mine.sum())
        cells = [f"{count:,}"]
        cells += [] if sure is None else [show(float(sure[mine].mean()), "%")]
        cells += [] if truth is None else [show(float(1 - wrong[mine].mean()), "%")]
        clusters.append(
            {
                "number": number,
                "name": class_name(classes, number),
                "colour": number % 10,
                "shape": SHAPES[(number + number // 10) % len(SHAPES)],
                "points": _points(xy[mine]),
                "left": left,
                "top": top,
                "count": count,
                "cells": cells,
            }
        )
    largest = max(clusters, key=lambda cluster: int(cluster["count"]))
    share = show_with_unit(largest["count"] / len(kept), "%", 0)
    names = range(len(points)) if source.names is None else source.names
    labels = [] if source.labels is None else [[int(k) for k in source.labels[row] if k >= 0] for row in kept.tolist()]
    mentioned = {*predicted.tolist(), *(label for row in labels for label in row), *([] if truth is None else truth)}
    return {
        "source": source,
        "height": height,
        "radius": float(np.interp(np.log10(len(kept)), [2, 3.7], [8.5, 4])),  # fewer points, larger marks
        "clusters": clusters,
        "placed": _without_overlap(clusters, height),
        "mistakes": _points(xy[wrong]),
        "n_mistakes": int(wrong.sum()),
        "columns": columns,
        "sentence": f"{len(kept):,} items in {len(clusters)} predicted classes. The largest is {largest['name']} with "
        f"{largest['count']:,} items ({share}).",
        "hover": {
            "x": xy[:, 0].tolist(),
            "y": xy[:, 1].tolist(),
            "predicted": predicted.tolist(),
            "names": [str(names[row]) for row in kept.tolist()],
            "probability": None if sure is None else [round(p, 3) if np.isfinite(p) else None for p in sure.tolist()],
            "labels": labels,
            "truth": None if truth is None else truth.tolist(),
            "classes": {str(number): class_name(classes, number) for number in sorted(map(int, mentioned))},
        },
    }


def _place(points: Array) -> tuple[Array, int]:
    """The points in whole units of the box (y down), and the box's height: between 0.5 and 0.9 of its width."""
    low, span = points.min(0), np.ptp(points, axis=0)
    height = int(np.clip(span[1] / (span[0] or 1) * (BOX - 2 * MARGIN) + 2 * MARGIN, 0.5 * BOX, 0.9 * BOX))
    room = np.array([BOX, height]) - 2 * MARGIN
    unit = min((r / s for r, s in zip(room, span, strict=True) if s > 0), default=1.0)
    xy = (np.array([BOX, height]) - span * unit) / 2 + (points - low) * unit
    xy[:, 1] = height - xy[:, 1]
    return xy.round().astype(int), height


def _without_overlap(clusters: list[Drawn], height: int) -> list[Drawn]:
    """Those of the clusters whose name, at the middle of their points, does not cover that of a larger one."""
    placed: dict[int, tuple[float, float, float]] = {}
    for cluster in sorted(clusters, key=lambda cluster: -int(cluster["count"])):
        x, y = cluster["left"] / 100 * BOX, cluster["top"] / 100 * height
        # letters of about 10 units on a wide screen, cut off at 16
        half = (min(len(cluster["name"]), 16) * 10 + 16) / 2
        if all(abs(x - left) > half + other or abs(y - top) > 30 for left, top, other in placed.values()):
            placed[cluster["number"]] = (x, y, half)
    return [cluster for cluster in clusters if cluster["number"] in placed]


def _points(xy: Array) -> str:
    """The corners of a polyline; a lone one is given twice, since a line of one corner is not drawn."""
    pairs = [f"{x},{y}" for x, y in xy.tolist()]
    return " ".join(pairs * 2 if len(pairs) == 1 else pairs)
