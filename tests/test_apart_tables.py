"""What held-out rows of a table hold changes nothing that the judged models take; where it did, a run says so."""

import csv
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_cli import naysay

import naysay as library
from naysay import holdout, runs
from naysay.errors import InputError
from naysay.learning import Config
from naysay.runs.folder import Run
from naysay.runs.results import caveats, had_a_part

N, KINDS = 90, ("cat", "dog", "bird")
WORDS = (["soft", "whiskers", "purrs", "mouse"], ["barks", "fetches", "stick", "loyal"], ["sings", "wings", "nest"])
LEARNED = ["fills of empty cells", "levels of categories", "words of texts", "first days of dates"]
SETTINGS = {"schemes": ("dms",), "assume": "uniform", "apart": True}
NETWORK = Config(epochs=1, model="linear")


def table():
    """Rows of a number, one with empty cells, a category, a text and a date, each with one label and the truth."""
    rng, rows = np.random.default_rng(0), []
    for i in range(N):
        y = i % 3
        said = " ".join(
            [*rng.choice(WORDS[y], 3), *rng.choice([*WORDS[0], *WORDS[1], *WORDS[2]], 3), f"note{rng.integers(9)}"]
        )
        age = "" if i % 10 == 0 else f"{30 * y + rng.normal():.6f}"
        when = f"2026-{1 + i % 12:02}-{1 + i % 28:02}"
        wrong = KINDS[(y + rng.integers(1, 3)) % 3]
        rows.append([f"{y + rng.normal(0, 0.3):.6f}", age, ("red", "blue", "green")[y], said, when, wrong])
    return rows


def write(path, rows, columns=slice(None)):
    names = ["a", "age", "colour", "text", "when", "not"][columns]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *[row[columns] for row in rows]])
    return path


def changed(rows, held):
    """The same table with other cells in the rows `held`, and the same labels."""
    rows = [list(row) for row in rows]
    for i in held:
        a, *_, label = rows[i]
        rows[i] = [f"{50 * float(a):.6f}", "n/a", f"pink{i % 2}", f"zebra quokka {i % 7} purrs", "1999-12-31", label]
    return rows


def read(path, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return library.read(path, label="not", labels_say="not", **more)


def fit(data, **more):
    given = {"config": NETWORK, **SETTINGS, **more}
    given = {"auto": True, "budget": 1.0, **more} if more.get("auto") else given
    return runs.fit(data, runs.Settings(**given), tell=lambda line: None)


def state(model):
    return [tensor.clone() for tensor in model.predictor.model.state_dict().values()]


def same(one, two):
    return len(one) == len(two) and all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_what_held_out_rows_hold_changes_no_bit_of_the_training_rows_inputs(tmp_path):
    data = read(write(tmp_path / "t.csv", table()))
    rows, held = (part.numpy() for part in holdout.split(data.comp, 0.3, 0))
    other = read(write(tmp_path / "u.csv", changed(table(), held)))
    first, second = data.items.seen_by(rows), other.items.seen_by(rows)
    assert first.features == second.features
    assert np.array_equal(first.x[rows], second.x[rows])
    assert not np.array_equal(first.x[held], second.x[held])
    assert np.isfinite(second.x).all()
    # as they are read, they have a part in the others' numbers
    assert data.items.x.shape != other.items.x.shape or not np.array_equal(data.items.x[rows], other.items.x[rows])
    assert list(data.items.columns.learned) == LEARNED


def test_a_plain_table_keeps_its_bits_whatever_held_out_rows_hold(tmp_path):
    rows = [[row[0], row[5]] for row in table()]
    held = np.arange(0, N, 4)
    train = np.setdiff1d(np.arange(N), held)
    data = read(write_plain(tmp_path / "t.csv", rows))
    assert data.items.seen_by(train) is data.items
    spoilt = [["?" if i in held else a, label] for i, (a, label) in enumerate(rows)]
    other = read(write_plain(tmp_path / "u.csv", spoilt)).items
    assert not other.columns.is_plain
    assert np.array_equal(other.seen_by(train).x[train], data.items.x[train])


def write_plain(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["a", "not"], *rows])
    return path


@pytest.mark.parametrize("apart", [True, False])
def test_a_model_judged_apart_is_the_same_whatever_the_rows_that_judge_it_hold(tmp_path, apart):
    data = read(write(tmp_path / "t.csv", table()))
    held = holdout.split(data.comp, 0.3, 0)[1].numpy()
    other = read(write(tmp_path / "u.csv", changed(table(), held)))
    one, two = (fit(of, folds=1, held_out=0.3, refit=False, apart=apart) for of in (data, other))
    assert one.held.tolist() == held.tolist()
    assert same(state(one.kept), state(two.kept)) == apart
    assert torch.equal(one.kept.shared, two.kept.shared) == apart


def test_each_fold_has_columns_of_its_own(tmp_path):
    data = read(write(tmp_path / "t.csv", table()))
    parts = holdout.folds(data.comp, 3, 0)
    other = read(write(tmp_path / "u.csv", changed(table(), parts[1][1].numpy())))
    one, two = (fit(of, folds=3).chosen.models for of in (data, other))
    assert [same(state(a), state(b)) for a, b in zip(one, two, strict=True)] == [False, True, False]


