"""What works on tensors gives the CPU's answer on the GPU, and leaves it there."""

import pytest
import torch

import naysay
from naysay import (
    decoding,
    estimation,
    holdout,
    labels,
    losses,
    metrics,
    neighbors,
    selection,
    shares,
    transition,
)
from naysay.augmentation import SCHEMES, propagate, weights

CLASSES = (3, 10, 1000)
ROWS = 1500


def drawn(n_classes, n_labels=1, n=ROWS):
    """Class numbers, and labels of a biased T."""
    y_true = torch.arange(n) % n_classes
    T = transition.biased(n_classes, "weak", seed=1)
    return y_true, T, labels.from_indices(transition.sample(y_true, T, n_labels, seed=0), n_classes)


def clusters(n_classes, n=ROWS, d=32):
    numbers = torch.Generator().manual_seed(0)
    centres = 2 * torch.randn(n_classes, d, generator=numbers)
    return centres[torch.arange(n) % n_classes] + torch.randn(n, d, generator=numbers)


def same(ours, theirs, *, device, **tolerance):
    """`ours` lies on the device and holds the CPU's numbers."""
    assert ours.device.type == device.type
    torch.testing.assert_close(ours.cpu(), theirs, **tolerance)


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("loss", losses.LOSSES)
def test_loss_and_gradient_equal_the_cpu(loss, n_classes, device):
    _, T, comp = drawn(n_classes, 2, 64)
    start = torch.randn(64, n_classes, generator=torch.Generator().manual_seed(0))
    values, gradients = [], []
    for where in (device, torch.device("cpu")):
        logits = start.to(where).requires_grad_()
        values.append(losses.compute(loss, logits, comp.to(where), T))
        gradients.append(torch.autograd.grad(values[-1], logits)[0])
    same(values[0], values[1], device=device, rtol=1e-4, atol=1e-5)
    same(gradients[0], gradients[1], device=device, rtol=1e-3, atol=1e-5)
    predicted = losses.predict(loss, start.to(device), T)
    assert predicted.device.type == device.type


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_exact_graph_equals_the_cpu(metric, device):
    rows = clusters(10)
    ours = neighbors.build(rows.to(device), 64, metric=metric)
    theirs = neighbors.build(rows, 64, metric=metric)
    same(ours.indices, theirs.indices, device=device)
    same(ours.distances, theirs.distances, device=device)


def test_neighbours_of_new_rows_equal_the_cpu(device):
    rows, new = clusters(10), clusters(7, 300)
    ours, theirs = (
        neighbors.query(rows.to(device), new.to(device), 16),
        neighbors.query(rows, new, 16),
    )
    same(ours.indices, theirs.indices, device=device)


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("rounds", [1, 100])
def test_propagation_equals_the_cpu(n_classes, rounds, device):
    graph, (_, _, comp) = neighbors.build(clusters(10), 64), drawn(n_classes)
    W = weights.by_distance(graph.distances, 0.01)
    settings = {"alpha": 0.1, "rounds": rounds}
    ours = propagate(graph.indices.to(device), W.to(device), comp.to(device), **settings).labels
    same(
        ours,
        propagate(graph.indices, W, comp, **settings).labels,
        device=device,
        rtol=1e-4,
        atol=1e-7,
    )


