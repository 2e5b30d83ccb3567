"""The results as the page shows them: a table, and dots with whiskers that draw the same figure of several methods.

The table has what the labels alone tell first, what needs the truth after it, and the best in bold.
"""

from dataclasses import dataclass

from naysay.report.numerals import Tick, axis_ticks, is_missing, show, show_value, widen
from naysay.report.records import Column, Method, Results, Value

GROUPS = ("From complementary labels alone", "Against the truth", "Cost")


@dataclass(frozen=True)
class Cell:
    """A number in the table: its value to sort by ("" where missing), its text, its uncertainty, whether it is best."""

    sort: str
    text: str
    error: str
    best: bool


@dataclass(frozen=True)
class Table:
    """Columns as shown, their groups (title, first column, how many), which have uncertainties, the methods' cells."""

    columns: list[Column]
    groups: list[tuple[str, int, int]]
    has_error: list[bool]
    rows: list[tuple[Method, list[Cell]]]


@dataclass(frozen=True)
class Dot:
    """A value's place on the axis and its whisker (left end, length), in percent, and its words; None: missing."""

    at: float | None
    whisker: tuple[float, float] | None
    text: str


@dataclass(frozen=True)
class Dots:
    """Methods as rows, each with a dot for every drawn column; whiskers reach one uncertainty to each side."""

    columns: list[Column]
    rows: list[tuple[str, list[Dot]]]
    ticks: list[Tick]
    unit: str


def tabulate(results: Results) -> Table:
    """The results with their columns in groups; within a group columns keep their order, and so do the methods."""
    order = sorted(range(len(results.columns)), key=lambda index: _group(results.columns[index]))
    columns = [results.columns[index] for index in order]
    values = [[method.values[index] for index in order] for method in results.methods]
    best = [_best(column, [row[at] for row in values]) for at, column in enumerate(columns)]
    cells = [[_cell(*of) for of in zip(row, columns, best, strict=True)] for row in values]
    has_error = [any(row[at].error for row in cells) for at in range(len(columns))]
    members = [[at for at, column in enumerate(columns) if _group(column) == group] for group in range(len(GROUPS))]
    groups = [(title, found[0], len(found)) for title, found in zip(GROUPS, members, strict=True) if found]
    return Table(columns, groups, has_error, list(zip(results.methods, cells, strict=True)))


def _group(column: Column) -> int:
    return 2 if column.cost else int(column.needs_truth)


def _best(column: Column, values: list[Value]) -> float | None:
    known = [value.value for value in values if value.value is not None and not is_missing(value.value)]
    if not column.better or len(known) < 2:
        return None
    return max(known) if column.better == "higher" else min(known)


def _cell(value: Value, column: Column, best: float | None) -> Cell:
    if value.value is None or is_missing(value.value):
        return Cell("", show(None), "", False)
    error = "" if is_missing(value.error) else show(value.error, column.unit, column.digits)
    return Cell(repr(float(value.value)), show(value.value, column.unit, column.digits), error, value.value == best)


def draw_dots(results: Results) -> Dots | None:
    """The columns in `results.drawn` on one axis, in the unit of the first, or None where nothing was measured."""
    drawn = [(index, column) for index, column in enumerate(results.columns) if column.name in results.drawn]
    ends = [end for method in results.methods for index, _ in drawn for end in _ends(method.values[index])]
    if not ends:
        return None
    unit = drawn[0][1].unit
    start, end = widen(min(ends), max(ends))

    def place(value: float) -> float:
        return (value - start) / (end - start) * 100

    def dot(value: Value, column: Column) -> Dot:
        ends = [place(end) for end in _ends(value)]
        whisker = None if not ends or is_missing(value.error) else (ends[0], ends[-1] - ends[0])
        return Dot(sum(ends) / len(ends) if ends else None, whisker, show_value(value, column.unit, column.digits))

    rows = [(method.name, [dot(method.values[index], column) for index, column in drawn]) for method in results.methods]
    return Dots([column for _, column in drawn], rows, axis_ticks(start, end, unit, place), unit)


def _ends(value: Value) -> list[float]:
    """The two ends of the value's whisker, equal without an uncertainty; none where it is missing."""
    if value.value is None or is_missing(value.value):
        return []
    error = 0.0 if value.error is None or is_missing(value.error) else value.error
    return [value.value - error, value.value + error]
