"""Data: the sets the field uses, by name, and a user's own, from a folder, a table or arrays.

    data = load("digits")                     # embedded; the others from the data folder, or downloaded into it
    data.x_train, data.y_train, data.classes  # numpy arrays; images uint8 with channels last, labels class numbers
    items = read("flowers.csv", id="name", label="not_label")

A named set lies as one npz file in the data folder (`store`). Where it does not, its published files are brought there
(`download`) as the table says (`catalog`) and decoded (`formats`, and `unpickle` where they are pickles).

One's own data is read from `arrays`, `images` or a table: its file is opened (`opening`), its features become numbers
(`columns`) by what each column is. That is found (`finding`) by what its cells hold (`cells`), is one of some `kinds`,
of which free text has a file of its own (`wording`), and is kept for tables to come (`recipe`). All become a `dataset`;
`naysay.read` makes labels of the texts that come with it.
"""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from naysay.datasets import store
from naysay.datasets.arrays import read_arrays
from naysay.datasets.catalog import CATALOG, Entry
from naysay.datasets.columns import read_columns, read_table
from naysay.datasets.dataset import Dataset, Items, faults, from_arrays
from naysay.datasets.download import Source, fetch
from naysay.datasets.images import from_folder
from naysay.errors import InputError, unknown

__all__ = ["CATALOG", "NAMES", "Dataset", "Entry", "Items", "Source"]
__all__ += ["data_folder", "from_folder", "load", "read", "read_arrays", "read_columns", "read_table"]

NAMES = tuple(CATALOG)
data_folder = store.folder


def load(name: str = "digits", data: str | PathLike[str] | None = None) -> Dataset:
    """The set `name` of `NAMES`, from the data folder (`data_folder(data)`), downloaded if it is not there."""
    if name not in CATALOG:
        raise unknown("dataset", name, CATALOG)
    entry = CATALOG[name]
    if entry.embedded and entry.decode:
        return from_arrays(name, {**entry.decode(), "classes": np.array(entry.classes)})
    path = store.folder(data) / f"{name}.npz"
    if not path.exists():
        _make(name, entry, path)
    return store.read(path, name, entry.shape)


def read(path: str | PathLike[str], **columns: Any) -> Items:
    """The items of a folder of images (`from_folder`), `.npy` or `.npz` (`read_arrays`), CSV or Parquet (`read_table`).

    `columns` are that function's keywords: id=, label=, features=, truth=; of a folder labels=, id=, label=, size=.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist. Give a folder of images, or a .npy, .npz, CSV or Parquet file.")
    if path.is_dir():
        return from_folder(path, **columns)
    return read_arrays(path, **columns) if path.suffix.lower() in (".npy", ".npz") else read_table(path, **columns)


def _make(name: str, entry: Entry, path: Path) -> None:
    """Write the npz file of a set from its published files."""
    if entry.decode is None:
        raise InputError(f"{name!r} is not published and cannot be downloaded. Put {name}.npz in {path.parent}.")
    files = [fetch(source, path.parent, name) for source in entry.sources]
    arrays = {**entry.decode(*files), "classes": np.array(entry.classes)}
    for wrong in faults(arrays, entry.shape):
        originals = path.parent / "originals"
        raise InputError(f"the files of {name!r} in {originals} do not fit: {wrong}. Delete them and load it again.")
    store.write(path, arrays)
