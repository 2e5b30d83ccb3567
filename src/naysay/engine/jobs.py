"""What an engine is given and gives back: independent jobs in, outcomes out, in the order in which they are done.

A job is a module-level function with keywords, so that it can be pickled by name and found again in another process or
on another machine. A job that raises is tried again, up to `attempts` times; then its outcome carries the error and the
rest goes on. An `InputError` is not tried again: the same input would be refused again. All engines follow `Turns`.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from naysay.errors import InputError

ATTEMPTS = 3
# the error of a second `run` before the first has ended
OCCUPIED = "this engine is at other jobs already. Run one batch after the other, all as one, or on a second engine."


@dataclass(frozen=True)
class Job:
    """A key that names it, a module-level function, and its keywords; handles of `Engine.share` may be their values."""

    key: str
    call: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed: the exception's type, message and last lines of traceback; refused: an `InputError`."""

    kind: str
    message: str
    trace: str = ""
    refused: bool = False

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" + (f"\n{self.trace}" if self.trace else "")


@dataclass(frozen=True)
class Outcome:
    """What became of a job: its value, or the error of its last attempt; the attempts, and the seconds of the last."""

    key: str
    value: Any
    error: Failure | None
    attempts: int
    seconds: float


class JobFailed(RuntimeError):
    """A job of `each` failed, with the error of its last attempt."""


class Engine(Protocol):
    """Something that runs jobs: `local` or `ray`."""

    name: str

    @property
    def workers(self) -> int:
        """How many jobs run at the same time."""

    def share(self, value: Any) -> Any:
        """Put something large once where all workers reach it: a handle for the top level of `arguments`.

        The job sees the value. Arrays in it are read-only there, and not copied.
        """

    def run(self, jobs: Iterable[Job], attempts: int = ATTEMPTS) -> Generator[Outcome]:
        """The outcomes in the order of completion; a job is taken from `jobs` only when a worker is free for it."""


def each(engine: Engine, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """`list(map(function, items))` on the workers; the function is sent once, and the first failure is raised."""
    shared = engine.share(function)
    jobs = (Job(str(at), _apply, {"function": shared, "item": item}) for at, item in enumerate(items))
    values = {}
    with closing(engine.run(jobs)) as outcomes:  # a failure ends the other jobs at once
        for outcome in outcomes:
            if outcome.error is not None:
                if outcome.error.refused:
                    raise InputError(outcome.error.message)
                raise JobFailed(f"item {outcome.key} failed {times(outcome.attempts)}: {outcome.error}")
            values[int(outcome.key)] = outcome.value
    return [values[at] for at in range(len(values))]


def _apply(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def times(n: int) -> str:
    """1 -> "once", 3 -> "3 times"."""
    return "once" if n == 1 else f"{n} times"


class Reply(NamedTuple):
    """What one attempt gives: a value (pickled, where it comes from another process) or a failure, and the seconds."""

    value: Any
    failure: Failure | None
    seconds: float


@dataclass(frozen=True)
class Attempt:
    """A job and which attempt at it this is, from 1."""

    job: Job
    number: int


class Turns:
    """The jobs that are still to be done: first the new ones, then those that failed, until `attempts` are spent."""

    def __init__(self, jobs: Iterable[Job], attempts: int) -> None:
        if attempts < 1:
            raise InputError(f"attempts must be at least 1; got {attempts}.")
        self._new, self._again, self._attempts = iter(jobs), deque[Attempt](), attempts

    def take(self) -> Attempt | None:
        """The next attempt, None when there is nothing to do at the moment."""
        if (job := next(self._new, None)) is not None:
            return Attempt(job, 1)
        return self._again.popleft() if self._again else None

    def end(self, attempt: Attempt, reply: Reply) -> list[Outcome]:
        """The job's outcome in a list, which is empty where it will be tried again."""
        if reply.failure and not reply.failure.refused and attempt.number < self._attempts:
            self._again.append(Attempt(attempt.job, attempt.number + 1))
            return []
        return [Outcome(attempt.job.key, reply.value, reply.failure, attempt.number, reply.seconds)]


def died(how: str) -> Reply:
    """The reply of a worker that can give none."""
    way_out = "Often the system ends a process when memory runs out: fewer workers need less."
    return Reply(None, Failure("WorkerDied", f"the process that ran it {how}. {way_out}"), 0.0)
