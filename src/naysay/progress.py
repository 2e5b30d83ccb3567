"""Progress bars for work of more than a few seconds: on standard error, on a terminal only, gone when it is done."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
PATIENCE = 2.0  # seconds of silence before a bar appears


def track(steps: Iterable[T], total: int, doing: str) -> Iterator[T]:
    """The steps one by one, with a bar from the third second on; nothing where there is no terminal."""
    if not wanted():
        yield from steps
        return
    start = time.monotonic()
    with bar() as shown:
        task = shown.add_task(doing, total=total, visible=False)
        for step in steps:
            yield step
            shown.update(task, advance=1, visible=time.monotonic() - start > PATIENCE)


def wanted(enabled: bool | None = None) -> bool:
    """Whether to draw: as `enabled` says, or where it says nothing, whether standard error is a terminal."""
    return sys.stderr.isatty() if enabled is None else enabled


def bar(*columns: Any) -> "Progress":
    """rich's Progress with these columns (with none, its own), to be entered and left."""
    from rich.console import Console
    from rich.progress import Progress

    # over the whole width, so that a column with a ratio takes what others leave and nothing else gives way
    return Progress(*columns, console=Console(stderr=True), transient=True, expand=bool(columns))
