"""Images through an encoder that stays as it is: what it makes of them is learned, and a run folder predicts images."""

import contextlib
import csv
import itertools
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path

import malformed
import numpy as np
import pytest
import torch
from PIL import Image
from test_cli import NAMES, naysay, write_csv

import naysay as library
from naysay import datasets, features, labels, portfolio, transition
from naysay.cli.fit import NETWORK, chooses_itself, left_to_neighbors, usual_recipe
from naysay.cli.options import in_flags
from naysay.errors import InputError
from naysay.estimators import ComplementaryClassifier
from naysay.models import MODELS, small_resnet_encoder
from naysay.runs import Run, choose_questions

N = 90
CHEAP = ("--budget", 1, "--quiet")


def pictures(n, seed):
    """Images (n, 12, 12, 3), each with most of the red, of the green or of the blue, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return (rng.integers(0, 140, (n, 12, 12, 3)) + 115 * np.eye(3, dtype=int)[y][:, None, None]).astype(np.uint8), y


def encoder(path, channels=3, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        features.save_encoder(path, small_resnet_encoder(channels), {"data": "nothing"})
    return path


def write_photos(folder, images):
    folder.mkdir(parents=True)
    for i, pixels in enumerate(images):
        Image.fromarray(pixels).save(folder / f"{i:02}.png")
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Photographs with labels, others without, an encoder, and the run that the shortest call makes of them."""
    place = tmp_path_factory.mktemp("frozen")
    x, y = pictures(N, 0)
    write_photos(place / "photos", x)
    write_photos(place / "more", pictures(40, 1)[0])
    wrong = transition.sample(y, transition.uniform(3), seed=2)[:, 0].tolist()
    write_csv(place / "votes.csv", [["item", "label"], *([f"{i:02}.png", NAMES[k]] for i, k in enumerate(wrong))])
    encoder(place / "e.safetensors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NAYSAY_DATA", str(place / "cache"))
        patch.setattr(torch.cuda, "is_available", lambda: False)
        done = naysay(*asked(place), "--budget", 1, "--out", place / "RUN")
    (place / "said").write_text(done.stderr)
    (place / "printed").write_text(done.stdout)
    return place


@pytest.fixture(autouse=True)
def cache(place, monkeypatch):
    monkeypatch.setenv("NAYSAY_DATA", str(place / "cache"))


def asked(place, photos="photos", weights="e.safetensors"):
    return ("fit", place / photos, "--labels", place / "votes.csv", "--encoder", place / weights)


@pytest.fixture
def copy(place, tmp_path):
    return shutil.copytree(place / "RUN", tmp_path / "RUN")


def test_a_run_predicts_what_the_portfolio_does_on_the_encoders_rows_by_hand(place, tmp_path):
    naysay("predict", place / "RUN", place / "more", "--out", tmp_path / "p.csv", "--quiet")
    rows = list(csv.DictReader((tmp_path / "p.csv").open()))
    net, _ = features.load_encoder(place / "e.safetensors")
    learned, new = (
        features.embed(net, torch.from_numpy(datasets.from_folder(place / name).x)).numpy()
        for name in ("photos", "more")
    )
    votes = list(csv.DictReader((place / "votes.csv").open()))
    comp = labels.from_indices([NAMES.index(row["label"]) for row in votes], 3)
    model = portfolio.fit(learned, comp, budget=1, seed=0).model
    p = model.probabilities(model.logits(new)).numpy()
    assert [row["prediction"] for row in rows] == [NAMES[k] for k in p.argmax(1)]
    named = np.array([[float(row[f"p_{name}"]) for name in NAMES] for row in rows])
    assert np.abs(named - p).max() < 1e-4  # features of other batches differ in their last digits
    assert (p.argmax(1) == pictures(40, 1)[1]).mean() > 0.8  # and they are worth predicting


