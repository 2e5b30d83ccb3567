"""Files that are whole at every moment: a kill -9 or a full disk leaves the old one or the new one, never a piece.

A file is written in a hidden folder beside its place that is its writer's alone, so that two writers never meet, forced
to disk, renamed over the old one, and the folder forced to disk. It keeps its ending, for writers that go by it. What
the system says of a place that cannot be written becomes one sentence (`told`).

The hidden folder, `.NAME.naysay-TOKEN.tmp`, holds a file `.lock` that is locked while the writer lives. The lock is the
operating system's, on an open file, so it dies with its process, however that dies: whoever writes into a folder first
removes what nobody holds there (`sweep`). Where a writer must be the only one, the token follows from the name, and a
second writer finds it locked. A file system without locks keeps nobody out, and nothing is swept there.
"""

import errno
import hashlib
import itertools
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from naysay.errors import InputError

try:
    import fcntl
except ImportError:  # not posix: as on a file system without locks
    fcntl = None  # type: ignore[assignment]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WAY_OUT = "Choose a place that you may write to."
UNFINISHED = re.compile(r"\..*\.naysay-[0-9a-f]{8}\.tmp", re.DOTALL)
LOOKS = 5  # at a hidden folder that another process holds, before it is taken for a writer's
LOCK, NEW, OLD = ".lock", "new", "old"  # in a hidden folder: who holds it, the new folder, and what made way for it
LONGEST = 255  # bytes of a name, on the usual file systems
IN_THE_WAY = (errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR)


class Taken(Exception):
    """A name that another program gave to something of its own; `old` is where that lies now which was to make way."""

    def __init__(self, path: Path, old: Path | None = None) -> None:
        super().__init__(path)
        self.old = old


def put_in_place(temporary: Path, path: Path) -> None:
    """Force a finished file, or a folder with all that is in it, to disk and rename it to `path`."""
    force(temporary)
    os.replace(temporary, path)
    _force_folder(path.parent)


def replace(path: Path, content: bytes, way_out: str = WAY_OUT) -> None:
    """Make the file `path` hold `content`; folders on the way are made."""
    with replacing(path, way_out) as temporary:
        temporary.write_bytes(content)


@contextmanager
def replacing(
    path: Path, way_out: str = WAY_OUT, *, busy: str = "", finish: Callable[[Path, Path], None] = put_in_place
) -> Iterator[Path]:
    """A new empty file to fill, which takes the name `path` when the block ends well and is removed when it does not.

    A place that cannot be written shows on entering, before the work. `way_out` ends the sentence that says so.
    busy: what a second writer of `path` is told; without it each writes, and the last one's file stays.
    finish: gives the filled file its name.
    """
    with hidden(path, way_out, busy) as place:
        temporary = place / f"new{path.suffix}"
        with told(path, way_out):
            temporary.write_bytes(b"")
        try:
            yield temporary
        except OSError as error:
            if error.errno in FULL or error.filename in (temporary, str(temporary)):
                raise refusal(path, error, way_out) from error
            raise  # of something else that the block does: its own words are better
        with told(path, way_out):
            finish(temporary, path)


@contextmanager
def hidden(path: Path, way_out: str = WAY_OUT, busy: str = "") -> Iterator[Path]:
    """A hidden empty folder beside `path`, this process's alone until the block ends; then nothing of it is left."""
    if path.name in ("", ".."):
        raise InputError(f"{path} names a folder that is there, not something new. Choose a name.")
    with told(path, way_out):
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            path.lstat()  # a name that is too long shows now, not when what was made is to get it
        sweep(path.parent)
        place, handle = _take(path, alone=bool(busy))
    if handle is None:
        raise InputError(busy)
    try:
        yield place
    finally:
        _remove(place)
        os.close(handle)


def claim(new: Path, path: Path) -> None:
    """Give a file or folder a name that nothing has but an empty folder; Taken, in the same step, where something has.

    It is not forced to disk first: that takes time, in which what was looked at changes.
    """
    try:
        if new.is_dir():
            os.rename(new, path)  # which replaces no folder that holds something, and no file
        else:
            _link(new, path)
    except OSError as error:
        if error.errno not in IN_THE_WAY or not path.parent.is_dir():
            raise
        raise Taken(path) from error
    _force_folder(path.parent)


def overwrite(new: Path, path: Path) -> None:
    """Give a file a name, in the place of any file that has it; Taken where a folder has."""
    try:
        os.replace(new, path)
    except IsADirectoryError as error:
        raise Taken(path) from error
    _force_folder(path.parent)


def _link(new: Path, path: Path) -> None:
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:  # no hard links here (FAT, some network disks): between this look and the rename is a short moment
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(new, path)
    else:
        new.unlink()


