"""What is said in words and tables, said once: titled parts, drawn as HTML for a page and by rich for a terminal.

Whoever has something to tell (the audit) makes these records and chooses no markup: sentences, tables with what their
columns are, and advice by how pressing it is. Names come from files: jinja2 escapes everything, and a terminal
gets printable characters only. Bars and shades repeat what numbers say, so nothing is told by colour alone.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from naysay.words import shortened

WIDTH = 100  # columns of the text
BAR, NAME, NARROW = 20, 24, (12, 5)  # columns for a bar and a name, and for names beside and above shades
TEXT_ROWS, PAGE_ROWS = 20, 100  # rows of a table that are shown
TEXT_COLUMNS, PAGE_COLUMNS = 13, 101  # a wider table is not drawn

Kind = Literal["name", "text", "number", "bar", "shade"]
Level = Literal["act", "look", "fine"]


@dataclass(frozen=True)
class Field:
    """A column: its heading, and whether its cells are words, numbers, or shares of 1 drawn as a `bar` or a `shade`."""

    title: str
    kind: Kind = "number"


@dataclass(frozen=True)
class Table:
    """Rows under their fields; the first cell of a row heads it, and bars and shades are floats, all else text."""

    caption: str
    fields: Sequence[Field]
    rows: Sequence[Sequence[str | float]]

    @property
    def deepest(self) -> float:
        """The largest of the numbers that are drawn as shades, which is drawn deepest."""
        shades = [cell for row in self.rows for cell in row if not isinstance(cell, str)]
        return max(shades, default=0.0) or 1.0


@dataclass(frozen=True)
class Advice:
    """One sentence or two: `act` on it before training, `look` into it, or all is `fine`."""

    level: Level
    text: str


@dataclass(frozen=True)
class Part:
    """A title with paragraphs and tables under it, or with advice."""

    title: str
    says: Sequence[str | Table] = ()
    advice: Sequence[Advice] = ()


@dataclass(frozen=True)
class Content:
    """All there is to say: a title, an opening line, what to do, and the parts that say why.

    A page has what to do at its top, a terminal at its end, where the reader's eye is.
    """

    title: str
    opening: str
    to_do: Part
    parts: Sequence[Part]


def as_html(content: Content, whole: bool = False) -> str:
    """The content as one self-contained <section> without script, its headings from h3 down, or as a `whole` page."""
    from naysay.report.page import ASSETS, template

    style = (ASSETS / "content.css").read_text(encoding="utf-8").strip()
    limits = {"most_rows": PAGE_ROWS, "most_columns": PAGE_COLUMNS}
    section = str(template("content.html.j2").render(content=content, style=style, **limits)).strip()
    if not whole:
        return section
    css = (ASSETS / "report.css").read_text(encoding="utf-8").strip()
    return str(template("content_page.html.j2").render(title=content.title, section=section, css=css))


def as_text(content: Content) -> str:
    """The content as plain text of at most `WIDTH` columns, with nothing in it that a terminal would obey."""
    from rich.console import Console

    drawn = io.StringIO()
    console = Console(file=drawn, width=WIDTH, color_system=None, force_terminal=False, force_jupyter=False)
    console.print(_text(content.title), "=" * len(content.title), _text(content.opening), sep="\n")
    for part in (*content.parts, content.to_do):
        console.print("", _text(part.title), "-" * len(part.title), *_drawn(part), sep="\n")
    return "\n".join(line.rstrip() for line in drawn.getvalue().splitlines()) + "\n"


def _text(words: str) -> Any:
    """Text that is never taken for markup, on one line, without control characters."""
    from rich.text import Text

    return Text("".join(c if c.isprintable() else " " for c in words))


def _drawn(part: Part) -> Iterator[Any]:
    from rich.padding import Padding
    from rich.table import Table as Grid

    alone = sum(isinstance(said, Table) for said in part.says) == 1  # then the part's title says what it is
    for said in part.says:
        if isinstance(said, Table) and not alone:
            yield Padding(_text(said.caption), (0, 0, 0, 2))
        yield Padding(_text(said) if isinstance(said, str) else _grid(said), (0, 0, 0, 2))
        if isinstance(said, Table) and len(said.rows) > TEXT_ROWS:
            yield f"  ... and {len(said.rows) - TEXT_ROWS:,} more"
    if part.advice:
        lines = Grid.grid(padding=(0, 1, 0, 0))
        lines.add_column(width=5)
        for advice in part.advice:
            lines.add_row(advice.level, _text(advice.text))
        yield Padding(lines, (0, 0, 0, 2))


def _grid(table: Table) -> Any:
    """The table with aligned columns, names cut to their width."""
    from rich.table import Table as Grid

    if len(table.fields) > TEXT_COLUMNS:
        return _text(f"{len(table.fields) - 1} columns are too wide for a terminal; see the page or the JSON form.")
    beside, above = NARROW if any(field.kind == "shade" for field in table.fields) else (NAME, WIDTH)
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for field in table.fields:
        side: Any = "right" if field.kind in ("number", "shade") else "left"
        heading = "" if field.kind == "bar" else shortened(field.title, above)
        grid.add_column(_text(heading), justify=side, no_wrap=field.kind != "text", header_style="")
    for row in table.rows[:TEXT_ROWS]:
        grid.add_row(*(_text(_cell(field.kind, cell, beside)) for field, cell in zip(table.fields, row, strict=True)))
    return grid


def _cell(kind: Kind, cell: str | float, letters: int) -> str:
    if isinstance(cell, str):
        return shortened(cell, letters) if kind == "name" else cell
    return "#" * round(BAR * cell) if kind == "bar" else f"{100 * cell:.0f}"
