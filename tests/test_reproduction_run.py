"""The paper's runs: specs are checked, runs become records, and what is recorded is never run again."""

import dataclasses
import itertools
import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from naysay import augment, datasets, features, labels, metrics, selection, transition
from naysay.datasets import store
from naysay.errors import InputError
from naysay.holdout import prepare
from naysay.learning import Config, environment, train
from naysay.learning.recipe import Task
from naysay.learning.recipes import build
from naysay.learning.steps import Steps
from naysay.models import resnet18_encoder
from reproduction import NAMES, compiled, experiments, get, plan, sets, values, versions, wanted
from reproduction.command import app
from reproduction.estimate import estimate
from reproduction.experiments import EXPERIMENTS, config
from reproduction.records import ledger, perform
from reproduction.sets import Place
from reproduction.spec import Wanted

SPEC = """
kind = "table"
title = "Digits, small"
source = "a test"
experiment = "classifier"

[values]
dataset = "digits"
loss = "scl-nl"
scheme = ["none", "rms"]
n_neighbors = 8
model = "mlp"
epochs = 2
held_out = 0.1
seed = [0, 1]

[[block]]
label = "classifier"

[[block]]
label = "sharing"
experiment = "sharing"
sharing = ["original", "explicit"]
n_train = 300
seed = 3
without = ["scheme", "n_neighbors", "held_out"]

[[block]]
label = "decoding"
experiment = "decoding"
seed = 3
without = ["loss", "scheme", "n_neighbors", "model", "learning_rate", "epochs"]

[quick]
epochs = 1
seed = 0

[origin]
dataset = "ours"
loss = "ours"
scheme = "ours"
n_neighbors = "ours"
model = "ours"
epochs = "ours"
held_out = "ours"
seed = "ours"
sharing = "ours"
n_train = "ours"

[show]
rows = ["label", "scheme"]
columns = ["dataset"]
figures = ["test_accuracy"]
"""
ROOT = Path(__file__).parent.parent
HERE = ("--workers", 0, "--threads", 1)  # threads change the last digits


def laboratory(*arguments, code=0):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done


def write(folder, text=SPEC, name="tiny.toml"):
    (folder / name).write_text(text)
    return folder / name


def records(results):
    return {
        record["key"]: record
        for path in sorted(results.glob("*.jsonl"))
        for record in map(json.loads, path.read_text().splitlines())
    }


def timeless(results):
    """The records without what differs from one run of the same thing to the next."""
    kept = records(results)
    for record in kept.values():
        del record["seconds"], record["environment"]["started"]
    return kept


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder with the spec, and the records of all its runs, made in this process."""
    folder = tmp_path_factory.mktemp("paper")
    said = laboratory("run", write(folder), "--results", folder / "results", "--note", "as it is", *HERE)
    return folder, said


def test_every_run_of_a_spec_becomes_a_record(done):
    folder, said = done
    runs, kept = wanted(get(str(folder / "tiny.toml"))), records(folder / "results")
    assert len(runs) == 7
    assert set(kept) == {run.key for run in runs}
    for run in runs:
        record = kept[run.key]
        assert record["values"] == dict(run.values)
        assert record["data"] == {
            "name": "digits",
            "hash": datasets.load("digits").fingerprint,
            "simulated": False,
            "note": "as it is",
        }
        assert {"versions", "hardware", "started"} == set(record["environment"])
        assert ("history" in record) == (run.experiment == "sharing")
    assert "7 runs wanted, 0 recorded, 7 missing" in said.stderr
    assert "probe" in said.stderr
    assert said.stderr.count("test accuracy") == 7
    assert "7 runs done" in said.stdout


def test_figures_are_those_of_the_contract(done):
    figures = {}
    for record in records(done[0] / "results").values():
        figures.setdefault(record["experiment"], set()).add(tuple(record["figures"]))
    sharing = (
        "train_accuracy",
        "test_accuracy",
        "confidence_seen",
        "confidence_unseen",
        "sharing_efficiency",
        "neighbouring_noise",
    )
    classifier = (
        "test_accuracy",
        "held_out",
        "held_out_error",
        "best_test_accuracy",
        "best_held_out",
        "best_epoch",
        "augmented_accuracy",
    )
    explicit = (*sharing[:3], "confidence_augmented", *sharing[3:])
    assert figures == {
        "sharing": {sharing, explicit},
        "classifier": {classifier},
        "decoding": {("test_accuracy", "held_out", "held_out_error", "n_neighbors")},
    }


def test_augmented_labels_are_judged_only_where_there_are_any(done):
    for record in records(done[0] / "results").values():
        if record["experiment"] == "classifier":
            shared = record["values"]["scheme"] != "none"
            assert (record["figures"]["augmented_accuracy"] is not None) == shared
            assert record["encoder"] == ({"name": "pixels", "hash": None} if shared else None)


IN_SPACE = """
kind = "table"
title = "Digits, in their feature space"
source = "a test"
experiment = "augmented"

[values]
dataset = "digits"
scheme = ["rss", "dms"]
n_neighbors = 8
seed = 0

