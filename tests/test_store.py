"""Nothing is lost, whatever is killed, renamed, changed or run twice: there is the old or the new, and a sentence."""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from forking import fork
from full_disk import files_of_at_most
from PIL import Image
from test_cli import naysay, write_csv

from naysay import engine, files, labels, processes, runs, tensors
from naysay.cli.output import new_file, new_folder
from naysay.errors import InputError
from naysay.learning import Config, HeldOut, records, train
from naysay.learning.folder import FORMAT, load
from naysay.processes import here
from naysay.runs.report import render

# tests that open ports run one after another: a free port that one has found must not be another's
OPENS_PORTS = True

NAMES = ("cat", "dog", "emu")
FIT = ("--id", "id", "--label", "not_label", "--epochs", 1, "--scheme", "none", "--quiet")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table and a run of it."""
    place = tmp_path_factory.mktemp("place")
    numbers = np.random.default_rng(0).normal(size=(40, 2)).round(3).tolist()
    table = [["id", "a", "b", "not_label"], *([f"i{i}", *row, NAMES[i % 3]] for i, row in enumerate(numbers))]
    naysay("fit", write_csv(place / "data.csv", table), *FIT, "--out", place / "RUN")
    return place


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# the place of a result


def test_a_folder_that_was_made_meanwhile_stays_and_the_result_gets_another_name(tmp_path):
    path = tmp_path / "RUN"

    def make(force):
        with new_folder(path, force, lambda folder: False) as unfinished:
            (unfinished / "model").write_text("hours of training")
            path.mkdir()
            (path / "thesis").write_text("years of work")

    with pytest.raises(InputError, match=r"RUN was made by another program meanwhile and is left.*RUN-2\.$"):
        make(force=False)
    shutil.rmtree(path)
    with pytest.raises(InputError, match=r"RUN was made by another program meanwhile and is left.*RUN-3\.$"):
        make(force=True)
    assert names(tmp_path) == ["RUN", "RUN-2", "RUN-3"]
    assert [names(tmp_path / name) for name in names(tmp_path)] == [["thesis"], ["model"], ["model"]]


def test_a_file_that_was_made_meanwhile_stays_and_the_result_gets_another_name(tmp_path):
    path = tmp_path / "p.csv"

    def make():
        with new_file(path, force=False) as unfinished:
            unfinished.write_text("ours")
            path.write_text("theirs")

    with pytest.raises(InputError, match=r"p.csv was made by another program meanwhile.*p-2\.csv\.$"):
        make()
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"p.csv": "theirs", "p-2.csv": "ours"}


def put(path, kind):
    """What another program makes in a place: a file or a folder with something in it."""
    if kind == "file":
        path.write_text("theirs")
    else:
        path.mkdir()
        (path / "thesis").write_text("years of work")


def whole(path):
    """What stands in a place: a file's text, or the texts in a folder."""
    return path.read_text() if path.is_file() else {file.name: file.read_text() for file in path.iterdir()}


THEIRS = {"file": "theirs", "folder": {"thesis": "years of work"}}


@pytest.mark.parametrize("theirs", THEIRS)
@pytest.mark.parametrize("moment", ["while it is forced to disk", "after the last look"])
@pytest.mark.parametrize("new", [new_file, lambda path, force: new_folder(path, force, runs.is_run)])
def test_what_is_made_in_the_last_moment_stays_too(tmp_path, monkeypatch, new, moment, theirs):
    path = tmp_path / "out"
    step = "force" if moment == "while it is forced to disk" else "claim"
    as_it_is = getattr(files, step)

    def slowly(*given):
        monkeypatch.setattr(files, step, as_it_is)
        put(path, theirs)
        as_it_is(*given)

    monkeypatch.setattr(files, step, slowly)

    def make():
        with new(path, False) as unfinished:
            ours = unfinished / "model" if unfinished.is_dir() else unfinished
            ours.write_text("hours of training")

    with pytest.raises(InputError, match=r"out was made by another program meanwhile .*; the result .* is .*out-2\.$"):
        make()
    assert whole(path) == THEIRS[theirs]
    assert whole(tmp_path / "out-2") in ("hours of training", {"model": "hours of training"})
    assert names(tmp_path) == ["out", "out-2"]


