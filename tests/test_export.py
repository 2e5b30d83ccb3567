"""A network as ONNX gives the probabilities that the run itself gives, for any number of rows."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from typer.testing import CliRunner

from naysay import runs
from naysay.cli import app
from naysay.errors import InputError
from naysay.learning import Config, as_onnx, train


def trained(x, **settings):
    comp = torch.nn.functional.one_hot(torch.arange(len(x)) % 3, 3).float()
    return train(Config(epochs=1, batch_size=8, seed=0, **settings), x, comp, progress=False).predictor


def ask(content, rows):
    return ReferenceEvaluator(onnx.load_from_string(content)).run(None, {"rows": rows})[0]


def test_a_table_goes_in_as_it_was_given_and_comes_out_as_the_same_probabilities():
    x = np.random.default_rng(0).normal(5, 3, (24, 4)).astype(np.float32)
    predictor = trained(x, model="mlp", loss="scl-nl")
    predictor = replace(predictor, sharpness=1.7, T=torch.full((3, 3), 0.5, dtype=torch.float64).fill_diagonal_(0))
    p = ask(as_onnx(predictor, {"classes": ["a", "b", "c"]}), x[:5])
    assert p == pytest.approx(predictor.probabilities(predictor.logits(x[:5])).numpy(), abs=1e-6)
    assert p.dtype == np.float32


def test_columns_far_from_0_go_in_as_float64_and_keep_their_bits():
    x = np.random.default_rng(0).normal(1.7e9, 1, (24, 4))
    predictor = trained(x, model="linear", loss="scl-nl")
    content = as_onnx(predictor)
    assert onnx.load_from_string(content).graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    p = ask(content, x[:5])
    assert p == pytest.approx(predictor.probabilities(predictor.logits(x[:5])).numpy(), abs=1e-6)
    assert p.dtype == np.float32


def test_images_go_in_as_pixels_of_0_to_255_and_their_mirror_images_too():
    x = np.random.default_rng(0).integers(0, 256, (16, 8, 8, 3), dtype=np.uint8)
    predictor = replace(trained(x, model="linear", loss="scl-nl"), flips=True)
    content = as_onnx(predictor)
    assert ask(content, x[:3]) == pytest.approx(predictor.probabilities(predictor.logits(x[:3])).numpy(), abs=1e-5)


def test_a_loss_whose_classes_are_rows_of_T_is_refused():
    x = np.random.default_rng(0).normal(size=(16, 2)).astype(np.float32)
    with pytest.raises(InputError, match=r"the loss cpe-i reads classes off the rows of T.*such as scl-nl"):
        as_onnx(trained(x, model="linear", loss="cpe-i"))


def test_the_command_writes_classes_and_columns_and_refuses_a_mixture(tmp_path):
    table = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal():.3f},{rng.normal():.3f},{'abc'[rng.integers(3)]}" for _ in range(60)]
    table.write_text("\n".join(["size,weight,not", *lines]) + "\n")
    command = CliRunner()
    fit = ["fit", str(table), "--label", "not", "--quiet", "--out"]
    settings = ["--model", "linear", "--scheme", "none", "--epochs", "1"]
    assert command.invoke(app, [*fit, str(tmp_path / "one"), *settings]).exit_code == 0
    assert command.invoke(app, [*fit, str(tmp_path / "mixed"), "--budget", "0.1"]).exit_code == 0
    done = command.invoke(app, ["export", str(tmp_path / "one"), "--out", str(tmp_path / "m.onnx")])
    assert done.exit_code == 0, done.output
    model = onnx.load(tmp_path / "m.onnx")
    about = {row.key: json.loads(row.value) for row in model.metadata_props if row.key in ("classes", "columns")}
    assert about == {"classes": ["a", "b", "c"], "columns": ["size", "weight"]}
    x = rng.normal(size=(4, 2)).astype(np.float32)
    p = ReferenceEvaluator(model).run(None, {"rows": x})[0]
    assert p == pytest.approx(runs.Run.load(tmp_path / "one").predict(x)[1].numpy(), abs=1e-6)
    refused = command.invoke(app, ["export", str(tmp_path / "mixed"), "--out", str(tmp_path / "n.onnx")])
    assert refused.exit_code == 2
    assert "holds a mixture of models" in refused.output
    assert not (tmp_path / "n.onnx").exists()
