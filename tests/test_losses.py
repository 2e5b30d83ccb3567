import plain_losses as plain
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay import labels, losses, transition
from naysay.errors import InputError
from naysay.losses import LOSSES, logspace

N, K = 12, 5
SEPARABLE = [name for name, loss in LOSSES.items() if isinstance(loss, losses.Separable)]
PER_INSTANCE = [name for name, loss in LOSSES.items() if not isinstance(loss, losses.PerClassRisk)]


def random_logits(scale=2.0, n=N, seed=0):
    return scale * torch.randn(n, K, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def random_soft(n=N, seed=1):
    return torch.rand(n, K, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).softmax(1)


def random_T(seed=2, K=K):
    noise = torch.rand(K, K, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    T = transition.uniform(K) + 0.1 * noise
    return T / T.sum(1, keepdim=True)


HARD = torch.arange(N) % K


def test_the_table_is_the_whole_table_of_the_design():
    early = {"pc", "ure", "ure-nn", "ure-ga", "scl-nl", "scl-exp", "fwd", "mcl-mae", "mcl-exp", "mcl-log"}
    assert set(LOSSES) == early | {"l-uw", "l-w", "op", "op-w", "scarce", "cpe-i", "cpe-f", "cpe-t"}
    assert all(name == row.name and row.paper for name, row in LOSSES.items())


@pytest.mark.parametrize("T", [None, random_T()], ids=["uniform", "random T"])
@pytest.mark.parametrize("name", plain.SINGLE)
def test_each_single_label_loss_is_its_papers_formula(name, T):
    logits = random_logits()
    matrix = (transition.uniform(K) if T is None else T).tolist()
    expected = sum(plain.SINGLE[name](g, int(k), matrix) for g, k in zip(logits.tolist(), HARD, strict=True)) / N
    assert float(losses.compute(name, logits, labels.from_indices(HARD, K), T)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", plain.SETS)
def test_each_multiple_label_loss_is_its_papers_formula(name):
    logits = random_logits()
    sets = [[i % K, (i + 1) % K, (i + 3) % K][: 1 + i % 3] for i in range(N)]
    expected = sum(plain.SETS[name](g, s) for g, s in zip(logits.tolist(), sets, strict=True)) / N
    # comp is float32, so a third is a third to seven digits
    assert float(losses.compute(name, logits, labels.from_indices(sets, K))) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", plain.SETS)
def test_soft_labels_pay_each_labels_loss_averaged_under_them(name):
    """R_LA of arXiv 2305.08344, eq:loss-func: sum_k z_k l(k, g), l the loss of the one label k."""
    logits, soft = random_logits(), random_soft()
    alone = [[plain.SETS[name](g, [k]) for k in range(K)] for g in logits.tolist()]
    expected = float((soft * torch.tensor(alone, dtype=torch.float64)).sum(1).mean())
    assert float(losses.compute(name, logits, soft)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", plain.SETS)
def test_a_row_that_names_every_class_alike_costs_nothing_and_pulls_nowhere(name):
    comp = torch.cat([torch.full((1, K), 1 / K), labels.from_indices([2], K)])
    logits = random_logits(n=2).requires_grad_()
    value = losses.compute(name, logits, comp)
    (gradient,) = torch.autograd.grad(value, logits)
    alone = losses.compute(name, logits.detach()[1:], comp[1:])
    assert float(value.detach()) == pytest.approx(float(alone) / 2)
    assert not bool(gradient[0].any())
    assert bool(gradient[1].isfinite().all())
    assert bool(gradient[1].any())


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("name", plain.BATCH)
def test_corrected_risks_clip_per_ordinary_class(name, seed):
    logits = random_logits(scale=4.0, seed=seed)
    T = random_T()
    risks = plain.class_risks(logits.tolist(), HARD.tolist(), T.tolist())
    assert min(risks) < 0 < max(risks)  # or the correction would not be tested
    value = float(losses.compute(name, logits, labels.from_indices(HARD, K), T))
    assert value == pytest.approx(plain.BATCH[name](risks), rel=1e-10)


@pytest.mark.parametrize("T", [None, random_T()], ids=["uniform", "random T"])
def test_scarce_is_its_papers_formula(T):
    logits = random_logits(scale=4.0, seed=3)
    matrix = (transition.uniform(K) if T is None else T).tolist()
    value = float(losses.compute("scarce", logits, labels.from_indices(HARD, K), T))
    assert value == pytest.approx(plain.scarce(logits.tolist(), HARD.tolist(), matrix), rel=1e-10)


def test_scarce_is_unbiased_where_a_wrong_class_is_named_alike_whatever_the_true_one():
    """Before the absolute value: the mean over labels is the risk of one class against the rest."""
    c = torch.tensor([0.3, 0.2, 0.1, 0.25, 0.15], dtype=torch.float64)
    T = c.repeat(K, 1).masked_fill(torch.eye(K, dtype=torch.bool), 0.0)  # rows need not sum to 1 for the identity
    logits = random_logits(n=7)
    for y in range(K):
        terms = LOSSES["scarce"].risks(logits, T[y].repeat(7, 1), 1 / c)
        unlabelled = (1 - T[y].sum()) * torch.nn.functional.softplus(-logits)  # comp's rows are taken to sum to 1
        signs = 1 - 2 * torch.eye(K, dtype=torch.float64)[y]
        against_the_rest = torch.nn.functional.softplus(signs * logits)
        got = terms[:, :K] + unlabelled + terms[:, K:]
        torch.testing.assert_close(got, against_the_rest)


def test_gradient_ascent_descends_the_plain_risk_while_no_class_is_negative():
    logits = torch.zeros(K, K, dtype=torch.float64)  # one label of each class: every r_j is positive
    comp = labels.from_indices(torch.arange(K), K)
    assert float(losses.compute("ure-ga", logits, comp)) == pytest.approx(float(losses.compute("ure", logits, comp)))


def test_values_computed_by_hand():
    logits = torch.tensor([[0.0, 0.0, 0.0]], dtype=torch.float64)
    comp = labels.from_indices([0], 3)
    by_hand = {
        "pc": 1.0,  # two comparisons at sigmoid(0)
        "ure": 3 * 1.0986122886681098 - 2 * 1.0986122886681098,  # three times log 3, less twice
        "scl-nl": 0.4054651081081644,  # -log(2/3)
        "scl-exp": 1.3956124250860895,  # e^(1/3)
        "fwd": 1.0986122886681098,
        "l-uw": 1.0986122886681098,
        "l-w": 1.0986122886681098 * (1 + (2 / 3) / 2),
        "op": 1.0986122886681098,
        "op-w": 1.0986122886681098 / 9,
        "mcl-mae": 2 / 3,  # twice 1/3
        "mcl-exp": 2 * 0.5134171190325920,  # e^(-2/3)
        "mcl-log": 2 * 0.4054651081081644,
        "cpe-i": 1.0986122886681098,
    }
    for name, value in by_hand.items():
        assert float(losses.compute(name, logits, comp)) == pytest.approx(value, rel=1e-12), name


@pytest.mark.parametrize("name", LOSSES)
def test_gradient_matches_finite_differences(name):
    comp, T = random_soft(), random_T()
    # the step is not smooth where a class's risk crosses zero; these logits are away from that
    logits = random_logits().requires_grad_()
    assert torch.autograd.gradcheck(lambda g: losses.compute(name, g, comp, T), logits, eps=1e-6, atol=1e-6, rtol=1e-5)


def test_the_trained_transition_has_a_gradient_and_stays_a_transition():
    learned = losses.trainable_transition(random_T())
    comp, logits = random_soft(), random_logits()
    losses.compute("cpe-t", logits, comp, learned()).backward()
    assert float(learned.log_T.grad.abs().sum()) > 0
    assert torch.allclose(learned().sum(1), torch.ones(K))
    assert torch.allclose(learned().double(), random_T(), atol=1e-6)  # it starts at T, in float32


@pytest.mark.parametrize("K", [3, 4, 10])
@pytest.mark.parametrize("seed", range(4))
def test_ure_is_unbiased(K, seed):
    """sum_k T[y, k] L[., k] equals the cross entropy of y exactly, for any T that can be solved with."""
    T = random_T(seed, K)
    logits = 3 * torch.randn(7, K, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    for y in range(K):
        rows = T[y].repeat(len(logits), 1)
        for name in ("ure", "ure-nn"):
            loss = LOSSES[name]
            value = loss.terms(logits, rows, losses.prepare(name, T, logits)).sum() / len(logits)
            expected = torch.nn.functional.cross_entropy(logits, torch.full((len(logits),), y))
            assert float(value) == pytest.approx(float(expected), rel=1e-9)  # the solve's rounding


@pytest.mark.parametrize("name", PER_INSTANCE)
def test_an_instances_loss_does_not_depend_on_the_others(name):
    logits, comp, T = random_logits(), random_soft(), random_T()
    prepared = losses.prepare(name, T, logits)
    together = LOSSES[name].terms(logits, comp, prepared)
    alone = torch.cat([LOSSES[name].terms(logits[i : i + 1], comp[i : i + 1], prepared) for i in range(N)])
    assert torch.allclose(together, alone, rtol=1e-12)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.sampled_from(SEPARABLE), st.floats(0, 1), st.integers(0, 5))
def test_separable_losses_are_linear_in_the_labels(name, share, seed):
    logits, T = random_logits(seed=seed), random_T(seed)
    a, b = random_soft(seed=seed + 1), random_soft(seed=seed + 2)
    mixed = losses.compute(name, logits, share * a + (1 - share) * b, T)
    apart = share * losses.compute(name, logits, a, T) + (1 - share) * losses.compute(name, logits, b, T)
    assert torch.allclose(mixed, apart, rtol=1e-10)


@pytest.mark.parametrize("name", PER_INSTANCE)
def test_several_labels_are_the_mean_of_the_single_ones_or_a_loss_of_the_set(name):
    if name.startswith("mcl"):
        one, two = labels.from_indices([[0]], K), labels.from_indices([[0, 1]], K)
        logits = torch.tensor([[1.0, 0, 0, 0, 0]], dtype=torch.float64)
        assert float(losses.compute(name, logits, two)) != pytest.approx(float(losses.compute(name, logits, one)))
        return
    logits = random_logits(n=1)
    both = losses.compute(name, logits, labels.from_indices([[0, 1]], K))
    singles = [losses.compute(name, logits, labels.from_indices([k], K)) for k in (0, 1)]
    assert torch.allclose(both, sum(singles) / 2, rtol=1e-6)  # comp is float32


EXTREMES = [
    [60, -60, -60, -60, -60],
    [-60, 60, 60, 60, 60],
    [60, 60, -60, -60, -60],
    [-60, -60, -60, -60, -60],
    [60, 0, 0, 0, -60],
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LOSSES)
def test_nothing_becomes_nan_at_logits_of_sixty(name, dtype):
    for soft in (False, True):
        comp = random_soft(len(EXTREMES)) if soft else labels.from_indices([0] * len(EXTREMES), K)
        for T in (None, random_T()):
            logits = torch.tensor(EXTREMES, dtype=dtype, requires_grad=True)
            value = losses.compute(name, logits, comp, T)
            (gradient,) = torch.autograd.grad(value, logits)
            assert bool(value.isfinite())
            assert bool(gradient.isfinite().all())
            assert value.dtype == dtype


UNBOUNDED = [name for name, row in LOSSES.items() if not row.saturates]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", [name for name in UNBOUNDED if name not in ("ure", "ure-nn", "cpe-i")])
def test_a_confidently_wrong_prediction_still_has_a_gradient(name, dtype):
    """The named class scores 60 and all others -60: gradient descent must lower the named class's score."""
    logits = torch.tensor([EXTREMES[0]], dtype=dtype, requires_grad=True)
    (gradient,) = torch.autograd.grad(losses.compute(name, logits, labels.from_indices([0], K)), logits)
    assert float(gradient[0, 0]) > 0.1


@pytest.mark.parametrize("name", [name for name, row in LOSSES.items() if row.saturates])
def test_losses_said_to_saturate_are_bounded(name):
    """The exception above is the formula's, not our arithmetic's: the loss has a finite limit; its slope vanishes."""
    comp = labels.from_indices([0], K)
    logits = [torch.tensor([[c, 0, 0, 0, 0]], dtype=torch.float64) for c in (40.0, 400.0)]
    at = [float(losses.compute(name, g, comp)) for g in logits]
    assert at[0] == pytest.approx(at[1], rel=1e-12)


@pytest.mark.parametrize("kind", ["uniform", "biased", "zeros"])
def test_of_many_classes_the_mix_is_the_same_and_takes_no_cube(kind, monkeypatch):
    K, far = 40, torch.tensor([0.0, 60.0, 300.0])
    T = {"uniform": transition.uniform(K), "biased": transition.biased(K), "zeros": torch.eye(K).roll(1, 1).double()}[
        kind
    ]
    logits = torch.randn(3, K, generator=torch.Generator().manual_seed(0))
    logits[range(3), [4, 5, 6]] += far
    if kind == "zeros":  # where neither the likeliest nor the second name a class, only a floor is left
        logits[2] /= 300
    found, wanted = [], []
    for most, of in ((32, found), (100, wanted)):
        monkeypatch.setattr(logspace, "MANY", most)
        x = logits.clone().requires_grad_()
        mixed = logspace.log_mix(x.log_softmax(1), T.float())
        mixed.gather(1, torch.tensor([[4], [5], [6]])).sum().backward()
        of += [mixed.detach(), x.grad]
    assert bool(found[1].isfinite().all())
    # eight digits of float32, of numbers up to 300
    torch.testing.assert_close(found[0], wanted[0], atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(found[1], wanted[1], atol=1e-5, rtol=1e-4)


def test_eps_is_the_floor_that_published_code_has():
    comp = labels.from_indices(HARD, K)
    logits = random_logits()
    p = logits.softmax(1)[torch.arange(N), HARD]
    expected = float(-(1 - p + 1e-6).log().mean())
    assert float(losses.compute("scl-nl", logits, comp, eps=1e-6)) == pytest.approx(expected, rel=1e-12)
    extreme = torch.tensor([EXTREMES[0]], dtype=torch.float64)
    floored = float(losses.compute("scl-nl", extreme, labels.from_indices([0], K), eps=1e-6))
    assert floored == pytest.approx(13.815510557964274)  # -log 1e-6: with the floor, the gradient here is gone


@pytest.mark.parametrize("name", LOSSES)
def test_float32_agrees_with_float64(name):
    comp, T, logits = random_soft(), random_T(), random_logits()
    single = losses.compute(name, logits.float(), comp, T)
    assert single.dtype == torch.float32
    # op-w takes exp of exp
    assert float(single) == pytest.approx(float(losses.compute(name, logits, comp, T)), rel=2e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_unlabelled_rows_cost_nothing(name):
    logits = random_logits().requires_grad_()
    value = losses.compute(name, logits, torch.zeros(N, K))
    (gradient,) = torch.autograd.grad(value, logits)
    assert float(value.detach()) == 0
    assert not bool(gradient.any())


def test_prediction_is_the_largest_logit_or_the_nearest_row_of_T():
    logits, T = random_logits(), transition.biased(K, "strong", 4)
    assert torch.equal(losses.predict("scl-nl", logits, T), logits.argmax(1))
    estimate = torch.log(T + 1e-9)
    assert torch.equal(losses.predict("cpe-i", estimate, T), torch.arange(K))
    assert torch.equal(losses.predict("cpe-f", 30 * torch.eye(K), T), torch.arange(K))


@pytest.mark.parametrize("name", LOSSES)
def test_the_largest_score_and_probability_are_those_of_the_prediction(name):
    for T in (None, random_T(), transition.biased(K, "strong", 4)):
        logits = random_logits(n=200)
        scores = losses.scores(name, logits, T)
        p = losses.probabilities(name, scores)
        assert torch.allclose(p.sum(1), torch.ones(200, dtype=torch.float64))
        assert torch.equal(p.argmax(1), losses.predict(name, logits, T))
        assert bool((p >= 0).all())
        if T is None and name != "cpe-i":  # whose outputs are no classes' but labels'
            assert torch.allclose(p, logits.softmax(1), atol=1e-6)  # closeness is in float32


def test_cpe_i_under_uniform_labels_predicts_the_least_named_class():
    logits = random_logits()
    assert torch.equal(losses.predict("cpe-i", logits), logits.argmin(1))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: losses.compute("slc-nl", random_logits(), random_soft()),
            "unknown loss 'slc-nl': did you mean scl-nl",
        ),
        (
            lambda: losses.compute("pc", random_logits(), HARD),
            "logits and comp must both be (n, K), one column per class; got (12, 5) and (12,).",
        ),
        (
            lambda: losses.compute("pc", random_logits(), random_soft(), transition.uniform(4)),
            "got 4 rows for 5 classes",
        ),
        (
            lambda: losses.compute("ure", random_logits(), random_soft(), torch.full((K, K), 0.2)),
            "Use a loss that needs no inverse (fwd, scl-nl, cpe-f)",
        ),
        (
            lambda: losses.compute("pc", random_logits(), random_soft(), eps=1e-6),
            "loss pc has no logarithm that takes eps (got eps=1e-06)",
        ),
    ],
)
def test_bad_input_is_told_what_is_wrong_and_the_way_out(call, text):
    with pytest.raises(InputError) as error:
        call()
    assert text in str(error.value)
