"""`python -m reproduction`: list, run, show and write the tables and figures of arXiv 2305.08344.

Runs are records in a results folder; what is recorded is never run again. Each command imports what it needs when it
runs, so that help answers at once. Exit codes are those of `naysay.cli`, and 1 where a run failed.
"""

import shlex
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from naysay.cli import Sentences, console, new_file, note, say_json
from naysay.cli import options as o
from naysay.errors import InputError
from reproduction.words import COMMAND, count, duration

RUNNING = "Running"
RESULTS, PAGE, PICTURES, WEIGHTS = Path("results"), Path("docs/REPRODUCTION.md"), Path("docs/figures"), Path("weights")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help=f"A table or figure ({COMMAND} list), or a .toml file of your own.")
]
Results = Annotated[
    Path, typer.Option("--results", metavar="FOLDER", rich_help_panel=o.OUTPUT, help="Where the records are.")
]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer epochs, seeds and grid points, as the spec says.")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only", metavar="VALUE=A,B", help="Only runs with one of these values, as dataset=cifar10; may be repeated."
    ),
]
Limit = Annotated[float | None, typer.Option("--limit", metavar="MINUTES", min=0, help="Start no run after so long.")]
Remark = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="Something to say of the data in every record.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before starting.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and start nothing.")]
Where = Annotated[str, typer.Option("--engine", metavar="local|ray", rich_help_panel=RUNNING, help="Where runs run.")]
Address = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="HOST:PORT", rich_help_panel=RUNNING, help="The Ray cluster to join; else one is started."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=0,
        rich_help_panel=RUNNING,
        help="Runs at a time; 0: in this process, as with one GPU. Else one a core.",
    ),
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, rich_help_panel=RUNNING, help="Threads of each worker.")
]
Weights = Annotated[
    Path,
    typer.Option(
        "--weights",
        metavar="FOLDER",
        rich_help_panel=o.ITEMS,
        help="The folder of encoders, such as cifar10.safetensors.",
    ),
]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Also draw it as a picture.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write a page with table and figure.")]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="The page; replaced.")]
Figures = Annotated[Path, typer.Option("--figures", metavar="FOLDER", help="Its pictures; replaced.")]

