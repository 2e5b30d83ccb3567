"""What can be counted: coverage, marginals, annotators, options, duplicates, against hand counts and known values."""

import math
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay import labels, transition
from naysay.audit import audit
from naysay.audit.annotators import tails
from naysay.errors import InputError
from naysay.estimation import label_counts
from naysay.statistics import by_gain, fit, share


def drawn(n, T, seed=0, shares=None, n_labels=1):
    rng = np.random.default_rng(seed)
    y = rng.choice(len(T), n, p=shares)
    return labels.from_indices(transition.sample(y, T, n_labels, seed), len(T), contradictions="keep"), y


def advice_of(found, level=None):
    return " ".join(a.text for a in found.advice if level in (None, a.level))


def test_coverage_counts_by_hand():
    comp = labels.from_indices([[], [0], [0], [0, 1], [1, 2, 3], [0, 1, 2, 3], [2, 2, 2]], 4, contradictions="keep")
    coverage = audit(comp, items=list("abcdefg")).coverage
    # "not 2" three times over cannot be told from once in comp, whose rows sum to 1
    assert coverage.by_labels == (1, 3, 1, 1, 1)
    assert (coverage.items, coverage.labels, coverage.unlabelled.count) == (7, 12, 1)
    assert coverage.mean == 2.0
    assert (coverage.most, coverage.most_items) == (4, ("f",))
    assert (coverage.solved, coverage.contradicting, coverage.contradicting_items) == (1, 1, ("f",))


