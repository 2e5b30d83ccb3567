"""The files of a run: the input, in shards, and the work folder, in which what is finished stays finished.

A shard is a `.npy` of features (n_i, d), or a Parquet file with a column of lists. Row numbers run through all shards:
the first row of the second shard follows the last of the first. Only headers are read here; what the rows hold is
looked at by `prepare`, shard by shard.

The work folder lies in the output folder as `.work` until all is done, so that a run that was killed goes on where it
was. Every file in it is whole from the moment it has its name; a stage skips what is there. The settings and the shards
(name, size, time of change) are written down first: another run may not go on with this one's files. All workers must
see the folder, and the shards, under the same path: on several machines that is a shared file system.
"""

import glob
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike, fspath, stat
from pathlib import Path
from typing import Any

import numpy as np

from naysay import files
from naysay.datasets.arrays import read_npy
from naysay.datasets.cells import is_list
from naysay.datasets.opening import PARQUET, header, require
from naysay.errors import InputError, intact

RESULT = "augment.json"
ENDINGS = (".npy", *PARQUET)
Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


@dataclass(frozen=True)
class Shard:
    """One file: its rows are `first` to `first + rows - 1` of the whole, `width` numbers each.

    column: of the features, in a Parquet file. label: its columns of labels; soft: that is one, of rows of `comp`.
    labels: or the `.npy` that has them. id: the column of ids.
    """

    path: str
    first: int
    rows: int
    width: int
    column: str | None = None
    label: tuple[str, ...] = ()
    soft: bool = False
    labels: str | None = None
    id: str | None = None

    @property
    def name(self) -> str:
        return Path(self.path).name

    def file(self, path: str | Path) -> "File":
        """The shard's rows where another file holds them."""
        return str(path), self.first, self.rows


File = tuple[str, int, int]  # a file, the number of its first row in the whole, and how many rows it has
Files = Sequence[File]


def find_shards(
    shards: Paths,
    labels: Paths | None = None,
    *,
    features: str | None = None,
    label: Sequence[str] = (),
    id: str | None = None,
) -> list[Shard]:
    """All shards, checked as far as their headers tell.

    shards, labels: a folder, a pattern such as "part-*.npy", a file, or a list of files. Labels match by position where
    they are a list, else by name. features, label, id: columns of Parquet shards.
    """
    paths = list_files(shards, "shards", ENDINGS)
    kinds = {path.suffix.lower() in PARQUET for path in paths}
    if len(kinds) > 1:
        way_out = "Name one kind with a pattern such as 'part-*.npy'."
        raise InputError(f"the shards must all be .npy or all be Parquet; got both. {way_out}")
    stems = [path.stem for path in paths]
    twice = next((stem for stem in stems if stems.count(stem) > 1), None)
    if twice is not None:
        got = f"got {twice!r} twice"
        raise InputError(f"every shard must have a name of its own, which its output gets; {got}. Rename one.")
    parquet = kinds == {True}
    if not parquet and (features or label or id):
        named = "columns of features, labels or ids can be named in Parquet shards only"
        raise InputError(f"{named}; got .npy shards. Leave them out.")
    if (labels is None) == (not label):
        ways = "as the .npy files that match the shards (labels=) or as columns of Parquet shards (label=)"
        raise InputError(f"labels must be given once, {ways}; got {'neither' if labels is None else 'both'}.")
    matching = [None] * len(paths) if labels is None else _match(paths, labels)
    found: list[Shard] = []
    for path, its_labels in zip(paths, matching, strict=True):
        seen = _look_at_parquet(path, features, label, id) if parquet else _look_at_npy(path)
        first = found[-1].first + found[-1].rows if found else 0
        found.append(Shard(fspath(path), first, **seen, label=tuple(label), labels=its_labels, id=id))
        if found[-1].width != found[0].width:
            lengths = f"{found[0].name} has {found[0].width} columns and {path.name} has {found[-1].width}"
            raise InputError(f"all shards must have rows of one length; {lengths}.")
    return found


def list_files(given: Paths, what: str, endings: Sequence[str]) -> list[Path]:
    """The files of a folder or a pattern, sorted by name, or those given: at least one, all there, with one ending."""
    where = fspath(given) if isinstance(given, str | PathLike) else "an empty list"
    if not isinstance(given, str | PathLike):
        paths = [Path(path) for path in given]
    elif Path(given).is_dir():
        shown = (path for path in Path(given).iterdir() if not path.name.startswith("."))
        paths = sorted(path for path in shown if path.suffix.lower() in endings)
    else:
        paths = [Path(given)] if Path(given).exists() else sorted(map(Path, glob.glob(where)))
    if not paths:
        raise InputError(f"there are no {what} in {where}: no {', '.join(endings)}. Give a folder, a pattern or files.")
    for path in paths:
        if not path.is_file() or path.suffix.lower() not in endings:
            raise InputError(f"{what} must be {', '.join(endings)} files that are there; got {path}.")
    return [path.absolute() for path in paths]


