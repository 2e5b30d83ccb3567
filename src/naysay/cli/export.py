"""`naysay export`: a run's network as an ONNX file."""

from pathlib import Path
from typing import Annotated

from naysay.cli import options as o
from naysay.cli.output import new_file


def export(
    run: o.Run,
    *,
    out: Annotated[Path, o.output("--out", "FILE", "The .onnx file to write.")],
    force: o.Force = False,
) -> None:
    r"""Write a run's network as ONNX, to predict without Python.

    It takes rows as numbers (the columns of a table as fit turned them into
    numbers, images as pixels of 0 to 255) and gives the probability of every
    class. Needs pip install "naysay\[onnx]", and a run of one network: the
    default mixes several models, so fit with --model.

    [bold]Examples[/bold]

      naysay export RUN --out model.onnx
    """
    from naysay.runs import Run

    with new_file(out, force, (".onnx",)) as unfinished:
        unfinished.write_bytes(Run.load(run).as_onnx())
    print(out)