[[block]]
label = "labels"

[[block]]
label = "features"
experiment = "classifier"
scheme = ["none", "dms"]
inputs = "features"
loss = "scl-nl"
model = "mlp"
epochs = 2
held_out = 0.1

[origin]
dataset = "ours"
scheme = "ours"
n_neighbors = "ours"
seed = "ours"
inputs = "ours"
loss = "ours"
model = "ours"
epochs = "ours"
held_out = "ours"

[show]
rows = ["label", "scheme"]
columns = ["dataset"]
figures = ["augmented_accuracy"]
"""


@pytest.fixture(scope="module")
def in_space(tmp_path_factory):
    """The records of runs that look at labels alone, and of classifiers that see features, by kind and scheme; and what
    was said.
    """
    folder = tmp_path_factory.mktemp("space")
    said = laboratory("run", write(folder, IN_SPACE), "--results", folder, *HERE)
    return {(one["experiment"], one["values"]["scheme"]): one for one in records(folder).values()}, said.stderr


def test_labels_are_judged_before_anything_is_trained(in_space):
    kept, said = in_space
    digits, features = datasets.load("digits"), sets.space("digits", Place()).train
    Z = augment(features, sets.complementary("digits", 0, Place()), "dms", 8)
    assert kept["augmented", "dms"]["figures"] == {
        "augmented_accuracy": metrics.oracle_argmin_accuracy(Z, digits.y_train),
        "wrong_mass": metrics.oracle_mass(Z, digits.y_train),
    }
    assert kept["augmented", "rss"]["figures"] != kept["augmented", "dms"]["figures"]
    assert said.count("least named class is true") == 2


def test_held_out_labels_judge_what_the_others_say_and_take_no_part_in_it():
    digits, comp = datasets.load("digits"), sets.complementary("digits", 0, Place())
    told = {"dataset": "digits", "scheme": "rms", "n_neighbors": 8, "held_out": 0.2, "seed": 0}
    figures = EXPERIMENTS["augmented"](told, Place()).figures
    rows, held = selection.hold_out(len(comp), 0.2, seed=0)
    given = comp.clone()
    given[held] = 0
    Z = augment(sets.space("digits", Place()).train, given, "rms", 8)
    assert figures["augmented_accuracy"] == metrics.oracle_argmin_accuracy(Z[rows], digits.y_train[rows])
    named_least = (Z[held] == Z[held].amin(1, keepdim=True)).float()
    named = ((named_least / named_least.sum(1, keepdim=True)) * comp[held]).sum(1)  # how often it is the held-out label
    assert figures["held_out"] == pytest.approx(1 - 9 * float(named.mean()), abs=1e-6)
    assert (
        abs(figures["held_out"] - metrics.oracle_argmin_accuracy(Z[held], digits.y_train[held]))
        < 3 * (figures["held_out_error"])
    )


@pytest.mark.parametrize("scheme", ["none", "dms"])
def test_a_classifier_may_see_features_instead_of_images(in_space, scheme):
    record = in_space[0]["classifier", scheme]
    its, comp = sets.space("digits", Place()), sets.complementary("digits", 0, Place())
    options = {"scheme": scheme, "n_neighbors": 8} if scheme == "dms" else {}
    ready = prepare(its.train, comp, features=its.train, held_out=0.1, seed=0, **options)
    trained = train(Config(loss="scl-nl", model="mlp", epochs=2, seed=0), ready.x, ready.comp, held_out=ready.held_out)
    accuracy = metrics.oracle_accuracy(trained.predictor.predict(its.test), datasets.load("digits").y_test)
    assert record["figures"]["test_accuracy"] == pytest.approx(accuracy, abs=0.005)
    assert record["encoder"] == {"name": "pixels", "hash": None}


def test_features_have_no_encoder_to_fine_tune():
    asked = {"dataset": "digits", "scheme": "none", "inputs": "features", "fine_tune": True, "held_out": 0.1, "seed": 0}
    with pytest.raises(InputError, match="no encoder to fine-tune"):
        plan.check(Wanted("classifier", "", asked))


def test_a_second_call_has_nothing_to_do(done):
    folder, _ = done
    before = records(folder / "results")
    said = laboratory("run", folder / "tiny.toml", "--results", folder / "results", *HERE)
    assert "7 recorded, 0 missing" in said.stderr
    assert said.stdout == "nothing to do\n"
    assert records(folder / "results") == before


BLOCKED = """
import importlib.abc, runpy, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        package, frame = name.partition(".")[0], sys._getframe(1)
        while frame.f_globals.get("__name__", "").startswith("importlib"):
            frame = frame.f_back
        theirs = frame.f_globals.get("__name__", "").partition(".")[0] in ("typer", "pydantic", "annotated_types")
        if package in ("ray", "faiss", "matplotlib") or (package == "pydantic" and not theirs):
            raise ModuleNotFoundError("blocked: " + name, name=name)

