"""A worker process: how jobs and values reach it, what it does with them, and how its replies travel back.

Values are pickled here, in memory of their own, and not by the queue that carries them: torch would hand its tensors
over as file descriptors, which die with the worker that made them. What a worker on a GPU gives back lies in main
memory, for a reader without that GPU. The arrays of a shared value stay apart from its pickle (protocol 5, PEP 574), in
a file without a name that all workers of a machine map into memory; nothing is left of it when the driver dies, however
it dies. Nothing heavy is imported here: a worker is ready after the start of Python, and loads what its jobs need when
the first one comes.
"""

import io
import mmap
import os
import pickle
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import parent_process, reduction
from multiprocessing.connection import Connection
from typing import Any

from naysay.engine.jobs import Failure, Job, Reply
from naysay.errors import InputError

ALIGNMENT = 64  # bytes; what vector instructions like
TRACE_LINES = 12

Span = tuple[int, int]


class MainMemory:
    """A pickler's part that takes tensors off the GPU."""

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules.get("torch")  # where nobody has imported it, nothing is a tensor
        if torch is not None and type(value) is torch.Tensor and value.device.type != "cpu":
            return value.detach().cpu().__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        further = getattr(super(), "reducer_override", None)
        return NotImplemented if further is None else further(value)


class Pickler(MainMemory, pickle.Pickler):
    """The standard pickler: functions and classes by name."""


class Handle:
    """What `share` returns; the workers get the value itself."""

    def __reduce__(self) -> Any:
        raise TypeError("a shared value must stand at the top level of a job's arguments")


def pack(value: Any, pickler: Any = Pickler, apart: Callable[[pickle.PickleBuffer], Any] | None = None) -> bytes:
    """The value as bytes; where `apart` is given, it is called with each large buffer instead of copying it in."""
    file = io.BytesIO()
    pickler(file, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=apart).dump(value)
    return file.getvalue()


def pack_job(job: Job, pickler: Any = Pickler) -> tuple[bytes, dict[str, Any]]:
    """A job's (call, arguments) as bytes, and the handles that were among the arguments, by name."""
    shared = {name: value for name, value in job.arguments.items() if isinstance(value, Handle)}
    plain = {name: value for name, value in job.arguments.items() if name not in shared}
    with _sendable(f"job {job.key!r}"):
        return pack((job.call, plain), pickler), shared


def pack_apart(value: Any, pickler: Any = Pickler) -> list[memoryview]:
    """The value as its pickle and, after it, the buffers of its arrays, none of them copied."""
    buffers: list[pickle.PickleBuffer] = []
    with _sendable("a shared value"):
        pickled = pack(value, pickler, buffers.append)
    return [memoryview(pickled), *(buffer.raw() for buffer in buffers)]


@contextmanager
def _sendable(what: str) -> Iterator[None]:
    try:
        yield
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"{what} cannot be sent to a worker: {error}. Use functions at the top of a module and plain values, "
            "or the local engine with workers=0."
        ) from error


def unpack(parts: Sequence[Any]) -> Any:
    """The value of `pack_apart`; its arrays lie in the given buffers, and are read-only where those are."""
    # torch warns when it reads such an array; nothing here writes to its inputs
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable", category=UserWarning)
    return pickle.loads(parts[0], buffers=parts[1:])


class SharedFile(Handle):
    """A handle of the local engine's `share`: the file without a name, and where in it each part lies."""

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


def serve(connection: Connection) -> None:
    """The life of a local worker: perform what comes in until the driver closes the connection or dies."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stderr = _NoTerminal(sys.stderr.buffer, errors="backslashreplace", line_buffering=True)
    try:
        connection.send(None)  # ready
        while True:
            message, spans = connection.recv()
            shared = {name: open_shared(reduction.recv_handle(connection), places) for name, places in spans.items()}
            connection.send(perform(message, shared))
    except (EOFError, ConnectionError):  # the driver has left, or is gone
        return


def perform(message: bytes, shared: Mapping[str, Sequence[Any]], pickler: Any = Pickler) -> Reply:
    """The reply to a packed (call, arguments), with the packed shared values among the arguments."""
    started = time.perf_counter()
    try:
        call, arguments = pickle.loads(message)
        arguments |= {name: unpack(parts) for name, parts in shared.items()}
        started = time.perf_counter()  # loading what the function needs is no part of the job
        value = call(**arguments)
        seconds = time.perf_counter() - started
        return Reply(pack(value, pickler), None, seconds)
    except (Exception, SystemExit) as error:  # here the jobs end: whatever one raises is its outcome
        return Reply(None, failure(error), time.perf_counter() - started)


def receive(reply: Reply) -> Reply:
    """The reply as the driver sees it, its value unpacked."""
    if reply.failure is not None:
        return reply
    try:
        return reply._replace(value=pickle.loads(reply.value))
    except Exception as error:  # what cannot be read here is that job's failure, not the end of the others
        return Reply(None, failure(error), reply.seconds)


def failure(error: BaseException) -> Failure:
    """An exception as text; an `InputError` is a sentence that needs no traceback."""
    refused = isinstance(error, InputError)
    inside = error.__traceback__.tb_next if error.__traceback__ else None  # without the line that called the job
    lines = "".join(traceback.format_tb(inside)).splitlines()[-TRACE_LINES:]
    return Failure(type(error).__name__, str(error), "" if refused else "\n".join(lines), refused)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _NoTerminal(io.TextIOWrapper):
    """Standard error of a worker: several progress bars on one terminal would overwrite each other."""

    def isatty(self) -> bool:
        return False
