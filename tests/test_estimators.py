import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from naysay import datasets, labels, losses, neighbors, selection, transition
from naysay.augmentation import neighbors_for
from naysay.errors import InputError
from naysay.estimators import ComplementaryClassifier, ComplementaryKNeighbors, LabelAugmenter
from naysay.estimators.encoding import encode
from naysay.estimators.judging import hash_rows


@pytest.fixture(scope="module")
def digits():
    data = datasets.load("digits")
    x, x_test = (part.reshape(len(part), -1) / np.float32(255) for part in (data.x_train, data.x_test))
    not_this = transition.sample(data.y_train, transition.uniform(10), seed=0)[:, 0].numpy()
    return x, not_this, x_test, data.y_test


def rows(comp):
    return comp.numpy().round(3).tolist()


def test_y_may_be_names_numbers_lists_or_the_matrix():
    expected = [[1, 0, 0], [0, 0.5, 0.5], [0, 0, 0]]
    for y in (
        [["a"], ["b", "c"], []],
        np.array([["a", None], ["b", "c"], [None, None]], dtype=object),
        [("a",), {"b", "c"}, ()],
    ):
        comp, classes = encode(y)
        assert classes.tolist() == ["a", "b", "c"]
        assert rows(comp) == expected
    comp, classes = encode(np.array([[0, -1], [1, 2], [-1, -1]]))
    assert (rows(comp), classes.tolist()) == (expected, [0, 1, 2])
    comp, classes = encode(np.array(expected))
    assert (rows(comp), classes.tolist()) == (expected, [0, 1, 2])


def test_a_matrix_of_marks_has_a_column_for_each_class_and_one_says_not_this():
    marks = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0]])
    for y in (marks, marks.astype(bool), marks.astype(float), torch.from_numpy(marks)):
        comp, classes = encode(y)
        assert (rows(comp), classes.tolist()) == ([[1, 0, 0], [0, 0.5, 0.5], [0, 0, 0]], [0, 1, 2])
        assert rows(encode(y, classes)[0]) == rows(comp)
    assert encode(marks, ["a", "b", "c"])[1].tolist() == ["a", "b", "c"]
    assert encode(marks, [0, 1, 2, 3])[0].shape == (3, 4)  # three labels each, of four classes


class Frame:
    """As much of pandas' DataFrame as y needs; pandas itself is no dependency."""

    columns = ("not_cat", "dog", "emu")

    def __array__(self, dtype=None, copy=None):
        return np.array([[True, False, False], [False, True, True]])


class NAType:
    """pandas' NA: comparing it gives another NA, which is neither true nor false."""

    def __eq__(self, other):
        return self

    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")


def test_a_frame_of_marks_names_its_classes_and_pandas_na_is_no_label():
    comp, classes = encode(Frame())
    assert (rows(comp), classes.tolist()) == ([[1, 0, 0], [0, 0.5, 0.5]], ["cat", "dog", "emu"])
    comp, classes = encode(np.array(["b", NAType(), "a", "c"], dtype=object))
    assert (rows(comp)[1], classes.tolist()) == ([0, 0, 0], ["a", "b", "c"])
    assert labels.from_table({"item": [1, 2], "label": ["a", NAType()]}, "abc")[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("estimator", [ComplementaryClassifier(epochs=1), ComplementaryKNeighbors(), LabelAugmenter()])
def test_ordinary_labels_are_warned_about_and_complementary_ones_are_not(estimator, digits):
    x, not_this, *_ = digits
    y_true = datasets.load("digits").y_train
    with pytest.warns(UserWarning, match=r"look like ordinary labels.*9\d % of them are the commonest") as said:
        estimator.fit(x, y_true)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.fit(x, not_this)


def test_classes_of_different_types_have_an_order_too():
    assert encode([1, "a", 2.5, "b"])[1].tolist() == [2.5, 1, "a", "b"]


def test_a_class_that_no_label_names_can_be_given():
    comp, classes = encode(["a", "b"], classes=["a", "b", "c"])
    assert comp.shape == (2, 3)
    assert classes.tolist() == ["a", "b", "c"]


def test_two_classes_are_said_to_be_ordinary_labels():
    with pytest.warns(UserWarning, match="ordinary labels in disguise"):
        comp, classes = encode(["a", "b"])
    assert rows(comp) == [[0.5, 0, 0.5], [0, 0.5, 0.5]]
    assert classes.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("y", "classes", "text"),
    [
        (["a", "d"], ["a", "b", "c"], "row 1 names class 'd', which is not among the 3 classes: a, b, c."),
        (["a", "a"], None, "complementary labels need more than one class; got 1. Pass classes= with all of them."),
        (np.array([0.5, 1.0]), None, "y must hold class names"),
        ("abc", None, "y must be an array or a list of class names, one entry per row; got str."),
        (np.eye(4), ["a", "b"], "y has 4 columns for 2 classes"),
    ],
)
def test_bad_y_is_told_what_is_wrong(y, classes, text):
    with pytest.raises(InputError) as error:
        encode(y, classes)
    assert text in str(error.value)


