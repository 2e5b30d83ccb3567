"""`naysay ask`: of which items to ask what, so that the answers tell most."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from naysay.cli import options as o
from naysay.cli.output import TABLES, new_file, noter, refuse_non_text, say_json, write_table
from naysay.errors import InputError

if TYPE_CHECKING:
    from naysay.runs import Run

DATA = "Other items, about which nothing is known; else those that the run was made from, with their labels."


def ask(
    run: o.Run,
    data: Annotated[str | None, typer.Argument(metavar="[DATA]", help=DATA)] = None,
    *,
    out: Annotated[Path, o.output("--out", "FILE", "A .csv or .parquet file to write.")],
    n: Annotated[int, o.option(None, "--n", None, "How many questions, one an item.", min=1)] = 100,
    id: Annotated[str | None, o.items("--id", "COLUMN", "In DATA: the column of item ids; else fit's.")] = None,
    folder: o.Folder = None,
    force: o.Force = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write the questions whose answers tell most: the item, and "is it CLASS?".

    The most telling question of an item is about the class that the model
    gives a chance nearest to a half, of those that are not known to be wrong.
    Questions are spread over classes and over items that differ. A "no" is a
    complementary label, a "yes" an ordinary one: add them to the labels (with
    --labels-say COLUMN for both kinds in one file), fit again, ask again. The
    output has the columns item, class, probability (of yes) and bits (what
    the answer tells).

    [bold]Examples[/bold]

      naysay ask RUN --n 100 --out questions.csv
      naysay ask RUN more.csv --n 100 --out questions.csv
    """
    from naysay.runs import Run, choose_questions

    with new_file(out, force, TABLES) as unfinished:
        trained = Run.load(run)
        ids, x, known = _items(trained, data, id, folder, quiet)
        refuse_non_text(ids)
        rows = trained.rows(x)  # once: what an encoder makes of images may take long, and may be kept nowhere
        asked = choose_questions(trained.predict_rows(rows, ids)[1].numpy(), known, rows, n)
        if not len(asked.rows):
            raise InputError("there is nothing to ask: of every item all classes but one are ruled out already.")
        columns = {
            "item": [ids[row] for row in asked.rows.tolist()],
            "class": [trained.classes[k] for k in asked.classes.tolist()],
            "probability": asked.probability,
            "bits": asked.bits,
        }
        count = write_table(unfinished, out, [columns])
    if json:
        say_json({"questions": str(out), "rows": count, "bits": float(asked.bits.sum())})
    elif not quiet:
        print(f"{count:,} questions, whose answers tell {asked.bits.sum():.1f} bits: {out}")


def _items(
    run: "Run", data: str | None, id: str | None, folder: Path | None, quiet: bool
) -> tuple[list[str], Any, Any]:
    """Ids, rows, and which classes (n, K) are known to be wrong."""
    import numpy as np

    from naysay.reading import known_set, read, still_meant
    from naysay.runs.rows import blocks

    again = {} if data is not None else run.about["data"].get("reading")
    if again is None:
        raise InputError(f"{run.folder} does not say how its data were read, as newer ones do: name them, as DATA.")
    again = again and still_meant(again)
    if again and (folder is not None or id is not None):
        raise InputError("--id and --data are for DATA: leave them out, or name other items.")
    given, place = None, folder if data is not None else again.get("data")
    if again:
        given = read(**{**again, "contradictions": "keep", "weigh_annotators": False, "strict": False})
        if list(given.classes) != list(run.classes):
            raise InputError(f"{again['source']} now has labels of other classes than the run: fit it again.")
    source = again["source"] if data is None else data
    whole = not any(again.get(name) for name in ("features", "label", "id"))
    if given is not None and known_set(source, place, whole=whole) is not None:
        return given.items.ids.tolist(), given.items.x, given.comp.numpy() > 0  # not the test items
    parts = list(blocks(run, source, id or again.get("id"), place, noter(quiet or data is None)))
    ids, x = [name for names, _ in parts for name in names], np.concatenate([part for _, part in parts])
    known = np.zeros((len(ids), len(run.classes)), dtype=bool)
    if given is not None:
        row = {name: at for at, name in enumerate(given.items.ids.tolist())}
        known = given.comp.numpy()[[row[name] for name in ids]] > 0
    return ids, x, known
