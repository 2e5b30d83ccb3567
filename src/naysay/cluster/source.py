"""The input: files that each hold some of the rows, in the order of the list, and where their labels are.

A shard is a `.npy` of features (n_i, d), or a Parquet file with a column of lists. Row numbers run through all shards:
the first row of the second shard follows the last of the first. Only headers are read here; what the rows hold is
looked at by `prepare`, shard by shard.
"""

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from naysay.datasets.arrays import read_npy
from naysay.datasets.columns import PARQUET, header, is_list
from naysay.errors import InputError, unknown

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
        """What the shard is called in messages and in the output."""
        return Path(self.path).name

    @property
    def stem(self) -> str:
        """Its name without the ending."""
        return Path(self.path).stem


def find_shards(
    shards: Paths,
    labels: Paths | None = None,
    *,
    features: str | None = None,
    label: Sequence[str] = (),
    id: str | None = None,
) -> list[Shard]:
    """All shards, checked as far as their headers tell.

    shards, labels: a folder, a pattern such as "part-*.npy", a file, or a list of files. Labels are matched by name
    where they come from a folder or a pattern, by position where they are a list. features, label, id: columns of
    Parquet shards.
    """
    paths = list_files(shards, "shards", ENDINGS)
    kinds = {path.suffix.lower() in PARQUET for path in paths}
    if len(kinds) > 1:
        way_out = "Name one kind with a pattern such as 'part-*.npy'."
        raise InputError(f"the shards must all be .npy or all be Parquet; got both. {way_out}")
    stems = [path.stem for path in paths]
    twice = next((stem for stem in stems if stems.count(stem) > 1), None)
    if twice is not None:
        raise InputError(
            f"every shard must have a name of its own, which its output gets; got {twice!r} twice. Rename one."
        )
    parquet = kinds == {True}
    if not parquet and (features or label or id):
        raise InputError(
            "columns of features, labels or ids can be named in Parquet shards only; got .npy shards. Leave them out."
        )
    if (labels is None) == (not label):
        raise InputError(
            "labels must be given once, as the .npy files that match the shards (labels=) or as columns of Parquet "
            f"shards (label=); got {'neither' if labels is None else 'both'}."
        )
    matching = [None] * len(paths) if labels is None else _match(paths, labels)
    found: list[Shard] = []
    for path, its_labels in zip(paths, matching, strict=True):
        seen = _look_at_parquet(path, features, label, id) if parquet else (*_look_at_npy(path), None, False)
        rows, width, column, soft = seen
        first = found[-1].first + found[-1].rows if found else 0
        found.append(Shard(fspath(path), first, rows, width, column, tuple(label), soft, its_labels, id))
        if width != found[0].width:
            lengths = f"{found[0].name} has {found[0].width} columns and {path.name} has {width}"
            raise InputError(f"all shards must have rows of one length; {lengths}.")
    return found


def list_files(given: Paths, what: str, endings: Sequence[str]) -> list[Path]:
    """The files of a folder or a pattern, sorted by name, or those given: at least one, all there, with one ending."""
    if isinstance(given, str | PathLike):
        place = Path(given)
        if place.is_dir():
            shown = (path for path in place.iterdir() if not path.name.startswith("."))
            paths = sorted(path for path in shown if path.suffix.lower() in endings)
        else:
            paths = [place] if place.exists() else sorted(map(Path, glob.glob(fspath(given))))
    else:
        paths = [Path(path) for path in given]
    if not paths:
        where = fspath(given) if isinstance(given, str | PathLike) else "an empty list"
        raise InputError(f"there are no {what} in {where}: no {', '.join(endings)}. Give a folder, a pattern or files.")
    for path in paths:
        if not path.is_file() or path.suffix.lower() not in endings:
            raise InputError(f"{what} must be {', '.join(endings)} files that are there; got {path}.")
    return [path.absolute() for path in paths]


def _match(paths: Sequence[Path], labels: Paths) -> list[str]:
    files = list_files(labels, "labels", (".npy",))
    if isinstance(labels, str | PathLike):
        by_stem = {path.stem: path for path in files}
        missing = next((path for path in paths if path.stem not in by_stem), None)
        if missing is not None:
            raise InputError(
                f"{missing.name} has no labels: there is no {missing.stem}.npy among the {len(files)} label files."
            )
        files = [by_stem[path.stem] for path in paths]
    elif len(files) != len(paths):
        raise InputError(f"labels must be one file for each of the {len(paths)} shards; got {len(files)}.")
    return [fspath(path) for path in files]


def _look_at_npy(path: Path) -> tuple[int, int]:
    array = read_npy(path)
    if array.ndim != 2 or array.dtype.kind not in "iufb" or array.shape[1] == 0:
        raise InputError(f"{path} must hold an (n, d) matrix of numbers; got {array.dtype} of shape {array.shape}.")
    _refuse_empty(path, len(array))
    return len(array), int(array.shape[1])


def _look_at_parquet(
    path: Path, features: str | None, label: Sequence[str], id: str | None
) -> tuple[int, int, str, bool]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = header(path)
    for name in (features, id, *label):
        if name is not None and name not in columns:
            raise unknown(f"column of {path}", name, columns)
    with pq.ParquetFile(path) as file:
        kinds = {field.name: field.type for field in file.schema_arrow}
        lists = [name for name, kind in kinds.items() if is_list(kind) and name not in label]
        soft = len(label) == 1 and is_list(kinds[label[0]]) and pa.types.is_floating(kinds[label[0]].value_type)
        column = features or (lists[0] if len(lists) == 1 else None)
        if column is None:
            it_has = ", ".join(lists) or "none"
            raise InputError(f"{path} must have one column of lists, or the features named; it has {it_has}.")
        if column not in lists:
            raise InputError(f"{path} must hold a list of numbers per row in column {column!r}; got {kinds[column]}.")
        _refuse_empty(path, file.metadata.num_rows)
        first = next(file.iter_batches(1, columns=[column])).column(0)[0].as_py()
    if not first:
        got = f"{first} in the first row"
        raise InputError(f"{path} must hold a list of numbers per row in column {column!r}; got {got}.")
    return file.metadata.num_rows, len(first), column, soft


def _refuse_empty(path: Path, rows: int) -> None:
    if rows == 0:
        raise InputError(f"{path} has no rows. Leave it out of the shards.")
