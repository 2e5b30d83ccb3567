"""Files that a user already has, checked and put into the data folder: a ready .npz, or the published originals of a
known set.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from naysay import datasets
from naysay.datasets import CATALOG, Source, store
from naysay.datasets.download import sha256
from naysay.errors import InputError
from naysay.files import replacing


def import_npz(name: str, file: Path, folder: Path | None, force: bool) -> str:
    """Check an .npz in the data folder's layout and store it as the set `name`; what to tell the user."""
    if CATALOG[name].decode and not CATALOG[name].sources:
        raise InputError(f"{name} is embedded and needs no file.")
    if not file.is_file():
        raise InputError(f"{file} is not a file. Give the path of an .npz.")
    data = store.read(file, name, CATALOG[name].shape)
    path = store.folder(folder) / f"{name}.npz"
    _refuse(path, force)
    arrays = {key: getattr(data, key) for key in ("x_train", "y_train", "x_test", "y_test", "classes")}
    store.write(path, arrays if data.comp_train is None else {**arrays, "comp_train": data.comp_train})
    return f"{data}\n{path}"


def import_originals(name: str, files: Sequence[Path], folder: Path | None, force: bool) -> str:
    """Copy published files of the set `name` into originals/ and decode it once all are there; what to tell the user."""
    sources = {Path(source.file).name: source for source in CATALOG[name].sources}
    place = store.folder(folder)
    for file in files:
        if file.name not in sources:
            known = ", ".join(sources) or "none, it is embedded or made elsewhere"
            raise InputError(
                f"{file.name} is not a published file of {name}; those are {known}. An .npz is imported alone."
            )
        if not file.is_file():
            raise InputError(f"{file} is not a file. Give the path of the published {file.name}.")
        total = sources[file.name].sha256
        if total and sha256(file) != total:
            raise InputError(f"{file} is not the published {file.name}: its SHA-256 is not {total}. Get it again.")
    path = place / f"{name}.npz"
    _refuse(path, force)
    for file in files:
        with replacing(
            place / "originals" / sources[file.name].file, "Choose another data folder with --data."
        ) as unfinished:
            shutil.copyfile(file, unfinished)
    missing = [source.file for source in sources.values() if not _stored(source, place)]
    if missing:
        return f"stored in {place / 'originals'}; {name} still needs {', '.join(missing)}: import them too, or run naysay data get {name}"
    path.unlink(missing_ok=True)
    return f"{datasets.load(name, folder)}\n{path}"


def _stored(source: Source, place: Path) -> bool:
    return (place / "originals" / source.file).exists()


def _refuse(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise InputError(f"{path} exists already. Pass --force to replace it.")
