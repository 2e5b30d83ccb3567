"""What cannot be used gets one sentence and exit code 2; nothing is overwritten without --force, nothing is left
half-written.
"""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_cli import naysay, write_csv

from naysay.cli.output import harmless

HEADER = ["id", "a", "b", "not_label"]
NAMES = ("cat", "dog", "emu")


def rows(n=40, **changes):
    """A good table of n rows; `changes` are cells to put in, by "row_column" numbers."""
    rng = np.random.default_rng(0)
    table = [HEADER, *([f"i{i}", *rng.normal(size=2).round(3).tolist(), NAMES[i % 3]] for i in range(n))]
    for where, cell in changes.items():
        row, column = map(int, where.removeprefix("at").split("_"))
        table[row][column] = cell
    return table


def refused(tmp_path, path, *options, command="fit"):
    """What the command says of a table it must refuse, after a look that nothing was left behind."""
    place = tmp_path / "out"
    place.mkdir(exist_ok=True)
    out = place / ("RUN" if command == "fit" else "out.csv")
    names = ("--id", "id", "--label", "not_label") if command != "predict" else ()
    done = naysay(command, path, *names, *options, "--out", out, code=2)
    assert list(place.iterdir()) == []
    assert done.stdout == ""
    sentence = done.stderr.strip().splitlines()[-1]
    assert sentence.startswith("naysay: ")
    assert "Traceback" not in done.output
    return sentence


@pytest.mark.parametrize("command", ["fit", "augment"])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"at5_2": "inf"}, "must hold finite numbers in column 'b'; got nan or inf in row 5"),
        ({"at4_0": "i0"}, "has 'i0' more than once in its id column 'id'"),
        ({"at4_0": ""}, "has an empty cell in its id column 'id'"),
        ({"at2_3": "Dog"}, "one class is spelled in 2 ways, 'Dog' and 'dog'"),
        ({"at2_3": "d og"}, "one class is spelled in 2 ways, 'd og' and 'dog'"),
    ],
)
def test_a_table_with_a_bad_cell_is_refused(tmp_path, command, changes, said):
    assert said in refused(tmp_path, write_csv(tmp_path / "data.csv", rows(**changes)), command=command)


@pytest.mark.parametrize("command", ["fit", "augment", "audit"])
def test_a_column_that_is_named_for_two_things_is_refused_in_one_sentence(tmp_path, command):
    path = write_csv(tmp_path / "data.csv", [[*HEADER, "true"], *([*row, "cat"] for row in rows()[1:])])
    votes = write_csv(tmp_path / "votes.csv", [["item", "label", "who"], *([f"i{i}", "cat", "ann"] for i in range(40))])
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(40, 3)))
    one_table, two_files = ("--id", "id", "--label", "not_label"), ("--features", "a", "--labels", votes)
    for source, asked, first, second, name in (
        (path, (*one_table, "--truth", "not_label"), "label", "truth", "not_label"),
        (path, (*one_table, "--truth", "id"), "id", "truth", "id"),
        (path, ("--id", "not_label", "--label", "not_label"), "id", "label", "not_label"),
        (path, ("--id", "true", "--truth", "true", *two_files), "id", "truth", "true"),
        (path, ("--label", "item", *two_files), "item", "label", "item"),
        (path, ("--annotator", "label", *two_files), "label", "annotator", "label"),
        (path, ("--annotator", "who", "--options", "who", *two_files), "annotator", "options", "who"),
        (path, ("--labels-say", "label", *two_files), "label", "labels-say", "label"),
        (path, ("--format", "signed", "--label", "who", "--item", "who", *two_files), "item", "label", "who"),
        (tmp_path / "rows.npy", ("--labels", votes, "--truth", "label"), "label", "truth", "label"),
        (tmp_path / "rows.npy", ("--labels", votes, "--truth", "item"), "item", "truth", "item"),
    ):
        out = () if command == "audit" else ("--out", tmp_path / ("RUN" if command == "fit" else "out.csv"))
        said = naysay(command, source, *asked, *out, code=2).stderr.strip().splitlines()[-1]
        assert f"--{first} and --{second} both name '{name}', which can only say one thing: " in said, asked
        assert said.endswith("Name another one, or leave one of them out.")


