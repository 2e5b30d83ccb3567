"""The sharing metrics against their definitions, by hand and in plain loops."""

import pytest
import torch

from naysay import figures, labels, metrics, transition
from naysay.errors import InputError
from naysay.seeds import stream
from naysay.transition import explicit_sharing

K = 4


def example(n=60, seed=0, n_labels=1):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, K, (n,), generator=generator)
    comp = labels.from_indices(transition.sample(y, transition.uniform(K), n_labels, seed, replace=False), K)
    return torch.randn(n, K, generator=generator), comp, y


def test_accuracy_is_hits_over_n():
    assert metrics.oracle_accuracy(torch.tensor([0, 1, 2]), torch.tensor([0, 2, 2])) == 2 / 3
    assert metrics.oracle_accuracy(torch.eye(3), [0, 1, 1]) == 2 / 3
    with pytest.raises(InputError, match=r"got \(2,\) for \(3,\) true classes"):
        metrics.oracle_accuracy(torch.tensor([0, 1]), torch.tensor([0, 1, 2]))


@pytest.mark.parametrize("n_labels", [1, 2])
def test_confidence_and_efficiency_match_plain_loops(n_labels):
    logits, comp, y = example(n_labels=n_labels)
    p = logits.softmax(1).tolist()
    named = [{k for k in range(K) if comp[i, k] > 0} for i in range(len(y))]
    seen = [sum(p[i][k] for k in named[i]) / n_labels for i in range(len(y))]
    outside = [sum(p[i][k] for k in range(K) if k != y[i] and k not in named[i]) for i in range(len(y))]
    unseen = [mass / (K - 1 - n_labels) for mass in outside]
    confidence = metrics.oracle_confidence(logits, comp, y)
    # float32 softmax against Python floats
    assert confidence.seen == pytest.approx(sum(seen) / len(y), abs=1e-6)
    assert confidence.unseen == pytest.approx(sum(unseen) / len(y), abs=1e-6)
    assert confidence.augmented is None
    by_definition = 1 - sum((K - 1) / (K - 1 - n_labels) * mass for mass in outside) / len(y)
    assert metrics.oracle_sharing_efficiency(logits, comp, y) == pytest.approx(by_definition, abs=1e-6)


def test_the_papers_pair_of_numbers_belongs_together():
    # unseen confidence 0.0073 at K = 10 is a sharing efficiency of 93.43 % (arXiv 2305.08344)
    y = torch.zeros(1, dtype=torch.long)
    p = torch.tensor([[1 - 8 * 0.0073 - 0.001, 0.001, *[0.0073] * 8]])
    comp = labels.from_indices([1], 10)
    assert metrics.oracle_confidence(p.log(), comp, y).unseen == pytest.approx(0.0073, abs=1e-6)
    assert metrics.oracle_sharing_efficiency(p.log(), comp, y) == pytest.approx(0.9343, abs=1e-4)


def test_efficiency_is_one_for_the_truth_and_one_in_K_for_ignorance():
    _, comp, y = example()
    assert metrics.oracle_sharing_efficiency(torch.nn.functional.one_hot(y, K) * 100.0, comp, y) == pytest.approx(1)
    assert metrics.oracle_sharing_efficiency(torch.zeros(len(y), K), comp, y) == pytest.approx(1 / K)


def test_augmented_confidence_is_weighted_by_Z_over_wrong_classes():
    logits = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    Z = torch.tensor([[0.5, 0.25, 0.25, 0.0]])
    confidence = metrics.oracle_confidence(logits, labels.from_indices([1], K), torch.tensor([0]), Z)
    assert confidence.augmented == pytest.approx((0.25 * 0.2 + 0.25 * 0.3) / 0.5, abs=1e-6)


@pytest.mark.parametrize("sample", [None, 25])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_neighbouring_noise_matches_a_plain_loop(sample, metric):
    points, comp, y = example(n=80)
    comp[3] = 0  # an unlabelled neighbour gives no label
    seen = torch.nn.functional.normalize(points, dim=1) if metric == "cosine" else points
    distance = torch.cdist(seen, seen).fill_diagonal_(float("inf"))
    near = distance.argsort(1)[:, :10].tolist()
    wrong = [[float(comp[j, y[i]]) for j in near[i] if j != 3] for i in range(80)]
    centres = range(80) if sample is None else stream(0, "neighbouring noise").choice(80, sample, replace=False)
    expected = sum(sum(wrong[i]) for i in centres) / sum(len(wrong[i]) for i in centres)
    found = metrics.oracle_neighboring_noise(points, comp, y, 10, metric=metric, sample=sample)
    assert found == pytest.approx(expected, abs=1e-9)


