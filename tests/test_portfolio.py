"""The portfolio: what is tried, how it is judged and mixed, and the file that is left."""

import json
import warnings

import numpy as np
import pytest
import torch
from safetensors import safe_open
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs, make_classification

from naysay import ComplementaryClassifier, portfolio, transition
from naysay.bases.through import softmax
from naysay.errors import InputError
from naysay.portfolio import blend, naming
from naysay.portfolio.candidates import CANDIDATES, affordable
from naysay.portfolio.spaces import enter
from naysay.portfolio.trial import Tried, _part, _unseen
from naysay.statistics import by_gain

UNIFORM = transition.uniform(4).numpy()


def labelled(n=500, T=UNIFORM, seed=0, n_labels=1, **kind):
    x, y = make_blobs(n, 6, centers=4, cluster_std=kind.get("spread", 2.0), random_state=seed)
    named = transition.sample(y, torch.from_numpy(T), n_labels, seed)
    comp = torch.nn.functional.one_hot(named, 4).double().mean(1)
    return x, y, comp


@pytest.fixture(scope="module")
def found():
    x, y, comp = labelled(300)
    return x, y, portfolio.fit(x, comp, budget=5, seed=1)


def test_the_mixture_is_right_and_its_probabilities_are_calibrated(found):
    x, y, one = found
    p = softmax(one.model.logits(x).numpy())
    right = p.argmax(1) == y
    assert right.mean() > 0.9
    assert abs(p.max(1).mean() - right.mean()) < 0.08


def test_what_is_said_of_labelled_rows_comes_from_models_that_did_not_see_their_labels():
    x, _, comp = labelled(200)
    before = portfolio.fit(x, comp, budget=1, assume="uniform")
    row = 17
    changed = comp.clone()
    changed[row] = changed[row].roll(1)
    after = portfolio.fit(x, changed, budget=1, assume="uniform")
    for one, other in zip(before.tried, after.tried, strict=True):
        if one.base == other.base and one.factor == other.factor:
            assert np.allclose(one.p[row], other.p[row])
    assert any(not np.allclose(one.p, other.p) for one, other in zip(before.tried, after.tried, strict=True))


def test_the_mixture_is_never_behind_its_parts(found):
    _, _, one = found
    assert one.loss.mean() <= min(part.loss.mean() for part in one.tried) + 1e-12
    assert one.weights.sum() == pytest.approx(1)


def test_the_same_seed_gives_the_same_and_the_budget_says_what_is_tried():
    x, _, comp = labelled(150)
    first, again = (portfolio.fit(x, comp, budget=0.7, seed=3).model.logits(x) for _ in range(2))
    assert torch.equal(first, again)
    cheap, dear = (affordable(budget, 150, 6, 4, 5, False) for budget in (0.5, 60))
    assert {row.name for row in cheap[0]} < {row.name for row in dear[0]}
    assert not dear[1]
    assert {row.name for row in cheap[0]} | {row.name for row in cheap[1]} == {row.name for row in CANDIDATES}


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf")])
def test_a_budget_that_cannot_be_meant_gets_a_sentence(budget):
    with pytest.raises(InputError, match="budget must be above 0 seconds"):
        ComplementaryClassifier(budget=budget).fit(np.eye(9), np.arange(9) % 3)


@pytest.mark.parametrize("n", [1, 3])
def test_too_few_labels_to_try_several_models_get_a_sentence_with_a_way_out(n):
    named = [[row % 3] if row < n else [] for row in range(9)]
    with pytest.raises(InputError, match=f"needs at least 4 rows with labels; got {n}. Label some more"):
        ComplementaryClassifier(classes=[0, 1, 2]).fit(np.eye(9), named)


def test_the_best_mixture_of_two_that_each_know_half_has_both():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 2000)
    comp = np.eye(4)[(y + rng.integers(1, 4, 2000)) % 4]
    sure, blank = np.eye(4)[y] * 0.97 + 0.0075, np.full((2000, 4), 0.25)
    half = (np.arange(2000) < 1000)[:, None]
    weights = blend.weights([np.where(half, sure, blank), np.where(half, blank, sure), blank], comp, UNIFORM)
    assert weights[:2] == pytest.approx([0.5, 0.5], abs=0.05)
    assert weights[2] == 0, "what adds nothing is dropped"


