"""A table or figure of the paper with our records in it: for a terminal, and as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from naysay.paper.cells import COMPARED, OURS, Cell, figures
from naysay.paper.choosing import Record
from naysay.paper.published import published
from naysay.paper.spec import NAMES, Spec
from naysay.paper.table import cuts, head, lines, sections

FEW = 3  # missing rows that are named one by one


def read(results: Path) -> list[Record]:
    """All records in a results folder (`*.jsonl`); none where there is no folder yet."""
    from naysay.engine import Ledger

    return [record for path in sorted(results.glob("*.jsonl")) for record in Ledger(path).read()]


def printed(spec: Spec, cells: Sequence[Cell]) -> list[Any]:
    """What rich prints, top to bottom: the title, a table for each section with a record, and the notes."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    notes, shown = cuts(cells), sections(spec, cells)
    out: list[Any] = [Text(spec.title, style="bold"), Text(spec.source, style="dim")]
    for section in shown:
        if not section.recorded:
            continue
        table = Table(box=box.SIMPLE_HEAD, title=section.title or None, title_justify="left", title_style="bold")
        rows = lines(section, notes, missing=spec.kind == "table")
        for title, column in zip(head(section), zip(*rows, strict=True), strict=True):
            words = title in ("", "marks", "verdict")
            # numbers never wrap; where room is short the words do
            table.add_column(
                title, justify="left" if words else "right", min_width=None if words else max(map(len, column))
            )
        for row in rows:
            table.add_row(*map(Text, row))
        out.append(table)
    return [*out, *(Text(text) for text in told(spec, cells))]


def told(spec: Spec, cells: Sequence[Cell]) -> list[str]:
    """The lines below the tables: what was cut, what is missing, where the published values come from, and the rule
    once.
    """
    theirs, missing = published(spec.name), absent(spec, cells)
    if not any(cell.n for cell in cells):
        rule = [f"To make records: naysay paper run {_called(spec)}; with --quick for a first look."]
    else:
        rule = [OURS, COMPARED] if theirs.values else [OURS]
    return [
        *(f"[{number}] {cut}." for number, cut in enumerate(cuts(cells), 1)),
        *([f"No record yet: {'; '.join(missing)}."] if missing else []),
        *([f"Published: {theirs.source}."] if theirs.source else []),
        *([theirs.note] if theirs.note else []),
        " ".join(rule),
    ]


def _called(spec: Spec) -> str:
    return spec.name if spec.name in NAMES else f"{spec.name}.toml"


def absent(spec: Spec, cells: Sequence[Cell]) -> list[str]:
    """What has no record, in words: sections as a whole, else their rows, or how many they are."""
    shown = sections(spec, cells)
    several = len(figures(spec)) > 1  # then all sections have the same rows
    parts = []
    for section in shown[:1] if several else shown:
        of = f" of {section.title}" if section.title and not several else ""
        empty = [name for name, group in section.rows if not any(cell.n for cell in group)]
        if len(empty) == len(section.rows):
            parts.append("everything" if several else section.title)
        elif len(empty) > FEW:
            parts.append(f"{len(empty)} of {len(section.rows)} rows{of}")
        else:
            parts += [f"{name}{of}" for name in empty]
    return parts


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
                "failed": cell.standing.failed,
                "simulated": cell.simulated,
                "published": cell.published,
                "difference": cell.difference,
                "standard_error": cell.error,
                "in_standard_errors": cell.in_errors,
                "verdict": cell.verdict or None,
                "keys": [record["key"] for record in cell.standing.chosen],
            }
            for cell in cells
        ],
    }
