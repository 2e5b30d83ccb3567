"""Kept features: one npz file for each key, with a hash of its own content.

A file that is cut short, altered, or another key's, counts for nothing and is made again. The folder may be deleted at
any time.
"""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from naysay.datasets import store
from naysay.datasets.dataset import content_hash
from naysay.errors import InputError

Features = NDArray[np.float32]


def keep(folder: Path, key: Callable[[], str], compute: Callable[[], Features]) -> Features:
    """The features that `folder` holds under the key; where it holds none, those that `compute` gives, which it then
    holds.
    """
    kept = _read(folder, key())
    if kept is None:
        kept = compute()
        # asked again: an encoder may change when it first runs (a counter, a table it keeps), and is from then on what
        # it is after
        _write(folder, key(), kept)
    return kept


def _read(folder: Path, key: str) -> Features | None:
    path = folder / f"{key}.npz"
    if not path.exists():
        return None
    try:
        arrays = store.read_npz(path)
    except InputError:
        arrays = {}
    if set(arrays) != {"features", "hash"} or str(arrays["hash"]) != content_hash({key: arrays["features"]}):
        warnings.warn(f"{path} is not what was written there; its features are computed again.", stacklevel=4)
        return None
    return arrays["features"]


def _write(folder: Path, key: str, features: Features) -> None:
    try:
        store.write(folder / f"{key}.npz", {"features": features, "hash": np.array(content_hash({key: features}))})
    except InputError as error:  # the features are there all the same, and may have taken hours
        warnings.warn(
            f"the features cannot be kept in {folder} ({error.__cause__}). Give another folder with cache=.",
            stacklevel=4,
        )
