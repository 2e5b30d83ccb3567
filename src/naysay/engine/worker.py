"""A worker process: its share of the machine, how jobs and values reach it, and how its replies travel back.

A worker's cores and, of several GPUs, its own one are given by its environment. The number of threads is part of the
answer: sums over two threads and over one differ in the last digits. It must stand in the environment before numpy,
torch or numba are loaded.

Values are pickled here, in memory of their own, and not by the queue that carries them: torch would hand its tensors
over as file descriptors, which die with the worker that made them. What a worker on a GPU gives back lies in main
memory, for a reader without that GPU. The arrays of a shared value stay apart from its pickle (protocol 5, PEP 574), in
a file without a name that all workers of a machine map into memory; nothing is left of it when the driver dies, however
it dies. Nothing heavy is imported here: a worker is ready with Python, and loads what its jobs need for the first one.
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

from naysay.cores import usable as cores
from naysay.engine.jobs import Failure, Job, Reply
from naysay.errors import InputError

ALIGNMENT = 64  # bytes; what vector instructions like
TRACE_LINES = 12
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA's, Windows' for its Linux, AMD's
VISIBLE = "CUDA_VISIBLE_DEVICES"

Span = tuple[int, int]


def gpus() -> list[str]:
    """The GPUs of this machine, as CUDA_VISIBLE_DEVICES names them."""
    if sys.platform == "linux" and not any(map(os.path.exists, DRIVERS)):
        return []  # without waiting for torch
    import torch

    count = torch.cuda.device_count()
    named = [name.strip() for name in os.environ.get(VISIBLE, "").split(",") if name.strip()]
    return (named or [str(at) for at in range(count)])[:count]


def share_of_threads(given: int | None, n_cores: int, workers: int) -> int:
    """Threads per worker: what was asked for, here or by OMP_NUM_THREADS, else each worker's share of the cores."""
    if given is not None:
        return given
    wished = os.environ.get(THREADS[0], "")
    if wished and not (wished.isdecimal() and int(wished)):
        raise InputError(f"{THREADS[0]} must be a number of threads; got {wished!r}. Unset it, or set it to 1 or more.")
    return int(wished) if wished else max(1, n_cores // max(1, workers))


def environment(threads: int) -> dict[str, str]:
    """The variables that give a process its number of threads."""
    return dict.fromkeys(THREADS, str(threads))


def environments(workers: int | None, threads: int | None) -> list[dict[str, str]]:
    """The variables of each worker on this machine (None: one per GPU, else per core); of several GPUs each has one."""
    devices = gpus()
    workers = len(devices) or cores() if workers is None else workers
    variables = environment(share_of_threads(threads, cores(), workers))
    return [variables | ({VISIBLE: devices[at % len(devices)]} if len(devices) > 1 else {}) for at in range(workers)]


@contextmanager
def environ(changes: Mapping[str, str]) -> Iterator[None]:
    """The variables of this process changed, for children that are started in the block."""
    before = {name: os.environ[name] for name in changes if name in os.environ}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            del os.environ[name]
        os.environ.update(before)


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
    """What `share` returns, over where the shared thing is; the workers get the thing itself."""

    def __init__(self, place: Any) -> None:
        self.place = place

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
        way_out = "Use functions at the top of a module and plain values, or the local engine with workers=0."
        raise InputError(f"{what} cannot be sent to a worker: {error}. {way_out}") from error


def unpack(parts: Sequence[Any]) -> Any:
    """The value of `pack_apart`; its arrays lie in the given buffers, and are read-only where those are."""
    # torch warns when it reads such an array; nothing here writes to its inputs
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable", category=UserWarning)
    return pickle.loads(parts[0], buffers=parts[1:])


def write_shared(value: Any) -> tuple[Any, list[Span]]:
    """The value in a file without a name, and where in it each part lies."""
    parts, spans = pack_apart(value), list[Span]()
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115  # open for as long as somebody has the handle
        for part in parts:
            start = -(-file.tell() // ALIGNMENT) * ALIGNMENT
            file.seek(start)
            file.write(part)
            spans.append((start, start + part.nbytes))
        file.flush()
    except OSError as error:
        size, place = sum(part.nbytes for part in parts) / 2**20, f"{tempfile.gettempdir()} ({error.strerror})"
        what = f"a shared value of {size:,.0f} MB cannot be written to {place}"
        raise InputError(f"{what}. Set TMPDIR to a folder with room.") from error
    return file, spans


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
