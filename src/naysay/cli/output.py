"""What a command leaves behind, whole or not at all, and says: results on standard output, the rest on standard error.

Text in CSV that a spreadsheet would run (it begins with = + - @, a tab or a return, and is no number) gets an
apostrophe in front.
"""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from naysay import files
from naysay.errors import InputError
from naysay.files import told

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")  # which a spreadsheet takes for no formula
WIDTH = 120  # columns of a table that goes to a file or a pipe
PARQUET = (".parquet", ".pq")
TABLES = (".csv", *PARQUET)


def note(text: str) -> None:
    """One line on standard error."""
    print(text, file=sys.stderr)


def teller(quiet: bool) -> Callable[[str], None]:
    """Where a run's steps are told: standard error, or nowhere."""
    return (lambda text: None) if quiet else note


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
    """A path to write to in the place of `path`, whose name it gets if all goes well; an old file stays until then."""
    if endings and not path.name.lower().endswith(tuple(endings)):
        raise InputError(f"the output must end in {', '.join(endings)}; got {path.name!r}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give the path of a file to write.")
    if path.exists() and not force:
        raise InputError(f"{path} exists already. Choose another name, or pass --force to replace it.")
    with files.replacing(path) as unfinished:
        yield unfinished


@contextmanager
def new_folder(path: Path, force: bool, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """A folder to fill in the place of `path`; with `force` an old one is replaced, if it is `replaceable`."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        if not force:
            raise InputError(f"{path} exists already. Choose another name, or pass --force to replace it.")
        if not (path.is_dir() and replaceable(path)):
            why = "was not made by this command, so it will not be replaced"
            raise InputError(f"{path} exists and {why}. Choose another name.")
    unfinished = files.beside(path)
    with told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.mkdir()  # so that a place that cannot be written shows before the work, not after
    try:
        yield unfinished
        with told(path):
            old = path.with_name(f"{unfinished.name}.old")
            files.force(unfinished)  # first, so that the moment without a folder of this name is short
            if path.exists():
                path.rename(old)
            files.put_in_place(unfinished, path)
            shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


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
