"""`naysay paper run`: the plan, a question, and then the runs that are not recorded yet."""

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from naysay.cli import options as o
from naysay.cli.output import note, say_json
from naysay.cli.paper_told import called, plan_lines, run_line, runs, summary

RUNNING = "Running"
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A table or figure (naysay paper list), or a .toml file of your own.")
]
Results = Annotated[
    Path, typer.Option("--results", metavar="FOLDER", rich_help_panel=o.OUTPUT, help="Where the records are.")
]


def run(
    name: Name,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer epochs, seeds and grid points, as the spec says.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="VALUE=A,B",
            help="Only runs with one of these values, as dataset=cifar10; may be repeated.",
        ),
    ] = None,
    limit: Annotated[
        float | None, typer.Option("--limit", metavar="MINUTES", min=0, help="Start no run after so long.")
    ] = None,
    remark: Annotated[
        str | None, typer.Option("--note", metavar="TEXT", help="Something to say of the data in every record.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before starting.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and start nothing.")] = False,
    where: Annotated[
        str, typer.Option("--engine", metavar="local|ray", rich_help_panel=RUNNING, help="Where runs run.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="HOST:PORT",
            rich_help_panel=RUNNING,
            help="The Ray cluster to join; else one is started.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=0,
            rich_help_panel=RUNNING,
            help="Runs at a time; 0: in this process, as with one GPU. Else one a core.",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, rich_help_panel=RUNNING, help="Threads of each worker.")
    ] = None,
    weights: Annotated[
        Path,
        typer.Option(
            "--weights",
            metavar="FOLDER",
            rich_help_panel=o.ITEMS,
            help="The folder of encoders, such as cifar10.safetensors.",
        ),
    ] = Path("weights"),
    folder: o.Folder = None,
    results: Results = Path("results"),
    json: o.Json = False,
) -> None:
    """Do the runs of a table or figure that are not recorded yet.

    The plan comes first: what is wanted, recorded and missing, and about how
    long it will take. Each finished run is one line in the results folder; an
    interruption loses only the runs in flight, and the same call goes on.

    [bold]Examples[/bold]

      naysay paper run tab-explicit --only dataset=mnist
      naysay paper run tab-main --quick --only dataset=cifar10 --limit 25
      naysay paper run my-table.toml --engine ray --address auto
    """
    began = time.monotonic()
    from naysay import engine
    from naysay.engine.placing import cores, share_of_threads
    from naysay.paper import get, plan
    from naysay.paper.data import Place
    from naysay.paper.run import run_all
    from naysay.paper.words import duration

    tell = (lambda text: None) if json else note
    place = Place(None if folder is None else str(folder.expanduser().absolute()), str(weights.expanduser().absolute()))
    workers = _workers(where, workers)
    each = share_of_threads(threads, cores(), workers) if workers else threads
    planned = plan.make(get(name), results, place, quick=quick, only=_only(only or ()), threads=each)
    for line in plan_lines(planned, max(1, workers or 1)):
        tell(line)
    told = summary(planned)
    if dry_run or not (planned.ready or planned.absent):
        _end(
            told,
            json,
            "nothing was started" if dry_run else "nothing can be started" if planned.lacking else "nothing to do",
        )
        return
    if not (yes or json or _agreed()):
        return
    found, lacking = plan.get_absent(planned, place)
    for way_out, them in lacking.items():
        tell(f"{runs(len(them))} cannot be done for want of data: {way_out}")
        told["lacking"].append({"runs": len(them), "way_out": way_out})
    todo = {run.key: run for run in (*planned.ready, *found)}
    seconds_left = None if limit is None else began + 60 * limit - time.monotonic()
    with engine.start(where, workers=workers, threads=threads, address=address) as chosen:
        for record in run_all(chosen, todo.values(), results, place, note=remark, limit=seconds_left):
            its = todo[record["key"]]
            if "failed" in record:
                told["failed"].append(
                    {"run": called(its, todo.values()), "values": dict(its.values), "error": record["failed"]}
                )
            else:
                told["done"] += 1
            tell(f"{told['done'] + len(told['failed'])}/{len(todo)} {run_line(its, todo.values(), record)}")
    for failure in told["failed"]:
        tell(f"failed: {failure['run']}\n{failure['error']}")
    left = len(todo) - told["done"] - len(told["failed"])
    parts = [f"{runs(told['done'])} done in {duration(time.monotonic() - began)}"]
    parts += [f"{len(told['failed'])} failed"] if told["failed"] else []
    parts += [f"{left} not started (--limit)"] if left else []
    _end(told, json, ", ".join(parts))
    if told["failed"]:
        raise typer.Exit(1)


def _agreed() -> bool:
    """What the user says; where there is no terminal nobody can be asked, and the call itself is the answer."""
    return not (sys.stdin.isatty() and sys.stderr.isatty()) or typer.confirm("Start?", default=True, err=True)


def _only(given: Iterable[str]) -> dict[str, list[str]]:
    """What --only says: {"loss": ["scl-nl", "l-w"]}."""
    from naysay.errors import InputError

    only: dict[str, list[str]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise InputError(f"--only must be VALUE=A,B, as dataset=cifar10,cifar20; got {text!r}.")
        only.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
    return only


def _workers(where: str, workers: int | None) -> int | None:
    """Runs at a time on this machine; with one GPU 0, this process, where data, features and what was compiled serve
    all runs.
    """
    import torch

    from naysay.engine.placing import cores

    if workers is not None or where != "local":
        return workers
    gpus = torch.cuda.device_count()
    return 0 if gpus == 1 else gpus or cores()


def _end(told: dict[str, Any], json: bool, text: str) -> None:
    if json:
        say_json(told)
    else:
        print(text)
