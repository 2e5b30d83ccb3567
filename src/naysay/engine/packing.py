"""How values travel between processes: pickled here, in memory of their own, and not by the queue that carries them.

Torch would hand its tensors over as file descriptors, which die with the worker that made them. What a worker on a GPU
gives back lies in main memory, for a reader without that GPU. The arrays of a shared value stay apart from its pickle
(protocol 5, PEP 574), so that all workers of a machine read one copy of them, in place.
"""

import io
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from naysay.engine.jobs import Job
from naysay.errors import InputError


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


def unpack(parts: Sequence[Any]) -> Any:
    """The value of `pack_apart`; its arrays lie in the given buffers, and are read-only where those are."""
    # torch warns when it reads such an array; nothing here writes to its inputs
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable", category=UserWarning)
    return pickle.loads(parts[0], buffers=parts[1:])


@contextmanager
def _sendable(what: str) -> Iterator[None]:
    try:
        yield
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"{what} cannot be sent to a worker: {error}. Use functions at the top of a module and plain values, "
            "or the local engine with workers=0."
        ) from error
