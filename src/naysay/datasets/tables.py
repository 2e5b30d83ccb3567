"""A user's table, CSV or Parquet: an id column, label columns, and the rest as numbers.

Text stays text: a label written 07 is not the label 7. An empty cell is an error among ids and numbers, and "no label"
among labels. One column may hold a whole embedding: a list in Parquet, `[0.1, 0.2, ...]` in CSV (there, name it with
features="column").
"""

from collections import Counter
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from naysay.datasets.columns import header, read_blocks
from naysay.datasets.dataset import Array, Items, Texts, numbered
from naysay.errors import InputError, unknown


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
    return Items(
        ids=numbered(len(x)) if id is None else _unique(path, id, texts[id]),
        x=x,
        labels=_spread([texts[name] for name in labels]) if labels else None,
        y_true=None if truth is None else texts[truth],
        features=names,
    )


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
    return x, names, {name: np.concatenate(part) for name, part in parts.items()}


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
