"""What neighbours say: planted noise, bias and bad annotators are found on the digits, clean labels not accused.

How far the estimates land with a known T: `python tests/test_audit_nearby.py` prints what `naysay.estimation` says of
the digits.
"""

import functools

import numpy as np
import pytest
import torch

from naysay import labels, neighbors, transition
from naysay.audit import audit
from naysay.audit.annotators import tails
from naysay.estimation import estimate_transition
from naysay.estimation.neighborhood import _lift, likely_classes, others_say


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    # threads that wait for each other over products this small take ten times as long on a busy machine
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@functools.cache
def digits():
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x = bunch.data.astype(np.float32)
    return x, bunch.target, neighbors.build(torch.from_numpy(x), 64)


def settings():
    uniform = transition.uniform(10)
    return {
        "uniform": uniform,
        "10 % random": transition.noisy(uniform, 0.1),
        "30 % random": transition.noisy(uniform, 0.3),
        "60 % random": transition.noisy(uniform, 0.6),
        "weak bias": transition.biased(10, "weak"),
        "strong bias": transition.biased(10, "strong"),
        "human": transition.human("clcifar10"),
        "machine": transition.human("aclcifar10"),
    }


@functools.cache
def audited(name, seed=0):
    _, y, graph = digits()
    comp = labels.from_indices(transition.sample(y, settings()[name], 1, seed), 10)
    return audit(comp, graph=graph, seed=seed), transition.oracle_empirical(y, comp).numpy()


def landing(name, seed=0):
    """Estimated and true noise, estimated bias, and the mean total variation between rows of T and its estimate."""
    found, T = audited(name, seed)
    near = found.neighborhood
    return (
        near.noise,
        float(np.diag(T).mean()),
        near.bias,
        float(np.abs(np.array(near.transition) - T).sum(1).mean() / 2),
    )


def advice_of(found, level=None):
    return " ".join(a.text for a in found.advice if level in (None, a.level))


def table_of(y, seed, bad=(), n_people=20):
    """A long table of one even label per item, except that the annotators `bad` name any class at all."""
    rng = np.random.default_rng(seed)
    who = rng.integers(0, n_people, len(y))
    label = transition.sample(y, transition.uniform(10), 1, seed).numpy()[:, 0]
    label = np.where(np.isin(who, bad), rng.integers(0, 10, len(y)), label)
    return {"item": np.arange(len(y)), "label": label, "annotator": [f"w{a}" for a in who]}


def test_an_items_own_label_never_speaks_about_itself():
    _, y, graph = digits()
    comp = labels.from_indices(transition.sample(y, transition.uniform(10), 1), 10)
    rows = np.arange(len(y))
    changed = comp.clone()
    changed[700] = comp[700].roll(1)
    before, after = others_say(graph, comp, rows, seed=0), others_say(graph, changed, rows, seed=0)
    assert np.array_equal(after[700], before[700])
    assert not np.array_equal(after, before)


@pytest.mark.parametrize("seed", range(4))
def test_clean_even_labels_are_not_accused(seed):
    found, _ = audited("uniform", seed)
    near = found.neighborhood
    assert near.told
    assert near.noise.value < 0.01
    assert near.bias.effect_low < 0.05
    assert advice_of(found, "act") == ""
    assert "Nothing stands in the way" in advice_of(found, "fine")


def test_bias_that_popularity_explains_is_not_called_more():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 2000)
    x = (4 * np.eye(4)[y] + rng.normal(size=(2000, 4))).astype(np.float32)
    popular = torch.tensor([[4.0, 2.0, 1.0, 1.0]]).repeat(4, 1).fill_diagonal_(0.0).double()
    for T, more in ((popular / popular.sum(1, keepdim=True), False), (transition.biased(4, "strong"), True)):
        near = estimate_transition(labels.from_indices(transition.sample(y, T, 1, 0), 4), x)
        assert near.bias.effect_low > 0.3
        assert (near.beyond.effect_low > 0.1) == more


