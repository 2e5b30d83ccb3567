"""Algorithm 1 against its closed form and plain loops, and everything `augment` accepts, refuses and reports."""

import inspect
import json
import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay import augmentation, labels, neighbors
from naysay.augmentation import (
    SCHEMES,
    Scheme,
    Sharing,
    augment,
    augment_report,
    describe,
    neighbors_for,
    propagate,
    share,
    weights,
)
from naysay.errors import InputError
from naysay.estimators import LabelAugmenter
from naysay.seeds import stream

# float32 sums of 64 weighted entries round by about 1e-7, and alpha = 0.1 lets at most ten rounds of that add up
SINGLE = 1e-6

quick = settings(derandomize=True, max_examples=40, deadline=None)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    # the work here is tiny: on a busy machine threads would mostly wait for each other
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def dense_graph(features: torch.Tensor, k: int) -> neighbors.Graph:
    """The exact graph by sorting all distances, independent of naysay.neighbors' search."""
    x = features.double()
    distances = (x[:, None] - x[None]).square().sum(2)
    distances.fill_diagonal_(torch.inf)
    values, indices = distances.sort(dim=1, stable=True)
    return neighbors.from_arrays(indices[:, :k], values[:, :k].float())


def plain_loop(
    graph: neighbors.Graph, comp: torch.Tensor, weigh: str, alpha: float, gamma: float, rounds: int
) -> np.ndarray:
    """Algorithm 1 as the paper writes it, one instance and one neighbour at a time, in double precision."""
    indices, distances, y = graph.indices.numpy(), graph.distances.double().numpy(), comp.double().numpy()
    z = y.copy()
    for _ in range(rounds):
        new = np.zeros_like(z)
        for i in range(len(z)):
            w = [1 / (j + 1) if weigh == "rank" else np.exp(-gamma * distances[i, j]) for j in range(graph.k)]
            for j in range(graph.k):
                new[i] += (1 - alpha) * w[j] / sum(w) * z[indices[i, j]]
            new[i] += alpha * y[i]
        z = new
    sums = z.sum(1, keepdims=True)
    return np.divide(z, sums, out=np.zeros_like(z), where=sums > 0)


def example(
    n: int, d: int, k: int, n_classes: int, *, unlabelled: float = 0.0
) -> tuple[torch.Tensor, neighbors.Graph, torch.Tensor]:
    draw = stream(n, "augmentation test")
    features = torch.from_numpy(draw.standard_normal((n, d)) / np.sqrt(d)).float()
    named = draw.integers(0, n_classes, n)
    named[draw.random(n) < unlabelled] = -1
    return features, dense_graph(features, k), labels.from_indices(named, n_classes)


def kind(scheme) -> str:
    return "distance" if scheme.uses_gamma else "rank"


