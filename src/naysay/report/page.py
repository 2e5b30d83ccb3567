"""The page: one HTML file that holds its styles, its script, its data and its images, and asks the network for nothing.

All text is escaped by the template; data for the script stands in a JSON block without a single `<`; and the page's
content security policy lets run only the script whose hash it names, so that a class called `<script>` is a class and
nothing else.
"""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from naysay import __version__, files
from naysay.report.lines import draw_curves
from naysay.report.map import draw_map
from naysay.report.mass import SMALL, draw_heat, scale, view
from naysay.report.numerals import show, show_parts, show_with_unit
from naysay.report.records import Bars, Dots, Report
from naysay.report.results import dots_of, tabulate
from naysay.report.rows import draw_bars, draw_dots

ASSETS = Path(__file__).parent / "assets"

# The sections in the order of the page; one without content is left out.
SECTIONS = (
    ("results", "Results"),
    ("predictions", "Predictions"),
    ("learning", "Learning curves"),
    ("sharing", "Label sharing"),
    ("labels", "Labels"),
    ("map", "Map of the features"),
    ("examples", "Examples"),
    ("doubtful", "Most doubtful items"),
    ("audit", "Audit of the labels"),
    ("setup", "How this was made"),
)


def write(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write the page to `path`, whole or not at all, and give back the path; a page already there is replaced."""
    path = Path(path)
    # a file name that is no valid text (a lone surrogate) becomes a reference, shown as a replacement character
    content = render(report).encode("utf-8", "xmlcharrefreplace")
    files.replace(path, content, "Give the path of a file in a folder you own.")
    return path


@cache
def template(name: str) -> Any:
    """A template of the assets; it escapes all text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader, strict = FileSystemLoader(ASSETS), StrictUndefined
    environment = Environment(
        loader=loader, autoescape=True, undefined=strict, trim_blocks=True, lstrip_blocks=True, auto_reload=False
    )
    environment.globals.update(show=show, show_parts=show_parts, show_with_unit=show_with_unit)
    return environment.get_template(name)


def render(report: Report) -> str:
    """The page as text."""
    from markupsafe import Markup

    drawn = _draw(report)
    # what the script needs to find a figure's points under the pointer; the words it takes from the page
    charts = {f"{part}-{i}": chart["hover"] for part in ("learning", "sharing") for i, chart in enumerate(drawn[part])}
    hover = {"charts": charts, "map": drawn["map"]["hover"] if drawn["map"] else None}
    script = (ASSETS / "report.js").read_text(encoding="utf-8").strip()
    page: str = template("page.html.j2").render(
        drawn,
        report=report,
        sections=[(name, title) for name, title in SECTIONS if drawn[name]],
        version=__version__,
        css=Markup((ASSETS / "report.css").read_text(encoding="utf-8").strip()),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=Markup(_inert(hover)),
    )
    return page


def _draw(report: Report) -> dict[str, Any]:
    """Each section's content as the template takes it, empty where there is none; audit is HTML (see `Report`)."""
    from markupsafe import Markup

    full, beyond = scale(report.heat_maps)
    origin = {"date": report.date, "command": report.command, "data hash": report.data_hash, **report.facts}
    made = {
        "Origin": [(name, value) for name, value in origin.items() if value],
        "Versions": list(report.versions.items()),
        "Settings": _flat(report.config),
    }
    return {
        "results": tabulate(report.results) if report.results else None,
        "dots": draw_dots(dots_of(report.results)) if report.results and report.results.drawn else None,
        "predictions": [drawn for drawn in map(_rows, report.predictions) if drawn],
        "learning": [chart for chart in map(draw_curves, report.learning) if chart],
        "sharing": [chart for chart in map(draw_curves, report.sharing) if chart],
        "labels": [draw_heat(heat, full) for heat in report.heat_maps],
        "full": full,
        "beyond": beyond,
        "map": draw_map(report.feature_map, report.classes) if report.feature_map else None,
        "examples": [view(item, report.classes) for item in report.examples],
        "doubtful": [view(item, report.classes, SMALL) for item in report.doubtful],
        "audit": Markup(report.audit),
        "setup": [(title, lines) for title, lines in made.items() if lines],
    }


def _rows(figure: Dots | Bars) -> dict[str, Any] | None:
    return draw_bars(figure) if isinstance(figure, Bars) else draw_dots(figure)


def _inert(data: Any) -> str:
    """JSON in plain ASCII in which no character means anything to an HTML parser."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _flat(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """A nested config as lines: {"optimizer": {"lr": 0.1}} becomes ("optimizer.lr", "0.1")."""
    lines: list[tuple[str, str]] = []
    for name, value in config.items():
        nested = isinstance(value, Mapping) and value
        lines += _flat(value, f"{prefix}{name}.") if nested else [(f"{prefix}{name}", str(value))]
    return lines
