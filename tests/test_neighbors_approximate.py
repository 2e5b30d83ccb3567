"""The approximate search, what it runs on, and the bars it shows."""

import threading
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from naysay import neighbors
from naysay.errors import InputError
from naysay.neighbors import approximate, blocks, build, exact_cpu
from naysay.neighbors.rows import Rows
from naysay.neighbors.schedule import run


@pytest.fixture(scope="module")
def crowd():
    """Rows on a curved surface of few dimensions, so that clusters touch, with some rows twice."""
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((30, 6))[rng.integers(0, 30, 8900)] + 0.6 * rng.standard_normal((8900, 6))
    rows = np.tanh(latent @ rng.standard_normal((6, 32)) * 0.5) @ rng.standard_normal((32, 24))
    return np.concatenate([rows, rows[:100]]).astype(np.float32)


@pytest.fixture(scope="module")
def graphs(crowd):
    return build(crowd, 10, "approximate"), build(crowd, 10, "exact")


def test_an_approximate_graph_has_nearly_all_neighbours_and_knows_how_many(graphs):
    found, true = graphs
    share = (found.distances <= true.distances[:, -1:]).float().mean().item()
    assert share >= 0.98
    # the recall is the share in a sample of 1,000 of 9,000 rows; rows of a bad place miss several at once
    assert found.recall == pytest.approx(share, abs=0.01)
    assert (found.method, found.recall < 1) == ("approximate", True)
    neighbors.check(found)


def test_approximate_distances_are_exact_and_duplicates_are_found(crowd, graphs):
    found, _ = graphs
    differences = crowd[found.indices.numpy()].astype(np.float64) - crowd[:, None].astype(np.float64)
    assert np.array_equal((differences**2).sum(2).astype(np.float32), found.distances.numpy())
    assert found.indices[:100, 0].tolist() == list(range(8900, 9000))
    assert found.indices[8900:, 0].tolist() == list(range(100))


def test_asking_the_neighbours_makes_up_for_borders(crowd, monkeypatch):
    monkeypatch.setattr(approximate, "PROBES", 1)
    recall = build(crowd, 10, "approximate").recall
    monkeypatch.setattr(approximate, "_descend", lambda *_: None)
    with pytest.warns(
        UserWarning, match=r"has 8.% of the nearest neighbours: .* Use method='exact' if that is too few\."
    ):
        before = build(crowd, 10, "approximate").recall
    assert recall > before + 0.05


def test_a_file_too_large_for_memory_gives_the_same_graph(crowd, graphs, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", crowd)
    file = np.load(tmp_path / "rows.npy", mmap_mode="r")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(neighbors, "_is_large_file", lambda features, rows: isinstance(features, np.memmap))
    monkeypatch.setattr(approximate.tempfile, "tempdir", str(scratch))
    assert build(file, 10) == graphs[0]
    assert list(scratch.iterdir()) == []
    monkeypatch.setattr(approximate.shutil, "disk_usage", lambda _: SimpleNamespace(free=2**19))
    with pytest.raises(
        InputError, match=r"needs 0\.0 GiB for a sorted copy; got 0\.0 GiB free in .*scratch\. Set TMPDIR"
    ):
        build(file, 10)
    assert list(scratch.iterdir()) == []
    with pytest.raises(
        InputError, match=r"needs the rows in memory; got a file of 0\.0 GiB .* Use method='approximate'\."
    ):
        build(file, 10, "exact")


def test_only_a_memory_map_over_a_quarter_of_memory_stays_on_disk(tmp_path):
    class Huge:
        d = 1024

        def __len__(self):
            return 2**31 - 1

    file = np.memmap(tmp_path / "file", dtype=np.float32, mode="w+", shape=(1, 1))
    assert neighbors._is_large_file(file, Huge())
    assert not neighbors._is_large_file(file, Rows(torch.ones(1, 1)))
    assert not neighbors._is_large_file(np.ones((1, 1)), Huge())


def test_auto_is_exact_up_to_a_number_of_rows(crowd, monkeypatch):
    assert build(crowd[:2000], 3).method == "exact"
    monkeypatch.setattr(neighbors, "EXACT_UP_TO", 8999)
    assert build(crowd, 3).method == "approximate"


def test_few_rows_are_searched_exactly_and_say_so(crowd):
    graph = build(crowd[:1000], 3, "approximate")
    assert graph.recall == 1.0
    assert torch.equal(graph.indices, build(crowd[:1000], 3, "exact").indices)


def test_a_bad_row_is_named_by_its_number_in_the_features(crowd):
    bad = crowd.copy()
    bad[7777, 3] = np.inf
    with pytest.raises(InputError, match=r"in row 7777\."):
        build(bad, 10, "approximate")


def test_rows_that_are_mostly_equal_are_handled():
    rows = np.zeros((5000, 16), np.float32)
    rows[:200] = np.random.default_rng(0).standard_normal((200, 16))
    graph = build(rows, 5, "approximate")
    assert (graph.distances[200:] == 0).all()
    assert graph.recall == pytest.approx(1.0, abs=0.01)
    neighbors.check(graph)


def test_blocks_of_clusters_are_neither_tiny_nor_huge_and_cover_all_rows():
    sizes = np.random.default_rng(0).integers(0, 3000, 50)
    sizes[10:20] = 3
    clusters = np.concatenate([[0], sizes.cumsum()])
    edges = blocks.cluster_edges(clusters, 1024)
    assert edges[0] == 0
    assert edges[-1] == clusters[-1]
    assert np.diff(edges).min() >= 256
    assert np.diff(edges).max() <= 1024 + 256


def test_every_pair_of_blocks_comes_once_itself_first(crowd):
    edges = blocks.even_edges(len(crowd), 1000)
    pairs = [tuple(pair) for pair in blocks.near_pairs_first(crowd, edges)]
    assert sorted(pairs) == [(i, j) for i in range(9) for j in range(i, 9)]
    assert all(i == j for i, j in pairs[:9])


def test_jobs_that_share_a_block_never_run_at_once_and_all_run():
    held, clashes, lock = Counter(), [], threading.Lock()
    jobs = [(i, j) for i in range(8) for j in range(i, 8)]

    def work(job):
        blocks_here = set(job)
        with lock:
            clashes.extend(b for b in blocks_here if held[b])
            held.update(blocks_here)
        time.sleep(0.001)
        with lock:
            held.subtract(blocks_here)
        return job

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        assert sorted(run(jobs, set, work)) == jobs
    finally:
        torch.set_num_threads(threads)
    assert clashes == []


def test_what_a_job_raises_reaches_the_caller_and_ends_the_threads():
    def work(job):
        if job == 5:
            raise InputError("five")
        return job

    before = threading.active_count()
    with pytest.raises(InputError, match="five"):
        list(run(range(1000), lambda job: set(), work))
    assert threading.active_count() == before
    assert list(run([], lambda job: set(), work)) == []


def test_two_searches_at_once_do_not_disturb_each_other(crowd):
    expected, found = exact_cpu.search(crowd[:1500], 5), []
    threads = [threading.Thread(target=lambda: found.append(exact_cpu.search(crowd[:1500], 5))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [torch.equal(f[0], expected[0]) and torch.equal(f[1], expected[1]) for f in found] == [True] * 3
