"""A table's file, opened: its header, and its rows as blocks of Arrow, whether it is CSV or Parquet.

CSV is UTF-8 (gzipped or not), separated by whichever of comma, semicolon and tab its header has most of. Columns that
look like numbers at its beginning are read as such; where one turns out to hold something else further down, the file
is read again. What pyarrow complains of is said again in the words of someone who has a table.
"""

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from naysay import memory
from naysay.datasets.cells import Unfit, is_list, is_number
from naysay.errors import InputError, unknown

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
BLOCK_BYTES = 1 << 23  # of CSV text parsed at a time, which is also the longest row
BLOCK_ROWS = 1 << 16
GZIP_RATIO = 1032  # what a packed byte can be at most
FEWER = "Give fewer rows or columns, or features in a .npy file, which is not read at once."
LOOKED_AT = 100  # rows of a CSV file that tell which columns hold numbers
# what a CSV column of numbers is taken to hold, those of pyarrow's words for an empty cell included
NUMERIC = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(?i:inf)|(?i:#?n/?a|-?nan|null|)")
LIST = re.compile(r"\[.*|[\d.eE+-]+([,\s]+[\d.eE+-]+)+", re.DOTALL)
AGAIN = 3  # times that a CSV file is read once more because further down there is something else


def header(path: Path) -> list[str]:
    """The names of the columns, which are all different."""
    if not path.is_file():
        raise InputError(f"{path} is not a file. Give the path of a CSV or Parquet file.")
    if path.suffix.lower() in PARQUET:
        columns = [str(name) for name in open_parquet(path).schema_arrow.names]
    elif path.name.lower().endswith(CSV):
        try:
            columns = next(_first_rows(path), [])
        except csv.Error as error:
            raise _csv_error(path, str(error)) from error
    else:
        known = ", ".join((*CSV, *PARQUET))
        raise InputError(f"{path} must be a table; got the ending {path.suffix!r}. The known ones are {known}.")
    if not columns:
        raise InputError(f"{path} is empty. Give a file with a header and one row per item.")
    twice = min((name for name, count in Counter(columns).items() if count > 1), default=None)
    if twice is not None:
        raise InputError(f"{path} has more than one column named {twice!r}. Give each its own name.")
    return columns


def require(path: Path, columns: Sequence[str], wanted: Iterable[str | None]) -> None:
    """Raise InputError where one of the wanted names, of which some may be none, is no column of the file."""
    there = frozenset(columns)  # of tens of thousands, too
    for name in wanted:
        if name is not None and name not in there:
            raise unknown(f"column of {path}", name, columns)


@dataclass(frozen=True, eq=False)
class Opened:
    """A table that is about to be read: its number of rows, its columns of numbers and of lists, and its blocks."""

    rows: int
    numbers: Container[str]
    lists: Container[str]
    batches: Iterable[Any]


def open_table(
    path: Path, text: Iterable[str], picked: Sequence[str], numbers: Iterable[str], lists: Container[str]
) -> Opened:
    """The table with its columns of text and those picked, of which some are believed to be `numbers` or `lists`.

    That is asked for CSV, where numbers are read as such unless that cannot be done; in Parquet a column has its type.
    """
    import pyarrow as pa

    wanted = list(dict.fromkeys((*text, *picked)))
    if path.suffix.lower() in PARQUET:
        file = open_parquet(path)
        types = {name: file.schema_arrow.field(name).type for name in picked}
        batches = file.iter_batches(BLOCK_ROWS, columns=wanted)
        numeric, listed = ({name for name, of in types.items() if asked(of)} for asked in (is_number, is_list))
        return Opened(file.metadata.num_rows, numeric, listed, batches)
    believed = set(numbers) - set(text)
    for left in reversed(range(AGAIN + 1)):
        types = {name: pa.float32() if name in believed else pa.string() for name in wanted}
        try:
            table = _csv(path, types)
            return Opened(table.num_rows, believed, lists, table.to_batches(BLOCK_ROWS))
        except NotNumbers as error:
            believed = believed - {error.column} if left > 1 else set()
    raise AssertionError("texts can always be read")


def blocks(path: Path, opened: Opened) -> Iterator[tuple[int, Any]]:
    """The blocks of rows, none of them empty, and the number of each one's first row."""
    start = 0
    batches = iter(opened.batches)
    while True:
        with reading(path):
            batch = next(batches, None)
        if batch is None:
            return
        if batch.num_rows:
            yield start, batch
        start += batch.num_rows


@contextmanager
def reading(table: object, start: int = 0) -> Iterator[None]:
    """Around what is made of a table's rows from `start` on: what goes wrong is said of the table, by its name."""
    import pyarrow as pa

    try:
        yield
    except Unfit as error:
        raise error.of(table, start) from error
    except (pa.ArrowException, OSError) as error:  # text that is none shows only when it is looked at
        raise InputError(f"{table} is damaged ({error}). Write it again.") from error


def look(path: Path, picked: list[str], *, lists: bool) -> tuple[list[str], list[str]]:
    """Which columns of a table hold numbers, to judge by its first rows, and which lists, where one may (CSV alone)."""
    if path.suffix.lower() in PARQUET:
        return [], []
    try:
        first = list(itertools.islice(_first_rows(path), 1 + LOOKED_AT))
    except csv.Error:  # what pyarrow makes of the rows counts
        first = []
    names = first[0] if first else []
    seen = {name: [row[j].strip() for row in first[1:] if j < len(row)] for j, name in enumerate(names)}
    if lists and (filled := [cell for cell in seen.get(picked[0], ()) if cell]) and all(map(LIST.fullmatch, filled)):
        return [], picked
    return [name for name in picked if all(NUMERIC.fullmatch(cell) for cell in seen.get(name, ()))], []


def open_parquet(path: Path, way_out: str = "Write it again, or give a CSV file.") -> Any:
    """A Parquet file, of which only the columns that are asked for are read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        file.schema_arrow  # noqa: B018  (names that are no text show here)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as Parquet ({error}). {way_out}") from error
    return file


def _csv(path: Path, types: dict[str, Any]) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    memory.afford(_unpacked_bytes(path), str(path), FEWER)
    try:
        return pyarrow.csv.read_csv(
            path,
            pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES),
            pyarrow.csv.ParseOptions(delimiter=_delimiter(_head(path)), newlines_in_values=True),
            pyarrow.csv.ConvertOptions(column_types=types, include_columns=list(types)),
        )
    except pa.ArrowException as error:
        raise _csv_error(path, str(error)) from error


def _unpacked_bytes(path: Path) -> int:
    """The length of a CSV file's text; of a packed one that may be too long, counted until it is."""
    import pyarrow as pa

    size, room = path.stat().st_size, memory.available()
    if path.suffix.lower() != ".gz" or size * GZIP_RATIO <= room:
        return size
    size = 0
    with pa.input_stream(str(path)) as stream:
        while size <= 2 * room and (part := stream.read(BLOCK_BYTES)):
            size += len(part)
    return size


def _head(path: Path) -> str:
    """The beginning of a CSV file, which is where its header is."""
    import pyarrow as pa

    try:
        with pa.input_stream(str(path)) as stream:
            head = codecs.getincrementaldecoder("utf-8-sig")().decode(stream.read(BLOCK_BYTES)).lstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error}). Save it as UTF-8.") from error
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be unpacked ({error}). Write it again.") from error
    if "\0" in head:
        raise InputError(f"{path} is not UTF-8 text (it holds zero bytes, as UTF-16 does). Save it as UTF-8.")
    return head


