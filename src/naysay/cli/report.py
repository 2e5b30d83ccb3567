"""`naysay report`: draw a run's report again."""

from pathlib import Path
from typing import Annotated

import typer

from naysay.cli import options as o
from naysay.cli.output import new_file


def report(
    run: o.Run,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The page to write; else RUN/report.html, replaced.")
    ] = None,
    force: o.Force = False,
) -> None:
    """Draw the report of a run again, from its folder alone: one HTML page that
    asks the network for nothing.

    [bold]Examples[/bold]

      naysay report RUN
      naysay report RUN --out share/report.html
    """
    from naysay.runs import Run
    from naysay.runs.report import render

    Run.load(run)
    with new_file(out or run / "report.html", force or out is None, (".html", ".htm")) as unfinished:
        render(run, unfinished)
    print(out or run / "report.html")