def test_the_classifier_learns_digits_from_what_they_are_not(digits):
    x, not_this, x_test, y_test = digits
    x, x_test = (part.reshape(-1, 8, 8) for part in (x, x_test))
    model = ComplementaryClassifier(budget=4).fit(x, not_this)  # by a minute, the default, 0.94 are right, and by 4 s
    assert (model.predict(x_test) == y_test).mean() > 0.88
    proba = model.predict_proba(x_test)
    assert np.allclose(proba.sum(1), 1)
    assert (model.classes_[proba.argmax(1)] == model.predict(x_test)).all()
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.predict(x_test) == model.predict(x_test)).all()
    held = transition.sample(y_test, transition.uniform(10), seed=9)[:, 0].numpy()
    estimate = model.score(x_test, held)
    # with 355 single labels one standard error is about 0.05
    assert abs(estimate - (model.predict(x_test) == y_test).mean()) < 0.2


@pytest.mark.parametrize("biased", [False, True], ids=["uniform T", "biased T"])
@pytest.mark.parametrize("loss", losses.LOSSES)
def test_probabilities_and_scores_are_largest_where_the_prediction_is(digits, loss, biased):
    x, not_this, x_test, _ = digits
    T = transition.biased(10, "strong") if biased else None
    model = ComplementaryClassifier(loss, "none", epochs=2, transition=T).fit(x[:300], not_this[:300])
    proba, predicted = model.predict_proba(x_test), model.predict(x_test)
    assert np.allclose(proba.sum(1), 1)
    assert (proba.argmax(1) == predicted).all()
    assert (model.decision_function(x_test).argmax(1) == predicted).all()


def test_a_loss_that_estimates_labels_gives_probabilities_of_classes(digits):
    x, not_this, x_test, y_test = digits
    model = ComplementaryClassifier("cpe-i", epochs=10).fit(x, not_this)
    assert (model.predict_proba(x_test).argmax(1) == y_test).mean() > 0.8
    with pytest.warns(UserWarning, match="ordinary labels in disguise"):
        two = ComplementaryClassifier("cpe-i", epochs=10).fit(x[not_this < 2], not_this[not_this < 2])
    assert (two.predict(x[not_this == 0]) == 1).mean() > 0.7
    assert (two.decision_function(x[not_this == 0]) > 0).mean() > 0.7


def test_names_of_classes_come_back_as_they_were_given(digits):
    x, not_this, x_test, _ = digits
    named = np.array([f"class {k}" for k in not_this])
    model = ComplementaryClassifier(epochs=1, scheme="none").fit(x, named)
    assert set(model.predict(x_test)) <= {f"class {k}" for k in range(10)}


def test_neighbours_alone_read_digits_too(digits):
    x, not_this, x_test, y_test = digits
    model = ComplementaryKNeighbors().fit(x, not_this)
    # 78 %: single labels of neighbours that are not weighed nor passed on; augmentation is what makes up for it
    assert (model.predict(x_test) == y_test).mean() > 0.72
    assert model.n_neighbors_ in (4, 8, 16, 32, 64, 128, 256, 512, 1024)


def test_the_augmenter_shares_labels_and_passes_them_on_to_new_rows(digits):
    x, not_this, x_test, y_test = digits
    augmenter = LabelAugmenter().fit(x, not_this)
    assert augmenter.labels_.shape == (len(x), 10)
    assert (augmenter.classes_[augmenter.transform(x_test).argmin(1)] == y_test).mean() > 0.85
    assert np.array_equal(augmenter.labels_, LabelAugmenter().fit_transform(x, not_this))