@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=20))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_counts_come_back_from_weights_in_lowest_terms(rows):
    counts = np.array(rows)
    common = np.maximum(np.gcd.reduce(counts, axis=1, keepdims=True), 1)
    comp = torch.from_numpy(counts / np.maximum(counts.sum(1, keepdims=True), 1)).float()
    assert np.array_equal(label_counts(comp), counts // common)


def test_soft_labels_are_refused():
    soft = torch.rand(5, 4, generator=torch.Generator().manual_seed(0)) + 0.1
    with pytest.raises(InputError, match=r"row 0 of comp is soft .* Audit the labels before augmentation"):
        audit(soft / soft.sum(1, keepdim=True))


def test_wilson_interval_matches_published_values():
    # Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29
    for count, of, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        found = share(count, of)
        assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_chi_square_by_hand():
    found = fit(np.array([30.0, 50.0, 20.0, 40.0]), np.full(4, 35.0), 3)
    assert found.chi2 == pytest.approx((25 + 225 + 225 + 25) / 35)
    # the tail of chi-square with 3 degrees of freedom has a closed form
    tail = math.erfc(math.sqrt(found.chi2 / 2)) + math.sqrt(2 * found.chi2 / math.pi) * math.exp(-found.chi2 / 2)
    assert found.p_value == pytest.approx(tail)
    assert found.effect == pytest.approx(math.sqrt((found.chi2 - 3) / 140))


def test_a_gain_in_likelihood_is_a_chi_square_of_the_same_size():
    observed, expected = np.array([52.0, 48.0, 55.0, 45.0]) * 100, np.full(4, 5000.0)
    nats = float((observed * np.log(observed / expected)).sum())  # of the likeliest distribution over the even one
    by_counts, by_likelihood = fit(observed, expected, 3), by_gain(nats, 20_000, 3)
    for name in ("chi2", "effect", "effect_low", "effect_high"):
        assert getattr(by_likelihood, name) == pytest.approx(getattr(by_counts, name), rel=0.01)
    assert by_gain(-5.0, 100, 3).effect == 0


@pytest.mark.parametrize("p", [[0.1] * 10, [0.13] * 5 + [0.07] * 5])
def test_the_interval_of_an_effect_holds_it_95_times_in_100(p):
    rng, w, hits = np.random.default_rng(0), np.sqrt(np.mean((np.array(p) * 10 - 1) ** 2)), 0
    for _ in range(400):
        found = fit(rng.multinomial(500, p).astype(float), np.full(10, 50.0), 9)
        hits += found.effect_low <= w <= found.effect_high
    # 400 trials have a standard error of 1.1 points, and the interval itself is an approximation
    assert 0.92 <= hits / 400 <= 0.99


def test_even_labels_of_equal_classes_are_not_called_uneven():
    alarms = 0
    for seed in range(40):
        found = audit(drawn(2000, transition.uniform(10), seed)[0])
        alarms += found.marginals.uniform.p_value < 0.01
        assert not any(row.above_ceiling for row in found.marginals.classes)
        assert (
            "biased" not in found.marginals.meaning
            or "Biased naming would do that, and so would" in found.marginals.meaning
        )
    # 0.4 expected at the level of 1 %; more than 3 has odds of 1 in 1500
    assert alarms <= 3


def test_even_labels_of_unequal_classes_are_called_uneven_but_not_biased():
    shares = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    found = audit(drawn(20_000, transition.uniform(5), shares=shares)[0]).marginals
    assert found.uniform.p_value < 1e-6
    assert not any(row.above_ceiling for row in found.classes)
    assert "so would even naming of unequal classes" in found.meaning
    # a marginal of 20,000 labels has a standard error of at most 0.0031, and the implied share (K - 1) times that
    assert np.abs(np.array([row.implied_share for row in found.classes]) - shares).max() < 4 * 4 * 0.0031


def test_a_class_above_the_ceiling_proves_bias():
    T = transition.uniform(5).clone()
    T[:4, 4] *= 3
    found = audit(drawn(5000, T / T.sum(1, keepdim=True))[0])
    assert [row.above_ceiling for row in found.marginals.classes] == [False] * 4 + [True]
    assert "so the naming is biased" in found.marginals.meaning
    assert "biased towards “4”" in advice_of(found, "act")


def test_a_million_items_take_seconds():
    comp = labels.from_indices(np.random.default_rng(0).integers(0, 10, (1_000_000, 1)), 10)
    start = time.perf_counter()
    found = audit(comp)
    # about 1 s on an idle core; the machine that runs the tests may be busy
    assert time.perf_counter() - start < 10
    assert found.coverage.labels == 1_000_000


TABLE = {
    "item": ["i1", "i1", "i1", "i2", "i2", "i3", "i3", "i3"],
    "annotator": ["ann", "bob", "bob", "ann", "ann", "ann", "bob", None],
    "label": ["a", "a", "a", "b", "c", "", "d", "d"],
}


def test_repeats_are_counted_and_taken_out():
    found = audit(table=TABLE)
    assert found.duplicates.repeated_labels == 1
    assert found.coverage.labels == 6
    assert found.classes == ("a", "b", "c", "d")
    assert "1 row with a label that the same annotator gave the same item before" in advice_of(found)


def test_annotators_who_name_one_class_agree_and_others_do_not_contradict():
    found = audit(table=TABLE).annotators
    ann, bob = found.rows
    assert (ann.name, ann.labels, ann.items, bob.labels, bob.items) == ("ann", 3, 2, 2, 2)
    # on i1 they agree; on i2 ann is alone, and on i3 the other label has no annotator
    assert (found.agreement.count, found.agreement.of) == (1, 1)
    assert (found.unnamed, found.chance) == (1, pytest.approx(1 / 3))


def test_agreement_of_independent_annotators_is_chance():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 6, 3000)
    named = transition.sample(y, transition.uniform(6), 3, seed=1, replace=True).numpy()
    table = {
        "item": np.repeat(np.arange(3000), 3),
        "label": named.reshape(-1),
        "annotator": np.tile(["a", "b", "c"], 3000),
    }
    found = audit(table=table, classes=list(range(6))).annotators
    assert found.agreement.of == 9000
    # three pairs of one item are not independent, so the interval is widened by sqrt(3)
    assert abs(found.agreement.value - found.chance) < np.sqrt(3) * (found.agreement.high - found.agreement.value)
    assert not any(row.one_sided for row in found.rows)