sys.meta_path.insert(0, Blocked())
import naysay.runs.results  # which --json needs
import reproduction.estimate
reproduction.estimate.LONG_ENOUGH = 0  # how long it takes is not what is asked
sys.argv = ["reproduction", *sys.argv[1:]]
runpy.run_module("reproduction", run_name="__main__")
"""


def test_a_killed_driver_is_resumed_and_two_workers_give_the_records_of_one_process(done, tmp_path):
    """The driver runs as on a GPU machine: without pydantic (but for typer's use of it), ray, faiss and matplotlib."""
    folder, _ = done
    call = ["run", folder / "tiny.toml", "--results", tmp_path, "--note", "as it is", "--threads", 1]
    driver = subprocess.Popen(
        [sys.executable, "-c", BLOCKED, *map(str, call), "--workers", "0"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 300
        while len(first := records(tmp_path)) < 3 and time.monotonic() < deadline:  # the third one shares labels
            assert driver.poll() is None, driver.stderr.read().decode()
            time.sleep(0.01)
    finally:
        driver.kill()
        driver.communicate()
    assert 3 <= len(first) < 7
    said = laboratory(*call, "--workers", 2)
    assert f"{len(records(tmp_path))} runs done" not in said.stdout
    assert {key: records(tmp_path)[key] for key in first} == first
    assert timeless(tmp_path) == timeless(folder / "results")


def test_sharing_measures_as_the_library_does_by_hand():
    """As it was when it gave the paper's figures on MNIST: the observer gets the labels that were trained on."""
    digits, seed = datasets.load("digits"), 5
    comp = labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=seed), 10)
    given, comp = comp, transition.explicit_sharing(comp, digits.y_train, seed=seed)
    added = (comp > 0) & (given == 0)
    assert set(added.sum(1).tolist()) == {4}  # half of eight
    tested = {"x_test": digits.x_test, "y_test": digits.y_test}
    observer = metrics.oracle_observer(digits.x_train, comp, digits.y_train, augmented=added / 4, **tested)
    trained = train(Config(epochs=2, normalise=False, seed=seed), digits.x_train, comp, observers=[observer])
    told = {"dataset": "digits", "sharing": "explicit", "n_train": "all", "epochs": 2, "normalise": False, "seed": seed}
    result = EXPERIMENTS["sharing"](told, Place())
    assert result.figures == {name: trained.last_figures[name] for name in result.figures}
    assert [epoch["confidence_unseen"] for epoch in result.history] == [
        epoch["confidence_unseen"] for epoch in trained.history
    ]


def test_quick_and_only_choose_among_the_runs(tmp_path):
    spec = write(tmp_path)
    quick = json.loads(laboratory("run", spec, "--quick", "--dry-run", "--json", "--results", tmp_path).stdout)
    assert (quick["wanted"], quick["done"]) == (5, 0)
    only = json.loads(
        laboratory(
            "run", spec, "--only", "scheme=none,rms", "--only", "seed=1", "--dry-run", "--json", "--results", tmp_path
        ).stdout
    )
    assert only["wanted"] == 2
    assert only["estimated_seconds"] > 0
    assert list(tmp_path.iterdir()) == [spec]


def test_numbers_may_be_typed_as_one_likes():
    assert {run.label for run in wanted(get("tab-baselines"), only={"experiment": ["decoding"]})} == {"kNN decoding"}
    runs = wanted(get("tab-main"), only={"learning_rate": ["1e-3"], "fine_tune": ["false"], "dataset": ["cifar10"]})
    assert {run.values["learning_rate"] for run in runs} == {0.001}
    with pytest.raises(InputError, match="unknown learning_rate '3e-3'"):
        wanted(get("tab-main"), only={"learning_rate": ["3e-3"]})


def test_after_the_limit_no_run_is_started(tmp_path):
    said = laboratory("run", write(tmp_path), "--limit", 0, "--results", tmp_path, *HERE)
    assert "0 runs done" in said.stdout
    assert "7 not started (--limit)" in said.stdout
    assert not records(tmp_path)


def test_a_set_that_cannot_be_had_is_reported_and_the_rest_goes_on(tmp_path):
    text = SPEC.replace('dataset = "digits"', 'dataset = ["digits", "kmnist-partial"]', 1).replace(
        "seed = [0, 1]", "seed = 0", 1
    )
    spec, results = write(tmp_path, text), tmp_path / "results"
    said = laboratory("run", spec, "--only", "scheme=none", "--data", tmp_path / "data", "--results", results, *HERE)
    assert "1 of them need kmnist-partial" in said.stderr
    assert f"Put kmnist-partial.npz in {tmp_path / 'data'}" in said.stderr
    assert [record["values"]["dataset"] for record in records(results).values()] == ["digits"]


def test_a_missing_encoder_comes_with_the_command_that_makes_it(tmp_path):
    said = laboratory(
        "run",
        "tab-main",
        "--quick",
        "--only",
        "dataset=cifar10",
        "--weights",
        tmp_path,
        "--results",
        tmp_path,
        "--dry-run",
    )
    # 4 losses x 4 schemes x 2 seeds; the 8 runs without sharing need none
    assert "32 of them cannot run: the encoder" in said.stderr
    assert "naysay pretrain cifar10 --out" in said.stderr


def test_a_run_that_fails_is_told_at_the_end_and_the_others_are_done(tmp_path):
    spec = write(
        tmp_path,
        SPEC.replace('model = "mlp"', 'model = "mlp"\nlearning_rate = [1e-3, 1e30]').replace(
            "[origin]", '[origin]\nlearning_rate = "ours"'
        ),
    )
    call = ("run", spec, "--only", "scheme=none", "--only", "seed=0", "--results", tmp_path / "results", *HERE)
    said = laboratory(*call, code=1)
    assert "1 run done" in said.stdout
    assert "1 failed" in said.stdout
    assert "training diverged in epoch 1" in said.stderr
    assert "1 recorded, 1 missing" in laboratory(*call, code=1).stderr  # a failure is no record: it is tried again


WRONG = {
    "an unknown value": (
        'model = "mlp"',
        'modle = "mlp"',
        "unknown value of a classifier run 'modle': did you mean model",
    ),
    "a value without origin": ('loss = "ours"\n', "", "the value loss has no origin"),
    "a missing table": ("[show]", "[shown]", "unknown part of a spec 'shown': did you mean show?"),
    "no table at all": (SPEC[SPEC.index("[show]") :], "", "must have a table [show]"),
    "the wrong kind": ("epochs = 2", 'epochs = "two"', "epochs must be a whole number; got 'two'"),
    "a truth for a number": ("epochs = 2", "epochs = true", "epochs must be a whole number; got True"),
    "an unknown word": (
        'sharing = ["original", "explicit"]',
        'sharing = "explicite"',
        "unknown sharing 'explicite': did you mean explicit?",
    ),
    "a kind that is none": ('kind = "table"', 'kind = "tabel"', "unknown kind of spec 'tabel': did you mean table?"),
    "an unknown experiment": (
        'experiment = "decoding"',
        'experiment = "decode"',
        "unknown experiment 'decode': did you mean decoding?",
    ),
    "an empty axis": ("seed = [0, 1]", "seed = []", "seed is an empty list"),
    "something needed": ("held_out = 0.1\n", "", "a classifier run needs the value held_out"),
    "a quick value for nothing": ("[quick]\n", "[quick]\nflip = true\n", "unknown value for --quick to replace 'flip'"),
    "no TOML": ("[values]", "[values", "is not valid TOML"),
    "an unknown loss": ('loss = "scl-nl"', 'loss = "slc-nl"', "unknown loss 'slc-nl': did you mean scl-nl"),
    "an unknown scheme": ('["none", "rms"]', '["none", "rns"]', "unknown scheme 'rns': did you mean rss or rms?"),
    "an unknown model": ('model = "mlp"', 'model = "mpl"', "unknown model 'mpl': did you mean mlp?"),
    "an unknown set": (
        'dataset = "digits"',
        'dataset = "digit"',
        "unknown dataset of a spec 'digit': did you mean digits?",
    ),
    "an unknown spec to extend": (
        'kind = "table"',
        'kind = "table"\nextends = "tab-man"',
        "unknown table or figure to extend 'tab-man'",
    ),
}


@pytest.mark.parametrize("case", sorted(WRONG))
def test_a_spec_of_ones_own_is_refused_in_a_sentence(case, tmp_path):
    old, new, says = WRONG[case]
    assert old in SPEC
    said = laboratory(
        "run", write(tmp_path, SPEC.replace(old, new, 1)), "--dry-run", "--results", tmp_path, code=2
    ).stderr
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("tab-mian",), "unknown table or figure 'tab-mian': did you mean tab-main"),
        (("nowhere.toml",), "the spec nowhere.toml cannot be read"),
        (("tab-main", "--only", "los=pc"), "unknown value 'los': did you mean loss"),
        (("tab-main", "--only", "loss=slc-nl"), "unknown loss 'slc-nl': did you mean scl-nl"),
        (("tab-main", "--only", "loss"), "--only must be VALUE=A,B"),
        (("tab-baselines", "--only", "loss=scl-nl", "--only", "learning_rate=0.5"), "unknown learning_rate '0.5'"),
    ],
    ids=["spec", "file", "name", "value", "form", "number"],
)
def test_typos_on_the_command_line_are_told_the_nearest_names(arguments, says, tmp_path):
    assert says in laboratory("run", *arguments, "--dry-run", "--results", tmp_path, code=2).stderr