def dense_matrix(indices: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    n = len(indices)
    return torch.zeros(n, n, dtype=torch.float64).scatter_add_(1, indices.long(), w.double())


@pytest.mark.parametrize("scheme", [row for row in SCHEMES.values() if row.weigh])
@pytest.mark.parametrize("rounds", [None, 0, 3])
def test_augment_is_algorithm_1_written_as_a_loop(scheme, rounds):
    features, graph, comp = example(40, 5, 7, 4, unlabelled=0.3)
    expected = plain_loop(graph, comp, kind(scheme), 0.2, 1.5, scheme.rounds if rounds is None else rounds)
    found = augment(features, comp, scheme.name, 7, 0.2, 1.5, rounds)
    assert np.abs(found.numpy() - expected).max() < SINGLE


@pytest.mark.parametrize("scheme", ["rms", "dms"])
def test_many_rounds_reach_the_solution_of_the_linear_system(scheme):
    _, graph, comp = example(60, 4, 6, 5)
    w = weights.by_rank(60, 6) if scheme == "rms" else weights.by_distance(graph.distances, 1.0)
    alpha = 0.25
    z = torch.linalg.solve(
        torch.eye(60, dtype=torch.float64) - (1 - alpha) * dense_matrix(graph.indices, w), alpha * comp.double()
    )
    found = augment(graph, comp, scheme, alpha=alpha, rounds=200)  # 0.75^200 is 1e-25
    assert (found - z / z.sum(1, keepdim=True)).abs().max() < SINGLE


def test_no_scheme_leaves_labels_as_they_are():
    features, _, comp = example(30, 3, 4, 4, unlabelled=0.3)
    assert torch.equal(augment(features, comp, "none"), comp)


def test_one_step_gives_alpha_of_ones_own_label_and_the_rest_to_the_neighbours():
    graph = neighbors.from_arrays([[1, 2], [0, 2], [1, 0]], [[1.0, 2.0], [1.0, 3.0], [0.0, 2.0]])
    found = augment(graph, [0, 1, 2], "rss")
    assert found == pytest.approx(np.array([[0.1, 0.6, 0.3], [0.6, 0.1, 0.3], [0.3, 0.6, 0.1]]), abs=SINGLE)


def test_a_label_travels_one_edge_a_round_and_unreached_rows_stay_zero():
    chain = neighbors.from_arrays([[1], [0], [1], [2], [3]], np.ones((5, 1), dtype=np.float32))
    named = [-1, 2, -1, -1, -1]
    for rounds, reached in ((0, [0, 1, 0, 0, 0]), (1, [1, 1, 1, 0, 0]), (2, [1, 1, 1, 1, 0]), (3, [1, 1, 1, 1, 1])):
        found = augment(chain, named, "dms", rounds=rounds, n_classes=4)
        assert found.sum(1) == pytest.approx(reached, abs=SINGLE)
        assert found[:, 2] == pytest.approx(reached, abs=SINGLE)


def test_unlabelled_neighbours_give_nothing():
    graph = neighbors.from_arrays([[1, 2], [0, 2], [0, 1]], np.ones((3, 2), dtype=np.float32))
    found = augment(graph, [0, 1, -1], "dss", n_classes=3)
    # row 0 keeps 0.1 of its own and gets 0.45 of row 1's; row 2's 0.45 is not there to give
    assert found[0] == pytest.approx([0.1 / 0.55, 0.45 / 0.55, 0], abs=SINGLE)


def test_isolated_rows_listen_to_the_nearest_as_any_others_do():
    near = stream(0, "isolated").standard_normal((20, 3))
    features = np.concatenate([near, [[1e3, 0, 0], [0, 1e9, 0]]])
    w = weights.by_distance(dense_graph(torch.from_numpy(features), 5).distances, 1.0)
    assert torch.isfinite(w).all()
    assert float(w[20, 0]) == pytest.approx(1)  # of the other, whose neighbours are at one distance in float32, a fifth
    assert w[21].numpy() == pytest.approx(np.full(5, 0.2))
    found = augment(features, [0, 1, 2] * 7 + [0], "dms", 5)
    assert np.isfinite(found).all()
    assert found.sum(1) == pytest.approx(np.ones(22), abs=SINGLE)


@pytest.mark.parametrize("gamma", [0.25, 1.0, 16.0])
def test_weights_do_not_depend_on_how_far_away_all_neighbours_are(gamma):
    """by_distance(d + c) = by_distance(d): also where every weight underflows, from gamma c = 745 on."""
    near = stream(0, "shift").integers(0, 24, (50, 6)) / 8
    expected = weights.by_distance(torch.from_numpy(near).float(), gamma)
    exact = np.exp(-gamma * near)
    assert expected.numpy() == pytest.approx(exact / exact.sum(1, keepdims=True), abs=SINGLE)
    for c in (1, 740, 750, 4096, 2**18):  # eighths above them are exact in float32
        assert torch.equal(weights.by_distance(torch.from_numpy(near + c).float(), gamma), expected)


def test_weights_that_underflow_in_single_precision_only_are_still_right():
    distances = torch.tensor([[300.0, 301.0, 303.0]])
    expected = np.exp(-distances.double().numpy())
    assert weights.by_distance(distances, 1.0).numpy() == pytest.approx(expected / expected.sum(), rel=1e-6)


@pytest.mark.parametrize("gamma", [1e-30, 1e-3, 1.0, 1e30])
def test_distance_weights_are_a_distribution_at_any_scale(gamma):
    distances = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 1e30], [1e-30, 2.0, 3e38], [5e37, 3e38, 3e38]])
    w = weights.by_distance(distances, gamma)
    assert torch.isfinite(w).all()
    assert w.sum(1).numpy() == pytest.approx(np.ones(4), abs=SINGLE)
    assert bool((w.diff(dim=1) <= 0).all())