def test_an_annotator_who_always_names_one_class_is_found_and_nobody_else():
    rng = np.random.default_rng(0)
    who = rng.integers(0, 30, 3000)
    label = np.where(who == 7, 2, rng.integers(0, 10, 3000))
    found = audit(table={"item": np.arange(3000), "label": label, "annotator": [f"w{a}" for a in who]})
    assert [row.name for row in found.annotators.rows if row.one_sided] == ["w7"]
    assert found.annotators.rows[0].favourite == "2"
    assert "Annotator “w7” names “2” in 100 %" in advice_of(found, "act")


def test_options_tell_what_was_named_of_what_was_shown():
    rng = np.random.default_rng(0)
    shown = np.array([rng.permutation(6)[:4] for _ in range(4000)])
    place = rng.choice(4, 4000, p=[0.4, 0.2, 0.2, 0.2])  # the first option is named too often
    table = {
        "item": np.arange(4000),
        "label": [f"c{k}" for k in shown[np.arange(4000), place]],
        "options": ["|".join(f"c{k}" for k in row) for row in shown],
    }
    found = audit(table=table)
    assert found.shown.rows == 4000
    assert found.shown.not_shown == 0
    assert found.shown.positions == tuple(np.bincount(place).tolist())
    assert found.shown.evenly.p_value > 0.001
    assert "option 1 of 4 is named most" in advice_of(found)
    assert found.as_dict() == audit(table={**table, "options": [[f"c{k}" for k in row] for row in shown]}).as_dict()


def test_a_label_that_was_not_shown_is_counted():
    table = {"item": [1, 2, 3], "label": ["a", "b", "c"], "options": ["a|b", "a|c", None]}
    found = audit(table=table)
    assert (found.shown.rows, found.shown.not_shown) == (2, 1)
    assert "1 label of a class that was not among the options shown" in advice_of(found, "act")


def test_copies_with_labels_that_name_every_class_conflict_and_other_copies_do_not():
    features = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0], [-0.0, 1.0], [3.0, 3.0]], dtype=np.float32)
    comp = labels.from_indices([[0, 1], [2], [0], [1], [2]], 3)
    found = audit(comp, features=features, items=list("abcde"))
    assert (found.duplicates.groups, found.duplicates.copies, found.duplicates.conflicting) == (2, 2, 1)
    assert found.duplicates.examples == (("a", "b"),)
    assert "1 group of items with the same features whose labels together name every class" in advice_of(found, "act")


def test_a_class_nobody_names_and_two_spellings_of_one_class_are_told():
    found = audit(labels.from_indices([0, 1, 2] * 10, 4), classes=["Cat", "cat ", "dog", "bird"])
    assert "Nobody ever names “bird”" in advice_of(found)
    assert "“Cat”, “cat ” differ only in spelling" in advice_of(found, "act")