def test_a_table_of_the_same_rows_gives_the_same_estimates(place, tmp_path):
    images = datasets.from_folder(place / "photos")
    vectors = features.extract(place / "e.safetensors", images.x)
    import pyarrow as pa
    import pyarrow.parquet as pq

    said = [row["label"] for row in csv.DictReader((place / "votes.csv").open())]
    pq.write_table(pa.table({"id": images.ids, "vector": list(vectors), "not": said}), tmp_path / "t.parquet")
    naysay(
        *("fit", tmp_path / "t.parquet", "--id", "id", "--features", "vector", "--label", "not"),
        *("--classes", ",".join(NAMES), *CHEAP, "--out", tmp_path / "T"),
    )
    told = ("scheme", "weight", "estimate", "low", "high", "held_out_loss")
    of_images, of_table = (
        [[row[name] for name in told] for row in json.loads((run / "run.json").read_text())["results"]]
        for run in (place / "RUN", tmp_path / "T")
    )
    assert of_images == of_table


def test_the_rows_of_the_network_alone_are_learned_and_the_file_is_kept_with_its_readout(place, tmp_path):
    x = datasets.from_folder(place / "photos").x
    net, _ = features.load_encoder(place / "e.safetensors")
    features.save_encoder(tmp_path / "e.safetensors", features.with_readout(net, x), {})
    frozen = features.Frozen.load(tmp_path / "e.safetensors")
    assert frozen.width == 256
    assert np.array_equal(frozen(x), features.Frozen.load(place / "e.safetensors")(x))
    frozen.save(tmp_path / "kept.safetensors")
    kept, card = features.load_encoder(tmp_path / "kept.safetensors")
    assert card["sha256"] == frozen.hash
    assert kept is not features.encoders.network_of(kept)


def test_neighbours_are_looked_up_by_the_readout(place, tmp_path):
    x = datasets.from_folder(place / "photos").x
    net, _ = features.load_encoder(place / "e.safetensors")
    features.save_encoder(tmp_path / "e.safetensors", features.with_readout(net, x), {})
    space = features.find_space(x, encoder=tmp_path / "e.safetensors")
    white = features.whiten(features.extract(net, x))
    near = (space.features * white).sum(1) / np.linalg.norm(space.features, axis=1) / np.linalg.norm(white, axis=1)
    assert near.min() > 0.999  # half precision
    assert space.metric == "cosine"


def test_the_shortest_call_says_what_is_learned_and_what_is_kept(place):
    said, about = (place / "said").read_text(), json.loads((place / "RUN" / "run.json").read_text())
    assert "models learn what e.safetensors makes of the images, 256 numbers each, and not their pixels" in said
    assert f"of 90 images it is computed once and kept in {place / 'cache' / 'features'}" in said
    assert "All learned what e.safetensors makes of the images, 256 numbers each." in (place / "printed").read_text()
    assert (about["input"]["kind"], about["input"]["shape"]) == ("images", [12, 12, 3])
    assert about["settings"]["auto"] is True
    card = json.loads((place / "RUN" / "encoder.json").read_text())
    assert about["input"]["encoder"] == card["sha256"]
    assert card["data"] == "nothing"
    kept = place / "RUN" / "encoder.safetensors"
    assert kept.read_bytes() == (place / "e.safetensors").read_bytes()
    assert features.extract(kept, np.zeros((1, 9, 9, 3), np.uint8), cache=False).shape == (1, 256)


def test_another_process_predicts_from_the_folder_alone(place, copy, tmp_path):
    """Without the encoder's own file, and with an empty cache."""
    code = (
        "import naysay, sys; run = naysay.load_run(sys.argv[1]); print(*run.predict(sys.argv[2]));"
        "assert run.predict_proba(sys.argv[2]).shape == (40, 3)"
    )
    elsewhere = {**os.environ, "NAYSAY_DATA": str(tmp_path / "empty"), "OMP_NUM_THREADS": "1"}
    ask = [sys.executable, "-c", code, str(copy), str(place / "more")]
    done = subprocess.run(ask, env=elsewhere, capture_output=True, text=True, check=True)
    here = library.load_run(place / "RUN")
    assert done.stdout.split() == here.predict(datasets.from_folder(place / "more").x).tolist()


