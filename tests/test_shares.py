"""Class shares: popular labels are put right, exactly to the shares that are stated, and only where some are stated."""

import numpy as np
import pytest
import torch

from naysay import augment, labels, shares, transition
from naysay.augmentation import Sharing, augment_report, share
from naysay.augmentation.diagnostics import are_turned
from naysay.errors import InputError
from naysay.metrics import oracle_argmin_accuracy

K = 5


def shared(n=400, seed=0, popular=(8, 1, 1, 4, 2)):
    """Soft labels (n, K) as sharing leaves them, in which some classes are named more than others, and what was given.

    Row i belongs to class i mod K, whose neighbours name the others by their popularity.
    """
    rng = np.random.default_rng(seed)
    weight = np.array(popular, float) / sum(popular)
    T = np.tile(weight, (K, 1)) * (1 - 0.9 * np.eye(K))
    T /= T.sum(1, keepdims=True)
    y = np.arange(n) % K
    Z = np.stack([rng.multinomial(30, T[c]) / 30 for c in y])
    return torch.tensor(Z, dtype=torch.float32), labels.from_indices([rng.choice(K, p=T[c]) for c in y], K), y


def by_alternating_scaling(L, wanted, rounds=20_000):
    """The slow way to the same posteriors, in double precision: rows and columns are scaled in turns."""
    P = torch.exp(L.double() - L.double().amax(1, keepdim=True))
    for _ in range(rounds):
        P = P / P.sum(1, keepdim=True)
        P = P * (wanted / P.mean(0))
    return P / P.sum(1, keepdim=True)