def test_rows_of_zeros_as_rectified_units_give_them_are_no_error():
    points, comp, y = example()
    points[:3] = 0
    assert 0 < metrics.oracle_neighboring_noise(points, comp, y, 5) < 1
    with pytest.raises(InputError, match="unknown metric 'cosin': did you mean cosine"):
        metrics.oracle_neighboring_noise(points, comp, y, 5, metric="cosin")


def test_a_sampled_centre_is_not_its_own_neighbour():
    # one row per point of a line with its own noisy label: its own would count as noise, its neighbours' would not
    points = torch.arange(40.0)[:, None]
    y = torch.arange(40) % 2
    comp = torch.nn.functional.one_hot(y, K).float()
    assert metrics.oracle_neighboring_noise(points, comp, y, 1, metric="euclidean", sample=20) == 0


def test_metrics_refuse_rows_that_do_not_match():
    logits, comp, y = example()
    with pytest.raises(InputError, match=r"logits and comp must be \(n, K\) and y_true \(n,\)"):
        metrics.oracle_confidence(logits[:5], comp, y)
    with pytest.raises(InputError, match="must describe the same rows; got 5, 60 and 60"):
        metrics.oracle_neighboring_noise(logits[:5], comp, y)


def test_explicit_sharing_adds_half_of_the_unseen_labels_and_never_the_truth():
    y = torch.arange(300) % 10
    comp = labels.from_indices(transition.sample(y, transition.uniform(10), seed=0), 10)
    shared = explicit_sharing(comp, y, seed=1)
    assert torch.equal((shared > 0).sum(1), torch.full((300,), 5))  # one seen, and half of eight
    assert torch.allclose(shared[shared > 0], torch.tensor(0.2))
    assert (shared.gather(1, y[:, None]) == 0).all()
    assert ((shared > 0) | (comp == 0)).all()
    assert torch.equal(shared, explicit_sharing(comp, y, seed=1))
    assert not torch.equal(shared, explicit_sharing(comp, y, seed=2))
    counts = ((shared > 0) & (comp == 0)).sum(0).float()
    # every class about equally often: 120, give or take a binomial's deviation
    assert counts.std() < 4 * (300 * 0.4 * 0.6) ** 0.5


def test_explicit_sharing_keeps_noise_gives_labels_to_the_unlabelled_and_knows_its_limits():
    comp = labels.from_indices([[0, 1], [-1, -1]], K)  # the first row names its own class
    shared = explicit_sharing(comp, torch.tensor([0, 3]), fraction=1.0)
    assert torch.allclose(shared, torch.tensor([[0.25, 0.25, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3, 0]]))
    assert torch.equal(explicit_sharing(comp, torch.tensor([0, 3]), fraction=0.0), comp)
    with pytest.raises(InputError, match="fraction must be 0 to 1; got 2"):
        explicit_sharing(comp, torch.tensor([0, 3]), fraction=2)


def test_every_figure_that_is_measured_stands_in_the_table_once():
    points, comp, y = example()

    class Model:
        def logits(self, x):
            return points

        def represent(self, x):
            return points

        def decode(self, logits):
            return logits.argmax(1)

    class Moment:
        epoch, last, predictor = 1, True, Model()

    observe = metrics.oracle_observer(points, comp, y, x_test=points, y_test=y, augmented=comp, noise_neighbors=5)
    names = [name for figure in figures.FIGURES for name in (figure.name, *figure.also)]
    assert len(names) == len(set(names))
    assert set(observe(Moment)) <= set(names)
    # a run and the laboratory have one figure under two keys
    assert figures.find_figure("wrong_mass") is figures.find_figure("mass_on_true")
    assert figures.find_figure("augmented_accuracy").words == "least named class is true"
    assert figures.find_figure("knn_accuracy").words == "knn accuracy"
