"""Several processes that do one thing together: torch's process group under torchrun's names.

Whoever starts the processes (torchrun, a scheduler's script, a Ray worker) says by RANK, WORLD_SIZE, LOCAL_RANK,
LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT which of them this one is. Every process runs the same program; the first
one alone (rank 0) writes and speaks. A lone process is `ALONE`: there every method returns what it was given.
"""

import atexit
import os
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from naysay.errors import InputError
from naysay.words import shortened

T = TypeVar("T")

MEETING = 600  # seconds that the processes may take until all of them are there
LONGEST = 9  # digits of a number that places a process
WAY_OUT = "Start the processes with torchrun, or unset it."


@dataclass(frozen=True)
class Processes:
    """The place of this process, `rank` of `size`; on its machine it is `local` of `local_size`."""

    rank: int = 0
    size: int = 1
    local: int = 0
    local_size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes and speaks."""
        return self.rank == 0

    @property
    def device(self) -> torch.device:
        """Where this process computes: a GPU of its own, or the CPU where the machine has none."""
        if not torch.cuda.is_available():
            return torch.device("cpu")
        if self.local_size > torch.cuda.device_count():
            got = f"{self.local_size} processes and {torch.cuda.device_count()} GPUs"
            raise InputError(f"each process needs a GPU of its own; got {got}. Start fewer.")
        return torch.device("cuda", self.local) if self.size > 1 else torch.device("cuda")

    def part(self, x: Tensor) -> Tensor:
        """The rows of `x` (n, ...), which all processes have, that are this process's part."""
        return x if self.size == 1 else x[self.rank :: self.size]

    def mean(self, x: Tensor) -> Tensor:
        """The mean over the processes of each element; gradients go back to the x of every process."""
        return x if self.size == 1 else cast(Tensor, _Sum.apply(x)) / self.size  # type: ignore[no-untyped-call]

    def rows(self, x: Tensor) -> Tensor:
        """The rows of all processes (size * n, ...), without gradients; each must give equally many."""
        if self.size == 1:
            return x
        parts = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(self.size)]
        torch.distributed.all_gather(parts, x.detach().contiguous())
        return torch.cat(parts)

    def average_(self, tensors: list[Tensor]) -> None:
        """Put the mean over the processes into `tensors`, which are sent as one."""
        if self.size == 1:
            return
        flat = torch.cat([t.flatten() for t in tensors])
        torch.distributed.all_reduce(flat)
        parts = torch.split(flat / self.size, [t.numel() for t in tensors])
        torch._foreach_copy_(tensors, [part.view(t.shape) for part, t in zip(parts, tensors, strict=True)])

    def copy_first_(self, tensors: Iterable[Tensor]) -> None:
        """Put what the first process has into `tensors`."""
        for t in tensors if self.size > 1 else ():
            whole = t.detach().contiguous()
            torch.distributed.broadcast(whole, 0)
            t.detach().copy_(whole)

    def agree(self, value: T) -> T:
        """The first process's value."""
        box = [value]
        if self.size > 1:
            torch.distributed.broadcast_object_list(box, 0)
        return box[0]


ALONE = Processes()


def here() -> Processes:
    """The place that the environment gives this process; ALONE where it says nothing."""
    size = _number("WORLD_SIZE", "1")
    if size == 1:
        return ALONE
    missing = [name for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        told = f"WORLD_SIZE={size} speaks of several processes, but {', '.join(missing)} is not set"
        raise InputError(f"{told}. Start them with torchrun, or unset it.")
    place = Processes(_number("RANK"), size, _number("LOCAL_RANK"), _number("LOCAL_WORLD_SIZE", str(size)))
    port = _number("MASTER_PORT")
    for name, got, fits, wanted in (  # torch would wait for processes that cannot come
        ("RANK", place.rank, place.rank < size, f"below WORLD_SIZE, which is {size}"),
        ("LOCAL_WORLD_SIZE", place.local_size, place.local_size <= size, f"at most WORLD_SIZE, which is {size}"),
        (
            "LOCAL_RANK",
            place.local,
            place.local < place.local_size,
            f"below LOCAL_WORLD_SIZE, which is {place.local_size}",
        ),
        ("MASTER_PORT", port, 0 < port < 1 << 16, "a port, 1 to 65535"),
    ):
        if not fits:
            raise InputError(f"{name} must be {wanted}; got {got}. {WAY_OUT}")
    return place


def _number(name: str, usual: str = "") -> int:
    """What the environment says under the name."""
    text = os.environ.get(name, usual)
    if not text.isdecimal() or len(text) > LONGEST or (name.endswith("SIZE") and int(text) == 0):
        got = repr(shortened(text))
        raise InputError(f"{name} must be a whole number that places this process; got {got}. {WAY_OUT}")
    return int(text)


def join() -> Processes:
    """The processes of the environment, in their process group: nccl on GPUs, gloo on CPUs.

    The group is left when the process ends, not before: its meeting place serves once.
    """
    place = here()
    if place.size > 1 and not torch.distributed.is_initialized():
        on_gpu = place.device.type == "cuda"
        if on_gpu:
            torch.cuda.set_device(place.device)
        torch.distributed.init_process_group("nccl" if on_gpu else "gloo")
        # nccl wants to be told, and gloo's threads were seen to abort an interpreter that ended before them
        atexit.register(torch.distributed.destroy_process_group)
    return place


@contextmanager
def one_voice() -> Iterator[Processes]:
    """The place of this process; of several that fail, the first tells why, and those that fail by it end in silence.

    torchrun ends those that still wait for them by a signal, on which they leave as on an error: nothing unfinished
    stays behind.
    """
    place = here()
    if place.size == 1:
        yield place
        return
    store = _meet(place)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with warnings.catch_warnings():
        if not place.first:
            warnings.simplefilter("ignore")
        try:
            yield place
        except (Exception, KeyboardInterrupt):
            if _is_first_to_fail(store):
                raise
            raise SystemExit(1) from None


def _meet(place: Processes) -> Any:
    """The store that all processes share, once all of them are there."""
    from torch.distributed.rendezvous import rendezvous

    # torch waits outside of Python, where our ways to end would wait with it; there is nothing yet to tidy up
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        return next(rendezvous("env://", timeout=timedelta(seconds=MEETING)))[0]
    except torch.distributed.DistError as error:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        why = shortened(str(error).partition("\n")[0], 120)
        told = f"the {place.size} processes did not meet at {where} ({why})"
        raise InputError(f"{told}. Start them all, with torchrun, or unset WORLD_SIZE.") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _is_first_to_fail(store: Any) -> bool:
    # torchrun holds the store, so it outlives a failed process; where a process held it and is gone, that failed first
    try:
        return bool(store.add(f"naysay/failed/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", 1) == 1)
    except torch.distributed.DistError:
        return False


class _Sum(torch.autograd.Function):
    """The sum over the processes; the gradient of a process's x is the sum of all processes' gradients."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        total = x.detach().clone(memory_format=torch.contiguous_format)
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return cast(Tensor, _Sum.apply(gradient))  # type: ignore[no-untyped-call]