def test_columns_of_one_name_in_two_files_are_two_columns(tmp_path):
    path = write_csv(tmp_path / "data.csv", [["id", "a", "b", "label"], *([*row[:3], NAMES[0]] for row in rows()[1:])])
    votes = write_csv(tmp_path / "votes.csv", [["id", "label"], *([f"i{i}", NAMES[1 + i % 2]] for i in range(40))])
    asked = ("--id", "id", "--truth", "label", "--labels", votes, "--item", "id", "--label", "label")
    naysay("augment", path, *asked, "--classes", ",".join(NAMES), "--out", tmp_path / "out.csv")


def test_a_column_of_shards_that_is_named_for_two_things_is_refused(tmp_path):
    path = write_csv(tmp_path / "data.csv", rows())
    asked = ("--engine", "ray", "--id", "id", "--label", "id", "--features", "a", "--out", tmp_path / "out")
    assert "--id and --label both name 'id'" in naysay("augment", path, *asked, code=2).stderr


def test_spellings_are_merged_or_kept_apart_when_asked(tmp_path):
    path = write_csv(tmp_path / "data.csv", rows(at2_3="Dog", at3_3="e\u0301mu", at6_3="ému", at9_3="ému"))
    base = ("augment", path, "--label", "not_label")
    assert "'Dog' and 'dog'" in refused(tmp_path, path)
    naysay(*base, "--merge-spelling", "--out", tmp_path / "merged.csv")
    assert header_of(tmp_path / "merged.csv") == ["id", "not_cat", "not_dog", "not_emu", "not_ému"]
    naysay(*base, "--classes", "cat,Dog,dog,emu,ému,e\u0301mu", "--out", tmp_path / "apart.csv")
    assert header_of(tmp_path / "apart.csv") == [
        "id",
        "not_cat",
        "not_Dog",
        "not_dog",
        "not_emu",
        "not_ému",
        "not_e\u0301mu",
    ]
    said = naysay(*base, "--classes", "cat,dog,emu,ému", "--out", tmp_path / "none.csv", code=2).stderr
    assert "names the class 'Dog', which is not among the classes" in said
    assert "take it for 'dog' with --merge-spelling" in said


def header_of(path):
    return next(csv.reader(path.open(encoding="utf-8")))


def test_labels_for_unknown_items_are_refused(tmp_path):
    items = write_csv(tmp_path / "items.csv", [row[:3] for row in rows()])
    votes = write_csv(tmp_path / "votes.csv", [["item", "label"], ["i1", "cat"], ["i99", "dog"], ["i2", "emu"]])
    done = naysay("fit", items, "--labels", votes, "--out", tmp_path / "RUN", code=2)
    assert "row 1 labels item 'i99', which is not among the 40 items" in done.stderr
    shown = write_csv(
        tmp_path / "shown.csv", [["item", "label", "shown"], ["i1", "cat", "dog|emu"], ["i2", "dog", "dog|emu|cat"]]
    )
    done = naysay("fit", items, "--labels", shown, "--options", "shown", "--out", tmp_path / "RUN", code=2)
    assert "was not among the options shown" in done.stderr
    # an audit counts it instead
    assert naysay("audit", items, "--labels", shown, "--options", "shown", "--json").stdout.startswith("{")


def test_files_that_are_no_tables_are_refused(tmp_path):
    for name, content, said in (
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"id,a,b,not_label\n", "has a header but no rows"),
        ("latin.csv", "id,a,not_label\ni0,1,köter\ni1,2,cat\n".encode("latin-1"), "is not UTF-8 text"),
        (
            "ragged.csv",
            ",".join(f"c{i}" for i in range(11)).encode() + b"\n" + b"1,2,3,4,5,6,7,8,9,10\n",
            "has a row of 10 cells under a header of 11",
        ),
        ("broken.parquet", b"PAR1 is how it began", "cannot be read as Parquet"),
        ("table.xlsx", b"PK", "must be a table; got the ending '.xlsx'"),
        ("broken.npz", b"PK", "cannot be read as .npz"),
    ):
        (tmp_path / name).write_bytes(content)
        label = () if name.endswith("npz") else ("--label", "c0" if name == "ragged.csv" else "not_label")
        done = naysay("fit", tmp_path / name, *label, "--out", tmp_path / "RUN", code=2)
        assert said in done.stderr, name
    assert not (tmp_path / "RUN").exists()