def test_the_augmenter_tells_equally_little_named_classes_apart_as_neighbours_do(digits):
    x, not_this, _, _ = digits
    y = datasets.load("digits").y_train
    alone = LabelAugmenter("none").fit(x, not_this)  # nine classes of a row are not named
    few = LabelAugmenter("rss", n_neighbors=4).fit(x, not_this)
    for fitted, before in ((alone, 0.1), (few, 0.3)):
        first = fitted.classes_[fitted.labels_.argmin(1)]
        tied = (fitted.labels_ == fitted.labels_.min(1, keepdims=True)).sum(1) > 1
        assert tied.mean() > 0.5
        assert (first == y).mean() < before + 0.05
        assert (fitted.transduction_ == y).mean() > before + 0.2
        assert np.array_equal(fitted.transduction_[~tied], first[~tied])
        chosen = np.searchsorted(fitted.classes_, fitted.transduction_)
        assert np.allclose(fitted.labels_[np.arange(len(x)), chosen], fitted.labels_.min(1), atol=1e-6)


def test_where_no_neighbour_helps_the_augmenter_draws_a_class():
    x = np.arange(60.0)[:, None]
    found = LabelAugmenter("none", classes=[0, 1, 2, 3]).fit(x, [0] * 60)
    counts = np.bincount(found.transduction_, minlength=4)
    assert counts[0] == 0
    assert counts[1:].min() > 8
    again = LabelAugmenter("none", classes=[0, 1, 2, 3]).fit(x, [0] * 60)
    assert np.array_equal(found.transduction_, again.transduction_)


class Constant(ClassifierMixin, BaseEstimator):
    """Predicts one class, whatever it sees: the model that accuracy against complementary labels calls harmless."""

    def __init__(self, always=0):
        self.always = always

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.always)


def test_grid_search_prefers_a_good_model_to_a_poor_one_by_complementary_labels_alone(digits):
    x, not_this, _, _ = digits
    search = GridSearchCV(
        ComplementaryClassifier(scheme="none"), {"learning_rate": [1e-7, 1e-2], "epochs": [5]}, cv=3
    ).fit(x, not_this)
    assert search.best_params_["learning_rate"] == 1e-2


def test_grid_search_over_a_constant_predictor_and_a_good_one_picks_the_good_one(digits):
    from sklearn.pipeline import Pipeline

    from naysay import selection

    def criterion(estimator, X, y):
        return selection.ure_accuracy(estimator.predict(X), labels.from_indices(y, 10)).value

    x, not_this, _, _ = digits
    steps = Pipeline([("model", Constant())])
    grid = {"model": [Constant(0), Constant(5), ComplementaryKNeighbors(64)]}
    best = GridSearchCV(steps, grid, scoring=criterion, cv=3).fit(x, not_this).best_params_["model"]
    assert isinstance(best, ComplementaryKNeighbors)


def test_it_works_in_a_pipeline_and_clones(digits):
    x, not_this, x_test, _ = digits
    pipeline = make_pipeline(StandardScaler(), ComplementaryClassifier(epochs=1))
    assert clone(pipeline).fit(x, not_this).predict(x_test).shape == (len(x_test),)


MINUS_ONE = "uses -1 as a class, which means unlabelled here (pass classes= to use it as a class)"
SEVERAL = "y of shape (n, 1) is one label per row, a form of y like any other here, and deserves no warning"
EXPECTED = {
    ComplementaryClassifier: {"check_classifiers_classes": MINUS_ONE, "check_supervised_y_2d": SEVERAL},
    ComplementaryKNeighbors: {"check_classifiers_classes": MINUS_ONE, "check_supervised_y_2d": SEVERAL},
    LabelAugmenter: {},
}


