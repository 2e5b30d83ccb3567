"""Choosing by complementary labels alone: unbiased, with honest standard errors, and sharper in pairs."""

import math

import pytest
import torch

from naysay import labels, selection, transition
from naysay.errors import InputError

K = 5


def random_T(seed, n_classes=K):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.rand(n_classes, n_classes, dtype=torch.float64, generator=generator)
    rows = rows + torch.eye(n_classes, dtype=torch.float64)
    return rows / rows.sum(1, keepdim=True)


def predictor(y, accuracy, seed, n_classes=K):
    """Logits that are right for a share of the rows."""
    generator = torch.Generator().manual_seed(seed)
    wrong = (y + torch.randint(1, n_classes, y.shape, generator=generator)) % n_classes
    predicted = torch.where(torch.rand(len(y), generator=generator) < accuracy, y, wrong)
    noise = torch.rand(len(y), n_classes, generator=generator)
    return torch.nn.functional.one_hot(predicted, n_classes).double() * 2 + noise


@pytest.mark.parametrize("seed", range(4))
def test_the_expected_row_of_z_Tinv_is_the_one_hot_class_exactly(seed):
    T = random_T(seed)
    # sum_k T[y, k] * (e_k Tinv) = e_y; the error is that of one solve in float64 at a condition number below 100
    one = torch.eye(K, dtype=torch.float64)
    assert torch.allclose(T @ selection.ordinary(one, T), one, atol=1e-12)


def test_for_uniform_labels_the_estimate_is_one_minus_the_scaled_rate_of_predicting_the_label():
    named = torch.tensor([0, 1, 2, 3, 4, 0])
    predicted = torch.tensor([0, 0, 0, 0, 0, 1])
    estimate = selection.ure_accuracy(predicted, labels.from_indices(named, K))
    assert estimate.value == pytest.approx(1 - (K - 1) * 1 / 6)


@pytest.mark.parametrize(
    "T", [None, random_T(7), transition.noisy(transition.uniform(K), 0.2)], ids=["uniform", "random", "noisy"]
)
def test_estimates_agree_with_the_truth_within_their_standard_errors(T):
    y = torch.arange(20_000) % K
    logits = predictor(y, 0.8, seed=1)
    comp = labels.from_indices(transition.sample(y, transition.uniform(K) if T is None else T, seed=3), K)
    accuracy, log_loss = selection.ure_accuracy(logits, comp, T), selection.ure_log_loss(logits, comp, T)
    # four standard errors: a right estimator misses this once in 16,000 draws, and the draw is fixed
    assert abs(accuracy.value - (logits.argmax(1) == y).double().mean()) < 4 * accuracy.standard_error
    assert abs(log_loss.value - torch.nn.functional.cross_entropy(logits, y)) < 4 * log_loss.standard_error
    assert accuracy.standard_error < 0.05


def test_the_standard_error_is_the_one_the_design_states():
    y = torch.arange(5_000) % 10
    comp = labels.from_indices(transition.sample(y, transition.uniform(10), seed=0), 10)
    estimate = selection.ure_accuracy(predictor(y, 0.9, seed=0, n_classes=10), comp)
    assert estimate.standard_error == pytest.approx(0.014, abs=0.003)


def test_scel_is_lowest_for_the_true_posterior():
    y = torch.arange(6_000) % K
    T = random_T(2)
    comp = labels.from_indices(transition.sample(y, T, seed=5), K)
    sure = torch.nn.functional.one_hot(y, K).double() * 30
    right = selection.scel(sure, comp, T)
    by_hand = -T[y].log().gather(1, comp.argmax(1, keepdim=True)).mean()
    assert right.value == pytest.approx(float(by_hand), abs=1e-9)
    assert right.value < selection.scel(sure * 0, comp, T).value < selection.scel(sure.roll(1, dims=1), comp, T).value