def test_new_images_may_be_of_other_sizes_or_grey(place, tmp_path):
    x, y = pictures(40, 1)
    large = [np.asarray(Image.fromarray(pixels).resize((30, 21))) for pixels in x]
    folder = write_photos(tmp_path / "large", large)
    run = library.load_run(place / "RUN")
    assert (run.predict(folder) == np.array(NAMES)[y]).mean() > 0.7
    grey = write_photos(tmp_path / "grey", x.mean(3).astype(np.uint8))
    assert len(run.predict(grey)) == 40
    with pytest.raises(InputError, match=r"rows of shape \(12, 12, 3\), as the model was trained on"):
        run.predict(x[:, :8])


def test_grey_images_are_seen_by_an_encoder_of_colours_and_not_the_other_way_round(place, tmp_path):
    x, _ = pictures(N, 0)
    write_photos(tmp_path / "grey", x[..., 0])
    shutil.copy(place / "votes.csv", tmp_path / "votes.csv")
    shutil.copy(place / "e.safetensors", tmp_path), shutil.copy(place / "e.json", tmp_path)
    naysay(*asked(tmp_path, "grey"), "--model", "auto", *CHEAP, "--out", tmp_path / "RUN")
    run = library.load_run(tmp_path / "RUN")
    assert run.about["input"]["shape"] == [12, 12]
    thrice = np.repeat(x[:5, :, :, :1], 3, axis=3)
    assert np.array_equal(run.run.rows(x[:5, :, :, 0]), features.extract(place / "e.safetensors", thrice))
    encoder(tmp_path / "grey.safetensors", channels=1)
    write_photos(tmp_path / "photos", x)
    refused = naysay(*asked(tmp_path, weights="grey.safetensors"), *CHEAP, "--out", tmp_path / "R2", code=2).stderr
    assert "the encoder takes images of 1 channel, and these have 3" in refused


def test_a_changed_a_replaced_and_a_missing_encoder_are_told_apart(copy, tmp_path):
    held = copy / "encoder.safetensors"
    content = held.read_bytes()
    held.write_bytes(content[:-4] + b"\x00\x01\x02\x03")
    with pytest.raises(
        InputError, match=r"RUN/encoder.safetensors is not the file its card speaks of.* Fit the run ag"
    ):
        Run.load(copy)
    encoder(held, seed=1)  # another one, with a card of its own
    with pytest.raises(InputError, match=r"is another encoder than the run was made with: the hashes differ\. Fit the"):
        Run.load(copy)
    held.unlink()
    with pytest.raises(
        InputError, match=r"encoder.safetensors with its card encoder.json; not both are in .* Fit the r"
    ):
        Run.load(copy)
    refused = naysay("predict", copy, "anything", "--out", tmp_path / "p.csv", code=2)
    assert "not both are in" in refused.stderr
    held.write_bytes(content)
    (copy / "encoder.json").write_text("[1]")
    with pytest.raises(InputError, match=r"encoder.json is no encoder's card .* Fit the run again"):
        Run.load(copy)


