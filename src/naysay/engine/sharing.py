"""Shared values of the local engine: a temporary file without a name, whose descriptor goes to the workers, who map it
into memory.

The file has no name, so that nothing is left of it when the driver dies, however it dies.
"""

import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any

from naysay.engine.packing import Handle, pack_apart
from naysay.errors import InputError

ALIGNMENT = 64  # bytes; what vector instructions like

Span = tuple[int, int]


class SharedFile(Handle):
    """A handle of the local engine's `share`: the file, and where in it each part lies."""

    def __init__(self, value: Any) -> None:
        parts = pack_apart(value)
        self.spans: list[Span] = []
        try:
            self.file: Any = tempfile.TemporaryFile()  # noqa: SIM115  # open for as long as somebody has the handle
            for part in parts:
                start = -(-self.file.tell() // ALIGNMENT) * ALIGNMENT
                self.file.seek(start)
                self.file.write(part)
                self.spans.append((start, start + part.nbytes))
            self.file.flush()
        except OSError as error:
            size = sum(part.nbytes for part in parts) / 2**20
            raise InputError(
                f"a shared value of {size:,.0f} MB cannot be written to {tempfile.gettempdir()} ({error.strerror}). "
                "Set TMPDIR to a folder with room."
            ) from error


def open_shared(descriptor: int, spans: Sequence[Span]) -> list[memoryview]:
    """The parts of a shared file, mapped into memory, from its descriptor, which is closed."""
    try:
        mapped = memoryview(mmap.mmap(descriptor, spans[-1][1], access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)  # the map keeps the file
    return [mapped[start:stop] for start, stop in spans]
