"""Pictures as PNG, by matplotlib: 1600 pixels wide, in the report's colours, with a shape beside every colour."""

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from naysay.errors import InputError
from reproduction import words
from reproduction.cells import Cell
from reproduction.pictures import Dots, Line, Panel, Plot
from reproduction.spec import Spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Canvas = tuple[Figure, list[Axes]]

Style = dict[str, Any]  # keywords of an artist

DPI, INCHES = 160, 10.0  # 1600 pixels
TITLE, NOTE = 100, 150  # letters of a title and of a panel's note, of one panel, that this width has room for
# the light palette of report/assets/report.css
COLOURS = ("#4966ce", "#e15d21", "#1b956a", "#944196", "#6e551a", "#269add", "#690d11", "#38515f", "#181e88", "#d563af")
INK, SOFT, RULE, PAPER = "#1d1f23", "#5c6069", "#e3e3de", "#fdfdfb"
SHAPES = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (4, 2)), (0, (1, 2)), (0, (6, 2, 1, 2)))
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that a picture looks the same everywhere
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": SOFT,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.color": INK,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "legend.frameon": False,
}


def draw(spec: Spec, picture: Plot | Dots, path: Path) -> None:
    """Draw the picture into the PNG file `path`."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise InputError(
            f"pictures need a package that is not here: {error}. Get it with: pip install 'naysay[reproduction]'"
        ) from None

    with matplotlib.rc_context(STYLE):
        figure = _dots(spec, picture) if isinstance(picture, Dots) else _plot(spec, picture)
        FigureCanvasAgg(figure)
        figure.savefig(path, format="png", metadata={"Software": None})  # so that the numbers alone decide the bytes


def _plot(spec: Spec, plot: Plot) -> "Figure":
    columns = min(plot.columns, len(plot.panels))
    rows = math.ceil(len(plot.panels) / columns)
    named = list(dict.fromkeys(line.name for panel in plot.panels for line in panel.lines))
    below = 0.21 * math.ceil(len(named) / 3) + 0.45
    figure, grid = _canvas(spec, rows, columns, rows * 3.6 + 0.9 + below, below, plot.spread)
    for axes, panel in zip(grid, plot.panels, strict=False):
        _panel(axes, panel, plot, named, columns)
    for axes in grid[len(plot.panels) :]:
        axes.set_visible(False)
    _legend(figure, grid, 3)
    return figure


def _panel(axes: "Axes", panel: Panel, plot: Plot, named: Sequence[str], columns: int) -> None:
    notes = textwrap.wrap(panel.note, NOTE // columns)
    axes.set_title(panel.title, pad=6 + 10 * len(notes))
    where: Style = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate("\n".join(notes), (0, 1), (0, 4), fontsize=7.5, color=SOFT, **where)
    axes.set(xlabel=plot.x_name, ylabel=panel.y_name)
    if plot.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    if plot.log_x:
        ticks = sorted({x for line in panel.lines for x in line.x})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    for line in panel.lines:
        _line(axes, line, plot, named.index(line.name))


def _line(axes: "Axes", line: Line, plot: Plot, number: int) -> None:
    colour, shape = COLOURS[number % len(COLOURS)], SHAPES[number % len(SHAPES)]
    many = len(line.x) > 20
    dash = DASHES[number % len(DASHES)] if plot.joined else "none"
    marks: Style = {"marker": "none" if many else shape, "markersize": 5.5, "markerfacecolor": colour}
    if not line.whole:
        marks["markerfacecolor"] = PAPER
    axes.plot(line.x, line.y, linestyle=dash, linewidth=1.8, color=colour, alpha=0.9, label=line.name, **marks)
    if list(line.low) != list(line.high):
        if many:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
        else:
            axes.vlines(line.x, line.low, line.high, color=colour, linewidth=1.2)
    if line.paper:
        x, y = line.paper
        hollow: Style = {"markerfacecolor": "none", "markersize": 8}
        axes.plot([x], [y], "D", color=colour, clip_on=False, label=f"{line.name}, paper", **hollow)


def _dots(spec: Spec, dots: Dots) -> "Figure":
    """Ours as filled dots with one sd to each side, quick ones hollow; the published as upright strokes."""
    columns = min(2, len(dots.panels))
    rows = math.ceil(len(dots.panels) / columns)
    tallest = max(len(cells) for _, cells in dots.panels)
    figure, grid = _canvas(spec, rows, columns, rows * (tallest * 0.2 + 0.9) + 1.3, 0.55, "one sd over seeds")
    for axes, (title, cells) in zip(grid, dots.panels, strict=False):
        _dot_panel(axes, title, cells)
    for axes in grid[len(dots.panels) :]:
        axes.set_visible(False)
    _legend(figure, grid, 4)
    return figure


def _dot_panel(axes: "Axes", title: str, cells: Sequence[tuple[str, Cell]]) -> None:
    axes.set_title(title)
    axes.set_yticks(range(len(cells)), [name for name, _ in cells], color=INK, fontsize=8.5)
    figures = {words.figure(cell.figure) for _, cell in cells}
    axes.set(xlabel=", ".join([*figures, "%"]) if len(figures) == 1 else "%", ylim=(len(cells) - 0.4, -0.6))
    axes.grid(axis="y", visible=False)
    for at, (_, cell) in enumerate(cells):
        if cell.published is not None:
            stroke: Style = {"markersize": 13, "markeredgewidth": 2.2}
            axes.plot([cell.published * 100], [at], "|", color=COLOURS[1], label=cell.beside, **stroke)
        if cell.mean is None:
            continue
        if cell.sd:
            axes.hlines(at, (cell.mean - cell.sd) * 100, (cell.mean + cell.sd) * 100, color=COLOURS[0], linewidth=1.5)
        kind, whole = cell.standing.kind, cell.standing.kind == "full"
        dot: Style = {"markersize": 6.5, "markeredgewidth": 1.6, "markerfacecolor": COLOURS[0] if whole else PAPER}
        name, shape = "ours" if whole else f"ours, {kind}", "s" if kind == "partial" else "o"
        axes.plot([cell.mean * 100], [at], shape, color=COLOURS[0], label=name, **dot)


def _canvas(spec: Spec, rows: int, columns: int, height: float, below: float, spread: str) -> "Canvas":
    """A figure of the promised width with its title, room for the legend `below` (inches), and its axes row by row."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(rect=(0.005, below / height, 0.99, 1 - below / height), h_pad=0.08, wspace=0.06)
    figure = Figure(figsize=(INCHES, round(height * DPI) / DPI), dpi=DPI, layout=layout)
    figure.suptitle("\n".join(textwrap.wrap(spec.title, TITLE)), x=0.012, ha="left", fontsize=12, fontweight="bold")
    figure.text(0.5, 0.06 / height, f"bands and whiskers: {spread}", ha="center", fontsize=7.5, color=SOFT)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _legend(figure: "Figure", grid: "Sequence[Axes]", columns: int) -> None:
    """Below all axes, what each mark means, each once."""
    handles = {name: handle for axes in grid for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    at: Style = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.2 / figure.get_figheight())}
    figure.legend(handles.values(), handles.keys(), ncols=min(columns, len(handles)), **at)