def test_a_file_system_without_hard_links_gets_files_too(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with new_file(tmp_path / "a.csv", False) as unfinished:
        unfinished.write_text("ours")
    path = tmp_path / "b" / "a.csv"
    with pytest.raises(InputError, match=r"a.csv was made by another program"), new_file(path, False):
        put(path, "file")
    assert (whole(tmp_path / "a.csv"), whole(tmp_path / "b")) == ("ours", {"a.csv": "theirs", "a-2.csv": ""})
    assert names(tmp_path) == ["a.csv", "b"]


@pytest.mark.parametrize("moment", ["before the old one makes way", "after the old one made way"])
def test_what_is_made_while_an_old_run_makes_way_costs_neither_the_old_nor_the_new(tmp_path, monkeypatch, moment):
    path, rename = tmp_path / "RUN", Path.rename
    path.mkdir()
    (path / "model").write_text("old")

    def move(old, place):
        monkeypatch.setattr(Path, "rename", rename)
        if moment.startswith("before"):  # their program removes the run and puts its own thing there
            shutil.rmtree(old)
            put(old, "folder")
        rename(old, place)
        if moment.startswith("after"):
            put(old, "folder")

    def make():
        with new_folder(path, True, lambda folder: (folder / "model").exists()) as unfinished:
            (unfinished / "model").write_text("new")
            monkeypatch.setattr(Path, "rename", move)

    with pytest.raises(InputError, match=r"RUN was made by another program meanwhile .*; the result") as raised:
        make()
    found = {name: whole(tmp_path / name) for name in names(tmp_path)}
    if moment.startswith("before"):
        assert found == {"RUN": THEIRS["folder"], "RUN-2": {"model": "new"}}
    else:
        assert found == {"RUN": THEIRS["folder"], "RUN-2": {"model": "old"}, "RUN-3": {"model": "new"}}
        assert str(raised.value).endswith("RUN-3, and what was to be replaced is RUN-2.".replace("RUN", str(path)))


def test_a_run_that_comes_in_the_last_moment_stays_where_nobody_asked_to_replace_one(tmp_path, monkeypatch):
    path, claim = tmp_path / "RUN", files.claim

    def late(new, place):
        if place == path and not path.exists():
            put(path, "folder")
        claim(new, place)

    monkeypatch.setattr(files, "claim", late)
    with (
        pytest.raises(InputError, match="was made by another program meanwhile and is left as it is"),
        new_folder(path, False, lambda folder: True) as unfinished,
    ):
        (unfinished / "model").write_text("new")
    assert {name: whole(tmp_path / name) for name in names(tmp_path)} == {
        "RUN": THEIRS["folder"],
        "RUN-2": {"model": "new"},
    }


def killed_where_an_old_run_has_made_way(tmp_path, monkeypatch):
    """The place of a run of which a process that replaces it is killed, before the new one has its name."""
    path = tmp_path / "RUN"
    path.mkdir()
    (path / "model").write_text("old")

    def exchange():
        calls = iter([files.claim, die])
        monkeypatch.setattr(files, "claim", lambda *given: next(calls)(*given))
        with new_folder(path, True, lambda folder: True) as unfinished:
            (unfinished / "model").write_text("new")

    killed(exchange)
    return path


def test_a_kill_there_costs_the_old_run_neither(tmp_path, monkeypatch):
    path = killed_where_an_old_run_has_made_way(tmp_path, monkeypatch)
    put(path, "folder")
    with pytest.raises(InputError, match="RUN exists already"), new_folder(path, False, lambda folder: True):
        raise AssertionError("the work had begun")
    files.sweep(tmp_path)
    assert {name: whole(tmp_path / name) for name in names(tmp_path)} == {
        "RUN": THEIRS["folder"],
        "RUN-2": {"model": "old"},
    }


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "x" * 251 + ".csv"])
def test_a_result_that_must_have_another_name_has_one_that_fits(tmp_path, name):
    with pytest.raises(InputError, match="was made by another program meanwhile"), new_file(tmp_path / name, False):
        put(tmp_path / name, "file")
    (other,) = {path.name for path in tmp_path.iterdir()} - {name}
    assert len(os.fsencode(other)) in (254, 255)
    assert other.removesuffix(".csv").endswith("-2")


@pytest.mark.parametrize("command", ["fit", "augment", "predict"])
def test_the_second_of_two_into_one_place_is_told_at_once(place, tmp_path, command):
    out = tmp_path / ("RUN" if command == "fit" else "out.csv")
    first = new_folder(out, False, runs.is_run) if command == "fit" else new_file(out, False)
    given = {"fit": FIT, "augment": FIT[:4], "predict": ()}[command]
    run = [place / "RUN"] if command == "predict" else []
    with first as unfinished:
        said = naysay(command, *run, place / "data.csv", *given, "--out", out, code=2).stderr
        assert said == f"naysay: another process is writing {out}. Wait for it, or choose another name.\n"
        assert unfinished.exists()


