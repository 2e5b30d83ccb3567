"""What scikit-learn users call y, as `comp`: class names of any type, one or several per row, or the (n, K) matrix.

A matrix of 0 and 1, or a frame of such columns, has a column for each class, and 1 says "not this class".

With two classes "not a" says "is b". scikit-learn's users may still come with two, so a third class that nothing can
be, and that every label also names, stands in for what is missing: its rows are exactly those of uniform labels over
three classes, and nothing is lost.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from naysay import labels
from naysay.errors import InputError
from naysay.estimation import ask_meaning, ordinary

TWO_CLASSES = (
    'there are only two classes, so "not a" already says "is b": these are ordinary labels in disguise. They are used '
    "as such; any ordinary classifier would do."
)


def encode_for(X: Any, y: Any, classes: Sequence[Any] | None) -> tuple[Tensor, NDArray[Any]]:
    """What `encode` gives for the labels `y` of rows `X`, which must be as many."""
    comp, named = encode(y, classes, stacklevel=4)
    if len(comp) != X.shape[0]:
        raise ValueError(f"X and y must have the same rows; got {X.shape[0]} and {len(comp)}.")
    found = ask_meaning(comp, X) if isinstance(X, np.ndarray) and len(named) > 2 else None
    if found is not None and found.ordinary:
        way_out = "If they say what rows are, train any ordinary classifier; if what they are not, never mind."
        warnings.warn(f"{ordinary(found)}. {way_out}", UserWarning, stacklevel=3)
    return comp, named


def encode(
    y: Any, classes: Sequence[Any] | NDArray[Any] | None = None, *, stacklevel: int = 3
) -> tuple[Tensor, NDArray[Any]]:
    """The labels `comp` (n, K) of `y`, and the class of each column: `classes`, or what y names, sorted.

    y is (n,) or (n, m) class names, ragged lists of them, a float (n, K) matrix, or an (n, K) matrix of 0 and 1, whose
    classes are a frame's columns ("not_cat" is cat). None, NaN, pandas' NA, "" and an empty list mean unlabelled, and
    so does -1, unless it is one of `classes`.
    """
    if y is None:
        way_out = "give the complementary labels of the rows"
        raise InputError(f"fitting requires y to be passed, but the target y is None; {way_out}.")
    if isinstance(y, Tensor):
        y = y.detach().cpu().numpy()
    elif hasattr(y, "__array__") and not isinstance(y, np.ndarray):
        columns = labels.dummy_classes(list(getattr(y, "columns", ())))
        y = np.asarray(y)
        classes = columns if classes is None and columns and _is_dummies(y, None) else classes
    if isinstance(y, np.ndarray) and _is_dummies(y, classes):
        named = np.arange(y.shape[1]) if classes is None else np.asarray(classes)
        return labels.from_dummies(y, contradictions="keep"), named
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.dtype.kind == "f" and y.shape[1] > 2:
        comp = labels.validate(y)
        named = np.arange(comp.shape[1]) if classes is None else np.asarray(classes)
        if len(named) != comp.shape[1]:
            raise InputError(f"y has {comp.shape[1]} columns for {len(named)} classes; give one column per class.")
        return comp, named
    rows = [[name for name in _cells(row) if not _missing(name, classes)] for row in _rows(y)]
    known = _sorted({name for row in rows for name in row}) if classes is None else np.asarray(classes)
    number = {name: i for i, name in enumerate(known.tolist())}
    for i, name in ((i, name) for i, row in enumerate(rows) for name in row if name not in number):
        few = ", ".join(map(str, known[:8]))
        raise InputError(f"row {i} names class {name!r}, which is not among the {len(known)} classes: {few}.")
    if len(known) < 2:
        way_out = "Pass classes= with all of them."
        raise InputError(f"complementary labels need more than one class; got {len(known)}. {way_out}")
    numbers = [[number[name] for name in row] for row in rows]
    if len(known) == 2:
        warnings.warn(TWO_CLASSES, UserWarning, stacklevel=stacklevel)
        numbers = [[*row, *[2] * len(row)] for row in numbers]
    return labels.from_indices(numbers, max(len(known), 3), contradictions="keep"), known


def _is_dummies(y: NDArray[Any], classes: Any) -> bool:
    """Whether y has a column for each class, of 0 and 1: as many columns as `classes`, or at least three."""
    if y.ndim != 2 or y.shape[1] < 3 or (classes is not None and y.shape[1] != len(classes)):
        return False
    return y.dtype.kind in "biuf" and bool(((y == 0) | (y == 1)).all()) and bool(y.any())


def _rows(y: Any) -> Iterable[Any]:
    if isinstance(y, np.ndarray):
        fractions = y.dtype.kind == "f" and (np.isinf(y).any() or not np.array_equal(y, np.trunc(y), equal_nan=True))
        if y.ndim not in (1, 2) or fractions:
            what = "Unknown label type: continuous numbers" if y.dtype.kind == "f" else f"{y.dtype} of shape {y.shape}"
            wanted = "class names (n,) or (n, m), lists of them, or a float matrix (n, K)"
            raise InputError(f"y must hold {wanted}; got {what}.")
        return y.tolist()  # type: ignore[no-any-return]
    if not isinstance(y, list | tuple):
        raise InputError(f"y must be an array or a list of class names, one entry per row; got {type(y).__name__}.")
    return y


def _cells(row: Any) -> list[Any]:
    if isinstance(row, Tensor | np.ndarray):
        row = row.tolist()
    return list(row) if isinstance(row, list | tuple | set | frozenset) else [row]


def _missing(name: Any, classes: Any) -> bool:
    if isinstance(name, int | float) and not isinstance(name, bool) and name == labels.UNLABELLED:
        return classes is None or labels.UNLABELLED not in list(classes)
    return labels.is_missing(name)


def _sorted(names: set[Any]) -> NDArray[Any]:
    try:
        return np.array(sorted(names))
    except TypeError:  # names of several types have no order of their own
        return np.array(sorted(names, key=lambda name: (type(name).__name__, str(name))), dtype=object)
