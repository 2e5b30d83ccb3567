"""One training on several processes, by torchrun and on Ray: it ends where one process ends; one failure ends all."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from naysay import labels
from naysay.cli import app
from naysay.cluster import connect, train_on_ray
from naysay.errors import InputError
from naysay.learning import Config, Diverged, HeldOut, Predictor, train
from naysay.processes import ALONE, here, join

# tests that open ports run one after another: a free port that one has found must not be another's
OPENS_PORTS = True

# Two processes add the same numbers in another order; over some dozen AdamW steps of float32 that came to 6e-8. A step
# that went wrong moves weights by the learning rate, 3e-3.
ROUNDING = 1e-5

CONFIG = Config(epochs=4, batch_size=50, model_options={"hidden": 16})


def problem():
    generator = np.random.default_rng(0)
    x, comp = generator.normal(size=(301, 8)).astype(np.float32), labels.from_indices(generator.integers(0, 5, 301), 5)
    return {"x": x[:250], "comp": comp[:250], "held_out": HeldOut(x[250:], comp[250:])}


def apart(one, two):
    return max(float((tensor - two.tensors()[name]).abs().max()) for name, tensor in one.tensors().items())


def without_times(history):
    return [{name: value for name, value in line.items() if name != "seconds"} for line in history]


def test_a_process_that_nobody_placed_is_alone(monkeypatch):
    for name in ("WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    assert here() is ALONE
    assert join() is ALONE
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        InputError, match=r"RANK, LOCAL_RANK, MASTER_ADDR, MASTER_PORT is not set\. Start them with torchrun"
    ):
        here()


def test_fit_under_torchrun_is_fit_and_speaks_once(tmp_path):
    command = ["fit", "digits", "--transition", "uniform", "--scheme", "none,rss", "--epochs", "2", "--json", "--out"]
    two = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "naysay",
        *command,
        tmp_path / "two",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(two, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    alone = json.loads(CliRunner().invoke(app, [*command, str(tmp_path / "one")]).stdout)
    shared = json.loads(done.stdout)  # one object, not two
    assert [row["estimate"] for row in shared["results"]] == [row["estimate"] for row in alone["results"]]
    assert apart(*(Predictor.load(tmp_path / name / "model.safetensors") for name in ("one", "two"))) < ROUNDING
    assert json.loads((tmp_path / "two" / "run.json").read_text())["hardware"]["processes"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]  # nothing unfinished is left
    one, two = (sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("one", "two"))
    assert two == one


@pytest.fixture(scope="module")
def cluster():
    with connect(workers=2) as ray:
        yield ray


def kill_once(mark):
    """An observer that kills its own process after the second epoch, unless it has done so before."""

    def observe(snapshot):
        if snapshot.epoch == 2 and not mark.exists():
            mark.write_text("killed")
            os.kill(os.getpid(), signal.SIGKILL)
        return {}

    return observe  # a function in a function goes to the workers as code: this file is none that they could import


def test_two_ray_workers_take_the_steps_of_one_process_even_when_one_is_killed(cluster, tmp_path):
    kill = kill_once(tmp_path / "mark")
    killed = train_on_ray(CONFIG, **problem(), workers=2, folder=tmp_path / "run", observers=[kill])
    alone = train(CONFIG, **problem())
    assert (tmp_path / "mark").exists()
    assert apart(killed.predictor, alone.predictor) < ROUNDING
    assert apart(killed.best, alone.best) < ROUNDING
    assert killed.best_epoch == alone.best_epoch
    for line, expected in zip(without_times(killed.history), without_times(alone.history), strict=True):
        assert line == pytest.approx(expected, abs=ROUNDING)
    epochs = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in epochs if line["kind"] == "epoch"] == [1, 2, 3, 4]
    assert torch.equal(
        Predictor.load(tmp_path / "run" / "checkpoint.safetensors").predict(problem()["x"]),
        alone.predictor.predict(problem()["x"]),
    )


def test_what_fails_on_ray_comes_back_as_it_was_raised(cluster):
    with pytest.raises(Diverged, match="training diverged in epoch 1"):
        train_on_ray(Config(epochs=1, learning_rate=1e30), **problem(), workers=2)
    with pytest.raises(InputError, match="workers and attempts must be at least 1; got 0 and 3"):
        train_on_ray(CONFIG, **problem(), workers=0)
