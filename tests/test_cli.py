"""The command: the shortest calls do the whole job, and what they leave behind needs nothing else."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from typer.testing import CliRunner

from naysay import features, transition
from naysay.augmentation import neighbors_for
from naysay.cli import app
from naysay.learning import Config

NAMES = ("cat", "dog", "emu")


def naysay(*arguments, code=0):
    """Run the command in this process; its exit code is checked."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done


def blobs(n=240, seed=0):
    """n rows (n, 4) in three clear groups, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return (4 * np.eye(3, 4)[y] + rng.normal(size=(n, 4))).astype(np.float32), y


def write_csv(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the same items as a table, as long labels, as Parquet embeddings, and a run of the shortest."""
    place = tmp_path_factory.mktemp("with spaces in it")
    x, y = blobs()
    wrong = transition.sample(y, transition.uniform(3), seed=1)[:, 0].tolist()
    rows = [[f"item {i}", *x[i].tolist(), NAMES[wrong[i]], NAMES[y[i]]] for i in range(len(x))]
    write_csv(place / "data.csv", [["id", "a", "b", "c", "d", "not_label", "class"], *rows])
    write_csv(place / "items.csv", [["id", "a", "b", "c", "d"], *(row[:5] for row in rows)])
    votes = [[row[0], row[5], f"w{i % 3}", "|".join(NAMES)] for i, row in enumerate(rows)]
    write_csv(place / "votes.csv", [["item", "not", "who", "shown"], *votes])
    pq.write_table(
        pa.table({"id": [row[0] for row in rows], "vector": list(x), "not": [row[5] for row in rows]}),
        place / "data.parquet",
    )
    naysay(
        "fit",
        place / "data.csv",
        "--id",
        "id",
        "--label",
        "not_label",
        "--truth",
        "class",
        "--epochs",
        5,
        "--out",
        place / "RUN",
    )
    return place


def test_the_shortest_calls_fit_and_predict(place, tmp_path):
    """Without --truth, the column of true classes must be left out by name: it is text, and no feature."""
    run, out = tmp_path / "RUN", tmp_path / "predictions.csv"
    bare = tmp_path / "data.csv"
    rows = list(csv.reader((place / "data.csv").open(encoding="utf-8")))
    write_csv(bare, [row[:6] for row in rows])
    naysay("fit", bare, "--id", "id", "--label", "not_label", "--epochs", 5, "--out", run)
    naysay("predict", run, bare, "--out", out)
    predicted = list(csv.DictReader(out.open(encoding="utf-8")))
    assert list(predicted[0]) == ["id", "prediction", "p_cat", "p_dog", "p_emu"]
    assert [row["id"] for row in predicted] == [row[0] for row in rows[1:]]
    probabilities = np.array([[float(row[f"p_{name}"]) for name in NAMES] for row in predicted])
    assert np.allclose(probabilities.sum(1), 1, atol=1e-5)  # they are written as float32
    assert [NAMES[k] for k in probabilities.argmax(1)] == [row["prediction"] for row in predicted]
    right = np.mean([row["prediction"] == given[6] for row, given in zip(predicted, rows[1:], strict=True)])
    assert right > 0.9  # the groups are four deviations apart


def test_the_run_folder_holds_what_it_says(place):
    run = place / "RUN"
    assert {path.name for path in run.iterdir()} == {
        *("model.safetensors", "run.json", "records.jsonl", "audit.json", "report.npz", "report.html")
    }
    about = json.loads((run / "run.json").read_text())
    assert about["classes"] == list(NAMES)
    assert about["input"]["columns"] == ["a", "b", "c", "d"]
    assert [row["scheme"] for row in about["results"]] == ["none", "dms"]
    assert sum(row["chosen"] for row in about["results"]) == 1
    assert about["results"][0]["held_out_rows"] == 240  # each item once
    assert about["training_rows"] == 240
    judging = about["judging"]
    assert (judging["folds"], judging["rows"], judging["labels_seen"]) == (5, 240, 0.8)
    assert judging["recommended"] == "dms"
    for row in about["results"]:
        assert (row["chosen_loss_is_lower_by"] is None) == row["chosen"]
        assert row["held_out_loss"] < np.log(3)  # better than knowing nothing
    kinds = [json.loads(line)["kind"] for line in (run / "records.jsonl").read_text().splitlines()]
    assert kinds == ["run", *["epoch"] * 10, *["epoch on all labels"] * 5, "result"]
    page = (run / "report.html").read_text()
    assert all(text in page for text in ("test accuracy", "held-out loss", "saw 80 % of the labels"))
    with np.load(run / "report.npz", allow_pickle=False) as arrays:
        assert arrays["map_points"].shape == (240, 2)


