"""Augmentation over shards: the same neighbours and labels as on one machine, whatever is killed, and plain words for
bad shards.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from naysay import neighbors
from naysay.augmentation import Sharing, augment_report, describe, propagate, weights
from naysay.augmentation.diagnostics import merge
from naysay.cli import app
from naysay.cluster import augment_shards, connect, rounds, search
from naysay.cluster.connection import Crew, hired, peak_memory
from naysay.cluster.folders import Work, find_shards, open_work
from naysay.cluster.prepare import Naming, count_labels, cut, find_centre, name_classes, prepare
from naysay.cluster.rounds import Recipe
from naysay.cluster.search import Search, find_neighbors, group
from naysay.errors import InputError

# tests that open ports run one after another: a free port that one has found must not be another's
OPENS_PORTS = True

K, NEIGHBOURS = 5, 8
EDGES = (0, 3, 700, 1150, 1500)  # shards of unequal size, the first with fewer rows than there are neighbours


@pytest.fixture(scope="module")
def data():
    """Whole numbers, so that distances tie; 20 rows alike, more than there are neighbours; a third of the rows
    unlabelled.
    """
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (1500, 6)).astype(np.float32)
    x[:, 0] += 1  # no row of zeros, which has no direction
    x[rng.permutation(1500)[:20]] = x[0]
    y = rng.integers(0, K, (1500, 2))
    y[rng.random(1500) < 0.3] = -1
    return x, y


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    return write_npy(tmp_path_factory.mktemp("shards"), *data)


@pytest.fixture(scope="module")
def cluster():
    with connect(workers=2) as ray:
        yield ray


def write_npy(folder, x, y):
    for name, array in (("rows", x), ("labels", y)):
        (folder / name).mkdir()
        for at in range(len(EDGES) - 1):
            np.save(folder / name / f"s{at}.npy", array[EDGES[at] : EDGES[at + 1]])
    return folder


def read_out(folder):
    tables = [pq.read_table(folder / f"s{at}.parquet") for at in range(len(EDGES) - 1)]
    return np.concatenate(
        [np.stack([column.to_numpy() for column in table.columns[1:]], 1) for table in tables]
    ), tables


def count_rows(y):
    """Two class numbers a row, -1 for none, as `comp` (n, K)."""
    comp = torch.zeros(len(y), K)
    for row, numbers in zip(comp, y, strict=True):
        for number in numbers[numbers >= 0]:
            row[number] += 1 / len(numbers)
    return comp


def here():
    """A crew that works in this process."""
    return Crew(lambda function, items: ((function(item), peak_memory()) for item in items))


def prepared(folder, work, metric="euclidean", **options):
    """The blocks of a folder's shards, looked at and ready."""
    shards = find_shards(folder / "rows", folder / "labels", **options)
    naming = Naming(tuple("abcde"), {})
    for at, shard in enumerate(shards):
        prepare(shard, work.rows(at), work.comp(at), metric, naming, "raise", find_centre(shards, metric))
    paths = [work.rows(at) if work.rows(at).exists() else shard.path for at, shard in enumerate(shards)]
    return cut([(str(path), shard.first, shard.rows) for path, shard in zip(paths, shards, strict=True)], 400)


def found_graph(work, blocks):
    graphs = [neighbors.Graph.load(work.graph(at)) for at in range(len(blocks))]
    return torch.cat([graph.indices for graph in graphs]), torch.cat([graph.distances for graph in graphs])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_exact_neighbours_over_shards_are_those_of_one_machine_bit_for_bit(data, folder, metric, tmp_path):
    work = Work(tmp_path)
    blocks = prepared(folder, work, metric)
    about = find_neighbors(
        here(), Search(work, blocks, (), None, NEIGHBOURS, metric), method="exact", nlist=None, nprobe=None
    )
    true = neighbors.build(data[0], NEIGHBOURS, "exact", metric)
    indices, distances = found_graph(work, blocks)
    assert torch.equal(indices, true.indices)
    assert torch.equal(distances, true.distances)
    assert about == {"method": "exact", "recall": 1.0}