def _delimiter(head: str) -> str:
    line = re.split("[\r\n]", head, maxsplit=1)[0]
    return max(",;\t", key=line.count)  # the first of equals: a comma where there is none of them


def _first_rows(path: Path) -> Iterator[list[str]]:
    head = _head(path)
    # with newline="" a carriage return alone ends a row, as it does for pyarrow
    return csv.reader(io.StringIO(head, newline=""), delimiter=_delimiter(head))


class NotNumbers(InputError):
    """A column of a CSV file that was believed to hold numbers holds something else."""

    def __init__(self, column: str, path: Path) -> None:
        self.column = column
        super().__init__(f"{path} must hold numbers in column {column!r}.")


def _csv_error(path: Path, message: str) -> InputError:
    """The sentence for what pyarrow says of a CSV file."""
    ragged = re.search(r"Expected (\d+) columns, got (\d+): (.*)", message, re.DOTALL)
    if ragged:
        wanted, got, row = ragged.groups()
        what = f"a row of {got} cells under a header of {wanted}: {row[:60]!r}"
        return InputError(f"{path} has {what}. Give every row as many cells.")
    cell = re.search(r"In CSV column #(\d+): .*?(?:invalid value '(.*)'|invalid UTF8 data)", message, re.DOTALL)
    if cell:
        column = header(path)[int(cell[1])]
        not_text = InputError(f"{path} is not UTF-8 text in column {column!r}. Save it as UTF-8.")
        return not_text if cell[2] is None else NotNumbers(column, path)
    way_out = "Write it again, with quotes around text that holds separators."
    return InputError(f"{path} cannot be read as CSV ({message}). {way_out}")