def killed(work):
    """Do the work in another process, which must die of it."""
    assert os.waitpid(fork(work), 0)[1] == signal.SIGKILL


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_dead_process_left_is_swept_by_the_next_run_in_that_folder_and_the_living_stay(place, tmp_path):
    def leave():
        with new_folder(tmp_path / "RUN", False, runs.is_run), new_file(tmp_path / "p.csv", False) as unfinished:
            unfinished.write_text("half")
            die()

    killed(leave)
    assert len(names(tmp_path)) == 2
    with files.replacing(tmp_path / "living") as living:
        naysay("augment", place / "data.csv", *FIT[:4], "--out", tmp_path / "z.csv", "--quiet")
        assert names(tmp_path) == [living.parent.name, "z.csv"]
    assert names(tmp_path) == ["living", "z.csv"]


def test_a_kill_while_an_old_run_makes_way_for_a_new_one_leaves_one_of_them(tmp_path, monkeypatch):
    path = killed_where_an_old_run_has_made_way(tmp_path, monkeypatch)
    assert not path.exists()
    again = new_folder(path, False, lambda folder: True)
    with pytest.raises(InputError, match="RUN exists already"), again:
        raise AssertionError("the work had begun")
    assert (path / "model").read_text() == "old"
    assert names(tmp_path) == ["RUN"]


def test_places_that_are_none_get_a_sentence(place, tmp_path, monkeypatch):
    long = "x" * 300
    for arguments, said in (
        (("fit", place / "data.csv", *FIT, "--out", long), f"{long} cannot be written (File name too long)"),
        (("fit", place / "data.csv", *FIT, "--out", f"{long}/RUN"), "cannot be written (File name too long)"),
        (("fit", long, *FIT, "--out", tmp_path / "RUN"), f"{long} cannot be used (File name too long)"),
        (("predict", long, place / "data.csv", "--out", tmp_path / "p.csv"), "cannot be used (File name too long)"),
        (("fit", place / "data.csv", *FIT, "--out", "."), ". names a folder that is there, not something new"),
    ):
        monkeypatch.chdir(tmp_path)
        assert said in naysay(*arguments, code=2).stderr
    assert names(tmp_path) == []