@pytest.mark.parametrize(("more", "of_all"), [({"refit": False}, False), ({}, True), ({"auto": True}, True)])
def test_the_run_folder_has_the_columns_of_the_model_that_is_kept(tmp_path, more, of_all):
    rows = table()
    data = read(path := write(tmp_path / "t.csv", rows))
    held = holdout.split(data.comp, 0.3, 0)[1].tolist()
    rows = [[*row[:2], "teal" if i in held else row[2], *row[3:]] for i, row in enumerate(rows)]  # a level of theirs
    data = read(write(path, rows))
    fitted = fit(data, held_out=0.3, apart=True, **({} if "auto" in more else {"folds": 1}), **more)
    runs.write(fitted, data, tmp_path / "RUN")
    run = Run.load(tmp_path / "RUN")
    assert ("colour=teal" in run.columns.names) == of_all
    assert run.about["input"]["columns"] == list(run.columns.inputs)
    assert run.about["data"]["hash"] == data.items.fingerprint
    expected = fitted.kept.predictor.logits(fitted.learned(data))
    p = fitted.kept.predictor.probabilities(expected).float()
    assert np.allclose(library.load_run(tmp_path / "RUN").predict_proba(path), p.numpy(), atol=1e-6)


def test_several_models_may_be_judged_apart_too(tmp_path):
    data = read(write(tmp_path / "t.csv", table()))
    held = holdout.split(data.comp, 0.3, 0)[1].numpy()
    other = read(write(tmp_path / "u.csv", changed(table(), held)))
    one, two = (fit(of, auto=True, apart=True, held_out=0.3) for of in (data, other))
    assert one.held.tolist() == two.held.tolist() == held.tolist()
    assert (one.folds, len(one.rows)) == (1, N)
    assert had_a_part(one) == {"items": [], "labels": []}
    assert [a.sharpness for a in one.attempts] == [b.sharpness for b in two.attempts]  # found on the others
    assert [a.weight for a in one.attempts] == [b.weight for b in two.attempts]
    with pytest.raises(InputError, match="apart=True judges several models by one part; got folds=5"):
        runs.Settings(auto=True, apart=True, folds=5)


def test_a_file_that_changed_since_it_was_read_is_refused_and_not_mixed(tmp_path):
    data = read(path := write(tmp_path / "t.csv", table()))
    write(path, table()[:-1])
    with pytest.raises(InputError, match=r"t.csv was changed since it was read, and is needed again"):
        data.items.seen_by(np.arange(50))


PART = (
    "The held-out items had a part in making the space, fills of empty cells, levels of categories, words of texts and "
    "first days of dates, though their labels had none."
)


def test_a_run_says_what_the_rows_that_judged_had_a_part_in_and_nothing_where_they_had_none(tmp_path):
    mixed = read(write(tmp_path / "t.csv", table()))
    plain = read(write_plain(tmp_path / "p.csv", [[row[0], row[5]] for row in table()]))
    assert plain.items.columns.learned == ()
    assert caveat(fit(mixed, apart=False)) == PART
    space = "The held-out items had a part in making the space, though their labels had none."
    assert caveat(fit(plain, apart=False)) == space
    assert caveat(fit(mixed)) == caveat(fit(plain)) == ""
    tried = fit(mixed, auto=True)
    learned = "fills of empty cells, levels of categories, words of texts and first days of dates"
    labels = "choosing and calibrating the models"
    labels = labels if tried.T is None else f"how labels are taken to come about and {labels}"
    assert caveat(tried) == f"The items that judged had a part in {learned}, and their labels in {labels}."
    assert caveat(fit(plain, auto=True)).startswith("The labels that judged had a part in ")
    assert caveat(fit(mixed, auto=True, apart=True)) == ""
    counted = fit(mixed, auto=True, assume="popularity")
    assert had_a_part(counted)["labels"] == ["how labels are taken to come about", labels.rpartition("about and ")[2]]


def caveat(fitted):
    """What is said beside an accuracy that can be told, which of so few labels it may not be."""
    told = tuple(replace(one, accuracy=replace(one.accuracy, why_not="")) for one in fitted.attempts)
    return "".join(caveats(replace(fitted, attempts=told)))


def test_the_command_says_so_beside_the_estimate_in_the_report_and_in_the_run(tmp_path):
    path, out = write(tmp_path / "t.csv", table()), tmp_path / "RUN"
    network = ("--model", "linear", "--epochs", 1, "--assume", "uniform", "--scheme", "dms")
    with pytest.warns(UserWarning, match="columns: "):
        done = naysay("fit", path, "--label", "not", *network, "--out", out)
    assert PART in done.stdout
    assert PART in (out / "report.html").read_text()
    about = json.loads((out / "run.json").read_text())
    assert PART in about["verdict"]
    assert about["judging"]["had_a_part"] == {"items": ["making the space", *LEARNED], "labels": []}
    for beside in (network, ("--model", "auto", "--budget", 1)):
        with pytest.warns(UserWarning, match="columns: "):
            done = naysay("fit", path, "--label", "not", *beside, "--apart", "--out", out, "--force")
        assert "had a part" not in done.stdout
        assert json.loads((out / "run.json").read_text())["judging"]["had_a_part"] == {"items": [], "labels": []}
