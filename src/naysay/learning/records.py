"""Records: what a run was and how it went, as JSON lines: one "run" line, an "epoch" line per epoch, one "result" line.

The checkpoint holds the same figures, and a resumed run writes the file anew from them: no epoch is missing or doubled.
"""

import datetime
import json
import math
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import naysay
from naysay import files
from naysay.progress import bar, wanted

# figures that a bar leaves out: an epoch's estimate of the accuracy is no number to read without its interval
UNTOLD = ("learning_rate", "seconds", "held_out", "held_out_error")

Figures = dict[str, Any]


def environment(device: torch.device, processes: int) -> dict[str, Any]:
    """Versions, hardware and date: what a number's origin includes."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
    return {
        "versions": {
            "naysay": naysay.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "hardware": {
            "device": str(device),
            "name": name,
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "processes": processes,
        },
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def processor() -> str:
    """The CPU's name, as the system calls it."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text().splitlines() if listed.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def clean(figures: Mapping[str, Any]) -> Figures:
    """Figures as JSON has them: tensors and numpy numbers become Python's, and what is not a number becomes null."""
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in figures.items()}
    missing = {name: None for name, value in plain.items() if isinstance(value, float) and not math.isfinite(value)}
    return plain | missing


def rewrite(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Make the file hold exactly `lines`, atomically."""
    files.replace(path, "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode())


def append(path: Path, line: Mapping[str, Any]) -> None:
    """Add one line."""
    with files.told(path), open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line, allow_nan=False) + "\n")


def read(path: str | Path) -> list[Figures]:
    """All whole lines of a record file; a last line that was cut off by a kill is left out."""
    *whole, _ = Path(path).read_bytes().split(b"\n")  # and at nothing else that may pass for the end of a line
    return [json.loads(line) for line in whole]


@contextmanager
def progress(epochs: int, done: int, enabled: bool | None = None) -> Iterator[Callable[[Figures], None]]:
    """A function to call with each epoch's figures, which draws a bar: on a terminal, or as `enabled` says."""
    if not wanted(enabled):
        yield lambda figures: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column

    # a narrow terminal cuts the figures, never the bar, the epoch or the time left
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        BarColumn(20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figures]}", table_column=rest),
    )
    with bar("training", *columns) as shown:
        task = shown.add_task("", total=epochs, completed=done, figures="")

        def show(figures: Figures) -> None:
            numbers = {name: value for name, value in figures.items() if isinstance(value, float)}
            told = [f"{name} {numbers[name]:.4g}" for name in numbers if name not in UNTOLD]
            shown.update(task, advance=1, figures="  ".join(told))

        yield show
