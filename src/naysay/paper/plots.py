"""What a spec's picture shows, as plain numbers in percent: panels of lines over epochs, over neighbours, or of points
over efficiency.

A table's picture is its cells as dots beside the published ones. Who draws it, as PNG or on a page, need not know the
spec.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from naysay.paper import words
from naysay.paper.cells import Cell
from naysay.paper.choosing import Record
from naysay.paper.spec import Spec
from naysay.paper.table import sections


@dataclass(frozen=True)
class Line:
    """A series: y over x, and from `low` to `high` the spread over seeds where there are several; `paper` is a
    published (x, y).
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    paper: tuple[float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """One pair of axes; `note` says of which runs."""

    title: str
    y_name: str
    lines: Sequence[Line]
    note: str = ""


@dataclass(frozen=True)
class Plot:
    """The picture of a figure, its panels in rows of at most `columns`. `joined`: the points of a series are one curve.
    `spread` says what `low` to `high` is.
    """

    x_name: str
    panels: Sequence[Panel]
    joined: bool = True
    log_x: bool = False
    log_y: bool = False
    spread: str = ""
    columns: int = 3


@dataclass(frozen=True)
class Dots:
    """The picture of a table: for each section its title and rows of (name, cell)."""

    panels: Sequence[tuple[str, Sequence[tuple[str, Cell]]]]


def picture(spec: Spec, cells: Sequence[Cell]) -> Plot | Dots | None:
    """What there is to draw, or None where nothing is recorded."""
    there = [cell for cell in cells if cell.n]
    if not there:
        return None
    if spec.kind == "table":
        kept = [section for section in sections(spec, cells) if section.recorded]
        return Dots([(section.title, _known(section.rows)) for section in kept])
    if spec.show["x"] == "epoch":
        return _by_epoch(spec, there)
    if spec.show["x"] in words.FIGURES:
        return _by_figure(spec, there)
    return _by_value(spec, there)


def _known(rows: Sequence[tuple[str, Sequence[Cell]]]) -> list[tuple[str, Cell]]:
    """The rows of which ours or the paper's value is known."""
    return [(name, group[0]) for name, group in rows if group[0].n or group[0].published is not None]


def _by_epoch(spec: Spec, cells: Sequence[Cell]) -> Plot:
    shown = [cell for cell in cells if cell.figure in spec.show["figures"]]
    panels = []
    for title, group in _grouped(shown, spec.show["panels"]).items():
        lines = [line for cell in group if (line := _history(cell))]
        panels.append(Panel(title, "mean confidence, %", lines, _note(group)))
    return Plot("epoch", panels, log_y=True, spread="least to greatest over seeds")


def _history(cell: Cell) -> Line | None:
    """The cell's figure epoch by epoch, mean and range over the seeds; an epoch that any seed lacks is left out."""
    runs = [_epochs(record, cell.figure) for record in cell.standing.chosen]
    shared = sorted(set.intersection(*(set(run) for run in runs)))
    if not shared:
        return None
    columns = [[run[epoch] * 100 for run in runs] for epoch in shared]
    theirs = cell.published
    return Line(
        words.figure(cell.figure),
        shared,
        [statistics.fmean(column) for column in columns],
        [min(column) for column in columns],
        [max(column) for column in columns],
        None if theirs is None else (shared[-1], theirs * 100),
    )


def _epochs(record: Record, figure: str) -> dict[int, float]:
    return {row["epoch"]: row[figure] for row in record.get("history", ()) if row.get(figure) is not None}


def _by_value(spec: Spec, cells: Sequence[Cell]) -> Plot:
    x = spec.show["x"]
    panels = []
    for title, both in _grouped(cells, spec.show["panels"]).items():
        for figure in spec.show["figures"]:
            group = [cell for cell in both if cell.figure == figure]
            lines = [
                _line(name, series, [float(cell.place[x]) for cell in series])
                for name, series in _grouped(group, spec.show["series"]).items()
            ]
            panels.append(Panel(title, f"{words.figure(figure)}, %", lines, _note(group)))
    across = len(spec.show["figures"])
    return Plot(
        "neighbours" if x == "n_neighbors" else x,
        panels,
        log_x=x == "n_neighbors",
        spread="one sd over seeds",
        columns=across if across > 1 else 3,
    )


def _by_figure(spec: Spec, cells: Sequence[Cell]) -> Plot:
    """Each place a point: one figure against another, a panel for each figure on the y axis."""
    across = {tuple(cell.place.items()): cell.mean for cell in cells if cell.figure == spec.show["x"]}
    panels = []
    for figure in spec.show["figures"]:
        group = [cell for cell in cells if cell.figure == figure and tuple(cell.place.items()) in across]
        lines = [
            _line(name, series, [100 * (across[tuple(cell.place.items())] or 0.0) for cell in series])
            for name, series in _grouped(group, spec.show["series"]).items()
        ]
        panels.append(Panel(words.figure(figure), f"{words.figure(figure)}, %", lines, _note(group)))
    return Plot(f"{words.figure(spec.show['x'])}, %", panels, joined=False, spread="one sd over seeds")


def _line(name: str, series: Sequence[Cell], x: Sequence[float]) -> Line:
    points = [(at, 100 * (cell.mean or 0.0), 100 * (cell.sd or 0.0)) for at, cell in zip(x, series, strict=True)]
    points.sort()
    return Line(
        name,
        [at for at, _, _ in points],
        [mean for _, mean, _ in points],
        [mean - sd for _, mean, sd in points],
        [mean + sd for _, mean, sd in points],
    )


def _grouped(cells: Sequence[Cell], by: Sequence[str]) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(words.place(cell.place, by), []).append(cell)
    return groups


def _note(cells: Sequence[Cell]) -> str:
    """Of which runs a panel is, in a few words: "quick: 30 of 100 epochs, 1 of 5 seeds"."""
    said = [
        f"{cell.standing.kind}{f': {cell.standing.cut}' if cell.standing.cut else f' ({words.seeds(cell.n)})'}"
        for cell in cells
    ]
    said += ["simulated labels"] if any(cell.simulated for cell in cells) else []
    kinds = list(dict.fromkeys(said))
    return kinds[0] if len(kinds) == 1 else "; ".join(kinds[:2]) + (" …" if len(kinds) > 2 else "")
