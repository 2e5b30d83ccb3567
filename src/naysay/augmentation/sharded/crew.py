"""The workers of a run: Ray actors that do all of its jobs, and the account of what these took.

One set of processes serves all stages, so that none waits for another start of Python. A worker that dies is started
again by Ray, and only the job that it was at is done again: jobs are made of what is in the work folder alone.

Memory is the resident set as the system counts it: files and shared memory that a process has mapped and looked at are
in it, so workers of one machine count the pages that they share once each.
"""

import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from naysay.augmentation.sharded.part import Part, Recipe
from naysay.engine.placing import environment
from naysay.errors import InputError
from naysay.progress import track

RETRIES = 3
Peak = tuple[str, int]  # which process, and the most bytes that it has held


class Worker:
    """The inside of a worker; it keeps the part of the graph that it last shared labels over."""

    def __init__(self, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self.part: Part | None = None

    def do(self, function: Callable[[Any], Any], item: Any) -> tuple[Any, Peak]:
        """The function's value, and the memory of the process that found it."""
        return function(item), peak_memory()

    def spread(self, recipe: Recipe) -> tuple[Any, Any]:
        """`Part.spread` of the part that the recipe makes."""
        return self._made(recipe).spread()

    def step(self, recipe: Recipe, *labels: Any) -> tuple[Any, float]:
        """`Part.step` of the part that the recipe makes."""
        return self._made(recipe).step(*labels)

    def _made(self, recipe: Recipe) -> Part:
        if self.part is None or self.part.recipe != recipe:
            self.part = Part(recipe)
        return self.part


@dataclass
class Crew:
    """The workers' `apply`, which does a function of every item and gives (value, Peak) in their order; and the
    account.
    """

    apply: Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[tuple[Any, Peak]]]
    workers: Sequence[Any] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)

    def finish(self, function: Callable[[int], Any], files: Sequence[Path], doing: str) -> None:
        """Have the workers make the files that are not there yet: `function` of a number makes the file of that number."""
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
    hire = ray.remote(
        num_cpus=threads, max_restarts=RETRIES, max_task_retries=RETRIES, runtime_env={"env_vars": environment(threads)}
    )(Worker)
    team = [hire.remote(threads) for _ in range(workers)]

    def apply(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[tuple[Any, Peak]]:
        pool: Any = ActorPool(team)
        done: Iterable[tuple[Any, Peak]] = pool.map(lambda worker, item: worker.do.remote(function, item), items)
        return done

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
    unit = 1 if sys.platform == "darwin" else 1024
    return f"{socket.gethostname()}/{os.getpid()}", unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
