"""`naysay paper`: the tables and figures of arXiv 2305.08344, run by run.

Runs are records in a results folder; what is recorded is never run again. `run` is in `paper_run`, `show` and `write`
are in `paper_show`.
"""

from pathlib import Path
from typing import Any

import typer

from naysay.cli import options as o
from naysay.cli.output import console, say_json
from naysay.cli.paper_run import Results, run
from naysay.cli.paper_show import show, write

app = typer.Typer(
    help="The paper's tables and figures: list, run, show and write them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command("list")
def list_specs(results: Results = Path("results"), json: o.Json = False) -> None:
    """List the tables and figures, and how many of their runs are recorded.

    [bold]Examples[/bold]

      naysay paper list
      naysay paper list --results elsewhere/results --json
    """
    from naysay.paper import NAMES, get
    from naysay.paper.choosing import plans
    from naysay.paper.show import read

    have = {record["key"] for record in read(results) if "failed" not in record}
    rows = []
    for name in NAMES:
        spec = get(name)
        row: dict[str, Any] = {"name": name, "title": spec.title}
        for kind, planned in zip(("full", "quick"), plans(spec), strict=True):
            row[kind] = {"recorded": sum(one.key in have for one in planned), "wanted": len(planned)}
        rows.append(row)
    if json:
        say_json({"results": str(results), "specs": rows})
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, caption=f"Runs recorded in {results} / wanted")
    for title, justify in (("name", "left"), ("what", "left"), ("full", "right"), ("--quick", "right")):
        table.add_column(title, justify=justify, no_wrap=title == "name")  # type: ignore[arg-type]
    for row in rows:
        counts = (f"{row[kind]['recorded']:,} / {row[kind]['wanted']:,}" for kind in ("full", "quick"))
        table.add_row(row["name"], row["title"], *counts)
    console().print(table)


app.command("run")(run)
app.command("show")(show)
app.command("write")(write)
