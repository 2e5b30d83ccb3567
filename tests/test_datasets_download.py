"""Downloads against real HTTP servers on this machine: whole, resumed, cut, wrong, killed, and two at once."""

import contextlib
import gzip
import hashlib
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request

import numpy as np
import pytest

from naysay.datasets import CATALOG, Source, load
from naysay.datasets.download import StaySecure, fetch
from naysay.errors import InputError

BODY = np.random.default_rng(0).bytes(1_500_000)  # several chunks
SUM = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        body, asked = server.files.get(self.path), self.headers.get("Range")
        server.asked.append((self.path, asked))
        if body is None:
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and server.knows_range else 0
        if asked and server.knows_range and start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", server.content_type)
        self.send_header("Content-Length", str(len(body) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start + server.slip}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        end = len(body) if server.cut is None else min(len(body), start + server.cut)
        middle = (start + end) // 2
        self.wfile.write(body[start:middle])
        self.wfile.flush()
        server.halfway.set()
        server.go_on.wait(20)
        self.wfile.write(body[middle:end])

    def handle(self):
        with contextlib.suppress(ConnectionError):  # a client that was killed
            super().handle()

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.asked, server.knows_range, server.cut, server.slip = {"/file.bin": BODY}, [], True, None, 0
    server.content_type = "application/octet-stream"
    server.halfway, server.go_on = threading.Event(), threading.Event()
    server.go_on.set()
    server.url = f"http://127.0.0.1:{server.server_address[1]}/file.bin"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


def source(server, **changes):
    return replace(Source("sub/file.bin", (server.url,), SUM), **changes)


def left(folder):
    """The names of the files that look like something, lock files apart."""
    return sorted(file.name for file in (folder / "originals" / "sub").iterdir() if not file.name.endswith(".lock"))


def test_a_file_is_brought_once_and_kept(server, tmp_path):
    path = fetch(source(server), tmp_path, "set")
    assert path == tmp_path / "originals" / "sub" / "file.bin"
    assert path.read_bytes() == BODY
    assert fetch(source(server), tmp_path, "set") == path
    assert server.asked == [("/file.bin", None)]
    assert left(tmp_path) == ["file.bin"]


def test_a_part_is_continued(server, tmp_path):
    part = tmp_path / "originals" / "sub" / "file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BODY[:1_000_000])
    assert fetch(source(server), tmp_path, "set").read_bytes() == BODY
    assert server.asked == [("/file.bin", "bytes=1000000-")]
    assert left(tmp_path) == ["file.bin"]


def test_a_part_that_is_already_whole_is_taken(server, tmp_path):
    part = tmp_path / "originals" / "sub" / "file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BODY)
    assert fetch(source(server), tmp_path, "set").read_bytes() == BODY
    assert server.asked == [("/file.bin", f"bytes={len(BODY)}-")]


def test_a_connection_that_breaks_is_followed_by_another(server, tmp_path):
    server.cut = 600_000
    assert fetch(source(server), tmp_path, "set").read_bytes() == BODY
    assert [asked for _, asked in server.asked] == [None, "bytes=600000-", "bytes=1200000-"]


def test_a_server_without_range_starts_over(server, tmp_path):
    server.knows_range = False
    part = tmp_path / "originals" / "sub" / "file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 2_000_000)  # longer than the file: what is left over must go
    assert fetch(source(server), tmp_path, "set").read_bytes() == BODY


def test_a_server_that_breaks_and_knows_no_range_is_given_up(server, tmp_path):
    server.knows_range, server.cut = False, 600_000
    with pytest.raises(InputError, match=r"file.bin could not be downloaded \(.*broke after 600000 of 1500000 bytes"):
        fetch(source(server), tmp_path, "set")
    assert left(tmp_path) == ["file.bin.part"]


def test_a_server_that_sends_another_range_is_not_believed(server, tmp_path):
    server.slip = 7
    part = tmp_path / "originals" / "sub" / "file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BODY[:1000])
    with pytest.raises(InputError, match="the server sent another range than the one asked for"):
        fetch(source(server), tmp_path, "set")


def test_wrong_bytes_leave_nothing(server, tmp_path):
    server.files["/file.bin"] = BODY[:-1] + b"?"
    with pytest.raises(
        InputError,
        match=f"could not be downloaded .*has the SHA-256 [0-9a-f]{{64}}, not the published {SUM}.*put it at",
    ):
        fetch(source(server), tmp_path, "set")
    assert left(tmp_path) == []


def test_a_part_of_another_version_is_dropped_and_begun_anew(server, tmp_path):
    part = tmp_path / "originals" / "sub" / "file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"old" * 1000)
    assert fetch(source(server), tmp_path, "set").read_bytes() == BODY
    assert [asked for _, asked in server.asked] == ["bytes=3000-", None]


def test_a_mirror_stands_in(server, tmp_path):
    urls = (server.url.replace("file.bin", "gone"), server.url)
    assert fetch(source(server, urls=urls), tmp_path, "set").read_bytes() == BODY


def test_a_web_page_is_not_a_file(server, tmp_path):
    server.content_type = "text/html; charset=utf-8"
    with pytest.raises(InputError, match="the server sent a web page instead of the file"):
        fetch(source(server, sha256=None), tmp_path, "set")
    assert left(tmp_path) == []


def test_a_file_without_checksum_never_continues_an_old_part(server, tmp_path):
    part = tmp_path / "originals" / "sub" / "file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"old" * 1000)
    server.cut = 800_000  # within one download it does go on
    assert fetch(source(server, sha256=None), tmp_path, "set").read_bytes() == BODY
    assert [asked for _, asked in server.asked] == [None, "bytes=800000-"]


def test_a_file_without_checksum_is_held_to_the_first_that_was_seen(server, tmp_path):
    unknown = source(server, sha256=None)
    path = fetch(unknown, tmp_path, "set")
    record = path.with_name("file.bin.sha256")
    assert record.read_text() == f"{SUM}\n"
    assert fetch(unknown, tmp_path, "set") == path
    path.unlink()
    server.files["/file.bin"] = b"another version"
    other = hashlib.sha256(b"another version").hexdigest()
    with pytest.raises(
        InputError, match=rf"has the SHA-256 {other}, and the one that was seen here first {SUM}\. Get that"
    ):
        fetch(unknown, tmp_path, "set")
    record.unlink()
    fetch(unknown, tmp_path, "set")
    assert record.read_text() == f"{other}\n"


def test_https_is_not_left_for_http():
    asked, stay = Request("https://home.example/file"), StaySecure()
    assert stay.redirect_request(asked, None, 302, "", {}, "https://mirror.example/file").full_url.endswith("/file")
    with pytest.raises(ConnectionError, match="the server sends from https to http://"):
        stay.redirect_request(asked, None, 302, "", {}, "http://mirror.example/file")


def test_a_file_put_there_by_hand_is_checked_and_left_alone(server, tmp_path):
    path = tmp_path / "originals" / "sub" / "file.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine")
    with pytest.raises(
        InputError, match=f"file.bin has the SHA-256 .*, not the published {SUM}. Delete it to download it again."
    ):
        fetch(source(server), tmp_path, "set")
    assert path.read_bytes() == b"mine"
    assert server.asked == []


