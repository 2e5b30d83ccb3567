"""Each shard read once, by a worker: its rows as finite float32 in a mapped file, its labels as `comp`; and written.

A `.npy` of float32 that is compared as it is stays where it is. Everything else (Parquet, other numbers, rows scaled to
length 1 for the cosine metric) is written to the work folder as float32. A row that cannot be used is named by its
shard and its place in it. Later stages only map the files, in blocks: runs of rows of one shard, small enough for a
worker to hold several of. Workers of one machine share the mapped pages.

The result is a Parquet file for every shard, with an id and not_CLASS for every class, as `naysay augment` writes.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from naysay import labels
from naysay.augmentation import Description, describe, largest_class, read_labels
from naysay.augmentation.diagnostics import are_turned, merge
from naysay.augmentation.propagation import divide_rows
from naysay.cluster.folders import Files, Shard
from naysay.datasets.arrays import read_npy
from naysay.datasets.columns import flat, read_blocks
from naysay.errors import InputError
from naysay.files import replacing
from naysay.labels import Contradictions
from naysay.neighbors.blocks import even_edges
from naysay.neighbors.rows import open_rows
from naysay.rounding import SAMPLE
from naysay.shares import Evidence

PART = 65_536  # rows held at once
LOOKED = 8  # shards, at most, whose rows say what all have in common


@dataclass(frozen=True)
class Naming:
    """The classes in order, and the class number of each text that names one; other texts say nothing."""

    names: tuple[str, ...]
    number: Mapping[str, int]


Counted = Counter[str] | int
NameTexts = Callable[[Mapping[str, int]], Any]  # from how often each text was given to something like a `Naming`


def count_labels(shard: Shard) -> Counted:
    """How often each text names a class in the shard's label columns; or its K, where labels are arrays."""
    if shard.labels is not None:
        array, name = read_npy(shard.labels), Path(shard.labels).name
        if len(array) != shard.rows:
            raise InputError(f"{name} must have a row for each of the {shard.rows} of {shard.name}; got {len(array)}.")
        return int(array.shape[1]) if array.ndim == 2 and array.dtype.kind == "f" else largest_class(array) + 1
    if shard.soft:
        return int(next(read_blocks(Path(shard.path), [], list(shard.label), lists=True))[2][0].shape[1])
    counts: Counter[str] = Counter()
    for _, texts, _ in read_blocks(Path(shard.path), list(shard.label), [], lists=False):
        for column in texts.values():
            counts.update(text for text in flat(column) if text is not None)
    return counts


def name_classes(
    counted: Sequence[Counted], classes: Sequence[str] | None, name_texts: NameTexts | None, n_classes: int | None
) -> Naming:
    """The classes of all shards: what `name_texts` makes of their texts, or `classes`, or as many numbers as needed."""
    texts = sum((counts for counts in counted if isinstance(counts, Counter)), Counter[str]())
    if name_texts is not None and texts:
        named = name_texts(texts)
        return Naming(tuple(named.names), dict(named.number))
    found = max((counts for counts in counted if isinstance(counts, int)), default=0)
    largest = max((int(text) for text in texts if text.isdecimal()), default=-1)
    names = tuple(classes or map(str, range(n_classes or max(found, largest + 1))))
    labels.check_n_classes(len(names))
    number = {name: at for at, name in enumerate(names)}
    for text in texts:
        if text not in number and text != str(labels.UNLABELLED):
            got = f"labels must name one of the {len(names)} classes; got {text!r}"
            raise InputError(f"{got}. Name all of them with classes=.")
    return Naming(names, number)


