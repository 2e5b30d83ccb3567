"""Questions: what answers tell is what enumeration says, what is known is not asked, a batch is no hundred times one
question, and answers that are added to the labels are known.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import naysay
from naysay.cli import app
from naysay.reading import still_meant
from naysay.runs import choose_questions, information

NAMES = ("cat", "dog", "emu", "fox")


def brute_force(p, k):
    """The mutual information of the class and the answer to "is it k?", in bits, by going through all cases."""
    joint = {(y, y == k): p[y] for y in range(len(p))}
    answers = {a: sum(q for (_, b), q in joint.items() if b == a) for a in (True, False)}
    return sum(q * np.log2(q / (p[y] * answers[a])) for (y, a), q in joint.items() if q > 0)


def test_what_an_answer_tells_is_the_mutual_information():
    rng = np.random.default_rng(0)
    for p in [*rng.dirichlet(np.ones(5), 20), np.array([1.0, 0, 0]), np.array([0.5, 0.5, 0])]:
        assert information(p) == pytest.approx([brute_force(p, k) for k in range(len(p))], abs=1e-12)


def test_the_class_nearest_to_a_half_is_asked_about_and_never_one_that_is_known():
    p = np.array(
        [[0.9, 0.06, 0.03, 0.01], [0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1], [0.25] * 4, [0.7, 0.1, 0.1, 0.1]]
    )
    known = np.zeros((5, 4), dtype=bool)
    known[2, 0] = True  # then dog has a half of what is left
    known[3, 1:] = True  # which is a cat
    known[4] = True  # a contradiction
    asked = choose_questions(p, known, np.arange(10.0).reshape(5, 2), 10)
    found = dict(zip(asked.rows.tolist(), asked.classes.tolist(), strict=True))
    assert found == {0: 0, 1: 0, 2: 1}
    assert asked.probability[asked.rows.tolist().index(2)] == pytest.approx(0.5)
    assert asked.bits[asked.rows.tolist().index(2)] == pytest.approx(1)


def test_a_model_that_believes_only_what_is_ruled_out_knows_nothing():
    asked = choose_questions(np.array([[1.0, 0, 0, 0]]), np.array([[True, False, False, False]]), np.zeros((1, 2)), 1)
    assert asked.probability.tolist() == pytest.approx([1 / 3])


def test_a_batch_is_spread_over_classes_and_over_items_that_differ():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.ones((50, 2)) + 1e-6 * rng.normal(size=(50, 2)), rng.normal(size=(150, 2)) * 9]).astype("f4")
    p = np.full((200, 4), 0.01)
    p[:50] = [0.5, 0.5, 0, 0]  # fifty times the most telling item
    p[np.arange(50, 200), np.arange(150) % 4] = 0.6
    p /= p.sum(1, keepdims=True)
    asked = choose_questions(p, np.zeros((200, 4), dtype=bool), x, 20)
    assert len(set(asked.rows.tolist())) == 20
    assert 1 <= (asked.rows < 50).sum() <= 2
    assert np.bincount(asked.classes, minlength=4).max() <= 10
    many = choose_questions(p, np.zeros((200, 4), dtype=bool), x, 190)
    assert len(many.rows) == 190  # where all are wanted, all are asked


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run made of a table and votes, from the folder where both are."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 120)
    x = (3 * np.eye(4)[y] + rng.normal(size=(120, 4))).round(3)
    with open("items.csv", "w", newline="") as file:
        csv.writer(file).writerows([["id", *"abcd"], *([f"i{i}", *row] for i, row in enumerate(x.tolist()))])
    with open("votes.csv", "w", newline="") as file:
        votes = ([f"i{i}", NAMES[(y[i] + 1 + i % 3) % 4], "not"] for i in range(0, 120, 2))
        csv.writer(file).writerows([["item", "label", "says"], *votes])
    call("fit", "items.csv", "--id", "id", "--labels", "votes.csv", "--labels-say", "says", *SHORT, "--out", "RUN")
    return y


SHORT = ("--scheme", "none", "--epochs", 3, "--folds", 1, "--no-refit", "--quiet")


def call(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def test_answers_are_added_to_the_labels_and_not_asked_again(run):
    for round in range(2):
        call("ask", "RUN", "--n", 10, "--out", "q.csv", "--force", "--quiet")
        questions = list(csv.DictReader(Path("q.csv").read_text().splitlines()))
        data = naysay.read("items.csv", id="id", labels="votes.csv", labels_say="says")
        row = {name: at for at, name in enumerate(data.items.ids)}
        for asked in questions:
            assert data.comp[row[asked["item"]], data.classes.index(asked["class"])] == 0
            assert float(asked["bits"]) == pytest.approx(float(information(float(asked["probability"]))), abs=1e-5)
        with open("votes.csv", "a", newline="") as file:
            truth = (NAMES[run[row[asked["item"]]]] == asked["class"] for asked in questions)
            said = ("is" if yes else "not" for yes in truth)
            csv.writer(file).writerows([q["item"], q["class"], says] for q, says in zip(questions, said, strict=True))
        assert len({asked["item"] for asked in questions}) == 10, round


def test_a_run_that_recorded_what_is_refused_today_is_asked_as_before(run, tmp_path):
    place = tmp_path / "RUN" / "run.json"
    about = json.loads(place.read_text())
    about["data"]["reading"] |= {"data": str(tmp_path), "n_labels": 2}
    place.write_text(json.dumps(about))
    assert call("ask", "RUN", "--n", 5, "--out", "old.csv").stdout.startswith("5 questions")
    photos = {"source": str(tmp_path), "labels": "votes.csv", "id": "picture", "ignore": ["x"], "truth": "kind"}
    meant = {"source": str(tmp_path), "labels": "votes.csv", "item": "picture", "truth": "kind"}
    assert still_meant(photos) == meant
    assert still_meant({"source": "digits", "data": "here", "truth": "kind"}) == {"source": "digits", "data": "here"}


def test_a_run_that_does_not_know_its_data_and_one_of_other_items(run, tmp_path):
    assert call("ask", "RUN", "items.csv", "--n", 5, "--out", "other.csv").stdout.startswith(
        "5 questions, whose answers"
    )
    assert "are for DATA" in call("ask", "RUN", "--id", "a", "--out", "x.csv", code=2).stderr
    old = (tmp_path / "RUN" / "run.json").read_text().replace('"reading"', '"read"')
    (tmp_path / "RUN" / "run.json").write_text(old)
    assert "name them, as DATA" in call("ask", "RUN", "--out", "x.csv", code=2).stderr