def crowd(n=6000):
    rng = np.random.default_rng(1)
    latent = rng.standard_normal((20, 5))[rng.integers(0, 20, n)] + 0.6 * rng.standard_normal((n, 5))
    rows = np.tanh(latent @ rng.standard_normal((5, 24))) @ rng.standard_normal((24, 16))
    rows[n - 50 :] = rows[:50]
    return rows.astype(np.float32)


def search_lists(rows, path, **options):
    np.save(path / "rows.npy", rows)
    work, blocks = Work(path / "work"), cut([(str(path / "rows.npy"), 0, len(rows))], 2500)
    plan = Search(work, blocks, group(len(rows), 900), None, NEIGHBOURS, "euclidean")
    about = find_neighbors(here(), plan, method="approximate", **{"nlist": None, "nprobe": None} | options)
    return (*found_graph(work, blocks), about)


def test_the_lists_find_nearly_all_neighbours_and_know_how_many(tmp_path):
    rows = crowd()
    indices, distances, about = search_lists(rows, tmp_path)
    true = neighbors.build(rows, NEIGHBOURS, "exact")
    share = float((distances <= true.distances[:, -1:]).float().mean())
    # the recall is the share in a sample of 1,000 of 6,000 rows
    assert about["recall"] == pytest.approx(share, abs=0.01)
    assert share > 0.97
    assert (about["nlist"], about["nprobe"] in search.PROBES) == (search.choose_nlist(len(rows)), True)
    differences = rows[indices.numpy()].astype(np.float64) - rows[:, None].astype(np.float64)
    assert np.array_equal((differences**2).sum(2).astype(np.float32), distances.numpy())
    assert not (indices == torch.arange(len(rows))[:, None]).any()
    assert indices[:50, 0].tolist() == list(range(5950, 6000))  # duplicates are neighbours
    neighbors.check(neighbors.Graph(indices, distances))


def test_looking_into_every_list_is_exact(tmp_path):
    rows = crowd(2000)
    indices, distances, about = search_lists(rows, tmp_path, nlist=7, nprobe=7)
    true = neighbors.build(rows, NEIGHBOURS, "exact")
    assert torch.equal(indices, true.indices)
    assert torch.equal(distances, true.distances)
    assert about == {"method": "approximate", "recall": 1.0, "nlist": 7, "nprobe": 7}


def test_poor_recall_is_warned_of_and_rows_whose_lists_are_short_still_get_all_neighbours(tmp_path):
    with pytest.warns(
        UserWarning, match=r"has \d+% of the nearest neighbours\. Look into more lists \(nprobe, now 1\)"
    ):
        indices, distances, about = search_lists(crowd(2000), tmp_path, nlist=400, nprobe=1)  # five rows a list
    neighbors.check(neighbors.Graph(indices, distances))
    assert about["recall"] < 0.95


def test_more_probes_than_lists_are_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"nlist must be from nprobe to the 500 rows there are; got nlist=4 and nprobe=5\."
    ):
        search_lists(crowd(500), tmp_path, nlist=4, nprobe=5)


def test_without_faiss_the_extra_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(InputError, match=r"needs faiss: pip install 'naysay\[ray\]', or use method='exact'"):
        search.library()


def test_the_number_of_lists_follows_the_rows():
    assert [search.choose_nlist(n) for n in (10, 1000, 10**6, 10**8)] == [1, 25, 4096, 32768]


