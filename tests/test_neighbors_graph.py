"""The Graph: what it refuses, and that nothing is lost on the way to scipy, to disk and back."""

import dataclasses

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from scipy.sparse import csr_matrix
from sklearn.neighbors import kneighbors_graph

from naysay import tensors
from naysay.errors import InputError
from naysay.neighbors import Graph, build, check, from_arrays, from_csr

INDICES = [[1, 2], [0, 2], [0, 1]]
DISTANCES = [[0.0, 4.0], [0.0, 4.0], [4.0, 4.0]]


def small() -> Graph:
    """Three rows, of which 0 and 1 are duplicates."""
    return build(np.array([[0.0], [0.0], [2.0]]), k=2)


def test_a_graph_says_its_sizes_and_origin_and_is_frozen():
    graph = small()
    assert (graph.n, graph.k, graph.device.type) == (3, 2, "cpu")
    assert repr(graph) == "Graph(3 rows, 2 neighbours, euclidean, exact, recall=1.0000, on cpu)"
    assert graph.indices.dtype == torch.int32
    assert graph.distances.dtype == torch.float32
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.metric = "cosine"


def test_the_k_nearest_of_a_graph_are_the_graph_of_k_neighbours():
    rows = np.random.default_rng(0).standard_normal((50, 3))
    assert build(rows, 9).nearest(4) == build(rows, 4)
    with pytest.raises(InputError, match="k must be between 1 and the graph's 9 neighbours; got 10"):
        build(rows, 9).nearest(10)


def test_csr_round_trip_keeps_duplicates_at_distance_zero():
    graph = small()
    csr = graph.to_csr()
    assert csr.shape == (3, 3)
    assert csr.nnz == 6
    assert csr[2, 0] == 4
    back = from_csr(csr)
    assert torch.equal(back.indices, graph.indices)
    assert torch.equal(back.distances, graph.distances)


def test_csr_does_not_share_memory_with_the_frozen_graph():
    graph = small()
    graph.to_csr().data[:] = -1
    assert graph.distances.min() == 0


def test_a_scikit_learn_graph_is_accepted_and_equals_ours():
    rows = np.random.default_rng(0).standard_normal((40, 5)).astype(np.float32)
    theirs = kneighbors_graph(rows, 6, mode="distance", include_self=False)
    graph = from_csr(theirs, squared=False)
    ours = build(rows, 6)
    assert torch.equal(graph.indices, ours.indices)
    # scikit-learn takes a root that is squared again here: two float64 roundings before float32's
    torch.testing.assert_close(graph.distances, ours.distances, rtol=3e-7, atol=0)
    assert (graph.method, graph.recall) == ("given", None)


def test_arrays_out_of_order_are_sorted_by_distance_then_index():
    graph = from_arrays([[2, 1], [2, 0], [1, 0]], [[4.0, 0.0], [4.0, 0.0], [4.0, 4.0]])
    assert graph.indices.tolist() == INDICES
    assert graph.distances.tolist() == DISTANCES


def test_a_graph_into_another_set_may_name_the_own_number():
    graph = from_arrays([[0], [4]], [[1.0], [0.0]], columns=5)
    assert graph.to_csr().shape == (2, 5)
    assert from_csr(graph.to_csr()) == graph


@pytest.mark.parametrize(
    ("indices", "distances", "words"),
    [
        ([1, 2], [0.0, 1.0], "one shape \\(n, k\\), one row per instance; got shapes \\(2,\\) and \\(2,\\)"),
        ([[1], [0]], [[1.0, 2.0], [1.0, 2.0]], "got shapes \\(2, 1\\) and \\(2, 2\\)"),
        (
            [[1.0], [0.0]],
            [[1.0], [1.0]],
            "whole numbers of rows; got torch.float32. Were indices and distances swapped",
        ),
        ([[1], [2]], [[1.0], [1.0]], "row numbers from 0 to 1; got 1 to 2"),
        ([[1], [-1]], [[1.0], [1.0]], "row numbers from 0 to 1; got -1 to 1"),
        ([[1], [2**32]], [[1.0], [1.0]], "row numbers from 0 to 1; got 1 to 4294967296"),
        ([[1], [0]], [[np.nan], [1.0]], "finite and not negative"),
        ([[1], [0]], [[-0.5], [1.0]], "finite and not negative; .* Are they similarities"),
        ([[1], [1]], [[1.0], [0.0]], "No row may be its own neighbour; got 1 rows that are"),
        ([[1, 1], [0, 2], [0, 1]], [[1.0, 1.0]] * 3, "different rows; got 1 rows that name one twice"),
    ],
)
def test_a_foreign_graph_that_is_wrong_is_refused(indices, distances, words):
    with pytest.raises(InputError, match=words):
        from_arrays(indices, distances)


