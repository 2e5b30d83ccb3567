"""Estimating T: what an audit says of it, without the audit, and refused in one sentence where neighbours tell nothing.

How near it comes to a known T is held by `test_audit_nearby.py`.
"""

import numpy as np
import pytest
import torch

from naysay import labels, neighbors, transition
from naysay.audit import audit
from naysay.errors import InputError
from naysay.estimation import Votes, estimate_transition


def blobs(n=600, k=4, spread=0.2, seed=0):
    """Features of k classes, and a biased label each."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    x = (np.eye(k)[y] + rng.normal(0, spread, (n, k))).astype(np.float32)
    return x, labels.from_indices(transition.sample(y, transition.biased(k, "weak"), 1, seed), k)


def test_it_is_what_an_audit_of_the_same_rows_finds():
    x, comp = blobs()
    comp[::5] = 0
    found, near = estimate_transition(comp, x, sample=300, seed=3), audit(comp, features=x, sample=300, seed=3)
    assert {**vars(found), "suspects": near.neighborhood.suspects} == vars(near.neighborhood)
    assert (found.rows, found.labelled) == (300, 480)


def test_features_tensors_and_graphs_give_the_same_T():
    x, comp = blobs()
    of_features = estimate_transition(comp, x)
    assert estimate_transition(comp, torch.from_numpy(x)) == of_features
    assert estimate_transition(comp, graph=neighbors.build(torch.from_numpy(x), 64)) == of_features


def test_features_far_from_zero_tell_the_same_T():
    x, comp = blobs()
    x = np.round(x.astype(np.float64) * 64) / 64  # which an offset moves without rounding
    assert estimate_transition(comp, x + 1e8) == estimate_transition(comp, x)


def test_T_is_a_transition_matrix_near_the_labels_own():
    x, comp = blobs(4000)
    T = transition.validate(estimate_transition(comp, x).T, 4)
    assert T.dtype == torch.float64
    # 1,000 labels a class have a standard error of at most 0.016 an entry
    assert float((T - transition.biased(4, "weak")).abs().max()) < 0.07


@pytest.mark.parametrize(
    ("x", "why"),
    [
        (np.random.default_rng(0).normal(size=(600, 4)), r"an item's neighbours say nothing about its labels .* space"),
        (None, "neighbours are needed, so pass features, or a graph"),
    ],
)
def test_what_cannot_be_told_is_refused_with_a_way_out(x, why):
    _, comp = blobs()
    sentence = (
        rf"^how labels come about cannot be estimated here: {why}\. Assume uniform labels, or give other features"
    )
    with pytest.raises(InputError, match=sentence):
        _ = estimate_transition(comp, x).T


def test_too_few_labels_are_refused():
    x, comp = blobs(39)
    with pytest.raises(InputError, match=r"39 labelled items are too few .*: 40 are needed\. Assume uniform"):
        estimate_transition(comp, x)


def test_shared_labels_are_refused():
    x, comp = blobs()
    with pytest.raises(InputError, match="row 0 of comp is soft"):
        estimate_transition(torch.softmax(comp, 1), x)


@pytest.mark.parametrize(
    ("votes", "sentence"),
    [
        (Votes(np.array([0, 600]), np.array([0, 1])), "whole numbers 0 to 599 as `item`"),
        (Votes(np.array([0, 1]), np.array([0, 4])), "whole numbers 0 to 3 as `label`"),
        (Votes([0, 1], [0, 1]), "an array .* as `item`"),
        (Votes(np.array([0, 1]), np.array([0, 1]), shown=np.ones((2, 3), bool)), r"`shown` of shape \(2, 4\)"),
    ],
)
def test_votes_that_fit_no_row_are_refused(votes, sentence):
    x, comp = blobs()
    with pytest.raises(InputError, match=sentence):
        estimate_transition(comp, x, votes=votes)