def test_clean_labels_of_unequal_classes_are_called_unequal_and_not_biased():
    x, y, _ = digits()
    keep = np.flatnonzero((y == 0) | ((y < 4) & (np.arange(len(y)) % 3 == 0)))
    comp = labels.from_indices(transition.sample(y[keep], transition.uniform(4), 1), 4)
    found = audit(comp, features=x[keep])
    assert found.marginals.uniform.p_value < 0.01
    assert "even naming of unequal classes" in found.marginals.meaning
    assert "biased" not in advice_of(found)
    # class 0 has half of the items, and its neighbours know it
    assert found.neighborhood.class_shares[0] == pytest.approx((y[keep] == 0).mean(), abs=0.1)


def test_planted_noise_is_found_in_its_order():
    estimates = [landing(name)[0].value for name in ("uniform", "10 % random", "30 % random", "60 % random")]
    assert estimates == sorted(estimates)
    assert "name the class that their neighbours point to" in advice_of(audited("30 % random")[0], "act")
    assert "ure and ure-ga amplify noise" in advice_of(audited("30 % random")[0], "act")
    # so much noise in so few labels cannot be told from features that hold no classes, and is not
    assert "or the labels were named at random" in advice_of(audited("60 % random")[0], "act")


def test_of_noisy_and_biased_labels_no_advice_speaks_for_what_another_warns_of():
    _, y, graph = digits()
    T = transition.noisy(transition.biased(10, "strong"), 0.3)
    said = advice_of(audit(labels.from_indices(transition.sample(y, T, 1, 0), 10), graph=graph), "act")
    assert "ure and ure-ga amplify noise" in said
    assert "scl-nl among them, will be far off" in said
    assert "take scl-nl" not in said
    assert "and take scl-nl; ure" in advice_of(audited("30 % random")[0], "act")  # where labels are noisy alone


@pytest.mark.parametrize("name", settings())
def test_noise_lands_at_the_truth_or_a_little_above_it(name):
    noise, true, _, _ = landing(name)
    # never significantly below, the proven side; above by what the likely classes get wrong, at most 0.0243 here
    assert noise.high >= true
    assert noise.value <= true + 0.03


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("uniform", 0, 0.1), ("weak bias", 0.15, 0.35), ("strong bias", 0.5, 0.93), ("machine", 0.4, 0.65)],
)
def test_planted_bias_is_found(name, least, most):
    _, _, bias, _ = landing(name)
    # the true effects are 0, 0.255, 0.928 and 0.551; mistaken likely classes mix rows of T and so can only shrink them
    assert least <= bias.effect <= most


def test_strong_bias_is_acted_on_and_weak_bias_looked_at():
    assert "The labels are biased" in advice_of(audited("strong bias")[0], "act")
    assert "fwd with the estimated T" in advice_of(audited("strong bias")[0], "act")
    assert "somewhat biased" in advice_of(audited("weak bias")[0], "look")


@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("uniform", 0.04),
        ("10 % random", 0.05),
        ("weak bias", 0.1),
        ("human", 0.12),
        ("machine", 0.11),
        ("strong bias", 0.22),
    ],
)
def test_the_estimated_transition_is_about_as_near_as_counting_with_the_truth_would_be(name, off):
    found, counted = audited(name)
    T = transition.validate(found.neighborhood.transition, 10)
    assert bool((T[~torch.eye(10, dtype=torch.bool)] > 0).all())
    true = settings()[name].numpy()
    assert float(np.abs(T.numpy() - true).sum(1).mean() / 2) < off
    # who knew the truth would be off by this much, for chance in the labels alone
    assert 0.06 < float(np.abs(counted - true).sum(1).mean() / 2) < 0.1


def test_a_bad_annotator_is_found_and_nobody_else_is_accused():
    _, y, graph = digits()
    table = table_of(y, seed=0, bad=(3,))
    found = audit(table=table, graph=graph)
    flagged = [row.name for row in found.annotators.rows if row.contradicts_neighbors]
    assert flagged == ["w3"]
    bad = found.annotators.rows[0]
    assert bad.suspected.low > 0.02
    assert "Annotator “w3” contradicts the neighbours" in advice_of(found, "act")
    assert {suspect.item for suspect in found.neighborhood.suspects} & {
        str(i) for i, name in enumerate(table["annotator"]) if name == "w3"
    }