def test_without_a_network_the_error_says_which_file_to_put_where(tmp_path):
    entry = replace(
        CATALOG["mnist"], sources=tuple(replace(s, urls=("http://127.0.0.1:9/x",)) for s in CATALOG["mnist"].sources)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CATALOG, "mnist", entry)
        with pytest.raises(InputError) as error:
            load("mnist", tmp_path)
    said = str(error.value)
    assert said.startswith("train-images-idx3-ubyte.gz could not be downloaded (http://127.0.0.1:9/x: ")
    assert (
        f"Get it elsewhere and put it at {tmp_path}/originals/mnist/train-images-idx3-ubyte.gz, or put a ready "
        "mnist.npz in" in said
    )
    assert not (tmp_path / "mnist.npz").exists()


def test_a_folder_that_cannot_be_written_is_said_before_the_network_is_asked(server, tmp_path):
    (tmp_path / "originals").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot be written .* Choose another data folder with data="):
        fetch(source(server), tmp_path, "set")
    assert server.asked == []


def start(server, folder):
    """A process of its own that fetches the file, and says so before it does."""
    code = (
        "import sys; from pathlib import Path; from naysay.datasets.download import Source, fetch; print(flush=True);"
    )
    code += "fetch(Source('sub/file.bin', (sys.argv[1],), sys.argv[2]), Path(sys.argv[3]), 'set')"
    return subprocess.Popen([sys.executable, "-c", code, server.url, SUM, str(folder)], stdout=subprocess.PIPE)


def test_a_process_killed_halfway_leaves_a_part_that_the_next_one_finishes(server, tmp_path):
    server.go_on.clear()
    with start(server, tmp_path) as process:
        part = tmp_path / "originals" / "sub" / "file.bin.part"
        assert server.halfway.wait(30)
        deadline = time.monotonic() + 30
        while not (part.exists() and part.stat().st_size > 0) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    have = part.stat().st_size
    assert 0 < have < len(BODY)
    assert left(tmp_path) == ["file.bin.part"]
    server.go_on.set()
    assert fetch(source(server), tmp_path, "set").read_bytes() == BODY
    assert server.asked[-1] == ("/file.bin", f"bytes={have}-")


def test_two_processes_at_once_bring_the_file_once(server, tmp_path):
    server.go_on.clear()
    with start(server, tmp_path) as one, start(server, tmp_path) as two:
        one.stdout.readline()
        two.stdout.readline()
        assert server.halfway.wait(30)
        time.sleep(0.2)  # time for the second to get in the way, if it could
        server.go_on.set()
    assert one.returncode == two.returncode == 0
    assert (tmp_path / "originals" / "sub" / "file.bin").read_bytes() == BODY
    assert len(server.asked) == 1


def test_load_downloads_decodes_and_keeps_a_set(server, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    made = [rng.integers(0, 10, shape).astype(np.uint8) for shape in ((6, 28, 28), (6,), (4, 28, 28), (4,))]
    sources = []
    for old, array in zip(CATALOG["fashion-mnist"].sources, made, strict=True):
        header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
        content = gzip.compress(header + array.tobytes())
        server.files["/" + old.file] = content
        url = server.url.replace("file.bin", old.file)
        sources.append(Source(old.file, (url,), hashlib.sha256(content).hexdigest()))
    monkeypatch.setitem(CATALOG, "fashion-mnist", replace(CATALOG["fashion-mnist"], sources=tuple(sources)))
    data = load("fashion-mnist", tmp_path)
    for key, array in zip(("x_train", "y_train", "x_test", "y_test"), made, strict=True):
        assert np.array_equal(getattr(data, key), array), key
    assert data.classes[9] == "Ankle boot"
    assert load("fashion-mnist", tmp_path).fingerprint == data.fingerprint
    assert len(server.asked) == 4
