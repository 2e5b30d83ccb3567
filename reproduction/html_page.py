"""A table or figure of the paper as a page of `naysay.report`: the results as its table, the curves as its charts."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from naysay.report import Column, Curves, Method, Report, Results, Series, Value
from reproduction import words
from reproduction.cells import Cell, landed
from reproduction.pictures import Dots, Line, Plot
from reproduction.provenance import provenance
from reproduction.spec import Spec
from reproduction.standing import Record
from reproduction.table import Section, cuts, marks, sections, told


def page(
    spec: Spec, cells: Sequence[Cell], drawn: Plot | Dots | None, records: Sequence[Record], command: str
) -> Report:
    """The page of one spec; `command` is what made it."""
    origin = provenance(spec, records)
    return Report(
        title=spec.title,
        summary=f"{spec.source}. Ours: {landed(cells)}." if any(cell.verdict for cell in cells) else f"{spec.source}.",
        results=_results(spec, cells),
        sharing=_charts(drawn) if isinstance(drawn, Plot) else [],
        facts={"runs": "; ".join(origin.runs()), "data": "; ".join(origin.data())},
        config=spec.origin,
        command=command,
    )


def _results(spec: Spec, cells: Sequence[Cell]) -> Results | None:
    shown = [section for section in sections(spec, cells) if section.recorded]
    if not shown:
        return None
    columns = [column for section in shown for column in _columns(section)]
    rows = [row for section in shown for row in section.rows]
    names = dict.fromkeys(name for name, group in rows if any(cell.n for cell in group))
    methods = [_method(name, shown, cuts(cells)) for name in names]
    return Results(columns, methods, note=" ".join(told(spec, cells)), drawn=_drawn(spec, shown))


def _columns(section: Section) -> list[Column]:
    columns = []
    for index, first in enumerate(section.rows[0][1]):
        means = [group[index].mean for _, group in section.rows]
        digits = max(words.decimals(mean) for mean in means if mean is not None) if any(means) else 2
        better: Literal["higher", "lower"] = "lower" if first.figure in words.LOWER_IS_BETTER else "higher"
        name = section.title or words.figure(first.figure)
        columns.append(Column(name, digits=digits, better=better, note="ours; ± one sd over seeds", needs_truth=True))
        if section.compared:
            told = "as published" if section.beside == "paper" else "to be reached"
            theirs = Column(f"{name}, {section.beside}", digits=2, better=better, note=told, needs_truth=True)
            columns.append(theirs)
            note = "in points; ± its standard error"
            columns.append(Column(f"{name}, difference", digits=2, better="", note=note, needs_truth=True))
    return columns


def _method(name: str, shown: Sequence[Section], notes: Sequence[str]) -> Method:
    values: list[Value] = []
    said: dict[str, str] = {}
    for section in shown:
        group = dict(section.rows).get(name)
        if group is None:
            values += [Value(None)] * len(_columns(section))
            continue
        for cell in group:
            values.append(Value(cell.mean, cell.sd))
            theirs = Value(cell.published, cell.paper.sd if cell.paper else None)
            values += [theirs, Value(cell.difference, cell.error)] if section.compared else []
        if group[0].n:
            said[section.title] = ", ".join(filter(None, [words.count(group[0].n, "seed"), marks(group[0], notes)]))
    if len(set(said.values())) == 1:
        return Method(name, values, note=next(iter(said.values())))
    return Method(name, values, note="; ".join(f"{title}: {text}" for title, text in said.items()))


def _drawn(spec: Spec, shown: Sequence[Section]) -> tuple[str, ...]:
    """Of a table's first section that has published values, ours and theirs are drawn as dots too."""
    first = next((section for section in shown if section.compared), None)
    return () if first is None or spec.kind != "table" else (first.title, f"{first.title}, {first.beside}")


def _charts(plot: Plot) -> list[Curves]:
    """A chart for each panel; of points that are no curve, one for each series, with the panels as its lines."""
    note = f"band: {plot.spread}."
    if plot.joined:
        powers = ", as powers of ten (−2 is 1 %)" if plot.log_y else ""
        return [
            _chart(panel.title, panel.lines, plot, f"{panel.y_name.removesuffix(', %')}{powers}; {panel.note}; {note}")
            for panel in plot.panels
        ]
    names = dict.fromkeys(line.name for panel in plot.panels for line in panel.lines)
    by_panel = [(panel.title, line) for panel in plot.panels for line in panel.lines]
    return [
        _chart(name, [replace(line, name=title) for title, line in by_panel if line.name == name], plot, note)
        for name in names
    ]


def _chart(title: str, lines: Sequence[Line], plot: Plot, note: str) -> Curves:
    """Lines over the union of their x; where the picture has a logarithmic axis, powers of two on x, of ten on y."""
    x = sorted({at for line in lines for at in line.x})
    series = []
    for line in lines:
        y, low, high = ([_at(line, part, at, plot.log_y) for at in x] for part in (line.y, line.low, line.high))
        series.append(Series(line.name, y, low, high, needs_truth=True))
    unit: Literal["", "%"] = "" if plot.log_y else "%"
    if plot.log_x:
        x_name = f"{plot.x_name}, as powers of two (6 is 64)"
        return Curves(title, [math.log2(at) for at in x], series, x_name, unit, note)
    return Curves(title, x, series, plot.x_name, unit, note)


def _at(line: Line, part: Sequence[float], x: float, log: bool) -> float | None:
    """What a part of the line has at x, as a share or its power of ten; None where it has no point."""
    if x not in line.x:
        return None
    share = part[list(line.x).index(x)] / 100
    return share if not log else math.log10(share) if share > 0 else None
