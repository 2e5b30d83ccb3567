"""The results as the page shows them: a table, and dots with whiskers that draw the same figure of several methods.

The table has what the labels alone tell first, what needs the truth after it, and the best in bold. Of many methods the
best come first, and the rest is folded away.
"""

from collections.abc import Sequence

from naysay.report.numerals import MISSING, is_missing, show_parts
from naysay.report.records import Column, Dots, Drawn, Method, Results, Value
from naysay.report.rows import ends, fold

GROUPS = ("From complementary labels alone", "Against the truth", "Cost")
SHOWN = 8  # methods
WHISKERS = (
    "Whiskers reach one uncertainty to each side, or to the ends of an interval. Estimates on the same rows move "
    "together: judge two methods by their paired difference, not by overlapping whiskers."
)


def tabulate(results: Results) -> Drawn:
    """The results with their columns in groups (title, first column, how many), in which columns keep their order."""
    order = sorted(range(len(results.columns)), key=lambda index: _group(results.columns[index]))
    columns, methods = [results.columns[index] for index in order], _sorted(results)
    values = [[method.values[index] for index in order] for method in methods]
    best = [_best(column, [row[at] for row in values]) for at, column in enumerate(columns)]
    cells = [[_cell(*of) for of in zip(row, columns, best, strict=True)] for row in values]
    has_error = [any(row[at]["error"] for row in cells) for at in range(len(columns))]
    members = [[at for at, column in enumerate(columns) if _group(column) == group] for group in range(len(GROUPS))]
    groups = [(title, found[0], len(found)) for title, found in zip(GROUPS, members, strict=True) if found]
    rows, folded = fold([{"method": one, "cells": of} for one, of in zip(methods, cells, strict=True)], SHOWN)
    return {"columns": columns, "groups": groups, "has_error": has_error, "rows": rows, "folded": folded}


def dots_of(results: Results) -> Dots:
    """The columns in `results.drawn`, a row for each method."""
    drawn = [(index, column) for index, column in enumerate(results.columns) if column.name in results.drawn]
    rows = [(method.name, [method.values[index] for index, _ in drawn]) for method in _sorted(results)]
    columns = [column for _, column in drawn]
    return Dots(" beside ".join(column.name for column in columns), columns, rows, WHISKERS)


def _sorted(results: Results) -> Sequence[Method]:
    """The methods as given or, where `by` names a column, best first after the chosen one."""
    if not results.by:
        return results.methods
    at, column = next((at, column) for at, column in enumerate(results.columns) if column.name == results.by)

    def key(method: Method) -> tuple[bool, bool, float]:
        value = method.values[at].value
        known = value is not None and not is_missing(value)
        return not method.chosen, not known, (value or 0.0) * (-1 if column.better == "higher" else 1) if known else 0.0

    return sorted(results.methods, key=key)


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
    middle = sum(ends(value)) / 2 if value.value is None else float(value.value)  # of an interval that stands alone
    best_of_all = best is not None and value.value == best
    return {"sort": repr(middle), "text": text, "error": error, "best": best_of_all}
