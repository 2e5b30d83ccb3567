"""Images that pretraining left out judge what is learned from the encoder; a run says what its encoder had seen."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from test_cli import NAMES, naysay, write_csv
from test_features_pretrain import TINY, small_encoder, stripes
from test_frozen import pictures, write_photos

from naysay import features, labels, portfolio, runs, transition
from naysay.cli.options import in_flags
from naysay.datasets import Items
from naysay.datasets.dataset import numbered
from naysay.errors import InputError
from naysay.features.unseen import account, kept_from
from naysay.learning import Config
from naysay.models import small_resnet_encoder
from naysay.portfolio import blend
from naysay.runs.results import SAW, verdict

N, SHARE, SEED = 90, 0.3, 4
SEEN = "The encoder had seen images that judged, so that the estimate may be too high"
UNSEEN = "The encoder had not seen the images that judged."


def data(n=N):
    x, y = pictures(n, 0)
    comp = labels.from_indices(transition.sample(y, transition.uniform(3), seed=2), 3)
    return runs.Labelled(Items(numbered(n), x), comp, tuple(NAMES), sure=True)


def save(path, card, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        features.save_encoder(path, small_resnet_encoder(3), card)
    return str(path)


def card(images, share=SHARE, seed=SEED):
    return account(torch.from_numpy(images), share, seed)


def left_out(n=N, share=SHARE, seed=SEED):
    return features.leave_out(n, share, seed)[1]


def quiet(line):
    pass


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NAYSAY_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def state(images):
    done = features.pretrain(images, TINY, encoder=small_encoder(), leave_out=SHARE)
    return done.encoder.state_dict()


def test_images_that_are_left_out_take_no_part_in_pretraining_nor_in_the_readout():
    images = stripes()[0]
    rows, left = features.leave_out(len(images), SHARE, TINY.seed)
    expected, other = state(images), images.clone()
    other[left] = 255 - other[left]
    again = state(other)
    assert {"readout.mean", "readout.axes"} < expected.keys()
    assert all(torch.equal(tensor, again[name]) for name, tensor in expected.items())
    other[rows[0]] = 255 - other[rows[0]]
    assert not torch.equal(expected["readout.mean"], state(other)["readout.mean"])


def test_the_images_left_out_are_drawn_by_the_seed_and_are_the_share_that_was_asked_for():
    rows, left = features.leave_out(50, 0.1, 0)
    assert (len(rows), len(left)) == (45, 5)
    assert sorted([*rows.tolist(), *left.tolist()]) == list(range(50))
    assert torch.equal(left, features.leave_out(50, 0.1, 0)[1])
    assert not torch.equal(left, features.leave_out(50, 0.1, 1)[1])
    assert [len(part) for part in features.leave_out(3, 0.3, 0)] == [2, 1]


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.0, "--leave-out must be a share between 0 and 1; got 0.0. --leave-out 0.1 is a tenth."),
        (1.0, "--leave-out must be a share between 0 and 1; got 1.0."),
        (-0.5, "--leave-out must be a share between 0 and 1; got -0.5."),
        (float("nan"), "--leave-out must be a share between 0 and 1; got nan."),
        (0.01, "--leave-out 0.01 of 24 images would leave 0 out and 24 to pretrain on, where at least 1 and 2 are"),
        (0.96, "--leave-out 0.96 of 24 images would leave 23 out and 1 to pretrain on"),
    ],
)
def test_a_share_that_cannot_be_left_out_is_refused(share, said, tmp_path):
    np.save(tmp_path / "x.npy", pictures(24, 0)[0])
    asked = ("--epochs", 1, "--leave-out", share, "--out", tmp_path / "e")
    refused = naysay("pretrain", tmp_path / "x.npy", *asked, code=2).stderr
    assert said in refused
    with pytest.raises(InputError, match="leave_out="):
        features.pretrain(stripes(24)[0], TINY, encoder=small_encoder(), leave_out=share)


def test_a_run_goes_on_with_the_share_that_it_began_with_and_no_other(tmp_path):
    def run(share, **more):
        return features.pretrain(stripes()[0], TINY, encoder=small_encoder(), leave_out=share, **more)

    run(SHARE, folder=tmp_path, seconds=0.0)
    with pytest.raises(InputError, match=r"it differs in .*the share of images left out \(0.3, now 0.2\)"):
        run(0.2, folder=tmp_path)
    with pytest.raises(InputError, match=r"it differs in .*the share of images left out \(0.3, now None\)"):
        run(None, folder=tmp_path)
    done, alone = run(SHARE, folder=tmp_path), run(SHARE)
    assert torch.equal(done.encoder.readout.axes, alone.encoder.readout.axes)
    run(None, folder=tmp_path / "all", seconds=0.0)
    with pytest.raises(InputError, match=r"it differs in .*the share of images left out \(None, now 0.3\)"):
        run(SHARE, folder=tmp_path / "all")


def test_the_command_leaves_images_out_and_fit_is_judged_by_them(tmp_path):
    x, y = pictures(N, 0)
    write_photos(tmp_path / "photos", x)
    wrong = transition.sample(y, transition.uniform(3), seed=2)[:, 0].tolist()
    said = [[f"{i:02}.png", NAMES[k]] for i, k in enumerate(wrong) if i >= 20]  # the first twenty have none
    votes = write_csv(tmp_path / "votes.csv", [["item", "label"], *said])
    most = ("pretrain", tmp_path / "photos", "--epochs", 1, "--leave-out", SHARE, "--seed", SEED)
    told = naysay(*most, "--out", tmp_path / "most")
    assert "1 epoch of 63 images" in told.stderr
    written = json.loads((tmp_path / "most" / "encoder.json").read_text())
    assert written["readout"] == "half whitened by the mean and axes of 63 training images, no labels"
    assert written["config"]["batch_size"] == 63
    left = left_out()
    assert written["left_out"] == {**card(x)["left_out"], "share": SHARE, "seed": SEED, "images": len(left)}
    assert written["pixels"] == card(x)["pixels"]
    fit = ("fit", tmp_path / "photos", "--labels", votes, "--encoder", tmp_path / "most" / "encoder.safetensors")
    judges = [row for row in left.tolist() if row >= 20]
    done = naysay(*fit, "--apart", "--budget", 1, "--out", tmp_path / "RUN")
    assert f"judging by the labels of {len(judges)} images, which the encoder left out" in done.stderr
    assert UNSEEN in done.stdout
    about = json.loads((tmp_path / "RUN" / "run.json").read_text())
    assert (about["settings"]["auto"], about["judging"]["folds"], about["judging"]["rows"]) == (True, 1, len(judges))
    assert about["judging"]["labels_seen"] == round(1 - len(judges) / 70, 3)
    assert UNSEEN in about["verdict"]
    assert UNSEEN in (tmp_path / "RUN" / "report.html").read_text()
    seen = json.loads(naysay(*fit, "--budget", 1, "--json", "--out", tmp_path / "SEEN").stdout)
    assert SEEN in seen["verdict"]
    assert "; --apart avoids it, with an encoder pretrained with --leave-out 0.1." in seen["verdict"]
    for beside, said in ((("--held-out", 0.2), "--held-out 0.2"), (("--folds", 5), "--folds 5")):
        refused = naysay(*fit, "--apart", *beside, "--out", tmp_path / "no", code=2).stderr
        assert f"left out, so that {said} would change nothing. Leave it out." in refused


@pytest.mark.parametrize("more", [{"auto": True, "budget": 1.0}, {"schemes": ("none", "dms")}])
def test_a_run_apart_is_judged_by_the_labelled_images_left_out_and_trains_on_all_others(tmp_path, more):
    given, left = data(), left_out()
    given.comp[left[:3]] = 0
    path = save(tmp_path / "e.safetensors", card(given.items.x))
    fitted = runs.fit(given, runs.Settings(Config(epochs=1), encoder=path, apart=True, **more), tell=quiet)
    assert fitted.held.tolist() == left[3:].tolist()
    assert fitted.folds == 1
    assert fitted.seen == pytest.approx(1 - len(left[3:]) / (N - 3), abs=1e-3)
    assert len(fitted.rows) == N  # what is kept has seen all labels
    assert UNSEEN in verdict(fitted)
    if not fitted.settings.auto:
        judged = fitted.attempts[0].models[0].ground.part
        assert sorted([*judged.rows.tolist(), *judged.held_rows.tolist()]) == list(range(N))


def test_a_portfolio_that_is_judged_apart_knows_nothing_of_the_labels_that_judge_it():
    x, y = pictures(N, 0)
    x, comp = x.reshape(N, -1).astype(np.float32), data().comp
    rows, held = features.leave_out(N, SHARE, SEED)
    first = portfolio.fit(x[rows.numpy()], comp[rows], budget=1)
    turned = comp.clone()
    turned[held] = turned[held].roll(1, 1)
    found, other = (portfolio.judge_apart(first, x, of, rows, held, 0) for of in (comp, turned))
    assert found.rows.tolist() == held.tolist()
    assert np.array_equal(found.p, other.p)
    assert np.allclose(found.loss, blend.loss_of(found.p, comp[held].double().numpy(), first.naming.T))
    assert not np.allclose(found.loss, other.loss)
    assert len(found.tried) > len(first.model.parts)  # some are no part of the mixture, and judged all the same
    assert all(np.array_equal(one.p, two.p) for one, two in zip(found.tried, other.tried, strict=True))
    model = first.model  # which was trained on the rows alone
    assert np.array_equal(found.p, model.logits(x[held.numpy()]).exp().numpy())
    assert (found.p.argmax(1) == y[held.numpy()]).mean() > 0.8
    for before, one in zip(first.tried, found.tried, strict=True):
        assert (one.factor, one.base, one.p.shape) == (before.factor, before.base, (len(held), 3))
        if one.row.name == model.parts[0].name:
            assert np.array_equal(one.p, model.parts[0].probabilities(x[held.numpy()]))
    parts = found.model.parts
    assert [part.name for part in parts] == [part.name for part in model.parts]
    whole = portfolio.judge_apart(first, x, turned, rows, held, 0).model
    assert not torch.equal(found.model.logits(x), whole.logits(x))  # the labels that judged are learned in the end
    assert not torch.equal(found.model.logits(x), model.logits(x))


def test_of_two_encoders_those_images_judge_that_both_left_out(tmp_path):
    given = data()
    space = save(tmp_path / "a.safetensors", card(given.items.x))
    start = save(tmp_path / "b.safetensors", card(given.items.x, 0.5, 1))
    config = Config(epochs=1, model="small-resnet", encoder=start)
    settings = runs.Settings(config, ("none",), encoder=space, apart=True, refit=False)
    fitted = runs.fit(given, settings, tell=quiet)
    both = set(left_out().tolist()) & set(left_out(share=0.5, seed=1).tolist())
    assert fitted.held.tolist() == sorted(both)
    assert len(fitted.rows) == N - len(both)
    alone = dataclasses.replace(settings, encoder=None, apart=False)
    assert runs.fit(given, alone, tell=quiet).saw == "these"  # though the space is that of the pixels
    other = save(tmp_path / "c.safetensors", card(given.items.x[::-1].copy()))
    assert runs.fit(given, dataclasses.replace(alone, encoder=other), tell=quiet).saw == "these"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            lambda x: card(x, None),
            "e.safetensors left none of these images out, copies of others aside. Make one with naysay pretrain and",
        ),
        (
            lambda x: card(x[::-1].copy()),
            "e.safetensors was not pretrained on exactly these images, in this order. Make one with",
        ),
        (lambda x: {"data": "old"}, "e.safetensors has a card that does not say which images it was pretrained on."),
        (
            lambda x: {**card(x), "left_out": {**card(x)["left_out"], "seed": 5}},
            "e.safetensors was kept from are not those that its card draws. Pretrain it again.",
        ),
        (lambda x: {**card(x), "left_out": {"share": "x", "seed": 0, "pixels": ""}}, "is damaged or was changed"),
        (lambda x: {**card(x), "left_out": 3}, "is damaged or was changed"),
    ],
)
def test_an_encoder_that_left_none_of_these_images_out_cannot_judge_apart(tmp_path, made, said):
    given = data()
    settings = runs.Settings(auto=True, encoder=save(tmp_path / "e.safetensors", made(given.items.x)), apart=True)
    with pytest.raises(InputError) as caught:
        runs.fit(given, settings, tell=quiet)
    assert said in str(caught.value)
    if "Make one" in said:
        told = in_flags(str(caught.value))
        assert told.startswith("--apart judges by images that the encoder left out, and ")
        assert told.endswith("Make one with naysay pretrain and --leave-out 0.1, or leave --apart out.")


def test_a_single_label_among_the_images_left_out_is_too_few_to_judge_by(tmp_path):
    given, left = data(), left_out()
    given.comp[left[1:]] = 0
    path = save(tmp_path / "e.safetensors", card(given.items.x))
    with pytest.raises(InputError, match=r"of the 27 images that e.safetensors left out 1 have labels, and apart=True"):
        runs.fit(given, runs.Settings(encoder=path, apart=True), tell=quiet)


def test_where_only_images_that_were_left_out_have_labels_there_is_nothing_to_train_on(tmp_path):
    given = data()
    given.comp[features.leave_out(N, SHARE, SEED)[0]] = 0
    path = save(tmp_path / "e.safetensors", card(given.items.x))
    with pytest.raises(InputError, match=r"only images that e.safetensors left out have labels, and apart=True trains"):
        runs.fit(given, runs.Settings(encoder=path, apart=True), tell=quiet)


def test_copies_of_images_that_the_encoder_has_seen_do_not_judge():
    x = pictures(N, 0)[0]
    left = left_out().numpy()
    x[left[:5]] = x[features.leave_out(N, SHARE, SEED)[0][:5].numpy()]
    assert kept_from(card(x), x, "e")[1].tolist() == left[5:].tolist()


@pytest.mark.parametrize(
    ("made", "saw"),
    [
        (lambda x: card(x, None), "these"),
        (card, "these"),
        (lambda x: card(x[::-1].copy(), None), "others"),
        (lambda x: {"data": "old"}, "unknown"),
    ],
)
def test_a_run_says_what_its_encoder_has_seen_of_the_images_that_judge(tmp_path, made, saw):
    given = data()
    path = save(tmp_path / "e.safetensors", made(given.items.x))
    fitted = runs.fit(given, runs.Settings(auto=True, budget=1, encoder=path), tell=quiet)
    assert fitted.saw == saw
    assert [text for text in SAW.values() if text in verdict(fitted)] == [SAW[saw]]
    assert len(fitted.held) == N


def test_grey_images_are_known_again_with_and_without_a_channel():
    images = pictures(N, 0)[0][..., 0]
    told = account(torch.from_numpy(images[..., None]), SHARE, SEED)
    assert kept_from(told, images, "e")[1].tolist() == left_out().tolist()
