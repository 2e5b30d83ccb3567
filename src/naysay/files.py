"""Files that are whole at every moment: a kill -9 or a full disk leaves the old one or the new one, never a piece.

A file is written beside its place under a hidden name of its own, so that two writers never meet, forced to disk,
renamed over the old one, and the folder forced to disk. The name keeps the ending, for writers that go by it. What the
system says of a place that cannot be written becomes one sentence (`told`).
"""

import errno
import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from naysay.errors import InputError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WAY_OUT = "Choose a place that you may write to."


def replace(path: Path, content: bytes, way_out: str = WAY_OUT) -> None:
    """Make the file `path` hold `content`; folders on the way are made."""
    with replacing(path, way_out) as temporary:
        temporary.write_bytes(content)


@contextmanager
def replacing(path: Path, way_out: str = WAY_OUT) -> Iterator[Path]:
    """A new empty file to fill, which takes the name `path` when the block ends well and is removed when it does not.

    A place that cannot be written shows on entering, before the work. `way_out` ends the sentence that says so.
    """
    temporary = beside(path)
    with told(path, way_out):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch(exist_ok=False)
    try:
        try:
            yield temporary
        except OSError as error:
            if error.errno in FULL or error.filename in (temporary, str(temporary)):
                raise refusal(path, error, way_out) from error
            raise  # of something else that the block does: its own words are better
        with told(path, way_out):
            put_in_place(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def put_in_place(temporary: Path, path: Path) -> None:
    """Force a finished file, or a folder with all that is in it, to disk and rename it to `path` in the same folder."""
    force(temporary)
    os.replace(temporary, path)
    _force_folder(path.parent)


def force(path: Path) -> None:
    """See a file, or a folder with all that is in it, onto the disk."""
    for part in [path, *path.rglob("*")]:
        if part.is_dir():
            _force_folder(part)
        else:
            with part.open("rb+") as file:
                os.fsync(file.fileno())


def beside(path: Path) -> Path:
    """A hidden name beside `path` that nobody else has, with its ending."""
    return path.with_name(f".{path.stem[:40]}.{secrets.token_hex(4)}.tmp{path.suffix}")


def sweep(path: Path) -> None:
    """Remove what killed writers of `path` left beside it; only for one who knows that nobody is writing it now."""
    for left in path.parent.glob(f".{glob.escape(path.stem[:40])}.????????.tmp{glob.escape(path.suffix)}"):
        left.unlink(missing_ok=True)


def probe(path: Path, n_bytes: int) -> None:
    """Write `n_bytes` beside `path` and remove them: a full disk or a read-only folder then shows before the work."""
    temporary = beside(path)
    with told(path, n_bytes=n_bytes):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                for start in range(0, n_bytes, 1 << 20):
                    file.write(bytes(min(1 << 20, n_bytes - start)))
                file.flush()
                os.fsync(file.fileno())
        finally:
            with suppress(OSError):
                temporary.unlink()


@contextmanager
def told(path: Path, way_out: str = WAY_OUT, *, n_bytes: int | None = None) -> Iterator[None]:
    """What the system says of a place that cannot be written, as an InputError."""
    try:
        yield
    except OSError as error:
        raise refusal(path, error, way_out, n_bytes) from error


def refusal(path: Path, error: OSError, way_out: str = WAY_OUT, n_bytes: int | None = None) -> InputError:
    """The sentence for `error` on writing `path`, of which `n_bytes` are needed."""
    reason = error.strerror or str(error)
    if error.errno in FULL:
        need = "" if n_bytes is None else f" (about {n_bytes / 1e6:.1f} MB are needed)"
        return InputError(
            f"the disk of {path.parent} has no room for {path.name}{need}: {reason}. "
            "Free some space or choose another folder."
        )
    return InputError(f"{path} cannot be written ({reason}). {way_out}")


def _force_folder(folder: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened, and the rename needs no help
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
