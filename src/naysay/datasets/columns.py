"""A user's table, CSV or Parquet: an id column, label columns, and the rest as finite float32 numbers (`recipe`).

Text is stripped and stays text: a label written 07 is not the label 7. An empty cell is an error among ids, "no label"
among labels, and filled in among features. One column may hold a whole embedding: a list in Parquet, `[0.1, 0.2, ...]`
in CSV (there, name it with features="column"). The file comes in blocks (`opening`), of which columns of plain numbers
go straight into the features.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from naysay import memory
from naysay.datasets import cells, finding, kinds
from naysay.datasets.cells import is_list
from naysay.datasets.dataset import Array, Items, Rows, Texts, numbered
from naysay.datasets.opening import CSV, FEWER, PARQUET, Opened, blocks, header, look, open_table, reading, require
from naysay.datasets.recipe import Columns
from naysay.errors import InputError

__all__ = ["CSV", "PARQUET", "apply_blocks", "header", "read_blocks", "read_columns", "read_items", "read_table"]

TEXT_BYTES = 64  # about what a cell of text takes
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
    return read_items(path, id, labels, truth, picked, named, lists=isinstance(features, str))


def read_items(
    path: Path,
    id: str | None,
    labels: Sequence[str],
    truth: str | None,
    picked: list[str],
    named: Sequence[str],
    *,
    lists: bool,
) -> Items:
    """`read_table` with the feature columns `picked`, of which some were `named`; lists: one in CSV may hold lists."""
    text = [name for name in (id, *labels, truth) if name is not None]
    columns = header(path)
    require(path, columns, [*text, *picked])
    if not picked:
        taken = f"{', '.join(columns)} are all named otherwise"
        raise InputError(f"{path} has no column left for features: {taken}. Add columns of numbers.")
    state = _state(path)
    texts, x, recipe = _collect(path, text, picked, named, lists=lists)
    if "" in recipe.inputs and "" not in named:
        way_out = "Name it, drop it, or give features=."
        raise InputError(f"{path} has a column without a name (pandas writes its index so). {way_out}")
    if not recipe.used:
        why = ", ".join(recipe.told()[:5])
        raise InputError(f"{path} has no column left for features: {why}. Add columns that tell items apart.")
    ids = numbered(len(x)) if id is None else _unique(path, id, texts[id])
    given = _spread([texts[name] for name in labels]) if labels else None
    again = partial(_read_by, path, state, picked, named, lists)
    return Items(ids, x, given, None if truth is None else texts[truth], _names(recipe), recipe, again)


def _read_by(
    path: Path, state: tuple[int, int], picked: list[str], named: Sequence[str], lists: bool, rows: Rows
) -> tuple[Columns, tuple[str, ...], Array]:
    """What the columns are among some rows alone, the names of the features, and those (n, d) of all rows.

    The file is read again, since nobody else has need of its cells once they are numbers.
    """
    if not path.exists() or _state(path) != state:
        raise InputError(f"{path} was changed since it was read, and is needed again. Leave it until the run is done.")
    _, x, recipe = _collect(path, [], picked, named, lists=lists, rows=rows)
    if not recipe.used:
        why = ", ".join(recipe.told()[:5])
        raise InputError(f"{path} has no column of features among the rows to train on: {why}. Hold fewer rows out.")
    return recipe, _names(recipe), x


def _state(path: Path) -> tuple[int, int]:
    """The length of a file and when it was written."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def read_columns(path: str | PathLike[str], columns: Sequence[str]) -> dict[str, Texts]:
    """The named columns of a CSV or Parquet file as text, None where a cell is empty; rows may repeat, as labels do."""
    path = Path(path)
    require(path, header(path), columns)
    return _load(path, open_table(path, columns, [], [], []), list(columns), [])[0]


def apply_blocks(
    path: Path, text: list[str], recipe: Columns, strange: dict[str, dict[str, int]]
) -> Iterator[tuple[dict[str, Texts], Array]]:
    """Block after block of a table like that of training: text columns, and the features that the recipe makes.

    strange: gets, by column, the cells that were not understood.
    """
    import pyarrow as pa

    plain = (column for column in recipe.used if isinstance(column, kinds.Number) and not column.centre)
    numbers = [column.name for column in plain if column.form == "plain"]
    for start, batch in blocks(path, open_table(path, text, recipe.inputs, numbers, [])):
        with reading(path, start):
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


