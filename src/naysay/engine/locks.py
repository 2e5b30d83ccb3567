"""Locks beside a ledger, in the folder `.NAME.locks`: one for adding to it, and one per job that is being done, its
lease.

They are the operating system's locks on open files, so that a process that dies, however it dies, holds nothing any
more.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from naysay import files


def of(path: Path, name: str) -> Any:
    """The lock `name` of the ledger at `path`, to be entered, or acquired with a timeout."""
    from filelock import FileLock

    folder = path.with_name(f".{path.name}.locks")
    with files.told(path):
        folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / f"{name}.lock")


class Leases:
    """The jobs of a ledger that this process is doing: no other process takes them in the meantime."""

    def __init__(self, path: Path) -> None:
        self._path, self._held = path, dict[str, Any]()

    def take(self, key: str) -> bool:
        """Whether the job is now this process's; not where another one is at it."""
        from filelock import Timeout

        lock = of(self._path, hashlib.blake2b(key.encode(), digest_size=16).hexdigest())
        with files.told(self._path):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                return False
        self._held[key] = lock
        return True

    def give_back(self, key: str) -> None:
        """The job stands in the ledger now."""
        # whoever has opened the file by now gets the lock on a file without a name, and then finds the job in the
        # ledger
        with suppress(FileNotFoundError, PermissionError):
            Path(self._held[key].lock_file).unlink()
        self._held.pop(key).release()

    def abandon(self) -> None:
        """Leave what is not done to others."""
        while self._held:
            self._held.popitem()[1].release()
