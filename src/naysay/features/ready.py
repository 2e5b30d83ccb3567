"""Ready-made embeddings: an array, or a file of them, checked and as float32, or float64 where that loses too much."""

import re
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay import datasets
from naysay.datasets.columns import CSV, PARQUET
from naysay.datasets.dataset import Array, unfinite_row
from naysay.errors import InputError
from naysay.features.cache import Features
from naysay.features.raw import to_numpy
from naysay.rounding import SAMPLE, needs_bits

ENDINGS = (".npy", ".npz", *PARQUET, *CSV)
WITH_COLUMN = re.compile(rf"(.+?(?:{'|'.join(map(re.escape, ('.npz', *PARQUET, *CSV)))})):(.+)", re.IGNORECASE)


def read_embeddings(source: str | PathLike[str] | Array | Tensor, features: str | Sequence[str] | None = None) -> Array:
    """The array itself, or what a file holds; `features` names the column, as does "file.parquet:column"."""
    if isinstance(source, (np.ndarray, Tensor)):
        return to_numpy(source)
    named = WITH_COLUMN.fullmatch(fspath(source)) if features is None else None
    path = Path(named[1] if named else source)
    if not path.name.lower().endswith(ENDINGS):
        raise InputError(
            f"{path} must be an encoder (.safetensors) or embeddings ({', '.join(ENDINGS)}); "
            f"got the ending {path.suffix!r}. A torch module can be given as it is."
        )
    columns = named[2] if named else features
    items = datasets.read(path, **({} if columns is None else {"features": columns}))
    for column in () if items.columns is None else items.columns.columns:
        if not column.is_plain:
            wrong = f"{path} must hold numbers in column {column.name!r}; got {column.told()}"
            raise InputError(f"{wrong}. Name the column of embeddings, as in {path.name}:vector.")
    return items.x


def as_features(made: Any, rows: int | None, what: str, *, wide: bool = False) -> Features:
    """`made` as features (n, d) float32, finite, with so many rows (None: any).

    Where that loses what tells the rows apart (`naysay.rounding`), or if `wide`, numbers of more bits are float64.
    """
    array = to_numpy(made)
    if array.dtype.kind not in "buif" or array.ndim != 2 or not array.size:
        raise InputError(
            f"{what} must be numbers (n, d), a row of features for each image; "
            f"got {array.dtype} of shape {array.shape}."
        )
    if rows is not None and len(array) != rows:
        raise InputError(
            f"{what} must have a row for each of the {rows} images; got {len(array)} rows. Give both in the same order."
        )
    with np.errstate(over="ignore"):  # what float32 cannot hold is told below
        features = np.array(array, np.float32)
    row = unfinite_row(features)
    if row is not None:
        raise InputError(
            f"{what} must be finite float32 numbers; got nan or inf in row {row}. Look at that row and at what made it."
        )
    if array.dtype.itemsize < 4 or array.dtype == np.float32:
        return features
    sample = np.array(array[:: max(1, len(array) // SAMPLE)], np.float64)
    return np.array(array, np.float64) if wide or needs_bits(torch.from_numpy(sample)) else features