def test_a_csr_with_uneven_rows_is_refused():
    uneven = csr_matrix(([1.0, 1.0, 2.0], ([0, 1, 1], [1, 0, 2])), shape=(3, 3))
    with pytest.raises(InputError, match="same number of neighbours, at least one, in every row; got 0 to 2"):
        from_csr(uneven)


def test_a_graph_made_by_hand_can_be_checked():
    good = small()
    check(good)
    with pytest.raises(InputError, match="must not fall along a row"):
        check(dataclasses.replace(good, distances=good.distances.flip(1)))
    with pytest.raises(InputError, match=r"int32 indices and float32 distances; got torch.int64"):
        check(dataclasses.replace(good, indices=good.indices.long()))
    with pytest.raises(InputError, match="unknown metric 'cosin': did you mean cosine"):
        check(dataclasses.replace(good, metric="cosin"))
    with pytest.raises(InputError, match=r"share between 0 and 1; got 1.5"):
        check(dataclasses.replace(good, recall=1.5))


def test_a_saved_graph_loads_as_it_was(tmp_path):
    graph = Graph(torch.tensor(INDICES, dtype=torch.int32), torch.tensor(DISTANCES), "cosine", "approximate", 0.987)
    into = from_arrays([[0], [4]], [[1.0], [0.0]], columns=5)
    for path, saved in ((tmp_path / "a b.safetensors", graph), (str(tmp_path / "c"), into)):
        saved.save(path)
        assert Graph.load(path) == saved
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a b.safetensors", "c"]


def test_every_changed_byte_of_a_saved_graph_is_noticed(tmp_path):
    path = tmp_path / "graph"
    small().save(path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(InputError):
            Graph.load(path)


@pytest.mark.parametrize("changed", [{"columns": [3]}, {"columns": True}, {"metric": 3}, {"recall": "high"}])
def test_a_saved_graph_that_describes_itself_wrongly_is_refused(tmp_path, changed):
    arrays = {"indices": torch.tensor([[1], [0]], dtype=torch.int32), "distances": torch.ones(2, 1)}
    about = {"metric": "euclidean", "method": "given", "recall": None, "columns": None, **changed}
    tensors.save(tmp_path / "g.safetensors", arrays, about, format="naysay-graph-1", key="graph")
    with pytest.raises(InputError, match=f"A graph's {next(iter(changed))} must be "):
        Graph.load(tmp_path / "g.safetensors")


@pytest.mark.parametrize("keep", [0, 7, 60, -1])
def test_a_truncated_graph_file_is_refused(tmp_path, keep):
    path = tmp_path / "graph"
    small().save(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"is not a whole graph file: .* Build the graph again"):
        Graph.load(path)


def test_a_file_that_is_no_graph_is_refused_by_name(tmp_path):
    path = tmp_path / "weights"
    save_file({"w": torch.zeros(2)}, path)
    with pytest.raises(InputError, match="weights must be a graph file \\(naysay-graph-1\\); got format None"):
        Graph.load(path)
    with pytest.raises(InputError, match=r"no graph file at .*nothing"):
        Graph.load(tmp_path / "nothing")


def test_a_save_that_fails_leaves_the_old_file_and_no_part(tmp_path):
    folder = tmp_path / "taken"
    folder.mkdir()
    (folder / "inside").write_text("kept")
    with pytest.raises(InputError, match=r"taken cannot be written \(Is a directory\)"):
        small().save(folder)
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
    assert (folder / "inside").read_text() == "kept"
