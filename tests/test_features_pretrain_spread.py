"""Pretraining on several processes: two take the steps of one, are killed and go on, and speak with one voice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

# tests that open ports run one after another: a free port that one has found must not be another's
OPENS_PORTS = True

WORKER = Path(__file__).parent / "spread_worker.py"

# Two processes add the same numbers in another order: float32 has 6e-8 of a number's size to lose at each of 16 steps
# (2e-7 was seen). A wrong average moves weights by their learning rate, 1e-3 and more.
ROUNDING = 1e-5
READOUT = 1e-3  # of a read-out, which magnifies it: by about 10, the inverse root of a narrow spread


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of all runs, and what the worker says of them."""
    folder = tmp_path_factory.mktemp("pair")
    command = [sys.executable, WORKER, "pair", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def result(folder, name, rank=0):
    told = json.loads((folder / name / f"rank{rank}.json").read_text())
    return torch.load(folder / name / f"rank{rank}.pt"), told["curve"], told["asked"]


def apart(one, two):
    return max(float((one[name].double() - two[name].double()).abs().max()) for name in one)


def figures(curve):
    return [[line[name] for name in ("epoch", "loss", "spread")] for line in curve]


@pytest.mark.parametrize(("one", "several"), [("one", "two"), ("one", "mixed"), ("emp-one", "emp-two")])
def test_two_processes_take_the_steps_of_one(trained, one, several):
    """Also when one process ends what two began, and when a loss joins the rows of both."""
    weights, curve, asked = result(trained[0], one)
    shared, same, asked_again = result(trained[0], several)
    network = [name for name in weights if name.startswith("network.")]
    assert apart({name: weights[name] for name in network}, shared) < ROUNDING
    assert len(weights) == len(network) + 2
    assert apart(weights, shared) < READOUT
    np.testing.assert_allclose(figures(same), figures(curve), atol=2e-5)  # which are rounded to five digits
    assert [line.get("knn") for line in same] == [None, 0.5, None, 0.5]
    assert asked == asked_again == 2


def test_all_processes_end_alike_and_the_first_alone_asks_the_oracle(trained):
    (first, curve, _), (second, same, asked) = (result(trained[0], "two", rank) for rank in range(2))
    assert apart(first, second) == 0
    assert figures(curve) == figures(same)
    assert asked == 0


def test_a_killed_pair_goes_on_as_if_it_had_not_been(trained):
    folder, told = trained
    assert 1 <= told["left"] < 4
    for rank in range(2):
        (weights, curve, _), (again, same, _) = result(folder, "two", rank), result(folder, "killed", rank)
        assert apart(weights, again) == 0
        assert figures(curve) == figures(same)
    lines = [json.loads(line) for line in (folder / "killed" / "records.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines if line["kind"] == "epoch"] == [1, 2, 3, 4]


def test_a_batch_that_cannot_be_shared_equally_is_refused_by_all(trained):
    assert (
        trained[1]["refused"]
        == ["every process takes an equal share of a batch; got a batch of 15 and 2 processes. A batch of 14 would do."]
        * 2
    )


@pytest.mark.parametrize("failing", [0, 1])
def test_when_one_process_fails_it_alone_says_so_and_the_other_does_not_wait(trained, failing):
    said = trained[1]["said"][failing]
    assert said[failing] == "it failed"
    assert said[1 - failing] == "exit 1"


def test_processes_that_are_ended_leave_nothing_unfinished(trained):
    assert trained[1]["unfinished"] == ["begun0", "begun1"]


def test_the_command_under_torchrun_speaks_once_and_writes_a_card_with_its_origin(tmp_path):
    np.save(tmp_path / "images.npy", np.random.default_rng(0).integers(0, 255, (8, 8, 8, 3), dtype=np.uint8))
    base = ["pretrain", tmp_path / "images.npy", "--method", "simsiam", "--epochs", "1"]
    base += ["--out", tmp_path / "out", "--json"]
    done = torchrun(*base, "--batch", "8")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finished"]  # one object, not two
    card = json.loads((tmp_path / "out" / "encoder.json").read_text())
    assert card["hardware"]["processes"] == 2
    assert card["versions"]["torch"] == torch.__version__
    assert card["date"][:2] == "20"
    assert card["command"].startswith("naysay pretrain")
    refused = torchrun(*base, "--batch", "7")
    assert refused.returncode
    assert refused.stderr.count("naysay: ") == 1
    assert "equal share" in refused.stderr


def torchrun(*words):
    """The command on two processes; torchrun's own account of a failure is left out."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "naysay"]
    command, env = [sys.executable, *torchrun, *map(str, words)], {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