def test_good_annotators_are_not_accused():
    _, y, graph = digits()
    for seed in range(5):
        found = audit(table=table_of(y, seed), graph=graph, seed=seed)
        assert not any(row.contradicts_neighbors or row.one_sided for row in found.annotators.rows)


def test_among_many_equal_annotators_the_family_is_accused_once_in_a_hundred():
    rng, alarms = np.random.default_rng(0), 0
    judged = np.full(200, 50)
    for _ in range(300):
        alarms += bool((tails(rng.binomial(50, 0.02, 200), judged) < 0.01 / 200).any())
    # 3 expected at most; 10 or more has odds of 1 in 900
    assert alarms < 10


def test_features_that_say_nothing_are_told_and_labels_not_blamed():
    _, y, _ = digits()
    comp = labels.from_indices(transition.sample(y, transition.uniform(10), 1), 10)
    found = audit(comp, features=np.random.default_rng(0).normal(size=(len(y), 16)))
    assert not found.neighborhood.told
    assert "say nothing about its labels" in advice_of(found, "act")
    assert "ure-ga amplify noise" not in advice_of(found)
    assert "neither noise nor bias can be estimated" in found.as_text()


def test_features_and_their_graph_give_the_same_audit():
    x, y, graph = digits()
    comp = labels.from_indices(transition.sample(y, transition.uniform(10), 1), 10)
    from_graph, from_features = audit(comp, graph=graph), audit(comp, features=x)
    assert from_graph.neighborhood == from_features.neighborhood


def test_a_sample_is_drawn_from_labelled_rows_and_stated():
    x, y, _ = digits()
    comp = labels.from_indices(transition.sample(y, transition.uniform(10), 1), 10)
    comp[::3] = 0
    found = audit(comp, features=x, sample=500, items=[f"digit {i}" for i in range(len(y))])
    assert (found.neighborhood.rows, found.neighborhood.labelled) == (500, 1198)
    assert "a random sample of 500 of 1,198 labelled items" in found.as_text()
    assert found == audit(comp, features=x, sample=500, items=[f"digit {i}" for i in range(len(y))])
    assert found.neighborhood != audit(comp, features=x, sample=500, seed=1).neighborhood


def test_a_sample_of_a_large_graph_hides_only_itself():
    _, y, graph = digits()
    comp = labels.from_indices(transition.sample(y, transition.uniform(10), 1), 10)
    found = audit(comp, graph=graph, sample=300)
    assert (found.neighborhood.rows, found.neighborhood.labelled) == (300, 1797)
    assert found.neighborhood.told


def test_too_few_labelled_items_are_said_to_be_too_few():
    found = audit(labels.from_indices([0, 1, 2] * 5, 3), features=np.arange(15.0)[:, None])
    assert found.neighborhood is None
    assert "15 labelled items are too few" in advice_of(found, "look")


def test_a_class_that_nobody_names_is_nobodys_likely_class():
    shared = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.2, 0.8, 0.0]])
    likely, clear = likely_classes(shared, _lift(shared, np.array([0.6, 0.4, 0.0]), 64))
    assert likely.tolist() == [0, -1, 0]
    assert not clear[1]


if __name__ == "__main__":
    for name in settings():
        noise, true, bias, off = landing(name)
        print(
            f"{name:12} noise {true:.4f} -> {noise.value:.4f}, to {noise.high:.4f}  bias {bias.effect:.3f}  T off by "
            f"{off:.3f}"
        )


def test_options_shown_leave_T_that_of_the_labels_as_given():
    """Nobody is offered the true class here: T as if everything had been shown would call a fifth of labels wrong."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 5
    x = (3 * np.eye(5)[y] + rng.normal(size=(600, 5))).astype(np.float32)
    shown = [rng.permutation([k for k in range(5) if k != of])[:3] for of in y]
    table = {"item": list(range(600)), "label": [f"c{row[0]}" for row in shown]}
    options = ["|".join(f"c{k}" for k in row) for row in shown]
    settings = {"features": x, "items": list(range(600)), "classes": [f"c{k}" for k in range(5)]}
    found = audit(table={**table, "options": options}, **settings).neighborhood
    assert found.T.diagonal().max() < 0.05
    assert found.follows.effect_low == 0
    assert torch.equal(found.T, audit(table=table, **settings).neighborhood.T)
