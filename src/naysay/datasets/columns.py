"""A user's table, CSV or Parquet: an id column, label columns, and the rest as finite float32 numbers.

Text is stripped and stays text: a label written 07 is not the label 7. An empty cell is an error among ids and numbers,
and "no label" among labels. One column may hold a whole embedding: a list in Parquet, `[0.1, 0.2, ...]` in CSV (there,
name it with features="column"). CSV is UTF-8 (gzipped or not), separated by whichever of comma, semicolon and tab its
header has most of. pyarrow reads in blocks; what it complains of is said again in the words of someone who has a table.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay import memory
from naysay.datasets.dataset import Array, Items, Texts, numbered, unfinite_row
from naysay.errors import InputError, unknown

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
BLOCK_BYTES = 1 << 23  # of CSV text parsed at a time, which is also the longest row
BLOCK_ROWS = 1 << 16
GZIP_RATIO = 1032  # what a packed byte can be at most
FEWER = "Give fewer rows or columns, or features in a .npy file, which is not read at once."
STEPS = 64  # of float32 that a column must span: 1e8 and 1e8 + 50 are six apart
TEXT_BYTES = 64  # about what a cell of text takes
Block = tuple[int, dict[str, Texts], list[NDArray[np.float32]]]


def read_table(
    path: str | PathLike[str],
    *,
    id: str | None = None,
    label: str | Sequence[str] | None = None,
    features: str | Sequence[str] | None = None,
    truth: str | None = None,
) -> Items:
    """The rows of a CSV or Parquet file: `id`, `label`, `truth` are columns of text, `features` numbers (None: others).

    Without an id column the ids are the row numbers, from 0. A label column of lists gives several labels per row.
    """
    path, labels = Path(path), _listed(label)
    columns = header(path)
    text = [name for name in (id, *labels, truth) if name is not None]
    numbers = [name for name in columns if name not in text] if features is None else _listed(features)
    _require(path, columns, [*text, *numbers])
    if not numbers:
        taken = f"{', '.join(columns)} are all named otherwise"
        raise InputError(f"{path} has no column left for features: {taken}. Add columns of numbers.")
    if features is None and "" in numbers:
        way_out = "Name it, drop it, or give features=."
        raise InputError(f"{path} has a column without a name (pandas writes its index so). {way_out}")
    x, names, texts = _collect(path, text, numbers, lists=isinstance(features, str))
    ids = numbered(len(x)) if id is None else _unique(path, id, texts[id])
    given = _spread([texts[name] for name in labels]) if labels else None
    return Items(ids, x, given, None if truth is None else texts[truth], names)


def read_columns(path: str | PathLike[str], columns: Sequence[str]) -> dict[str, Texts]:
    """The named columns of a CSV or Parquet file as text, None where a cell is empty; rows may repeat, as labels do."""
    path = Path(path)
    _require(path, header(path), columns)
    return _collect(path, list(columns), [], lists=False)[2]


def _listed(names: str | Sequence[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _require(path: Path, columns: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in columns:
            raise unknown(f"column of {path}", name, columns)


def _collect(
    path: Path, text: list[str], numbers: list[str], *, lists: bool
) -> tuple[Array, tuple[str, ...], dict[str, Texts]]:
    """All blocks of the file: one float32 matrix, filled as they come, its columns' names, and the text columns."""
    x, names, start = np.empty((0, 0), np.float32), tuple(numbers), 0
    parts: dict[str, list[Texts]] = {name: [] for name in text}
    for rows, texts, values in read_blocks(path, text, numbers, lists=lists):
        block = np.concatenate(values, 1) if values else np.empty((len(texts[text[0]]), 0), np.float32)
        if start == 0:
            memory.afford(rows * (4 * block.shape[1] + TEXT_BYTES * len(text)), str(path), FEWER)
            x = np.empty((rows, block.shape[1]), np.float32)
            wide = [name for name, value in zip(numbers, values, strict=True) for _ in range(value.shape[1])]
            names = names if wide == numbers else tuple(f"{name}[{j}]" for j, name in enumerate(wide))
        if block.shape[1] != x.shape[1]:
            where = f"in {', '.join(numbers)}; they differ"
            raise InputError(f"{path} must hold lists of one length {where}. Give every row as many numbers.")
        x[start : start + len(block)] = block
        start += len(block)
        for name in text:
            parts[name].append(texts[name])
    if start == 0:
        raise InputError(f"{path} has a header but no rows. Give one row per item.")
    _check_tellable(path, x, names)
    return x, names, {name: np.concatenate(part) for name, part in parts.items()}


def _check_tellable(path: Path, x: Array, names: Sequence[str]) -> None:
    """Raise InputError where a column lies so far from 0 that its numbers hardly differ in float32 (times)."""
    if not x.size:
        return
    low, high = x.min(0), x.max(0)
    furthest = np.maximum(np.abs(low), np.abs(high))
    step = np.spacing(furthest)
    lost = (high - low < STEPS * step) & ((high > low) | (furthest >= 2**24))
    for column in np.flatnonzero(lost)[:1].tolist():
        about = f"column {names[column]!r} around {float(furthest[column]):.6g}, which differ by few steps of float32"
        raise InputError(f"{path} holds numbers in {about}. Subtract their middle, or leave the column out.")


def _unique(path: Path, name: str, ids: Texts) -> Texts:
    """The ids, after checking that every row has its own."""
    if any(isinstance(value, list) for value in ids):
        raise InputError(f"{path} holds lists in its id column {name!r}. Give every item one id, a text or a number.")
    for value, count in Counter(ids).items():
        if value is None or count > 1:
            what = f"{'an empty cell' if value is None else f'{value!r} more than once'} in its id column {name!r}"
            raise InputError(f"{path} has {what}. Give every item its own id, and labels in a file of their own.")
    return ids


