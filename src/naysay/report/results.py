"""The results as the page shows them: a table, and dots with whiskers that draw the same figure of several methods.

The table has what the labels alone tell first, what needs the truth after it, and the best in bold.
"""

from naysay.report.numerals import MISSING, axis_ticks, is_missing, show_parts, show_value, widen
from naysay.report.records import Column, Drawn, Results, Value

GROUPS = ("From complementary labels alone", "Against the truth", "Cost")


def tabulate(results: Results) -> Drawn:
    """The results with their columns in groups (title, first column, how many), in which columns keep their order."""
    order = sorted(range(len(results.columns)), key=lambda index: _group(results.columns[index]))
    columns = [results.columns[index] for index in order]
    values = [[method.values[index] for index in order] for method in results.methods]
    best = [_best(column, [row[at] for row in values]) for at, column in enumerate(columns)]
    cells = [[_cell(*of) for of in zip(row, columns, best, strict=True)] for row in values]
    has_error = [any(row[at]["error"] for row in cells) for at in range(len(columns))]
    members = [[at for at, column in enumerate(columns) if _group(column) == group] for group in range(len(GROUPS))]
    groups = [(title, found[0], len(found)) for title, found in zip(GROUPS, members, strict=True) if found]
    rows = list(zip(results.methods, cells, strict=True))
    return {"columns": columns, "groups": groups, "has_error": has_error, "rows": rows}


def _group(column: Column) -> int:
    return 2 if column.cost else int(column.needs_truth)


def _best(column: Column, values: list[Value]) -> float | None:
    known = [value.value for value in values if value.value is not None and not is_missing(value.value)]
    if not column.better or len(known) < 2:
        return None
    return max(known) if column.better == "higher" else min(known)


def _cell(value: Value, column: Column, best: float | None) -> Drawn:
    """A number in the table: its value to sort by ("" where missing), its text, its uncertainty, whether it is best."""
    text, error = show_parts(value, column.unit, column.digits)
    if text == MISSING:
        return {"sort": "", "text": text, "error": "", "best": False}
    middle = _middle(value)
    return {"sort": repr(float(middle)), "text": text, "error": error, "best": value.value == best}


def draw_dots(results: Results) -> Drawn | None:
    """The columns in `results.drawn` on one axis, in the unit of the first, or None where nothing was measured.

    Each method has a dot for every column: its place and whisker (left end, length) in percent, None where missing.
    """
    drawn = [(index, column) for index, column in enumerate(results.columns) if column.name in results.drawn]
    ends = [end for method in results.methods for index, _ in drawn for end in _ends(method.values[index])]
    if not ends:
        return None
    unit = drawn[0][1].unit
    start, end = widen(min(ends), max(ends))

    def place(value: float) -> float:
        return (value - start) / (end - start) * 100

    def dot(value: Value, column: Column) -> Drawn:
        ends = [place(end) for end in _ends(value)]
        whisker = None if not ends or ends[0] == ends[1] else (ends[0], ends[1] - ends[0])
        at = None if value.value is None or not ends else place(value.value)
        return {"at": at, "whisker": whisker, "text": show_value(value, column.unit, column.digits)}

    rows = [(method.name, [dot(method.values[index], column) for index, column in drawn]) for method in results.methods]
    columns, marks = [column for _, column in drawn], axis_ticks(start, end, unit, place)
    return {"columns": columns, "rows": rows, "ticks": marks, "unit": unit}


def _ends(value: Value) -> list[float]:
    """The two ends of the value's whisker, equal without an uncertainty; none where it is missing."""
    if value.low is not None and value.high is not None:
        return [value.low, value.high]
    if value.value is None or is_missing(value.value):
        return []
    error = 0.0 if value.error is None or is_missing(value.error) else value.error
    return [value.value - error, value.value + error]


def _middle(value: Value) -> float:
    """What a value is sorted by: itself, or the middle of an interval that stands alone."""
    low, high = _ends(value)
    return (low + high) / 2 if value.value is None else value.value