grids = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=6, max_size=24)


@quick
@given(points=grids, k=st.integers(1, 5), scheme=st.sampled_from(sorted(SCHEMES)), data=st.data())
def test_rows_are_distributions_and_equal_the_loop_on_grids_full_of_ties_and_duplicates(points, k, scheme, data):
    n = len(points)
    named = data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    graph, comp = dense_graph(torch.tensor(points), k), labels.from_indices(named, 4)
    found = augment(graph, comp, scheme, rounds=None if scheme.endswith("ss") else 6)
    sums = found.sum(1)
    assert bool((found >= 0).all())
    assert bool((((sums - 1).abs() < SINGLE) | (sums == 0)).all())
    assert bool((sums[comp.sum(1) > 0] > 0).all())
    row = SCHEMES[scheme]
    expected = plain_loop(graph, comp, kind(row), 0.1, 1.0, 0 if row.weigh is None else min(row.rounds, 6))
    assert np.abs(found.numpy() - expected).max() < SINGLE


@quick
@given(seed=st.integers(0, 10**6), scheme=st.sampled_from(["rss", "rms", "dss", "dms"]))
def test_permuting_the_rows_permutes_the_result(seed, scheme):
    draw = stream(seed, "permutation")
    features, named, order = draw.standard_normal((30, 3)), draw.integers(-1, 4, 30), draw.permutation(30)
    straight = augment(features, named, scheme, 6, n_classes=4, gamma="auto", rounds=5)
    permuted = augment(features[order], named[order], scheme, 6, n_classes=4, gamma="auto", rounds=5)
    assert np.abs(permuted - straight[order]).max() < SINGLE


@quick
@given(seed=st.integers(0, 10**6), swap=st.permutations(range(5)))
def test_renaming_the_classes_renames_the_columns(seed, swap):
    draw = stream(seed, "renaming")
    features, named = draw.standard_normal((25, 3)), draw.integers(0, 5, 25)
    renamed = augment(features, np.array(swap)[named], "dms", 5, n_classes=5, gamma="auto", rounds=5)
    assert (
        np.abs(renamed[:, swap] - augment(features, named, "dms", 5, n_classes=5, gamma="auto", rounds=5)).max()
        < SINGLE
    )


def test_tol_stops_early_and_says_after_how_many_rounds():
    _, graph, comp = example(200, 3, 8, 4)
    endless, _ = augment_report(graph, comp, rounds=2000)
    Z, report = augment_report(graph, comp, rounds=2000, tol=1e-3)
    assert 1 < report.rounds < 100
    assert report.change <= 1e-3
    assert (Z - endless).abs().max() <= 1e-3 * 0.9 / 0.1
    assert torch.equal(Z, augment(graph, comp, rounds=report.rounds))
    assert augment_report(graph, comp, rounds=report.rounds - 1)[1].change > 1e-3
    assert augment_report(graph, comp)[1].rounds == 100


def test_auto_gamma_makes_the_scale_of_the_features_irrelevant():
    features, _, comp = example(80, 4, 9, 4)
    # powers of two scale float32 distances without rounding
    assert torch.equal(
        augment(features, comp, n_neighbors=9, gamma="auto"), augment(features * 64, comp, n_neighbors=9, gamma="auto")
    )
    distances = dense_graph(features * 64, 9).distances
    expected = np.log(9) / float((distances[:, -1] - distances[:, 0]).median())
    assert augment_report(features * 64, comp, n_neighbors=9, gamma="auto")[1].gamma == pytest.approx(
        expected, rel=1e-5
    )


def test_auto_gamma_is_defined_among_duplicates():
    assert weights.auto_gamma(torch.zeros(5, 3)) == 1.0
    assert weights.auto_gamma(torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 4.0]])) == pytest.approx(np.log(3) / 4)