def test_unlabelled_items_and_few_labels_are_told():
    found = audit(labels.from_indices([0, 1, 2, -1] * 10, 3))
    assert "25 % of the items have no label" in advice_of(found, "look")
    # 30 labelled items, K = 3, at an accuracy of 0.8: sqrt(0.2 * 1.8 / 30) is 11 points
    few = "few labels for choosing settings: even if every one of them judges once, the estimated accuracy has a "
    assert f"{few}standard error of about 11 points" in advice_of(found, "look")
    assert "few labels" not in advice_of(audit(labels.from_indices([0, 1, 2] * 60, 3)), "look")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "there is nothing to audit: pass comp"),
        ({"comp": np.zeros((0, 3), np.float32)}, "at least one label to audit; got 0 items"),
        ({"comp": np.zeros((4, 3), np.float32)}, "at least one label to audit; got 4 items"),
        ({"comp": np.array([0, 1, 2])}, r"comp must be an \(n, K\) matrix"),
        ({"comp": np.eye(2, dtype=np.float32)}, "ordinary labels in disguise"),
        ({"comp": np.eye(3), "classes": ["a", "b"]}, "one column per class; got 3 columns for 2 classes"),
        ({"comp": np.eye(3), "items": ["a"]}, "got 1 items for 3 rows"),
        ({"comp": np.eye(3), "items": ["a", "b", "b"]}, "items must be distinct; got 'b' more than once"),
        ({"comp": np.eye(3), "classes": ["a", "a", "b"]}, "classes must be distinct; got 'a' more than once"),
        ({"comp": np.eye(3), "sample": 0}, "sample must be at least 1 row"),
        ({"comp": np.eye(3), "features": np.zeros((2, 5))}, r"one row per row of comp, \(3, d\); got \(2, 5\)"),
        ({"comp": np.eye(3), "features": [1, 2, 3]}, "must be an array with one row per row of comp"),
        ({"comp": np.eye(3), "features": np.full((3, 2), "x")}, "features must be numbers; got <U1"),
        ({"comp": np.eye(3), "features": np.array([[0.0], [np.nan], [1.0]])}, "NaN or inf in row 1"),
        ({"table": {"item": [1], "labels": ["a"]}}, "no column 'label'; its columns are item, labels"),
        ({"table": {"item": [], "label": []}}, "at least 3 classes; got 0"),
        ({"table": {"item": [1, 2], "label": ["a", "b"]}}, "ordinary labels in disguise"),
        (
            {"table": {"item": [1, None], "label": ["a", "b"]}, "classes": list("abc")},
            "row 1 of the table has an empty cell in its item column",
        ),
        (
            {"table": {"item": [1, 2], "label": ["a", "x"]}, "classes": list("abc")},
            "names class 'x', which is not among the classes",
        ),
        (
            {"table": {"item": [1, 2], "label": ["a", "b"]}, "classes": list("abc"), "items": [1]},
            "labels item 2, which is not among the items",
        ),
        (
            {"table": {"item": [1], "label": ["a"], "options": ["a|z"]}, "classes": list("abc")},
            "options shown name class 'z'",
        ),
        ({"table": 5}, "table must have columns by name"),
        (
            {"comp": np.eye(3), "table": {"item": [1, 2, 3], "label": ["a", "c", "b"]}},
            "row 1 of comp, item 2, names other classes than the table does",
        ),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        audit(arguments.pop("comp", None), **arguments)


CELL = st.one_of(
    st.none(),
    st.just(""),
    st.just(" "),
    st.just(float("nan")),
    st.integers(0, 4),
    st.sampled_from(["a", "b", "c", "<d>", "a|b"]),
)


@given(st.lists(st.tuples(CELL, CELL, CELL, CELL | st.lists(st.sampled_from(["a", "b", 1]), max_size=3)), max_size=12))
@settings(derandomize=True, max_examples=150, deadline=None)
def test_any_table_is_audited_or_refused(rows):
    table = {name: [row[j] for row in rows] for j, name in enumerate(("item", "label", "annotator", "options"))}
    try:
        found = audit(table=table)
    except InputError:
        return
    assert sum(row.named.count for row in found.marginals.classes) == found.coverage.labels > 0
    assert found.as_text()
    assert found.as_html()


def test_items_with_all_classes_but_one_named_are_solved_and_those_with_every_one_contradict():
    rows = [[0, 1, 2], [0, 1], [0, 1, 2, 3], [3], [1, 2, 3]]
    found = audit(labels.from_indices(rows, 4, contradictions="keep")).coverage
    assert (found.solved, found.contradicting) == (2, 1)


def test_copies_conflict_if_they_name_every_class_together_but_not_if_one_does_so_alone():
    x = np.array([[0.0], [0.0], [1.0], [1.0]], dtype=np.float32)
    rows = [[0, 1], [2], [0, 1, 2], [0]]
    found = audit(labels.from_indices(rows, 3, contradictions="keep"), features=x).duplicates
    assert (found.groups, found.conflicting) == (2, 1)


def test_an_annotators_wrong_labels_are_held_against_the_rate_of_the_others():
    alone, other = tails(np.array([30, 0]), np.array([60, 60]))
    assert alone < 1e-9  # half of them wrong, where nobody else is
    assert other == 1.0