COMMANDS = ["fit", "predict", "ask", "augment", "audit", "report", "export", "pretrain", "demo"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_is_too_long_is_told_before_the_work(place, tmp_path, command):
    np.save(tmp_path / "x.npy", np.zeros((8, 4, 4), np.uint8))
    endings = {"fit": "", "pretrain": "", "demo": "", "export": ".onnx", "report": ".html", "audit": ".html"}
    out = tmp_path / endings.get(command, ".csv").rjust(256, "x")
    given = {
        "fit": (place / "data.csv", *FIT[:-1], "--out", out),
        "augment": (place / "data.csv", *FIT[:4], "--out", out),
        "audit": (place / "data.csv", *FIT[:4], "--html", out),
        "predict": (place / "RUN", place / "data.csv", "--out", out),
        "pretrain": (tmp_path / "x.npy", "--method", "emp", "--batch", 4, "--epochs", 1, "--out", out),
        "demo": ("--out", out),
    }.get(command, (place / "RUN", "--out", out))
    said = naysay(command, *given, code=2).stderr
    assert said.startswith(f"naysay: {out} cannot be ")
    assert said.count("\n") == 1  # and nothing of the work: no note of an audit, of an epoch, of how long it takes
    assert "(File name too long)" in said
    assert names(tmp_path) == ["x.npy"]


def test_a_place_that_may_not_be_looked_into_is_told(tmp_path):
    (tmp_path / "closed").mkdir(mode=0)

    def try_both():
        if os.geteuid() == 0:
            os.setuid(65534)
        for new in (new_file, lambda path, force: new_folder(path, force, runs.is_run)):
            with (
                pytest.raises(InputError, match=r"cannot be written \(Permission denied\)"),
                new(Path("closed/a"), False),
            ):
                raise AssertionError("the work had begun")

    tmp_path.chmod(0o755)
    here = os.getcwd()
    os.chdir(tmp_path)  # a user without rights could not walk here
    try:
        assert os.waitpid(fork(try_both), 0)[1] == 0
    finally:
        os.chdir(here)


def test_a_mounted_disk_is_not_replaced(place):
    said = naysay("fit", place / "data.csv", *FIT, "--out", "/proc", "--force", code=2).stderr
    assert "/proc is where a disk is mounted and cannot be replaced. Choose a name in it." in said


SAY = "import typer; from naysay.cli import main; a = typer.Typer(); a.command()(lambda: print('\\u00b1')); main(a)"


def test_a_stream_that_cannot_be_written_is_one_sentence_and_one_that_knows_no_sign_is_none():
    command = [sys.executable, "-c", SAY]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "naysay: standard output cannot be written (No space left on device). Give it another place.\n"
    )
    ascii = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=ascii, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\\xb1\n", "")


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("named", ["there.csv", "nowhere.csv"])
def test_a_command_without_standard_streams_does_its_work_and_writes_into_no_file_of_ours(tmp_path, closed, named):
    table = [["id", "a", "not_label"], *([f"i{i}", i, NAMES[i % 3]] for i in range(40))]
    write_csv(tmp_path / "there.csv", table)
    command = [sys.executable, "-m", "naysay", "audit", named, "--id", "id", "--label", "not_label", "--html", "a.html"]
    shell = " ".join(["exec", '"$@"', *(f"{number}>&-" for number in closed)])
    done = subprocess.run(
        ["sh", "-c", shell, "sh", *command], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == (0 if named == "there.csv" else 2), done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    if named == "there.csv":
        assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len((tmp_path / "there.csv").read_text().splitlines()) == 41


@pytest.mark.parametrize("name", ["WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE"])
def test_an_environment_that_places_no_process_is_told(monkeypatch, name):
    told = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "here", "MASTER_PORT": "1"}
    for variable, value in {**told, name: "abc"}.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=rf"{name} must be a whole number .*; got 'abc'\. Start the processes with"):
        here()


PLACED = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"RANK": "2"}, "RANK must be below WORLD_SIZE, which is 2; got 2."),
        ({"LOCAL_RANK": "5"}, "LOCAL_RANK must be below LOCAL_WORLD_SIZE, which is 2; got 5."),
        ({"LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "1"}, "LOCAL_RANK must be below LOCAL_WORLD_SIZE, which is 1; got 1."),
        ({"LOCAL_WORLD_SIZE": "3"}, "LOCAL_WORLD_SIZE must be at most WORLD_SIZE, which is 2; got 3."),
        ({"MASTER_PORT": "65536"}, "MASTER_PORT must be a port, 1 to 65535; got 65536."),
        ({"MASTER_PORT": "0"}, "MASTER_PORT must be a port, 1 to 65535; got 0."),
        ({"RANK": "9" * 5000}, "RANK must be a whole number that places this process; got '999"),
    ],
)
def test_a_place_that_no_process_can_have_is_told_at_once(monkeypatch, changed, said):
    for variable, value in {**PLACED, **changed}.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=re.escape(said)) as raised:
        here()
    assert str(raised.value).endswith("Start the processes with torchrun, or unset it.")