def test_under_auto_gamma_the_last_of_k_neighbours_weighs_a_kth_of_the_nearest():
    distances = 7 + torch.arange(8.0).repeat(5, 1)
    row = weights.by_distance(distances, weights.auto_gamma(distances))[0]
    assert float(row[-1] / row[0]) == pytest.approx(1 / 8)


def test_every_form_of_labels_means_the_same():
    features, _, _ = example(30, 4, 5, 4)
    x = features.numpy()
    named = stream(0, "forms").integers(0, 4, 30)
    matrix = labels.from_indices(named, 4).numpy()
    expected = augment(x, matrix, "dms", 5)
    lists: list[list[int]] = [[int(c)] for c in named]
    for form in (
        named,
        named.tolist(),
        named[:, None],
        lists,
        matrix.tolist(),
        matrix.astype(np.float64),
        named.astype(np.uint8),
    ):
        assert np.array_equal(augment(x, form, "dms", 5), expected)
    lists[3], named[3] = [], -1
    assert np.array_equal(augment(x, lists, "dms", 5, n_classes=4), augment(x, named, "dms", 5, n_classes=4))


def test_the_result_is_of_the_kind_that_was_given():
    features, graph, comp = example(30, 4, 5, 4)
    named = comp.argmax(1)
    for given_features, given_comp, kind in (
        (features.numpy(), comp.numpy(), np.ndarray),
        (features.numpy(), named.tolist(), np.ndarray),
        (graph, named.numpy(), np.ndarray),
        (features, comp, torch.Tensor),
        (features, named.tolist(), torch.Tensor),
        (features.double(), comp.double(), torch.Tensor),
        (graph, comp, torch.Tensor),
    ):
        for scheme in ("none", "dms"):
            found = augment(given_features, given_comp, scheme, 5)
            assert isinstance(found, kind)
            assert found.dtype in (np.float32, torch.float32)
            assert found.shape == (30, 4)


def test_a_ready_graph_gives_what_its_features_give_and_serves_smaller_ones():
    features, _, comp = example(50, 4, 5, 4)
    wide = neighbors.build(features, 12)
    for k in (1, 5, 12):
        assert torch.equal(augment(wide, comp, n_neighbors=k), augment(features, comp, n_neighbors=k))
    assert torch.equal(augment(wide, comp), augment(wide, comp, n_neighbors=12))


def test_cosine_is_the_same_as_giving_rows_length_one():
    features, _, comp = example(50, 6, 5, 4)
    unit = torch.nn.functional.normalize(features)
    assert (
        augment(features * 3, comp, n_neighbors=8, metric="cosine") - augment(unit, comp, n_neighbors=8)
    ).abs().max() < SINGLE


def test_inputs_are_not_changed():
    features, graph, comp = example(30, 4, 5, 4)
    copies = features.clone(), graph.indices.clone(), graph.distances.clone(), comp.clone()
    augment(features, comp, n_neighbors=5)
    augment(graph, comp)
    assert all(torch.equal(a, b) for a, b in zip((features, graph.indices, graph.distances, comp), copies, strict=True))


