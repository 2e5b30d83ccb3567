"""The oracle metrics beside augmentation: hand-computed, and on real features where the shared data folder is there."""

from pathlib import Path

import numpy as np
import pytest

from naysay import augment, metrics, neighbors
from naysay.errors import InputError
from naysay.seeds import stream

FEATURES = Path(__file__).resolve().parents[2] / "shared" / "data" / "cifar10_features.npz"


def test_noise_rate_is_the_share_of_neighbours_labels_that_name_ones_own_class():
    graph = neighbors.from_arrays([[1, 2], [0, 2], [0, 1]], np.ones((3, 2), dtype=np.float32))
    comp = np.array([[0.5, 0.5, 0], [1, 0, 0], [0, 0, 0]])
    # row 0 (class 0) hears row 1's label 0: 1 of 1; row 1 (class 1) hears half of row 0's: 0.5 of 1; row 2 (class 2)
    # hears none: 0 of 2
    assert metrics.oracle_neighboring_noise(graph, comp, [0, 1, 2]) == pytest.approx(1.5 / 4)


def test_mass_leaves_unlabelled_rows_out():
    Z = np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert metrics.oracle_mass(Z, [1, 0, 0]) == pytest.approx((0.3 + 1.0) / 2)


def test_argmin_accuracy_shares_ties():
    Z = np.array([[0.0, 0.4, 0.6], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.3, 0.3, 0.4]])
    assert metrics.oracle_argmin_accuracy(Z, [0, 2, 1, 2]) == pytest.approx((1 + 1 / 2 + 1 / 3 + 0) / 4)


def test_metrics_refuse_what_does_not_match():
    graph = neighbors.from_arrays([[1], [0]], np.ones((2, 1), dtype=np.float32))
    with pytest.raises(
        InputError, match=r"y_true must be one class number for each row of labels; got \(3,\) for \(2, 3\)"
    ):
        metrics.oracle_mass(np.eye(3)[:2], [0, 1, 2])
    with pytest.raises(InputError, match="y_true must be class numbers from 0 to 2; got 1 to 3"):
        metrics.oracle_argmin_accuracy(np.eye(3)[:2], [1, 3])
    with pytest.raises(InputError, match="graph must join the 3 rows of comp with each other; got Graph"):
        metrics.oracle_neighboring_noise(graph, np.eye(3), [0, 1, 2])
    with pytest.raises(InputError, match="no neighbour has a complementary label"):
        metrics.oracle_neighboring_noise(graph, np.zeros((2, 3)), [0, 1])
    with pytest.raises(InputError, match="no row has a label"):
        metrics.oracle_mass(np.zeros((2, 3)), [0, 1])


@pytest.mark.skipif(
    not FEATURES.exists(), reason="../shared/data/cifar10_features.npz is not there; digits stand in for it"
)
def test_real_features_give_the_published_table():
    with np.load(FEATURES) as file:
        x, y = file["train"] * file["scale"].astype(np.float32), file["y_train"].astype(np.int64)
    named = (y + 1 + stream(0, "cifar10 features").integers(0, 9, len(y))) % 10
    graph = neighbors.build(x, 64, method="exact", metric="cosine")
    table = {"rss": (0.741, 0.0209), "rms": (0.822, 0.0267), "dss": (0.763, 0.0236), "dms": (0.814, 0.0301)}
    for scheme, (accuracy, mass) in table.items():
        Z = augment(graph, named, scheme)
        # label draws spread by 0.003, which the table's README says
        assert metrics.oracle_argmin_accuracy(Z, y) == pytest.approx(accuracy, abs=0.006)
        assert metrics.oracle_mass(Z, y) == pytest.approx(mass, abs=0.006)
    assert np.mean(y[graph.indices.numpy()] == y[:, None]) == pytest.approx(0.758, abs=0.001)
    # a neighbour of another class (0.242 of them) names one's own class with probability 1/9
    assert metrics.oracle_neighboring_noise(graph, np.eye(10, dtype=np.float32)[named], y) == pytest.approx(
        0.242 / 9, abs=0.001
    )
