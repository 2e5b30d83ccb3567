"""Sets as plain arrays: the fields every loader fills, the check they pass, and the hash that names their content.

Images are uint8 with channels last, (n, H, W) or (n, H, W, C); tables are finite floats (n, d). Labels are int64 class
numbers. `comp_train` (n, m) holds the classes that m annotators ruled out for each training instance, -1 where one gave
none. A user's own instances are `Items`; their labels are kept as the text they were given in.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from naysay.errors import InputError

if TYPE_CHECKING:
    from naysay.datasets.recipe import Columns

Array = NDArray[Any]
Rows = NDArray[np.int64]
Texts = NDArray[np.object_]  # str, or None where a cell was empty
REQUIRED = ("x_train", "y_train", "x_test", "y_test", "classes")
KEYS = (*REQUIRED, "comp_train")
LAST_LETTER = 0x10FFFF  # of Unicode
BLOCK = 65_536  # rows looked at together, so that checking a memory-mapped array needs little memory


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Training and test instances with their ordinary labels, and annotators' complementary ones if there are any."""

    name: str
    x_train: Array
    y_train: NDArray[np.int64]
    x_test: Array
    y_test: NDArray[np.int64]
    classes: NDArray[np.str_]
    comp_train: NDArray[np.int64] | None = None

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def fingerprint(self) -> str:
        """What `content_hash` says of the arrays; the name is not part of it."""
        return content_hash({key: getattr(self, key) for key in KEYS})

    def __repr__(self) -> str:
        annotated = "" if self.comp_train is None else f", {self.comp_train.shape[1]} complementary labels each"
        rows = f"{len(self.x_train)} + {len(self.x_test)} of {'x'.join(map(str, self.x_train.shape[1:]))}"
        return f"<Dataset {self.name}: {rows}, {self.n_classes} classes{annotated}>"


@dataclass(frozen=True, eq=False)
class Items:
    """A user's n instances: `x` is float (n, d) or uint8 images (n, H, W[, 3])."""

    ids: Texts  # (n,), all different
    x: Array
    labels: Texts | None = None  # (n, m): up to m complementary labels each, in the order given
    y_true: Texts | None = None  # (n,): the ordinary labels, where they are known; for evaluation only
    features: tuple[str, ...] = ()  # the names of x's columns, where they have any
    columns: "Columns | None" = None  # of a table: what its columns became, for tables to come
    # of a table: what its columns are among some rows, the names of the features, and those (n, d) of all rows
    read_by: "Callable[[Rows], tuple[Columns, tuple[str, ...], Array]] | None" = None

    def seen_by(self, rows: "Rows") -> Self:
        """The same items, with what a table's columns become found among these rows alone (categories, words, fills)
        and applied to all; of images, arrays and lists, as they are.
        """
        if self.read_by is None or self.columns is None:
            return self
        columns, features, x = self.read_by(rows)
        if self.columns.is_plain and columns.is_plain and columns.inputs == self.columns.inputs:
            return self  # the numbers are those of the file
        return replace(self, x=x, features=features, columns=columns)

    @cached_property
    def fingerprint(self) -> str:
        """What `content_hash` says of the ids, the instances and the complementary labels."""
        return content_hash({"ids": self.ids, "x": self.x, "labels": self.labels})


def numbered(n: int) -> Texts:
    """The ids of items that have none: their row numbers, from 0, as text."""
    return np.array([str(i) for i in range(n)], object)


def checked_texts(texts: Array, path: Any) -> Texts:
    """Names from the file or folder `path` as text; bytes are read as UTF-8, and what UTF-8 cannot write is refused."""
    try:
        texts = np.char.decode(texts, "utf-8") if texts.dtype.kind == "S" else texts
        if texts.dtype.kind == "U" and texts.dtype.itemsize:
            letters = np.ascontiguousarray(texts).reshape(-1).view(np.uint32)
            if letters.max(initial=0) > LAST_LETTER:  # which numpy can hold, and Python cannot
                raise ValueError(f"it has the number {letters.max():#x} for a letter")
        plain: Texts = texts.astype(object)
        for text in plain.reshape(-1).tolist():
            if not text.isascii():
                text.encode()
    except ValueError as error:
        raise InputError(f"{path} holds a name that is not UTF-8 ({error}). Write it in UTF-8.") from error
    return plain