def test_a_model_that_is_too_sure_of_itself_is_made_less_so():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 20_000)
    y = (p.cumsum(1) < rng.random((20_000, 1))).sum(1)
    comp = np.eye(4)[(y + rng.integers(1, 4, 20_000)) % 4]
    assert blend.sharpness(4 * np.log(p), comp, UNIFORM) == pytest.approx(0.25, rel=0.3)


@pytest.mark.parametrize(
    ("T", "how"),
    [
        (UNIFORM, "uniform"),
        (np.array([[0, 7, 2, 1], [9, 0, 2, 1], [9, 7, 0, 1], [9, 7, 2, 0]], float), "popularity"),
        (np.array([[0, 8, 1, 1], [1, 0, 8, 1], [1, 1, 0, 8], [8, 1, 1, 0]], float), "counted"),
    ],
    ids=["uniform", "popularity", "counted"],
)
def test_how_labels_come_about_is_found(T, how):
    T = T / T.sum(1, keepdims=True)
    x, _, comp = labelled(800, T)
    one = portfolio.fit(x, comp, budget=0.7)
    assert one.naming.how == how
    assert np.abs(one.naming.T - T).sum(1).max() / 2 < 0.1


def test_even_naming_is_doubted_before_another_answer_is_trained_by():
    """Too few labels for a T of their own may be enough to speak against even naming."""
    T = (1 - np.eye(4)) * np.where(np.roll(np.eye(4), 1, axis=1) > 0, 0.5, 1.0)
    x, _, comp = labelled(300, T / T.sum(1, keepdims=True), spread=1.5)
    found = portfolio.fit(x, comp, budget=0.7).naming
    n_labels, gain = 300, found.losses["uniform"] - found.losses["counted"]
    assert found.how == "uniform"
    assert found.even == by_gain(n_labels * gain, n_labels, 8)
    assert found.even.effect_low > 0.1
    assert portfolio.fit(*labelled(300, spread=1.5)[::2], budget=0.7).naming.even.effect_low < 0.05
    popular = np.array([[0, 5, 4, 3], [6, 0, 4, 3], [6, 5, 0, 3], [6, 5, 4, 0]], float)
    x, _, comp = labelled(600, popular / popular.sum(1, keepdims=True), spread=9.0)
    assert portfolio.fit(x, comp, budget=0.7).naming.even.df == 3  # popularity has three parameters, and says it best


def test_labels_at_random_are_found_and_those_of_nobody_are_not():
    x, _, comp = labelled(1500, transition.noisy(transition.uniform(4), 0.2).numpy())
    assert portfolio.fit(x, comp, budget=0.7).naming.noise == pytest.approx(0.2, abs=0.06)
    assert portfolio.fit(*labelled(1500)[::2], budget=0.7).naming.noise == 0


def test_a_T_that_renames_the_classes_is_not_taken():
    y = np.random.default_rng(0).integers(0, 4, 1000)
    counts = np.eye(4)[(y + 1) % 4]  # labels that tell classes apart, but not which is which
    likely = np.eye(4)[y] * 0.4 + 0.15

    def cross_fit(T):
        return likely if np.allclose(T, UNIFORM, atol=0.1) else np.roll(np.eye(4)[y] * 0.9 + 0.025, 2, axis=1)

    assert naming.find(counts, counts, cross_fit).how != "counted"


def test_known_class_shares_become_those_of_the_predictions():
    x, _, comp = labelled(300, spread=6.0)
    wanted = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    one = portfolio.fit(x, comp, budget=1, class_shares=wanted)
    assert softmax(one.model.logits(x).numpy()).mean(0) == pytest.approx(wanted.numpy(), abs=0.06)


def test_class_shares_that_rows_have_but_for_chance_leave_sure_predictions_alone():
    x, y, comp = labelled(150, spread=0.5)  # blobs are even, so the shares of these rows are not, by chance
    some = np.flatnonzero(np.random.default_rng(0).random(150) < 0.7)
    even = torch.full((4,), 0.25, dtype=torch.float64)
    one = portfolio.fit(x[some], comp[some], budget=0.3, class_shares=even)
    assert (one.model.logits(x).argmax(1).numpy() == y).mean() > 0.95


def test_rows_without_labels_are_predicted_and_do_no_harm():
    x, y, comp = labelled()
    comp[::2] = 0
    one = portfolio.fit(x, comp, budget=1)
    assert list(one.rows) == list(range(1, 500, 2))
    assert (one.model.logits(x).argmax(1).numpy() == y).mean() > 0.9