def test_a_spec_may_extend_one_of_ours(tmp_path):
    text = 'extends = "tab-main"\ntitle = "One cell"\n[values]\ndataset = "cifar10"\nloss = "pc"\nscheme = "dms"\n'
    runs = wanted(get(str(write(tmp_path, text))), quick=True)
    assert [run.key for run in runs] == [
        run.key
        for run in wanted(get("tab-main"), quick=True, only={"dataset": ["cifar10"], "loss": ["pc"], "scheme": ["dms"]})
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_values_of_every_shipped_run_are_accepted(name):
    for quick in (False, True):
        for run in wanted(get(name), quick=quick):
            plan.check(run)
            assert set(run.values) <= set(get(name).origin)


def test_names_of_training_values_and_their_kinds_are_those_of_the_config():
    kinds = {field.name: (field.type,) for field in dataclasses.fields(Config)}
    kinds["width"] = (int,)  # of the model: an option of it, and no setting of the config
    assert {name: kinds[name] for name in values.TRAINING} == dict(values.TRAINING)
    assert config({"model": "convnet", "width": 8}) == Config(model="convnet", model_options={"width": 8})
    assert config({"dataset": "digits", "loss": "pc", "seed": 4}) == Config(loss="pc", seed=4)
    assert set(values.EXPERIMENTS) == set(EXPERIMENTS)


def test_keys_stay_what_they_are():
    """A key that changes orphans every record: if this fails, so does the table that was run for days."""
    first = {name: wanted(get(name))[0].key for name in ("tab-explicit", "tab-main", "tab-baselines")}
    assert first == {
        "tab-explicit": "3c3c76b61596eb73",
        "tab-main": "7ba8d7a51fb03f43",
        "tab-baselines": "0aa21f3f28f19c86",
    }
    assert wanted(get("fig-implicit"))[0].key == first["tab-explicit"]  # tables that share runs share records


def test_a_repair_gives_the_runs_it_touches_another_key_and_knows_the_old_one():
    run = wanted(get("clcifar10-simulated"), only={"loss": ["ure-ga"], "scheme": ["dms"]})[0]
    assert list(run.keys.values()) == [
        {"labels": 1, "loss": 1, "draws": 1},
        {"labels": 1, "loss": 1},
        {"labels": 1},
        {},
    ]
    assert list(wanted(get("clcifar10-simulated"))[0].keys)[-1] == "2d034a2044dd2159"  # as it was without versions
    assert len(set(run.keys)) == 4


TOUCHED = {  # how many repairs touch the first run of each that has these values
    ("tab-main", "cifar10", "scl-nl", "none"): 0,  # a label that is 1 cannot be rounded
    ("tab-main", "cifar10", "scl-nl", "dms"): 1,
    ("tab-main", "cifar10", "ure-ga", "none"): 1,
    ("tab-main", "aclcifar10", "scl-nl", "none"): 1,  # three labels of a third each
    ("check-features", "cifar10", "ure-ga", "dms"): 0,  # float32
    ("check-labels", "cifar10", None, "dms"): 0,
    ("check-labels", "clcifar10-simulated", None, "dms"): 1,
    ("fig-explicit", "mnist", "scl-nl", None): 1,
    ("fig-explicit", "cifar10", "scl-nl", None): 2,
    ("fig-implicit", "cifar10", "scl-nl", None): 0,
}


@pytest.mark.parametrize("case", TOUCHED, ids=lambda case: " ".join(filter(None, case)))
def test_a_repair_touches_the_runs_it_says(case):
    name, *told = case
    asked = {key: [value] for key, value in zip(("dataset", "loss", "scheme"), told, strict=True) if value}
    run = wanted(get(name), only=asked)[0]
    assert len(versions.touching(run.experiment, run.values)) == TOUCHED[case]


def test_versions_of_a_part_rise_and_losses_on_soft_labels_are_touched():
    for part in {repair.part for repair in versions.REPAIRS}:
        its = [repair.version for repair in versions.REPAIRS if repair.part == part]
        assert its == list(range(1, len(its) + 1)), part
    soft = {"dataset": "digits", "scheme": "rms", "loss": "mcl-log"}
    assert versions.history("classifier", soft) == [{"loss": 2}, {}]
    assert versions.history("classifier", soft | {"scheme": "none"}) == [{}]
    assert versions.history("decoding", {"dataset": "digits"}) == [{"ties": 2}, {"ties": 1}, {}]


def test_a_stale_record_is_done_again_and_before_what_is_missing(tmp_path, monkeypatch):
    spec, results = write(tmp_path), tmp_path / "results"
    chosen = ("--only", "scheme=none,rms", "--only", "experiment=classifier")
    call = ("run", spec, "--results", results, *chosen, *HERE)
    laboratory(*call, "--only", "seed=1")
    old = records(results)
    assert all(record["version"] == {} for record in old.values())
    mended = versions.Repair(
        "labels", 1, "labels were shared wrongly", lambda experiment, values: values.get("scheme") == "rms"
    )
    monkeypatch.setattr(versions, "REPAIRS", (mended,))
    assert "4 runs wanted, 2 recorded (1 stale), 2 missing" in laboratory(*call, "--dry-run").stderr
    said = laboratory(*call).stderr
    order = [line for line in said.splitlines() if "test accuracy" in line]
    assert len(order) == 3
    assert "scheme rms, seed 1" in order[0]
    assert "labels were shared wrongly" not in laboratory("show", spec, "--results", results).stdout
    again = records(results)
    assert {key: again[key] for key in old} == old  # a record is never lost
    made = [record for key, record in again.items() if key not in old]
    assert sorted((record["values"]["scheme"], record["version"]) for record in made if record["version"]) == [
        ("rms", {"labels": 1}),
        ("rms", {"labels": 1}),
    ]
    assert "4 recorded, 0 missing" in laboratory(*call).stderr


def test_the_list_counts_what_is_recorded(tmp_path):
    run = wanted(get("tab-explicit"), quick=True)[0]
    ledger(tmp_path, run.experiment).add({"key": run.key, "figures": {}})
    listed = {
        row["name"]: row for row in json.loads(laboratory("list", "--results", tmp_path, "--json").stdout)["specs"]
    }
    assert set(listed) == set(NAMES)
    assert listed["tab-explicit"]["quick"] == {"recorded": 1, "stale": 0, "wanted": 6}
    assert listed["tab-explicit"]["full"] == {"recorded": 0, "stale": 0, "wanted": 30}
    assert listed["fig-implicit"]["quick"]["recorded"] == 1
    assert "1 / 6" in laboratory("list", "--results", tmp_path).stdout
    before = list(wanted(get("fig-explicit"), quick=True)[0].keys)[-1]
    ledger(tmp_path, run.experiment).add({"key": before, "figures": {}})
    listed = {
        row["name"]: row for row in json.loads(laboratory("list", "--results", tmp_path, "--json").stdout)["specs"]
    }
    assert listed["fig-explicit"]["quick"] == {"recorded": 1, "stale": 1, "wanted": 3}
    assert "1* / 3" in laboratory("list", "--results", tmp_path).stdout


def test_runs_that_share_a_compilation_come_one_after_another():
    runs = wanted(get("tab-main"), quick=True)
    order = compiled.in_groups(runs)
    assert sorted(run.key for run in order) == sorted(run.key for run in runs)
    groups = [compiled.group(run.experiment, run.values) for run in order]
    changes = sum(one != other for one, other in itertools.pairwise(groups))
    assert changes + 1 == len(set(groups)) == 8  # four losses, with 10 and with 20 classes


def test_a_second_learner_of_the_same_settings_is_not_compiled_again():
    """What the order of the runs relies on: torch keeps compiled code with the function, and finds it for other
    weights.
    """
    from torch._dynamo.testing import CompileCounter

    torch.compiler.reset()
    counter = CompileCounter()
    for seed, loss in enumerate(("scl-nl", "scl-nl", "l-w", "scl-nl")):
        learner = build(Task(Config(loss=loss, seed=seed), torch.ones(5, 4), torch.eye(3)[[0, 1, 2, 0, 1]]))
        torch.compile(Steps(learner)._evaluate, backend=counter, fullgraph=True)(torch.arange(5), None)
    assert counter.frame_count == 2
    torch.compiler.reset()


def test_the_time_is_taken_from_records_of_the_same_hardware(tmp_path):
    run = wanted(get(str(write(tmp_path))))[0]
    record = {"experiment": run.experiment, "values": dict(run.values), "seconds": 10.0}
    record["environment"] = environment(sets.device(), 1)
    longer = dataclasses.replace(run, values={**run.values, "epochs": 2 * run.values["epochs"]})
    told = estimate([run, longer], [record])
    assert told.seconds == pytest.approx(30)
    assert "records" in told.source
    assert "probe" not in told.source
    elsewhere = record | {"environment": {"hardware": {"name": "a machine far away"}}}
    assert "probe" in estimate([run], [elsewhere]).source


def test_smaller_training_sets_lie_within_larger_ones():
    small, large = (set(sets.training_rows(1000, n, seed=2).tolist()) for n in (50, 400))
    assert small < large
    assert sets.training_rows(5, "all", seed=2).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match="n_train must be 1 to 5"):
        sets.training_rows(5, 6, seed=0)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A data folder with 30 images that pass for cifar10, some annotated, and an encoder of random weights for them."""
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    x, y = rng.integers(0, 256, (30, 32, 32, 3)).astype(np.uint8), np.arange(30) % 10
    arrays = {
        "x_train": x,
        "y_train": y,
        "x_test": x[:10],
        "y_test": y[:10],
        "classes": np.array(datasets.CATALOG["cifar10"].classes),
    }
    store.write(folder / "cifar10.npz", arrays)
    store.write(folder / "aclcifar10.npz", {**arrays, "comp_train": (y[:, None] + np.arange(1, 5)) % 10})
    store.write(folder / "clcifar10.npz", arrays)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        features.save_encoder(folder / "weights" / "cifar10.safetensors", resnet18_encoder(), {})
    return Place(str(folder), str(folder / "weights"))


def test_labels_are_drawn_given_or_simulated(photos):
    drawn = sets.complementary("cifar10", 0, photos)
    assert ((drawn > 0).sum(1) == 1).all()
    given = sets.complementary("aclcifar10", 0, photos)
    assert given[0].nonzero()[:, 0].tolist() == [1, 2, 3]  # the first three of four
    assert torch.equal(given, sets.complementary("aclcifar10", 1, photos))
    assert sets.complementary("aclcifar10", 2, photos, 1)[0].nonzero()[:, 0].tolist() == [3]  # the third alone
    with pytest.raises(
        InputError, match="aclcifar10 has 4 labels of each image; got seed 4, which takes 1 from number 5"
    ):
        sets.complementary("aclcifar10", 4, photos, 1)
    simulated = sets.complementary("clcifar10-simulated", 0, photos)
    assert torch.equal((3 * simulated).round().sum(1), torch.full((30,), 3.0))
    assert (simulated > 0.5).any()  # drawn one by one: a class may be named twice
    assert torch.equal(simulated, sets.complementary("clcifar10-simulated", 0, photos))
    assert not torch.equal(simulated, sets.complementary("clcifar10-simulated", 1, photos))
    assert sets.about("clcifar10-simulated", photos, None)["simulated"]
    assert not sets.about("aclcifar10", photos, None)["simulated"]
    with pytest.raises(InputError, match="has no annotations"):
        sets.complementary("clcifar10", 0, photos)


def test_the_space_is_the_encoders_features_of_length_1(photos):
    found = sets.space("aclcifar10", photos)
    card = json.loads((Path(photos.weights) / "cifar10.json").read_text())
    assert found.encoder == {"name": "cifar10", "hash": card["sha256"]}
    assert found.train.shape == (30, 512)
    assert torch.allclose(found.train.norm(dim=1), torch.ones(30), atol=1e-5)  # float32
    assert sets.space("aclcifar10", photos) is found


def test_the_space_is_the_networks_where_the_file_holds_a_readout(photos, tmp_path):
    """The paper's features are those of the backbone."""
    encoder, _ = features.load_encoder(Path(photos.weights) / "cifar10.safetensors")
    read = features.with_readout(encoder, datasets.load("cifar10", Path(photos.data)).x_train)
    features.save_encoder(tmp_path / "cifar10.safetensors", read, {})
    found = sets.space("cifar10", dataclasses.replace(photos, weights=str(tmp_path)))
    assert torch.equal(found.train, sets.space("cifar10", photos).train)
    card = json.loads((tmp_path / "cifar10.json").read_text())
    assert found.encoder == {"name": "cifar10", "hash": card["sha256"]}


