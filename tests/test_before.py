"""What the version before the redesign wrote still loads: a run folder, a training that was interrupted, a graph.

`tests/before/` was written by commit e44d5b7 (2026-11-16): by `naysay fit digits --transition uniform --epochs 2
--scheme none,rss --model linear --seed 3`, by `train` with two of four epochs, and by `Graph.save`.
"""

import shutil
from pathlib import Path

import torch
from typer.testing import CliRunner

from naysay import datasets, labels, metrics, neighbors
from naysay.cli import app
from naysay.learning import Config, Predictor, train
from naysay.runs import Run

BEFORE = Path(__file__).parent / "before"


def problem():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(120, 6, generator=generator)
    return x, labels.from_indices(torch.randint(0, 4, (120,), generator=generator), 4)


def test_a_run_folder_of_the_version_before_predicts_and_its_report_is_drawn(tmp_path):
    run, digits = Run.load(BEFORE / "run"), datasets.load("digits")
    predicted, p = run.predict(digits.x_test)
    recorded = next(row for row in run.about["results"] if row["chosen"])["truth"]["test_accuracy"]
    assert metrics.oracle_accuracy(predicted, digits.y_test) == recorded
    assert torch.allclose(p.sum(1), torch.ones(len(p)))
    drawn = CliRunner().invoke(app, ["report", str(BEFORE / "run"), "--out", str(tmp_path / "again.html")])
    assert drawn.exit_code == 0, drawn.output
    page = (tmp_path / "again.html").read_text()
    assert all(text in page for text in ("rss", "estimated accuracy", "sharing efficiency", "How often each class"))


def test_a_training_that_the_version_before_began_goes_on_to_the_same_bits(tmp_path):
    shutil.copytree(BEFORE / "training", tmp_path / "run")
    config = Config(epochs=4, batch_size=50, model="linear", schedule="constant")
    resumed, whole = train(config, *problem(), folder=tmp_path / "run"), train(config, *problem())
    assert [epoch["epoch"] for epoch in resumed.history] == [1, 2, 3, 4]
    for name, tensor in whole.predictor.tensors().items():
        # the first two epochs were another machine's: sums of 50 float32 terms may differ there in the last bit
        assert torch.allclose(tensor, resumed.predictor.tensors()[name], atol=1e-6), name
    assert Predictor.load(tmp_path / "run" / "checkpoint.safetensors").predict(problem()[0]).shape == (120,)


def test_a_graph_that_the_version_before_saved_is_the_graph_of_its_rows():
    assert neighbors.Graph.load(BEFORE / "graph.safetensors") == neighbors.build(problem()[0].numpy(), 3)
