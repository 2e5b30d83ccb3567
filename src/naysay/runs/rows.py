"""The rows of a source as a run's model takes them: of known sets, folders, arrays, and tables by name of column."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from naysay import datasets
from naysay.datasets.columns import apply_blocks, header, read_blocks
from naysay.datasets.recipe import unlike
from naysay.errors import InputError, unknown
from naysay.reading import known_set
from naysay.words import few

if TYPE_CHECKING:
    from naysay.runs.folder import Run

Block = tuple[list[str], Any]  # ids and rows
Tell = Callable[[str], None]


def blocks(run: "Run", source: str, id: str | None, folder: Path | None, tell: Tell) -> Iterator[Block]:
    """The items of a source in blocks, of the run's shape. tell: gets what is odd about them, a line each."""
    wanted = tuple(run.about["input"]["shape"])
    for ids, x in _blocks(run, source, id, folder, tell):
        if x.shape[1:] != wanted:
            got = f"holds rows of shape {x.shape[1:]}, and the model was trained on {wanted}"
            raise InputError(f"{source} {got}. Give data like that of fit.")
        yield ids, x


def _blocks(run: "Run", source: str, id: str | None, folder: Path | None, tell: Tell) -> Iterator[Block]:
    wanted, path = run.about["input"], Path(source)
    if id is not None and (source in datasets.CATALOG or path.is_dir() or path.suffix.lower() == ".npy"):
        raise InputError(f'{source} has no columns, so that id="{id}" would change nothing. Leave it out.')
    if (known := known_set(source, folder, whole=id is None)) is not None:
        yield [str(i) for i in range(len(known.x_test))], known.x_test
    elif path.is_dir():
        if wanted["kind"] != "images":
            made_from = f"a table of {wanted['shape'][0]} columns"
            raise InputError(f"{source} is a folder of images, and the run was made from {made_from}.")
        items = datasets.from_folder(path, size=tuple(wanted["shape"][:2]))
        coloured = items.x.ndim == 3 and len(wanted["shape"]) == 3  # the run's images were, and all of these are grey
        yield items.ids.tolist(), np.repeat(items.x[..., None], 3, axis=3) if coloured else items.x
    elif path.suffix.lower() in (".npy", ".npz"):
        items = datasets.read_arrays(path, id=id or wanted["id"], features=wanted["array"])
        yield items.ids.tolist(), items.x
    else:
        yield from _table(run, path, id, tell)


def _table(run: "Run", path: Path, id: str | None, tell: Tell) -> Iterator[Block]:
    wanted, columns = run.about["input"], header(path)
    if wanted["kind"] != "table" or not wanted["columns"]:
        made_from = "images" if wanted["kind"] == "images" else "arrays without names"
        raise InputError(f"{path} is a table, and the run was made from {made_from}.")
    features = wanted["columns"]
    missing = [name for name in features if name not in columns]
    if missing:
        named = few(map(repr, missing), 5)
        raise InputError(f"{path} lacks the columns {named}, which the model was trained on. Add them.")
    if id is not None and id not in columns:
        raise unknown(f"column of {path}", id, columns)
    key = id or (wanted["id"] if wanted["id"] in columns else None)
    if key is None and wanted["id"]:
        tell(f"{path} has no column {wanted['id']!r}, so ids are row numbers; pass id= to name one")
    if others := [name for name in columns if name not in features and name != key]:
        tell(f"columns that are not used: {few(others, 5)}")
    seen: set[str] = set()
    for texts, x in _features(run, path, [] if key is None else [key], tell):
        start = len(seen)
        ids = list(map(str, range(start, start + len(x)))) if key is None else texts[key].tolist()
        for name in ids:
            if not isinstance(name, str) or name in seen:
                what = f"{name!r} more than once" if isinstance(name, str) else "an empty cell or a list"
                raise InputError(f"{path} has {what} in its id column {key!r}. Give every item its own id.")
            seen.add(name)
        yield ids, x
    if not seen:
        raise InputError(f"{path} has a header but no rows. Give one row per item.")


def _features(run: "Run", path: Path, text: list[str], tell: Tell) -> Iterator[tuple[dict[str, Any], Any]]:
    """Block after block of the table: its columns of text, and its features as the run's recipe makes them."""
    wanted = run.about["input"]
    if run.columns is None:  # a run of before: all columns are numbers, or one of lists
        for _, texts, values in read_blocks(path, text, wanted["columns"], lists=wanted["lists"]):
            yield texts, np.concatenate(values, 1)
        return
    strange: dict[str, dict[str, int]] = {}
    yield from apply_blocks(path, text, run.columns, strange)
    if strange:
        tell(f"unlike the training table: {unlike(run.columns, strange)}")
