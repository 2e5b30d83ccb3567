import time

import pytest
import torch

from naysay import labels, transition
from naysay.errors import InputError


def all_matrices():
    yield "uniform", transition.uniform(7)
    for K in (3, 4, 10, 20):
        for strength in ("weak", "strong"):
            yield f"{strength} {K}", transition.biased(K, strength)
    yield "noisy", transition.noisy(transition.biased(10), 0.2)
    for name in transition.HUMAN:
        yield name, transition.human(name)


@pytest.mark.parametrize(("name", "T"), list(all_matrices()), ids=lambda v: v if isinstance(v, str) else "")
def test_rows_are_distributions(name, T):
    assert T.dtype == torch.float64
    assert torch.allclose(T.sum(1), torch.ones(len(T), dtype=torch.float64))
    transition.validate(T)


def test_uniform_names_every_wrong_class_equally():
    assert transition.uniform(4).tolist() == [[0 if i == j else 1 / 3 for j in range(4)] for i in range(4)]


def test_strong_bias_of_ten_classes_is_the_published_one():
    T = transition.biased(10, "strong")
    expected = sorted([0.75 / 3] * 3 + [0.24 / 3] * 3 + [0.01 / 3] * 3 + [0])
    for row in T:
        assert sorted(row.tolist()) == pytest.approx(expected)
    assert T.diagonal().tolist() == [0] * 10


def test_bias_takes_any_shares_and_depends_on_its_seed_alone():
    assert torch.equal(transition.biased(10, (0.9, 0.1), 3), transition.biased(10, (0.9, 0.1), 3))
    assert not torch.equal(transition.biased(10, seed=3), transition.biased(10, seed=4))


def test_noise_puts_rate_over_K_on_the_diagonal():
    T = transition.noisy(transition.uniform(5), 0.3)
    assert T.diagonal().tolist() == pytest.approx([0.06] * 5)


@pytest.mark.parametrize(
    ("name", "percent", "tolerance"),
    [("clcifar10", 3.93, 0.01), ("clcifar20", 2.81, 0.01), ("aclcifar10", 0.24, 0.015), ("aclcifar20", 0.89, 0.01)],
)
def test_published_matrices_show_their_published_noise(name, percent, tolerance):
    # classes of CLCIFAR20 differ in size, as its streetcars are with class 18
    T = transition.human(name)
    sizes = torch.ones(len(T), dtype=torch.float64)
    if len(T) == 20:
        sizes[18], sizes[19] = 1.2, 0.8
    assert float((T.diagonal() * sizes).sum() / sizes.sum()) * 100 == pytest.approx(percent, abs=tolerance)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("n_labels", [1, 3])
def test_samples_follow_T(n_labels, replace):
    T = transition.noisy(transition.biased(6, "weak", 1), 0.1)
    y = torch.arange(6).repeat(20_000)
    drawn = transition.sample(y, T, n_labels, seed=5, replace=replace)
    first = transition.oracle_empirical(y, labels.from_indices(drawn[:, 0], 6))
    assert drawn.shape == (120_000, n_labels)
    assert float((first - T).abs().max()) < 0.015  # four standard errors of a proportion over 20,000 draws


@pytest.mark.parametrize("T", [transition.biased(10, "strong"), transition.human("clcifar10")], ids=["strong", "human"])
def test_the_mean_of_several_labels_is_the_row_of_T(T):
    """What URE and SCEL assume; three different labels of the strong matrix put 0.69 where T has 0.75."""
    y = torch.arange(10).repeat(20_000)
    mean = transition.oracle_empirical(y, labels.from_indices(transition.sample(y, T, 3), 10))
    # five standard errors of a proportion over 60,000 draws
    assert bool(((mean - T).abs() <= 5 * (T * (1 - T) / 60_000).sqrt()).all())


def test_without_replacement_a_class_is_named_once_and_never_the_true_one():
    y = torch.arange(5).repeat(200)
    drawn = transition.sample(y, transition.uniform(5), 4, seed=0, replace=False)
    others = torch.tensor([[k for k in range(5) if k != c] for c in y.tolist()])
    assert torch.equal(drawn.sort(1).values, others)