def test_one_part_may_judge_and_what_was_judged_be_kept(place, tmp_path):
    base = ("fit", place / "data.csv", "--label", "not_label", "--truth", "class", "--epochs", 2, "--no-refit")
    naysay(*base, "--out", tmp_path / "RUN")
    about = json.loads((tmp_path / "RUN" / "run.json").read_text())
    assert (about["judging"]["folds"], about["judging"]["rows"], about["training_rows"]) == (1, 24, 216)
    said = naysay(*base, "--folds", 5, "--out", tmp_path / "other", code=2).stderr
    assert "of --folds 5 no model has seen all labels" in said
    assert "Use --folds 1" in said


def test_columns_are_matched_by_name(place, tmp_path):
    rows = list(csv.reader((place / "data.csv").open(encoding="utf-8")))
    turned = write_csv(tmp_path / "turned.csv", [[row[4], row[6], row[2], row[0], row[3], row[1]] for row in rows])
    naysay("predict", place / "RUN", place / "data.csv", "--out", tmp_path / "one.csv")
    naysay("predict", place / "RUN", turned, "--out", tmp_path / "two.csv")
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    lacking = write_csv(tmp_path / "lacking.csv", [[row[0], row[1], row[4]] for row in rows])
    said = naysay("predict", place / "RUN", lacking, "--out", tmp_path / "three.csv", code=2).stderr
    assert "lacks the columns 'b', 'c'" in said
    assert not (tmp_path / "three.csv").exists()