@pytest.mark.parametrize("rank", ["0", "1"])  # the one that the others come to, and one that comes
def test_processes_that_do_not_meet_are_told_and_one_that_waits_can_be_ended(monkeypatch, rank):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    for variable, value in {**PLACED, "RANK": rank, "MASTER_PORT": port}.items():
        monkeypatch.setenv(variable, value)

    def meet():
        told = f"the 2 processes did not meet at 127.0.0.1:{port} .*Start them all"
        with pytest.raises(InputError, match=told), processes.one_voice():
            raise AssertionError("the work had begun")
        assert signal.getsignal(signal.SIGTERM) is end  # as it was

    end = lambda *_: sys.exit(143)  # noqa: E731
    monkeypatch.setattr(processes, "MEETING", 1)
    waiting = fork(lambda: (signal.signal(signal.SIGTERM, end), meet()))
    assert os.waitpid(waiting, 0)[1] == 0
    monkeypatch.setattr(processes, "MEETING", 300)
    waiting = fork(lambda: (signal.signal(signal.SIGTERM, end), meet()))
    time.sleep(1)
    os.kill(waiting, signal.SIGTERM)
    deadline = time.monotonic() + 20
    while not (ended := os.waitpid(waiting, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.05)
    if not ended[0]:
        os.kill(waiting, signal.SIGKILL)
        os.waitpid(waiting, 0)
    assert ended == (waiting, signal.SIGTERM)


# checks come before the work


@pytest.fixture
def full_disk():
    with files_of_at_most(100_000):
        yield


def test_a_full_disk_shows_before_the_work(tmp_path, full_disk):
    np.savez(tmp_path / "many.npz", x=np.zeros((1200, 1), np.float32), y=np.arange(1200) % 10)
    arrays = (tmp_path / "many.npz", "--features", "x", "--label", "y")
    for command, out in (("fit", "RUN"), ("augment", "z.csv")):
        said = naysay(command, *arrays, "--out", tmp_path / out, code=2).stderr
        assert "has no room for" in said
        assert "auditing" not in said
    assert names(tmp_path) == ["many.npz"]


def test_images_that_cannot_be_shown_are_learned_from(tmp_path):
    draw = np.random.default_rng(0)
    np.savez(tmp_path / "seven.npz", x=draw.integers(0, 255, (30, 9, 9, 7), np.uint8), y=np.arange(30) % 3)
    naysay("fit", tmp_path / "seven.npz", "--features", "x", "--label", "y", *FIT[4:], "--out", tmp_path / "RUN")
    assert "data:image/png" not in (tmp_path / "RUN" / "report.html").read_text()
    naysay("predict", tmp_path / "RUN", tmp_path / "seven.npz", "--out", tmp_path / "p.csv")


def test_names_that_are_no_text_are_refused_before_the_work_where_a_table_must_hold_them(tmp_path):
    photos = tmp_path / os.fsdecode(b"photos\xfe")
    photos.mkdir()
    for i in range(30):
        name = f"{i}.png" if i else os.fsdecode(b"\xff.png")
        Image.fromarray(np.full((4, 4), 8 * i, np.uint8)).save(photos / name)
    votes = write_csv(tmp_path / "votes.csv", [["id", "label"], *([str(i), NAMES[i % 3]] for i in range(1, 30))])
    said = naysay("augment", photos, "--labels", votes, "--out", tmp_path / "z.csv", code=2).stderr
    assert "holds a name that is not UTF-8" in said
    said = naysay("fit", photos, "--labels", votes, *FIT[4:], "--out", tmp_path / "RUN", code=2).stderr
    assert "holds a name that is not UTF-8" in said
    assert names(tmp_path) == [photos.name, "votes.csv"]


# records


def test_only_a_newline_ends_a_record(tmp_path):
    path = tmp_path / "ledger.jsonl"
    lines = [b'{"key": "%d",\r "x": 1}\r\n' % at for at in range(1000)]
    path.write_bytes(b"".join(lines))
    ledger = engine.Ledger(path)
    assert len(ledger.read()) == 1000
    assert ledger.add({"key": "new"})
    assert path.read_bytes() == b"".join(lines) + b'{"key": "new"}\n'
    assert len(records.read(path)) == 1001
    path.write_text('{"text": "a\u2028b"}\n{"half": ', encoding="utf-8")
    assert records.read(path) == [{"text": "a\u2028b"}]


# runs that were changed


def changes(draw, tree):
    """The tree of JSON with one value missing, of another type, not a number, or huge; and where."""
    at, node = [], tree
    while isinstance(node, dict | list) and node and (not at or draw.random() < 0.8):
        key = draw.choice(sorted(node)) if isinstance(node, dict) else draw.randrange(len(node))
        at.append((node, key))
        node = node[key]
    parent, key = at[-1]
    value = draw.choice(["drop", None, -1, 1e308, 10**400, float("nan"), "x", [], {}, [["x"]], True])
    if value == "drop":
        del parent[key]
    else:
        parent[key] = value
    return tree, f"{[key for _, key in at]} {str(value)[:20]}"


def told(use, what):
    """What is said of a run that cannot be used; None where it can."""
    try:
        use()
    except InputError as error:
        return str(error)
    except Exception as error:
        raise AssertionError(what) from error


def test_a_run_that_was_changed_is_used_or_refused_in_a_sentence(place, tmp_path):
    draw, run, refused = random.Random(0), tmp_path / "RUN", 0
    shutil.copytree(place / "RUN", run)
    x = np.zeros((2, 2), np.float32)
    for at in range(60):
        name = draw.choice(["run.json", "run.json", "audit.json", "records.jsonl", "report.npz", "model.safetensors"])
        whole, what = (run / name).read_bytes(), f"{at} {name}"
        if name.endswith(".json"):
            tree, where = changes(draw, json.loads(whole))
            (run / name).write_text(json.dumps(tree))
            what += where
        elif name == "records.jsonl":
            lines = [json.loads(line) for line in whole.splitlines()]
            tree, where = changes(draw, lines)
            (run / name).write_text("".join(json.dumps(line) + "\n" for line in tree))
            what += where
        elif at % 2:
            (run / name).write_bytes(whole[: draw.randrange(len(whole))])
        elif name == "report.npz":
            arrays = dict(np.load(run / name))
            some = draw.choice(sorted(arrays))
            arrays[some] = draw.choice([arrays[some][:0], np.full(arrays[some].shape, -(10**9)), arrays[some].T[None]])
            np.savez(run / name, **arrays)
            what += some
        else:
            start = draw.randrange(len(whole))
            (run / name).write_bytes(whole[:start] + draw.randbytes(8) + whole[start + 8 :])
        for use in (lambda: runs.Run.load(run).predict(x), lambda: render(run, tmp_path / "r.html")):
            said = told(use, what)
            assert said is None or str(tmp_path) in said, what
            refused += said is not None
        (run / name).write_bytes(whole)
    assert refused > 25


def test_predict_names_the_item_to_which_a_model_has_no_answer(place, tmp_path):
    data = write_csv(tmp_path / "new.csv", [["id", "a", "b"], ["good", 1, 1], ["far", 3e38, -3e38]])
    said = naysay("predict", place / "RUN", data, "--out", tmp_path / "p.csv", code=2).stderr
    assert "must hold numbers up to 1.8e+19 in column 'a'; got 3e+38 in row 2" in said
    far = np.array([[1, 1], [3e38, -3e38]], np.float32)  # of columns without names
    np.savez(tmp_path / "new.npz", x=far, id=np.array(["good", "far"]))
    said = naysay("predict", place / "RUN", tmp_path / "new.npz", "--out", tmp_path / "p.csv", code=2).stderr
    assert "item 'far' has values so far from those of training that the model's answer is not a number" in said
    assert names(tmp_path) == ["new.csv", "new.npz"]


def test_weights_that_are_not_finite_are_refused(place, tmp_path):
    shutil.copytree(place / "RUN", tmp_path / "RUN")
    path = tmp_path / "RUN" / "model.safetensors"
    state, about = load(path)
    state["model.head.bias"][0] = float("nan")
    tensors.save(path, state, about, format=FORMAT, key="naysay")
    said = naysay("predict", tmp_path / "RUN", place / "data.csv", "--out", tmp_path / "p.csv", code=2).stderr
    assert f"{path} is damaged or was changed (ValueError: model.head.bias is not finite). Train the model" in said


# trainings in a folder


def problem():
    draw = torch.Generator().manual_seed(0)
    return torch.randn(60, 4, generator=draw), labels.from_indices(torch.randint(0, 4, (60,), generator=draw), 4)


CONFIG = Config(epochs=2, batch_size=30, model_options={"hidden": 8})


def test_two_trainings_do_not_share_a_folder(tmp_path):
    def again(snapshot):
        with pytest.raises(InputError, match=r"another process is training in .*\. Wait for it, or choose another"):
            train(CONFIG, *problem(), folder=tmp_path)
        return {}

    train(CONFIG, *problem(), folder=tmp_path, observers=[again])
    assert [line["kind"] for line in records.read(tmp_path / "records.jsonl")] == ["run", "epoch", "epoch", "result"]
    assert names(tmp_path) == ["checkpoint.safetensors", "records.jsonl"]


@pytest.mark.parametrize(
    "change",
    [
        {"history": None},
        {"history": [{"epoch": 7}]},
        {"history": [1, 2]},
        {"history": [{"epoch": 1}, {"epoch": 2}]},
        {"identity": []},
        {"identity": {"config": 3}},
    ],
)
def test_a_checkpoint_that_was_changed_is_told_before_training(tmp_path, change):
    held = HeldOut(*problem())
    train(CONFIG, *problem(), folder=tmp_path, held_out=held)
    path = tmp_path / "checkpoint.safetensors"
    state, about = load(path)
    tensors.save(path, state, {**about, **change}, format=FORMAT, key="naysay")
    with pytest.raises(InputError, match=r"checkpoint.safetensors (is damaged or was changed|belongs to another run)"):
        train(CONFIG, *problem(), folder=tmp_path, held_out=held)
