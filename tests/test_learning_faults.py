"""What training survives: kills, other people's checkpoints, full disks, and being spread over processes."""

import dataclasses
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from naysay import labels, transition
from naysay.errors import InputError
from naysay.learning import Config, HeldOut, Predictor, train
from naysay.learning.records import read

CONFIG = Config(epochs=4, batch_size=50, model_options={"hidden": 8}, schedule="constant")
WORKER = Path(__file__).parent / "learning_worker.py"


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny products are slower on two threads, and many times slower where the tests share the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def problem():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(120, 6, generator=generator)
    return x, labels.from_indices(torch.randint(0, 4, (120,), generator=generator), 4)


def run_worker(what, folder):
    command = [sys.executable, WORKER, what, folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def same_weights(first, second):
    return all(torch.equal(tensor, second.tensors()[name]) for name, tensor in first.tensors().items())


def test_a_run_killed_at_any_moment_ends_with_the_same_bits(tmp_path):
    seen = run_worker("kill", tmp_path)
    assert seen["same"]
    assert seen["epochs"] == list(range(1, 17))
    assert len(seen["left"]) == 6
    assert seen["left"][-1] >= 5  # the kills did hit a run on its way
    assert seen["while_writing"] >= 1
    assert seen["litter"] == []


def test_two_processes_take_the_steps_of_one(tmp_path):
    for loss, seen in run_worker("pair", tmp_path).items():
        # sums of 50 float32 terms in another order: about 1e-7 of each step, 21 steps
        assert seen["far"] < 2e-6, loss
        assert seen["loss"] < 1e-5, loss
        assert seen["moved"] > 1e-2, loss  # and there was something to get wrong


def test_two_processes_read_labels_as_the_first_of_them_would(tmp_path):
    """Rounding may tell two processes otherwise which reading is better; here their labels do."""
    for first, second in run_worker("reading", tmp_path):
        assert first["alone"]["linear"] != second["alone"]["linear"]
        assert first["together"] == second["together"] == first["alone"]


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon"])
@pytest.mark.parametrize("loss", ["scl-nl", "cpe-t"])
def test_a_run_in_two_parts_equals_one_in_one_part(problem, tmp_path, optimizer, loss):
    config = dataclasses.replace(CONFIG, optimizer=optimizer, loss=loss)
    held = HeldOut(*problem)
    whole = train(config, *problem, held_out=held)
    train(dataclasses.replace(config, epochs=2), *problem, held_out=held, folder=tmp_path)
    resumed = train(config, *problem, held_out=held, folder=tmp_path)
    assert same_weights(whole.predictor, resumed.predictor)
    assert same_weights(whole.best, resumed.best)
    assert [f["loss"] for f in whole.history] == [f["loss"] for f in resumed.history]
    assert [line["kind"] for line in read(tmp_path / "records.jsonl")] == ["run", *["epoch"] * 4, "result"]


def test_convolutions_resume_to_the_same_bits(tmp_path):
    # their weights and moments lie in memory channels last, and in the file they do not
    x = torch.randint(0, 256, (30, 12, 12, 3), dtype=torch.uint8)
    comp = labels.from_indices(torch.randint(0, 4, (30,)), 4)
    config = Config(model="lenet", epochs=3, batch_size=10, crop=2, flip=True, schedule="constant")
    whole = train(config, x, comp)
    train(dataclasses.replace(config, epochs=1), x, comp, folder=tmp_path)
    assert same_weights(whole.predictor, train(config, x, comp, folder=tmp_path).predictor)


def test_a_finished_run_is_not_trained_again(problem, tmp_path):
    first = train(CONFIG, *problem, folder=tmp_path)
    before = (tmp_path / "checkpoint.safetensors").stat().st_mtime_ns
    second = train(CONFIG, *problem, folder=tmp_path)
    assert (tmp_path / "checkpoint.safetensors").stat().st_mtime_ns == before
    assert same_weights(first.predictor, second.predictor)
    assert first.history == second.history
    assert [line["kind"] for line in read(tmp_path / "records.jsonl")] == ["run", *["epoch"] * 4, "result"]


def test_resume_false_starts_over(problem, tmp_path):
    train(CONFIG, *problem, folder=tmp_path)
    other = dataclasses.replace(CONFIG, seed=5)
    anew = train(other, *problem, folder=tmp_path, resume=False)
    assert same_weights(anew.predictor, train(other, *problem).predictor)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config": {"learning_rate": 0.5}}, r"differs in learning_rate \(0.003, now 0.5\)"),
        ({"config": {"model_options": {"hidden": 9}}}, r"differs in model_options .*, the model \("),
        ({"x": 1.0}, r"differs in the data \("),
        ({"comp": True}, r"differs in the labels \("),
        ({"T": True}, r"differs in the transition matrix \("),
        ({"held_out": True}, r"differs in the held-out rows \(.*the criterion \(None, now ure-accuracy\)"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_by_name(problem, tmp_path, change, message):
    x, comp = problem
    train(CONFIG, x, comp, folder=tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    config = dataclasses.replace(CONFIG, **change.get("config", {}))
    options = {"T": transition.noisy(transition.uniform(4), 0.1)} if "T" in change else {}
    options |= {"held_out": HeldOut(x, comp)} if "held_out" in change else {}
    other = comp.roll(1, dims=0) if "comp" in change else comp
    with pytest.raises(
        InputError, match=f"belongs to another run: it {message}.*Use another folder, or remove that file to start over"
    ):
        train(config, x + change.get("x", 0), other, folder=tmp_path, **options)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_broken_checkpoint_is_named_and_left_alone(problem, tmp_path):
    train(CONFIG, *problem, folder=tmp_path)
    file = tmp_path / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(
        InputError, match=r"checkpoint.safetensors is not a whole checkpoint file.*Remove it to start over"
    ):
        train(CONFIG, *problem, folder=tmp_path)
    from safetensors.torch import save_file

    save_file({"weight": torch.zeros(1)}, file)
    with pytest.raises(InputError, match=r"must be a checkpoint file \(naysay-checkpoint-2\); got format None"):
        train(CONFIG, *problem, folder=tmp_path)


def refuse(snapshot):
    raise AssertionError("training had begun")


def test_a_folder_that_cannot_be_written_is_an_error_before_training(problem, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for folder in ("/proc/naysay", tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(
            InputError, match=r"checkpoint.safetensors cannot be written \(.*Choose a place that you may write to"
        ):
            train(CONFIG, *problem, folder=folder, observers=[refuse])
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders; /proc stands in for them above")
def test_a_read_only_folder_is_an_error_before_training(problem, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written"):
        train(CONFIG, *problem, folder=tmp_path, observers=[refuse])


class FullDisk:
    """No file may grow beyond `n_bytes`: the same error path as a full disk, without root."""

    def __init__(self, n_bytes):
        self.n_bytes = n_bytes

    def __enter__(self):
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.n_bytes, self.before[1]))

    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)


def test_a_full_disk_is_an_error_before_training_and_leaves_nothing(problem, tmp_path):
    with (
        FullDisk(20_000),
        pytest.raises(
            InputError, match=r"has no room for checkpoint.safetensors \(about 0.1 MB are needed\).*Free some space"
        ),
    ):
        train(CONFIG, *problem, folder=tmp_path, observers=[refuse])
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_during_training_leaves_the_last_whole_epoch(problem, tmp_path):
    disk = FullDisk(2_000)

    def fill(snapshot):
        if snapshot.epoch == 3:
            disk.__enter__()
        return {}

    try:
        with pytest.raises(InputError, match=r"has no room for checkpoint\.safetensors"):
            train(CONFIG, *problem, folder=tmp_path, observers=[fill])
    finally:
        disk.__exit__()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint.safetensors", "records.jsonl"]
    two = train(dataclasses.replace(CONFIG, epochs=2), *problem)
    assert same_weights(Predictor.load(tmp_path / "checkpoint.safetensors"), two.predictor)
    assert same_weights(train(CONFIG, *problem, folder=tmp_path).predictor, train(CONFIG, *problem).predictor)
