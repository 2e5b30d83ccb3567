"""A ledger: a file of JSON lines, one record per key, that many processes may add to and that no kill can spoil.

A record is on the disk when `add` returns. Adding is locked, looks first for what others have added, and removes the
beginning of a line that a killed process left at the end. A record with "failed" says that a job was given up; it is no
result, and a result takes its place.

In the folder `.NAME.locks` beside it are a lock for adding, and one per job that is being done, its lease. They are the
operating system's locks on open files, so that a process that dies, however it dies, holds nothing any more.

`run_recorded` does the jobs that have no result yet, and records each before all else, so that a driver that is killed
and started again goes on where it stopped. Several drivers may work on one ledger: each takes a lease on a job before
it starts it, does what the others leave, and at the end waits for what they are at; when one dies, its lease is free
and its job is done here. A job that failed is tried again by another call, not by the calls that saw it fail.
"""

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from io import FileIO
from pathlib import Path
from typing import IO, Any

from naysay import files
from naysay.engine.jobs import ATTEMPTS, Engine, Job, Outcome, times
from naysay.errors import InputError
from naysay.progress import track

POLL = 0.5  # seconds between two looks at what another driver is doing

Record = dict[str, Any]


class Ledger:
    """The records of the file at `path`, which need not exist yet."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._forget(-1)

    def read(self) -> list[Record]:
        """One record per key, in the order of their first lines: the result, or else the last failure."""
        self._look()
        return list(self._records.values())

    def keys(self) -> set[str]:
        """The keys that have a result."""
        return {record["key"] for record in self.read() if "failed" not in record}

    def get(self, key: str) -> Record | None:
        """The record of the key: the result, or else the last failure."""
        self._look()
        return self._records.get(key)

    def add(self, record: Mapping[str, Any]) -> bool:
        """Write the record to the disk; False, and nothing written, where its key has a result already."""
        line = _line(record)
        with files.told(self.path), _lock(self.path, "ledger"), open(self.path, "a+b", buffering=0) as file:
            self._catch_up(file)
            if self._has_result(record["key"]):
                return False
            file.truncate(self._end)  # the beginning of a line that nobody is writing any more
            try:
                if file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(self._end)
                raise
            self._catch_up(file)
        return True

    def _look(self) -> None:
        try:
            with open(self.path, "rb") as file:
                self._catch_up(file)
        except FileNotFoundError:
            self._forget(-1)

    def _catch_up(self, file: IO[bytes] | FileIO) -> None:
        """Read the whole lines that were added since the last time."""
        state = os.fstat(file.fileno())
        if state.st_ino != self._inode or state.st_size < self._end:  # another file, or one that was cut
            self._forget(state.st_ino)
        file.seek(self._end)
        *whole, _ = file.read().split(b"\n")  # the last one is being written at this moment, or was never finished
        for line in whole:
            where = f"{self.path}:{self._lines + 1}"  # counted when it is in: after an error it is read again
            record = _parse(line, where)
            key = record["key"]
            if self._has_result(key):
                raise InputError(f"{where} is a second record of {key!r}. Remove one of the two lines.")
            self._records[key] = record
            self._lines += 1
            self._end += len(line) + 1

    def _has_result(self, key: str) -> bool:
        return "failed" not in self._records.get(key, {"failed": ""})

    def _forget(self, inode: int) -> None:
        self._records: dict[str, Record] = {}
        self._lines, self._end, self._inode = 0, 0, inode  # how much of which file has been read


def _parse(line: bytes, where: str) -> Record:
    try:
        record = json.loads(line)
        if isinstance(record, dict) and isinstance(record.get("key"), str):
            return record
        problem = 'it has no "key"'
    except (ValueError, RecursionError) as error:
        problem = str(error)
    raise InputError(f"{where} is not a record ({problem}). Remove the line, or use another file.")


def _line(record: Mapping[str, Any]) -> bytes:
    key = record.get("key")
    if not isinstance(key, str):
        raise InputError(f'a record needs a "key", a text; got {key!r}.')
    try:
        return (json.dumps(dict(record), allow_nan=False) + "\n").encode()
    except (TypeError, ValueError) as error:
        why = f"the record {key!r} cannot be written as JSON: {error}"
        raise InputError(f"{why}. Give numbers, texts, lists and mappings.") from error


def _lock(path: Path, name: str) -> Any:
    """The lock `name` of the ledger at `path`, to be entered, or acquired with a timeout."""
    from filelock import FileLock

    folder = path.with_name(f".{path.name}.locks")
    with files.told(path):
        folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{name}.lock")


def _lease(path: Path, key: str) -> Any:
    """The lock that keeps other processes from the job while this one does it; None where another one is at it."""
    from filelock import Timeout

    lock = _lock(path, hashlib.blake2b(key.encode(), digest_size=16).hexdigest())
    with files.told(path), suppress(Timeout):
        lock.acquire(timeout=0)
        return lock
    return None


def _give_back(lease: Any) -> None:
    """The job stands in the ledger now."""
    # whoever has opened the file by now gets the lock on a file without a name, then finds the job in the ledger
    with suppress(FileNotFoundError, PermissionError):
        Path(lease.lock_file).unlink()
    lease.release()


def run_recorded(
    engine: Engine,
    jobs: Iterable[Job],
    ledger: Ledger,
    *,
    attempts: int = ATTEMPTS,
    doing: str = "jobs",
    tell: Callable[[str], None] | None = None,
) -> Iterator[Record]:
    """The records of the jobs that have no result in the ledger yet, each when it is done, here or by another driver.

    A job's value is a mapping ready for JSON; its record is {"key": ..., "seconds": ..., **value}, or, where it failed
    for good, {"key": ..., "failed": the error, "attempts": ...}. A bar is called `doing`; `tell` gets a line per job.
    """
    have, asked = ledger.keys(), dict[str, Job]()
    for job in jobs:
        if job.key in asked:
            raise InputError(f"the key of each job must be its own; got {job.key!r} twice.")
        asked[job.key] = job
    pending = {key: job for key, job in asked.items() if key not in have}
    total = len(pending)
    for done, record in enumerate(track(_records(engine, pending, ledger, attempts), total, doing), 1):
        if tell is not None:
            tell(f"{done}/{total} {_told(record)}")
        yield record


def _records(engine: Engine, pending: dict[str, Job], ledger: Ledger, attempts: int) -> Iterator[Record]:
    before = {record["key"]: record for record in ledger.read() if "failed" in record}  # of earlier calls
    leases: dict[str, Any] = {}

    def news(key: str) -> Record | None:
        record = ledger.get(key)
        return None if record is before.get(key) else record

    def free() -> Iterator[Job]:
        for key, job in list(pending.items()):
            if (lease := _lease(ledger.path, key)) is not None:
                leases[key] = lease
                if news(key) is None:
                    yield job
                else:  # done by another driver a moment ago
                    _give_back(leases.pop(key))

    try:
        while pending:
            with closing(engine.run(free(), attempts)) as outcomes:
                for outcome in outcomes:
                    ledger.add(_record(outcome))
                    _give_back(leases.pop(outcome.key))
                    del pending[outcome.key]
                    yield ledger.get(outcome.key) or {}
            for key in list(pending):
                if (record := news(key)) is not None:
                    del pending[key]
                    yield record
            if pending:
                time.sleep(POLL)
    finally:  # what is not done is left to others
        for lease in leases.values():
            lease.release()


def _record(outcome: Outcome) -> Record:
    if outcome.error is not None:
        return {"key": outcome.key, "failed": str(outcome.error), "attempts": outcome.attempts}
    if not isinstance(outcome.value, dict):
        kind = type(outcome.value).__name__
        raise InputError(f"a recorded job must return a mapping for its record; {outcome.key!r} gave a {kind}.")
    return {"key": outcome.key, "seconds": round(outcome.seconds, 3), **outcome.value}


def _told(record: Record) -> str:
    if "failed" in record:
        return f"{record['key']}: failed {times(record['attempts'])}, {record['failed'].splitlines()[0]}"
    return f"{record['key']}: {record.get('seconds', 0.0):.1f} s"