@pytest.mark.parametrize(
    "estimator", [ComplementaryClassifier(epochs=2), ComplementaryKNeighbors(), LabelAugmenter()], ids=repr
)
def test_scikit_learns_own_checks_pass_but_for_those_argued(estimator):
    expected = EXPECTED[type(estimator)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two classes are said to be ordinary labels; the checks use them all the time
        outcomes = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = {outcome["check_name"]: outcome["exception"] for outcome in outcomes if outcome["status"] == "failed"}
    still_failing = {outcome["check_name"] for outcome in outcomes if outcome["status"] == "xfail"}
    assert not failed
    assert still_failing == set(expected), "these checks pass now: take them off the list"
    assert len(outcomes) > 40


def popular(n=500, seed=0):
    """Rows of four classes, apart, whose labels name two of them far more often than the others."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 4)
    x = (3 * np.eye(4)[y] + rng.normal(0, 0.6, (n, 4))).astype(np.float32)
    weights = np.tile([30.0, 10, 1, 0.2], (4, 1)) * (1 - np.eye(4))
    return x, y, transition.sample(y, weights / weights.sum(1, keepdims=True), 1, seed).numpy()[:, 0]


@pytest.mark.parametrize(
    "estimator",
    [ComplementaryClassifier(epochs=15), ComplementaryKNeighbors(n_neighbors=16), LabelAugmenter()],
    ids=repr,
)
def test_class_shares_put_popular_labels_right(estimator):
    x, y, named = popular()

    def right(known):
        model = clone(estimator).set_params(class_shares=known, classes=range(4)).fit(x, named)
        found = model.transduction_ if isinstance(model, LabelAugmenter) else model.predict(x)
        return float((found == y).mean())

    assert right("even") > 0.8
    assert right("even") > right(None) + (0.01 if isinstance(estimator, LabelAugmenter) else 0.1)
    assert right([0.25] * 4) == right("even")


def test_T_may_be_given_estimated_or_popular_and_judges():
    x, _, named = popular()
    popularity, comp = transition.popularity, labels.from_indices(named, 4)
    for asked in ("popularity", popularity(comp), None):  # None too: such labels prove that naming is not even
        model = ComplementaryKNeighbors(16, transition=asked, classes=range(4)).fit(x, named)
        assert torch.equal(model.judged_by_, popularity(comp))
    even = np.arange(len(x)) % 4
    assert ComplementaryKNeighbors(16, classes=range(4)).fit(x, even).judged_by_ is None
    estimated = ComplementaryKNeighbors(16, transition="estimated", classes=range(4)).fit(x, named)
    assert float((estimated.judged_by_ - popularity(comp)).abs().max()) < 0.3
    assert not torch.equal(estimated.judged_by_, popularity(comp))
    # who states class shares expects uneven naming, and is judged by it
    assert torch.equal(
        ComplementaryKNeighbors(16, class_shares="even", classes=range(4)).fit(x, named).judged_by_, popularity(comp)
    )
    with pytest.raises(InputError, match=r"unknown transition 'populrity'.*popularity"):
        ComplementaryClassifier(transition="populrity").fit(x, named)


def test_settings_of_class_shares_and_T_are_searched_by_scikit_learn():
    x, _, named = popular()
    grid = {"class_shares": [None, "even"], "transition": [None, "popularity"], "n_neighbors": [8, 16]}
    search = GridSearchCV(ComplementaryKNeighbors(classes=range(4)), grid, cv=3).fit(x, named)
    assert len(search.cv_results_["params"]) == 8
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_search_on_popular_labels_does_not_prefer_the_setting_that_ignores_their_popularity():
    """One T judges all settings: by a uniform one, who predicts the class that nobody names looks right."""
    x, y = load_digits(return_X_y=True)
    often = torch.arange(10).repeat_interleave(torch.tensor([16, 12, 8, 4, 2, 2, 2, 1, 1, 1]))
    named = transition.sample(y, transition.popularity(labels.from_indices(often, 10)), seed=1)[:, 0].numpy()
    search = GridSearchCV(ComplementaryKNeighbors(32, classes=range(10)), {"class_shares": [None, "even"]}, cv=3)
    assert search.fit(x, named).best_params_ == {"class_shares": "even"}


@pytest.mark.filterwarnings("ignore:there are only two classes")
@pytest.mark.parametrize("estimator", [ComplementaryKNeighbors(4), ComplementaryClassifier(epochs=3), LabelAugmenter()])
def test_class_shares_of_two_classes_are_two_and_are_checked(estimator):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    x, other = rng.normal(size=(80, 3)) + 4 * y[:, None], 1 - y
    for known in ("even", [0.5, 0.5]):
        model = clone(estimator).set_params(class_shares=known).fit(x, other)
        found = model.transduction_ if isinstance(model, LabelAugmenter) else model.predict(x)
        assert (found == y).all()
        if not isinstance(model, LabelAugmenter):
            assert model.score(x, other) == pytest.approx(1)
    for wrong in ("evn", [0.5, 0.5, 0.0], 0.5):
        with pytest.raises(InputError, match="class_shares must be"):
            clone(estimator).set_params(class_shares=wrong).fit(x, other)


@pytest.mark.filterwarnings("ignore:there are only two classes")
@pytest.mark.parametrize("asked", ["popularity", "estimated"])
def test_labels_of_two_classes_have_only_one_T(asked):
    y = np.arange(80) % 2
    x = np.random.default_rng(0).normal(size=(80, 3)) + 4 * y[:, None]
    assert ComplementaryKNeighbors(4, transition=asked).fit(x, 1 - y).score(x, 1 - y) == pytest.approx(1)


@pytest.mark.filterwarnings("ignore:there are only two classes")
def test_two_classes_may_have_a_T_of_two_rows():
    rng, y = np.random.default_rng(0), np.arange(600) % 2
    x = rng.normal(size=(600, 3)) + 4 * y[:, None]
    T = np.array([[0.3, 0.7], [0.0, 1.0]])  # a third of what is said of the first class is wrong
    named = np.array([rng.choice(2, p=row) for row in T[y]])
    model = ComplementaryKNeighbors(20, transition=T).fit(x[:400], named[:400])
    assert (model.predict(x[400:]) == y[400:]).mean() > 0.97
    assert model.score(x[400:], named[400:]) == pytest.approx(1, abs=0.1)
    with pytest.raises(InputError, match=r"a row and a column for each of the 2 classes; got \(3, 3\)"):
        ComplementaryKNeighbors(transition=np.full((3, 3), 1 / 3)).fit(x, named)
    with pytest.raises(
        InputError, match=r"rows of T must sum to 1; row 0 sums to 0\.4\."
    ):  # of the two that were given
        ComplementaryKNeighbors(transition=[[0.2, 0.2], [0.9, 0.1]]).fit(x, named)
    with pytest.raises(InputError, match=r"T must be a \(K, K\) matrix of numbers, all rows of one length; got"):
        ComplementaryKNeighbors(transition=[[0.2, 0.8], [1.0]]).fit(x, named)


@pytest.mark.parametrize("model", ["auto", "mlp", LogisticRegression()])
@pytest.mark.parametrize("seed", ["a", 1.5])
def test_a_seed_that_is_no_whole_number_is_refused_in_a_sentence(model, seed):
    x, y = np.eye(3)[np.arange(60) % 3], (np.arange(60) + 1) % 3
    with pytest.raises(
        InputError, match=rf"^random_state must be a whole number, None .* RandomState; got {seed!r}\.$"
    ):
        ComplementaryClassifier(model=model, random_state=seed).fit(x, y)


@pytest.mark.parametrize("model", ["auto", "mlp", RandomForestClassifier(5), "neighbours"])
def test_no_seed_draws_one_from_numpy_and_keeps_it(model):
    """As scikit-learn has it: None draws from numpy's global generator, a RandomState from itself, each fit anew."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.integers(0, 4, 60)
    budget = {"budget": 0.5} if model == "auto" else {"epochs": 1} if model == "mlp" else {}

    def fitted(random_state):
        if model == "neighbours":
            return ComplementaryKNeighbors(1, random_state=random_state).fit(x, y)
        return ComplementaryClassifier(model=model, **budget, random_state=random_state).fit(x, y)

    before = np.random.get_state()
    try:
        np.random.seed(7)
        first, second = fitted(None), fitted(None)
        np.random.seed(7)
        again = fitted(None)
    finally:
        np.random.set_state(before)
    assert first.seed_ == again.seed_ == np.random.RandomState(7).randint(2**31 - 1) != second.seed_
    assert np.array_equal(first.predict_proba(x), again.predict_proba(x))
    assert np.array_equal(first.predict_proba(x), fitted(first.seed_).predict_proba(x))
    assert fitted(np.random.RandomState(7)).seed_ == first.seed_
    if model != "auto":  # in half a second linear models alone are tried, which draw nothing
        assert not np.array_equal(first.predict_proba(x), second.predict_proba(x))
    assert first.get_params()["random_state"] is None


@pytest.mark.parametrize(("y", "got"), [([2] * 60, "all name class number 2"), ([None] * 60, "there are none")])
def test_a_classifier_of_scikit_learn_is_not_asked_to_learn_one_label(y, got):
    model = ComplementaryClassifier(model=LogisticRegression(), classes=[0, 1, 2])
    with pytest.raises(InputError, match=rf"labels that name at least two different classes; {got}\."):
        model.fit(np.eye(3)[np.arange(60) % 3], y)


@pytest.mark.parametrize("rows", [slice(None), slice(5, 40)])
def test_a_score_on_rows_that_were_trained_on_warns_and_on_others_does_not(digits, rows):
    x, named = digits[0][:200], np.arange(200) % 10
    model = ComplementaryKNeighbors(8).fit(x[:100], named[:100])
    with pytest.warns(UserWarning, match="rows that the model was trained on"):
        model.score(x[:100][rows], named[:100][rows])
    with pytest.warns(UserWarning, match="leave the score open") as said:  # a hundred labels of ten classes are few
        model.score(x[100:], named[100:])
    assert len(said) == 1


def test_a_score_is_never_outside_of_0_and_1(digits):
    x = digits[0][:300]
    T = 0.9 * np.full((10, 10), 0.1) + 0.1 * np.asarray(transition.uniform(10))  # hardly tells classes apart
    named = np.random.default_rng(0).integers(0, 10, 300)
    model = ComplementaryKNeighbors(8, transition=T).fit(x[:100], named[:100])
    for y in (named[100:], np.asarray(model.predict(x[100:]))):
        raw = selection.ure_accuracy(
            torch.from_numpy(model.predict(x[100:])), labels.from_indices(y, 10), model.judged_by_
        )
        assert not 0 <= raw.value <= 1
        assert str(raw).startswith(("0 ±", "1 ±"))
        with pytest.warns(UserWarning, match="leave the score open"):
            assert 0 <= model.score(x[100:], y) <= 1


def test_equal_rows_are_known_again_whatever_holds_them():
    from scipy import sparse

    x = np.random.default_rng(0).integers(0, 5, (50, 7)).astype(np.float64)
    kept = hash_rows(x)
    assert np.array_equal(hash_rows(x.astype(np.float32).tolist()), kept)
    assert np.isin(hash_rows(x[3:9]), kept).all()
    assert not np.isin(hash_rows(x[:, ::-1] + 0.5), kept).any()
    assert np.isin(hash_rows(sparse.csr_matrix(x[3:9])), hash_rows(sparse.coo_matrix(x))).all()


def test_importing_the_classifier_adds_little_to_importing_torch_and_scikit_learns_base():
    code = """import sys, time
import torch, sklearn.base, sklearn.utils.validation
start, before = time.process_time(), set(sys.modules)
from naysay import ComplementaryClassifier
seconds, new = time.process_time() - start, set(sys.modules) - before
print(seconds, sorted(name for name in new if name.startswith("sklearn.")))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, more = done.stdout.split(" ", 1)
    assert float(seconds) < 0.5  # 0.2 on two busy cores
    assert more.strip() == "[]"  # forests, pipelines and the like are loaded when they are first used


@pytest.mark.parametrize("name", ["ComplementaryClassifier", "LabelAugmenter"])
def test_estimators_ask_more_neighbours_where_class_shares_put_labels_right(digits, monkeypatch, name):
    asked, build = [], neighbors.build

    def spy(*given, **how):
        asked.append(build(*given, **how))
        return asked[-1]

    monkeypatch.setattr(neighbors, "build", spy)
    X, y = digits[0], digits[1]
    for known in (None, "even"):
        model = LabelAugmenter(class_shares=known)
        if name == "ComplementaryClassifier":
            model = ComplementaryClassifier(model="mlp", scheme="dms", class_shares=known, epochs=1)
        model.fit(X, y)
    shared = [graph.k for graph in asked if graph.k != 20]  # 20 tell first what labels mean (`meaning`)
    assert shared == [neighbors_for("dms", len(X), 10, shares_known=k) for k in (False, True)]