def test_labels_over_shards_are_those_of_one_machine(data, folder, cluster, tmp_path):
    x, y = data
    settings = {"labels": folder / "labels", "n_classes": K, "workers": 2}
    sharing = Sharing(n_neighbors=NEIGHBOURS, gamma="auto", method="exact")
    account = augment_shards(folder / "rows", tmp_path / "out", sharing, block_rows=400, **settings)
    Z, tables = read_out(tmp_path / "out")
    graph = neighbors.build(x, NEIGHBOURS, "exact")
    one, report = augment_report(graph, y, n_neighbors=NEIGHBOURS, gamma="auto", n_classes=K)
    assert np.abs(Z - one).max() < 2e-6  # what 100 rounds of float32 add up to in another order of summation
    W = weights.by_distance(graph.distances, report.gamma)
    assert np.array_equal(Z, propagate(graph.indices, W, count_rows(y), rounds=100, backend="numba").labels.numpy())
    assert account.report.gamma == report.gamma
    assert account.report.effective_neighbors == report.effective_neighbors
    assert account.report.labels.unlabelled == report.labels.unlabelled > 0
    # sums in another order
    assert account.report.labels.moved_mean == pytest.approx(report.labels.moved_mean, rel=1e-6)
    assert tables[1].column("id").to_pylist()[:2] == ["3", "4"]
    assert tables[0].column_names == ["id", *(f"not_{k}" for k in range(K))]
    kept = json.loads((tmp_path / "out" / "augment.json").read_text())
    assert (kept["search"]["recall"], kept["label_bytes"], len(kept["round_seconds"])) == (1.0, 4 * 1500 * K, 100)
    assert len(kept["peak_bytes"]) == kept["workers"] == 2
    assert not (tmp_path / "out" / ".work").exists()
    with pytest.raises(InputError, match=r"holds a finished result\. Choose another folder, or pass force=True"):
        augment_shards(folder / "rows", tmp_path / "out", sharing, **settings)


def test_class_shares_over_shards_correct_as_one_machine_does(data, folder, cluster, tmp_path):
    x, y = data
    known = [0.4, 0.3, 0.2, 0.1, 0.0]
    sharing = Sharing(n_neighbors=NEIGHBOURS, gamma="auto", method="exact", class_shares=known, rounds=10)
    account = augment_shards(
        folder / "rows", tmp_path / "out", sharing, labels=folder / "labels", n_classes=K, workers=2
    )
    Z, _ = read_out(tmp_path / "out")
    graph = neighbors.build(x, NEIGHBOURS, "exact")
    one, report = augment_report(graph, y, n_neighbors=NEIGHBOURS, gamma="auto", class_shares=known, rounds=10)
    assert np.abs(Z - one).max() < 1e-5
    assert account.report.turned == pytest.approx(report.turned, abs=1e-3)
    assert account.settings["class_shares"] == tuple(known)
    with pytest.raises(InputError, match=r"class_shares must be 5 numbers, one for each class; got shape \(3,\)"):
        augment_shards(
            folder / "rows",
            tmp_path / "other",
            replace(sharing, class_shares=[0.5, 0.5, 0.0]),
            labels=folder / "labels",
            n_classes=K,
            workers=2,
        )


def test_parquet_shards_through_the_command_give_what_one_machine_gives(data, cluster, tmp_path):
    x, y = data
    names = np.array([*"abcde", None], object)[y]  # -1 is the last
    for at in range(len(EDGES) - 1):
        part = slice(EDGES[at], EDGES[at + 1])
        columns = {
            "item": [f"i{n}" for n in range(part.start, part.stop)],
            "vector": pa.array(list(x[part].astype(np.float64))),
        }
        columns |= {"no": pa.array(names[part, 0], pa.string()), "nor": pa.array(names[part, 1], pa.string())}
        pq.write_table(pa.table(columns), tmp_path / f"s{at}.parquet")
    out = tmp_path / "out"
    asked = ["--engine", "ray", "--workers", "1", "--id", "item", "--label", "no", "--label", "nor", "--scheme", "RSS"]
    done = CliRunner().invoke(
        app, ["augment", str(tmp_path / "s*.parquet"), "--out", str(out), *asked, "--neighbors", "8", "--json"]
    )
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["folder"], said["classes"], said["search"]["recall"]) == (str(out), list("abcde"), 1.0)
    Z, tables = read_out(out)
    one, _ = augment_report(x, y, "rss", 8, n_classes=K, metric="cosine")
    assert np.abs(Z - one).max() < 1e-6  # one round of eight float32 sums in another order
    assert tables[2].column("id")[0].as_py() == "i700"


