"""The table of results as the page shows it: what the labels alone tell first, what needs the truth after it, the best
in bold.
"""

from dataclasses import dataclass

from naysay.report.data import Column, Method, Results, Value
from naysay.report.numerals import is_missing, show

GROUPS = ("From complementary labels alone", "Against the truth", "Cost")


@dataclass(frozen=True)
class Cell:
    """A number in the table: its value to sort by ("" where missing), its text, its uncertainty's text, and whether it
    is the best.
    """

    sort: str
    text: str
    error: str
    best: bool


@dataclass(frozen=True)
class Table:
    """The columns in their shown order, their groups (title, first column, how many), which have uncertainties, and the
    methods' cells.
    """

    columns: list[Column]
    groups: list[tuple[str, int, int]]
    has_error: list[bool]
    rows: list[tuple[Method, list[Cell]]]


def tabulate(results: Results) -> Table:
    """The results with their columns in groups; within a group columns keep their order, and so do the methods."""
    order = sorted(range(len(results.columns)), key=lambda index: _group(results.columns[index]))
    columns = [results.columns[index] for index in order]
    best = [
        _best(column, [method.values[index] for method in results.methods])
        for index, column in zip(order, columns, strict=True)
    ]
    rows = [
        (
            method,
            [_cell(method.values[index], column, top) for index, column, top in zip(order, columns, best, strict=True)],
        )
        for method in results.methods
    ]
    has_error = [any(cells[index].error for _, cells in rows) for index in range(len(columns))]
    members = [
        [index for index, column in enumerate(columns) if _group(column) == group] for group in range(len(GROUPS))
    ]
    groups = [(title, found[0], len(found)) for title, found in zip(GROUPS, members, strict=True) if found]
    return Table(columns, groups, has_error, rows)


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