@pytest.mark.parametrize("knowledge", ["nothing", "shares", "T", "both"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_augment_equals_the_cpu(scheme, knowledge, device):
    rows, (_, T, comp) = clusters(10), drawn(10)
    settings = {"n_neighbors": 32, "gamma": 0.01 if SCHEMES[scheme].uses_gamma else 1.0}
    if knowledge in ("shares", "both"):
        settings["class_shares"] = "even"
    if knowledge in ("T", "both"):
        settings["transition"] = T
    ours = naysay.augment(rows.to(device), comp.to(device), scheme, **settings)
    same(ours, naysay.augment(rows, comp, scheme, **settings), device=device, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("n_classes", CLASSES)
def test_augment_of_any_number_of_classes_equals_the_cpu(n_classes, device):
    rows, (_, _, comp) = clusters(10), drawn(n_classes, 3)
    settings = {"gamma": "auto", "class_shares": "even"}
    ours = naysay.augment(rows.to(device), comp.to(device), "dms", **settings)
    same(ours, naysay.augment(rows, comp, "dms", **settings), device=device, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("auto", ["n_neighbors", "alpha", "gamma", "whiten"])
def test_settings_chosen_by_hidden_labels_equal_the_cpu(auto, device):
    rows, (_, _, comp) = clusters(5, d=16), drawn(5, 3)
    settings = {"scheme": "dms", "class_shares": "even", "gamma": 0.02} | {auto: "auto"}
    ours = naysay.augment(rows.to(device), comp.to(device), **settings)
    same(ours, naysay.augment(rows, comp, **settings), device=device, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("n_labels", [1, 5])
def test_counts_of_labels_equal_the_cpu(n_classes, n_labels, device):
    comp = drawn(n_classes, n_labels)[2]
    for ours, theirs in zip(labels.tally(comp.to(device)), labels.tally(comp), strict=True):
        same(ours, theirs, device=device)


def test_transition_equals_the_cpu(device):
    y_true, T, comp = drawn(10, 3)
    same(
        transition.sample(y_true.to(device), T.to(device), 3),
        transition.sample(y_true, T, 3),
        device=device,
    )
    same(
        transition.sample(y_true.to(device), T, 3, replace=False),
        transition.sample(y_true, T, 3, replace=False),
        device=device,
    )
    same(transition.popularity(comp.to(device)), transition.popularity(comp), device=device)
    ours = transition.oracle_empirical(y_true.to(device), comp.to(device))
    same(ours, transition.oracle_empirical(y_true, comp), device=device)
    ours = transition.explicit_sharing(comp.to(device), y_true.to(device))
    same(ours, transition.explicit_sharing(comp, y_true), device=device)


@pytest.mark.parametrize("class_shares", ["even", [0.5, 0.2, 0.1, 0.1, 0.1]])
def test_posteriors_under_class_shares_equal_the_cpu(class_shares, device):
    comp = drawn(5, 3)[2]
    Z = naysay.augment(clusters(5), comp, "dms", gamma="auto")
    ours = shares.find(Z.to(device), comp.to(device), class_shares).posterior(Z.to(device))
    same(ours, shares.find(Z, comp, class_shares).posterior(Z), device=device, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("criterion", selection.CRITERIA)
def test_selection_equals_the_cpu(criterion, device):
    y_true, T, comp = drawn(10, 3)
    logits = 3 * torch.nn.functional.one_hot(y_true, 10) + torch.randn(ROWS, 10)
    estimate = selection.CRITERIA[criterion].estimate
    outputs = logits.argmax(1) if criterion == "ure-accuracy" else logits
    ours, theirs = estimate(outputs.to(device), comp.to(device), T), estimate(outputs, comp, T)
    assert ours.value == pytest.approx(theirs.value, rel=1e-4)
    assert ours.standard_error == pytest.approx(theirs.standard_error, rel=1e-4)


def test_estimates_equal_the_cpu(device):
    y_true, _, comp = drawn(5, 3)
    rows = clusters(5)
    ours = estimation.estimate_transition(comp.to(device), rows.to(device))
    theirs = estimation.estimate_transition(comp, rows)
    torch.testing.assert_close(ours.T, theirs.T, rtol=1e-4, atol=1e-6)
    ours = estimation.estimate_accuracy(y_true.to(device), comp.to(device), ours)
    theirs = estimation.estimate_accuracy(y_true, comp, theirs)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-4)


def test_holding_out_before_sharing_equals_the_cpu(device):
    x, comp = clusters(5), drawn(5)[2]
    settings = {"scheme": "dms", "gamma": "auto", "held_out": 0.2}
    ours = holdout.prepare(x.to(device), comp.to(device), features=x.to(device), **settings)
    theirs = holdout.prepare(x, comp, features=x, **settings)
    same(ours.rows, theirs.rows, device=device)
    same(ours.comp, theirs.comp, device=device, rtol=1e-3, atol=1e-5)
    same(ours.held_out.comp, theirs.held_out.comp, device=device)


@pytest.mark.parametrize("class_shares", [None, "even"])
def test_decoding_equals_the_cpu(class_shares, device):
    rows, (_, T, comp) = clusters(5), drawn(5, 3)
    known = {"T": T, "class_shares": class_shares}
    ours, _ = decoding.choose_k(rows.to(device), comp.to(device), **known)
    theirs, _ = decoding.choose_k(rows, comp, **known)
    assert ours.k == theirs.k
    new = clusters(5, 200)
    same(ours.predict(new.to(device)), theirs.predict(new), device=device)


def test_figures_by_the_truth_equal_the_cpu(device):
    y_true, _, comp = drawn(5, 3)
    Z = naysay.augment(clusters(5), comp, "dms", gamma="auto")
    logits = torch.randn(ROWS, 5, generator=torch.Generator().manual_seed(0))
    ours, theirs = ([one.to(where) for one in (Z, comp, y_true, logits)] for where in (device, "cpu"))
    for figure in (
        lambda Z, comp, y_true, logits: metrics.oracle_argmin_accuracy(Z, y_true),
        lambda Z, comp, y_true, logits: metrics.oracle_sharing_efficiency(logits, comp, y_true),
        lambda Z, comp, y_true, logits: metrics.oracle_confidence(logits, comp, y_true, Z).augmented,
        lambda Z, comp, y_true, logits: metrics.oracle_neighboring_noise(logits, comp, y_true, 32),
    ):
        assert figure(*ours) == pytest.approx(figure(*theirs), rel=1e-4)