app = typer.Typer(
    name="reproduction",
    help="The paper's tables and figures: list, run, show and write them.",
    cls=Sentences,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


@app.command("list")
def list_specs(results: Results = RESULTS, json: o.Json = False) -> None:
    """List the tables and figures, and how many of their runs are recorded.

    [bold]Examples[/bold]

      python -m reproduction list
      python -m reproduction list --results elsewhere/results --json
    """
    from reproduction.records import read
    from reproduction.spec import NAMES, get, plans
    from reproduction.standing import by_run

    have = [record for record in read(results) if "failed" not in record]
    rows = []
    for name in NAMES:
        row: dict[str, Any] = {"name": name, "title": get(name).title}
        for kind, planned in zip(("full", "quick"), plans(get(name)), strict=True):
            found = by_run(planned, have)
            stale = sum(record["key"] != key for key, record in found.items())
            row[kind] = {"recorded": len(found), "stale": stale, "wanted": len(planned)}
        rows.append(row)
    if json:
        say_json({"results": str(results), "specs": rows})
        return
    from rich import box
    from rich.table import Table

    caption = f"Runs recorded in {results} / wanted; *: some were made before a repair and are stale"
    table = Table(box=box.SIMPLE_HEAD, caption=caption)
    table.add_column("name", no_wrap=True)
    table.add_column("what")
    table.add_column("full", justify="right")
    table.add_column("--quick", justify="right")
    for row in rows:
        counts = (
            f"{row[kind]['recorded']:,}{'*' if row[kind]['stale'] else ''} / {row[kind]['wanted']:,}"
            for kind in ("full", "quick")
        )
        table.add_row(row["name"], row["title"], *counts)
    console().print(table)


@app.command()
def run(
    name: Name,
    *,
    quick: Quick = False,
    only: Only = None,
    limit: Limit = None,
    remark: Remark = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    where: Where = "local",
    address: Address = None,
    workers: Workers = None,
    threads: Threads = None,
    weights: Weights = WEIGHTS,
    folder: o.Folder = None,
    results: Results = RESULTS,
    json: o.Json = False,
) -> None:
    """Do the runs of a table or figure that are not recorded yet.

    Runs whose record is stale, made before a repair, are done again, and first.
    The plan comes first: what is wanted, recorded and missing, and about how
    long it will take. Each finished run is one line in the results folder; an
    interruption loses only the runs in flight, and the same call goes on.

    [bold]Examples[/bold]

      python -m reproduction run tab-explicit --only dataset=mnist
      python -m reproduction run tab-main --quick --only loss=pc --limit 25
      python -m reproduction run my-table.toml --engine ray --address auto
    """
    began = time.monotonic()
    from naysay import engine
    from reproduction import plan
    from reproduction.records import run_all
    from reproduction.sets import Place
    from reproduction.spec import get

    tell = (lambda text: None) if json else note
    place = Place(None if folder is None else str(folder.expanduser().absolute()), str(weights.expanduser().absolute()))
    workers = _workers(where, workers)
    each = engine.share_of_threads(threads, engine.cores(), workers) if workers else threads
    planned = plan.make(get(name), results, place, quick=quick, only=_only(only or ()), threads=each)
    for line in planned.lines(max(1, workers or 1)):
        tell(line)
    told = planned.summary()
    if dry_run or not (planned.ready or planned.absent):
        nothing = "nothing can be started" if planned.lacking else "nothing to do"
        _end(told, json, "nothing was started" if dry_run else nothing)
        return
    if not (yes or json or _agreed()):
        return
    found, lacking = plan.get_absent(planned, place)
    for way_out, them in lacking.items():
        tell(f"{count(len(them), 'run')} cannot be done for want of data: {way_out}")
        told["lacking"].append({"runs": len(them), "way_out": way_out})
    todo = {run.key: run for run in (*planned.ready, *found)}
    first = [run for run in todo.values() if run.key in planned.stale]
    rest = [run for run in todo.values() if run.key not in planned.stale]
    seconds_left = None if limit is None else began + 60 * limit - time.monotonic()
    with engine.start(where, workers=workers, threads=threads, address=address) as chosen:
        for record in run_all(chosen, (first, rest), results, place, note=remark, limit=seconds_left):
            its = todo[record["key"]]
            if "failed" in record:
                called = plan.called(its, todo.values())
                told["failed"].append({"run": called, "values": dict(its.values), "error": record["failed"]})
            else:
                told["done"] += 1
            tell(f"{told['done'] + len(told['failed'])}/{len(todo)} {plan.run_line(its, todo.values(), record)}")
    for failure in told["failed"]:
        tell(f"failed: {failure['run']}\n{failure['error']}")
    left = len(todo) - told["done"] - len(told["failed"])
    parts = [f"{count(told['done'], 'run')} done in {duration(time.monotonic() - began)}"]
    parts += [f"{len(told['failed'])} failed"] if told["failed"] else []
    parts += [f"{left} not started (--limit)"] if left else []
    _end(told, json, ", ".join(parts))
    if told["failed"]:
        raise typer.Exit(1)


@app.command()
def show(
    name: Name,
    results: Results = RESULTS,
    png: Png = None,
    html: Html = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Show a table or figure, our records beside the published numbers.

    Mean ± sd (n), the difference, and what is quick, simulated or missing.

    [bold]Examples[/bold]

      python -m reproduction show tab-main
      python -m reproduction show fig-implicit --png fig.png --html fig.html
    """
    from reproduction.cells import cells
    from reproduction.pictures import picture
    from reproduction.records import read
    from reproduction.spec import get
    from reproduction.table import as_json, printed

    spec, records = get(name), read(results)
    its = cells(spec, records)
    drawn = picture(spec, its)
    if drawn is None and (png or html):
        raise InputError(
            f"{name} has no record in {results}, so there is nothing to draw. Make some: {COMMAND} run {name} --quick."
        )
    if png is not None and drawn is not None:
        from reproduction.drawing import draw

        with new_file(png, force, (".png",)) as unfinished:
            draw(spec, drawn, unfinished)
    if html is not None:
        from naysay.report import write as write_page
        from reproduction.html_page import page

        command = f"{COMMAND} {shlex.join(sys.argv[1:])}"
        with new_file(html, force, (".html", ".htm")) as unfinished:
            write_page(page(spec, its, drawn, records, command), unfinished)
    if json:
        say_json(as_json(spec, its))
    else:
        terminal = console()
        for part in printed(spec, its):
            terminal.print(part)
    for path in (png, html):
        if path is not None:
            note(f"written: {path}")


@app.command()
def write(results: Results = RESULTS, out: Out = PAGE, figures: Figures = PICTURES) -> None:
    """Write the page on the reproduction, from the records.

    Every table and figure with where we land, and pictures. The same records
    give the same page.

    [bold]Examples[/bold]

      python -m reproduction write
      python -m reproduction write --out REPRODUCTION.md --figures figures
    """
    from reproduction.markdown_page import write as write_all
    from reproduction.records import read

    for path in write_all(read(results), out, figures):
        print(path)


def _agreed() -> bool:
    """What the user says; where there is no terminal nobody can be asked, and the call itself is the answer."""
    return not (sys.stdin.isatty() and sys.stderr.isatty()) or typer.confirm("Start?", default=True, err=True)


def _only(given: Iterable[str]) -> dict[str, list[str]]:
    """What --only says: {"loss": ["scl-nl", "l-w"]}."""
    only: dict[str, list[str]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise InputError(f"--only must be VALUE=A,B, as dataset=cifar10,cifar20; got {text!r}.")
        only.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
    return only


def _workers(where: str, workers: int | None) -> int | None:
    """Runs at a time on this machine; with one GPU 0: in one process data, features and compiled code serve all."""
    import torch

    from naysay import engine

    if workers is not None or where != "local":
        return workers
    gpus = torch.cuda.device_count()
    return 0 if gpus == 1 else gpus or engine.cores()


def _end(told: dict[str, Any], json: bool, text: str) -> None:
    if json:
        say_json(told)
    else:
        print(text)
