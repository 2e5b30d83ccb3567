"""Jobs whose results are kept: what the ledger has is not done again, what is done is in the ledger before anything
else happens.

So a driver that is killed and started again goes on where it stopped, and several drivers may work on one ledger: each
takes a lease on a job before it starts it, does what the others leave, and at the end waits for what they are at; when
one of them dies, its lease is free and its job is done here. A job that failed is no result: another call tries it
again, the calls that saw it fail do not.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

from naysay.engine.jobs import ATTEMPTS, Engine, Job, Outcome, times
from naysay.engine.ledger import Ledger, Record
from naysay.engine.locks import Leases
from naysay.errors import InputError
from naysay.progress import track

POLL = 0.5  # seconds between two looks at what another driver is doing


def run_recorded(
    engine: Engine,
    jobs: Iterable[Job],
    ledger: Ledger,
    *,
    attempts: int = ATTEMPTS,
    doing: str = "jobs",
    tell: Callable[[str], None] | None = None,
) -> Iterator[Record]:
    """The records of the jobs that have no result in the ledger yet, each as soon as it is done, here or by another
    driver.

    A job's value is a mapping ready for JSON; its record is {"key": ..., "seconds": ..., **value}, or, where it failed
    for good, {"key": ..., "failed": the error, "attempts": ...}. A terminal shows a bar called `doing`; `tell` gets a
    line per finished job.
    """
    pending = _pending(jobs, ledger)
    total = len(pending)
    for done, record in enumerate(track(_records(engine, pending, ledger, attempts), total, doing), 1):
        if tell is not None:
            tell(f"{done}/{total} {_line(record)}")
        yield record


def _pending(jobs: Iterable[Job], ledger: Ledger) -> dict[str, Job]:
    have, pending, seen = ledger.keys(), dict[str, Job](), set[str]()
    for job in jobs:
        if job.key in seen:
            raise InputError(f"the key of each job must be its own; got {job.key!r} twice.")
        seen.add(job.key)
        if job.key not in have:
            pending[job.key] = job
    return pending


def _records(engine: Engine, pending: dict[str, Job], ledger: Ledger, attempts: int) -> Iterator[Record]:
    before = {record["key"]: record for record in ledger.read() if "failed" in record}  # of earlier calls
    leases = Leases(ledger.path)

    def news(key: str) -> Record | None:
        record = ledger.get(key)
        return None if record is before.get(key) else record

    def free() -> Iterator[Job]:
        for key, job in list(pending.items()):
            if leases.take(key):
                if news(key) is None:
                    yield job
                else:  # done by another driver a moment ago
                    leases.give_back(key)

    try:
        while pending:
            with closing(engine.run(free(), attempts)) as outcomes:
                for outcome in outcomes:
                    ledger.add(_record(outcome))
                    leases.give_back(outcome.key)
                    del pending[outcome.key]
                    yield ledger.get(outcome.key) or {}
            for key in list(pending):
                if (record := news(key)) is not None:
                    del pending[key]
                    yield record
            if pending:
                time.sleep(POLL)
    finally:
        leases.abandon()


def _record(outcome: Outcome) -> Record:
    if outcome.error is not None:
        return {"key": outcome.key, "failed": str(outcome.error), "attempts": outcome.attempts}
    if not isinstance(outcome.value, dict):
        raise InputError(
            f"a recorded job must return a mapping for its record; {outcome.key!r} gave a "
            f"{type(outcome.value).__name__}."
        )
    return {"key": outcome.key, "seconds": round(outcome.seconds, 3), **outcome.value}


def _line(record: Record) -> str:
    if "failed" in record:
        return f"{record['key']}: failed {times(record['attempts'])}, {record['failed'].splitlines()[0]}"
    return f"{record['key']}: {record.get('seconds', 0.0):.1f} s"
