"""`naysay predict`: classes and probabilities of new items, from a run folder."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from naysay.cli import options as o
from naysay.cli.output import TABLES, new_file, note, refuse_non_text, say_json, write_table
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
    flips: Annotated[
        bool, o.items("--flips", None, "Average each image with its mirror image; twice the time.")
    ] = False,
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

    with new_file(out, force, TABLES) as unfinished:
        trained = Run.load(run)
        if flips:
            trained = replace(trained, predictor=replace(trained.predictor, flips=True))
        count = write_table(unfinished, out, _predicted(trained, data, _blocks(trained, data, id, folder, quiet)))
    if json:
        say_json({"predictions": str(out), "rows": count, "classes": list(trained.classes)})
    elif not quiet:
        print(f"{count:,} predictions: {out}")


def _predicted(run: "Run", source: str, blocks: Iterator[Block]) -> Iterator[dict[str, Any]]:
    """The columns of the output, for each block of items; rows of another shape than the run's are refused."""
    wanted = tuple(run.about["input"]["shape"])
    for ids, x in blocks:
        if x.shape[1:] != wanted:
            got = f"holds rows of shape {x.shape[1:]}, and the model was trained on {wanted}"
            raise InputError(f"{source} {got}. Give data like that of fit.")
        refuse_non_text(ids)
        numbers, p = run.predict(x, ids)
        columns = {"id": ids, "prediction": [run.classes[k] for k in numbers.tolist()]}
        yield columns | {f"p_{name}": p[:, k].numpy() for k, name in enumerate(run.classes)}


def _blocks(run: "Run", data: str, id: str | None, folder: Path | None, quiet: bool) -> Iterator[Block]:
    """The items of DATA in blocks."""
    import numpy as np

    from naysay import datasets
    from naysay.reading import known_set

    wanted, path = run.about["input"], Path(data)
    if (known := known_set(data, folder, whole=id is None)) is not None:
        yield [str(i) for i in range(len(known.x_test))], known.x_test
    elif path.is_dir():
        if wanted["kind"] != "images":
            made_from = f"a table of {wanted['shape'][0]} columns"
            raise InputError(f"{data} is a folder of images, and the run was made from {made_from}.")
        items = datasets.from_folder(path, size=tuple(wanted["shape"][:2]))
        coloured = items.x.ndim == 3 and len(wanted["shape"]) == 3  # the run's images were, and all of these are grey
        yield items.ids.tolist(), np.repeat(items.x[..., None], 3, axis=3) if coloured else items.x
    elif path.suffix.lower() in (".npy", ".npz"):
        items = datasets.read_arrays(path, id=id or wanted["id"], features=wanted["array"])
        yield items.ids.tolist(), items.x
    else:
        yield from _table(run, path, id, quiet)


def _table(run: "Run", path: Path, id: str | None, quiet: bool) -> Iterator[Block]:
    import numpy as np

    from naysay.datasets.columns import header, read_blocks
    from naysay.words import few

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
    if not quiet:
        if key is None and wanted["id"]:
            note(f"note: {path} has no column {wanted['id']!r}, so ids are row numbers; pass --id to name one")
        if others := [name for name in columns if name not in features and name != key]:
            note(f"note: columns that are not used: {few(others, 5)}")
    seen: set[str] = set()
    for _, texts, values in read_blocks(path, [] if key is None else [key], features, lists=wanted["lists"]):
        x, start = np.concatenate(values, 1), len(seen)
        ids = list(map(str, range(start, start + len(x)))) if key is None else texts[key].tolist()
        for name in ids:
            if not isinstance(name, str) or name in seen:
                what = f"{name!r} more than once" if isinstance(name, str) else "an empty cell or a list"
                raise InputError(f"{path} has {what} in its id column {key!r}. Give every item its own id.")
            seen.add(name)
        yield ids, x
    if not seen:
        raise InputError(f"{path} has a header but no rows. Give one row per item.")