def test_second_draw_without_replacement_follows_what_the_first_left():
    T = torch.tensor([[0, 0.7, 0.2, 0.1], [0.7, 0, 0.2, 0.1], [0.7, 0.2, 0, 0.1], [0.7, 0.2, 0.1, 0]])
    drawn = transition.sample(torch.zeros(100_000, dtype=torch.int64), T, 2, seed=0, replace=False)
    after_one = drawn[drawn[:, 0] == 1, 1]
    # 0.2 / (0.2 + 0.1), five standard errors
    assert float((after_one == 2).double().mean()) == pytest.approx(2 / 3, abs=0.01)


def test_labels_depend_on_the_seed_alone():
    y = torch.arange(10).repeat(10)
    draw = lambda seed: transition.sample(y, transition.uniform(10), 1, seed)  # noqa: E731
    before = draw(1)
    torch.rand(1000)
    assert torch.equal(before, draw(1))
    assert not torch.equal(before, draw(2))


def test_sixty_thousand_labels_take_well_under_a_tenth_of_a_second():
    y = torch.randint(0, 10, (60_000,), generator=torch.Generator().manual_seed(0))
    T = transition.uniform(10)
    times = []
    for _ in range(5):
        start = time.thread_time()  # not the clock's: other processes must not fail this test
        transition.sample(y, T, 3)
        times.append(time.thread_time() - start)
    assert min(times) < 0.1


def test_counting_gives_back_T_from_infinitely_many_labels():
    T = transition.biased(5)
    y = torch.arange(5)
    assert torch.allclose(transition.oracle_empirical(y, T), T)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: transition.uniform(2), "ordinary labels in disguise"),
        (
            lambda: transition.human("clcifar11"),
            "unknown published transition matrix 'clcifar11': did you mean clcifar10",
        ),
        (lambda: transition.biased(10, "mild"), "unknown strength 'mild'"),
        (
            lambda: transition.biased(10, (0.5, 0.6)),
            "the groups' shares must be at least 0 and sum to 1; got [0.5, 0.6].",
        ),
        (lambda: transition.noisy(transition.uniform(4), 1.2), "the noise rate must be 0 to 1; got 1.2."),
        (
            lambda: transition.validate(torch.ones(3, 4)),
            "T must be a (K, K) matrix, a row per true class; got shape (3, 4).",
        ),
        (
            lambda: transition.validate(torch.ones(3, 3)),
            "rows of T must sum to 1; row 0 sums to 3. Divide each row by its sum.",
        ),
        (lambda: transition.validate([[0, 0.9, 0.5], [0.5, 0, 0.5], [0.5, 0.1, 0]]), "Its columns do: pass T.T."),
        (lambda: transition.validate([[2.0, -1, 0], [0, 1, 0], [0, 0, 1]]), "T must hold probabilities"),
        (lambda: transition.validate(transition.uniform(4), 5), "got 4 rows for 5 classes"),
        (lambda: transition.solve(torch.full((4, 4), 0.25), torch.eye(4)), "T has no usable inverse (condition number"),
        (lambda: transition.sample([0, 4], transition.uniform(4)), "y_true must be (n,) class numbers 0 to 3"),
        (
            lambda: transition.sample([0], transition.uniform(4), 4, replace=False),
            "n_labels must be 1 to 3, the classes T can name for every true class; got 4.",
        ),
        (lambda: transition.sample([0], transition.uniform(4), 0), "n_labels must be at least 1; got 0."),
        (lambda: transition.oracle_empirical([0], labels.from_indices([1], 3)), "class 1 has no labelled instance"),
        (
            lambda: transition.oracle_empirical([0, 1], labels.from_indices([1], 3)),
            "one class number per row of comp; got (2,) for 1 rows",
        ),
    ],
)
def test_bad_input_is_told_what_is_wrong_and_the_way_out(call, text):
    with pytest.raises(InputError) as error:
        call()
    assert text in str(error.value)
