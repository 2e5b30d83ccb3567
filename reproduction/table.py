"""The cells laid out to be read: sections with a row for each place, as text that a terminal and Markdown print alike.

With one figure there is a section for each column (or panel) of the spec; with several a section for each figure, since
each has its published values; where the paper gives none, the figures stand side by side in one section.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from reproduction import words
from reproduction.cells import COMPARED, GOALS, OURS, Cell, figures
from reproduction.published import published
from reproduction.spec import NAMES, Spec
from reproduction.standing import names

FEW = 3  # missing rows that are named one by one


@dataclass(frozen=True)
class Section:
    """A titled part of a table: the name of each row and its cells, one, or one for each figure."""

    title: str
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]

    @property
    def recorded(self) -> bool:
        """Whether any of its cells has a value."""
        return any(cell.n for _, cells in self.rows for cell in cells)

    @property
    def compared(self) -> bool:
        """Whether any of its cells has a published value."""
        return any(cell.published is not None for _, cells in self.rows for cell in cells)

    @property
    def beside(self) -> str:
        """What its cells are compared with: the "paper", or "goal"s."""
        return next((cell.beside for _, cells in self.rows for cell in cells if cell.published is not None), "paper")


def sections(spec: Spec, cells: Sequence[Cell]) -> list[Section]:
    """The cells of the spec in sections, all of them, with or without records."""
    told, across = names(spec), spec.show["columns"] if spec.kind == "table" else spec.show.get("panels", [])
    shown = figures(spec)
    if len(shown) > 1 and not published(spec.name).values:
        groups = [tuple(cells[start : start + len(shown)]) for start in range(0, len(cells), len(shown))]
        return [Section("", tuple((words.place(group[0].place, told), group) for group in groups))]
    rows: dict[str, list[tuple[str, tuple[Cell, ...]]]] = {}
    for cell in cells:
        if len(shown) > 1:
            title, row = words.figure(cell.figure), words.place(cell.place, told)
        else:
            title = words.place(cell.place, across)
            row = words.place(cell.place, [name for name in told if name not in across])
        rows.setdefault(title, []).append((row, (cell,)))
    return [Section(title, tuple(its)) for title, its in rows.items()]


def head(section: Section) -> list[str]:
    """The titles of a section's columns."""
    first = section.rows[0][1]
    if len(first) > 1:
        return ["", *(f"{words.figure(cell.figure)}, %" for cell in first), "marks"]
    theirs = [f"{section.beside}, %", "difference", "verdict"] if section.compared else []
    return ["", "ours, %", *theirs, "marks"]


def lines(section: Section, notes: Sequence[str], *, missing: bool = True) -> list[list[str]]:
    """The rows as text, without those that have no value unless `missing`; marks refer to `notes` by number.

    A row that has records without this figure is not missing: its kind of run has no such figure.
    """
    kept = [
        (name, cells)
        for name, cells in section.rows
        if any(cell.n for cell in cells) or (missing and cells[0].standing.kind == "missing")
    ]
    return [[name, *_texts(cells, section.compared), marks(cells[0], notes)] for name, cells in kept]


def marks(cell: Cell, notes: Sequence[str]) -> str:
    """What to know of a cell: quick, partial or stale, with the numbers of the notes on it, simulated, failed."""
    said = [f"{cell.standing.kind} [{notes.index(cell.standing.cut) + 1}]"] if cell.standing.cut else []
    wrong = ", ".join(str(notes.index(text) + 1) for text in cell.standing.stale)
    said += [f"stale [{wrong}]"] if wrong else []
    said += ["simulated"] if cell.simulated else []
    said += [f"{cell.standing.failed} failed"] if cell.standing.failed else []
    return ", ".join(said)


def cuts(cells: Iterable[Cell]) -> list[str]:
    """What was cut, and what is stale, each once, in the order of the cells: the notes that marks refer to."""
    its = [cell.standing for cell in cells]
    cut = [one.cut for one in its if one.cut]
    return list(dict.fromkeys([*cut, *(text for one in its for text in one.stale)]))


def absent(spec: Spec, cells: Sequence[Cell]) -> list[str]:
    """What has no record, in words: sections as a whole, else their rows, or how many they are."""
    shown = sections(spec, cells)
    several = len(figures(spec)) > 1  # then all sections have the same rows
    parts = []
    for section in shown[:1] if several else shown:
        of = f" of {section.title}" if section.title and not several else ""
        empty = [name for name, group in section.rows if group[0].standing.kind == "missing"]
        if len(empty) == len(section.rows):
            parts.append("everything" if several else section.title or "everything")
        elif len(empty) > FEW:
            parts.append(f"{len(empty)} of {len(section.rows)} rows{of}")
        else:
            parts += [f"{name}{of}" for name in empty]
    return parts


