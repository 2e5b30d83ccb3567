"""The command `naysay`. One file per command; each imports what it needs when it runs, so that help comes at once.

Exit codes: 0 done, 1 a failure on our side, 2 something that was given cannot be used (one sentence on stderr says
what), 130 interrupted, 143 ended by a signal.
"""

import io
import os
import signal
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from naysay import __version__
from naysay.cli import ask, audit, augment, data, demo, export, fit, options, predict, pretrain, report
from naysay.cli.options import in_flags
from naysay.cli.output import console, new_file, note, say_json
from naysay.cores import sleep_while_waiting
from naysay.errors import Ended, InputError

# what a command beside this one is made with, such as that of `reproduction/`
__all__ = ["Sentences", "app", "console", "main", "new_file", "note", "options", "say_json"]


class Sentences(TyperGroup):
    """The group of commands; what was given wrongly is told in one sentence instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            note(f"{self.name}: {_one_line(error)}")
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            note(f"{self.name}: interrupted; nothing unfinished was left behind.")
            raise typer.Exit(130) from None
        except OSError as error:
            if error.filename is None:  # of no place that was given
                raise
            why = f"{_one_line(error.filename)} cannot be used ({error.strerror or error})"
            note(f"{self.name}: {why}. Give another path.")
            raise typer.Exit(2) from None


app = typer.Typer(
    name="naysay",
    help="Learn what things are from labels that say what they are [bold]not[/bold].",
    epilog="Start with [bold]naysay demo[/bold]. Every command explains itself: [bold]naysay fit --help[/bold].",
    cls=Sentences,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
# Each under its function's name, in the order of use; the help lists them so.
ROWS = (
    demo.demo,
    audit.audit,
    fit.fit,
    predict.predict,
    ask.ask,
    report.report,
    export.export,
    augment.augment,
    pretrain.pretrain,
)
for command in ROWS:
    app.command()(command)
app.add_typer(data.app, name="data")


def _version(asked: bool) -> None:
    if asked:
        print(f"naysay {__version__}")
        raise typer.Exit


VERSION = typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")


@app.callback()
def _options(version: Annotated[bool, VERSION] = False) -> None:
    pass


def _end(number: int, frame: object) -> None:
    raise Ended(128 + number)


def main(command: typer.Typer = app) -> None:
    """Run the command; warnings become notes, and a signal to end is a way out that leaves nothing behind."""
    _open_closed_streams()
    warnings.showwarning = _note
    sleep_while_waiting()
    signal.signal(signal.SIGTERM, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name or a sign that it cannot show ends no work
    try:
        try:
            command()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            raise
        # what is left of the output goes nowhere, or Python would try once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        note(f"naysay: standard output cannot be written ({error.strerror}). Give it another place.")
        sys.exit(1)


def _open_closed_streams() -> None:
    """Where standard streams were closed, what is said goes nowhere; a file opened next would have got their number."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (open as long as the command runs)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _note(message: Warning | str, *where: Any, **more: Any) -> None:
    note(f"note: {_one_line(message)}")


def _one_line(said: object) -> str:
    """What the library says, with names from files in it, in flags and as one line that no terminal obeys."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in in_flags(str(said))).split())
