"""A user's table, CSV or Parquet: an id column, label columns, and the rest as finite float32 numbers (`recipe`).

Text is stripped and stays text: a label written 07 is not the label 7. An empty cell is an error among ids, "no label"
among labels, and filled in among features. One column may hold a whole embedding: a list in Parquet, `[0.1, 0.2, ...]`
in CSV (there, name it with features="column"). CSV is UTF-8 (gzipped or not), separated by whichever of comma,
semicolon and tab its header has most of. pyarrow reads in blocks, and columns of plain numbers straight into the
features; what it complains of is said again in the words of someone who has a table.
"""

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from naysay import memory
from naysay.datasets import cells, kinds
from naysay.datasets.cells import Unfit, is_list
from naysay.datasets.dataset import Array, Items, Texts, numbered
from naysay.datasets.recipe import Columns
from naysay.errors import InputError, unknown

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
BLOCK_BYTES = 1 << 23  # of CSV text parsed at a time, which is also the longest row
BLOCK_ROWS = 1 << 16
GZIP_RATIO = 1032  # what a packed byte can be at most
FEWER = "Give fewer rows or columns, or features in a .npy file, which is not read at once."
TEXT_BYTES = 64  # about what a cell of text takes
LOOKED_AT = 100  # rows of a CSV file that tell which columns hold numbers
# what a CSV column of numbers is taken to hold, those of pyarrow's words for an empty cell included
NUMERIC = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(?i:inf)|(?i:#?n/?a|-?nan|null|)")
LIST = re.compile(r"\[.*|[\d.eE+-]+([,\s]+[\d.eE+-]+)+", re.DOTALL)
AGAIN = 3  # times that a CSV file is read once more because further down there is something else
Block = tuple[int, dict[str, Texts], list[cells.Floats]]


def read_table(
    path: str | PathLike[str],
    *,
    id: str | None = None,
    label: str | Sequence[str] | None = None,
    features: str | Sequence[str] | None = None,
    truth: str | None = None,
) -> Items:
    """The rows of a CSV or Parquet file: `id`, `label`, `truth` are columns of text, `features` the others (or these).

    Features become numbers by what their columns are: `Items.columns` is the recipe, for later tables.
    Without an id column the ids are the row numbers, from 0. A label column of lists gives several labels per row.
    """
    path, labels = Path(path), _listed(label)
    columns = header(path)
    text = [name for name in (id, *labels, truth) if name is not None]
    picked = [name for name in columns if name not in text] if features is None else _listed(features)
    named = () if features is None else picked
    return read_items(path, id, labels, truth, picked, named, lists=isinstance(features, str))[0]


def read_items(
    path: Path,
    id: str | None,
    labels: Sequence[str],
    truth: str | None,
    picked: list[str],
    named: Sequence[str],
    *,
    lists: bool,
) -> tuple[Items, Columns]:
    """`read_table` with the feature columns `picked`, of which some were `named`; lists: one in CSV may hold lists."""
    text = [name for name in (id, *labels, truth) if name is not None]
    columns = header(path)
    _require(path, columns, [*text, *picked])
    if not picked:
        taken = f"{', '.join(columns)} are all named otherwise"
        raise InputError(f"{path} has no column left for features: {taken}. Add columns of numbers.")
    texts, x, recipe = _collect(path, text, picked, named, lists=lists)
    if "" in recipe.inputs and "" not in named:
        way_out = "Name it, drop it, or give features=."
        raise InputError(f"{path} has a column without a name (pandas writes its index so). {way_out}")
    if not recipe.used:
        why = ", ".join(recipe.told()[:5])
        raise InputError(f"{path} has no column left for features: {why}. Add columns that tell items apart.")
    ids = numbered(len(x)) if id is None else _unique(path, id, texts[id])
    given = _spread([texts[name] for name in labels]) if labels else None
    return Items(ids, x, given, None if truth is None else texts[truth], _names(recipe), recipe), recipe


def read_columns(path: str | PathLike[str], columns: Sequence[str]) -> dict[str, Texts]:
    """The named columns of a CSV or Parquet file as text, None where a cell is empty; rows may repeat, as labels do."""
    path = Path(path)
    _require(path, header(path), columns)
    return _collect(path, list(columns), [], (), lists=False)[0]


def apply_blocks(
    path: Path, text: list[str], recipe: Columns, strange: dict[str, dict[str, int]]
) -> Iterator[tuple[dict[str, Texts], Array]]:
    """Block after block of a table like that of training: text columns, and the features that the recipe makes.

    strange: gets, by column, the cells that were not understood.
    """
    import pyarrow as pa

    plain = (column for column in recipe.used if isinstance(column, kinds.Number) and not column.centre)
    numbers = [column.name for column in plain if column.form == "plain"]
    for start, batch in _blocks(path, _open(path, text, recipe.inputs, numbers, [])):
        with _reading(path, start):
            texts = {name: _texts(path, name, batch.column(name)) for name in text}
            x = recipe.apply(pa.Table.from_batches([batch]), strange)
        yield texts, x


def _names(recipe: Columns) -> tuple[str, ...]:
    """The names of the features: where a list is among plain numbers, all are places of vectors, in one row."""
    if recipe.is_plain and any(isinstance(column, kinds.Lists) for column in recipe.columns):
        wide = [column.name for column in recipe.used for _ in column.names]
        return tuple(f"{name}[{j}]" for j, name in enumerate(wide))
    return recipe.names


def _listed(names: str | Sequence[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _require(path: Path, columns: Sequence[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in columns:
            raise unknown(f"column of {path}", name, columns)


@dataclass(frozen=True, eq=False)
class Opened:
    """A table that is about to be read: its number of rows, its columns of numbers and of lists, and its blocks."""

    rows: int
    numbers: Container[str]
    lists: Container[str]
    batches: Iterable[Any]


@contextmanager
def _reading(path: Path, start: int = 0) -> Iterator[None]:
    """Around what is made of a file's rows from `start` on: what goes wrong is said of the file."""
    import pyarrow as pa

    try:
        yield
    except Unfit as error:
        raise error.of(path, start) from error
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is damaged ({error}). Write it again.") from error


def _blocks(path: Path, opened: Opened) -> Iterator[tuple[int, Any]]:
    """The blocks of rows, none of them empty, and the number of each one's first row."""
    start = 0
    batches = iter(opened.batches)
    while True:
        with _reading(path):
            batch = next(batches, None)
        if batch is None:
            return
        if batch.num_rows:
            yield start, batch
        start += batch.num_rows


def _open(
    path: Path, text: Iterable[str], picked: Sequence[str], numbers: Iterable[str], lists: Container[str]
) -> Opened:
    """The table with its columns of text and those picked, of which some are believed to be `numbers` or `lists`.

    That is asked for CSV, where numbers are read as such unless that cannot be done; in Parquet a column has its type.
    """
    import pyarrow as pa

    wanted = list(dict.fromkeys((*text, *picked)))
    if path.suffix.lower() in PARQUET:
        file = _parquet(path)
        types = {name: file.schema_arrow.field(name).type for name in picked}
        batches = file.iter_batches(BLOCK_ROWS, columns=wanted)
        numeric, listed = ({name for name, of in types.items() if asked(of)} for asked in (cells.is_number, is_list))
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


def _look(path: Path, picked: list[str], *, lists: bool) -> tuple[list[str], list[str]]:
    """Which columns of a table hold numbers, to judge by its first rows, and which lists, where one may (CSV alone)."""
    if path.suffix.lower() in PARQUET:
        return [], []
    head = _head(path)
    rows = csv.reader(io.StringIO(head, newline=""), delimiter=_delimiter(head))
    try:
        first = list(itertools.islice(rows, 1 + LOOKED_AT))
    except csv.Error:  # what pyarrow makes of the rows counts
        first = []
    names = first[0] if first else []
    seen = {name: [row[j].strip() for row in first[1:] if j < len(row)] for j, name in enumerate(names)}
    if lists and (filled := [cell for cell in seen.get(picked[0], ()) if cell]) and all(map(LIST.fullmatch, filled)):
        return [], picked
    return [name for name in picked if all(NUMERIC.fullmatch(cell) for cell in seen.get(name, ()))], []


def _collect(
    path: Path, text: list[str], picked: list[str], named: Sequence[str], *, lists: bool
) -> tuple[dict[str, Texts], Array, Columns]:
    """All blocks of the file: the text columns, the features as one float32 matrix, and what each of them became.

    Numbers are written into the matrix as they come; it is made again where other columns come between them.
    """
    import pyarrow as pa

    opened = _open(path, text, picked, *_look(path, picked, lists=lists))
    plain = [name for name in picked if name in opened.numbers or name in opened.lists]
    odd: dict[str, list[Any]] = {name: [] for name in picked if name not in plain}
    parts: dict[str, list[Texts]] = {name: [] for name in text}
    x, widths, rows = np.empty((0, 0), np.float32), [1] * len(plain), 0
    for start, batch in _blocks(path, opened):
        with _reading(path, start):
            values = [_values(name, batch.column(name), name in opened.lists) for name in plain]
            for name, part in parts.items():
                part.append(_texts(path, name, batch.column(name)))
        for name, column in odd.items():
            column.append(batch.column(name))
        if start == 0:
            widths = [value.shape[1] for value in values]
            memory.afford(opened.rows * (4 * sum(widths) + TEXT_BYTES * (len(text) + len(odd))), str(path), FEWER)
            x = np.empty((opened.rows, sum(widths)), np.float32)
        if [value.shape[1] for value in values] != widths:
            where = f"in {', '.join(plain)}; they differ"
            raise InputError(f"{path} must hold lists of one length {where}. Give every row as many numbers.")
        rows = start + batch.num_rows
        if plain:
            np.concatenate(values, 1, out=x[start:rows])
    if rows == 0:
        raise InputError(f"{path} has a header but no rows. Give one row per item.")
    texts = {name: np.concatenate(part) for name, part in parts.items()}
    edges = np.cumsum([0, *widths]).tolist()
    places = {name: slice(*edge) for name, edge in zip(plain, pairwise(edges), strict=True)}
    with _reading(path):
        numbers = [name for name in plain if name not in opened.lists]
        matrix = x if len(numbers) == len(plain) else x[:, [places[name].start for name in numbers]]
        found = {column.name: column for column in kinds.find_numbers(numbers, matrix, named)}
        for name in plain:
            if name in opened.lists:
                _check_tellable(path, x[:, places[name]], name)
                found[name] = kinds.Lists(name, width=places[name].stop - places[name].start)
        far = [name for name, column in found.items() if isinstance(column, kinds.Number) and column.centre]
        columns = {name: pa.chunked_array(part) for name, part in (odd | _again(path, far)).items()}
        found |= {name: kinds.find(name, column, named=name in named) for name, column in columns.items()}
        recipe = Columns.settle(tuple(found[name] for name in picked), frozenset(named))
        if columns or not recipe.is_plain:
            x = _assemble(path, recipe, {name: x[:, place] for name, place in places.items()} | columns)
    return texts, x, recipe


def _values(name: str, column: Any, vectors: bool) -> cells.Floats:
    """A column as float32: numbers (b, 1), NaN where a cell is empty, or the vectors (b, d) of lists."""
    return cells.as_vectors(name, column) if vectors else cells.as_numbers(column)[0].astype(np.float32)[:, None]


def _again(path: Path, names: list[str]) -> dict[str, list[Any]]:
    """The blocks of columns that float32 cannot hold, as they are in the file."""
    if not names:
        return {}
    batches = [batch for _, batch in _blocks(path, _open(path, [], names, [], []))]
    return {name: [batch.column(name) for batch in batches] for name in names}


def _assemble(path: Path, recipe: Columns, sources: Mapping[str, Any]) -> Array:
    """The features (n, d), from numbers (n, width) that were read already and from Arrow columns."""
    n, width = len(next(iter(sources.values()))), recipe.n_columns
    memory.afford(4 * n * width, str(path), FEWER)
    x, place = np.empty((n, width), np.float32), 0
    for column in recipe.used:
        source, end = sources[column.name], place + column.n_columns
        if not isinstance(source, np.ndarray):
            x[:, place:end] = column.apply(source)[0]
        else:
            x[:, place:end] = column.fill_in(source[:, 0]) if isinstance(column, kinds.Number) else source
        place = end
    return x


def _check_tellable(path: Path, x: Array, name: str) -> None:
    """Raise InputError where a place of a vector lies so far from 0 that its numbers hardly differ in float32."""
    low, high = x.min(0), x.max(0)
    for place in np.flatnonzero(kinds.far(low, high))[:1].tolist():
        furthest = max(abs(float(low[place])), abs(float(high[place])))
        about = f"column '{name}[{place}]' around {furthest:.6g}, which differ by few steps of float32"
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


def read_blocks(
    path: Path, text: list[str], numbers: list[str], *, lists: bool, exact: bool = False
) -> Iterator[Block]:
    """Block after block: the rows of the whole file, text columns (b,), number columns (b, 1), or (b, d) for lists.

    `lists` says that the number columns of a CSV file hold lists. Numbers are finite and no cell of them is empty.
    They are float32, or if `exact` float64 where the file has more bits.
    """
    opened = _open(path, text, numbers, [] if lists else numbers, [])
    for start, batch in _blocks(path, opened):
        with _reading(path, start):
            texts = {name: _texts(path, name, batch.column(name)) for name in text}
            values = [cells.as_vectors(name, batch.column(name), exact=exact) for name in numbers]
        yield opened.rows, texts, values


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