def content_hash(arrays: Mapping[str, Array | None]) -> str:
    """SHA-256 (hex) of named arrays, the same on every machine, whatever file or memory layout they come from."""
    digest = hashlib.sha256()
    for key, value in arrays.items():
        if value is not None:
            # numpy pads text to the longest and points to objects: hash what they say
            said = np.frombuffer(json.dumps(value.tolist()).encode(), np.uint8) if value.dtype.kind in "OU" else value
            plain = np.ascontiguousarray(said, said.dtype.newbyteorder("<"))
            digest.update(f"{key} {plain.dtype.str} {plain.shape}\n".encode())
            digest.update(plain.data)
    return digest.hexdigest()


def from_arrays(name: str, arrays: Mapping[str, Array]) -> Dataset:
    """The Dataset of arrays without `faults`; labels become int64."""
    given = arrays.keys() & {"y_train", "y_test", "comp_train"}
    return Dataset(name, **{**arrays, **{key: arrays[key].astype(np.int64, copy=False) for key in given}})


def faults(arrays: Mapping[str, Array], shape: tuple[int, ...] | None = None) -> Iterator[str]:
    """What is wrong with the arrays of a Dataset, each in half a sentence; `shape` is what one instance must have."""
    missing = [key for key in REQUIRED if key not in arrays]
    if missing:
        yield f"it lacks {', '.join(missing)}"
        return
    classes, shape = arrays["classes"], shape or arrays["x_train"].shape[1:]
    if classes.dtype.kind != "U" or classes.ndim != 1 or not 2 <= classes.size == len(set(classes.tolist())):
        yield f"classes must be two or more different names; got {classes.tolist()!r:.80}"
    for split in ("train", "test"):
        x = arrays[f"x_{split}"]
        if not shape or x.shape[1:] != shape or len(x) == 0:
            yield f"x_{split} must be (n, {', '.join(map(str, shape)) or 'd'}); got shape {x.shape}"
        elif x.dtype != np.uint8 and x.dtype.kind != "f":
            yield f"x_{split} must be uint8 images or floats; got {x.dtype}"
        elif (row := unfinite_row(x)) is not None:
            yield f"x_{split} must be finite; row {row} holds NaN or inf"
        else:
            yield from _label_faults(f"y_{split}", arrays[f"y_{split}"], (len(x),), 0, len(classes))
    if "comp_train" in arrays:
        comp = arrays["comp_train"]
        m = comp.shape[1] if comp.ndim == 2 else 0
        yield from _label_faults("comp_train", comp, (len(arrays["x_train"]), m), -1, len(classes))


def unfinite_row(x: Array) -> int | None:
    """The first row of x that holds NaN or inf, or None."""
    if x.dtype.kind == "f":
        for start in range(0, len(x), BLOCK):
            finite = np.isfinite(x[start : start + BLOCK])
            if not finite.all():
                return start + int(np.argmin(finite.reshape(len(finite), -1).all(1)))
    return None


def _label_faults(key: str, labels: Array, shape: tuple[int, ...], lowest: int, n_classes: int) -> Iterator[str]:
    if labels.dtype.kind not in "iu" or labels.shape != shape or labels.size == 0:
        wanted = "(n,)" if len(shape) == 1 else "(n, m)"
        yield f"{key} must be {wanted} class numbers, one row per row of x; got {labels.dtype} of shape {labels.shape}"
    elif labels.min() < lowest or labels.max() >= n_classes:
        got = labels.min() if labels.min() < lowest else labels.max()
        yield f"{key} must lie between {lowest} and {n_classes - 1}; got {got}"