def test_eleven_columns_asked_of_a_file_of_ten_are_refused(tmp_path):
    path = write_csv(tmp_path / "ten.csv", [["id", "label", *(f"f{i}" for i in range(8))], ["a", "cat", *range(8)]])
    features = ",".join(f"f{i}" for i in range(9))
    done = naysay("fit", path, "--label", "label", "--features", features, "--out", tmp_path / "RUN", code=2)
    assert "unknown column of" in done.stderr
    assert "'f8'" in done.stderr


def test_what_is_not_said_is_asked_for(tmp_path):
    path = write_csv(tmp_path / "data.csv", rows())
    fit = ("fit", path, "--out", tmp_path / "RUN")
    assert (
        "pass --label COLUMN"
        in naysay(
            "fit", write_csv(tmp_path / "n.csv", [row[:3] for row in rows()]), "--out", tmp_path / "R", code=2
        ).stderr
    )
    assert "unknown column" in naysay(*fit, "--label", "nto_label", code=2).stderr
    assert "not_label" in naysay(*fit, "--label", "nto_label", code=2).stderr
    assert (
        "neither a file or folder nor a known set"
        in naysay("fit", "no-such-thing", "--out", tmp_path / "R", code=2).stderr
    )
    for option, value, said in (
        ("--scheme", "dsm", "did you mean dss or dms"),
        ("--loss", "slc-nl", "did you mean scl-nl"),
        ("--model", "resnet19", "did you mean resnet18"),
        ("--gamma", "big", "--gamma must be a positive number or auto"),
        ("--neighbors", "aut", "--neighbors must be a whole number of at least 1 or auto; got 'aut'"),
        ("--neighbors", "0", "--neighbors must be a whole number of at least 1 or auto; got '0'"),
        ("--alpha", "aut", "--alpha must be a positive number or auto"),
        ("--space", "polar", "unknown space"),
        ("--assume", "nothing", "unknown assumption"),
        ("--held-out", "2", "held_out must be a share"),
        ("--learning-rate", "-1", "learning_rate must be above 0"),
        ("--contradictions", "shrug", 'contradictions must be "raise"'),
        ("--fine-tune", None, "pass --encoder FILE too"),
        ("--encoder", "none.safetensors", "got a table"),
        ("--config", "none.toml", "there is no config file"),
    ):
        done = naysay(*fit, "--label", "not_label", option, *([] if value is None else [value]), code=2)
        assert said in done.stderr, option
    assert not (tmp_path / "RUN").exists()
    assert naysay("fit", path, code=2).exit_code == 2  # --out is missing: a usage error


@pytest.mark.parametrize("command", ["fit", "pretrain"])
def test_files_of_a_known_set_are_told_how_to_be_used(tmp_path, command):
    rng = np.random.default_rng(0)
    images = {f"x_{part}": rng.integers(0, 256, (20, 28, 28), dtype=np.uint8) for part in ("train", "test")}
    truth = {f"y_{part}": np.arange(20) % 10 for part in ("train", "test")}
    np.savez(tmp_path / "mnist.npz", **images, **truth, classes=np.arange(10).astype(str))
    asked = (command, tmp_path / "mnist.npz", "--data", tmp_path, "--out", tmp_path / "out")
    said = naysay(*asked, code=2).stderr.strip()
    assert f"is a path, so that --data {tmp_path}, where sets lie that are given by name, would change nothing." in said
    assert said.endswith("Leave it out, or give the set by its name: mnist.")
    for file, sets, name in (
        ("clcifar10.pkl", "clcifar10", "clcifar10"),
        ("cifar-10-python.tar.gz", "cifar10 or clcifar10 or aclcifar10", "NAME"),
    ):
        (tmp_path / file).write_bytes(b"as published")
        said = naysay(command, tmp_path / file, "--out", tmp_path / "out", code=2).stderr.strip()
        assert f"of which {sets} is made. Import it, and then give the set by its name: " in said
        assert said.endswith(f"naysay data import {name} {tmp_path / file}")


