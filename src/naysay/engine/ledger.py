"""A ledger: a file of JSON lines, one record per key, that any number of processes may add to and that no kill can
spoil.

A record is on the disk when `add` returns. Adding is locked, looks first for what others have added, and removes the
beginning of a line that a killed process left at the end. A record with "failed" says that a job was given up; it is no
result, and a result takes its place.
"""

import errno
import json
import os
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import IO, Any

from naysay import files
from naysay.engine import locks
from naysay.errors import InputError

Record = dict[str, Any]


class Ledger:
    """The records of the file at `path`, which need not exist yet."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._records: dict[str, Record] = {}
        self._lines, self._end, self._inode = 0, 0, -1  # how much of which file has been read

    def read(self) -> list[Record]:
        """One record per key, in the order of their first lines: the result, or else the last failure."""
        self._look()
        return list(self._records.values())

    def keys(self) -> set[str]:
        """The keys that have a result."""
        self._look()
        return {key for key, record in self._records.items() if "failed" not in record}

    def get(self, key: str) -> Record | None:
        """The record of the key: the result, or else the last failure."""
        self._look()
        return self._records.get(key)

    def add(self, record: Mapping[str, Any]) -> bool:
        """Write the record to the disk; False, and nothing written, where its key has a result already."""
        line = _line(record)
        lock = locks.of(self.path, "ledger")
        with files.told(self.path), lock, open(self.path, "a+b", buffering=0) as file:
            self._catch_up(file)
            if "failed" not in self._records.get(record["key"], {"failed": ""}):
                return False
            file.truncate(self._end)  # the beginning of a line that nobody is writing any more
            try:
                written = file.write(line)
                if written != len(line):
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
        for line in file.read().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break  # being written at this moment, or never finished
            self._lines += 1
            record = self._parse(line)
            if "failed" not in self._records.get(record["key"], {"failed": ""}):
                raise InputError(
                    f"{self.path}:{self._lines} is a second record of {record['key']!r}. Remove one of the two lines."
                )
            self._records[record["key"]] = record
            self._end += len(line)

    def _forget(self, inode: int) -> None:
        self._records, self._lines, self._end, self._inode = {}, 0, 0, inode

    def _parse(self, line: bytes) -> Record:
        try:
            record = json.loads(line)
            if isinstance(record, dict) and isinstance(record.get("key"), str):
                return record
            problem = 'it has no "key"'
        except ValueError as error:
            problem = str(error)
        raise InputError(
            f"{self.path}:{self._lines} is not a record ({problem}). Remove the line, or use another file."
        )


def _line(record: Mapping[str, Any]) -> bytes:
    key = record.get("key")
    if not isinstance(key, str):
        raise InputError(f'a record needs a "key", a text; got {key!r}.')
    try:
        return (json.dumps(dict(record), allow_nan=False) + "\n").encode()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the record {key!r} cannot be written as JSON: {error}. Give numbers, texts, lists and mappings."
        ) from error
