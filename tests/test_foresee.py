"""What a training will take is said before it begins: time by a few steps, memory by what they hold."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from naysay import models
from naysay.cli import app
from naysay.cli.fit import NETWORK, usual_recipe
from naysay.learning import Predictor, configure
from naysay.learning.foresee import Foreseen, foresee
from naysay.processes import Processes
from naysay.runs import Run

X = np.random.default_rng(0).integers(0, 256, (400, 16, 16, 3), dtype=np.uint8)


def test_steps_are_counted_and_twice_the_epochs_take_twice_the_time():
    one, two = (foresee(configure("plain", model="lenet", batch_size=32, epochs=epochs), X, 3) for epochs in (5, 10))
    assert one.steps == 5 * 13  # of 400 rows, 12 whole batches and a smaller one
    assert one.seconds == pytest.approx(one.seconds_per_step * 65)
    assert (two.steps, two.n_bytes) == (2 * one.steps, one.n_bytes)


def test_memory_grows_with_rows_weights_and_the_batch():
    def n_bytes(x=X, **settings):
        return foresee(configure("plain", **{"model": "mlp", "batch_size": 32, **settings}), x, 3).n_bytes

    wide = n_bytes(model_options={"hidden": 1024}) - n_bytes(model_options={"hidden": 512})
    # weights, gradients and AdamW's two moments of 512 units with 768 inputs, in float32, and what a batch keeps
    assert wide == pytest.approx(4 * 4 * 512 * (768 + 1 + 3) + 32 * 512 * 4, rel=0.02)
    assert n_bytes(np.concatenate([X, X])) - n_bytes() == 400 * (768 + 3 * 4)
    assert n_bytes(batch_size=128) > n_bytes(batch_size=64) > n_bytes()
    shared = foresee(configure("plain", model="mlp", batch_size=32), X, 3, Processes(size=2)).n_bytes
    assert n_bytes(batch_size=16) == shared  # two processes halve a batch between them


def test_a_recipe_with_a_teacher_holds_its_weights_too():
    plain, taught = (
        foresee(configure(recipe, model="lenet", batch_size=32, precision="32-true", **own), X, 3).n_bytes
        for recipe, own in (("plain", {}), ("consistent", {"crop": 2}))
    )
    weights = sum(p.nbytes for p in models.build("lenet", (3, 16, 16), 3).parameters())
    assert taught >= plain + weights


@pytest.fixture
def pictures(tmp_path):
    named = np.array(["not a", "not b", "not c"])[np.arange(60) % 3]
    np.savez(tmp_path / "images.npz", ids=np.arange(60).astype(str), x=X[:60], **{"not": named})
    return (
        f"fit {tmp_path}/images.npz --id ids --features x --label not --model lenet --epochs 1 --scheme none --folds 1"
    )


def test_a_run_says_what_it_will_take_where_that_is_worth_telling(pictures, tmp_path, monkeypatch):
    quick = CliRunner().invoke(app, [*pictures.split(), "--out", str(tmp_path / "quick")])
    assert "this will take about" not in quick.output
    monkeypatch.setattr(sys.modules["naysay.runs.fit"], "WORTH_TELLING", 0.0)
    told = CliRunner().invoke(app, [*pictures.split(), "--out", str(tmp_path / "told")])
    assert "this will take about" in told.output, told.output
    assert "GB of memory" in told.output


def test_the_model_that_is_trained_on_all_rows_is_in_the_time(pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["naysay.runs.fit"], "foresee", lambda *task: Foreseen(1.0, 30, 10**9))
    asked = [*pictures.split(), "--out", str(tmp_path / "run")]
    assert "about 60 s on this machine" in CliRunner().invoke(app, asked).output  # one is judged, one is kept


def test_a_model_that_was_fitted_with_flips_takes_an_image_for_its_mirror_image(pictures, tmp_path):
    done = CliRunner().invoke(app, [*pictures.split(), "--flips", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    predictor = Run.load(tmp_path / "run").predictor
    assert isinstance(predictor, Predictor)
    torch.testing.assert_close(predictor.logits(X[:9]), predictor.logits(X[:9, :, ::-1].copy()))


def test_flips_of_a_table_are_refused_before_anything_is_trained(tmp_path):
    (tmp_path / "data.csv").write_text("id,a,not\n" + "".join(f"{i},{i % 7},{'xyz'[i % 3]}\n" for i in range(30)))
    asked = f"fit {tmp_path}/data.csv --id id --label not --flips --out {tmp_path}/run"
    refused = CliRunner().invoke(app, asked.split())
    assert refused.exit_code == 2
    assert "flips are for images, which have a mirror image; got a table" in " ".join(refused.output.split())


@pytest.mark.parametrize(
    ("given", "gpu", "recipe"),
    [
        ({"encoder": "weights.safetensors"}, True, "consistent"),
        ({"encoder": "weights.safetensors", "epochs": 5, "held_out": 0.2}, True, "consistent"),
        ({"encoder": "weights.safetensors"}, False, None),
        ({}, True, None),
        ({"encoder": "mine.npy"}, True, None),  # features of one's own
        ({"encoder": "small.safetensors"}, True, None),  # the small network
        ({"encoder": "weights.safetensors", "as_published": True}, True, None),
        ({"encoder": "weights.safetensors", "scheme": "dms"}, True, None),
        ({"encoder": "weights.safetensors", "model": "lenet"}, True, None),
        ({"encoder": "weights.safetensors", "config": "settings.toml"}, True, None),
    ],
)
def test_an_encoder_and_a_gpu_get_the_recipe_that_won_unless_plain_training_is_asked_for(
    given, gpu, recipe, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("weights.safetensors", "mine.npy"):
        Path(name).write_bytes(bytes(11 << 20))
    Path("small.safetensors").write_bytes(bytes(1 << 20))
    assert usual_recipe({**NETWORK, "model": None, **given}, gpu) == recipe
