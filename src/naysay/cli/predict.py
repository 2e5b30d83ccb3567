"""`naysay predict`: classes and probabilities of new items, from a run folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from naysay.cli import options as o
from naysay.cli.output import TABLES, TableWriter, new_file, note, say_json
from naysay.errors import InputError, unknown

if TYPE_CHECKING:
    from naysay.runs import Run

Block = tuple[list[str], Any]  # ids and rows


def predict(
    run: o.Run,
    data: o.Data,
    *,
    out: Annotated[Path, o.output("--out", "FILE", "A .csv or .parquet file to write.")],
    id: Annotated[str | None, o.items("--id", "COLUMN", "The column of item ids; else the one used in fit.")] = None,
    folder: o.Folder = None,
    force: o.Force = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Predict the class of each item, with the probability of every class.

    Needs the run folder and the data, nothing else. Columns are found by name,
    so their order may differ and others may be there. Of a known set, the test
    items are predicted. The output has the columns id, prediction, and p_CLASS
    for every class. In CSV, text that a spreadsheet would run as a formula gets
    an apostrophe in front; Parquet keeps it as it is.

    [bold]Examples[/bold]

      naysay predict RUN data.csv --out predictions.csv
      naysay predict RUN more.parquet --id key --out predictions.parquet
    """
    from naysay.runs import Run

    count = 0
    with new_file(out, force, TABLES) as unfinished:
        trained = Run.load(run)
        with TableWriter(unfinished, out) as table:
            for ids, x in _blocks(trained, data, id, folder, quiet):
                numbers, p = trained.predict(x)
                columns = {"id": ids, "prediction": [trained.classes[k] for k in numbers.tolist()]}
                table.write(columns | {f"p_{name}": p[:, k].numpy() for k, name in enumerate(trained.classes)})
                count += len(ids)
    if json:
        say_json({"predictions": str(out), "rows": count, "classes": list(trained.classes)})
    elif not quiet:
        print(f"{count:,} predictions: {out}")


def _blocks(run: "Run", data: str, id: str | None, folder: Path | None, quiet: bool) -> Iterator[Block]:
    """The items of DATA in blocks, shaped as the run's were."""
    from naysay import datasets
    from naysay.reading import known_set

    wanted, path = run.about["input"], Path(data)
    if (known := known_set(data, folder, whole=id is None)) is not None:
        yield _checked(run, [str(i) for i in range(len(known.x_test))], known.x_test, data)
    elif path.is_dir():
        if wanted["kind"] != "images":
            raise InputError(
                f"{data} is a folder of images, and the run was made from a table of {wanted['shape'][0]} columns."
            )
        items = datasets.from_folder(path, size=(wanted["shape"][0], wanted["shape"][1]))
        yield _checked(run, items.ids.tolist(), _coloured(items.x, wanted["shape"]), data)
    elif path.suffix.lower() in (".npy", ".npz"):
        items = datasets.read_arrays(path, id=id or wanted["id"], features=wanted["array"])
        yield _checked(run, items.ids.tolist(), items.x, data)
    else:
        yield from _table(run, path, id, quiet)


def _table(run: "Run", path: Path, id: str | None, quiet: bool) -> Iterator[Block]:
    import numpy as np

    from naysay.datasets.columns import header, read_blocks

    wanted, columns = run.about["input"], header(path)
    if wanted["kind"] != "table" or not wanted["columns"]:
        made_from = "images" if wanted["kind"] == "images" else "arrays without names"
        raise InputError(f"{path} is a table, and the run was made from {made_from}.")
    features = wanted["columns"]
    missing = [name for name in features if name not in columns]
    if missing:
        raise InputError(
            f"{path} lacks the columns {_few(list(map(repr, missing)))}, which the model was trained on. Add them."
        )
    if id is not None and id not in columns:
        raise unknown(f"column of {path}", id, columns)
    key = id or (wanted["id"] if wanted["id"] in columns else None)
    if not quiet:
        if key is None and wanted["id"]:
            note(f"note: {path} has no column {wanted['id']!r}, so ids are row numbers; pass --id to name one")
        if others := [name for name in columns if name not in features and name != key]:
            note(f"note: columns that are not used: {_few(others)}")
    seen: set[Any] = set()
    start = 0
    for _, texts, values in read_blocks(path, [] if key is None else [key], features, lists=wanted["lists"]):
        x = np.concatenate(values, 1)
        ids = list(map(str, range(start, start + len(x)))) if key is None else texts[key].tolist()
        _refuse_twice(path, key, ids, seen)
        start += len(x)
        yield _checked(run, ids, x, str(path))
    if not start:
        raise InputError(f"{path} has a header but no rows. Give one row per item.")


def _few(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _refuse_twice(path: Path, key: str | None, ids: list[Any], seen: set[Any]) -> None:
    for name in ids:
        if not isinstance(name, str) or name in seen:
            what = f"{name!r} more than once" if isinstance(name, str) else "an empty cell or a list"
            raise InputError(f"{path} has {what} in its id column {key!r}. Give every item its own id.")
        seen.add(name)


def _checked(run: "Run", ids: list[str], x: Any, source: str) -> Block:
    got, wanted = tuple(x.shape[1:]), tuple(run.about["input"]["shape"])
    if got != wanted:
        raise InputError(
            f"{source} holds rows of shape {got}, and the model was trained on {wanted}. Give data like that of fit."
        )
    return ids, x


def _coloured(x: Any, shape: list[int]) -> Any:
    """Grey images as red, green and blue where the run's images were coloured."""
    import numpy as np

    return np.repeat(x[..., None], 3, axis=3) if x.ndim == 3 and len(shape) == 3 else x