def test_two_classes_are_ordinary_labels_in_disguise(tmp_path):
    two = [HEADER, *([f"i{i}", i, i, NAMES[i % 2]] for i in range(30))]
    assert "ordinary labels in disguise" in refused(tmp_path, write_csv(tmp_path / "two.csv", two))


def test_nothing_is_overwritten_without_force(tmp_path):
    path = write_csv(tmp_path / "data.csv", rows())
    fit = ("fit", path, "--label", "not_label", "--epochs", 1, "--scheme", "none", "--out")
    run, mine = tmp_path / "RUN", tmp_path / "mine"
    naysay(*fit, run)
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    assert "exists already" in naysay(*fit, run, code=2).stderr
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before
    naysay(*fit, run, "--force", "--seed", 1)  # two runs within a second may be alike to the byte
    assert (run / "run.json").read_bytes() != before["run.json"]
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    assert "will not be replaced" in naysay(*fit, mine, "--force", code=2).stderr
    assert (mine / "thesis.txt").read_text() == "years of work"
    predict = ("predict", run, path, "--out", tmp_path / "p.csv")
    naysay(*predict)
    assert "exists already" in naysay(*predict, code=2).stderr
    naysay(*predict, "--force")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["RUN", "data.csv", "mine", "p.csv"]


def test_a_failure_halfway_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write_csv(tmp_path / "data.csv", rows())
    naysay("fit", path, "--label", "not_label", "--epochs", 1, "--scheme", "none", "--out", tmp_path / "RUN")
    out = tmp_path / "p.csv"
    out.write_text("old")
    bad = write_csv(tmp_path / "bad.csv", rows(at40_1="inf"))
    done = naysay("predict", tmp_path / "RUN", bad, "--out", out, "--force", code=2)
    assert "must hold finite numbers" in done.stderr
    assert out.read_text() == "old"
    twice = write_csv(tmp_path / "twice.csv", rows(at40_0="i0"))
    assert "'i0' more than once" in naysay("predict", tmp_path / "RUN", twice, "--out", out, "--force", code=2).stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["RUN", "bad.csv", "data.csv", "p.csv", "twice.csv"]


def test_a_place_that_cannot_be_written_shows_before_the_work(tmp_path):
    path = write_csv(tmp_path / "data.csv", rows())
    (tmp_path / "file").write_text("")
    done = naysay("fit", path, "--label", "not_label", "--out", tmp_path / "file" / "RUN", code=2)
    assert "cannot be written" in done.stderr
    assert "auditing" not in done.stderr


def test_a_folder_that_is_no_run_cannot_predict(tmp_path):
    path = write_csv(tmp_path / "data.csv", rows())
    assert (
        "there is no such folder"
        in naysay("predict", tmp_path / "RUN", path, "--out", tmp_path / "p.csv", code=2).stderr
    )
    (tmp_path / "RUN").mkdir()
    (tmp_path / "RUN" / "run.json").write_text("{}")
    assert (
        "is not a run folder" in naysay("predict", tmp_path / "RUN", path, "--out", tmp_path / "p.csv", code=2).stderr
    )
    assert "is not a run folder" in naysay("report", tmp_path / "RUN", code=2).stderr
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=cmd()", "'=cmd()"),
        ("+1+2", "'+1+2"),
        ("-A1", "'-A1"),
        ("@sum", "'@sum"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("-1.5e3", "-1.5e3"),
        ("+7", "+7"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_formulas_become_text_and_numbers_stay(text, written):
    assert harmless(text) == written


def test_formulas_and_html_in_names_are_harmless_wherever_they_are_written(tmp_path):
    script = "<script>alert(1)</script>"
    names = {"cat": "=cmd()", "dog": script, "emu": "[bold]emu[/nope]"}
    table = [HEADER, *(["=" + row[0], *row[1:3], names[row[3]]] for row in rows()[1:])]
    path = write_csv(tmp_path / "data.csv", table)
    naysay("fit", path, "--label", "not_label", "--epochs", 1, "--out", tmp_path / "RUN")
    assert script not in (tmp_path / "RUN" / "report.html").read_text()
    assert "alert(1)" in (tmp_path / "RUN" / "report.html").read_text()  # it is there, as text
    naysay("audit", path, "--label", "not_label", "--html", tmp_path / "audit.html")
    assert script not in (tmp_path / "audit.html").read_text()
    naysay("predict", tmp_path / "RUN", path, "--out", tmp_path / "p.csv")
    cells = [cell for row in csv.reader((tmp_path / "p.csv").open()) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))]
    assert "'=i0" in cells
    naysay("augment", path, "--label", "not_label", "--out", tmp_path / "z.csv")
    assert "'=i0" in (tmp_path / "z.csv").read_text()


