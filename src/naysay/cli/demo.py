"""`naysay demo`: the whole flow on the embedded digits, in under a minute."""

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from naysay.cli import options as o
from naysay.cli.output import command_line, new_folder, teller
from naysay.files import told

OUT = Path("naysay-demo")
SCHEMES = ("none", "rss", "rms", "dss", "dms")
EPOCHS = 60  # after which nothing moves on digits


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the run and its report go.")] = OUT,
    seed: o.Seed = 0,
    force: o.Force = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Show the whole flow on 1,442 embedded digits, each with one label that says
    what it is NOT.

    Draws the labels, audits them, shares them between neighbours in four ways,
    trains with and without, and writes a report. The digits' true classes are
    known, so every estimate made from complementary labels alone stands beside
    the truth.

    [bold]Examples[/bold]

      naysay demo
      naysay demo --seed 1 --out another
    """
    from naysay import runs
    from naysay.cli.fit import show
    from naysay.learning import Config
    from naysay.reading import read

    say = teller(quiet or json)
    with new_folder(out, force or is_demo(out), runs.is_run) as unfinished:
        data = read("digits", transition="uniform", n_labels=1, seed=seed)
        data = replace(data, origin={**data.origin, "demo": True})
        first, second = (data.classes[int(k)] for k in data.comp[:2].argmax(1))
        say(f"1,442 digits, each with one uniform complementary label: no {first}, no {second}, and so on.")
        settings = runs.Settings(Config(epochs=EPOCHS, seed=seed), SCHEMES)
        fitted = runs.fit(data, settings, oracle=data.oracle, progress=False if quiet else None, tell=say)
        with told(out):
            about = runs.write(fitted, data, unfinished, oracle=data.oracle, command=command_line(), words=o.in_flags)
    if not json:
        print("Audit, from complementary labels alone:")
        for advice in fitted.audit.advice:
            print(
                textwrap.fill(
                    o.in_flags(advice.text), 100, initial_indent=f"  {advice.level:<5} ", subsequent_indent=" " * 8
                )
            )
    show(about, out if json else out.resolve(), json)


def is_demo(folder: Path) -> bool:
    """Whether a folder is the work of an earlier demo, which this one may replace."""
    from naysay.runs import is_run
    from naysay.runs.report import read_json

    return is_run(folder) and "demo" in (read_json(folder / "run.json").get("data") or {})
