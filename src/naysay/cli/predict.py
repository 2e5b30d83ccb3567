"""`naysay predict`: classes and probabilities of new items, from a run folder."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from naysay.cli import options as o
from naysay.cli.output import TABLES, new_file, noter, refuse_non_text, say_json, write_table
from naysay.errors import InputError

if TYPE_CHECKING:
    from naysay.runs import Run
    from naysay.runs.rows import Block


AT_LEAST = "Leave the prediction empty where its probability is lower, from 0 to 1."


def predict(
    run: o.Run,
    data: o.Data,
    *,
    out: Annotated[Path, o.output("--out", "FILE", "A .csv or .parquet file to write.")],
    id: Annotated[str | None, o.items("--id", "COLUMN", "The column of item ids; else the one used in fit.")] = None,
    at_least: Annotated[float, o.option(None, "--at-least", "P", AT_LEAST)] = 0.0,
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
    for every class; with --at-least, items that are less sure get no prediction,
    and may be asked about (naysay ask). In CSV, text that a spreadsheet would run as a formula gets
    an apostrophe in front; Parquet keeps it as it is.

    [bold]Examples[/bold]

      naysay predict RUN data.csv --out predictions.csv
      naysay predict RUN more.parquet --id key --out predictions.parquet
    """
    from naysay.learning import Predictor
    from naysay.runs import Run
    from naysay.runs.rows import blocks

    if not 0 <= at_least <= 1:
        raise InputError(
            f"--at-least must be a probability from 0 to 1; got {at_least}. 0.8 leaves out what is doubtful."
        )
    left_out = 0

    def predicted() -> Iterator[dict[str, Any]]:
        nonlocal left_out
        for columns in _predicted(trained, rows, at_least):
            left_out += columns["prediction"].count("")
            yield columns

    with new_file(out, force, TABLES) as unfinished:
        trained = Run.load(run)
        if flips:
            if not isinstance(trained.predictor, Predictor):
                raise InputError(
                    f"--flips is for one network trained on images, and {run} holds a mixture. Leave it out."
                )
            trained = replace(trained, predictor=replace(trained.predictor, flips=True))
        rows = blocks(trained, data, id, folder, noter(quiet))
        count = write_table(unfinished, out, predicted())
    if json:
        told = {"predictions": str(out), "rows": count, "classes": list(trained.classes)}
        say_json(told | ({"left_out": left_out} if at_least else {}))
    elif not quiet:
        doubtful = f", {left_out:,} of them left empty" if at_least else ""
        print(f"{count:,} predictions{doubtful}: {out}")


def _predicted(run: "Run", blocks: Iterator["Block"], at_least: float) -> Iterator[dict[str, Any]]:
    """The columns of the output, for each block of items."""
    for ids, x in blocks:
        refuse_non_text(ids)
        numbers, p = run.predict(x, ids)
        sure = (p.max(1).values >= at_least).tolist()
        named = [run.classes[k] if known else "" for k, known in zip(numbers.tolist(), sure, strict=True)]
        columns = {"id": ids, "prediction": named}
        yield columns | {f"p_{name}": p[:, k].numpy() for k, name in enumerate(run.classes)}
