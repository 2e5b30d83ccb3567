"""Drivers that are killed, interrupted, started again or started twice: every job is recorded once, and no process is
left behind.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import engine_jobs
import pytest

from naysay import engine
from naysay.errors import InputError

# tests that open ports run one after another: a free port that one has found must not be another's
OPENS_PORTS = True

PROGRAM = Path(__file__).parent / "engine_jobs.py"
MARK = "NAYSAY_ENGINE_TEST"


class Driver:
    """A driver in a process of its own; it and all that it starts carry a mark in their environment."""

    def __init__(self, name, folder, n, seconds):
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, name, folder, str(n), str(seconds)],
            env={**os.environ, MARK: self.mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # as a terminal starts it, however the tests were started
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def family(self, agents=False):
        """The living processes that carry the mark, by number; Ray's `agents` may take a minute to see that their Ray
        is gone.
        """
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self.mark}".encode() in (process / "environ").read_bytes():
                    command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if agents or not command.startswith(("ray::DashboardAgent", "ray::RuntimeEnvAgent")):
                        found[int(process.name)] = command
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
        return found

    def finish(self, seconds=60):
        out, err = self.process.communicate(timeout=seconds)
        assert self.process.returncode == 0, err
        return out

    def end(self):
        """Whatever the test has done, nothing of it stays."""
        for number in self.family(agents=True):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def drive(tmp_path):
    begun = []

    def begin(name, n, seconds):
        begun.append(Driver(name, tmp_path, n, seconds))
        return begun[-1]

    yield begin
    for driver in begun:
        driver.end()


def recorded(folder):
    """The keys in the ledger, as its lines have them."""
    file = folder / "ledger.jsonl"
    return [json.loads(line)["key"] for line in file.read_text().splitlines()] if file.exists() else []


def begun(folder):
    file = folder / "log"
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize("name", ["local", "ray"])
def test_a_killed_driver_leaves_no_process_and_goes_on_where_it_stopped(name, drive, tmp_path):
    first = drive(name, 20, 0.3)
    engine_jobs.wait_for(lambda: len(recorded(tmp_path)) >= 2)
    engine_jobs.wait_for(lambda: len(begun(tmp_path)) > len(recorded(tmp_path)))  # in the middle of a job
    assert len(first.family()) >= 3
    os.kill(first.process.pid, signal.SIGKILL)
    engine_jobs.wait_for(lambda: not first.family(), seconds=20)
    kept, before = recorded(tmp_path), begun(tmp_path)
    assert 2 <= len(kept) < 20
    second = drive("local", 20, 0.0).finish()  # on the other engine, if it likes
    assert sorted(recorded(tmp_path)) == sorted(f"job {at}" for at in range(20))
    again = begun(tmp_path)[len(before) :]
    assert sorted(f"job {at}" for at in again) == sorted(set(recorded(tmp_path)) - set(kept))
    assert second.splitlines()[-1].startswith(f"{20 - len(kept)}/{20 - len(kept)} job ")


def test_two_drivers_at_once_do_every_job_once(drive, tmp_path):
    drivers = [drive("local", 16, 0.1) for _ in range(2)]
    told = [driver.finish().splitlines() for driver in drivers]
    assert sorted(recorded(tmp_path)) == sorted(f"job {at}" for at in range(16))
    assert sorted(begun(tmp_path), key=int) == [str(at) for at in range(16)]
    assert len(told[0]) + len(told[1]) >= 16  # what the other one did is told too, to the one that was there


def test_the_job_of_a_killed_driver_is_done_by_the_other(drive, tmp_path):
    slow = drive("local", 2, 60)
    engine_jobs.wait_for(lambda: len(begun(tmp_path)) == 2)
    other = drive("local", 2, 0.0)
    with pytest.raises(subprocess.TimeoutExpired):  # both jobs are the first one's
        other.process.wait(2)
    assert begun(tmp_path) == ["0", "1"] or begun(tmp_path) == ["1", "0"]
    os.kill(slow.process.pid, signal.SIGKILL)
    engine_jobs.wait_for(lambda: not slow.family(), seconds=20)  # its workers do not sleep the minute out
    other.finish()
    assert sorted(recorded(tmp_path)) == ["job 0", "job 1"]


def blocks(process, number):
    (mask,) = re.findall(r"SigBlk:\s*(\w+)", Path(f"/proc/{process}/status").read_text())
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_ctrl_c_ends_everything_at_once_and_quietly(drive, tmp_path):
    driver = drive("local", 4, 60)
    engine_jobs.wait_for(lambda: len(begun(tmp_path)) == 2)
    workers = [number for number, command in driver.family().items() if "spawn_main" in command]
    assert [blocks(number, signal.SIGINT) for number in workers] == [True, True]  # also the very first one
    os.killpg(driver.process.pid, signal.SIGINT)  # a terminal interrupts all processes of its foreground
    started = time.monotonic()
    _, err = driver.process.communicate(timeout=30)
    assert time.monotonic() - started < 10  # at once, on a busy machine
    assert driver.process.returncode != 0
    assert err.count("Traceback") == 1  # the driver's own
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert not driver.family()


def failing(folder):
    with engine.start("local", workers=0) as here:
        jobs = [
            engine.Job("dry", engine_jobs.fail, {"times": 4, "folder": str(folder)}),
            *engine_jobs.jobs(folder, 2, 0.0),
        ]
        told = []
        records = list(engine.run_recorded(here, jobs, engine.Ledger(folder / "ledger.jsonl"), tell=told.append))
    return records, told


def test_a_job_that_fails_three_times_is_recorded_as_failed_and_tried_again_by_the_next_call(tmp_path):
    records, told = failing(tmp_path)
    by_key = {record["key"]: record for record in records}
    assert by_key["job 1"]["square"] == 1
    assert by_key["dry"]["attempts"] == 3
    assert by_key["dry"]["failed"].startswith("ValueError: the well is dry\n")
    assert "engine_jobs.py" in by_key["dry"]["failed"]
    assert told[-1] == "3/3 dry: failed 3 times, ValueError: the well is dry"
    assert engine.Ledger(tmp_path / "ledger.jsonl").keys() == {"job 0", "job 1"}
    again, told = failing(tmp_path)
    assert [record["value"] for record in again] == ["at last"]  # at the fifth attempt in all
    assert told[0].startswith("1/1 dry: 0.0 s")
    assert begun(tmp_path) == ["0", "1"]


def test_a_job_that_another_driver_saw_fail_is_not_tried_by_this_one(tmp_path):
    ledger = engine.Ledger(tmp_path / "ledger.jsonl")
    with engine.start("local", workers=0) as here:
        jobs = engine_jobs.jobs(tmp_path, 2, 0.0)
        records = engine.run_recorded(here, jobs, ledger)
        assert next(records)["key"] == "job 0"
        assert engine.Ledger(ledger.path).add({"key": "job 1", "failed": "OSError: elsewhere", "attempts": 3})
        assert [record["failed"] for record in records] == ["OSError: elsewhere"]
        assert begun(tmp_path) == ["0"]
        assert [record["square"] for record in engine.run_recorded(here, jobs, ledger)] == [1]
    assert [record["key"] for record in ledger.read()] == ["job 0", "job 1"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "a recorded job must return a mapping for its record; 'a' gave a int"),
        ({"loss": float("nan")}, "the record 'a' cannot be written as JSON: Out of range float"),
        ({"x": {1, 2}}, "the record 'a' cannot be written as JSON: Object of type set"),
    ],
)
def test_a_value_that_is_no_record_is_an_error_in_a_sentence(value, message, tmp_path):
    with engine.start("local", workers=0) as here, pytest.raises(InputError, match=message):
        list(engine.run_recorded(here, [engine.Job("a", lambda: value)], engine.Ledger(tmp_path / "ledger.jsonl")))


def test_two_jobs_with_one_key_are_refused(tmp_path):
    with (
        engine.start("local", workers=0) as here,
        pytest.raises(InputError, match="the key of each job must be its own; got 'job 0' twice"),
    ):
        list(engine.run_recorded(here, engine_jobs.jobs(tmp_path, 1, 0) * 2, engine.Ledger(tmp_path / "ledger.jsonl")))


def test_a_ledger_takes_one_result_per_key_and_a_result_in_the_place_of_a_failure(tmp_path):
    ledger = engine.Ledger(tmp_path / "new" / "ledger.jsonl")
    assert ledger.read() == []
    assert ledger.add({"key": "a", "x": 1})
    assert not ledger.add({"key": "a", "x": 2})
    assert not ledger.add({"key": "a", "failed": "late"})
    assert ledger.add({"key": "b", "failed": "once"})
    assert ledger.add({"key": "b", "failed": "twice"})
    assert ledger.keys() == {"a"}
    assert ledger.add({"key": "b", "x": 3})
    for reader in (ledger, engine.Ledger(ledger.path)):
        assert reader.read() == [{"key": "a", "x": 1}, {"key": "b", "x": 3}]
        assert reader.keys() == {"a", "b"}
    with pytest.raises(InputError, match='a record needs a "key", a text; got None'):
        ledger.add({"x": 1})


@pytest.mark.parametrize("left", ['{"key": "b", "x"', '{"key": "b"}', "\0\0\0"])
def test_a_line_that_a_kill_cut_off_is_left_out_and_then_removed(tmp_path, left):
    path = tmp_path / "ledger.jsonl"
    engine.Ledger(path).add({"key": "a"})
    whole = path.read_text()
    path.write_text(whole + left)
    ledger = engine.Ledger(path)
    assert ledger.read() == [{"key": "a"}]
    assert path.read_text() == whole + left  # reading changes nothing: somebody may be writing it at this moment
    assert ledger.add({"key": "b", "x": "ü"})
    assert path.read_text() == whole + '{"key": "b", "x": "\\u00fc"}\n'


def test_a_broken_or_doubled_line_is_named(tmp_path):
    path = tmp_path / "ledger.jsonl"
    path.write_text('{"key": "a"}\nnonsense\n')
    with pytest.raises(InputError, match=r"ledger.jsonl:2 is not a record \(Expecting value.*Remove the line"):
        engine.Ledger(path).read()
    path.write_text('{"key": "a"}\n{"key": "a"}\n')
    with pytest.raises(InputError, match=r"ledger.jsonl:2 is a second record of 'a'"):
        engine.Ledger(path).read()
    path.write_text('["a"]\n')
    with pytest.raises(InputError, match=r'ledger.jsonl:1 is not a record \(it has no "key"\)'):
        engine.Ledger(path).keys()


@pytest.mark.parametrize("line", ["nonsense", '{"key": ' + "[" * 100_000, "[" * 100_000 + "]" * 100_000])
def test_a_line_that_is_no_record_is_named_alike_each_time_and_the_file_stays(tmp_path, line):
    path = tmp_path / "ledger.jsonl"
    path.write_text(before := f'{{"key": "a"}}\n{line}\n{{"key": "b"}}\n')
    ledger = engine.Ledger(path)
    for ask in (ledger.read, ledger.read, lambda: ledger.add({"key": "c"}), ledger.keys):
        with pytest.raises(InputError, match=r"ledger.jsonl:2 is not a record \(.*Remove the line"):
            ask()
    assert path.read_text() == before
    path.write_text('{"key": "a"}\n{"key": "b"}\n')  # mended in place
    assert [record["key"] for record in ledger.read()] == ["a", "b"]


def test_a_ledger_that_was_replaced_is_read_anew(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = engine.Ledger(path)
    ledger.add({"key": "a"})
    path.write_text('{"key": "c", "x": 1}\n{"key": "d", "x": 1}\n')
    path.rename(tmp_path / "moved")
    assert ledger.read() == []
    path.write_text('{"key": "c"}\n')
    assert ledger.keys() == {"c"}


def test_a_full_disk_leaves_the_ledger_as_it_was(tmp_path):
    ledger = engine.Ledger(tmp_path / "ledger.jsonl")
    ledger.add({"key": "a"})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # the error path of a full disk, without root
    try:
        with pytest.raises(InputError, match=r"has no room for ledger.jsonl"):
            ledger.add({"key": "b", "x": "x" * 200})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (tmp_path / "ledger.jsonl").read_text() == '{"key": "a"}\n'
    assert ledger.add({"key": "b"})


def test_processes_that_add_at_once_neither_lose_nor_double_a_record(tmp_path):
    with engine.start("local", workers=3, threads=1) as started:
        jobs = [
            engine.Job(str(at), engine_jobs.lines, {"text": f"process {at}", "folder": str(tmp_path)})
            for at in range(3)
        ]
        added = [number for outcome in started.run(jobs) for number in outcome.value]
    assert sorted(added) == list(range(25))
    assert sorted(map(int, recorded(tmp_path))) == list(range(25))


def test_a_command_that_is_asked_to_end_while_it_does_a_job_itself_ends_and_does_not_try_again(tmp_path):
    code = f"""
import time, typer
from pathlib import Path
from naysay import engine
from naysay.cli import main

app = typer.Typer()

def wait():
    with open({str(tmp_path / "begun")!r}, "a") as file:
        file.write("x")
    time.sleep(60)

@app.command()
def go():
    with engine.start("local", workers=0) as here:
        for outcome in here.run([engine.Job("a", wait)]):
            print(outcome)

main(app)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        engine_jobs.wait_for((tmp_path / "begun").exists)
        process.terminate()
        try:
            told = process.communicate(timeout=20)[0]
        finally:
            process.kill()
    assert (process.returncode, told) == (128 + signal.SIGTERM, "")
    assert (tmp_path / "begun").read_text() == "x"
