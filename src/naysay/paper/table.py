"""The cells laid out to be read: sections with a row for each place, as text that a terminal, a page and Markdown print
alike.

With one figure there is a section for each column (or panel) of the spec; with several a section for each figure, since
each has its published values; where the paper gives none, the figures stand side by side in one section.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from naysay.paper import words
from naysay.paper.cells import Cell, figures
from naysay.paper.choosing import names
from naysay.paper.published import published
from naysay.paper.spec import Spec


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


def sections(spec: Spec, cells: Sequence[Cell]) -> list[Section]:
    """The cells of the spec in sections, all of them, with or without records."""
    told, across = names(spec), spec.show["columns"] if spec.kind == "table" else spec.show.get("panels", [])
    shown = figures(spec)
    if len(shown) == 1:
        titles = [words.place(cell.place, across) for cell in cells]
        rows = [name for name in told if name not in across]
        return [
            Section(
                title,
                tuple(
                    (words.place(cell.place, rows), (cell,))
                    for cell, its in zip(cells, titles, strict=True)
                    if its == title
                ),
            )
            for title in dict.fromkeys(titles)
        ]
    if published(spec.name).values:
        return [
            Section(
                words.figure(figure),
                tuple((words.place(cell.place, told), (cell,)) for cell in cells if cell.figure == figure),
            )
            for figure in shown
        ]
    groups = [tuple(cells[start : start + len(shown)]) for start in range(0, len(cells), len(shown))]
    return [Section("", tuple((words.place(group[0].place, told), group) for group in groups))]


def head(section: Section) -> list[str]:
    """The titles of a section's columns."""
    first = section.rows[0][1]
    if len(first) > 1:
        return ["", *(f"{words.figure(cell.figure)}, %" for cell in first), "marks"]
    return ["", "ours, %", *(["paper, %", "difference", "verdict"] if section.compared else []), "marks"]


def lines(section: Section, notes: Sequence[str], *, missing: bool = True) -> list[list[str]]:
    """The rows of a section as text, those without a value too unless `missing` is False; marks refer to `notes` by
    number.
    """
    kept = [(name, cells) for name, cells in section.rows if missing or any(cell.n for cell in cells)]
    return [[name, *_texts(cells, section.compared), marks(cells[0], notes)] for name, cells in kept]


def ours(cell: Cell) -> str:
    """Mean ± sd (n), in percent; without an sd where there is none."""
    spread = "" if cell.sd is None else f" ± {words.percent(cell.sd, cell.mean)}"
    return f"{words.percent(cell.mean)}{spread} ({cell.n})" if cell.n else words.MISSING


def difference(cell: Cell) -> str:
    """Ours less the paper's in points, and in standard errors where there are any."""
    if cell.difference is None:
        return ""
    errors = "" if cell.in_errors is None else words.minus(f" ({cell.in_errors:+.1f} se)")
    return f"{words.percent(cell.difference, cell.published, sign=True)}{errors}"


def marks(cell: Cell, notes: Sequence[str]) -> str:
    """What to know of a cell: quick or partial, with the number of the note that says what was cut, simulated, failed."""
    said = [f"{cell.standing.kind} [{notes.index(cell.standing.cut) + 1}]"] if cell.standing.cut else []
    said += ["simulated"] if cell.simulated else []
    said += [f"{cell.standing.failed} failed"] if cell.standing.failed else []
    return ", ".join(said)


def cuts(cells: Iterable[Cell]) -> list[str]:
    """What was cut, each once, in the order of the cells: the notes that marks refer to."""
    return list(dict.fromkeys(cell.standing.cut for cell in cells if cell.standing.cut))


def _texts(cells: Sequence[Cell], compared: bool) -> list[str]:
    if len(cells) > 1 or not compared:
        return [ours(cell) for cell in cells]
    (cell,) = cells
    theirs = "" if cell.published is None else words.percent(cell.published)
    return [ours(cell), theirs, difference(cell), cell.verdict]