def find_centre(shards: Sequence[Shard], metric: str) -> Any:
    """What to take away from all rows before they are rounded to float32, by those of a few shards; None for nothing.

    One for all, or distances between shards would not be distances.
    """
    some = shards[:: -(-len(shards) // LOOKED)]
    step = max(1, sum(shard.rows for shard in some) // SAMPLE)
    heads = (read_npy(one.path) if one.column is None else next(_features(one, one.column)) for one in some)
    sample = np.concatenate([np.asarray(head[::step]) for head in heads])
    return open_rows(sample, metric).centred().centre


def prepare(
    shard: Shard,
    rows: Path,
    comp: Path,
    metric: str,
    naming: Naming,
    contradictions: Contradictions,
    centre: Any = None,
) -> None:
    """Check the shard, write its rows to the file `rows` where they must change, and at last its labels to `comp`."""
    if shard.column is not None:
        read = partial(_read, metric=metric, centre=centre)
        _write(rows, shard.rows, shard.width, _convert(shard.path, _features(shard, shard.column), read))
    else:
        array = read_npy(shard.path)
        source = replace(open_rows(array, metric, shard.name), centre=centre)
        parts = (source.read(slice(start, start + PART)).numpy() for start in range(0, shard.rows, PART))
        if metric == "euclidean" and array.dtype == np.float32 and array.flags.c_contiguous and centre is None:
            deque(parts, maxlen=0)  # reading is checking
        else:
            _write(rows, shard.rows, shard.width, parts)
    n_classes = len(naming.names)
    convert: Callable[[Any], Any] = partial(labels.from_indices, n_classes=n_classes, contradictions=contradictions)
    if shard.labels is not None:
        array = read_npy(shard.labels)
        given: Iterator[Any] = (np.asarray(array[start : start + PART]) for start in range(0, shard.rows, PART))
        if contradictions == "raise" or array.dtype.kind == "f":
            convert = partial(read_labels, n_classes=n_classes)
    elif shard.soft:
        given, convert = _lists(shard, shard.label[0]), partial(labels.validate, n_classes=n_classes)
    else:
        given = _class_numbers(shard, naming)
    _write(comp, shard.rows, n_classes, _convert(shard.labels or shard.path, given, convert))


def _read(block: Any, metric: str, centre: Any) -> Any:
    return replace(open_rows(block, metric), centre=centre).read()


def _class_numbers(shard: Shard, naming: Naming) -> Iterator[Any]:
    for _, texts, _ in read_blocks(Path(shard.path), list(shard.label), [], lists=False):
        cells = map(flat, zip(*texts.values(), strict=True))
        rows = [[naming.number.get(text, labels.UNLABELLED) for text in row if text is not None] for row in cells]
        widest = max(1, *map(len, rows))
        yield np.array([row + [labels.UNLABELLED] * (widest - len(row)) for row in rows])


def _lists(shard: Shard, column: str, *, exact: bool = False) -> Iterator[Any]:
    return (values[0] for _, _, values in read_blocks(Path(shard.path), [], [column], lists=True, exact=exact))


def _features(shard: Shard, column: str) -> Iterator[Any]:
    for block in _lists(shard, column, exact=True):
        if block.shape[1] != shard.width:
            differ = f"{shard.name} must hold lists of one length in column {column!r}; they differ"
            raise InputError(f"{differ}. Give every row as many numbers.")
        yield block


def _convert(path: str, parts: Iterator[Any], convert: Callable[[Any], Any]) -> Iterator[Any]:
    """What `convert` makes of each part; an error says of which file the rows are that it counts, and from where."""
    start = 0
    for part in parts:
        try:
            converted = convert(part)
        except InputError as error:
            counted = f", rows counted from {start}" if start else ""
            raise InputError(f"{Path(path).name}{counted}: {error}") from error
        yield converted.numpy()
        start += len(part)


def _write(path: Path, n: int, width: int, parts: Iterator[Any]) -> None:
    """A `.npy` file of float32 (n, width), filled part by part."""
    with replacing(path) as unfinished:
        array, start = np.lib.format.open_memmap(unfinished, "w+", np.float32, (n, width)), 0
        for part in parts:
            array[start : start + len(part)] = part
            start += len(part)
        array.flush()


@dataclass(frozen=True)
class Block:
    """The rows `first` to `first + rows - 1` of the whole, which are those from `at` on of the `.npy` file `path`."""

    path: str
    at: int
    first: int
    rows: int

    @property
    def ids(self) -> Any:
        """The row numbers (rows,) in the whole."""
        return np.arange(self.first, self.first + self.rows, dtype=np.int32)

    def read(self) -> Any:
        """The rows (rows, d) float32, mapped; they were looked at once, when the shards were prepared."""
        mapped = np.load(self.path, mmap_mode="r")[self.at : self.at + self.rows]
        return open_rows(mapped, "euclidean").numbers.numpy()


def cut(files: Files, most: int) -> tuple[Block, ...]:
    """Each file cut evenly into blocks of at most so many rows."""
    blocks = []
    for path, first, rows in files:
        edges = even_edges(rows, most).tolist()
        blocks += [Block(path, start, first + start, stop - start) for start, stop in pairwise(edges)]
    return tuple(blocks)


def read_run(files: Files, first: int, last: int) -> Any:
    """The rows first..last-1 of the whole from the `.npy` files that hold them, in memory."""
    holding = [(path, start) for path, start, rows in files if start < last and first < start + rows]
    parts = [np.load(path, mmap_mode="r")[max(0, first - start) : last - start] for path, start in holding]
    return np.concatenate(parts)


def take(blocks: Sequence[Block], numbers: Any) -> Any:
    """The rows (m, d) of those numbers, which are sorted, from wherever they are."""
    edges = np.searchsorted(numbers, [block.first for block in blocks] + [blocks[-1].first + blocks[-1].rows])
    parts = [part for part in zip(blocks, np.split(numbers, edges[1:-1]), strict=True) if len(part[1])]
    return np.concatenate([np.load(block.path, mmap_mode="r")[some - block.first + block.at] for block, some in parts])


def write_shard(
    shard: Shard, out: Path, comp: Files, shared: Files, classes: Sequence[str], evidence: Evidence | None
) -> tuple[Description, int]:
    """Write the shard's labels, rows divided by their sums and corrected, to the folder `out`.

    What became of those it had, and how many rows have another least named class by the correction.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    told, start, turned = [], shard.first, 0
    with replacing(out / f"{Path(shard.path).stem}.parquet") as unfinished:
        schema = pa.schema([("id", pa.string()), *((f"not_{name}", pa.float32()) for name in classes)])
        with pq.ParquetWriter(unfinished, schema) as writer:
            for ids in _ids(shard):
                stop = start + len(ids)
                Z = divide_rows(torch.from_numpy(read_run(shared, start, stop)))
                if evidence is not None:
                    before, Z = Z, evidence.correct(Z)
                    turned += int(are_turned(before, Z).sum())
                told.append(describe(read_run(comp, start, stop), Z))
                writer.write_table(pa.table([pa.array(ids), *Z.numpy().T], schema=schema))
                start = stop
    return merge(told), turned


def _ids(shard: Shard) -> Iterator[Any]:
    """The ids of the shard's rows, some at a time: its id column, or the row numbers in the whole."""
    if shard.id is not None:
        for _, texts, _ in read_blocks(Path(shard.path), [shard.id], [], lists=False):
            yield texts[shard.id]
        return
    for start in range(0, shard.rows, PART):
        yield np.arange(shard.first + start, shard.first + min(start + PART, shard.rows)).astype(np.str_).astype(object)
