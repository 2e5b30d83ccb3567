"""Ordinary labels passed by mistake are recognised, complementary ones never taken for them, whatever they are like."""

import csv

import numpy as np
import pytest
import torch
from sklearn import datasets as known
from typer.testing import CliRunner

import naysay
from naysay import labels, neighbors, runs, transition
from naysay.audit import Audit, audit
from naysay.cli import app
from naysay.errors import InputError
from naysay.estimation.meaning import agreement, ask_meaning
from naysay.features import find_space

ORDINARY = "look like ordinary labels, which say what items are"


def found(x, y, n_classes):
    return ask_meaning(labels.from_indices(y, n_classes), np.asarray(x, dtype=np.float32))


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_ordinary_labels_are_recognised(name):
    bunch = getattr(known, f"load_{name}")()
    asked = found(bunch.data, bunch.target, int(bunch.target.max()) + 1)
    assert asked.ordinary
    assert asked.gain > 0.8


def kinds(n_classes):
    """Complementary labels of every kind that is in the literature, as T."""
    uniform = transition.uniform(n_classes)
    popular = torch.tensor([10.0 * n_classes, *[1.0] * (n_classes - 1)]).double().repeat(n_classes, 1)
    popular.fill_diagonal_(0)
    yield from (uniform, transition.noisy(uniform, 0.4), popular / popular.sum(1, keepdim=True))
    yield from (transition.biased(n_classes, "strong", seed) for seed in range(4))
    yield from (T for name in transition.HUMAN if len(T := transition.human(name)) == n_classes)


@pytest.mark.parametrize("n_classes", [3, 4, 5, 10, 20])
def test_complementary_labels_are_never_taken_for_ordinary_ones(n_classes):
    x, y = known.make_blobs(60 * n_classes, 8, centers=n_classes, cluster_std=0.4, random_state=0)
    graph = neighbors.build(torch.from_numpy(x).float(), 20)
    marks, rows = np.eye(n_classes, dtype=np.int32), np.arange(len(x))
    assert agreement(graph, marks[y], rows).ordinary
    for T in kinds(n_classes):
        for seed in range(3):
            drawn = transition.sample(y, T, 1, seed).numpy()[:, 0]
            assert not agreement(graph, marks[drawn], rows).ordinary, T


def test_copies_of_an_item_and_its_label_prove_nothing():
    x, y = known.make_blobs(200, 3, centers=5, cluster_std=0.4, random_state=0)
    drawn = transition.sample(y, transition.uniform(5), 1, 0).numpy()[:, 0]
    assert not found(np.repeat(x, 6, axis=0), np.repeat(drawn, 6), 5).ordinary


def test_too_few_labels_or_soft_ones_are_not_asked_about():
    x, y = known.make_blobs(29, 3, centers=3, random_state=0)
    assert found(x, y, 3) is None
    assert ask_meaning(torch.full((40, 4), 0.25), np.zeros((40, 2))) is None


@pytest.fixture
def iris(tmp_path):
    bunch = known.load_iris()
    rows = [[*x, bunch.target_names[y]] for x, y in zip(bunch.data, bunch.target, strict=True)]
    with (tmp_path / "iris.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*"abcd", "kind"], *rows])
    return tmp_path / "iris.csv"


def test_the_audit_says_so_first_and_nothing_else():
    bunch = known.load_wine()
    comp = labels.from_indices(bunch.target, 3)
    said = audit(comp, features=find_space(bunch.data.astype(np.float32), "standardised").features)
    (advice,) = said.advice
    assert advice.level == "act"
    assert ORDINARY in advice.text
    assert Audit.from_dict(said.as_dict()) == said


def test_fit_stops_and_asks_until_it_is_told_what_labels_say(iris, tmp_path):
    def fit(*more):
        call = [
            "fit",
            str(iris),
            "--label",
            "kind",
            "--out",
            str(tmp_path / "RUN"),
            "--epochs",
            "1",
            "--scheme",
            "none",
        ]
        call += ["--folds", "1", "--no-refit"]
        return CliRunner().invoke(app, [*call, *more])

    done = fit()
    assert done.exit_code == 2
    assert ORDINARY in done.stderr
    assert "read them so with --labels-say is; if they do say what items are not, confirm it with --labels-say not" in (
        done.stderr
    )
    assert not (tmp_path / "RUN").exists()
    assert fit("--labels-say", "not").exit_code == 0
    is_so = fit("--labels-say", "is", "--force")
    assert is_so.exit_code == 0
    assert runs.Run.load(tmp_path / "RUN").about["labels"]["solved"] == 150


def test_labels_that_say_what_items_are_name_all_other_classes(iris):
    data = naysay.read(iris, label="kind", labels_say="is")
    assert data.comp[0].tolist() == [0, 0.5, 0.5]
    assert data.sure
    with pytest.raises(InputError, match='labels_say="kind" is a column of long rows'):
        naysay.read(iris, label="kind", labels_say="kind")