@pytest.mark.parametrize("scale", [20.0, 1000.0])
def test_a_gamma_that_does_not_suit_the_distances_is_said(scale):
    features, _, comp = example(60, 6, 5, 4)
    with pytest.warns(UserWarning, match="gamma=1 does not suit these features, whose median squared distance is"):
        augment(features * scale, comp, n_neighbors=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        augment(features * scale, comp, n_neighbors=8, gamma="auto")
        augment(features * scale, comp, "rms", n_neighbors=8)
        augment(features * scale, comp, n_neighbors=8, metric="cosine")


def test_weights_by_distance_that_are_even_in_effect_are_said():
    """gamma = 1 on rows of length 1, as features of an encoder are: the 64 neighbours differ by a tenth or two."""
    draw = stream(0, "unit rows")
    features = draw.standard_normal((10, 64))[draw.integers(0, 10, 700)] + 0.5 * draw.standard_normal((700, 64))
    named = draw.integers(0, 4, 700)
    with pytest.warns(UserWarning, match=r"gamma=1 does not suit.* all alike, to 6[34]\.\d of 64 neighbours in effect"):
        _, report = augment_report(features, named, "dss", metric="cosine", n_classes=4)
    assert report.effective_neighbors > 63
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, report = augment_report(features, named, "dss", metric="cosine", gamma="auto", n_classes=4)
        augment(features, named, "dss", metric="cosine", gamma=None, n_classes=4)  # nobody asked for 1
        augment(np.zeros((30, 2)), [0, 1, 2] * 10, "dss", 5)  # neighbours at one distance weigh alike by right
    assert report.effective_neighbors < 50


def test_where_no_gamma_is_said_it_is_1_by_angle_and_read_off_the_distances_elsewhere():
    draw = stream(0, "unit rows")
    features, named = draw.standard_normal((300, 16)), draw.integers(0, 4, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what nobody asked for is not called unsuitable
        by_angle, by_distance = (
            augment_report(features, named, n_neighbors=9, gamma=None, metric=metric, n_classes=4)
            for metric in ("cosine", "euclidean")
        )
        auto = augment_report(features, named, n_neighbors=9, gamma="auto", n_classes=4)
    assert by_angle[1].gamma == 1.0
    assert by_distance[1].gamma == auto[1].gamma
    assert np.array_equal(by_distance[0], auto[0])


def test_the_report_tells_what_happened_without_the_truth():
    features, _, comp = example(60, 6, 5, 4, unlabelled=0.2)
    Z, report = augment_report(features, comp, n_neighbors=8)
    assert (report.scheme, report.neighbors, report.rounds, report.gamma, report.recall) == ("dms", 8, 100, 1.0, 1.0)
    assert 1 <= report.effective_neighbors <= 8
    assert report.labels == describe(comp, Z)
    assert json.loads(json.dumps(report.as_dict()))["labels"]["unlabelled"] == int((comp.sum(1) == 0).sum())
    text = str(report)
    assert "dms: 8 neighbours" in text
    assert "100 rounds" in text
    assert "rows without labels:" in text
    assert augment_report(features, comp, "none")[1].labels.moved_most == 0


def test_describe_gives_hand_computed_figures():
    before = np.array([[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    after = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25], [0, 0, 0, 0]])
    found = describe(before, after)
    assert (found.rows, found.classes, found.unlabelled, found.unreached) == (4, 4, 2, 1)
    assert found.entropy_before == pytest.approx(np.log(2) / 2)
    assert found.entropy_after == pytest.approx((np.log(2) + np.log(2) + np.log(4)) / 3)
    assert (found.moved_mean, found.moved_most) == (0.5, 0.5)


def test_digits_come_out_as_they_did():
    from sklearn.datasets import load_digits

    from naysay import metrics

    x, y = load_digits(return_X_y=True)
    named = (y + 1 + stream(0, "digits").integers(0, 9, len(y))) % 10
    graph = neighbors.build(x.astype(np.float32), 64, metric="cosine")
    for scheme, accuracy, mass in (
        ("none", 0.1111, 0.00000),
        ("rss", 0.8762, 0.00803),
        ("rms", 0.9371, 0.02230),
        ("dss", 0.8617, 0.01781),
        ("dms", 0.8926, 0.03735),
    ):
        Z = augment(graph, named, scheme)
        # the labels are drawn with a fixed seed: only rounding can tip a near-tie, and three rows of 1,797 are 0.0017
        assert metrics.oracle_argmin_accuracy(Z, y) == pytest.approx(accuracy, abs=0.002)
        assert metrics.oracle_mass(Z, y) == pytest.approx(mass, abs=0.0001)


def test_errors_say_what_got_and_way_out():
    features, graph, comp = example(30, 4, 5, 4)
    other = neighbors.Graph(graph.indices, graph.distances, columns=99)
    for message, arguments, keywords in (
        (
            "unknown scheme 'dmss': did you mean dss or dms or rss? The known ones are dms, dss, none, rms, rss.",
            (features, comp, "dmss"),
            {},
        ),
        (
            "alpha, the weight of a row's own labels, must be above 0 and at most 1; got 0. The paper uses 0.1.",
            (features, comp),
            {"alpha": 0},
        ),
        ("at most 1; got 1.5", (features, comp), {"alpha": 1.5}),
        ("at most 1; got nan", (features, comp), {"alpha": float("nan")}),
        (
            'gamma must be a positive number, or "auto" to take it from the distances; got -1',
            (features, comp),
            {"gamma": -1},
        ),
        ("got 'automatic'", (features, comp), {"gamma": "automatic"}),
        (
            "rounds must be a whole number of at least 0; got -1. Leave it out to use the scheme's own.",
            (features, comp),
            {"rounds": -1},
        ),
        ("rounds must be a whole number of at least 0; got 1.5", (features, comp), {"rounds": 1.5}),
        ("tol must be a number of at least 0, or None to run every round; got -0.1", (features, comp), {"tol": -0.1}),
        ("n_neighbors must be a whole number of at least 1; got 0", (features, comp), {"n_neighbors": 0}),
        ("features and comp must have one row per instance each; got 29 and 30 rows", (features[1:], comp), {}),
        ("features and comp must have one row per instance each; got 30 and 29 rows", (graph, comp[1:]), {}),
        ("the graph must join the rows with each other; got Graph(30 rows, 5 neighbours among 99", (other, comp), {}),
        ("If it is a neighbour graph, pass naysay.neighbors.from_csr(matrix)", (graph.to_csr(), comp), {}),
        (
            "zeros and ones of shape (30, 4), which could be either. Pass floats",
            (features, comp.numpy().astype(int)),
            {},
        ),
        ("class numbers must be 0 to 2", (features, comp.argmax(1)), {"n_classes": 3}),
        ("must hold class numbers; got", (features, ["cat"] * 30), {}),
        ("must hold whole class numbers; got fractions or NaN", (features, [float("nan")] + [3.0] * 29), {}),
        ("complementary labels need at least 3 classes; got 2", (features, [0, 1] * 15), {}),
        ("complementary labels need at least 3 classes; got 0", (features, [[]] * 30), {}),
        ("rows of comp must sum to 1", (features, comp * 2), {}),
    ):
        with pytest.raises(InputError) as caught:
            augment(*arguments, **{"n_neighbors": 5, **keywords})
        assert message in str(caught.value)


def test_more_neighbours_than_rows_is_an_error_not_a_crash():
    features, _, comp = example(30, 4, 5, 4)
    with pytest.raises(InputError):
        augment(features, comp, n_neighbors=30)


def test_describing_labels_of_different_rows_is_an_error():
    with pytest.raises(
        InputError, match=r"before and after must label the same rows and classes; got \(2, 3\) and \(1, 3\)"
    ):
        describe(np.eye(3)[:2], np.eye(3)[:1])


def test_nothing_in_augmentation_can_take_the_truth():
    for name in augmentation.__all__:
        thing = getattr(augmentation, name)
        if inspect.isfunction(thing):
            assert "y_true" not in inspect.signature(thing).parameters
    assert "y_true" not in inspect.signature(propagate).parameters


def test_the_settings_as_one_record_share_as_the_keywords_do():
    features, graph, comp = example(50, 4, 9, 4, unlabelled=0.2)
    for keywords in (
        {},
        {"scheme": "RMS", "n_neighbors": 5},
        {"gamma": "auto", "rounds": 3},
        {"tol": 1e-2, "alpha": 0.3},
    ):
        for source in (features, graph):
            Z, report = share(source, comp, Sharing(**{"n_neighbors": 9} | keywords))
            expected, same = augment_report(source, comp, **{"n_neighbors": 9} | keywords)
            assert torch.equal(Z, expected)
            assert report == same


def test_a_record_is_checked_when_it_is_made_and_then_stays():
    for message, setting in (
        ("unknown scheme 'dmss'", {"scheme": "dmss"}),
        ("n_neighbors must be a whole number of at least 1; got 0", {"n_neighbors": 0}),
        ("at most 1; got 0", {"alpha": 0}),
        ("gamma must be a positive number", {"gamma": float("inf")}),
        ("rounds must be a whole number", {"rounds": 0.5}),
        ("unknown metric 'angle'", {"metric": "angle"}),
        ("unknown method 'fast'", {"method": "fast"}),
        ("tol must be a number", {"tol": float("nan")}),
    ):
        with pytest.raises(InputError, match=message):
            Sharing(**setting)
    assert Sharing("DMS") == Sharing() == Sharing(**Sharing().as_dict())
    with pytest.raises(FrozenInstanceError):
        Sharing().alpha = 0.5
    asked = (("none", 3), ("rss", None), ("dms", 7))
    assert [Sharing(scheme, rounds=rounds).total for scheme, rounds in asked] == [0, 1, 7]


def test_without_a_number_neighbours_follow_from_the_classes_and_from_the_rows_there_are():
    features, _, comp = example(60, 4, 9, 4)
    assert augment_report(features, comp, "rss", None)[1].neighbors == neighbors_for("rss", 60, 4) == 8
    assert Sharing().within(60, 4) == Sharing(n_neighbors=59)
    assert Sharing(n_neighbors=None).within(60, 4) == Sharing(n_neighbors=neighbors_for("dms", 60, 4))


def test_labels_that_class_shares_put_right_are_asked_of_more_neighbours():
    features, _, comp = example(800, 4, 9, 4)
    found = [augment_report(features, comp, "dms", None, class_shares=known)[1].neighbors for known in (None, "even")]
    assert found == [neighbors_for("dms", 800, 4), neighbors_for("dms", 800, 4, shares_known=True)] == [14, 20]


def test_a_new_scheme_is_one_row_of_the_table(monkeypatch):
    def alike(distances, gamma):
        return torch.full_like(distances, 1 / distances.shape[1])

    monkeypatch.setitem(SCHEMES, "even", Scheme("even", alike, 2, "all neighbours alike, twice"))
    features, graph, comp = example(40, 5, 7, 4)
    W = dense_matrix(graph.indices, torch.full((40, 7), 1 / 7))
    once = 0.1 * comp.double() + 0.9 * W @ comp.double()
    Z, report = augment_report(features, comp, "even", 7)
    assert (Z - (0.1 * comp + 0.9 * W @ once)).abs().max() < SINGLE
    assert (report.scheme, report.rounds, report.gamma) == ("even", 2, None)
    fitted = LabelAugmenter("even", n_neighbors=7).fit(features.numpy(), comp.numpy())
    assert fitted.transform(features.numpy()[:3]).sum(1) == pytest.approx(np.ones(3), abs=SINGLE)


def test_augment_and_augment_report_take_the_same():
    """Written out twice for help() and type checkers, so this holds them together."""
    assert inspect.signature(augment).parameters == inspect.signature(augment_report).parameters


@pytest.mark.parametrize("scheme", ["rss", "rms", "dss", "dms"])
@pytest.mark.parametrize("gamma", [1.0, "auto"])
def test_a_row_of_zeros_keeps_its_own_labels_and_changes_nobodys_by_cosine(scheme, gamma):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 4)).astype(np.float32), rng.integers(0, 5, 50)
    x[[3, 20, 49]] = 0
    y[20] = -1
    Z = augment(x, y, scheme, 6, gamma=gamma, n_classes=5, metric="cosine")
    there = x.any(1)
    alone = augment(x[there], y[there], scheme, 6, gamma=gamma, n_classes=5, metric="cosine")
    assert np.array_equal(Z[there], alone)
    assert np.array_equal(Z[[3, 20, 49]], np.stack([np.eye(5)[y[3]], np.zeros(5), np.eye(5)[y[49]]]))


def test_a_new_row_of_zeros_receives_nothing():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 4)), np.arange(50) % 4
    new = np.vstack([x[:2], np.zeros((1, 4))])
    for scheme in ("none", "dms"):
        Z = LabelAugmenter(scheme, n_neighbors=5, metric="cosine").fit(x, y).transform(new)
        assert Z.sum(1) == pytest.approx([1, 1, 0], abs=1e-6)