@pytest.mark.parametrize("kind", ["standardised", "ranks", "angle", "components", "flat"])
def test_a_space_treats_new_rows_as_the_old_ones_and_any_values(kind):
    x = np.random.default_rng(0).normal(size=(60, 4)) * [1e-3, 1, 1e4, 0]
    space = enter(kind, x)
    assert np.array_equal(space(x)[:5], space(x[:5]))
    assert np.isfinite(space(np.vstack([np.zeros(4), np.full(4, 1e30)]))).all()


def test_a_mixture_of_every_base_is_the_same_when_read_back(tmp_path):
    x, _, comp = labelled(120)
    given = comp.numpy()
    parts = tuple(
        _part(Tried(row, row.settings[0], 0.5, given, given, 0.0), x, given, UNIFORM, 0) for row in CANDIDATES
    )
    weights = np.full(len(parts), 1 / len(parts))
    whole = portfolio.Mixture(parts, weights, np.array([0.0, 1.0, 0.0, 0.0]), (6,), 0.01)
    whole.save(tmp_path / "mixture.safetensors")
    read = portfolio.Mixture.load(tmp_path / "mixture.safetensors")
    assert torch.equal(read.logits(x), whole.logits(x))
    with pytest.raises(InputError, match="takes rows of shape"):
        read.logits(x[:, :5])


def test_a_file_that_was_changed_gets_a_sentence(tmp_path):
    from naysay import tensors
    from naysay.portfolio.mixture import FORMAT, KEY

    x, _, comp = labelled(120)
    path = tmp_path / "mixture.safetensors"
    one = portfolio.fit(x, comp, budget=2, assume="uniform")
    one.model.save(path)
    with safe_open(path, "pt") as file:
        arrays, about = {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()[KEY])  # noqa: SIM118
    changes = [
        ({}, {"n_classes": 5}),
        ({}, {"shape": [7]}),
        ({}, {"parts": about["parts"][:-1] if len(about["parts"]) > 1 else []}),
        ({}, {"parts": [{**part, "kind": "nonsense"} for part in about["parts"]]}),
        ({"weights": torch.full_like(arrays["weights"], torch.nan)}, {}),
        ({"weights": -arrays["weights"]}, {}),
        ({"offsets": arrays["offsets"][:1]}, {}),
        ({}, {"doubt": 2}),
        ({}, {"parts": [{**part, "factor": -1} for part in about["parts"]]}),
        *(({name: array[:1]}, {}) for name, array in arrays.items() if name.count(".") and len(array) > 1),
    ]
    for tensor, text in changes:
        tensors.save(path, arrays | tensor, about | text, format=FORMAT, key=KEY)
        with pytest.raises(InputError):
            portfolio.Mixture.load(path)


def test_the_classifiers_default_is_the_portfolio_and_any_setting_of_a_network_makes_it_one():
    x, y, comp = labelled(300)
    mixed = ComplementaryClassifier(budget=1).fit(x, comp.argmax(1).numpy())
    assert isinstance(mixed.predictor_, portfolio.Mixture)
    assert (mixed.predict(x) == y).mean() > 0.9
    assert set(mixed.weights_) <= set(mixed.tried_)
    network = ComplementaryClassifier(epochs=1).fit(x, comp.argmax(1).numpy())
    assert not isinstance(network.predictor_, portfolio.Mixture)
    with pytest.raises(InputError, match="budget=3 is for trying several models, and one is asked for"):
        ComplementaryClassifier(epochs=1, budget=3).fit(x, comp.argmax(1).numpy())


def test_the_classifier_hands_on_what_it_was_given():
    T = np.array([[0, 8, 1, 1], [1, 0, 8, 1], [1, 1, 0, 8], [8, 1, 1, 0]]) / 10
    x, _, comp = labelled(150, T)
    wanted = (0.4, 0.3, 0.2, 0.1)
    asked = {"transition": T, "class_shares": wanted, "budget": 1.0, "random_state": 3}
    model = ComplementaryClassifier(**asked).fit(x, comp.argmax(1).numpy())
    expected = portfolio.fit(
        x, comp, T=torch.from_numpy(T), class_shares=torch.tensor(wanted), budget=1.0, seed=3
    ).model.logits(x)
    assert np.allclose(model.predict_proba(x), softmax(expected.numpy()))
    less = ComplementaryClassifier(**asked | {"budget": 0.1}).fit(x, comp.argmax(1).numpy())
    assert len(less.tried_) < len(model.tried_)


