"""Settings of sharing chosen by labels that were hidden: few neighbours or many, which read-out, and what is told."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from naysay import augment, features, labels, neighbors, transition
from naysay.augmentation import Sharing, augment_report, choice, share
from naysay.cluster import augment_shards
from naysay.errors import InputError
from naysay.estimators import ComplementaryClassifier, ComplementaryKNeighbors, LabelAugmenter
from naysay.seeds import stream

AUTO = {"n_neighbors": "auto", "gamma": "auto"}


def islands(n_islands, size, n_classes, n_labels, seed=0):
    """Tight groups of rows of one class each, far apart, and labels: rows (n, 4), class numbers (n,), comp (n, K)."""
    rng = stream(seed, "islands")
    which = np.repeat(np.arange(n_islands), size)
    x = (10 * rng.normal(size=(n_islands, 4)))[which] + rng.normal(size=(len(which), 4))
    y = torch.from_numpy(which % n_classes)
    drawn = transition.sample(y, transition.uniform(n_classes), n_labels, seed=seed, replace=False)
    return x.astype(np.float32), y, labels.from_indices(drawn, n_classes)


def right(Z, y):
    return float((torch.as_tensor(Z).argmin(1) == y).double().mean())


def test_few_neighbours_are_chosen_where_groups_are_small_and_labels_dense():
    x, y, comp = islands(40, 12, 5, 3)
    Z, report = augment_report(x, comp, **AUTO)
    assert report.neighbors <= 16
    assert right(Z, y) > right(augment(x, comp, gamma="auto"), y) + 0.05  # 64 neighbours reach other groups


def test_many_neighbours_are_chosen_where_labels_are_sparse_and_often_wrong():
    x, y, _ = islands(4, 300, 4, 1)
    drawn = transition.sample(y, transition.noisy(transition.uniform(4), 0.7), seed=0)
    comp = labels.from_indices(drawn, 4)
    Z, report = augment_report(x, comp, **AUTO)
    assert report.neighbors >= 64
    assert right(Z, y) > right(augment(x, comp, n_neighbors=8, gamma="auto"), y) + 0.05


def test_the_paper_s_settings_stay_where_neighbours_say_nothing_though_labels_are_popular():
    rng = stream(1, "nothing")
    x = rng.normal(size=(600, 5)).astype(np.float32)
    comp = labels.from_indices(rng.choice(4, 600, p=[0.6, 0.2, 0.1, 0.1]), 4)
    report = augment_report(x, comp, metric="cosine", class_shares="even", **AUTO)[1]
    assert (report.neighbors, report.gamma, report.alpha) == (64, 1.0, 0.1)
    assert report.choice.kept == report.choice.tried[0]
    assert all(one.gain <= one.error for one in report.choice.tried)


def test_what_was_tried_and_by_how_much_it_won_is_told():
    x, _, comp = islands(40, 12, 5, 3)
    report = augment_report(x, comp, alpha="auto", **AUTO)[1]
    kept, tried = report.choice.kept, report.choice.tried
    assert (kept.n_neighbors, kept.gamma, kept.alpha) == (report.neighbors, report.gamma, report.alpha)
    assert kept in tried
    assert kept.gain > kept.error > 0
    assert kept.gain == pytest.approx(tried[0].loss - kept.loss)
    assert {one.n_neighbors for one in tried} >= {4, 8, 16, 32}
    assert {one.alpha for one in tried} == {0.03, 0.1, 0.3}
    written = json.loads(json.dumps(report.as_dict()))["choice"]
    assert written["labels"] == 480
    assert written["tried"][0]["gain"] == 0
    assert f"chosen by 480 hidden labels: {report.neighbors} neighbours" in str(report)
    assert "choice" not in augment_report(x, comp, gamma="auto")[1].as_dict()
    first = tried[0]
    assert str(replace(report.choice, tried=(first, first))).splitlines()[1] == f"2 settings tried; none beats {first}"


def test_the_choice_is_the_same_each_time_and_the_labels_are_those_of_the_numbers_chosen():
    x, _, comp = islands(20, 15, 5, 1)
    Z, report = augment_report(x, comp, **AUTO)
    again, same = augment_report(x, comp, **AUTO)
    assert np.array_equal(Z, again)
    assert same == report
    assert np.array_equal(Z, augment(x, comp, n_neighbors=report.neighbors, gamma=report.gamma))
    graph = neighbors.build(x, 60)
    assert augment_report(graph, comp, **AUTO)[1].neighbors <= 60


def test_only_what_is_auto_is_chosen():
    x, _, comp = islands(40, 12, 5, 3)
    report = augment_report(x, comp, n_neighbors="auto", gamma=0.5)[1]
    assert {(one.gamma, one.alpha) for one in report.choice.tried} == {(0.5, 0.1)}
    report = augment_report(x, comp, n_neighbors=9, alpha="auto", gamma=0.5)[1]
    assert {one.n_neighbors for one in report.choice.tried} == {9}
    by_rank = augment_report(x, comp, "rms", **AUTO)[1]
    assert {one.gamma for one in by_rank.choice.tried} == {None}
    assert augment_report(x, comp, "none", n_neighbors="auto", alpha="auto")[1].choice is None


def test_labels_are_judged_as_they_will_be_read():
    x, y, _ = islands(30, 20, 5, 1)
    named = torch.tensor([8.0, 4.0, 2.0, 1.0, 1.0]).repeat(5, 1).fill_diagonal_(0)
    T = named / named.sum(1, keepdim=True)
    comp = labels.from_indices(transition.sample(y, T, seed=0), 5)
    plain, even = (
        augment_report(x, comp, alpha="auto", class_shares=shares)[1].choice.tried[0].loss for shares in (None, "even")
    )
    assert even < plain
    next_one = torch.eye(5).roll(1, 1)  # each class is called the next one, always
    comp = labels.from_indices(transition.sample(y, next_one, seed=0), 5)
    known = augment_report(x, comp, n_neighbors=8, alpha="auto", transition=next_one)[1].choice.tried[0].loss
    assert known < 0.5  # nats: by popularity, which knows of no such rule, it is never far below log 4


def test_too_few_labels_choose_nothing_and_say_so():
    x, _, comp = islands(10, 6, 5, 1)
    comp[30:] = 0
    report = augment_report(x, comp, alpha="auto", whiten="auto", **AUTO)[1]
    assert report.choice.tried == ()
    assert (report.alpha, report.whiten) == (0.1, None)
    assert "too few labels to choose settings by" in str(report)


def hidden_in_a_narrow_direction(n=800):
    """Classes tell in three narrow directions of an embedding; one broad direction is noise."""
    rng = stream(0, "narrow")
    y = rng.integers(0, 4, n)
    told = np.eye(4)[y][:, :3] * 2 + 0.3 * rng.normal(size=(n, 3))
    x = np.concatenate([told, 25 * rng.normal(size=(n, 1)), 5 + np.zeros((n, 1))], 1).astype(np.float32)
    comp = labels.from_indices(transition.sample(torch.from_numpy(y), transition.uniform(4), seed=0), 4)
    return x, torch.from_numpy(y), comp


def test_whitening_is_chosen_where_broad_directions_hide_the_classes():
    x, y, comp = hidden_in_a_narrow_direction()
    how = {"metric": "cosine", "n_neighbors": 16, "gamma": "auto"}
    Z, report = augment_report(x, comp, whiten="auto", **how)
    assert report.whiten in (0.5, 1.0)
    assert [one.whiten for one in report.choice.read_outs] == [None, 0.0, 0.5, 1.0]
    assert right(Z, y) > right(augment(x, comp, **how), y) + 0.02
    assert f"features whitened by {report.whiten:g}" in str(report)
    for strength in (report.whiten, 0.0):
        white = features.whiten(x, strength=strength)
        assert np.allclose(augment(x, comp, whiten=strength, **how), augment(white, comp, **how), atol=1e-6)


def test_features_stay_as_they_are_where_whitening_gains_nothing():
    x, _, comp = islands(12, 50, 4, 1)
    assert augment_report(x, comp, n_neighbors=16, gamma="auto", metric="cosine", whiten="auto")[1].whiten is None


def test_read_outs_of_many_rows_are_compared_on_some_and_used_for_all(monkeypatch):
    monkeypatch.setattr(choice, "SAMPLE", 400)
    x, _, comp = hidden_in_a_narrow_direction()
    how = {"metric": "cosine", "n_neighbors": 16, "gamma": "auto"}
    _, report = augment_report(torch.from_numpy(x), comp, whiten="auto", **how)
    assert report.whiten in (0.5, 1.0)
    assert (report.choice.labels, report.labels.rows) == (800, 800)
    alone = augment_report(x, comp, whiten=report.whiten, **how)[1]
    assert report.choice.read_outs[0].loss != report.choice.tried[0].loss
    assert alone.effective_neighbors == report.effective_neighbors


def test_the_estimator_keeps_what_was_chosen_for_new_rows():
    x, y, comp = hidden_in_a_narrow_direction()
    named = comp.argmax(1).numpy()
    fitted = LabelAugmenter(n_neighbors=16, alpha="auto", whiten="auto", metric="cosine")
    fitted.fit(x[:600], named[:600])
    kept = fitted.choice_.kept
    assert (fitted.n_neighbors_, fitted.gamma_, fitted.alpha_, fitted.whiten_) == (
        kept.n_neighbors,
        kept.gamma,
        kept.alpha,
        kept.whiten,
    )
    assert fitted.whiten_ is not None
    assert right(fitted.transform(x[600:]), y[600:]) > 0.8
    nothing = LabelAugmenter("none", n_neighbors="auto", alpha="auto", whiten="auto").fit(x[:100], named[:100])
    assert (nothing.alpha_, nothing.whiten_, nothing.choice_) == (0.1, None, None)


def test_a_network_can_be_trained_on_labels_shared_so():
    x, y, comp = islands(20, 5, 5, 1)
    model = ComplementaryClassifier(scheme="dms", n_neighbors="auto", alpha="auto", epochs=1)
    assert model.fit(x, comp.argmax(1).numpy()).predict(x).shape == y.shape


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_neighbors": float("nan")}, "n_neighbors must be a whole number of at least 1; got nan"),
        ({"rounds": float("inf")}, "rounds must be a whole number of at least 0; got inf"),
        ({"n_neighbors": [8]}, r"n_neighbors must be a number; got \[8\]"),
        ({"alpha": None}, "alpha must be a number; got None"),
        ({"n_neighbors": "aut"}, "n_neighbors must be a whole number of at least 1, .* or \"auto\" .*; got 'aut'"),
        ({"alpha": "aut"}, "alpha must be a number above 0 .*; got 'aut'"),
        ({"whiten": "half"}, "whiten must be a strength from 0 .*; got 'half'"),
        ({"whiten": 2}, "whiten must be a strength from 0 .*; got 2"),
        ({"gamma": "aut"}, "gamma must be a positive number"),
    ],
)
def test_misspelt_settings_are_told(setting, message):
    with pytest.raises(InputError, match=message):
        Sharing(**setting)


def test_what_cannot_be_chosen_is_told(tmp_path):
    x, _, comp = islands(10, 10, 5, 1)
    with pytest.raises(InputError, match="whiten=auto needs features to whiten"):
        share(neighbors.build(x, 20), comp, Sharing(whiten="auto"))
    with pytest.raises(InputError, match="n_neighbors must be a whole number, or \"auto\" to choose it; got 'aut'"):
        ComplementaryKNeighbors("aut").fit(x, comp.argmax(1).numpy())
    for how in ({"n_neighbors": "auto"}, {"alpha": "auto"}, {"whiten": 0.5}):
        with pytest.raises(InputError, match="settings of sharing over shards must be numbers"):
            augment_shards(tmp_path, tmp_path / "out", replace(Sharing(), **how))
