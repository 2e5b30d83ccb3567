"""Decoding the neighbours' labels: the local distribution, its least likely label, and k chosen without truth."""

import numpy as np
import pytest
import torch

from naysay import datasets, labels, metrics, selection, shares, transition
from naysay.decoding import NeighborDecoder, choose_k, local_distribution, pick
from naysay.errors import InputError

K = 4


def test_the_local_distribution_is_the_mean_of_the_labelled_neighbours():
    comp = labels.from_indices([[0, 1], [2, 2], [-1, -1], [3, 3]], K)
    near = torch.tensor([[0, 1], [1, 2], [2, 2], [3, 0]], dtype=torch.int32)
    expected = torch.tensor([[0.25, 0.25, 0.5, 0], [0, 0, 1, 0], [0.25] * 4, [0.25, 0.25, 0, 0.5]])
    assert torch.allclose(local_distribution(comp, near), expected)


def test_the_least_likely_label_is_predicted_and_with_T_the_nearest_row():
    def decode(comp, T=None):
        places = torch.arange(float(len(comp)))[:, None]
        return NeighborDecoder(places, comp, 1, T).predict(places)

    distribution = torch.tensor([[0.3, 0.3, 0.3, 0.1], [0.1, 0.3, 0.3, 0.3]])
    assert decode(distribution).tolist() == [3, 0]
    assert decode(distribution, transition.uniform(K)).tolist() == [3, 0]
    # class 1 is hardly ever named, whatever the truth: only T can tell that it is not the answer
    T = torch.tensor([[0.0, 0.1, 0.45, 0.45], [0.33, 0.01, 0.33, 0.33], [0.45, 0.1, 0.0, 0.45], [0.45, 0.1, 0.45, 0.0]])
    assert decode(torch.tensor([[0.4, 0.05, 0.1, 0.45]]), T).tolist() == [2]
    assert decode(torch.tensor([[0.4, 0.05, 0.1, 0.45]])).tolist() == [1]


def test_k_is_chosen_by_complementary_labels_and_decodes_digits():
    digits = datasets.load("digits")
    x, x_test = (part.reshape(len(part), -1).astype(np.float32) for part in (digits.x_train, digits.x_test))
    comp = labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=0), 10)
    decoder, estimates = choose_k(x, comp)
    assert sorted(estimates) == [4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert decoder.k == max(estimates, key=lambda k: estimates[k].value)
    assert 16 <= decoder.k <= 256
    assert metrics.oracle_accuracy(decoder.predict(x_test), digits.y_test) > 0.7
    assert selection.compare(estimates[decoder.k], estimates[1024]).z > 2  # 1024 of 1442 digits are nobody's neighbours
    distribution = decoder.distribution(x_test)
    through_T = NeighborDecoder(decoder.features, comp, decoder.k, transition.uniform(10)).predict(x_test)
    # for a uniform T the nearest row is that of a least likely label, whichever of equals
    assert torch.allclose(distribution.gather(1, through_T[:, None])[:, 0], distribution.amin(1), atol=1e-6)


def test_the_usual_number_of_neighbours_stays_unless_another_is_clearly_better():
    digits = datasets.load("digits")
    x = digits.x_train.reshape(len(digits.x_train), -1).astype(np.float32)
    comp = labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=0), 10)
    luckiest, estimates = choose_k(x, comp)
    other = next(k for k in (64, 128, 32) if k != luckiest.k)
    assert selection.compare(estimates[luckiest.k], estimates[other]).z < 2
    assert choose_k(x, comp, usual=other)[0].k == other
    assert choose_k(x, comp, usual=other + 3)[0].k == other  # the nearest of the candidates
    assert choose_k(x, comp, usual=1024)[0].k != 1024  # too many by far, which labels tell


def test_candidates_beyond_the_rows_are_left_out_and_none_left_is_an_error():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(40, 3, generator=generator)
    comp = labels.from_indices(torch.randint(0, K, (40,), generator=generator), K)
    assert sorted(choose_k(features, comp)[1]) == [4, 8, 16, 32]
    with pytest.raises(InputError, match="no k of the candidates is within the 36 training rows"):
        choose_k(features, comp, ks=[64])


def test_equally_little_named_classes_are_told_apart_by_more_neighbours_not_by_their_number():
    digits = datasets.load("digits")
    x, x_test = (part.reshape(len(part), -1).astype(np.float32) for part in (digits.x_train, digits.x_test))
    comp = labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=0), 10)
    few = NeighborDecoder(torch.from_numpy(x), comp, 4)
    predicted = few.predict(x_test)
    # four labels leave at least six classes unnamed: class 0 used to be the answer for 230 of these 355
    assert int((predicted == 0).sum()) < 60
    by_number = metrics.oracle_accuracy(few.distribution(x_test).argmin(1), digits.y_test)
    assert metrics.oracle_accuracy(predicted, digits.y_test) > by_number + 0.2
    assert torch.equal(predicted[3:5], few.predict(x_test[3:5]))  # no matter who else is asked
    # they stay as likely as each other
    tied = few.distribution(x_test) == few.distribution(x_test).amin(1, keepdim=True)
    assert torch.allclose(few.posterior(x_test)[tied].amin(), few.posterior(x_test)[tied].amax(), atol=0.2)