@pytest.mark.parametrize("change", [{"encoder": None}, {"shape": [256]}, {"shape": []}, {"encoder": 7}])
def test_a_run_json_that_says_otherwise_is_refused(copy, change):
    about = json.loads((copy / "run.json").read_text())
    about["input"] |= change
    (copy / "run.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match=r"does not belong to the model beside it|is another encoder than the run"):
        Run.load(copy)


@pytest.mark.parametrize("seed", range(24))
def test_a_spoilt_folder_gives_an_answer_or_one_sentence(copy, seed):
    rng = random.Random(seed)
    name = ("run.json", "encoder.json", "encoder.safetensors")[seed % 3]
    if name == "run.json":
        about = json.loads((copy / name).read_text())
        (copy / name).write_text(json.dumps({**about, "input": malformed.spoil_tree(about["input"], rng)}))
    else:
        malformed.spoil_file(copy / name, rng, 1)
    with contextlib.suppress(InputError):
        assert Run.load(copy).predict(pictures(3, 5)[0])[1].shape == (3, 3)


def test_a_mixture_of_other_rows_than_the_encoders_is_refused(copy):
    rows, comp = np.random.default_rng(0).normal(size=(30, 3)), labels.from_indices(np.arange(30) % 3, 3)
    portfolio.fit(rows, comp, budget=0.1).model.save(copy / "mixture.safetensors")
    with pytest.raises(InputError, match="does not belong to the model beside it"):
        Run.load(copy)


def test_what_an_earlier_fit_computed_is_not_computed_again(place, tmp_path, monkeypatch):
    """So a run that was killed, or a question about the same photographs, starts where features are ready."""

    def refuse(*_, **__):
        raise AssertionError("an image went through the encoder")

    monkeypatch.setattr(sys.modules["naysay.features.extract"], "embed", refuse)
    naysay(*asked(place), "--model", "auto", *CHEAP, "--seed", 1, "--out", tmp_path / "again")
    said = naysay("ask", place / "RUN", "--n", 5, "--json", "--out", tmp_path / "q.csv")
    assert json.loads(said.stdout)["rows"] == 5
    naysay("audit", *asked(place)[1:])


def test_questions_take_one_look_at_each_image_where_nothing_can_be_kept(place, tmp_path, monkeypatch):
    monkeypatch.setenv("NAYSAY_DATA", str(tmp_path / "empty"))
    seen, embed = [], features.embed

    def full(path, arrays):
        raise InputError(f"{path} cannot be written") from OSError("the disk is full")

    def count(net, images, **how):
        seen.append(len(images))
        return embed(net, images, **how)

    monkeypatch.setattr(sys.modules["naysay.features.extract"], "embed", count)
    monkeypatch.setattr("naysay.datasets.store.write", full)
    with pytest.warns(UserWarning, match="cannot be kept in .*Give another folder with cache=") as notes:
        naysay("ask", place / "RUN", place / "photos", "--n", 5, "--quiet", "--out", tmp_path / "q.csv")
    assert sum(seen) == N
    assert any("$NAYSAY_DATA" in in_flags(str(note.message)) for note in notes)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            ("fit", "--space", "pca", "--out", "R"),
            "e.safetensors gives the features, which are compared by angle; --space",
        ),
        (
            ("fit", "--apart", "--out", "R"),
            "e.safetensors has a card that does not say which images it was pretrained on",
        ),
        (("audit", "--space", "raw"), "--space raw is for items as they are"),
        (("augment", "--space", "cosine", "--out", "r.csv"), "--space cosine is for items as they are"),
    ],
)
def test_a_space_beside_an_encoder_is_refused(place, tmp_path, monkeypatch, call, said):
    monkeypatch.chdir(tmp_path)
    assert said in naysay(call[0], *asked(place)[1:], *call[1:], code=2).stderr


@pytest.mark.parametrize("how", [("--recipe", "consistent"), ("--recipe", "pocr"), ("--fine-tune", "--held-out", 0.1)])
def test_one_network_begins_with_a_small_encoder_without_naming_its_model(place, tmp_path, how):
    short = ("--epochs", 2, "--no-refit", "--scheme", "none", "--quiet")
    naysay(*asked(place), *how, *short, "--out", tmp_path / "R")
    assert json.loads((tmp_path / "R" / "run.json").read_text())["settings"]["config"]["model"] == "small-resnet"
    wrong = naysay(*asked(place), *how, *short, "--model", "resnet18", "--out", tmp_path / "R2", code=2).stderr
    assert "It was trained as --model small-resnet: choose that." in wrong


def test_the_help_of_fit_names_every_model():
    shown = " ".join(naysay("fit", "--help").stdout.replace("│", " ").split())
    assert all(name in shown for name in MODELS)


