"""Each shard looked at once, by a worker: its rows as finite float32 in a mapped file, its labels as `comp`.

A `.npy` of float32 that is compared as it is stays where it is. Everything else (Parquet, other numbers, rows scaled to
length 1 for the cosine metric) is written to the work folder as float32, so that later stages only map files. A row
that cannot be used is named by its shard and its place in it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from naysay import labels
from naysay.augmentation.inputs import largest_class, read_labels
from naysay.augmentation.sharded.source import Shard
from naysay.datasets.arrays import read_npy
from naysay.datasets.columns import read_blocks
from naysay.errors import InputError
from naysay.files import replacing
from naysay.labels import Contradictions
from naysay.neighbors.rows import open_rows

PART = 65_536  # rows held at once


@dataclass(frozen=True)
class Naming:
    """The classes in order, and the class number of each text that names one; other texts say nothing."""

    names: tuple[str, ...]
    number: Mapping[str, int]


Settle = Callable[[Mapping[str, int]], Any]  # from how often each text was given to something like a `Naming`


def count_labels(shard: Shard) -> Counter[str] | int:
    """How often each text names a class in the shard's label columns; or its number of classes, where labels are
    arrays.
    """
    if shard.labels is not None:
        array = read_npy(shard.labels)
        if len(array) != shard.rows:
            raise InputError(
                f"{Path(shard.labels).name} must have a row for each of the {shard.rows} of {shard.name}; got "
                f"{len(array)}."
            )
        return int(array.shape[1]) if array.ndim == 2 and array.dtype.kind == "f" else largest_class(array) + 1
    if shard.soft:
        return int(next(read_blocks(Path(shard.path), [], list(shard.label), lists=True))[2][0].shape[1])
    counts: Counter[str] = Counter()
    for _, texts, _ in read_blocks(Path(shard.path), list(shard.label), [], lists=False):
        for column in texts.values():
            counts.update(_flat(column))
    return counts


def name_classes(
    counted: Sequence[Counter[str] | int], classes: Sequence[str] | None, settle: Settle | None, n_classes: int | None
) -> Naming:
    """The classes of all shards: what `settle` makes of their texts; else `classes`; else numbers from 0 to the last of
    `n_classes`, or to the largest named.
    """
    texts = sum((counts for counts in counted if isinstance(counts, Counter)), Counter[str]())
    if settle is not None and texts:
        settled = settle(texts)
        return Naming(tuple(settled.names), dict(settled.number))
    found = max((counts for counts in counted if isinstance(counts, int)), default=0)
    largest = max((int(text) for text in texts if text.isdecimal()), default=-1)
    names = tuple(classes or map(str, range(n_classes or max(found, largest + 1))))
    labels.check_n_classes(len(names))
    number = {name: at for at, name in enumerate(names)}
    strange = next((text for text in texts if text not in number and text != str(labels.UNLABELLED)), None)
    if strange is not None:
        raise InputError(
            f"labels must name one of the {len(names)} classes; got {strange!r}. Name all of them with classes=."
        )
    return Naming(names, number)


def prepare(shard: Shard, rows: Path, comp: Path, metric: str, naming: Naming, contradictions: Contradictions) -> None:
    """Check the shard, write its rows to the file `rows` where they must change, and its labels to `comp`, which ends
    it.
    """
    if shard.column is not None:
        blocks = (values[0] for _, _, values in read_blocks(Path(shard.path), [], [shard.column], lists=True))
        _write(rows, shard.rows, shard.width, _converted(shard, blocks, metric))
    else:
        array = read_npy(shard.path)
        source = open_rows(array, metric, shard.name)
        parts = (source.read(slice(start, start + PART)).numpy() for start in range(0, shard.rows, PART))
        if metric == "euclidean" and array.dtype == np.float32 and array.flags.c_contiguous:
            for _ in parts:
                pass  # reading is checking
        else:
            _write(rows, shard.rows, shard.width, parts)
    write_labels(shard, comp, naming, contradictions)


def write_labels(shard: Shard, path: Path, naming: Naming, contradictions: Contradictions) -> None:
    """The shard's labels as a float32 `comp` (n_i, K) in the file `path`."""
    comp: Iterator[Any]
    if shard.labels is not None:
        array, parts = read_npy(shard.labels), range(0, shard.rows, PART)
        comp = (_from_array(shard, array, start, len(naming.names), contradictions) for start in parts)
    elif shard.soft:
        comp = _from_lists(shard, len(naming.names))
    else:
        comp = _from_columns(shard, naming, contradictions)
    _write(path, shard.rows, len(naming.names), comp)


def _from_array(shard: Shard, array: Any, start: int, n_classes: int, contradictions: Contradictions) -> Any:
    part = np.asarray(array[start : start + PART])
    with _in(shard.labels, start):
        if contradictions == "raise" or part.dtype.kind == "f":
            return read_labels(part, n_classes).numpy()
        return labels.from_indices(part, n_classes, contradictions=contradictions).numpy()


def _from_columns(shard: Shard, naming: Naming, contradictions: Contradictions) -> Iterator[Any]:
    start = 0
    for _, texts, _ in read_blocks(Path(shard.path), list(shard.label), [], lists=False):
        rows = [
            [naming.number.get(text, labels.UNLABELLED) for text in _flat(cells)]
            for cells in zip(*texts.values(), strict=True)
        ]
        numbers = np.full((len(rows), max(1, *map(len, rows))), labels.UNLABELLED)
        for at, row in enumerate(rows):
            numbers[at, : len(row)] = row
        with _in(shard.path, start):
            yield labels.from_indices(numbers, len(naming.names), contradictions=contradictions).numpy()
        start += len(rows)


def _from_lists(shard: Shard, n_classes: int) -> Iterator[Any]:
    start = 0
    for _, _, values in read_blocks(Path(shard.path), [], list(shard.label), lists=True):
        with _in(shard.path, start):
            yield labels.validate(values[0], n_classes).numpy()
        start += len(values[0])


def _flat(cells: Iterable[Any]) -> list[str]:
    return [text for cell in cells for text in (cell if isinstance(cell, list) else [cell]) if text is not None]


def _converted(shard: Shard, blocks: Iterator[Any], metric: str) -> Iterator[Any]:
    start = 0
    for block in blocks:
        if block.shape[1] != shard.width:
            raise InputError(
                f"{shard.name} must hold lists of one length in column {shard.column!r}; they differ. Give every row "
                "as many numbers."
            )
        with _in(shard.path, start):
            yield open_rows(block, metric).read().numpy()
        start += len(block)


@contextmanager
def _in(path: str | None, start: int) -> Iterator[None]:
    """Say of which file the rows are that an error counts, and from where."""
    try:
        yield
    except InputError as error:
        counted = f", rows counted from {start}" if start else ""
        raise InputError(f"{Path(path or '').name}{counted}: {error}") from error


def _write(path: Path, n: int, width: int, parts: Iterator[Any]) -> None:
    """A `.npy` file of float32 (n, width), filled part by part."""
    with replacing(path) as unfinished:
        array, start = np.lib.format.open_memmap(unfinished, "w+", np.float32, (n, width)), 0
        for part in parts:
            array[start : start + len(part)] = part
            start += len(part)
        array.flush()
