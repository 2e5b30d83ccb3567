"""A progress bar for work of more than a few seconds, on a terminal only."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 2.0  # seconds of silence before a bar appears


def track(steps: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """The steps one by one, with a bar on standard error from the third second on; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield from steps
        return
    from rich.console import Console
    from rich.progress import Progress

    start = time.monotonic()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total, visible=False)
        for step in steps:
            yield step
            bar.update(task, advance=1, visible=time.monotonic() - start > PATIENCE)