def test_the_real_command_ends_with_a_sentence_and_two(tmp_path):
    path = write_csv(tmp_path / "my data.csv", rows(at3_1="inf"))
    command = [
        Path(sys.executable).with_name("naysay"),
        "fit",
        path,
        "--label",
        "not_label",
        "--out",
        tmp_path / "my run",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(f"naysay: {path} must hold finite numbers in column 'a'; got ")
    assert "Traceback" not in done.stderr


def test_an_interrupted_fit_leaves_nothing_behind(tmp_path):
    path = write_csv(tmp_path / "data.csv", rows())
    command = [
        Path(sys.executable).with_name("naysay"),
        "fit",
        path,
        "--label",
        "not_label",
        "--epochs",
        "100000",
        "--out",
        tmp_path / "RUN",
    ]
    # a test run in the background inherits that interrupts are ignored; the command must be tested as a terminal starts
    # it
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    ) as running:
        # a command that cannot be interrupted fails the test instead of hanging it
        patience = threading.Timer(120, running.kill)
        patience.start()
        for line in running.stderr:
            if "training" in line:
                break
        time.sleep(0.5)  # into the training
        os.kill(running.pid, signal.SIGINT)
        said = running.stderr.read()
        patience.cancel()
    assert running.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    assert [file.name for file in tmp_path.iterdir()] == ["data.csv"]


CELL = st.one_of(
    st.text(max_size=6), st.sampled_from(["1", "2.5", "cat", "dog", "emu", "", "nan", "-1", '"', "=x", "\x00", "é"])
)
TABLE = st.builds(
    lambda head, body: "\n".join(",".join(row) for row in [head, *body]).encode("utf-8", "surrogatepass"),
    st.lists(st.sampled_from(["id", "a", "b", "not_label", "", "a"]), min_size=1, max_size=5),
    st.lists(st.lists(CELL, min_size=0, max_size=5), max_size=8),
)
BYTES = st.one_of(st.binary(max_size=200), TABLE, TABLE.map(lambda table: b"id,a,b,not_label\n" + table))


@settings(
    max_examples=150, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=BYTES)
def test_any_bytes_as_a_table_work_or_end_with_two(tmp_path, content):
    path = tmp_path / "fuzz.csv"
    path.write_bytes(content)
    works_or_ends_with_two("augment", path, "--label", "not_label", "--out", tmp_path / "z.csv", "--force", "--quiet")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place = tmp_path_factory.mktemp("trained")
    path = write_csv(place / "data.csv", rows())
    naysay("fit", path, "--label", "not_label", "--epochs", 1, "--scheme", "none", "--out", place / "RUN")
    return place / "RUN"


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=BYTES)
def test_any_bytes_are_predicted_or_end_with_two(trained, tmp_path, content):
    (tmp_path / "fuzz.csv").write_bytes(content)
    works_or_ends_with_two("predict", trained, tmp_path / "fuzz.csv", "--out", tmp_path / "p.csv", "--force", "--quiet")


def test_a_run_folder_that_was_meddled_with_is_refused(trained, tmp_path):
    path = write_csv(tmp_path / "data.csv", rows())
    for name, content, said in (
        ("run.json", b"{}", "is not a run folder"),
        (
            "run.json",
            (trained / "run.json").read_bytes().replace(b'"emu"', b'"emu", "gnu"', 1),
            "does not belong to the model beside it",
        ),
        (
            "run.json",
            (trained / "run.json").read_bytes().replace(b'"emu"', b'"emu\\ud800"'),
            r"run.json is damaged: the class 'emu\ud800' is not UTF-8 text. Fit the run again.",
        ),
        ("model.safetensors", (trained / "model.safetensors").read_bytes()[:99], "is not a whole checkpoint file"),
    ):
        copy = tmp_path / "copy"
        shutil.copytree(trained, copy)
        (copy / name).write_bytes(content)
        assert said in naysay("predict", copy, path, "--out", tmp_path / "p.csv", code=2).stderr
        shutil.rmtree(copy)
    shutil.copytree(trained, copy)
    for name in ("records.jsonl", "audit.json", "report.npz"):
        (copy / name).unlink()
        assert f"{name} cannot be read" in naysay("report", copy, code=2).stderr
        shutil.copyfile(trained / name, copy / name)


