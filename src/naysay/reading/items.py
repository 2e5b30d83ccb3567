"""The items that a source names: a known set, arrays, a folder of images, or the rows of a table."""

import fnmatch
import warnings
import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from naysay import datasets
from naysay.datasets import Dataset, Items, store
from naysay.datasets.columns import header
from naysay.datasets.dataset import REQUIRED
from naysay.errors import InputError

ARRAYS = (".npy", ".npz")


def known_set(
    source: str | PathLike[str], data: str | PathLike[str] | None = None, *, whole: bool = True
) -> Dataset | None:
    """The known set of this name, or the npz file in the data folder's layout; None where it is something else.

    data: the data folder. whole: whether such a file is meant as a whole, and not some of its arrays.
    """
    if source in datasets.CATALOG:
        return datasets.load(str(source), data)
    path = Path(source)
    if not path.exists():
        known = ", ".join(datasets.CATALOG)
        raise InputError(f"{source} is neither a file or folder nor a known set ({known}). See: naysay data list")
    whole = whole and path.suffix.lower() == ".npz" and set(REQUIRED) <= _arrays(path)
    return store.read(path, path.stem) if whole else None


def _arrays(path: Path) -> set[str]:
    """The names of the arrays in an npz file; none where it is no such file, which its reader will say better."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return set()


def only_one(argument: str, names: Sequence[str]) -> str | None:
    """The one name, or none, that was given for an argument that may have several elsewhere."""
    if len(names) > 1:
        raise InputError(f"only one {argument}= can be named here; got {', '.join(names)}.")
    return names[0] if names else None


def own_items(
    path: Path,
    *,
    id: str | None,
    label: Sequence[str],
    features: Sequence[str],
    ignore: Sequence[str],
    truth: str | None,
) -> tuple[Items, dict[str, Any]]:
    """A user's own items, and where they come from."""
    origin: dict[str, Any] = {"name": path.stem, "path": str(path)}
    if path.is_dir():
        return datasets.from_folder(path), origin
    if path.suffix.lower() in ARRAYS:
        named, array = only_one("label", label), only_one("features", features)
        items = datasets.read_arrays(path, id=id, label=named, features=array, truth=truth)
        return items, {**origin, "id": id, "array": array}
    columns = header(path)
    key = id or _id_column(columns, {*label, *features, *ignore, truth})
    picked = _pick_columns(path, columns, features, ignore, taken={key, *label, truth})
    # one column that was named may hold whole embeddings; all others are numbers, which the reader finds out by itself
    lists = len(features) > 0 and len(picked) == 1
    numbers = picked[0] if lists else picked if features or ignore else None
    items = datasets.read_table(path, id=key, label=label or None, features=numbers, truth=truth)
    return items, {**origin, "id": key, "columns": picked, "lists": lists or items.x.shape[1] != len(picked)}


def _pick_columns(
    path: Path, columns: Sequence[str], features: Sequence[str], ignore: Sequence[str], taken: set[str | None]
) -> list[str]:
    """The feature columns: `features` (names, several with commas, or patterns), or all not `taken`, less `ignore`."""
    for name in ignore:
        if not fnmatch.filter(columns, name):
            raise InputError(f"ignore={name!r} matches no column of {path}; its columns are {', '.join(columns[:20])}.")
    left_out = taken.union(*(fnmatch.filter(columns, name) for name in ignore))
    if not features:
        return [name for name in columns if name not in left_out]
    picked: list[str] = []
    for given in features:
        for name in [given] if given in columns else given.split(","):
            matching = [column for column in fnmatch.filter(columns, name) if column not in left_out]
            found = [name] if name in columns or not matching else matching
            picked += [column for column in found if column not in picked]
    return picked


def _id_column(columns: Sequence[str], named: set[str | None]) -> str | None:
    """A column that is called id, if the user named none: as a feature it would only do harm."""
    found = next((name for name in columns if name.strip().lower() == "id" and name not in named), None)
    if found is not None:
        warnings.warn(f"the column {found!r} is taken for the items' ids; pass id= to name another", stacklevel=4)
    return found
