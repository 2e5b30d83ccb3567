"""The way to Ray, `connect`, and a crew of workers there, `hired`, which does all jobs of a run over shards.

A Ray that is started here is for this process alone: quiet, without dashboard and usage statistics, on 127.0.0.1.

One crew serves all stages, so that none waits for another start of Python. A worker that dies is started again by Ray,
and only the job that it was at is done again: jobs are made of what is in the work folder alone. Its memory is the
resident set, with the mapped files and shared memory that it looked at: workers of one machine each count shared pages.
"""

import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from naysay.cores import usable as cores
from naysay.engine.worker import environ, environment
from naysay.errors import InputError
from naysay.progress import track

# the second: what Ray will do by itself soon, and warns of until then
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
# on any system: listen on 127.0.0.1 only; read once, when ray is imported
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
SILENT = {"logging_level": "ERROR", "log_to_driver": False}
NO_METRICS = {"enable_metrics_collection": False}  # nobody would read them, and to begin with them takes a second
PATIENCE = 10.0  # seconds for a cluster to answer
RETRIES = 3

Peak = tuple[str, int]  # which process, and the most bytes that it has held


@contextmanager
def connect(
    address: str | None = None, *, workers: int | None = None, variables: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """The module ray, connected to the cluster at `address` ("auto", "host:port"), or to one started here.

    workers: the CPUs of one that is started here, which has the environment `variables` besides its own, and alone is
    shut down at the end. Inside another `connect` the same connection serves.
    """
    with environ(QUIET if address else QUIET | ALONE | dict(variables or {})):
        ray = _ray()
        inside = ray.is_initialized()
        if not inside and address:
            _join(ray, address)
        elif not inside:
            n_cpus = workers or cores()
            ray.init("local", num_cpus=n_cpus, include_dashboard=False, _system_config=NO_METRICS, **SILENT)
    try:
        yield ray
    finally:
        if not inside:
            ray.shutdown()


def _join(ray: Any, address: str) -> None:
    try:
        if (host := re.fullmatch(r"(?:ray://)?(.+):(\d+)", address)) is not None:
            # Ray itself would try for minutes
            socket.create_connection((host[1], int(host[2])), timeout=PATIENCE).close()
        ray.init(address, **SILENT)
    except (OSError, RuntimeError, ValueError) as error:
        why = str(error).strip().splitlines()[0].rstrip(".")
        start = "Start one with `ray start --head`, with the same versions of Python and ray"
        way_out = f"{start}, or leave the address out to start one here."
        raise InputError(f"no Ray cluster could be joined at {address!r}: {why}. {way_out}") from error


def is_connected() -> bool:
    """Whether this process is connected already."""
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        missing = f"the engine ray needs a package that is not here: {error}"
        raise InputError(f"{missing}. Get it with: pip install 'naysay[ray]'") from None


class Worker:
    """The inside of a worker, with so many threads."""

    def __init__(self, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)

    def do(self, function: Callable[[Any], Any], item: Any) -> tuple[Any, Peak]:
        """The function's value, and the memory of the process that found it."""
        return function(item), peak_memory()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The function's value alone: where it is several things, Ray can keep each for itself."""
        return function(*arguments)


@dataclass
class Crew:
    """The workers' `apply` (a function of every item: each value and its Peak, in their order), and the account."""

    apply: Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[tuple[Any, Peak]]]
    workers: Sequence[Any] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)

    def finish(self, function: Callable[[int], Any], files: Sequence[Path], doing: str) -> None:
        """Have the workers make the files that are not there yet: `function` of a number makes that file."""
        missing = [at for at, path in enumerate(files) if not path.exists()]
        self.skipped |= {doing: len(files) - len(missing)} if len(missing) < len(files) else {}
        self.each(function, missing, doing)

    def each(self, function: Callable[[Any], Any], items: Sequence[Any], doing: str) -> list[Any]:
        """`function` of every item, in their order, done by the workers; a failure ends it."""
        values = []
        with self.timed(doing):
            for value, peak in track(self.apply(function, items), len(items), doing):
                values.append(value)
                self.note(peak)
        return values

    def note(self, peak: Peak) -> None:
        """Remember the most memory of a process."""
        self.peaks[peak[0]] = max(peak[1], self.peaks.get(peak[0], 0))

    @contextmanager
    def timed(self, doing: str) -> Iterator[None]:
        """Count the seconds of the block under that name."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[doing] = self.seconds.get(doing, 0.0) + time.perf_counter() - start


@contextmanager
def hired(ray: Any, workers: int, threads: int) -> Iterator[Crew]:
    """A crew of so many workers of `threads` CPUs each, on a connected `ray`, which leave with the block."""
    from ray.util import ActorPool

    # variables that libraries read when they are loaded: torch's own setting does not reach all of them
    terms = {"num_cpus": threads, "runtime_env": {"env_vars": environment(threads)}}
    hire = ray.remote(max_restarts=RETRIES, max_task_retries=RETRIES, **terms)(Worker)
    team = [hire.remote(threads) for _ in range(workers)]

    def apply(function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        pool: Any = ActorPool(team)
        return pool.map(lambda worker, item: worker.do.remote(function, item), items)

    crew = Crew(apply, team)
    try:
        with crew.timed("starting workers"):
            ray.get([worker.do.remote(bool, 0) for worker in team])
        yield crew
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, InputError):
            raise InputError(str(error.cause)) from error
        raise
    finally:
        for worker in team:
            ray.kill(worker)


def peak_memory() -> Peak:
    """The calling process, and the most bytes that it has held."""
    import resource  # which not every system has

    unit = 1 if sys.platform == "darwin" else 1024
    return f"{socket.gethostname()}/{os.getpid()}", unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