def test_a_set_may_have_another_encoder_of_the_same_images(photos):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        features.save_encoder(Path(photos.weights) / "cifar10-simsiam.safetensors", resnet18_encoder(), {})
    ours, theirs = (sets.space(name, photos) for name in ("cifar10", "cifar10-simsiam"))
    assert (ours.encoder["name"], theirs.encoder["name"]) == ("cifar10", "cifar10-simsiam")
    assert not torch.allclose(ours.train, theirs.train, atol=0.01)
    assert sets.images("cifar10-simsiam", photos) is sets.images("cifar10", photos)
    drawn = [sets.complementary(name, 3, photos) for name in ("cifar10", "cifar10-simsiam")]
    assert torch.equal(*drawn)  # so that the two are compared on the same labels


def test_fine_tuning_puts_the_encoder_into_the_model(photos, tmp_path):
    """Seen by an encoder that does not fit, which training refuses before it begins."""
    told = {"dataset": "cifar10", "scheme": "none", "fine_tune": True, "held_out": 0.1, "seed": 0, "model": "resnet18"}
    features.save_encoder(tmp_path / "cifar10.safetensors", resnet18_encoder(1), {})
    with pytest.raises(InputError, match=r"cifar10.safetensors is not the encoder of this model.*\(64, 1, 3, 3\)"):
        perform("classifier", told, dataclasses.replace(photos, weights=str(tmp_path)))
    with pytest.raises(InputError, match="naysay pretrain cifar10"):
        perform("classifier", told, dataclasses.replace(photos, weights="nowhere"))
    with pytest.raises(InputError, match="there is no encoder for digits"):
        perform("classifier", told | {"dataset": "digits"}, photos)


