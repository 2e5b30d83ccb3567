"""One of each, added from outside the package: a loss, a recipe, a data set, a scheme, a model and a command.

Each is one function or class and one row of a table, and works wherever a name of that table is taken.
"""

import dataclasses
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import naysay
from naysay import cli, datasets, labels, losses, metrics, models, transition
from naysay.augmentation import SCHEMES, Scheme
from naysay.datasets import CATALOG, Entry
from naysay.errors import InputError
from naysay.learning import RECIPES, Config, Recipe, configure, train
from naysay.learning.recipes.plain import Plain
from naysay.losses import LOSSES, Separable
from naysay.models import MODELS, ModelRow

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.fixture(scope="module")
def comp(digits):
    return labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=0), 10)


def test_a_loss_is_a_matrix_and_a_row(monkeypatch, digits, comp):
    def squared(logits, T):
        return logits.softmax(1) ** 2  # L[i, k]: how much instance i believes in the class k that it is not

    monkeypatch.setitem(LOSSES, "squared", Separable("squared", "nobody 2026", squared, saturates=True))
    trained = train(Config(loss="squared", epochs=20), digits.x_train, comp)
    assert metrics.oracle_accuracy(trained.predictor.predict(digits.x_test), digits.y_test) > 0.5
    half = naysay.ComplementaryClassifier(loss="squared", epochs=1).fit(digits.x_train[:100], comp[:100].argmax(1))
    assert half.predict(digits.x_test).shape == digits.y_test.shape
    assert losses.compute("squared", torch.zeros(1, 4), torch.eye(4)[:1]) == pytest.approx(1 / 16)


@dataclasses.dataclass(frozen=True)
class Options:
    penalty: float = 0.0


class Gentle(Plain):
    """Plain, with a penalty on large logits."""

    figures = ("size",)

    def forward(self, rows, draws):
        terms, _ = super().forward(rows, draws)
        size = self.model(self.inputs(self.processes.part(rows), draws)).square().mean()
        return terms + RECIPES["gentle"].read_options(self.config).penalty * size, size.detach()[None]


def test_a_recipe_is_a_learner_and_a_row(monkeypatch, digits, comp, tmp_path):
    monkeypatch.setitem(RECIPES, "gentle", Recipe("gentle", Gentle, "nobody 2026", "small logits", options=Options))
    settings = {"epochs": 4, "schedule": "constant", "model_options": {"hidden": 16}}
    clashing = dataclasses.make_dataclass("Clashing", [("momentum", float, 0.5)], frozen=True)
    monkeypatch.setitem(RECIPES, "clash", Recipe("clash", Gentle, "nobody", "", options=clashing))
    with pytest.raises(InputError, match="must name its settings otherwise: Config has momentum too"):
        configure("clash")
    free, held = (train(configure("gentle", penalty=p, **settings), digits.x_train, comp) for p in (0.0, 1.0))
    plain = train(Config(**settings), digits.x_train, comp)
    assert [epoch["loss"] for epoch in free.history] == [epoch["loss"] for epoch in plain.history]
    assert held.last_figures["size"] < free.last_figures["size"] / 2
    # what the loop does for every recipe: a run in two parts is the run in one
    train(configure("gentle", penalty=1.0, **{**settings, "epochs": 2}), digits.x_train, comp, folder=tmp_path)
    again = train(configure("gentle", penalty=1.0, **settings), digits.x_train, comp, folder=tmp_path)
    assert [epoch["loss"] for epoch in again.history] == [epoch["loss"] for epoch in held.history]


def test_the_recipe_of_the_contributing_page_is_one_file_and_one_row_in_the_package(tmp_path):
    page = (ROOT / "docs" / "CONTRIBUTING.md").read_text()
    file = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
    shutil.copytree(ROOT / "src" / "naysay", tmp_path / "naysay", ignore=shutil.ignore_patterns("__pycache__"))
    recipes = tmp_path / "naysay" / "learning" / "recipes"
    (recipes / "teacher.py").write_text(file)
    table = (recipes / "__init__.py").read_text()
    rows = ("simsiam, taught\n", "simsiam, taught, teacher\n"), ("emp.ROW)", "emp.ROW, teacher.ROW)")
    for old, new in rows:
        assert old in table
        table = table.replace(old, new)
    (recipes / "__init__.py").write_text(table)
    code = "from naysay.learning import configure; print(configure('mean-teacher', decay=0.5).options['decay'])"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path, env={"PYTHONPATH": "."})
    assert done.stdout == "0.5\n", done.stderr


def test_a_data_set_is_a_decoder_and_a_row(monkeypatch, tmp_path):
    def decode(*paths):
        x, y = np.arange(24, dtype=np.uint8).reshape(6, 2, 2), np.array([0, 1, 2, 0, 1, 2])
        return {"x_train": x[:4], "y_train": y[:4], "x_test": x[4:], "y_test": y[4:]}

    entry = Entry("six squares", (2, 2), 4, 2, ("a", "b", "c"), "none", "nobody 2026", decode)
    monkeypatch.setitem(CATALOG, "squares", entry)
    loaded = datasets.load("squares", tmp_path)
    assert loaded.x_train.shape == (4, 2, 2)
    assert loaded.classes.tolist() == ["a", "b", "c"]
    assert naysay.read("squares", data=tmp_path, seed=1).comp.shape == (4, 3)


def test_a_scheme_is_a_function_of_distances_and_a_row(monkeypatch, digits, comp):
    def evenly(distances, gamma):
        return torch.full_like(distances, 1 / distances.shape[1])

    monkeypatch.setitem(SCHEMES, "even", Scheme("even", evenly, 1, "every neighbour alike"))
    pixels = digits.x_train.reshape(len(comp), -1).astype(np.float32)
    shared = naysay.augment(pixels, comp.numpy(), "even", n_neighbors=8, alpha=0.5)
    graph = naysay.neighbors.build(pixels, 8)
    expected = 0.5 * comp + 0.5 * comp[graph.indices.long()].mean(1)
    assert np.allclose(shared, expected, atol=1e-6)
    assert naysay.ComplementaryClassifier(scheme="even", epochs=1).fit(pixels, comp.argmax(1)).classes_.tolist()


def test_a_model_is_an_encoder_and_a_row(monkeypatch, digits, comp):
    def encoder(shape):
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(shape)), 7), torch.nn.Tanh()), 7

    monkeypatch.setitem(MODELS, "tanh", ModelRow("tanh", encoder, 0, "seven bounded units"))
    assert models.build("tanh", (1, 8, 8), 10).represent(torch.zeros(2, 1, 8, 8)).shape == (2, 7)
    trained = train(Config(model="tanh", epochs=1), digits.x_train, comp)
    assert trained.predictor.represent(digits.x_test).shape == (355, 7)


def test_a_command_is_a_function_and_a_row(monkeypatch):
    monkeypatch.setattr(cli.app, "registered_commands", list(cli.app.registered_commands))

    def count(data: cli.options.Data, quiet: cli.options.Quiet = False) -> None:
        """Count the items of DATA."""
        print(len(datasets.load(data).x_train))

    cli.app.command("count")(count)
    run = partial(CliRunner().invoke, cli.app)
    assert run(["count", "digits"]).output == "1442\n"
    assert "Count the items of DATA." in run(["--help"]).output
    refused = run(["count", "digitz"])
    assert refused.exit_code == 2
    assert "naysay: unknown dataset 'digitz': did you mean digits" in refused.output