def test_a_worker_that_is_killed_between_rounds_changes_nothing(data, folder, cluster, tmp_path, monkeypatch):
    work = Work(tmp_path)
    blocks = prepared(folder, work)
    find_neighbors(
        here(), Search(work, blocks, (), None, NEIGHBOURS, "euclidean"), method="exact", nlist=None, nprobe=None
    )
    graph = tuple((str(work.graph(at)), block.first, block.rows) for at, block in enumerate(blocks))
    comp = tuple((str(work.comp(at)), start, EDGES[at + 1] - start) for at, start in enumerate(EDGES[:-1]))
    recipe = Recipe(1500, NEIGHBOURS, K, "dms", 0.1, 1.0, graph, comp, 0, 1500)
    with hired(cluster, 2, 1) as crew:
        run = partial(rounds.share_labels, cluster, crew, work, recipe, Sharing(rounds=12), checkpoint_every=5)
        true = [np.load(path) for path, _, _ in run().files]
        os.remove(work.named(rounds.STATE))
        victim, _ = cluster.get(crew.workers[1].do.remote(lambda _: os.getpid(), None))

        def killing(steps, total, doing):
            for step in steps:
                if step == 7:
                    os.kill(victim, signal.SIGKILL)
                yield step

        monkeypatch.setattr(rounds, "track", killing)
        again = run()
        assert cluster.get(crew.workers[1].do.remote(lambda _: os.getpid(), None))[0] != victim
    assert again.done == 12
    assert all(np.array_equal(np.load(path), labels) for (path, _, _), labels in zip(again.files, true, strict=True))


DRIVER = """
    import os, signal, sys
    from naysay.augmentation import Sharing
    from naysay.cluster import augment_shards, rounds

    def killing(steps, total, doing):
        for step in steps:
            if step == 18:
                os.kill(os.getpid(), signal.SIGKILL)
            yield step

    rounds.track = killing
    folder, out = sys.argv[1:]
    sharing, labels = Sharing(n_neighbors=8, rounds=30, method="exact"), folder + "/labels"
    augment_shards(folder + "/rows", out, sharing, labels=labels, n_classes=5, checkpoint_every=5, workers=2)
"""


def test_a_driver_that_is_killed_goes_on_from_its_checkpoint_and_ends_with_the_same_bits(
    data, folder, cluster, tmp_path
):
    out, work = tmp_path / "out", Work(tmp_path / "out" / ".work")
    command = [sys.executable, "-c", textwrap.dedent(DRIVER), str(folder), str(out)]
    assert subprocess.run(command, timeout=120, check=False).returncode == -signal.SIGKILL
    assert work.read(rounds.STATE)["round"] == 15
    settings = {"labels": folder / "labels", "n_classes": K, "checkpoint_every": 5}
    sharing = Sharing(n_neighbors=8, rounds=30, method="exact")
    with pytest.raises(InputError, match=r"unfinished run with other settings \(rounds\)\. Run it as it was to go on"):
        augment_shards(folder / "rows", out, replace(sharing, rounds=31), **settings)
    account = augment_shards(folder / "rows", out, sharing, **settings, workers=1)  # fewer workers than before
    assert len(account.round_seconds) == 15
    assert account.skipped == {"checking shards": 4, "finding neighbours": 4}
    graph = neighbors.build(data[0], 8, "exact")
    true = propagate(
        graph.indices, weights.by_distance(graph.distances, 1.0), count_rows(data[1]), rounds=30, backend="numba"
    )
    assert np.array_equal(read_out(out)[0], true.labels.numpy())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            lambda f: np.save(f / "rows/s1.npy", np.ones((697, 7), np.float32)),
            r"s0\.npy has 6 columns and s1\.npy has 7\.",
        ),
        (lambda f: np.save(f / "rows/s1.npy", np.ones((0, 6), np.float32)), r"s1\.npy has no rows\. Leave it out"),
        (
            lambda f: np.save(f / "rows/s1.npy", np.ones(697, np.float32)),
            r"must hold an \(n, d\) matrix of numbers; got float32 of shape",
        ),
        (lambda f: (f / "rows/s1.npy").write_bytes(b"none"), r"s1\.npy cannot be read as \.npy"),
        (
            lambda f: (f / "labels/s2.npy").unlink(),
            r"s2\.npy has no labels: there is no s2\.npy among the 3 label files",
        ),
        (lambda f: (f / "rows/s3.parquet").write_bytes(b"none"), r"must all be \.npy or all be Parquet; got both"),
        (
            lambda f: [path.unlink() for path in (f / "rows").iterdir()],
            r"there are no shards in .*rows: no \.npy, \.parquet, \.pq",
        ),
    ],
)
def test_shards_that_do_not_fit_together_are_refused(data, change, error, tmp_path):
    folder = write_npy(tmp_path, *data)
    change(folder)
    with pytest.raises(InputError, match=error):
        find_shards(folder / "rows", folder / "labels")