def test_a_paired_comparison_is_sharper_than_two_estimates():
    y = torch.arange(5_000) % 10
    comp = labels.from_indices(transition.sample(y, transition.uniform(10), seed=0), 10)
    good = predictor(y, 0.9, seed=0, n_classes=10)
    worse = torch.where((torch.arange(5_000) % 20 == 0)[:, None], good.roll(1, dims=1), good)
    first, second = selection.ure_accuracy(good, comp), selection.ure_accuracy(worse, comp)
    paired = selection.compare(first, second)
    assert paired.difference == pytest.approx(first.value - second.value)
    assert paired.standard_error < 0.5 * math.hypot(first.standard_error, second.standard_error)
    assert paired.p_value == pytest.approx(math.erfc(abs(paired.z) / math.sqrt(2)))
    same = selection.compare(first, first)
    assert (same.difference, same.z, same.p_value) == (0, 0, 1)


def test_a_model_that_predicts_the_labels_it_must_avoid_scores_worst():
    y = torch.arange(1_000) % K
    comp = labels.from_indices(transition.sample(y, transition.uniform(K), seed=0), K)
    for criterion in selection.CRITERIA.values():
        obeys = criterion.estimate(-4 * comp, comp, None).value
        defies = criterion.estimate(4 * comp, comp, None).value
        assert criterion.better(obeys, defies)
        assert not criterion.better(defies, obeys)


def test_unlabelled_rows_are_left_out():
    comp = labels.from_indices([0, 1, -1, 2], K)
    logits = torch.rand(4, K)
    for criterion in selection.CRITERIA.values():
        whole = criterion.estimate(logits, comp, None)
        part = criterion.estimate(logits[[0, 1, 3]], comp[[0, 1, 3]], None)
        assert (whole.value, whole.standard_error) == (part.value, part.standard_error)


def test_a_confident_impossible_label_costs_much_but_not_infinity():
    logits = torch.tensor([[5_000.0, 0, 0, 0, 0], [0, 0, 0, 0, 5_000.0]])
    assert math.isfinite(selection.scel(logits, labels.from_indices([0, 0], K)).value)


def test_hold_out_is_a_fixed_split_of_all_rows():
    rows, held = selection.hold_out(103, 0.1, seed=4)
    assert len(held) == 10
    assert sorted([*rows.tolist(), *held.tolist()]) == list(range(103))
    assert torch.equal(held, selection.hold_out(103, 0.1, seed=4)[1])
    assert not torch.equal(held, selection.hold_out(103, 0.1, seed=5)[1])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda c: selection.ure_accuracy(torch.zeros(3, K), c),
            r"got shape|must have the shape of comp, \(4, 5\); got \(3, 5\)",
        ),
        (lambda c: selection.ure_accuracy(torch.zeros(4), c), "or 4 class numbers"),
        (lambda c: selection.scel(torch.full((4, K), math.nan), c), "logits must be finite.*lower learning rate"),
        (
            lambda c: selection.ure_accuracy(torch.zeros(4, K), c, torch.full((K, K), 1 / K)),
            "has no usable inverse.*scel needs no inverse",
        ),
        (lambda c: selection.ure_accuracy(torch.zeros(4, K), c * 0), "at least 2 labelled rows.*got 0"),
        (
            lambda c: selection.compare(selection.scel(c, c), selection.ure_accuracy(c, c)),
            "one criterion on the same rows",
        ),
        (lambda c: selection.hold_out(5, 0.1), "at least 2 rows.*got 0 of 5 rows"),
        (lambda c: selection.criterion("ure-acuracy"), "unknown criterion.*did you mean ure-accuracy"),
    ],
)
def test_bad_input_gets_one_sentence_with_a_way_out(call, text):
    with pytest.raises(InputError, match=text):
        call(labels.from_indices([0, 1, 2, 3], K))


def test_a_model_that_no_label_contradicts_is_not_called_certain():
    comp = labels.from_indices([1] * 60, 10)
    estimate = selection.ure_accuracy(torch.zeros(60, dtype=torch.long), comp)
    assert estimate.value == pytest.approx(1.0)
    # one label more that contradicts would have made 9/61 less of it
    assert estimate.standard_error == pytest.approx(9 / 61, rel=0.02)


def estimate(rows, criterion="ure-accuracy"):
    rows = torch.as_tensor(rows, dtype=torch.float64)
    return selection.Estimate(criterion, float(rows.mean()), float(rows.std()) / math.sqrt(len(rows)), rows)


BASE = torch.tensor([1.0, 0, 1, 1, 0, 1, 0, 1], dtype=torch.float64)
UP = torch.tensor([0.1, 0.3] * 4, dtype=torch.float64)  # 0.2 on average, with a standard error of 0.038
HARDLY = torch.tensor([0.3, -0.2] * 4, dtype=torch.float64)  # 0.05, with a standard error of 0.094


