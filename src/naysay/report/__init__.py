"""The report: one self-contained HTML file of a run, for eyes, phones, keyboards, screen readers and printers.

Fill a `Report` with whatever there is and `write` it; every part is optional. The figures are SVG and HTML drawn here
(no plotting library inside the page), so that a report is some hundred kilobytes and follows the reader's light or dark
theme.

What a report holds are `records`. Each kind of them has its drawing: `results` (the table) and `rows` (dots and bars),
`lines` (curves), `mass` (heat maps and items), `map`; `numerals` writes their numbers. `page` puts them together. Words
and tables that a terminal shows too, as the audit's, are `content`.
"""

from naysay.report.map import Projection, project_2d
from naysay.report.page import render, write
from naysay.report.records import (
    Bars,
    Column,
    Curves,
    Dots,
    FeatureMap,
    HeatMap,
    Item,
    KeyFigure,
    Method,
    Report,
    Results,
    Series,
    Value,
)

__all__ = [
    "Bars",
    "Column",
    "Curves",
    "Dots",
    "FeatureMap",
    "HeatMap",
    "Item",
    "KeyFigure",
    "Method",
    "Projection",
    "Report",
    "Results",
    "Series",
    "Value",
    "project_2d",
    "render",
    "write",
]
