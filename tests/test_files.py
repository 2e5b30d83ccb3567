"""Files are whole at every moment: after failures, kills and full disks there is the old or the new one, no litter."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from full_disk import files_of_at_most

from naysay import files
from naysay.errors import InputError
from naysay.neighbors import from_arrays


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "new folder" / "a.txt"
    files.replace(path, b"first")
    files.replace(path, b"second")
    assert path.read_bytes() == b"second"
    assert names(tmp_path) == ["a.txt", "new folder"]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    files.replace(tmp_path / "ours", b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_block_that_fails_leaves_the_old_file_and_its_own_error(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"old")

    def fail(error):
        with files.replacing(path) as temporary:
            temporary.write_bytes(b"half")
            raise error

    for error in (KeyError("x"), FileNotFoundError(2, "No such file", "elsewhere"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as raised:
            fail(error)
        assert raised.value is error
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.npz"]


def test_the_temporary_file_stands_in_a_hidden_folder_beside_its_place_with_its_ending(tmp_path):
    with files.replacing(tmp_path / ("long " * 40 + ".tar.gz")) as temporary, files.replacing(tmp_path / "b") as other:
        assert (temporary.parent.parent, temporary.suffix, temporary.parent.name[0]) == (tmp_path, ".gz", ".")
        assert (other.suffix, other.parent.name[0]) == ("", ".")


@pytest.fixture
def full_disk():
    with files_of_at_most(1_000):
        yield


def test_a_full_disk_is_one_sentence(tmp_path, full_disk):
    path = tmp_path / "a.bin"
    files.replace(path, b"old")
    with pytest.raises(
        InputError, match=r"^the disk of .* has no room for a.bin: .*\. Free some space or choose another folder\.$"
    ):
        files.replace(path, bytes(2_000))
    with (
        pytest.raises(InputError, match=r"has no room for a\.bin"),
        files.replacing(path) as temporary,
        temporary.open("wb") as file,
    ):
        file.write(bytes(2_000))
    with pytest.raises(InputError, match=r"has no room for a.bin \(about 2.0 MB are needed\)"):
        files.probe(path, 2_000_000)
    files.probe(path, 900)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_a_place_that_cannot_be_written_shows_before_the_work_and_has_a_way_out(tmp_path):
    (tmp_path / "file").write_bytes(b"in the way")
    for path in (tmp_path / "file" / "a.txt", tmp_path / "file" / "b" / "a.txt"):
        with (
            pytest.raises(InputError, match=r"a.txt cannot be written \(.*\)\. Ask Anna\.$"),
            files.replacing(path, "Ask Anna."),
        ):
            raise AssertionError("the work had begun")
    with pytest.raises(InputError, match=r"cannot be written \(.*irectory.*Choose a place that you may write to"):
        files.replace(tmp_path, b"")
    assert (tmp_path / "file").read_bytes() == b"in the way"


def test_a_temporary_file_that_its_writer_cannot_open_is_told(tmp_path):
    def write():
        with files.replacing(tmp_path / "a.txt") as temporary:
            temporary.unlink()
            temporary.mkdir()
            temporary.write_bytes(b"")

    with pytest.raises(InputError, match=r"a.txt cannot be written \(Is a directory\)"):
        write()


def test_two_writers_do_not_meet(tmp_path):
    path, contents = tmp_path / "a.bin", [bytes([number]) * 100_000 for number in range(4)]
    threads = [threading.Thread(target=lambda c=c: [files.replace(path, c) for _ in range(20)]) for c in contents]
    for thread in threads:
        thread.start()
    seen = set()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            seen.add(path.read_bytes())
    for thread in threads:
        thread.join()
    assert seen <= set(contents)
    assert seen
    assert names(tmp_path) == ["a.bin"]


WRITER = """
import sys
from pathlib import Path
from naysay import files
for number in range(10**9):
    files.replace(Path(sys.argv[1]), bytes([number % 256]) * 1_000_000)
"""


def test_a_kill_leaves_a_whole_file_and_what_it_was_writing_is_swept_but_nothing_of_the_living(tmp_path):
    path = tmp_path / "a[1].bin"
    for delay in (0.0, 0.003, 0.007):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)])
        deadline = time.monotonic() + 30
        before = path.stat().st_mtime_ns if path.exists() else 0
        while not path.exists() or path.stat().st_mtime_ns == before:
            assert time.monotonic() < deadline
        time.sleep(delay)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        content = path.read_bytes()
        assert content == content[:1] * 1_000_000
    with files.replacing(tmp_path / "other") as living:
        (tmp_path / ".vi.tmp").write_bytes(b"of another program")
        files.sweep(tmp_path)
        assert living.exists()
        assert sorted(file.name for file in tmp_path.iterdir()) == [living.parent.name, ".vi.tmp", "a[1].bin"]


def test_a_folder_is_put_in_place_with_all_that_is_in_it(tmp_path):
    made = tmp_path / "made"
    (made / "inner").mkdir(parents=True)
    (made / "inner" / "a").write_bytes(b"a")
    files.put_in_place(made, tmp_path / "done")
    assert names(tmp_path) == ["a", "done", "inner"]


def test_a_graph_that_finds_no_room_says_so_and_leaves_nothing(tmp_path, full_disk):
    graph = from_arrays([[(row + 1) % 500] for row in range(500)], [[1.0]] * 500)
    with pytest.raises(
        InputError, match=r"has no room for graph.safetensors \(.*Free some space or choose another folder"
    ):
        graph.save(tmp_path / "graph.safetensors")
    assert names(tmp_path) == []
