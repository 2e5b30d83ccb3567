"""Downloads that can be cut at any moment: continued where they stopped, checked, and only then given their name.

A file grows as `<name>.part`. A connection that breaks is followed by another that asks for the rest (HTTP Range), as
long as each brings something; so is a process that died. When the SHA-256 is right, the part is renamed; when it is
wrong, it is removed. A lock beside the file makes a second process wait and then find the work done. A file whose
publisher gives no checksum never continues an old part (nothing could tell two versions apart), and is checked by what
it says when it is decoded; its sum is written beside it (`<name>.sha256`) when it is first seen, and another file of
that name is refused from then on. What is asked for over https is not taken from elsewhere over http.
"""

import hashlib
import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from naysay import files
from naysay.datasets.store import WAY_OUT, require_file
from naysay.errors import InputError
from naysay.progress import bar, wanted

TIMEOUT = 30.0  # seconds without a byte before a connection counts as broken
CHUNK = 1 << 18
BROKEN = (OSError, http.client.HTTPException)  # URLError, timeouts and resets are OSErrors


class StaySecure(HTTPRedirectHandler):
    """Follows a server to another address, but not from https to plain http."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        if req.type == "https" and not newurl.startswith("https:"):
            raise ConnectionError(f"the server sends from https to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


OPENER = build_opener(StaySecure)


@dataclass(frozen=True)
class Source:
    """A published file: its place under `originals/`, home and mirrors, SHA-256 (None: the publisher gives none)."""

    file: str
    urls: tuple[str, ...]
    sha256: str | None


def fetch(source: Source, folder: Path, name: str) -> Path:
    """The path of `source` in the data folder, downloaded if it is not there; `name` is the set it is needed for."""
    path = folder / "originals" / source.file
    if not path.exists():
        from filelock import FileLock

        with files.told(path.parent, WAY_OUT):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path.with_name(f".{path.name}.lock")).acquire()
        with lock:
            if not path.exists():  # another process may have brought it while this one waited
                _download(source, path, f"put it at {path}, or put a ready {name}.npz in {folder}")
    require_file(path, "Delete it to download it again.")
    got = sha256(path)
    if source.sha256 is None:
        _compare_with_first(path, got)
    elif source.sha256 != got:
        wrong = f"the SHA-256 {got}, not the published {source.sha256}"
        raise InputError(f"{path} has {wrong}. Delete it to download it again.")
    return path


def _compare_with_first(path: Path, got: str) -> None:
    """Write down the sum of a file that was never seen before; refuse one that differs from what was."""
    record = path.with_name(f"{path.name}.sha256")
    if not record.exists():
        files.replace(record, f"{got}\n".encode(), WAY_OUT)
    elif (first := record.read_text(encoding="utf-8", errors="replace").strip()) != got:
        wrong = f"the SHA-256 {got}, and the one that was seen here first {first:.64}"
        raise InputError(f"{path} has {wrong}. Get that one again, or delete {record} to trust this one.")


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(source: Source, path: Path, way_out: str) -> None:
    part = path.with_name(path.name + ".part")
    if source.sha256 is None:
        part.unlink(missing_ok=True)
    # with an old part the first address gets a second chance: the part may be of another version, and is then removed
    urls = (source.urls[0], *source.urls) if part.exists() else source.urls
    failures: dict[str, str] = {}
    for url in urls:
        try:
            _transfer(url, part)
            got = sha256(part)
            if source.sha256 in (None, got):
                files.put_in_place(part, path)
                return
            part.unlink()
            failures[url] = f"has the SHA-256 {got}, not the published {source.sha256}"
        except BROKEN as error:
            failures[url] = str(error) or type(error).__name__
    reasons = "; ".join(f"{url}: {reason}" for url, reason in failures.items())
    raise InputError(f"{path.name} could not be downloaded ({reasons}). Get it elsewhere and {way_out}.")


def _transfer(url: str, part: Path) -> None:
    """Bring the rest of `part` from `url`, over as many connections as it takes."""
    while True:
        have = _size(part)
        try:
            return _connect(url, part, have)
        except BROKEN:
            if _size(part) <= have:
                raise


def _connect(url: str, part: Path, have: int) -> None:
    """One connection: append to the `have` bytes of `part`, or begin anew where the server does not know Range."""
    headers = {"User-Agent": "naysay"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response = OPENER.open(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # nothing lies beyond what is here: the checksum will say whether it is the file
        raise
    with response:
        if response.headers.get_content_type() == "text/html":
            raise ConnectionError("the server sent a web page instead of the file")
        start = have if response.status == http.client.PARTIAL_CONTENT else 0
        if start and not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            raise ConnectionError("the server sent another range than the one asked for")
        whole = None if response.length is None else start + response.length
        with part.open("r+b" if part.exists() else "wb") as file, _progress(part.stem, start, whole) as advance:
            file.seek(start)
            file.truncate()
            while chunk := response.read(CHUNK):
                file.write(chunk)
                advance(len(chunk))
            if whole is not None and file.tell() < whole:
                raise ConnectionError(f"the connection broke after {file.tell()} of {whole} bytes")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextmanager
def _progress(label: str, done: int, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on the terminal, silent elsewhere; gives the function that moves it on by so many bytes."""
    from rich import progress

    text, amount = progress.TextColumn("{task.description}"), progress.DownloadColumn()
    speed, left = progress.TransferSpeedColumn(), progress.TimeRemainingColumn()
    shown = bar(text, progress.BarColumn(), amount, speed, left)
    shown.disable = not wanted()
    with shown:
        task = shown.add_task(label, total=total, completed=done)
        yield lambda n: shown.advance(task, n)