def spoil(path, row, value):
    array = np.load(path)
    array[row] = value
    np.save(path, array)


@pytest.mark.parametrize(
    ("file", "row", "value", "error"),
    [
        (
            "rows/s1.npy",
            411,
            np.nan,
            r"s1\.npy must be finite float32 numbers; got NaN, inf or more than 3\.4e38 in row 411\.",
        ),
        ("labels/s1.npy", 30, 9, r"s1\.npy: class numbers must be 0 to 4 .* got 9 in row 30\."),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_its_shard_and_place(data, file, row, value, error, tmp_path):
    folder = write_npy(tmp_path, *data)
    spoil(folder / file, row, value)
    with pytest.raises(InputError, match=error):
        prepared(folder, Work(tmp_path / "work"), "cosine")


def test_an_error_in_a_worker_reaches_the_caller_as_it_is(data, cluster, tmp_path):
    folder = write_npy(tmp_path, *data)
    np.save(folder / "labels" / "s3.npy", data[1][:7])
    with pytest.raises(InputError, match=r"^s3\.npy must have a row for each of the 350 of s3\.npy; got 7\.$"):
        augment_shards(folder / "rows", tmp_path / "out", labels=folder / "labels", workers=1)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64])
def test_other_numbers_are_read_as_float32(data, dtype, tmp_path):
    folder = write_npy(tmp_path, data[0].astype(dtype), data[1])
    blocks = prepared(folder, Work(tmp_path / "work"))
    assert np.array_equal(np.concatenate([block.read() for block in blocks]), data[0])
    assert all(block.path.startswith(str(tmp_path / "work")) for block in blocks)


def test_what_all_shards_have_in_common_is_taken_away_before_numbers_are_rounded(data, tmp_path):
    folder = write_npy(tmp_path, data[0].astype(np.float64) + 1e8, data[1])
    rows = np.concatenate([block.read() for block in prepared(folder, Work(tmp_path / "work"))])
    assert np.array_equal(rows - rows[0], data[0] - data[0][0])  # whole numbers stay whole


def test_shards_keep_the_bits_of_times_of_which_some_are_missing(data, tmp_path):
    far = data[0].astype(np.float64) + 1e8
    gone = np.arange(len(far)) % 10 < 1  # and all of the first shard
    gone[:3] = True
    far[gone] = 0
    rows = np.concatenate([block.read() for block in prepared(write_npy(tmp_path, far, data[1]), Work(tmp_path / "w"))])
    assert np.array_equal(rows[~gone] - rows[3], data[0][~gone] - data[0][3])
    assert (rows[gone] == rows[0]).all()


def test_shards_keep_what_sets_directions_apart(data, tmp_path):
    rng = np.random.default_rng(4)
    far = 1e8 + rng.normal(size=data[0].shape)
    far[[3, 900]] = 0  # no direction
    work = Work(tmp_path / "work")
    blocks = prepared(write_npy(tmp_path, far, data[1]), work, "cosine")
    find_neighbors(
        here(), Search(work, blocks, (), None, NEIGHBOURS, "cosine"), method="exact", nlist=None, nprobe=None
    )
    indices, distances = found_graph(work, blocks)
    unit = far / np.maximum(np.linalg.norm(far, axis=1, keepdims=True), 1)
    # what float64 has of the directions, on a scale on which float32 has it too
    true = neighbors.build((unit - unit[0]) * 1e8 + 1e3 * (unit[:, :1] == 0), NEIGHBOURS)
    assert distances[[3, 900]].isinf().all()
    assert torch.isinf(distances).sum() == 2 * NEIGHBOURS  # and they are nobody's neighbours
    kept = [len(set(one) & set(other)) for one, other in zip(indices.tolist(), true.indices.tolist(), strict=True)]
    # rows without direction have no order
    assert np.mean(np.delete(kept, [3, 900])) > 0.999 * NEIGHBOURS


