"""Labels: everything that says "not this class" becomes one (n, K) float matrix, `comp`.

A row's mass says "not this class" and sums to 1: one label is one-hot, m labels weigh 1/m each, a label given twice
weighs twice. A row of zeros is unlabelled. Augmented labels (soft rows) have the same type, so that every later stage
takes one thing.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import memory
from naysay.errors import InputError
from naysay.words import few

Contradictions = Literal["raise", "unlabel", "keep"]

UNLABELLED = -1
SEVERAL = (list, tuple, np.ndarray, Tensor, set, frozenset)  # what a row of several labels may be
PANDAS_MISSING = ("NAType", "NaTType")  # by name: an NA is neither equal to itself nor unequal, and pandas is not ours
MOST = 64  # labels of a row, as their weights still tell them
WHOLE = 1e-3  # by which a weight times the number of labels may be off, as `validate` lets row sums be
BLOCK = 1 << 22  # entries of comp looked at together, so that a million rows, or ten thousand classes, need no memory
COUNT_BYTES = 20  # for each entry of comp while labels are counted, checked and audited
ROW_SUM_TOLERANCE = 1e-3  # rows of float16 embeddings pipelines sum to 1 only to their eleven bits


def from_indices(y: Any, n_classes: int, *, contradictions: Contradictions = "raise") -> Tensor:
    """Class numbers 0..K-1 as `comp` (n, K): `y` is (n,), (n, m), or ragged lists, one list of classes per instance.

    -1 (or an empty list) means unlabelled. `contradictions` says what becomes of a row that names every class:
    "raise", "unlabel" (a row of zeros) or "keep" (the counts as they are).
    """
    check_n_classes(n_classes)
    rows, columns, n = _entries(y)
    bad = (columns < UNLABELLED) | (columns >= n_classes)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        got = f"{int(columns[at])} in row {int(rows[at])}. If the classes are counted from 1, subtract 1"
        raise InputError(f"class numbers must be 0 to {n_classes - 1} (or -1 for unlabelled); got {got}.")
    given = columns != UNLABELLED
    return _from_votes(rows[given], columns[given], n, n_classes, contradictions)


def from_signed(votes: Any, n_classes: int, *, contradictions: Contradictions = "raise") -> Tensor:
    """Signed votes (n, m) as `comp` (n, K), as programmatic labelling writes them.

    Classes are counted from 1 here, because 0 abstains: -k means "not the k-th class", +k means "is the k-th class",
    which says "not" of the K-1 others. Column k-1 of the result belongs to the k-th class.
    """
    check_n_classes(n_classes)
    array = _integers(votes, "votes")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"votes must be (n,) or (n, m), one column per labelling function; got shape {array.shape}.")
    if array.size and np.abs(array).max() > n_classes:
        wanted = f"-{n_classes} to {n_classes} (0 abstains, classes are counted from 1)"
        raise InputError(f"votes must be {wanted}; got {int(array.flat[np.abs(array).argmax()])}.")
    _afford(len(array), n_classes)
    apart = [(array == -k).sum(1) - (array == k).sum(1) for k in range(1, n_classes + 1)]
    return from_counts((array > 0).sum(1, keepdims=True) + np.stack(apart, axis=1), contradictions)


def from_dummies(marks: Any, *, contradictions: Contradictions = "raise") -> Tensor:
    """A column per class, (n, K) of 0 and 1 (or true and false), as `comp` (n, K): 1 says "not this class"."""
    array = np.asarray(marks.detach().cpu() if isinstance(marks, Tensor) else marks)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not bool(((array == 0) | (array == 1)).all()):
        got = f"{array.dtype} of shape {array.shape}"
        raise InputError(f"marks must be an (n, K) matrix of 0 and 1, one column per class; got {got}.")
    check_n_classes(array.shape[1])
    _afford(*array.shape)
    return from_counts(array.astype(np.int64), contradictions)


def dummy_classes(columns: Sequence[Any]) -> list[Any]:
    """The classes of columns that mark them: "not_cat", as `naysay augment` writes it, and "cat" are both cat."""
    return [re.sub(r"^not[_ -](?=.)", "", name) if isinstance(name, str) else name for name in columns]


def from_table(
    table: Mapping[str, Any] | Any,
    classes: Sequence[Any] | None = None,
    items: Sequence[Any] | None = None,
    *,
    item: str = "item",
    label: str = "label",
    annotator: str | None = None,
    options: str | None = None,
    contradictions: Contradictions = "raise",
) -> Tensor:
    """Long rows (item, label, and optionally annotator and options shown) as `comp` (n, K).

    `table` is anything with columns by name: a dict of lists, a pandas DataFrame, a pyarrow Table. The result's rows
    follow `items`, or the items in order of first appearance (`unique_items`); its columns follow `classes`, or the
    sorted names of all labels and options. An empty or missing label says nothing. With `annotator`, one annotator
    naming the same class of the same item twice counts once. With `options` (a list per row, or names joined by "|"), a
    label that was not among the options shown is an error.
    """
    item_column, label_column = column(table, item), column(table, label)
    shown = [frozenset(listed(cell)) for cell in column(table, options)] if options is not None else None
    if classes is None:
        named = {name for name in label_column if not is_missing(name)}
        classes = sorted(named.union(*shown) if shown else named, key=lambda name: (str(type(name)), name))
    check_n_classes(len(classes))
    class_number = _numbered(classes, "classes")
    item_list = unique_items(item_column) if items is None else list(items)
    item_number = _numbered(item_list, "items")

    # who said so: without annotators every row is somebody's
    who = range(len(item_column)) if annotator is None else column(table, annotator)
    votes: list[tuple[Any, int, int]] = []
    for at, (name, its_label, by) in enumerate(zip(item_column, label_column, who, strict=True)):
        if name not in item_number:
            among = f"the {len(item_list)} items; drop the row or add the item"
            raise InputError(f"row {at} labels item {name!r}, which is not among {among}.")
        if is_missing(its_label):
            continue
        if its_label not in class_number:
            among = f"the classes {few(classes)}"
            raise InputError(f"row {at} names class {its_label!r}, which is not among {among}; correct its spelling.")
        if shown is not None and its_label not in shown[at]:
            among = f"the options shown {few(shown[at])}"
            raise InputError(f"row {at} names class {its_label!r}, which was not among {among}.")
        votes.append((by, item_number[name], class_number[its_label]))
    counted = votes if annotator is None else set(votes)
    item_of, class_of = (np.fromiter((vote[at] for vote in counted), np.int64, len(counted)) for at in (1, 2))
    return _from_votes(item_of, class_of, len(item_list), len(classes), contradictions, item_list)


def unique_items(column: Sequence[Any]) -> list[Any]:
    """The items of a long table in order of first appearance: the order of `from_table`'s rows."""
    return list(dict.fromkeys(column))