@pytest.mark.parametrize(
    ("T", "known"),
    [(None, "even"), ("popularity", None), (transition.biased(10, "weak"), None), ("popularity", "even")],
    ids=["shares", "popularity", "T", "popularity and shares"],
)
def test_what_a_label_more_would_turn_is_left_to_more_neighbours(T, known):
    """A T or shares put classes that four labels do not name in an order by next to nothing."""
    digits = datasets.load("digits")
    x, x_test = (part.reshape(len(part), -1).astype(np.float32) for part in (digits.x_train, digits.x_test))
    uniform = not isinstance(T, torch.Tensor)
    drawn = transition.sample(digits.y_train, transition.uniform(10) if uniform else T, seed=1)
    comp = labels.from_indices(drawn, 10)
    by = transition.popularity(comp) if T == "popularity" else T if not uniform else None
    few = NeighborDecoder(torch.from_numpy(x), comp, 4, by, known)
    predicted = few.predict(x_test)
    assert int(torch.bincount(predicted, minlength=10).max()) < 90  # it was up to 230 of these 355
    assert metrics.oracle_accuracy(predicted, digits.y_test) > 0.48  # it was 0.15 to 0.34


@pytest.mark.parametrize("known", [None, "even"])
def test_a_number_of_neighbours_is_judged_by_what_its_decoder_predicts_ties_and_all(known):
    digits = datasets.load("digits")
    x = torch.from_numpy(digits.x_train.reshape(len(digits.x_train), -1).astype(np.float32))
    comp = labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=0), 10)
    rows, held = selection.hold_out(len(comp), 0.1, 5)
    # 64 neighbours for the ties of 16 are at hand, 256 for those of 64 must be looked up
    _, estimates = choose_k(x, comp, class_shares=known, ks=(4, 16, 64), seed=5)
    for k in (4, 16, 64):
        decoder = NeighborDecoder(x[rows], comp[rows], k, None, known, seed=5)
        if known:  # its offsets are those of the held-out rows
            named = decoder.distribution(x[held])
            decoder.__dict__["evidence"] = shares.find(named, comp[rows], known)
        judge = transition.popularity(comp) if known else None
        expected = selection.ure_accuracy(decoder.predict(x[held]), comp[held], judge)
        assert torch.equal(estimates[k].rows, expected.rows), k


def test_what_decides_a_tie_never_brings_in_another_class():
    low = torch.tensor([[-torch.inf, -torch.inf, 5.0]])
    assert pick(torch.tensor([[0.0, 0.0, -1.0]]), lambda rows: low, lambda rows: -low.abs()).item() in (0, 1)


def test_the_last_ties_fall_to_the_more_common_class_and_then_to_the_seed():
    features, comp = torch.arange(8.0)[:, None], labels.from_indices([0] * 8, K)
    # of four classes one is named and three are not, however many neighbours are asked
    by_shares = NeighborDecoder(features, comp, 4, class_shares=[0.1, 0.2, 0.5, 0.2]).predict(features)
    assert by_shares.tolist() == [2] * 8
    seeds = {tuple(NeighborDecoder(features, comp, 4, seed=seed).predict(features).tolist()) for seed in range(4)}
    assert len(seeds) == 4
    assert {number for drawn in seeds for number in drawn} == {1, 2, 3}


def test_class_shares_are_those_of_the_rows_themselves_and_serve_new_ones():
    rng = np.random.default_rng(0)
    y = np.arange(800) % K
    x = torch.from_numpy((3 * np.eye(K)[y] + rng.normal(0, 0.6, (800, K))).astype(np.float32))
    popular = torch.tensor([[0, 0.97, 0.02, 0.01], [0.97, 0, 0.02, 0.01], [0.7, 0.29, 0, 0.01], [0.7, 0.28, 0.02, 0]])
    comp = labels.from_indices(transition.sample(y, popular.double()), K)
    right = {
        known: metrics.oracle_accuracy(NeighborDecoder(x[:600], comp[:600], 32, None, known).predict(x[600:]), y[600:])
        for known in (None, "even")
    }
    assert right["even"] > right[None] + 0.05
    assert NeighborDecoder(x, comp, 32, None, "even").posterior(x[:3]).sum(1).tolist() == pytest.approx([1, 1, 1])
    assert choose_k(x, comp, class_shares="even")[0].class_shares == "even"