def _collect(
    path: Path, text: list[str], picked: list[str], named: Sequence[str], *, lists: bool, rows: Rows | None = None
) -> tuple[dict[str, Texts], Array, Columns]:
    """All of the file: the text columns, the features as one float32 matrix, and what each of them became.

    rows: those that decide what the columns are; all where None.
    """
    import pyarrow as pa

    opened, explicit = open_table(path, text, picked, *look(path, picked, lists=lists)), frozenset(named)
    texts, x, sources = _load(path, opened, text, picked)
    numbers = [name for name in picked if name in opened.numbers]
    vectors = [name for name in picked if name in opened.lists]
    with reading(path):
        matrix = np.concatenate([x[:, :0], *(sources[name] for name in numbers)], 1) if vectors else x
        matrix = matrix if rows is None else matrix[rows]
        found = {column.name: column for column in finding.find_numbers(numbers, matrix, explicit)}
        for name in vectors:
            _check_tellable(path, sources[name], name)
            found[name] = kinds.Lists(name, width=sources[name].shape[1])
        far = [name for name, column in found.items() if isinstance(column, kinds.Number) and column.centre]
        odd = {name: pa.chunked_array(source) for name, source in sources.items() if isinstance(source, list)}
        odd |= {name: pa.chunked_array(source) for name, source in _again(path, far).items()}
        for name, column in odd.items():
            deciding = column if rows is None else column.take(pa.array(rows))
            found[name] = finding.find(name, deciding, named=name in explicit)
        recipe = Columns.settle(tuple(found[name] for name in picked), explicit, warn=rows is None)
        if odd or not recipe.is_plain or rows is not None:  # the other rows may have empty cells
            x = _assemble(path, recipe, sources | odd)
    return texts, x, recipe


def _load(
    path: Path, opened: Opened, text: list[str], picked: list[str]
) -> tuple[dict[str, Texts], Array, dict[str, Any]]:
    """All blocks of the file: text columns (n,); numbers and lists as one float32 matrix; and where each column is.

    That is a part (n, width) of the matrix, into which numbers are written as they come; of other columns, the blocks.
    """
    plain = [name for name in picked if name in opened.numbers or name in opened.lists]
    read_so = frozenset(plain)
    odd: dict[str, list[Any]] = {name: [] for name in picked if name not in read_so}
    parts: dict[str, list[Texts]] = {name: [] for name in text}
    x, widths, rows = np.empty((0, 0), np.float32), [1] * len(plain), 0
    for start, batch in blocks(path, opened):
        with reading(path, start):
            values = [
                cells.as_vectors(name, batch.column(name))
                if name in opened.lists
                else cells.as_numbers(batch.column(name))[0].astype(np.float32)[:, None]
                for name in plain
            ]
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
    columns = np.split(x, np.cumsum(widths)[:-1], axis=1) if plain else []
    sources = dict(zip(plain, columns, strict=True)) | odd
    return {name: np.concatenate(part) for name, part in parts.items()}, x, sources


def _again(path: Path, names: list[str]) -> dict[str, list[Any]]:
    """The blocks of columns that float32 cannot hold, as they are in the file."""
    if not names:
        return {}
    batches = [batch for _, batch in blocks(path, open_table(path, [], names, [], []))]
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
    for place in np.flatnonzero(finding.far(low, high))[:1].tolist():
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
    return pad(list(map(flat, zip(*columns, strict=True))))


def flat(cells: Iterable[Any]) -> list[str | None]:
    """The texts of cells, of which some are lists."""
    return [text for cell in cells for text in (cell if isinstance(cell, list) else [cell])]


def pad(rows: Sequence[Sequence[str | None]]) -> Texts:
    """Rows of different lengths as one (n, m) array, filled up with None."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), None, object)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


def read_blocks(
    path: Path, text: list[str], numbers: list[str], *, lists: bool, exact: bool = False
) -> Iterator[Block]:
    """Block after block: the rows of the whole file, text columns (b,), number columns (b, 1), or (b, d) for lists.

    `lists` says that the number columns of a CSV file hold lists. Numbers are finite and no cell of them is empty.
    They are float32, or if `exact` float64 where the file has more bits.
    """
    opened = open_table(path, text, numbers, [] if lists else numbers, [])
    for start, batch in blocks(path, opened):
        with reading(path, start):
            texts = {name: _texts(path, name, batch.column(name)) for name in text}
            values = [cells.as_vectors(name, batch.column(name), exact=exact) for name in numbers]
        yield opened.rows, texts, values


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