def column(table: Any, name: str) -> list[Any]:
    """A column of a dict of lists, a pandas DataFrame or a pyarrow Table, as a list."""
    names = column_names(table)
    if name not in names:
        raise InputError(f"the table has no column {name!r}; its columns are {few(names)}.")
    values = table[name]
    plain = getattr(values, "to_pylist", None) or getattr(values, "tolist", None)
    return list(plain() if plain else values)


def column_names(table: Any) -> list[Any]:
    """The names of a table's columns."""
    names = getattr(table, "column_names", None)
    if names is None and not (hasattr(table, "__getitem__") and hasattr(table, "__iter__")):
        got = type(table).__name__
        raise InputError(f"table must have columns by name (a dict of lists, a DataFrame, a pyarrow Table); got {got}.")
    return list(table if names is None else names)


def listed(cell: Any) -> tuple[Any, ...]:
    """The options of a cell in the order shown, each once: a list, names joined by "|", or a single option."""
    if is_missing(cell):
        return ()
    if isinstance(cell, str):
        cell = [part.strip() for part in cell.split("|")]
    parts = cell if hasattr(cell, "__iter__") else [cell]
    return tuple(dict.fromkeys(part for part in parts if not is_missing(part)))


def is_missing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, pandas' NA and NaT, or text of nothing but spaces."""
    if isinstance(value, str):
        return not value.strip()
    nan = isinstance(value, float) and bool(np.isnan(value))
    return value is None or nan or type(value).__name__ in PANDAS_MISSING