def test_the_example_in_the_docs_is_a_spec(tmp_path):
    page = (ROOT / "docs" / "PAPER.md").read_text()
    example = page[page.index('    kind = "table"') : page.index("`extends = ")]
    runs = wanted(get(str(write(tmp_path, textwrap.dedent(example)))))
    assert len(runs) == 12
    for run in runs:
        plan.check(run)


def test_a_run_by_the_recipe_consistent_keeps_its_curve():
    """The laboratory's run of the recipe: figures of the last epoch, and accuracy against minutes."""
    settings = {"recipe": "consistent", "correction": "even", "model": "mlp", "epochs": 3, "first": 1, "renewals": 1}
    small = {"batch_size": 256, "learning_rate": 3e-3, "crop": 1, "flip": False, "mixup": 0.0, "warmup_epochs": 0}
    record = perform("consistent", {"dataset": "digits", **settings, **small, "seed": 0}, Place())
    assert [line["epoch"] for line in record["history"]] == [1, 2, 3]
    assert record["figures"]["test_accuracy"] == pytest.approx(record["history"][-1]["test_accuracy"], abs=1e-6)
    assert record["history"][0]["minutes"] < record["figures"]["minutes"] <= record["seconds"] / 60
    # digits are no mirror images of themselves, and where images are not flipped in training none is at the end
    assert record["figures"]["unflipped_test_accuracy"] == record["figures"]["test_accuracy"]


