"""Images that are left out of pretraining: they take no part in it, and the card of the encoder says which they are."""

import json

import numpy as np
import pytest
import torch
from test_cli import naysay
from test_features_pretrain import TINY, small_encoder, stripes
from test_frozen import pictures

from naysay import features
from naysay.errors import InputError
from naysay.features.unseen import account, kept_from

N, SHARE, SEED = 90, 0.3, 4


def left_out(n=N, share=SHARE, seed=SEED):
    return features.leave_out(n, share, seed)[1]


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
    refused = naysay("pretrain", tmp_path / "x.npy", "--leave-out", share, "--out", tmp_path / "e", code=2).stderr
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


def test_the_card_says_which_images_were_left_out(tmp_path):
    np.save(tmp_path / "x.npy", pictures(N, 0)[0])
    asked = ("--epochs", 1, "--leave-out", SHARE, "--seed", SEED, "--quiet", "--out", tmp_path / "e")
    naysay("pretrain", tmp_path / "x.npy", *asked)
    written = json.loads((tmp_path / "e" / "encoder.json").read_text())
    assert written["readout"] == "half whitened by the mean and axes of 63 training images, no labels"
    assert kept_from(written, np.load(tmp_path / "x.npy"), "e")[1].tolist() == left_out().tolist()


def test_grey_images_are_known_again_with_and_without_a_channel():
    images = pictures(N, 0)[0][..., 0]
    told = account(torch.from_numpy(images[..., None]), SHARE, SEED)
    assert kept_from(told, images, "e")[1].tolist() == left_out().tolist()
