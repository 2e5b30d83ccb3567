"""Runs: neighbours, epochs, the split, and sentences that say no more than was seen."""

import numpy as np
import pytest
import torch

from naysay import labels, runs, transition
from naysay.augmentation import Sharing, neighbors_for
from naysay.datasets import Items
from naysay.errors import InputError
from naysay.holdout import prepare, split
from naysay.learning import Config
from naysay.runs.results import compared
from naysay.runs.settings import batch_size_for
from naysay.selection import Comparison


def against(z):
    """A difference of z standard errors."""
    return Comparison(0.1, 0.1 / z, z, 0.0)


def test_a_difference_is_called_one_from_two_standard_errors_on():
    assert compared("dms", 100, {"none": against(3)}) == [
        "dms is kept: better than none (+10.0 ± 3.3 points) on the same 100 held-out labels."
    ]
    assert compared("dms", 1000, {"none": against(1)}) == [
        "dms is kept, but 1,000 held-out labels show no difference between it and none (+10.0 ± 10.0 points)."
    ]
    both = compared("dms", 100, {"none": against(4), "rss": against(0.5), "rms": against(1)})
    assert both[0].startswith("dms is kept: better than none")
    assert both[1] == "They show no difference between it and rss (+10.0 ± 20.0 points) and rms (+10.0 ± 10.0 points)."
    assert "nothing to compare" in compared("none", 10, {})[0]


def test_small_classes_have_small_neighbourhoods():
    assert neighbors_for("dms", 50_000, 10) == 64  # the paper's
    assert neighbors_for("dms", 1_298, 10) == 11
    assert neighbors_for("dss", 1_298, 10) == 64
    assert neighbors_for("dss", 300, 10) == 15
    assert neighbors_for("dms", 30, 10) == 8
    assert neighbors_for("dms", 5, 3) == 4  # all other rows
    assert Sharing(n_neighbors=32).within(1_298, 10).n_neighbors == 32


def test_epochs_and_batches_follow_from_the_number_of_rows():
    assert [runs.epochs_within_budget(n) for n in (10, 30_000, 60_000, 1_000_000)] == [100, 100, 50, 5]
    assert [batch_size_for(n) for n in (1_000, 100_000)] == [64, 256]


def test_only_labelled_rows_are_held_out():
    comp = labels.from_indices([0, -1, 1, 2, -1, 0, 1, 2, 0, 1] * 4, 3)
    rows, held = split(comp, 0.25, seed=0)
    assert sorted([*rows.tolist(), *held.tolist()]) == list(range(40))
    assert len(held) == 8
    assert bool((comp[held].sum(1) == 1).all())
    with pytest.raises(InputError, match="no row has a label"):
        split(torch.zeros(5, 3), 0.2, seed=0)


def test_where_every_row_is_labelled_both_ways_of_holding_out_hold_out_the_same():
    comp = labels.from_indices(np.arange(40) % 3, 3)
    rows, held = split(comp, 0.25, seed=7)
    ready = prepare(np.zeros((40, 2), np.float32), comp, held_out=0.25, seed=7)
    assert torch.equal(ready.rows, rows)
    assert torch.equal(ready.held_rows, held)
    assert torch.equal(ready.held_out.comp, comp[held])


def test_held_out_labels_take_no_part_in_sharing():
    """Changing a held-out row's label changes the estimate and not a single training label."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    x = (3 * np.eye(3)[y] + rng.normal(size=(90, 3))).astype(np.float32)
    comp = labels.from_indices(transition.sample(y, transition.uniform(3)), 3)
    items = Items(np.arange(90).astype(str).astype(object), x)
    settings = runs.Settings(Config(epochs=1), ("dms",))
    first = runs.fit(runs.Labelled(items, comp, ("a", "b", "c")), settings, tell=lambda line: None)
    turned = comp.clone()
    turned[first.held] = turned[first.held].roll(1, dims=1)
    second = runs.fit(runs.Labelled(items, turned, ("a", "b", "c")), settings, tell=lambda line: None)
    assert torch.equal(first.chosen.shared, second.chosen.shared)
    assert first.chosen.estimate.value != second.chosen.estimate.value


def test_unlabelled_rows_receive_and_are_trained_on():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)).astype(np.float32)
    comp = labels.from_indices([i % 3 if i % 2 else -1 for i in range(60)], 3)
    items = Items(np.arange(60).astype(str).astype(object), x)
    fitted = runs.fit(
        runs.Labelled(items, comp, ("a", "b", "c")), runs.Settings(Config(epochs=1)), tell=lambda line: None
    )
    none, dms = fitted.attempts
    assert int((none.shared.sum(1) > 0).sum()) == 27
    assert int((dms.shared.sum(1) > 0).sum()) == 57  # all training rows: 60 less a tenth of the 30 labelled


def test_an_estimated_transition_owes_nothing_to_the_labels_that_judge():
    draw = np.random.default_rng(0)
    y = draw.integers(0, 3, 300)
    x = (np.eye(4)[y] * 6 + draw.normal(size=(300, 4))).astype(np.float32)
    comp = labels.from_indices((y + draw.choice([1, 2], 300, p=[0.8, 0.2])) % 3, 3)
    _, held = split(comp, 0.1, 0)
    other = comp.clone()
    other[held] = other[held].roll(1, dims=1)
    settings = runs.Settings(Config(epochs=1), ("none",), assume="estimated")
    ids = np.arange(300).astype(object)
    one, two = (
        runs.fit(runs.Labelled(Items(ids, x), given, ("a", "b", "c")), settings, progress=False, tell=lambda line: None)
        for given in (comp, other)
    )
    assert torch.equal(one.held, held)
    assert torch.equal(one.T, two.T)
    assert one.chosen.estimate.value != two.chosen.estimate.value
    # not uniform: the class after the true one is named four times as often as the one before it
    assert all(one.T[k, (k + 1) % 3] > 0.65 for k in range(3))


def test_the_confidence_that_a_run_shows_is_in_classes_also_where_a_loss_estimates_labels():
    """A model of cpe-i that has learned is least confident of what it was told the row is not."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 120)
    x = (4 * np.eye(4)[y] + rng.normal(size=(120, 4))).astype(np.float32)
    comp = labels.from_indices(transition.sample(y, transition.uniform(4)), 4)
    data = runs.Labelled(Items(np.arange(120).astype(str).astype(object), x), comp, tuple("abcd"))
    settings = runs.Settings(Config(loss="cpe-i", epochs=15), ("dms",))
    fitted = runs.fit(data, settings, progress=False, tell=lambda line: None)
    assert fitted.chosen.trained.history[-1]["confidence_seen"] < 0.2
