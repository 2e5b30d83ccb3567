"""Jobs one after another in this process: for one GPU, for a debugger, and for functions that cannot be pickled."""

import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from naysay.engine.jobs import ATTEMPTS, Job, Outcome
from naysay.engine.packing import Handle
from naysay.engine.turns import Reply, Turns
from naysay.engine.worker import failure


@dataclass(frozen=True, eq=False)
class Held(Handle):
    """A handle of what never leaves this process."""

    value: Any


class Here:
    """The local engine without workers."""

    name = "local"
    workers = 1

    @classmethod
    @contextmanager
    def with_threads(cls, threads: int | None) -> Iterator[Self]:
        """The engine, while torch uses so many threads (None: as it does anyway)."""
        if threads is None:
            yield cls()
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            yield cls()
        finally:
            torch.set_num_threads(before)

    def share(self, value: Any) -> Held:
        """The value, in a handle as the other engines give it."""
        return Held(value)

    def run(self, jobs: Iterable[Job], attempts: int = ATTEMPTS) -> Generator[Outcome]:
        """The outcomes one after another."""
        turns = Turns(jobs, attempts)
        while (attempt := turns.take()) is not None:
            yield from turns.settle(attempt, _perform(attempt.job))


def _perform(job: Job) -> Reply:
    started = time.perf_counter()
    try:
        arguments = {name: value.value if isinstance(value, Held) else value for name, value in job.arguments.items()}
        return Reply(job.call(**arguments), None, time.perf_counter() - started)
    except (Exception, SystemExit) as error:  # as in a worker: whatever a job raises is its outcome
        return Reply(None, failure(error), time.perf_counter() - started)