def test_predictions_as_parquet_keep_text_as_it_is(place, tmp_path):
    naysay("predict", place / "RUN", place / "items.csv", "--out", tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet")
    assert table.column_names == ["id", "prediction", "p_cat", "p_dog", "p_emu"]
    assert table.column("id").to_pylist()[:2] == ["item 0", "item 1"]


def test_long_labels_are_joined_by_item(place, tmp_path):
    options = (
        "--labels",
        place / "votes.csv",
        "--item",
        "item",
        "--label",
        "not",
        "--annotator",
        "who",
        "--options",
        "shown",
    )
    done = naysay(
        "fit", place / "items.csv", "--id", "id", *options, "--epochs", 2, "--json", "--out", tmp_path / "RUN"
    )
    result = json.loads(done.stdout)
    assert result["classes"] == list(NAMES)
    audit = json.loads((tmp_path / "RUN" / "audit.json").read_text())
    assert [row["name"] for row in audit["annotators"]["rows"]] == ["w0", "w1", "w2"]
    assert audit["coverage"]["labels"] == 240


def test_an_embedding_column_is_compared_by_angle_and_predicted_from(place, tmp_path):
    fit = ("fit", place / "data.parquet", "--id", "id", "--features", "vector", "--label", "not", "--epochs", 2)
    naysay(*fit, "--scheme", "dms", "--out", tmp_path / "RUN")
    about = json.loads((tmp_path / "RUN" / "run.json").read_text())
    assert "by angle" in about["space"]
    assert about["input"]["columns"] == ["vector"]
    assert about["verdict"].startswith("Only dms was trained")
    naysay("predict", tmp_path / "RUN", place / "data.parquet", "--out", tmp_path / "p.csv")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 241


def test_feature_columns_can_be_chosen_by_pattern_and_left_out(place, tmp_path):
    naysay(
        "augment",
        place / "items.csv",
        "--features",
        "[ab]",
        "--labels",
        place / "votes.csv",
        "--label",
        "not",
        "--out",
        tmp_path / "z.npz",
    )
    done = naysay(
        "audit", place / "data.csv", "--label", "not_label", "--ignore", "class", "--ignore", "[ab]", "--json"
    )
    assert json.loads(done.stdout)["coverage"]["items"] == 240
    assert (
        "matches no column"
        in naysay("audit", place / "data.csv", "--label", "not_label", "--ignore", "x*", code=2).stderr
    )


def test_labels_that_favour_a_class_are_put_right_by_class_shares(place, tmp_path):
    x, y = blobs(seed=3)
    T = np.array([[0, 0.99, 0.01], [0.99, 0, 0.01], [0.5, 0.5, 0]])
    wrong = transition.sample(y, T, seed=1)[:, 0].tolist()
    data = write_csv(
        tmp_path / "d.csv",
        [["a", "b", "c", "d", "no"], *([*row, NAMES[k]] for row, k in zip(x.tolist(), wrong, strict=True))],
    )
    counts = [[name, int((y == k).sum())] for k, name in enumerate(NAMES)]
    write_csv(tmp_path / "shares.csv", [["class", "share"], *counts])
    right = {}
    for known in ("unknown", "even", tmp_path / "shares.csv"):
        how = ("--label", "no", "--class-shares", known, "--out", tmp_path / "z.npz", "--force", "--json")
        told = json.loads(naysay("augment", data, *how).stdout)
        assert told["neighbours"] == neighbors_for("dms", len(y), 3, shares_known=known != "unknown")
        right[str(known)] = (np.load(tmp_path / "z.npz")["labels"].argmin(1) == y).mean()
    assert right["even"] > right["unknown"] + 0.1
    assert right[str(tmp_path / "shares.csv")] > right["unknown"] + 0.1
    for rows, sentence in (
        ([["class", "share"], ["cat", 1], ["dog", 1]], "must say how common every class is; got nothing of 'emu'."),
        ([["class", "share"], ["cat", 1], ["cow", 1]], "got class 'cow' with share '1'."),
        ([["class", "share"], ["cat", "much"]], "got class 'cat' with share 'much'."),
    ):
        write_csv(tmp_path / "bad.csv", rows)
        said = naysay(
            "augment",
            data,
            "--label",
            "no",
            "--class-shares",
            tmp_path / "bad.csv",
            "--out",
            tmp_path / "n.npz",
            code=2,
        )
        assert sentence in " ".join(said.stderr.split())
    said = naysay("augment", data, "--label", "no", "--class-shares", "evn", "--out", tmp_path / "n.npz", code=2)
    assert "--class-shares must be even, unknown or a file" in " ".join(said.stderr.split())


def test_augmented_labels_are_written_for_every_item(place, tmp_path):
    base = ("augment", place / "data.csv", "--label", "not_label", "--truth", "class")
    naysay(*base, "--out", tmp_path / "z.csv")
    rows = list(csv.DictReader((tmp_path / "z.csv").open()))
    assert list(rows[0]) == ["id", "not_cat", "not_dog", "not_emu"]
    naysay(*base, "--out", tmp_path / "z.npz")
    with np.load(tmp_path / "z.npz", allow_pickle=False) as arrays:
        shared = arrays["labels"]
        assert arrays["classes"].tolist() == list(NAMES)
        assert arrays["ids"].tolist() == [row["id"] for row in rows]
    assert np.allclose([[float(row[f"not_{name}"]) for name in NAMES] for row in rows], shared, atol=1e-6)
    _, y = blobs()
    assert (shared.argmin(1) == y).mean() > 0.9
    report = json.loads(naysay(*base, "--scheme", "rss", "--json", "--out", tmp_path / "z.parquet").stdout)
    assert report["scheme"] == "rss"
    assert report["rounds"] == 1


def test_settings_can_be_left_to_hidden_labels(place, tmp_path):
    base = ("augment", place / "data.csv", "--id", "id", "--label", "not_label", "--truth", "class")
    chosen = ("--neighbors", "auto", "--alpha", "auto", "--whiten", "auto")
    report = json.loads(naysay(*base, *chosen, "--json", "--out", tmp_path / "z.npz").stdout)
    kept = report["choice"]["kept"]
    assert (report["neighbours"], report["gamma"], report["alpha"]) == (
        kept["n_neighbors"],
        kept["gamma"],
        kept["alpha"],
    )
    assert report["choice"]["labels"] == 240
    assert len(report["choice"]["read_outs"]) == 4
    said = naysay(*base, "--neighbors", "auto", "--out", tmp_path / "y.npz").stderr
    assert "chosen by 240 hidden labels" in said
    run = tmp_path / "R"
    short = ("--epochs", "1", "--scheme", "dms", "--folds", "1", "--no-refit", "--quiet")
    naysay("fit", *base[1:], "--neighbors", "auto", "--alpha", "auto", *short, "--out", run)
    about = json.loads((run / "run.json").read_text())
    assert about["settings"]["n_neighbors"] == "auto"
    tried = about["results"][0]["sharing"]["choice"]["tried"]
    assert {one["n_neighbors"] for one in tried} >= {4, 8, 16, 32}


def test_the_audit_prints_and_writes_its_three_forms(place, tmp_path):
    options = ("--labels", place / "votes.csv", "--label", "not", "--annotator", "who", "--options", "shown")
    text = naysay("audit", place / "items.csv", *options, "--html", tmp_path / "audit.html").stdout
    assert "Audit of complementary labels" in text
    assert "Annotators: 3" in text
    assert (tmp_path / "audit.html").read_text().startswith("<!")
    found = json.loads(naysay("audit", place / "items.csv", *options, "--json").stdout)
    assert found["classes"] == list(NAMES)


def test_the_audits_advice_names_flags(tmp_path):
    rows = [["a", "b", "n1", "n2", "n3"], *([i, i % 7, *NAMES] for i in range(30))]
    data = write_csv(tmp_path / "d.csv", rows)
    text = naysay("audit", data, "--label", "n1", "--label", "n2", "--label", "n3").stdout
    assert "pass --contradictions unlabel to leave them" in " ".join(text.split())


def test_the_report_is_drawn_again_from_the_run_folder_alone(place, tmp_path):
    before = (place / "RUN" / "report.html").read_text()
    naysay("report", place / "RUN", "--out", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == before
    assert "exists already" in naysay("report", place / "RUN", "--out", tmp_path / "again.html", code=2).stderr


def test_images_with_a_labels_file_become_a_run(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    rows = []
    for i in range(60):
        k = i % 3
        pixels = rng.integers(0, 60, (6, 6), dtype=np.uint8)
        pixels[2 * k : 2 * k + 2] += 180
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i:02}.png")
        rows.append([f"{i:02}", NAMES[(k + 1 + i // 3 % 2) % 3]])
    labels = write_csv(tmp_path / "labels.csv", [["id", "label"], *rows])
    naysay("fit", tmp_path / "photos", "--labels", labels, "--epochs", 20, "--out", tmp_path / "RUN")
    naysay("predict", tmp_path / "RUN", tmp_path / "photos", "--out", tmp_path / "p.csv")
    predicted = list(csv.DictReader((tmp_path / "p.csv").open()))
    assert predicted[0]["id"] == "00.png"
    assert np.mean([row["prediction"] == NAMES[i % 3] for i, row in enumerate(predicted)]) > 0.9
    assert "data:image/png" in (tmp_path / "RUN" / "report.html").read_text()


def test_arrays_become_a_run_and_are_predicted(tmp_path):
    x, y = blobs()
    np.savez(tmp_path / "mine.npz", rows=x, not_this=(y + 1) % 3, names=np.array([f"n{i}" for i in range(len(x))]))
    # each class always names the same wrong one: ordinary labels under other names, for all that anyone can tell
    arrays = ("--features", "rows", "--label", "not_this", "--id", "names", "--labels-say", "not")
    naysay("fit", tmp_path / "mine.npz", *arrays, "--epochs", 2, "--scheme", "none", "--out", tmp_path / "RUN")
    naysay("predict", tmp_path / "RUN", tmp_path / "mine.npz", "--out", tmp_path / "p.csv")
    assert [row["id"] for row in csv.DictReader((tmp_path / "p.csv").open())][:2] == ["n0", "n1"]
    np.save(tmp_path / "wide.npy", np.ones((3, 5), np.float32))
    said = naysay("predict", tmp_path / "RUN", tmp_path / "wide.npy", "--out", tmp_path / "q.csv", code=2).stderr
    assert "holds rows of shape (5,), and the model was trained on (4,)" in said
    said = naysay("predict", tmp_path / "RUN", "digits", "--out", tmp_path / "q.csv", code=2).stderr
    assert "holds rows of shape (8, 8)" in said


def test_labels_are_drawn_from_the_truth_of_ones_own_data(place, tmp_path):
    base = (
        "fit",
        place / "data.csv",
        "--truth",
        "class",
        "--ignore",
        "not_label",
        "--transition",
        "biased-weak",
        "--epochs",
        2,
    )
    naysay(*base, "--assume", "estimated", "--loss", "fwd", "--scheme", "none", "--out", tmp_path / "RUN")
    about = json.loads((tmp_path / "RUN" / "run.json").read_text())
    assert about["data"]["labels"] == "drawn from the truth: biased-weak, 1 label each, seed 0"
    assert np.allclose(np.sum(about["transition"], 1), 1)


def test_demo_ends_with_a_table_and_a_report_and_may_be_repeated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("naysay.cli.demo.EPOCHS", 2)
    monkeypatch.setattr("naysay.runs.settings.FOLDS", 2)
    for _ in range(2):
        said = naysay("demo").stdout
    assert "estimated accuracy" in said
    assert "test accuracy †" in said
    assert all(scheme in said for scheme in ("none", "rss", "rms", "dss", "dms"))
    assert Path(said.strip().rpartition("report: ")[2]) == tmp_path / "naysay-demo" / "report.html"


def test_the_same_call_gives_the_same_model(place, tmp_path):
    for name in ("one", "two"):
        naysay(
            "fit",
            place / "data.csv",
            "--label",
            "not_label",
            "--truth",
            "class",
            "--epochs",
            5,
            "--out",
            tmp_path / name,
        )
    one, two = (json.loads((tmp_path / name / "run.json").read_text())["results"] for name in ("one", "two"))
    assert [row["estimate"] for row in one] == [row["estimate"] for row in two]
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert all(torch.equal(first[name], second[name]) for name in first | second)


def test_settings_come_from_a_file_and_options_win(place, tmp_path):
    (tmp_path / "config.toml").write_text('loss = "pc"\nepochs = 3\nbatch_size = 32\nseed = 7\n')
    options = ("--config", tmp_path / "config.toml", "--epochs", 2, "--scheme", "none")
    naysay("fit", place / "data.csv", "--label", "not_label", "--truth", "class", *options, "--out", tmp_path / "RUN")
    config = json.loads((tmp_path / "RUN" / "run.json").read_text())["settings"]["config"]
    assert (config["loss"], config["epochs"], config["batch_size"], config["seed"]) == ("pc", 2, 32, 7)


def test_known_sets_are_listed_and_got(tmp_path):
    sets = json.loads(naysay("data", "list", "--data", tmp_path, "--json").stdout)["sets"]
    assert {row["name"]: row["here"] for row in sets}["digits"] == "embedded"
    assert "355" in naysay("data", "get", "digits", "--data", tmp_path).stdout
    assert "mnist" in naysay("data", "list", "--data", tmp_path).stdout


def test_an_npz_is_imported_after_checking(tmp_path):
    x, y = np.zeros((20, 28, 28), np.uint8), np.arange(20) % 10
    arrays = {"x_train": x, "y_train": y, "x_test": x[:10], "y_test": y[:10], "classes": np.array(list("0123456789"))}
    np.savez(tmp_path / "mine.npz", **arrays)
    folder = tmp_path / "data"
    naysay("data", "import", "mnist", tmp_path / "mine.npz", "--data", folder)
    assert (folder / "mnist.npz").exists()
    assert "exists already" in naysay("data", "import", "mnist", tmp_path / "mine.npz", "--data", folder, code=2).stderr
    np.savez(tmp_path / "bad.npz", **{**arrays, "y_test": y[:10] + 5})
    said = naysay("data", "import", "mnist", tmp_path / "bad.npz", "--data", folder, "--force", code=2).stderr
    assert "must lie between 0 and 9" in said


def test_published_files_are_imported_by_name_and_checksum(tmp_path):
    folder = tmp_path / "data"
    for name in ("mine.zip", "train-images-idx3-ubyte.gz", "clcifar10.pkl"):
        (tmp_path / name).write_bytes(b"something else")
    load = ("--data", folder, "--force")
    assert "not a published file" in naysay("data", "import", "mnist", tmp_path / "mine.zip", *load, code=2).stderr
    assert (
        "its SHA-256 is not"
        in naysay("data", "import", "mnist", tmp_path / "train-images-idx3-ubyte.gz", *load, code=2).stderr
    )
    assert not folder.exists()
    # has no checksum: it is checked when decoded
    said = naysay("data", "import", "clcifar10", tmp_path / "clcifar10.pkl", *load).stdout
    assert "still needs cifar-10-python.tar.gz" in said
    assert (folder / "originals" / "clcifar10.pkl").read_bytes() == b"something else"


def test_pretraining_is_continued_and_leaves_an_encoder_that_fit_can_use(tmp_path, monkeypatch):
    monkeypatch.setenv("NAYSAY_DATA", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    rows = []
    for i in range(24):
        (tmp_path / "photos" / NAMES[i % 3]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(
            tmp_path / "photos" / NAMES[i % 3] / f"{i:02}.png"
        )
        rows.append([f"{NAMES[i % 3]}/{i:02}", NAMES[(i + 1) % 3]])
    labels = write_csv(tmp_path / "labels.csv", [["id", "label"], *rows])
    base = (
        "pretrain",
        tmp_path / "photos",
        "--method",
        "simsiam",
        "--epochs",
        2,
        "--batch",
        24,
        "--save-every",
        1,
        "--out",
        tmp_path / "encoder",
    )
    # as a kill in the first checkpoint leaves it
    (tmp_path / "encoder" / ".checkpoint.naysay-01234567.tmp").mkdir(parents=True)
    said = naysay(*base, "--seconds", 0)
    assert re.match(r"about \d+ \w+ on this machine \(\d+ cores?\): 2 epochs of 24 images, 2 views each\n", said.stderr)
    assert "docs/EMBEDDINGS.md" in said.stderr.splitlines()[1]
    assert said.stdout == "stopped after epoch 1 of 2; the same call goes on\n"
    done = json.loads(naysay(*base, "--json").stdout)
    assert (done["finished"], done["epochs"]) == (True, 2)
    assert 0 <= done["knn"] <= 1  # the subfolders' names are the truth
    assert len(list((tmp_path / "encoder").iterdir())) == 4  # checkpoint, records, encoder and card
    fit = (
        "fit",
        tmp_path / "photos",
        "--labels",
        labels,
        "--encoder",
        done["encoder"],
        "--epochs",
        1,
        "--held-out",
        0.2,
    )
    naysay(*fit, "--out", tmp_path / "RUN")
    assert json.loads((tmp_path / "RUN" / "run.json").read_text())["space"] == "encoder.safetensors, by angle"
    card = json.loads((tmp_path / "encoder" / "encoder.json").read_text())
    assert card["config"]["options"]["network"] == "small"  # there is no GPU
    assert card["readout"] == "half whitened by the mean and axes of 24 training images, no labels"
    lines = [json.loads(line) for line in (tmp_path / "encoder" / "records.jsonl").read_text().splitlines()]
    assert card["knn_network"] == done["knn_network"] == lines[-1]["knn"]
    assert card["knn"] == done["knn"]
    assert "got both" in naysay(*base, "--minutes", 1, code=2).stderr
    again = ("pretrain", tmp_path / "photos", "--quiet", "--out", tmp_path / "other", "--epochs")
    naysay(*again, 1)
    card = json.loads((tmp_path / "other" / "encoder.json").read_text())
    assert card["method"] == "emp"
    assert card["config"]["batch_size"] == 24  # its own is 128, and there are 24 images
    refused = naysay(*again, 2, code=2).stderr
    assert "it differs in epochs (1, now 2)" in refused
    assert "resume" not in refused  # which is no flag of the command
    (tmp_path / "other" / "checkpoint.safetensors").unlink()  # the way out that is named: "remove that file"
    assert "remove that file to start over" in refused
    naysay(*again, 2)
    few = naysay("pretrain", tmp_path / "photos", "--batch", 64, "--out", tmp_path / "few", code=2).stderr
    assert "got 24 in all. Pass --batch 24 or less" in few
    assert "--seconds must be at least 0; got nan." in naysay(*base, "--seconds", "nan", code=2).stderr
    kept = tmp_path / "encoder" / "checkpoint.safetensors"
    kept.write_bytes(kept.read_bytes()[:-9] + b"something")
    assert "checkpoint.safetensors was changed after it was saved" in naysay(*base, code=2).stderr


def test_an_encoder_of_images_that_are_all_alike_has_no_readout_and_its_card_says_so(tmp_path):
    np.save(tmp_path / "x.npy", np.full((8, 8, 8, 3), 90, np.uint8))
    with pytest.warns(UserWarning, match="kept without a read-out: rows to whiten must point in different directions"):
        naysay("pretrain", tmp_path / "x.npy", "--epochs", 1, "--out", tmp_path / "encoder", "--quiet")
    card = json.loads((tmp_path / "encoder" / "encoder.json").read_text())
    assert (card["readout"], card["knn"], card["knn_network"]) == (None, None, None)
    network, _ = features.load_encoder(tmp_path / "encoder" / "encoder.safetensors")
    assert features.extract(network, np.load(tmp_path / "x.npy"), cache=False).shape == (8, 256)


def test_ones_own_embeddings_are_the_space(place, tmp_path):
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).normal(size=(240, 3)).astype(np.float32))
    base = (
        "augment",
        place / "items.csv",
        "--labels",
        place / "votes.csv",
        "--label",
        "not",
        "--out",
        tmp_path / "z.csv",
    )
    said = json.loads(naysay(*base, "--encoder", tmp_path / "mine.npy", "--json").stdout)
    assert said["space"] == "mine.npy, by angle"
    np.save(tmp_path / "short.npy", np.ones((239, 3), np.float32))
    assert "239" in naysay(*base, "--force", "--encoder", tmp_path / "short.npy", code=2).stderr


def test_every_command_teaches_by_example():
    for command in (
        "demo",
        "audit",
        "fit",
        "predict",
        "report",
        "augment",
        "pretrain",
        ("data", "list"),
        ("data", "get"),
        ("data", "import"),
    ):
        words = (command,) if isinstance(command, str) else command
        said = naysay(*words, "--help").stdout
        assert "Examples" in said
        assert f"naysay {' '.join(words)}" in said


def test_the_help_of_fit_says_the_defaults_of_training():
    said = " ".join(naysay("fit", "--help").stdout.replace("│", " ").split())
    assert f"Else {Config.learning_rate:g}." in said
    assert f"else {Config.loss}." in said
    assert f"Else auto, or {Config.model} where" in said


def test_the_real_command_says_its_version_and_explains_itself_at_once():
    code = "from naysay.cli import main; import sys; sys.argv = ['naysay', '--version']\n"
    code += "try: main()\nexcept SystemExit as end: print(end.code, 'torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["naysay", "0.1.0", "0", "False", "False"]
