"""The items that DATA names: a known set, arrays, a folder of images, or the rows of a table."""

import fnmatch
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from naysay import datasets
from naysay.cli.output import note
from naysay.cli.reading import Reading
from naysay.datasets import Dataset, Items, store
from naysay.datasets.columns import header
from naysay.datasets.dataset import REQUIRED
from naysay.errors import InputError


def dataset_of(reading: Reading) -> Dataset | None:
    """The known set, or the npz file in the data folder's layout, that DATA names; None where it is something else."""
    if reading.data in datasets.NAMES:
        return datasets.load(reading.data, reading.folder)
    path = Path(reading.data)
    if not path.exists():
        raise InputError(
            f"{reading.data} is neither a file or folder nor a known set ({', '.join(datasets.NAMES)}). See: naysay "
            "data list"
        )
    whole = (
        path.suffix.lower() == ".npz"
        and not (reading.features or reading.label or reading.id)
        and set(REQUIRED) <= _arrays(path)
    )
    return store.read(path, path.stem) if whole else None


def _arrays(path: Path) -> set[str]:
    """The names of the arrays in an npz file; none where it is no such file, which its reader will say better."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return set()


def own_items(reading: Reading) -> tuple[Items, dict[str, Any]]:
    """A user's own items, and where they come from."""
    path = Path(reading.data)
    origin: dict[str, Any] = {"name": path.stem, "path": str(path)}
    if path.is_dir():
        return datasets.from_folder(path), origin
    label = [] if reading.labels is not None else list(reading.label)
    if path.suffix.lower() in (".npy", ".npz"):
        named, array = reading.only("label") if label else None, reading.only("features")
        items = datasets.read_arrays(path, id=reading.id, label=named, features=array, truth=reading.truth)
        return items, {**origin, "id": reading.id, "array": array}
    columns = header(path)
    key = reading.id or _id_column(columns, reading)
    taken = [name for name in (key, *label, reading.truth) if name]
    picked = pick_columns(path, columns, reading, taken)
    # one column that was named may hold whole embeddings; all others are numbers, which the reader finds out by itself
    lists = len(reading.features) > 0 and len(picked) == 1
    features = picked[0] if lists else picked if reading.features or reading.ignore else None
    items = datasets.read_table(path, id=key, label=label or None, features=features, truth=reading.truth)
    return items, {**origin, "id": key, "columns": picked, "lists": lists or items.x.shape[1] != len(picked)}


def pick_columns(path: Path, columns: Sequence[str], reading: Reading, taken: Sequence[str]) -> list[str]:
    """The feature columns: those of --features (names, several with commas, or patterns such as 'e*'), or all others,
    less --ignore.
    """
    for name in reading.ignore:
        if not fnmatch.filter(columns, name):
            raise InputError(
                f"--ignore {name!r} matches no column of {path}; its columns are {', '.join(columns[:20])}."
            )
    left_out = {*taken, *(column for name in reading.ignore for column in fnmatch.filter(columns, name))}
    if not reading.features:
        return [name for name in columns if name not in left_out]
    picked: list[str] = []
    for given in reading.features:
        for name in [given] if given in columns else given.split(","):
            found = (
                [name]
                if name in columns
                else [column for column in fnmatch.filter(columns, name) if column not in left_out]
            )
            picked += [column for column in found or [name] if column not in picked]
    return picked


def _id_column(columns: Sequence[str], reading: Reading) -> str | None:
    """A column that is called id, if the user named none: as a feature it would only do harm."""
    named = {*reading.label, *reading.features, *reading.ignore, reading.truth}
    found = next((name for name in columns if name.strip().lower() == "id" and name not in named), None)
    if found is not None:
        note(f"note: the column {found!r} is taken for the items' ids; pass --id to name another")
    return found