def told(spec: Spec, cells: Sequence[Cell]) -> list[str]:
    """The lines below the tables: what was cut and is missing, whence the published values are, and the rule once."""
    theirs, missing = published(spec.name), absent(spec, cells)
    if not any(cell.n for cell in cells):
        called = spec.name if spec.name in NAMES else f"{spec.name}.toml"
        rule = [f"To make records: {words.COMMAND} run {called}; with --quick for a first look."]
    else:
        rule = [OURS, GOALS if theirs.goal else COMPARED] if theirs.values else [OURS]
    return [
        *(f"[{number}] {cut}." for number, cut in enumerate(cuts(cells), 1)),
        *([f"No record yet: {'; '.join(missing)}."] if missing else []),
        *([f"{'Goals' if theirs.goal else 'Published'}: {theirs.source}."] if theirs.source else []),
        *([theirs.note] if theirs.note else []),
        " ".join(rule),
    ]


def printed(spec: Spec, cells: Sequence[Cell]) -> list[Any]:
    """What rich prints, top to bottom: the title, a table for each section with a record, and the notes."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    notes = cuts(cells)
    out: list[Any] = [Text(spec.title, style="bold"), Text(spec.source, style="dim")]
    for section in sections(spec, cells):
        if not section.recorded:
            continue
        table = Table(box=box.SIMPLE_HEAD, title=section.title or None, title_justify="left", title_style="bold")
        rows = lines(section, notes, missing=spec.kind == "table")
        for title, column in zip(head(section), zip(*rows, strict=True), strict=True):
            if title in ("", "marks", "verdict"):
                table.add_column(title)
            else:  # numbers never wrap; where room is short the words do
                table.add_column(title, justify="right", min_width=max(map(len, column)))
        for row in rows:
            table.add_row(*map(Text, row))
        out.append(table)
    return [*out, *map(Text, told(spec, cells))]


def as_json(spec: Spec, cells: Sequence[Cell]) -> dict[str, Any]:
    """The same as plain data: shares between 0 and 1, null where there is nothing."""
    theirs = published(spec.name)
    return {
        "name": spec.name,
        "kind": spec.kind,
        "title": spec.title,
        "source": spec.source,
        "published": {"source": theirs.source or None, "note": theirs.note or None},
        "rule": f"{OURS} {COMPARED}",
        "cells": [
            {
                "place": dict(cell.place),
                "figure": cell.figure,
                "mean": cell.mean,
                "sd": cell.sd,
                "n": cell.n,
                "runs": cell.standing.kind,
                "cut": cell.standing.cut or None,
                "stale": list(cell.standing.stale),
                "failed": cell.standing.failed,
                "simulated": cell.simulated,
                "published": cell.published,
                "published_sd": None if cell.paper is None else cell.paper.sd,
                "difference": cell.difference,
                "standard_error": cell.error,
                "in_standard_errors": cell.in_errors,
                "verdict": cell.verdict or None,
                "keys": [record["key"] for record in cell.standing.chosen],
            }
            for cell in cells
        ],
    }


def _texts(cells: Sequence[Cell], compared: bool) -> list[str]:
    if len(cells) > 1 or not compared:
        return [_ours(cell) for cell in cells]
    (cell,) = cells
    theirs = "" if cell.paper is None else _mean(cell.paper.mean, cell.paper.sd)
    return [_ours(cell), theirs, _difference(cell), cell.verdict]


def _ours(cell: Cell) -> str:
    """Mean ± sd (n), in percent; without an sd where there is none."""
    return f"{_mean(cell.mean, cell.sd)} ({cell.n})" if cell.n else words.MISSING


def _mean(mean: float | None, sd: float | None) -> str:
    return words.percent(mean) + ("" if sd is None else f" ± {words.percent(sd, mean)}")


def _difference(cell: Cell) -> str:
    """Ours less the paper's in points, and in standard errors where there are any."""
    if cell.difference is None:
        return ""
    errors = "" if cell.in_errors is None else words.minus(f" ({cell.in_errors:+.1f} se)")
    return f"{words.percent(cell.difference, cell.published, sign=True)}{errors}"