def test_images_of_another_size_than_in_fit_are_refused_by_the_estimator(place):
    x, y = pictures(N, 0)
    named = np.array(NAMES)[transition.sample(y, transition.uniform(3), seed=2)[:, 0]]
    model = ComplementaryClassifier(encoder=str(place / "e.safetensors"), budget=0.3).fit(x, named)
    with pytest.raises(
        InputError, match=r"X must hold images of shape \(12, 12, 3\), as in fit; got shape \(90, 12, 9, 3\). Resize"
    ):
        model.predict(x[:, :, :9])
    # grey images go through an encoder of colours, with an axis for their one channel or without
    assert np.array_equal(model.predict(x[..., :1]), model.predict(x[..., 0]))
    alone = ComplementaryClassifier(encoder=str(place / "e.safetensors"), recipe="consistent", epochs=2, batch_size=30)
    assert alone.fit(x, named).predictor_.config.model == "small-resnet"
    with pytest.raises(InputError, match="the model takes rows of shape"):
        alone.predict(x[:, :, :9])


def test_questions_are_spread_over_what_the_encoder_sees(place, tmp_path):
    naysay("ask", place / "RUN", place / "photos", "--n", 30, "--quiet", "--out", tmp_path / "q.csv")
    asked = [row["item"] for row in csv.DictReader((tmp_path / "q.csv").open())]
    run, photos = Run.load(place / "RUN"), datasets.from_folder(place / "photos")
    p, known = run.predict(photos.x)[1].numpy(), np.zeros((N, 3), bool)
    by_rows, by_pixels = (choose_questions(p, known, of, 30).rows for of in (run.rows(photos.x), photos.x))
    assert asked == photos.ids[by_rows].tolist()
    assert by_rows.tolist() != by_pixels.tolist()  # or this test would tell nothing


def test_the_time_is_told_after_the_first_of_several_batches(place, monkeypatch):
    x, _ = pictures(40, 3)
    told = []
    net, _ = features.load_encoder(place / "e.safetensors")
    clock = itertools.count()  # a second goes by from one look to the next
    monkeypatch.setattr(sys.modules["naysay.features.extract"].time, "perf_counter", lambda: next(clock))
    features.extract(net, x, batch=10, cache=False, ahead=told.append)
    assert told == [3.0]  # for three more batches
    features.extract(net, x, batch=40, cache=False, ahead=told.append)
    assert len(told) == 1  # nothing is ahead any more