def _match(paths: Sequence[Path], labels: Paths) -> list[str]:
    files = list_files(labels, "labels", (".npy",))
    if isinstance(labels, str | PathLike):
        by_stem = {path.stem: path for path in files}
        for path in paths:
            if path.stem not in by_stem:
                among = f"there is no {path.stem}.npy among the {len(files)} label files"
                raise InputError(f"{path.name} has no labels: {among}.")
        files = [by_stem[path.stem] for path in paths]
    elif len(files) != len(paths):
        raise InputError(f"labels must be one file for each of the {len(paths)} shards; got {len(files)}.")
    return [fspath(path) for path in files]


def _look_at_npy(path: Path) -> dict[str, Any]:
    array = read_npy(path)
    if array.ndim != 2 or array.dtype.kind not in "iufb" or array.shape[1] == 0:
        raise InputError(f"{path} must hold an (n, d) matrix of numbers; got {array.dtype} of shape {array.shape}.")
    _refuse_empty(path, len(array))
    return {"rows": len(array), "width": int(array.shape[1])}


def _look_at_parquet(path: Path, features: str | None, label: Sequence[str], id: str | None) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = header(path)
    require(path, columns, (features, id, *label))
    with pq.ParquetFile(path) as file:
        kinds = {field.name: field.type for field in file.schema_arrow}
        lists = [name for name, kind in kinds.items() if is_list(kind) and name not in label]
        soft = len(label) == 1 and is_list(kinds[label[0]]) and pa.types.is_floating(kinds[label[0]].value_type)
        column = features or (lists[0] if len(lists) == 1 else None)
        if column is None:
            it_has = ", ".join(lists) or "none"
            raise InputError(f"{path} must have one column of lists, or the features named; it has {it_has}.")
        must = f"{path} must hold a list of numbers per row in column {column!r}"
        if column not in lists:
            raise InputError(f"{must}; got {kinds[column]}.")
        _refuse_empty(path, file.metadata.num_rows)
        first = next(file.iter_batches(1, columns=[column])).column(0)[0].as_py()
    if not first:
        raise InputError(f"{must}; got {first} in the first row.")
    return {"rows": file.metadata.num_rows, "width": len(first), "column": column, "soft": soft}


def _refuse_empty(path: Path, rows: int) -> None:
    if rows == 0:
        raise InputError(f"{path} has no rows. Leave it out of the shards.")


@dataclass(frozen=True)
class Work:
    """The paths of a run's intermediate files.

    rows: of a shard as float32, where the shard itself will not do. comp: its labels; when they are there, the shard
    has been looked at. index: the rows of a group of blocks in lists. graph: a block's neighbours. labels: of a part of
    the rows after so many rounds. named: anything of which there is one.
    """

    folder: Path

    def rows(self, shard: int) -> Path:
        return self.folder / "rows" / f"{shard}.npy"

    def comp(self, shard: int) -> Path:
        return self.folder / "comp" / f"{shard}.npy"

    def index(self, group: int) -> Path:
        return self.folder / "index" / f"{group}.faiss"

    def graph(self, block: int) -> Path:
        return self.folder / "graph" / f"{block}.safetensors"

    def labels(self, done: int, part: int) -> Path:
        return self.folder / "labels" / f"{done}" / f"{part}.npy"

    def named(self, name: str) -> Path:
        return self.folder / name

    def read(self, name: str) -> Any:
        """The JSON of that name, None where there is none."""
        path = self.named(name)
        with intact(path, "Remove the folder it is in to begin anew."):
            return json.loads(path.read_text()) if path.exists() else None

    def write(self, name: str, content: Any) -> None:
        """Keep `content` as the JSON of that name."""
        files.replace(self.named(name), json.dumps(content, indent=1).encode())


def open_work(out: Path, shards: Sequence[Shard], settings: Mapping[str, Any], *, force: bool) -> Work:
    """The work folder of this run in `out`: new, or as an interrupted run with the same shards and settings left it."""
    work = Work(out / ".work")
    asked = {"settings": dict(settings), "shards": [asdict(shard) | _version(shard) for shard in shards]}
    asked = json.loads(json.dumps(asked))  # as it will be read again
    finished, before = (out / RESULT).exists(), work.read("run.json")
    if finished and not force:
        raise InputError(f"{out} holds a finished result. Choose another folder, or pass force=True to replace it.")
    if before is not None and before != asked:
        if not force:
            way_out = "Run it as it was to go on, choose another folder, or pass force=True to begin anew."
            raise InputError(f"{out} holds an unfinished run with other {_difference(before, asked)}. {way_out}")
        shutil.rmtree(work.folder)
    elif before is None and out.exists() and any(out.iterdir()) and not finished:
        raise InputError(f"{out} holds other files. Choose a new or empty folder.")
    if work.read("run.json") is None:
        work.write("run.json", asked)
    return work


def _version(shard: Shard) -> dict[str, list[int]]:
    seen = [stat(path) for path in (shard.path, shard.labels) if path is not None]
    return {"bytes": [file.st_size for file in seen], "changed_ns": [file.st_mtime_ns for file in seen]}


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if before.get("shards") != now["shards"]:
        return "shards"
    old, new = before["settings"], now["settings"]
    return f"settings ({', '.join(sorted(name for name in {*old, *new} if old.get(name) != new.get(name)))})"


def save(path: Path, array: Any) -> None:
    with files.replacing(path) as unfinished:
        np.save(unfinished, array)
