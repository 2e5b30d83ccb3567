"""What a command leaves behind, whole or not at all, and says: results on standard output, the rest on standard error.

Text in CSV that a spreadsheet would run (it begins with = + - @, a tab or a return, and is no number) gets an
apostrophe in front.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from naysay import files
from naysay.cli.options import in_flags
from naysay.errors import InputError
from naysay.files import told
from naysay.words import writable

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")  # which a spreadsheet takes for no formula
WIDTH = 120  # columns of a table that goes to a file or a pipe
PARQUET = (".parquet", ".pq")
TABLES = (".csv", *PARQUET)
BUSY = "another process is writing {}. Wait for it, or choose another name."


def note(text: str) -> None:
    """One line on standard error; where that cannot be written, the work goes on without it."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def teller(quiet: bool) -> Callable[[str], None]:
    """Where a run's steps are told: standard error, or nowhere."""
    return (lambda text: None) if quiet else note


def noter(quiet: bool) -> Callable[[str], None]:
    """Where what is odd about data is told, in flags: as notes on standard error, or nowhere."""
    return (lambda text: None) if quiet else lambda text: note(f"note: {in_flags(text)}")


def say_json(content: Any) -> None:
    """One JSON object on standard output."""
    from naysay.runs.results import plain

    print(json.dumps(plain(content), indent=1, ensure_ascii=True, allow_nan=False))


def console() -> Any:
    """Where tables are printed: standard output, wide where it is no terminal."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


def command_line() -> str:
    """The command as it was given, for the record."""
    return shlex.join(["naysay", *sys.argv[1:]])


@contextmanager
def new_file(path: Path, force: bool, endings: Sequence[str] = ()) -> Iterator[Path]:
    """A path to write to in the place of `path`, whose name it gets if all goes well; an old file stays until then.

    The place is this process's from here on, and what another program puts there meanwhile is not touched.
    """
    if endings and not path.name.lower().endswith(tuple(endings)):
        raise InputError(f"the output must end in {', '.join(endings)}; got {path.name!r}.")

    def look() -> None:
        if path.is_dir():
            raise InputError(f"{path} is a folder. Give the path of a file to write.")
        if os.path.lexists(path) and not force:
            raise InputError(f"{path} exists already. Choose another name, or pass --force to replace it.")

    with told(path):
        look()
    finish = _finish(look, files.overwrite if force else files.claim)
    with files.replacing(path, busy=BUSY.format(path), finish=finish) as unfinished:
        yield unfinished


@contextmanager
def new_folder(path: Path, force: bool, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """A folder to fill in the place of `path`, as `new_file` has it; an old one is replaced if it is `replaceable`."""

    def look() -> None:
        if os.path.ismount(path):
            raise InputError(f"{path} is where a disk is mounted and cannot be replaced. Choose a name in it.")
        if not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir())):
            return
        if not force:
            raise InputError(f"{path} exists already. Choose another name, or pass --force to replace it.")
        if not (path.is_dir() and replaceable(path)):
            why = "was not made by this command, so it will not be replaced"
            raise InputError(f"{path} exists and {why}. Choose another name.")

    with told(path):
        look()
    with files.hidden(path, busy=BUSY.format(path)) as place:
        unfinished = place / files.NEW
        with told(path):
            look()  # once more: an old run that a kill had put aside is back now
            unfinished.mkdir()
        yield unfinished
        exchange = partial(files.exchange, replaceable=replaceable)
        with told(path):
            _finish(look, exchange if force else files.claim)(unfinished, path)


def _finish(look: Callable[[], None], place: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
    """How a finished file or folder gets its name: after another look, or a name of its own if that is taken by now."""

    def finish(unfinished: Path, path: Path) -> None:
        files.force(unfinished)  # before the look: on a slow disk it takes long
        kept = None
        try:
            look()
            place(unfinished, path)
            return
        except InputError:
            pass
        except files.Taken as taken:
            kept = taken.old
        spare = files.claim_near(unfinished, path, 2)
        old = "" if kept is None else f", and what was to be replaced is {kept}"
        what = "was made by another program meanwhile and is left as it is"
        raise InputError(f"{path} {what}; the result of this one is {spare}{old}.")

    return finish


def refuse_non_text(ids: Iterable[str]) -> None:
    """Refuse ids that no table can hold (of files whose names are not UTF-8) before the work, not at its end."""
    for name in ids:
        if not writable(name):
            raise InputError(f"the item {name!r} has a name that is not UTF-8 text. Rename its file.")


def harmless(text: str) -> str:
    """The text, with an apostrophe in front if a spreadsheet would take it for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not NUMBER.fullmatch(text) else text


def write_table(unfinished: Path, path: Path, blocks: Iterable[Mapping[str, Any]]) -> int:
    """Write blocks of rows to `unfinished`, CSV or Parquet as the final `path` ends; how many rows there were.

    A block is columns by name: each a list of text or an array of numbers, all of one length.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    kind = parquet.ParquetWriter if path.suffix.lower() in PARQUET else csv.CSVWriter
    writer, count = None, 0
    try:
        for columns in blocks:
            if kind is csv.CSVWriter:
                table = pa.table({harmless(name): _harmless_column(values) for name, values in columns.items()})
            else:
                table = pa.table(dict(columns))
            with told(path):
                writer = writer or kind(unfinished, table.schema)
                writer.write_table(table)
            count += len(table)
    finally:
        if writer is not None:
            with told(path):
                writer.close()
    return count


def _harmless_column(values: Any) -> Any:
    return [harmless(value) for value in values] if isinstance(values, list) else values
