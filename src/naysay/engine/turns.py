"""Whose turn it is: jobs are taken one by one when a worker is free, first the new ones, then those to be tried again."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from naysay.engine.jobs import Failure, Job, Outcome
from naysay.errors import InputError


class Reply(NamedTuple):
    """What comes back of one attempt: the value (pickled, where it comes from another process), or the failure, and the
    seconds.
    """

    value: Any
    failure: Failure | None
    seconds: float


@dataclass(frozen=True)
class Attempt:
    """A job and which attempt at it this is, from 1."""

    job: Job
    number: int


class Turns:
    """The jobs that are still to be done, and the rule for those that fail: again, until `attempts` are spent."""

    def __init__(self, jobs: Iterable[Job], attempts: int) -> None:
        if attempts < 1:
            raise InputError(f"attempts must be at least 1; got {attempts}.")
        self._new, self._again, self._attempts = iter(jobs), deque[Attempt](), attempts

    def take(self) -> Attempt | None:
        """The next attempt, None when there is nothing to do at the moment."""
        job = next(self._new, None)
        if job is not None:
            return Attempt(job, 1)
        return self._again.popleft() if self._again else None

    def settle(self, attempt: Attempt, reply: Reply) -> list[Outcome]:
        """The job's outcome in a list, which is empty where it will be tried again."""
        if reply.failure and not reply.failure.refused and attempt.number < self._attempts:
            self._again.append(Attempt(attempt.job, attempt.number + 1))
            return []
        return [Outcome(attempt.job.key, reply.value, reply.failure, attempt.number, reply.seconds)]


def died(how: str) -> Reply:
    """The reply of a worker that can give none."""
    way_out = "Often the system ends a process when memory runs out: fewer workers need less."
    return Reply(None, Failure("WorkerDied", f"the process that ran it {how}. {way_out}"), 0.0)


def occupied() -> InputError:
    """The error of a second `run` before the first has ended."""
    return InputError(
        "this engine is at other jobs already. Run one batch after the other, all as one, or on a second engine."
    )