def test_the_report_shows_the_images_and_what_was_learned(place, tmp_path):
    naysay("report", place / "RUN", "--out", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "makes of the images, 256 numbers each" in page
    assert page.count("data:image/png") >= 8
    assert page == (place / "RUN" / "report.html").read_text()


def test_test_items_of_a_known_set_go_the_same_way(place, tmp_path):
    (x, y), (x_test, y_test) = pictures(N, 0), pictures(50, 4)
    sets = {"x_train": x, "y_train": y, "x_test": x_test, "y_test": y_test, "classes": np.array(NAMES)}
    np.savez(tmp_path / "colours.npz", **sets)
    call = ("fit", tmp_path / "colours.npz", "--transition", "uniform", "--encoder", place / "e.safetensors")
    said = json.loads(naysay(*call, "--model", "auto", *CHEAP, "--json", "--out", tmp_path / "R").stdout)
    counted = next(row["truth"]["test_accuracy"] for row in said["results"] if row["chosen"])
    predicted = library.load_run(tmp_path / "R").predict(x_test)
    assert counted == pytest.approx((predicted == np.array(NAMES)[y_test]).mean())
    assert counted > 0.7


def test_the_estimator_learns_what_the_encoder_makes_of_images(place):
    (x, y), (new, of_new) = pictures(N, 0), pictures(40, 1)
    named = np.array(NAMES)[transition.sample(y, transition.uniform(3), seed=2)[:, 0]]
    model = ComplementaryClassifier(encoder=str(place / "e.safetensors"), budget=1).fit(x, named)
    by_hand = ComplementaryClassifier(budget=1).fit(features.extract(place / "e.safetensors", x), named)
    p = by_hand.predict_proba(features.extract(place / "e.safetensors", new))
    assert np.array_equal(model.predict_proba(new), p)
    assert (pickle.loads(pickle.dumps(model)).predict(new) == np.array(NAMES)[of_new]).mean() > 0.7
    with pytest.raises(InputError, match=r"an encoder takes images \(n, H, W\) or \(n, H, W, C\); got shape"):
        ComplementaryClassifier(encoder=str(place / "e.safetensors")).fit(x.reshape(N, -1), named)
    network = ComplementaryClassifier(encoder=str(place / "e.safetensors"), epochs=1).fit(x, named)
    assert network.predictor_.shape == (3, 12, 12)  # a setting of a network: one is trained, on pixels


def test_what_has_no_meaning_is_refused_in_a_sentence(place, tmp_path):
    assert "holds a mixture of models" in naysay("export", place / "RUN", "--out", tmp_path / "m.onnx", code=2).stderr
    flips = ("predict", place / "RUN", place / "more", "--flips", "--out", tmp_path / "p.csv")
    assert "--flips is for one network trained on images" in naysay(*flips, code=2).stderr
    np.save(tmp_path / "mine.npy", np.ones((N, 3), np.float32))
    ready = (*asked(place)[:4], "--encoder", tmp_path / "mine.npy", "--model", "auto", "--out", tmp_path / "R")
    assert "mine.npy holds features that are made already" in naysay(*ready, code=2).stderr
    table = write_csv(tmp_path / "t.csv", [["id", "a", "not"], *([i, i % 7, NAMES[i % 3]] for i in range(30))])
    of_table = ("fit", table, "--id", "id", "--label", "not", "--encoder", place / "nowhere.safetensors")
    assert "got a table" in naysay(*of_table, "--out", tmp_path / "R", code=2).stderr
    nowhere = naysay(*asked(place, weights="nowhere.safetensors"), "--out", tmp_path / "R", code=2).stderr
    assert "an encoder is nowhere.safetensors with its card nowhere.json; not both are in" in nowhere
    floats = tmp_path / "floats.npz"
    np.savez(floats, x=np.zeros((N, 4, 4, 3), np.float32), **{"not": np.arange(N) % 3})
    call = ("fit", floats, "--features", "x", "--label", "not", "--encoder", place / "e.safetensors")
    assert "must hold images as uint8" in naysay(*call, "--model", "auto", "--out", tmp_path / "R", code=2).stderr


@pytest.mark.parametrize(
    ("given", "gpu", "embeds"),
    [
        ({}, False, True),
        ({"model": "auto"}, True, True),
        ({"class_shares": "even"}, False, True),
        ({}, True, False),  # the recipe consistent
        ({"recipe": "plain"}, False, False),
        ({"scheme": "dms"}, False, False),
        ({"model": "lenet"}, False, False),
        ({"flips": True}, False, False),
        ({"encoder": "mine.npy"}, False, False),
    ],
)
def test_an_encoder_without_a_gpu_is_learned_from_unless_a_network_is_asked_for(
    given, gpu, embeds, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("e.safetensors").write_bytes(bytes(11 << 20))
    settings = {**NETWORK, "model": None, "encoder": Path("e.safetensors"), **given}
    settings["recipe"] = settings["recipe"] or usual_recipe(settings, gpu)
    assert chooses_itself(settings) is embeds
    on_pixels = not embeds and not gpu and settings["encoder"] != "mine.npy"
    assert bool(left_to_neighbors(settings)) is on_pixels


def test_a_network_on_pixels_beside_an_encoder_says_so(place, tmp_path):
    call = (*asked(place), "--epochs", 1, "--scheme", "none", "--folds", 1, "--out", tmp_path / "R")
    said = naysay(*call).stderr
    assert "one network is trained on pixels, as --scheme asks for one, and the encoder only says who is near" in said
    assert not (tmp_path / "R" / "encoder.safetensors").exists()


def test_a_file_of_settings_names_the_encoder_that_its_recipe_begins_with(place, tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"recipe": "consistent", "model": "lenet", "epochs": 2}))
    failed = naysay(*asked(place), "--config", settings, "--out", tmp_path / "RUN", "--quiet", code=2)
    told = " ".join(failed.stderr.split())
    assert "begins with the encoder that the file names, as encoder, and has no use for --encoder. Name it" in told
