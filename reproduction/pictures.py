"""What a spec's picture shows, in percent: panels of lines over epochs or neighbours, or of points over efficiency.

A table's picture is its cells as dots beside the published ones. Who draws it, as PNG or on a page, need not know the
spec.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reproduction import words
from reproduction.cells import Cell
from reproduction.spec import Spec
from reproduction.standing import Record
from reproduction.table import sections
from reproduction.values import Value


@dataclass(frozen=True)
class Line:
    """A series: y over x, from `low` to `high` the spread over several seeds, and `paper`, a published (x, y).

    whole: no run of it was cut short.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    paper: tuple[float, float] | None = None
    whole: bool = True


@dataclass(frozen=True)
class Panel:
    """One pair of axes; `note` says of which runs."""

    title: str
    y_name: str
    lines: Sequence[Line]
    note: str = ""


@dataclass(frozen=True)
class Plot:
    """The picture of a figure."""

    x_name: str
    panels: Sequence[Panel]
    joined: bool = True  # the points of a series are one curve
    log_x: bool = False
    log_y: bool = False
    spread: str = ""  # what a line's `low` to `high` is
    columns: int = 3  # panels in a row, at most


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
    means, low, high = ([of(column) for column in columns] for of in (statistics.fmean, min, max))
    theirs = None if cell.published is None else (shared[-1], cell.published * 100)
    return Line(words.figure(cell.figure), shared, means, low, high, theirs)


def _epochs(record: Record, figure: str) -> dict[int, float]:
    return {row["epoch"]: row[figure] for row in record.get("history", ()) if row.get(figure) is not None}


def _by_value(spec: Spec, cells: Sequence[Cell]) -> Plot:
    x = spec.show["x"]
    panels = []
    for title, both in _grouped(cells, spec.show["panels"]).items():
        for figure in spec.show["figures"]:
            group = [cell for cell in both if cell.figure == figure]
            at = {_id(cell): float(cell.place[x]) for cell in group}
            lines = _lines(group, spec.show["series"], at)
            panels.append(Panel(title, f"{words.figure(figure)}, %", lines, _note(group)))
    across, near = len(spec.show["figures"]), x == "n_neighbors"
    columns = across if across > 1 else 3
    return Plot("neighbours" if near else x, panels, log_x=near, spread="one sd over seeds", columns=columns)


def _by_figure(spec: Spec, cells: Sequence[Cell]) -> Plot:
    """Each place a point: one figure against another, a panel for each figure on the y axis."""
    across = {_id(cell): 100 * (cell.mean or 0.0) for cell in cells if cell.figure == spec.show["x"]}
    panels = []
    for figure in spec.show["figures"]:
        group = [cell for cell in cells if cell.figure == figure and _id(cell) in across]
        lines = _lines(group, spec.show["series"], across)
        panels.append(Panel(words.figure(figure), f"{words.figure(figure)}, %", lines, _note(group)))
    return Plot(f"{words.figure(spec.show['x'])}, %", panels, joined=False, spread="one sd over seeds")


def _id(cell: Cell) -> tuple[tuple[str, Value], ...]:
    """The cell's place as a key."""
    return tuple(cell.place.items())


def _lines(cells: Sequence[Cell], by: Sequence[str], at: Mapping[tuple[tuple[str, Value], ...], float]) -> list[Line]:
    """A line for each series over where its cells are `at`, and one of its own for what was cut short in it."""
    lines = []
    for name, series in _grouped(cells, by).items():
        for whole in (True, False):
            some = [cell for cell in series if (cell.standing.kind != "quick") == whole]
            lines += [_line(name if whole else f"{name}, quick", some, at, whole)] if some else []
    return lines


def _line(name: str, series: Sequence[Cell], where: Mapping[tuple[tuple[str, Value], ...], float], whole: bool) -> Line:
    points = sorted((where[_id(cell)], 100 * (cell.mean or 0.0), 100 * (cell.sd or 0.0)) for cell in series)
    at, means, sds = ([point[part] for point in points] for part in range(3))
    both = list(zip(means, sds, strict=True))
    return Line(name, at, means, [mean - sd for mean, sd in both], [mean + sd for mean, sd in both], whole=whole)


def _grouped(cells: Sequence[Cell], by: Sequence[str]) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(words.place(cell.place, by), []).append(cell)
    return groups


def _note(cells: Sequence[Cell]) -> str:
    """Of which runs a panel is, in a few words: "quick: 30 of 100 epochs, 1 of 5 seeds"."""
    said = []
    for cell in cells:
        what = f": {cell.standing.cut}" if cell.standing.cut else f" ({words.count(cell.n, 'seed')})"
        said.append(f"{cell.standing.kind}{what}")
    kinds = list(dict.fromkeys(said))
    marks = ["simulated labels"] if any(cell.simulated for cell in cells) else []
    marks += ["stale records"] if any(cell.standing.stale for cell in cells) else []
    return "; ".join([*kinds, *marks])