def claim_near(new: Path, path: Path, first: int = 1) -> Path:
    """Give a file or folder the name `path`, or the next free one (a-2.csv of a.csv), which is returned."""
    for number in itertools.count(first):
        spare = path if number == 1 else _numbered(path, number)
        with suppress(Taken):
            claim(new, spare)
            return spare
    raise AssertionError("numbers do not end")


def _numbered(path: Path, number: int) -> Path:
    """The path with a number after its stem, which is cut where the name would be too long for a file."""
    stem, end = path.stem, f"-{number}{path.suffix}"
    while stem and len(os.fsencode(stem + end)) > LONGEST:
        stem = stem[:-1]
    return path.with_name(stem + end)


def exchange(new: Path, path: Path, replaceable: Callable[[Path], bool]) -> None:
    """Give the folder `new`, which is in the hidden one, the name `path`; what has it makes way, and then goes.

    Where something else comes in between, Taken says so, and neither the new folder nor the old one is lost.
    """
    with suppress(Taken):
        claim(new, path)
        return
    aside = new.with_name(OLD) / path.name  # by its name, so that it is put back where this process dies now
    aside.parent.mkdir(exist_ok=True)
    path.rename(aside)
    meant = path.parent / os.readlink(aside) if aside.is_symlink() else aside
    if not replaceable(meant):  # it came after the look
        claim_near(aside, path)
        raise Taken(path)
    try:
        claim(new, path)
    except Taken:
        raise Taken(path, claim_near(aside, path)) from None


def force(path: Path) -> None:
    """See a file, or a folder with all that is in it, onto the disk."""
    for part in [path, *path.rglob("*")]:
        if part.is_dir():
            _force_folder(part)
        else:
            with part.open("rb+") as file:
                os.fsync(file.fileno())


def is_unfinished(path: Path) -> bool:
    """Whether the path has the name of a hidden folder."""
    return UNFINISHED.fullmatch(path.name) is not None


def sweep(folder: Path) -> None:
    """Remove what dead writers left unfinished in the folder; what a living one holds stays."""
    with suppress(OSError):  # a folder that cannot be listed is not swept
        for left in [path for path in folder.iterdir() if is_unfinished(path) and not path.is_symlink()]:
            with suppress(OSError):  # another user's, or another process is sweeping it
                handle = os.open(left / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
                try:
                    if _lock(handle) and _is_at(left / LOCK, handle):
                        _remove(left)
                finally:
                    os.close(handle)


def probe(path: Path, n_bytes: int) -> None:
    """Write `n_bytes` beside `path` and remove them: a full disk or a read-only folder then shows before the work."""
    with hidden(path) as place, told(path, n_bytes=n_bytes), (place / "new").open("xb") as file:
        for start in range(0, n_bytes, 1 << 20):
            file.write(bytes(min(1 << 20, n_bytes - start)))
        file.flush()
        os.fsync(file.fileno())


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


def _take(path: Path, *, alone: bool) -> tuple[Path, int | None]:
    """The hidden folder of a writer of `path`, and the open file by which it is held; None where another holds it."""
    looks = 0
    while True:
        looks += 1
        token = hashlib.blake2b(os.fsencode(path.name), digest_size=4).hexdigest() if alone else secrets.token_hex(4)
        place = path.with_name(f".{path.stem[:40]}.naysay-{token}.tmp")
        try:
            place.mkdir(exist_ok=True)
            handle = os.open(place / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # swept between the two lines
            if looks == LOOKS:
                raise
            continue
        locked = _lock(handle)
        if locked is not False and _is_at(place / LOCK, handle):
            return place, handle
        os.close(handle)
        if locked is False and alone:
            if looks >= LOOKS:
                return place, None
            time.sleep(0.02)  # one who sweeps holds it for a moment


def _lock(handle: int) -> bool | None:
    """Lock an open file until it is closed: whether it is ours now; None where the file system has no locks."""
    try:
        if fcntl is None:
            return None
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(path: Path, handle: int) -> bool:
    """Whether the open file is still the one at `path`."""
    return path.exists() and os.path.samestat(path.stat(), os.fstat(handle))


def _remove(place: Path) -> None:
    """Remove a hidden folder; a folder that had made way for one that never came is put back first."""
    with suppress(OSError):
        for old in (place / OLD).iterdir() if (place / OLD).is_dir() else ():
            if (place / NEW).exists() or not os.path.lexists(place.with_name(old.name)):
                claim_near(old, place.with_name(old.name))
        # under a name that nobody else takes, since the next writer of the same file may come meanwhile
        aside = place.with_name(f".{secrets.token_hex(4)}.naysay-{secrets.token_hex(4)}.tmp")
        place.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def _force_folder(folder: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened, and the rename needs no help
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