def blobs(n=600, seed=0, popular=(20.0, 0.2, 0.2, 6, 1)):
    """Rows of K classes, apart, and a label each by popularity."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % K)
    x = (3 * np.eye(K)[y] + rng.normal(0, 0.6, (n, K))).astype(np.float32)
    T = np.tile(np.array(popular), (K, 1)) * (1 - np.eye(K))
    return x, y, labels.from_indices(transition.sample(y, T / T.sum(1, keepdims=True), 1, seed), K)


@pytest.mark.parametrize("wanted", ["even", [0.5, 0.2, 0.1, 0.1, 0.1], [0.4, 0.3, 0.3, 0.0, 0.0]])
def test_posteriors_have_the_stated_shares_and_are_those_of_a_slow_solver(wanted):
    Z, given, _ = shared()
    evidence = shares.find(Z, given, wanted)
    P, known = evidence.posterior(Z), shares.read(wanted, K)
    assert float((P.double().mean(0) - known).abs().max()) < 1e-6
    there = known > 0
    slow = by_alternating_scaling(shares.Evidence(evidence.named).logits(Z)[:, there], known[there])
    assert torch.allclose(P[:, there].double(), slow, atol=2e-5)
    assert float(P[:, ~there].sum()) == 0.0


def test_one_present_class_is_everybodys():
    Z, given, _ = shared()
    assert shares.find(Z, given, [0, 0, 1, 0, 0]).posterior(Z)[:, 2].eq(1).all()


def test_corrected_labels_are_comp_whose_least_named_class_is_the_likeliest():
    Z, given, _ = shared()
    evidence = shares.find(Z, given, "even")
    corrected, P = evidence.correct(Z), evidence.posterior(Z)
    assert torch.allclose(labels.validate(corrected).sum(1), torch.ones(len(Z)))
    assert torch.equal(corrected.argmin(1), P.argmax(1))
    # they are what uniform labels are on average under that posterior
    assert torch.allclose(corrected.double(), P.double() @ transition.uniform(K), atol=1e-6)
    # and name each class as often as uniform labels of even classes do
    assert torch.allclose(corrected.mean(0), torch.full((K,), 1 / K), atol=1e-6)


def test_popular_labels_are_put_right_and_uniform_ones_stay_right():
    x, y, comp = blobs()
    assert oracle_argmin_accuracy(augment(x, comp, n_neighbors=16, gamma="auto"), y) < 0.85
    assert oracle_argmin_accuracy(augment(x, comp, n_neighbors=16, gamma="auto", class_shares="even"), y) > 0.98
    _, _, uniform = blobs(popular=(1.0, 1, 1, 1, 1))
    plain, even = (augment(x, uniform, n_neighbors=16, gamma="auto", class_shares=known) for known in (None, "even"))
    assert oracle_argmin_accuracy(even, y) >= oracle_argmin_accuracy(plain, y) - 0.003


def test_rows_without_labels_have_none_after_the_correction_and_no_part_in_the_shares():
    Z, given, _ = shared()
    Z[::7] = 0
    evidence = shares.find(Z, given, "even")
    corrected, reached = evidence.correct(Z), Z.sum(1) > 0
    assert float(corrected[~reached].abs().sum()) == 0.0
    assert float((evidence.posterior(Z[reached]).double().mean(0) - 1 / K).abs().max()) < 1e-6


def test_a_class_that_nobody_names_gets_its_share():
    Z, given, y = shared(popular=(8, 1, 0, 4, 2))
    assert float(given[:, 2].sum()) == 0.0
    P = shares.find(Z, given, "even").posterior(Z)
    assert float((P.double().mean(0) - 1 / K).abs().max()) < 1e-6
    # who is named as everybody else is, in all other classes, is most likely of the class that is not named
    assert float((P.argmax(1) == torch.from_numpy(y))[y == 2].float().mean()) > 0.6


def test_few_rows_and_hard_evidence_are_solved_too():
    Z = torch.eye(K)[[0, 0, 1]]
    P = shares.find(Z, Z, "even").posterior(Z)
    assert float((P.double().mean(0) - 1 / K).abs().max()) < 1e-6


def test_a_known_T_corrects_without_shares_and_with_them():
    x, y, _ = blobs()
    # each class is only ever said not to be one of the next two: the least named classes are three
    T = torch.eye(K, dtype=torch.float64).roll(1, 1) / 2 + torch.eye(K, dtype=torch.float64).roll(2, 1) / 2
    comp = labels.from_indices(transition.sample(y, T, 1), K)
    settings = Sharing(n_neighbors=16, gamma="auto")
    right = {
        "none": oracle_argmin_accuracy(share(x, comp, settings)[0], y),
        "T": oracle_argmin_accuracy(augment(x, comp, n_neighbors=16, gamma="auto", transition=T), y),
        "both": oracle_argmin_accuracy(
            augment(x, comp, n_neighbors=16, gamma="auto", transition=T, class_shares="even"), y
        ),
    }
    assert right["T"] > 0.95 > 0.6 > right["none"]
    assert right["both"] > 0.95


def test_nothing_is_corrected_where_nothing_is_known():
    x, _, comp = blobs()
    _, report = augment_report(x, comp, n_neighbors=8, gamma="auto")
    assert report.turned is None
    assert "corrected" not in str(report)
    _, told = augment_report(x, comp, n_neighbors=8, gamma="auto", class_shares="even")
    assert 0 < told.turned < 1
    assert f"rows whose least named class was corrected: {told.turned:.1%}" in str(told)
    assert "turned" in told.as_dict()


def test_a_row_is_turned_only_where_another_class_than_the_least_named_ones_is_preferred():
    Z = torch.tensor([[0.0, 0.0, 1.0], [0.1, 0.2, 0.7], [0.0, 0.4, 0.6], [0.0, 0.0, 0.0]])
    corrected = torch.tensor([[0.4, 0.1, 0.5], [0.4, 0.1, 0.5], [0.1, 0.4, 0.5], [0.0, 0.0, 0.0]])
    assert are_turned(Z, corrected).tolist() == [False, True, False, False]


def test_labels_as_given_stay_as_they_are():
    x, _, comp = blobs()
    for nothing in ({"scheme": "none"}, {"rounds": 0}):
        Z, report = augment_report(x, comp, class_shares="even", **nothing)
        assert np.array_equal(Z, comp.numpy())
        assert report.turned is None


def test_the_same_in_blocks(monkeypatch):
    Z, given, _ = shared()
    whole = shares.find(Z, given, "even")
    monkeypatch.setattr(shares, "BLOCK", 37)
    parts = shares.find(Z, given, "even")
    assert torch.allclose(whole.offsets, parts.offsets, atol=1e-5)
    assert torch.allclose(whole.correct(Z), parts.correct(Z), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("balanced", r'class_shares must be None, "even", or a share for each class; got \'balanced\'\.'),
        (0.2, r"class_shares must be 5 numbers, one for each class; got 0\.2\."),
        ([0.5, 0.5], r"class_shares must be 5 numbers, one for each class; got shape \(2,\)\."),
        ([1, 1, 1, 1, 1], r"class_shares must be at least 0 and sum to 1; got .* which sum to 5\. Divide counts by"),
        ([1.5, -0.5, 0, 0, 0], "class_shares must be at least 0 and sum to 1"),
        ([float("nan"), 0, 0, 0, 1], "class_shares must be at least 0 and sum to 1"),
        (["a", "b", "c", "d", "e"], r"class_shares must be numbers; got \['a', 'b', 'c', 'd', 'e'\]\."),
    ],
)
def test_shares_that_cannot_be_meant_are_refused_before_any_work(given, sentence):
    x, _, comp = blobs(60)
    with pytest.raises(InputError, match=sentence):
        augment(x, comp, class_shares=given)


def test_a_record_of_settings_holds_plain_numbers():
    settings = Sharing(class_shares=np.full(K, 1 / K), transition=transition.uniform(K))
    assert settings == Sharing(class_shares=[1 / K] * K, transition=transition.uniform(K).tolist())
    assert settings.as_dict()["class_shares"] == (1 / K,) * K
    assert "class_shares" not in Sharing().as_dict()


def test_popularity_says_how_often_each_class_is_named():
    comp = labels.from_indices([0] * 6 + [1] * 3 + [2] * 1 + [-1] * 5, 4)
    T = transition.popularity(comp)
    assert torch.allclose(T[0], torch.tensor([0, 3, 1, 0.5], dtype=torch.float64) / 4.5)
    assert torch.equal(T.diagonal(), torch.zeros(4, dtype=torch.float64))
    assert torch.allclose(transition.validate(T).sum(1), torch.ones(4, dtype=torch.float64))