def test_images_and_sparse_rows_and_two_classes_are_taken():
    images, y = load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8) * 15).astype(np.uint8)
    named = transition.sample(y, transition.uniform(10), seed=0)[:, 0].numpy()
    found = ComplementaryClassifier(budget=3).fit(images[:800], named[:800])
    assert (found.predict(images[800:]) == y[800:]).mean() > 0.7
    x, y, comp = labelled(300)
    thin = sparse.csr_matrix(np.maximum(x, 0))
    found = ComplementaryClassifier(budget=1).fit(thin, comp.argmax(1).numpy())
    assert found.predict(thin).shape == (300,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        two = ComplementaryClassifier(budget=1).fit(x, 1 - (y > 1))
    assert (two.predict(x) == (y > 1)).mean() > 0.9


def test_sparse_rows_are_taken_however_few_their_columns_and_wherever_dense_ones_are():
    from sklearn.linear_model import LogisticRegression

    x, y, comp = labelled(200)
    thin, named = sparse.csr_matrix(x), comp.argmax(1).numpy()
    dense = ComplementaryClassifier(budget=0.3).fit(x, named)
    assert np.allclose(dense.predict_proba(thin), dense.predict_proba(x))
    assert np.allclose(ComplementaryClassifier(budget=0.3).fit(thin, named).predict_proba(x), dense.predict_proba(x))
    assert ComplementaryClassifier(budget=0.3).fit(thin[:, :1], named).predict(thin[:, :1]).shape == (200,)
    for how in ({"transition": "estimated", "budget": 0.3}, {"model": LogisticRegression(), "scheme": "dms"}):
        assert (ComplementaryClassifier(**how).fit(thin, named).predict(thin) == y).mean() > 0.9
    wide = sparse.random(200, 150, 0.5, "csr", random_state=0)
    again = ComplementaryClassifier(budget=0.3).fit(wide, named).set_params(budget=None, epochs=1)
    assert again.fit(wide.toarray(), named).predict(wide.toarray()).shape == (200,), "the reducer is not kept"


def test_columns_of_noise_cost_little_and_a_forest_alone_less_than_the_mixture():
    x, y = make_classification(900, 20, n_informative=5, n_redundant=0, n_classes=4, random_state=0)
    named = transition.sample(y, transition.uniform(4), seed=0)[:, 0].numpy()
    found = ComplementaryClassifier(budget=3).fit(x[:700], named[:700])
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(200, random_state=0).fit(x[:700], named[:700])
    plain = forest.classes_[forest.predict_proba(x[700:]).argmin(1)]
    assert (found.predict(x[700:]) == y[700:]).mean() > (plain == y[700:]).mean()


def test_soft_labels_are_taken():
    x, y, comp = labelled(300)
    soft = 0.8 * comp + 0.2 * comp.roll(1, 0)
    found = portfolio.fit(x, soft / soft.sum(1, keepdim=True), budget=0.7)
    assert (found.model.logits(x).argmax(1).numpy() == y).mean() > 0.6


def test_of_many_rows_a_sample_tells_how_labels_come_about(monkeypatch):
    from naysay.portfolio import trial

    x, _, comp = labelled(400)
    seen = []
    monkeypatch.setattr(trial, "SAMPLE", 100)
    monkeypatch.setattr(
        trial.naming, "find", lambda comp, *rest: seen.append(len(comp)) or naming.Naming(UNIFORM, "uniform", {})
    )
    portfolio.fit(x, comp, budget=0.3)
    assert seen == [100]


def test_a_fold_is_mixed_by_weights_that_its_own_labels_had_no_part_in():
    rng, T = np.random.default_rng(0), transition.uniform(4).numpy()
    row = CANDIDATES[0]
    tried = [Tried(row, row.settings[0], 1.0, rng.dirichlet(np.ones(4), 40), np.zeros(40), 0.0) for _ in range(3)]
    labelled = np.arange(0, 80, 2)  # every other row has no label
    comp = np.zeros((80, 4))
    comp[labelled, rng.integers(4, size=40)] = 1
    parts = [(np.setdiff1d(labelled, held), held) for held in (labelled[:20], labelled[20:])]
    before = _unseen(tried, comp, T, parts, labelled)
    comp[labelled[:20]] = np.roll(comp[labelled[:20]], 1, axis=1)
    after = _unseen(tried, comp, T, parts, labelled)
    assert np.array_equal(before[:20], after[:20])
    assert not np.allclose(before[20:], after[20:])
    assert after.sum(1) == pytest.approx(1)
