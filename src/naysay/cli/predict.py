"""`naysay predict`: classes and probabilities of new items, from a run folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from naysay.cli import options as o
from naysay.cli.output import TABLES, new_file, noter, refuse_non_text, say_json, write_table

if TYPE_CHECKING:
    from naysay.runs import Run
    from naysay.runs.rows import Block


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
    from naysay.runs.rows import blocks

    with new_file(out, force, TABLES) as unfinished:
        trained = Run.load(run)
        rows = blocks(trained, data, id, folder, noter(quiet))
        count = write_table(unfinished, out, _predicted(trained, rows))
    if json:
        say_json({"predictions": str(out), "rows": count, "classes": list(trained.classes)})
    elif not quiet:
        print(f"{count:,} predictions: {out}")


def _predicted(run: "Run", blocks: Iterator["Block"]) -> Iterator[dict[str, Any]]:
    """The columns of the output, for each block of items."""
    for ids, x in blocks:
        refuse_non_text(ids)
        numbers, p = run.predict(x, ids)
        columns = {"id": ids, "prediction": [run.classes[k] for k in numbers.tolist()]}
        yield columns | {f"p_{name}": p[:, k].numpy() for k, name in enumerate(run.classes)}