@settings(max_examples=50, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=BYTES)
def test_any_bytes_as_long_labels_work_or_end_with_two(tmp_path, content):
    items = write_csv(tmp_path / "items.csv", [["id", "a"], ["i0", 1], ["i1", 2], ["1", 3], ["cat", 4]])
    (tmp_path / "fuzz.csv").write_bytes(content)
    options = ("--labels", tmp_path / "fuzz.csv", "--label", "not_label", "--contradictions", "keep")
    works_or_ends_with_two("augment", items, *options, "--out", tmp_path / "z.csv", "--force", "--quiet")


@settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kinds=st.lists(
        st.sampled_from(
            [pa.int64(), pa.string(), pa.list_(pa.float64()), pa.bool_(), pa.date32(), pa.struct([("x", pa.int8())])]
        ),
        min_size=4,
        max_size=4,
    )
)
def test_any_types_in_parquet_work_or_end_with_two(tmp_path, kinds):
    made = {
        pa.int64(): 7,
        pa.string(): "seven",
        pa.list_(pa.float64()): [7.0],
        pa.bool_(): True,
        pa.date32(): 7,
        pa.struct([("x", pa.int8())]): {"x": 7},
    }
    columns = {name: pa.array([made[kind]], kind) for name, kind in zip(HEADER, kinds, strict=True)}
    pq.write_table(pa.table(columns), tmp_path / "fuzz.parquet")
    works_or_ends_with_two(
        "augment", tmp_path / "fuzz.parquet", "--label", "not_label", "--out", tmp_path / "z.csv", "--force", "--quiet"
    )


def works_or_ends_with_two(*arguments):
    from typer.testing import CliRunner

    from naysay.cli import app

    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code in (0, 2), (done.output, done.exception)
    assert done.exit_code == 0 or done.stderr.strip().splitlines()[-1].startswith("naysay: ")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--minutes", "nan"), "--minutes must be above 0; got nan."),
        (("--minutes", "inf"), "--minutes must be above 0; got inf."),
        ((), "pretraining is for images; got the table"),
    ],
)
def test_pretraining_on_a_table_or_for_no_time_is_refused(tmp_path, asked, said):
    data = tmp_path / ("x.npy" if asked else "x.csv")
    np.save(tmp_path / "x.npy", np.zeros((8, 4, 4), np.uint8))
    write_csv(tmp_path / "x.csv", rows())
    assert said in naysay("pretrain", data, "--batch", 4, *asked, "--out", tmp_path / "enc", code=2).stderr


@pytest.mark.parametrize("held", ["run.json", "records.jsonl", "checkpoint.safetensors", "records of fit", "notes.txt"])
def test_pretraining_writes_into_no_folder_that_it_has_not_begun(tmp_path, held):
    np.save(tmp_path / "x.npy", np.zeros((8, 4, 4), np.uint8))
    out = tmp_path / "theirs"
    out.mkdir()
    begun = json.dumps({"kind": "run", "config": {"recipe": "emp"}}) + "\n"
    content = {
        "run.json": {"run.json": json.dumps({"format": "naysay-run-1"}), "records.jsonl": begun},  # ours, and finished
        "records of fit": {"records.jsonl": json.dumps({"kind": "run", "format": "naysay-run-1"}) + "\n"},
    }.get(held, {held: "mine"})
    for name, text in {**content, "encoder.safetensors": "mine"}.items():
        (out / name).write_text(text)
    before = {file.name: file.read_text() for file in out.iterdir()}
    said = naysay("pretrain", tmp_path / "x.npy", "--batch", 4, "--epochs", 1, "--out", out, code=2).stderr
    why = "is a run of naysay fit" if held == "run.json" else "was not begun by naysay pretrain"
    assert f"{out} {why}, so nothing is written there. Choose another folder." in said
    assert {file.name: file.read_text() for file in out.iterdir()} == before