def tally(comp: Tensor, most: int = MOST, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    """How often each class is named (n, K), and of which rows (n,) the weights tell it.

    They do of rows of multiples of 1/m, which are m labels that weigh 1/m each, m at most `most`; and of rows without
    labels. Any other row is soft, and its counts are 0. The smallest numbers fit: a row that names two classes twice
    each counts as two labels. dtype: of the counts, that of comp unless given.
    """
    counts = torch.zeros_like(comp, dtype=dtype or comp.dtype)
    told = torch.ones(len(comp), dtype=torch.bool, device=comp.device)
    block = max(1, BLOCK // max(1, comp.shape[1]))
    for start in range(0, len(comp), block):
        part = comp[start : start + block]
        rows, named = part.nonzero(as_tuple=True)  # of many classes a row names few
        weights, left = part[rows, named], (part > 0).any(1)
        for m in range(1, most + 1):
            if not len(rows):
                break
            whole = (weights * m).round()
            off = ((weights * m - whole).abs() > WHOLE).to(comp.dtype)
            none = torch.zeros(2, len(part), dtype=comp.dtype, device=comp.device)
            labels_of, wrong = none.index_add(1, rows, torch.stack([whole, off]))
            fits = left & (wrong == 0) & (labels_of == m)
            put = fits[rows]
            counts[start + rows[put], named[put]] = whole[put].to(counts.dtype)
            left &= ~fits
            rows, named, weights = (of[left[rows]] for of in (rows, named, weights))
        told[start : start + block] = ~left
    return counts, told


def validate(comp: Any, n_classes: int | None = None) -> Tensor:
    """`comp` as a float tensor (n, K), checked: rows are non-negative and sum to 1, or to 0 where unlabelled."""
    tensor = torch.as_tensor(comp)
    way_out = "For class numbers use naysay.labels.from_indices(y, n_classes)."
    if tensor.ndim != 2:
        got = f"shape {tuple(tensor.shape)}"
        raise InputError(f"comp must be an (n, K) matrix, one column per class; got {got}. {way_out}")
    if not tensor.is_floating_point():
        got = f"{str(tensor.dtype).removeprefix('torch.')} values"
        raise InputError(f"comp must be a float matrix whose rows sum to 1; got {got}. {way_out}")
    if n_classes is not None and tensor.shape[1] != n_classes:
        raise InputError(f"comp must have one column per class; got {tensor.shape[1]} columns for {n_classes} classes.")
    check_n_classes(tensor.shape[1])
    # the least and the largest tell it without a copy, NaN among them
    low, high = tensor.aminmax() if tensor.numel() else (tensor.new_zeros(()), tensor.new_zeros(()))
    if not (float(low) >= 0 and float(high) < float("inf")):
        wrong = ~torch.isfinite(tensor) | (tensor < 0)
        at = int(wrong.any(1).nonzero()[0])
        row = [round(value, 4) for value in tensor[at].tolist()]
        raise InputError(f"comp must hold finite numbers of at least 0; got {row} in row {at}.")
    block = max(1, BLOCK // max(1, tensor.shape[1]))
    sums = torch.cat([part.double().sum(1) for part in torch.split(tensor, block)])
    off = ((sums - 1).abs() > ROW_SUM_TOLERANCE) & (sums != 0)
    if bool(off.any()):
        at = int(off.nonzero()[0])
        way_out = "Divide each row by its sum, or build comp with naysay.labels.from_indices."
        got = f"row {at} sums to {float(sums[at]):.4g}"
        raise InputError(f"rows of comp must sum to 1 (or to 0 where unlabelled); {got}. {way_out}")
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def check_n_classes(n_classes: int) -> None:
    """Complementary labels need at least three classes."""
    if n_classes == 2:
        raise InputError(
            'complementary labels need at least 3 classes; got 2, where "not a" already says "is b": '
            "these are ordinary labels in disguise, so swap them and train any ordinary classifier."
        )
    if n_classes < 2:
        raise InputError(f"complementary labels need at least 3 classes; got {n_classes}.")


def _afford(n: int, n_classes: int) -> None:
    """Raise InputError where a matrix (n, K) and what it is made from do not fit into memory."""
    way_out = "Are these classes, or is it another column? Give fewer rows or classes."
    memory.afford(COUNT_BYTES * n * n_classes, f"a matrix of labels of {n:,} items in {n_classes:,} classes", way_out)


def from_counts(
    counts: NDArray[np.int64], contradictions: Contradictions, items: Sequence[Any] | None = None
) -> Tensor:
    """How often each row names each class (n, K), as `comp`."""
    everything = counts.min(axis=1, initial=1) > 0
    _refuse(everything, contradictions, items)
    if contradictions == "unlabel":
        counts = np.where(everything[:, None], 0, counts)
    total = counts.sum(1, keepdims=True)
    return torch.from_numpy((counts / np.maximum(total, 1)).astype(np.float32))


def _from_votes(
    rows: NDArray[np.int64],
    named: NDArray[np.int64],
    n: int,
    n_classes: int,
    contradictions: Contradictions,
    items: Sequence[Any] | None = None,
) -> Tensor:
    """Single labels, their rows and classes (m,), as `comp` (n, K): only what is named is touched, for of ten thousand
    classes a row names few, and a matrix of counts took a minute.
    """
    _afford(n, n_classes)
    places, times = np.unique(rows * n_classes + named, return_counts=True)
    row_of, total = places // n_classes, np.bincount(rows, minlength=n)
    everything = np.bincount(row_of, minlength=n) == n_classes
    _refuse(everything, contradictions, items)
    weights = times / total[row_of]
    if contradictions == "unlabel":
        weights[everything[row_of]] = 0
    comp = np.zeros(n * n_classes, np.float32)
    comp[places] = weights
    return torch.from_numpy(comp.reshape(n, n_classes))


def _refuse(everything: NDArray[np.bool_], contradictions: Contradictions, items: Sequence[Any] | None) -> None:
    """Raise InputError where rows name `everything` (n,), unless something is to become of them."""
    if contradictions not in get_args(Contradictions):
        raise InputError(f'contradictions must be "raise", "unlabel" or "keep"; got {contradictions!r}.')
    if everything.any() and contradictions == "raise":
        at = int(np.flatnonzero(everything)[0])
        where = f"row {at}" if items is None else f"item {items[at]!r}"
        raise InputError(
            f"{where} names every class as wrong, which cannot be ({int(everything.sum())} such rows); drop its "
            'labels, or pass contradictions="unlabel" (ignore such rows) or "keep" (weigh the classes by how often '
            "they were named)."
        )


def _entries(y: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The (row, class) entries of (n,), (n, m) or ragged class numbers, and n."""
    if isinstance(y, list | tuple) and any(isinstance(row, SEVERAL) for row in y):
        plain = (list(row) if isinstance(row, set | frozenset) else row for row in y)
        lists = [_integers(row, f"row {i}").reshape(-1) for i, row in enumerate(plain)]
        rows = np.repeat(np.arange(len(lists)), [len(row) for row in lists])
        return rows, np.concatenate([np.empty(0, dtype=np.int64), *lists]), len(lists)
    array = _integers(y, "y")
    if array.ndim not in (1, 2):
        raise InputError(f"class numbers must be (n,), (n, m) or a list of lists; got shape {array.shape}.")
    columns = array if array.ndim == 2 else array[:, None]
    return np.repeat(np.arange(len(array)), columns.shape[1]), columns.reshape(-1), len(array)


def _integers(values: Any, what: str) -> NDArray[np.int64]:
    array = np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)
    if array.dtype == bool or (array.size and array.dtype.kind not in "iuf"):
        got = f"{array.dtype.name} values such as {array.flat[0]!r}"
        way_out = "For class names use naysay.labels.from_table or naysay.ComplementaryClassifier."
        raise InputError(f"{what} must hold class numbers; got {got}. {way_out}")
    if array.dtype.kind == "f" and not (np.isfinite(array).all() and (array == np.trunc(array)).all()):
        way_out = "For soft labels use naysay.labels.validate."
        raise InputError(f"{what} must hold whole class numbers; got fractions or NaN. {way_out}")
    return array.astype(np.int64)


def _numbered(names: Sequence[Any], what: str) -> dict[Any, int]:
    numbers = {name: i for i, name in enumerate(names)}
    if len(numbers) != len(names):
        twice = next(name for i, name in enumerate(names) if numbers[name] != i)
        raise InputError(f"{what} must be distinct; got {twice!r} more than once.")
    return numbers