@pytest.mark.parametrize("own", [{"recipe": "pocr", "ramp": 2, "views": 1}, {"recipe": "plain", "loss": "scarce"}])
def test_rivals_of_the_recipe_are_run_in_the_same_way(own):
    small = {"model": "mlp", "epochs": 3, "batch_size": 256, "learning_rate": 3e-3, "optimizer": "adamw", "crop": 1}
    values = {"dataset": "digits", "correction": "none", "flip": False, **small, **own, "seed": 0}
    record = perform("consistent", values, Place())
    assert [line["epoch"] for line in record["history"]] == [1, 2, 3]
    assert record["figures"]["test_accuracy"] == pytest.approx(record["history"][-1]["test_accuracy"], abs=1e-6)
    assert ("agreement" in record["history"][0]) == (own["recipe"] == "pocr")
    # class shares are for a recipe that has a use for them
    with pytest.raises(InputError, match=f"unknown setting of the recipe {own['recipe']} 'class_shares'"):
        perform("consistent", {**values, "correction": "even"}, Place())


def test_the_recipe_for_rows_is_run_on_what_the_encoder_makes_of_the_images():
    small = {"model": "mlp", "epochs": 2, "batch_size": 256, "learning_rate": 3e-3, "correction": "even", "seed": 0}
    record = perform("consistent", {"dataset": "digits", "inputs": "features", "recipe": "taught", **small}, Place())
    assert [line["epoch"] for line in record["history"]] == [1, 2]
    assert 0 <= record["history"][-1]["coverage"] <= 1
    with pytest.raises(InputError, match="the recipe taught is for rows; got images"):
        perform("consistent", {"dataset": "digits", "recipe": "taught", **small}, Place())


