"""How many workers a machine takes, and the environment of each: its share of the cores, its own GPU of several.

The number of threads is part of the answer: sums over two threads and over one differ in the last digits. It must stand
in the environment before numpy, torch or numba are loaded.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from naysay.errors import InputError

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA's, Windows' for its Linux, AMD's
VISIBLE = "CUDA_VISIBLE_DEVICES"


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


@contextmanager
def environ(changes: Mapping[str, str]) -> Iterator[None]:
    """The variables of this process changed, for children that are started in the block."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