def test_lists_of_wide_numbers_in_parquet_lose_their_middle_before_they_are_rounded(data, tmp_path):
    far = data[0][:400].astype(np.float64) + 1e8
    shards = {"float64": far, "whole": far.astype(np.int64)}
    for name, rows in shards.items():
        pq.write_table(pa.table({"v": pa.array(list(rows)), "n": [0] * len(rows)}), tmp_path / f"{name}.parquet")
        (shard,) = find_shards(tmp_path / f"{name}.parquet", features="v", label=["n"])
        centre, naming = find_centre([shard], "euclidean"), Naming(tuple("abcde"), {"0": 0})
        prepare(shard, tmp_path / "rows.npy", tmp_path / "comp.npy", "euclidean", naming, "raise", centre)
        read = np.load(tmp_path / "rows.npy")
        assert read.dtype == np.float32
        assert np.array_equal(read - read[0], data[0][:400] - data[0][0])


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_where_no_gamma_is_said_shards_take_what_one_machine_takes(data, cluster, tmp_path, metric):
    folder = write_npy(tmp_path, data[0], data[1])
    sharing = Sharing("dms", n_neighbors=NEIGHBOURS, gamma=None, metric=metric, rounds=5)
    account = augment_shards(
        folder / "rows", tmp_path / "out", sharing, labels=folder / "labels", n_classes=K, workers=1
    )
    _, report = augment_report(data[0], data[1], "dms", NEIGHBOURS, gamma=None, metric=metric, n_classes=K, rounds=5)
    assert account.report.gamma == pytest.approx(report.gamma, rel=1e-6)


def test_rows_of_zeros_have_no_neighbours_by_cosine_over_shards_either(data, cluster, tmp_path):
    x = data[0].copy()
    x[[0, 2, 700, 701, 1499]] = 0
    folder = write_npy(tmp_path, x, data[1])
    sharing = Sharing("dms", n_neighbors=NEIGHBOURS, gamma="auto", metric="cosine", rounds=5)
    account = augment_shards(
        folder / "rows", tmp_path / "out", sharing, labels=folder / "labels", n_classes=K, workers=1
    )
    one, report = augment_report(x, data[1], "dms", NEIGHBOURS, gamma="auto", metric="cosine", n_classes=K, rounds=5)
    assert np.abs(read_out(tmp_path / "out")[0] - one).max() < 1e-6  # float32 sums in another order
    assert np.array_equal(one[2], count_rows(data[1])[2])  # what a row of zeros has, it keeps
    assert account.report.gamma == report.gamma


def test_where_fewer_rows_than_neighbours_have_a_direction_places_stay_free_over_shards(tmp_path):
    rows = np.zeros((12, 3), np.float32)
    rows[:4] = np.random.default_rng(0).normal(size=(4, 3))
    folder = tmp_path / "rows"
    folder.mkdir()
    np.save(folder / "s0.npy", rows)
    (tmp_path / "labels").mkdir()
    np.save(tmp_path / "labels" / "s0.npy", np.arange(12) % 5)
    work = Work(tmp_path / "work")
    blocks = prepared(tmp_path, work, "cosine")
    find_neighbors(here(), Search(work, blocks, (), None, 6, "cosine"), method="exact", nlist=None, nprobe=None)
    assert torch.equal(found_graph(work, blocks)[1], neighbors.build(rows, 6, "exact", "cosine").distances)