def test_rivals_have_one_network_start_length_and_weak_views_and_differ_by_recipe_alone():
    for quick in (False, True):
        runs = wanted(get("tab-rivals"), quick=quick)
        common = ("dataset", "model", "fine_tune", "optimizer", "learning_rate", "weight_decay", "warmup_epochs")
        assert len({tuple(run.values[name] for name in common) for run in runs}) == 1
        assert len({tuple(run.values[name] for name in ("batch_size", "epochs", "crop", "flip")) for run in runs}) == 1
        assert {run.values["recipe"] for run in runs} == {"consistent", "pocr", "plain"}
        assert {run.values["seed"] for run in runs} == ({0} if quick else {0, 1})


def test_full_supervision_names_every_wrong_class_and_learns_the_truth(monkeypatch):
    """The ceiling of the recipe: with no teacher and no neighbours in them, targets are the true classes."""
    seen = {}

    def trained(config, x, comp, **rest):
        seen["comp"] = comp
        return real(config, x, comp, observers=[*rest.pop("observers"), target], **rest)

    def target(snapshot):
        learner = snapshot.learner
        if snapshot.epoch > learner.first:
            rows = torch.arange(len(learner.x))
            seen["target"] = learner.target(torch.randn(len(rows), 10), rows)
        return {}

    real = experiments.train
    monkeypatch.setattr(experiments, "train", trained)
    settings = {"recipe": "consistent", "correction": "even", "model": "mlp", "epochs": 3, "first": 1, "renewals": 1}
    small = {"batch_size": 256, "learning_rate": 3e-3, "crop": 1, "flip": False, "mixup": 0.0, "warmup_epochs": 0}
    full = {"supervision": "full", "trust": 0.0, "shared": 0.0, "own": 1.0, "noise": 0.0}
    perform("consistent", {"dataset": "digits", **settings, **small, **full, "seed": 0}, Place())
    y_true = torch.from_numpy(datasets.load("digits").y_train).long()
    assert bool((seen["comp"] > 0).sum(1).eq(9).all())
    assert not bool(seen["comp"].gather(1, y_true[:, None]).any())
    assert float(seen["target"].gather(1, y_true[:, None]).min()) > 0.999


def test_the_table_of_the_recipe_can_be_run_on_few_images(tmp_path):
    numbers = np.random.default_rng(0)
    y = (np.arange(60) % 10).astype(np.int64)
    x = numbers.integers(0, 256, (60, 28, 28), dtype=np.uint8)
    known = {"classes": np.array([str(k) for k in range(10)])}
    np.savez(tmp_path / "mnist.npz", x_train=x, y_train=y, x_test=x[:20], y_test=y[:20], **known)
    only = ("--only", "dataset=mnist", "--only", "model=pooled-resnet")
    laboratory("run", "tab-recipe", "--quick", *only, "--data", tmp_path, "--results", tmp_path / "results")
    (record,) = records(tmp_path / "results").values()
    assert (record["values"]["epochs"], record["values"]["model"]) == (4, "pooled-resnet")
    assert [line["epoch"] for line in record["history"]] == [1, 2, 3, 4]