def test_the_recommended_candidate_is_kept_unless_another_is_better_by_more_than_a_standard_error():
    plain, hardly, clearly = (estimate(BASE + more) for more in (0, HARDLY, UP))
    kept = selection.choose({"a": [hardly], "b": [plain]}, "b")
    assert (kept.kept, kept.recommended, kept.decided_by) == ("b", "b", None)
    won = selection.choose({"a": [clearly], "b": [plain], "c": [hardly]}, "b")
    assert (won.kept, won.recommended, won.decided_by) == ("a", "b", "ure-accuracy")
    assert won.gains["b"]["ure-accuracy"].difference == pytest.approx(0.2)
    assert set(won.gains) == {"b", "c"}
    best = selection.choose({8: [clearly], 16: [estimate(BASE + 2 * UP)], 32: [plain]}, 32)  # of several, the best
    assert best.kept == 16
    assert selection.choose({"a": [plain]}, "a").gains == {}
    with pytest.raises(InputError, match="must be one of those judged, a, b; got c"):
        selection.choose({"a": [plain], "b": [plain]}, "c")


def test_the_first_criterion_decides_and_another_may_object():
    base, less, right = estimate(BASE, "scel"), estimate(BASE - UP, "scel"), estimate(BASE)
    for more, kept in ((0, "new"), (HARDLY, "new"), (-HARDLY, "new"), (-UP, "old")):
        judged = {"old": [base, right], "new": [less, estimate(BASE + more)]}
        assert selection.choose(judged, "old").kept == kept
    gains = selection.choose({"old": [base, right], "new": [less, right]}, "old").gains["old"]
    assert gains["scel"].difference == pytest.approx(0.2)  # lower is better, and gains are positive
    assert selection.choose({"old": [less, right], "new": [base, estimate(BASE + UP)]}, "old").kept == "old"


def test_estimates_of_folds_pool_to_that_of_all_their_rows():
    generator = torch.Generator().manual_seed(0)
    comp = labels.from_indices(torch.randint(0, K, (40,), generator=generator), K)
    logits = torch.randn(40, K, generator=generator)
    for criterion in selection.CRITERIA.values():
        folds = [criterion.estimate(logits[at], comp[at], None) for at in torch.arange(40).split(15)]
        whole, pooled = criterion.estimate(logits, comp, None), selection.pool(folds)
        assert (pooled.criterion, len(pooled.rows)) == (criterion.name, 40)
        assert pooled.value == pytest.approx(whole.value)
        assert pooled.standard_error == pytest.approx(whole.standard_error)
    never_wrong = [selection.ure_accuracy(comp[at] * -1.0, comp[at]) for at in torch.arange(40).split(15)]
    assert selection.pool(never_wrong).standard_error == selection.ure_accuracy(-comp, comp).standard_error > 0


def test_a_comparison_of_losses_is_a_gain_where_the_first_is_lower():
    low, high = estimate(BASE, "scel"), estimate(BASE + UP, "scel")
    assert selection.gain(low, high).difference == pytest.approx(0.2)
    assert selection.gain(high, low).z < -1


def test_calibrated_scel_does_not_mind_how_sure_a_model_is_but_what_it_knows():
    y = torch.arange(4_000) % K
    comp = labels.from_indices(transition.sample(y, transition.uniform(K), seed=0), K)
    good, poor = predictor(y, 0.9, seed=0), predictor(y, 0.7, seed=0)
    assert selection.scel(5 * good, comp).value > selection.scel(poor, comp).value  # too sure to be read off
    (sure, factor), (calm, larger) = (selection.calibrated_scel([(times * good, comp, None)]) for times in (4, 1))
    assert factor == pytest.approx(larger / 4)
    assert sure.value == pytest.approx(calm.value)
    assert selection.gain(sure, selection.calibrated_scel([(poor, comp, None)])[0]).z > 2
    parts = [(4 * good[at], comp[at], None) for at in torch.arange(4_000).split(1_500)]
    assert torch.allclose(selection.calibrated_scel(parts)[0].rows, sure.rows)
    assert selection.calibrated_scel([(good, comp, random_T(0))])[0].value != calm.value