def test_labels_in_parquet_may_be_numbers_lists_or_soft(tmp_path):
    columns = {
        "v": [[1.0, 2.0], [3.0, 4.0]],
        "n": [2, None],
        "l": [[0, 2], []],
        "z": [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]],
    }
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    for label, comp in (("n", [[0, 0, 1], [0, 0, 0]]), ("l", [[0.5, 0, 0.5], [0, 0, 0]]), ("z", columns["z"])):
        (shard,) = find_shards(tmp_path / "s.parquet", features="v", label=[label])
        naming = name_classes([count_labels(shard)], None, None, 3)
        prepare(shard, tmp_path / "rows.npy", tmp_path / "comp.npy", "euclidean", naming, "raise")
        assert np.load(tmp_path / "comp.npy").tolist() == comp
        assert np.load(tmp_path / "rows.npy").tolist() == columns["v"]


def test_names_that_are_no_class_are_refused(tmp_path):
    pq.write_table(pa.table({"v": [[1.0], [2.0]], "no": ["a", "d"]}), tmp_path / "s.parquet")
    (shard,) = find_shards(tmp_path, features="v", label=["no"])
    with pytest.raises(InputError, match=r"must name one of the 3 classes; got 'd'\. Name all of them with classes="):
        name_classes([count_labels(shard)], ["a", "b", "c"], None, None)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"labels": None}, r"labels must be given once, .* \(labels=\) .* \(label=\); got neither\."),
        ({"label": ["a"]}, r"in Parquet shards only; got \.npy shards"),
        ({"contradictions": "drop"}, r"unknown contradictions 'drop'"),
        ({"nprobe": 0}, r"nprobe must be a whole number of at least 1; got 0\."),
        ({"threads": 0}, r"threads must be a whole number of at least 1; got 0\."),
    ],
)
def test_settings_that_cannot_be_used_are_refused_before_anything_starts(folder, options, error, tmp_path):
    with pytest.raises(InputError, match=error):
        augment_shards(folder / "rows", tmp_path / "out", **{"labels": folder / "labels"} | options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--engine", "ray", "--truth", "y"], "--truth is not for --engine ray"),
        (["--probes", "8"], "--probes is not for --engine local"),
        (["--engine", "spark"], "unknown engine 'spark'"),
        (["--engine", "ray", "--space", "pca"], "unknown space of shards 'pca'"),
        (["--engine", "ray", "--method", "fast"], "unknown method 'fast'"),
        (["--engine", "ray"], "(--labels) or as columns of Parquet shards (--label); got neither."),
    ],
)
def test_the_command_speaks_of_its_options_and_says_which_belong_to_which_engine(folder, options, error, tmp_path):
    done = CliRunner().invoke(app, ["augment", str(folder / "rows"), "--out", str(tmp_path / "out"), *options])
    assert (done.exit_code, error in " ".join(done.stderr.split())) == (2, True)


def test_a_worker_that_only_runs_jobs_does_not_wait_for_torch():
    code = (
        "import sys, naysay.cluster, naysay.cluster.remote; print(sorted({'torch', 'numpy', 'ray'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_descriptions_of_parts_add_up_to_that_of_the_whole(data):
    before = count_rows(data[1])
    after, means = before.roll(1, 1), dict.fromkeys(("entropy_before", "entropy_after", "moved_mean"), 0)
    parts = [describe(before[start : start + 333], after[start : start + 333]) for start in range(0, 1500, 333)]
    whole, added = describe(before, after), merge(parts)
    assert replace(added, **means) == replace(whole, **means)
    for name in means:  # sums in another order
        assert getattr(added, name) == pytest.approx(getattr(whole, name), rel=1e-12)


@pytest.mark.parametrize("content", ["[" * 100_000, "{", "\0"])
def test_what_an_unfinished_run_left_and_somebody_spoilt_is_named(tmp_path, content):
    (tmp_path / ".work").mkdir()
    (tmp_path / ".work" / "run.json").write_text(content)
    with pytest.raises(InputError, match=r"\.work/run.json is damaged or was changed .*Remove the folder it is in"):
        open_work(tmp_path, [], {}, force=False)