def _spread(columns: list[Texts]) -> Texts:
    """Label columns side by side, (n, m); cells that are lists are spread out."""
    if not any(isinstance(cell, list) for column in columns for cell in column):
        return np.stack(columns, 1)
    rows = zip(*columns, strict=True)
    return pad([[text for cell in row for text in (cell if isinstance(cell, list) else [cell])] for row in rows])


def pad(rows: Sequence[Sequence[str | None]]) -> Texts:
    """Rows of different lengths as one (n, m) array, filled up with None."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), None, object)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


def header(path: Path) -> list[str]:
    """The names of the columns, which are all different."""
    if not path.is_file():
        raise InputError(f"{path} is not a file. Give the path of a CSV or Parquet file.")
    if path.suffix.lower() in PARQUET:
        columns = [str(name) for name in _parquet(path).schema_arrow.names]
    elif path.name.lower().endswith(CSV):
        columns = _csv_header(path)
    else:
        known = ", ".join((*CSV, *PARQUET))
        raise InputError(f"{path} must be a table; got the ending {path.suffix!r}. The known ones are {known}.")
    if not columns:
        raise InputError(f"{path} is empty. Give a file with a header and one row per item.")
    twice = min((name for name, count in Counter(columns).items() if count > 1), default=None)
    if twice is not None:
        raise InputError(f"{path} has more than one column named {twice!r}. Give each its own name.")
    return columns


def read_blocks(path: Path, text: list[str], numbers: list[str], *, lists: bool) -> Iterator[Block]:
    """Block after block: the rows of the whole file, text columns (b,), number columns (b, 1), or (b, d) for lists.

    `lists` says that the number columns of a CSV file hold lists.
    """
    import pyarrow as pa

    wanted, start = list(dict.fromkeys((*text, *numbers))), 0
    try:
        if path.suffix.lower() in PARQUET:
            file = _parquet(path)
            rows, batches = file.metadata.num_rows, file.iter_batches(BLOCK_ROWS, columns=wanted)
        else:
            types = dict.fromkeys(numbers, pa.string() if lists else pa.float32()) | dict.fromkeys(text, pa.string())
            table = _csv(path, types)
            rows, batches = table.num_rows, table.to_batches(BLOCK_ROWS)
        for batch in batches:
            if batch.num_rows:
                texts = {name: _texts(path, name, batch.column(name)) for name in text}
                yield rows, texts, [_numbers(path, name, batch.column(name), start) for name in numbers]
            start += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is damaged ({error}). Write it again.") from error


def _parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet ({error}). Write it again, or give a CSV file.") from error


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


def _csv_header(path: Path) -> list[str]:
    head = _head(path)
    try:  # with newline="" a carriage return alone ends a row, as it does for pyarrow
        return next(csv.reader(io.StringIO(head, newline=""), delimiter=_delimiter(head)), [])
    except csv.Error as error:
        raise _csv_error(path, str(error)) from error


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
        return not_text if cell[2] is None else _not_numbers(path, column, cell[2])
    way_out = "Write it again, with quotes around text that holds separators."
    return InputError(f"{path} cannot be read as CSV ({message}). {way_out}")


def _not_numbers(path: Path, column: str, got: str) -> InputError:
    way_out = "Name it as id=, label= or truth=, or leave it out with features=."
    if got.startswith("["):
        way_out = f"If its lists are embeddings, name it with features={column!r}."
    return InputError(f"{path} must hold numbers in column {column!r}; got {got[:40]!r}. {way_out}")


def _texts(path: Path, name: str, column: Any) -> Texts:
    """A column as stripped text (a list column as lists of text), None where a cell is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_list(column.type):
        lists: Texts = np.full(len(column), None, object)
        for i, row in enumerate(column.to_pylist()):
            lists[i] = None if row is None else [str(cell).strip() for cell in row if cell is not None]
        return lists
    if pa.types.is_nested(column.type):
        got = f"in column {name!r}; got {column.type}"
        raise InputError(f"{path} must hold text, numbers or lists {got}. Choose another column.")
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    column = pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
    texts: Texts = pc.if_else(pc.equal(column, ""), None, column).to_numpy(zero_copy_only=False)
    return texts


def _numbers(path: Path, name: str, column: Any, start: int) -> NDArray[np.float32]:
    """A column as finite float32 (b, 1), or (b, d) if it holds lists; `start` is the number of its first row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        where = f"column {name!r}, row {start + column.is_null().index(True).as_py() + 1}"
        raise InputError(f"{path} has an empty cell in {where}. Fill it in, or leave the column out with features=.")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.split_pattern_regex(pc.utf8_trim(column, " []\r\n\t"), r"[,\s]+")
    width = 1
    if is_list(column.type):
        least, width = pc.min_max(pc.list_value_length(column)).as_py().values()
        if least != width or not width:
            got = f"{least} to {width} numbers"
            raise InputError(f"{path} must hold lists of one length in column {name!r}; got {got}. Even them out.")
        column = column.flatten()
    try:
        values: NDArray[np.float32] = pc.cast(column, pa.float32(), safe=False).to_numpy(zero_copy_only=False)
        values = values.reshape(-1, width)
    except pa.ArrowException as error:
        quoted = re.search(r"Failed to parse string: '(.*)' as", str(error), re.DOTALL)
        raise _not_numbers(path, name, quoted[1] if quoted else str(column.type)) from error
    if (row := unfinite_row(values)) is not None:
        got = f"nan or inf in row {start + row + 1}"
        raise InputError(f"{path} must hold finite numbers in column {name!r}; got {got}. Mend it, or leave it out.")
    return values


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is one of lists."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
