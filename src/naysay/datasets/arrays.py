"""A user's arrays: one `.npy` of features or images, or an `.npz` that names its parts.

A `.npy` is mapped, not read, so that it may be larger than memory. In an `.npz` the instances are `x` (or `x_train`),
the ids `ids`, the complementary labels `labels` (or `comp_train`): class numbers or names, (n,) or (n, m), -1 or "" for
none; other names can be given.
"""

import math
from os import PathLike
from pathlib import Path

import numpy as np

from naysay import memory
from naysay.datasets.dataset import Array, Items, Texts, checked_texts, numbered, unfinite_row
from naysay.datasets.store import FEWER, UNREADABLE, npz_headers, plain, read_npz, require_file
from naysay.errors import InputError, unknown

TABLES = 7  # of the size of the features that are held at once, while they are checked, standardised and compared


def read_arrays(
    path: str | PathLike[str],
    *,
    id: str | None = None,
    label: str | None = None,
    features: str | None = None,
    truth: str | None = None,
) -> Items:
    """The instances in a `.npy` or `.npz` file; `id`, `label`, `features` and `truth` name arrays of the latter."""
    path = Path(path)
    if path.suffix.lower() == ".npy":
        return _items(path, read_npy(path))
    _check_headers(path, id, label, features, truth)
    arrays = read_npz(path)
    for name in (id, label, features, truth):
        if name is not None and name not in arrays:
            raise unknown(f"array of {path}", name, arrays)
    x = arrays[features] if features else arrays.get("x", arrays.get("x_train"))
    if x is None:
        got = ", ".join(arrays) or "nothing"
        raise InputError(f"{path} must hold an array x; got {got}. Name the instances with features=.")
    ids = arrays[id] if id else arrays.get("ids")
    labels = arrays[label] if label else arrays.get("labels", arrays.get("comp_train"))
    return _items(path, x, ids, labels, arrays[truth] if truth else None)


def _check_headers(path: Path, id: str | None, label: str | None, features: str | None, truth: str | None) -> None:
    """Refuse, before anything is unpacked, arrays of different rows, and features whose work does not fit memory."""
    heads = npz_headers(path)
    x = features or next((name for name in ("x", "x_train") if name in heads), None)
    if x is None or x not in heads or not heads[x][0]:
        return  # what is missing is said where it is read
    shape, kind = heads[x]
    given = label or next((name for name in ("labels", "comp_train") if name in heads), None)
    wanted = "labels as class numbers or names, one row per row of x"
    for name, what in ((id or "ids", "one id per row"), (given, wanted), (truth, wanted)):
        if name is not None and name in heads and heads[name][0][:1] != shape[:1]:
            got = f"{name!r} of shape {heads[name][0]} beside {x!r} of {shape[0]:,} rows"
            raise InputError(f"{path} must hold {what}; got {got}. Give arrays of one length.")
    if len(shape) == 2 and kind.kind in "iufb":
        memory.afford(TABLES * max(4, kind.itemsize) * math.prod(shape), str(path), FEWER)


def read_npy(path: str | PathLike[str]) -> Array:
    """The array of a .npy file, mapped and not read."""
    require_file(Path(path))
    try:
        x: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        raise InputError(f"{path} cannot be read as .npy ({error}). Write it again with numpy.save.") from error
    if not isinstance(x, np.ndarray):
        x.close()
        raise InputError(f"{path} holds several arrays. Give it the ending .npz.")
    return plain(x, Path(path))


def _items(
    path: Path, x: Array, ids: Array | None = None, labels: Array | None = None, truth: Array | None = None
) -> Items:
    if x.ndim not in (2, 3, 4) or x.size == 0 or x.dtype.kind not in "iufb":
        raise InputError(f"{path} must hold numbers (n, d) or images (n, H, W[, C]); got {x.dtype} of shape {x.shape}.")
    if x.ndim > 2 and x.dtype != np.uint8:
        got = f"{x.dtype} of shape {x.shape}. Convert them, or flatten to (n, d)"
        raise InputError(f"{path} must hold images as uint8, 0 to 255; got {got}.")
    if (row := unfinite_row(x)) is not None:
        got = f"nan or inf in row {row}"
        raise InputError(f"{path} must hold finite numbers; got {got}. Mend it, or leave the row out.")
    if x.ndim == 2 and x.dtype.kind != "f":
        memory.afford(4 * x.size, str(path), FEWER)
        x = x.astype(np.float32)
    names = numbered(len(x)) if ids is None else _named(path, ids)
    different = len(set(names.flat))
    if names.shape != (len(x),) or different != len(x):
        raise InputError(f"{path} must hold one id per row, all different; got {different} for {len(x)} rows.")
    given = None if labels is None else _texts(path, labels, len(x)).reshape(len(x), -1)
    return Items(names, x, given, None if truth is None else _texts(path, truth, len(x)))


def _named(path: Path, names: Array) -> Texts:
    """An array of names or numbers as text."""
    if names.dtype.kind not in "iufbSU":
        raise InputError(f"{path} must hold names or numbers where items are named; got {names.dtype}.")
    return checked_texts(names if names.dtype.kind in "SU" else names.astype(np.str_), path)


def _texts(path: Path, labels: Array, n: int) -> Texts:
    if labels.dtype.kind not in "iuSU" or labels.ndim not in (1, 2) or len(labels) != n:
        got = f"{labels.dtype} {labels.shape}"
        raise InputError(f"{path} must hold labels as class numbers or names, one row per row of x; got {got}.")
    texts = _named(path, labels)
    texts[(texts == "") | ((texts == "-1") & (labels.dtype.kind in "iu"))] = None
    return texts
