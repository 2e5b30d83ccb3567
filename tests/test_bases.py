"""Bases: whatever learns labels through T; identities of the arithmetic, and what each base must be able to do."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from torch import nn

from naysay import ComplementaryClassifier, transition
from naysay.bases import Boosting, Foreign, Forest, Linear, Nearest, Network, Trees
from naysay.bases.through import classes_of, own_evidence, slope, softmax
from naysay.errors import InputError

UNIFORM = transition.uniform(4).numpy()
BIASED = transition.biased(4, "weak", seed=1).numpy()


def labelled(n=400, seed=0, T=UNIFORM, spread=1.0):
    x, y = make_blobs(n, 5, centers=4, cluster_std=spread, random_state=0)
    named = transition.sample(y, torch.from_numpy(T), seed=seed)[:, 0].numpy()
    return x.astype(np.float32), y, np.eye(4)[named]


@pytest.mark.parametrize("T", [UNIFORM, BIASED], ids=["uniform", "biased"])
def test_classes_are_found_again_from_the_labels_that_they_make(T):
    p = np.random.default_rng(0).dirichlet(np.ones(4), 50)
    assert np.allclose(classes_of(p @ T, T), p)


def test_frequencies_that_no_class_explains_still_become_probabilities():
    named = np.array([[0.7, 0.1, 0.1, 0.1], [1.0, 0.0, 0.0, 0.0]])
    p = classes_of(named, UNIFORM)
    assert (p >= 0).all()
    assert p.sum(1) == pytest.approx(1)
    assert p[:, 0] == pytest.approx(0, abs=1e-6)


def test_the_gradient_of_the_loss_is_that_of_torch():
    rng = np.random.default_rng(0)
    scores, comp = rng.normal(size=(6, 4)), rng.dirichlet(np.ones(4), 6)
    logits = torch.tensor(scores, requires_grad=True)
    loss = -(torch.tensor(comp) * (logits.softmax(1) @ torch.tensor(BIASED)).log()).sum()
    loss.backward()
    gradient, value = slope(softmax(scores), comp, BIASED)
    assert value == pytest.approx(float(loss))
    assert np.allclose(gradient, logits.grad.numpy())


def test_two_labels_of_an_item_are_twice_the_evidence_of_one_and_exclude_nothing_for_good():
    one = own_evidence(np.eye(4)[[0]], UNIFORM)
    assert np.allclose(own_evidence(2 * np.eye(4)[[0]], UNIFORM), 2 * one)
    assert np.isfinite(one).all()


ALL = [
    Linear(1e-3),
    Forest(50),
    Forest(30, rounds=2, best=True),
    Boosting(60),
    Nearest(40),
    Network(),
    Foreign(RandomForestClassifier(50)),
    Foreign(HistGradientBoostingClassifier(max_iter=30)),
    Foreign(make_pipeline(StandardScaler(), LogisticRegression())),
    Foreign(KNeighborsClassifier(20)),
]


@pytest.mark.parametrize("base", ALL, ids=lambda base: str(base)[:40])
@pytest.mark.parametrize("T", [UNIFORM, BIASED], ids=["uniform", "biased"])
def test_every_base_learns_what_rows_are_from_what_they_are_not(base, T):
    x, y, comp = labelled(T=T)
    model = base.fit(x[:300], comp[:300], T, seed=1)
    assert (model.logits(x[300:]).argmax(1) == y[300:]).mean() > 0.85
    again = base.fit(x[:300], comp[:300], T, seed=1)
    assert np.array_equal(model.logits(x), again.logits(x))


@pytest.mark.parametrize("base", [Linear(1e-3), Forest(50), Boosting(60), Nearest(40), Network()], ids=str)
def test_soft_labels_and_rows_without_any_are_taken(base):
    x, y, comp = labelled()
    soft = 0.7 * comp + 0.3 * (1 - comp) / 3 * (np.eye(4)[y] == 0)
    soft = soft / soft.sum(1, keepdims=True)
    soft[::3] = 0
    model = base.fit(x, soft, UNIFORM)
    assert (model.logits(x).argmax(1) == y).mean() > 0.9


def test_a_self_trained_forest_knows_more_than_a_plain_one():
    x, y = load_digits(return_X_y=True)
    comp = np.eye(10)[transition.sample(y, transition.uniform(10), seed=0)[:, 0].numpy()]
    T = transition.uniform(10).numpy()
    plain, taught = (
        Forest(60, rounds=rounds, best=True).fit(x[:900], comp[:900], T).logits(x[900:]).argmax(1) for rounds in (0, 2)
    )
    assert (taught == y[900:]).mean() > (plain == y[900:]).mean() + 0.03


def test_trees_as_arrays_say_what_the_forest_said():
    x, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(20, random_state=0).fit(x, y)
    trees = [tree.tree_ for tree in forest.estimators_]
    kept = Trees.of(trees, [tree.value[:, 0] for tree in trees])
    assert np.allclose(kept.mean(x), forest.predict_proba(x), atol=1e-6)
    assert kept.sound(4)
    assert not kept.sound(2), "it asks for columns that are not there"


def test_trees_that_would_never_end_are_not_sound():
    loop = np.array([1, 0], np.int32)
    zeros = np.zeros(2, np.int32)
    assert not Trees(zeros, np.zeros(2), loop, loop, np.zeros((2, 3), np.float32), zeros[:1]).sound(1)


def test_a_linear_model_takes_sparse_rows_and_finds_the_same():
    x, _, comp = labelled()
    dense, thin = (Linear(1e-2).fit(rows, comp, UNIFORM) for rows in (x, sparse.csr_matrix(x)))
    assert np.allclose(dense.logits(x), thin.logits(sparse.csr_matrix(x)), atol=1e-6)


def test_any_classifier_of_scikit_learn_is_the_classifiers_model():
    x, y, comp = labelled(T=BIASED)
    named = comp.argmax(1)
    for model in (RandomForestClassifier(50), make_pipeline(StandardScaler(), LogisticRegression())):
        found = ComplementaryClassifier(model=model, transition=BIASED).fit(x[:300], named[:300])
        assert (found.predict(x[300:]) == y[300:]).mean() > 0.95
        assert found.predict_proba(x).sum(1) == pytest.approx(1)
    assert not hasattr(model, "n_features_in_"), "a copy was fitted"


def test_labels_that_favour_a_class_are_read_by_its_popularity():
    x, y, _ = labelled()
    T = np.tile([0.7, 0.1, 0.1, 0.1], (4, 1)) * (1 - np.eye(4))
    T /= T.sum(1, keepdims=True)
    named = transition.sample(y, torch.from_numpy(T), seed=0)[:, 0].numpy()
    forest = RandomForestClassifier(20, random_state=0)
    by_default, popular, even = (
        ComplementaryClassifier(model=forest, transition=T).fit(x, named).predict_proba(x)
        for T in (None, "popularity", UNIFORM)
    )
    assert np.array_equal(by_default, popular)
    assert not np.allclose(by_default, even)


def test_a_foreign_model_learns_shared_labels_where_a_scheme_is_asked_for():
    x, _, comp = labelled(spread=3.0)
    forests = [
        ComplementaryClassifier(scheme=scheme, model=RandomForestClassifier(50, random_state=0)).fit(x, comp.argmax(1))
        for scheme in ("none", "dms")
    ]
    plain, shared = (forest.predict_proba(x) for forest in forests)
    assert not np.allclose(plain, shared)


def test_classes_that_a_foreign_model_leaves_equal_do_not_all_go_to_the_first():
    x, _, comp = labelled(spread=3.0)
    found = ComplementaryClassifier(model=KNeighborsClassifier(1)).fit(x, comp.argmax(1))
    predicted, p = found.predict(x), found.predict_proba(x)
    # the one neighbour is the row itself: all classes but the named one are as likely
    assert np.allclose(np.sort(p)[:, 1:], 1 / 3, atol=1e-2)
    assert np.bincount(predicted, minlength=4).max() < 0.6 * len(x)
    assert np.array_equal(p.argmax(1), predicted)
    assert np.array_equal(found.predict(x[5:9]), predicted[5:9])  # no matter who else is asked


def test_sparse_rows_are_taken_as_they_are():
    x, y, comp = labelled()
    thin = sparse.csr_matrix(x)
    found = ComplementaryClassifier(model=LogisticRegression()).fit(thin, comp.argmax(1))
    assert (found.predict(thin) == y).mean() > 0.95


def test_a_torch_module_is_trained_and_left_as_it_was():
    x, y, comp = labelled()
    module = nn.Sequential(nn.Flatten(), nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 4))
    before = module[1].weight.clone()
    found = ComplementaryClassifier(model=module, scheme="none").fit(x, comp.argmax(1))
    assert (found.predict(x) == y).mean() > 0.95
    assert torch.equal(before, module[1].weight)


def test_a_model_without_probabilities_and_one_that_cannot_weigh_rows_are_refused():
    x, _, comp = labelled()
    with pytest.raises(InputError, match="LinearSVC, which has no predict_proba"):
        ComplementaryClassifier(model=LinearSVC()).fit(x, comp.argmax(1))
    with pytest.raises(InputError, match="KNeighborsClassifier, whose fit takes no sample_weight"):
        ComplementaryClassifier(model=KNeighborsClassifier(), scheme="dms").fit(x, comp.argmax(1))


def test_what_a_model_of_scikit_learn_cannot_use_is_refused():
    x, _, comp = labelled(60)
    for setting, sentence in (
        ({"epochs": 3}, "epochs=3 is for a network"),
        ({"class_shares": "even"}, "class_shares='even' needs scheme="),
        ({"n_neighbors": 4}, "n_neighbors=4 needs scheme="),
    ):
        with pytest.raises(InputError, match=sentence):
            ComplementaryClassifier(model=LogisticRegression(), **setting).fit(x, comp.argmax(1))
    for model in (5, RandomForestClassifier):
        with pytest.raises(InputError, match="model must be a name, a torch module or a classifier"):
            ComplementaryClassifier(model=model).fit(x, comp.argmax(1))
