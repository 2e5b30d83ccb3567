"""The exact searches against a float64 brute force, bit for bit, on data made to break them; and what is refused."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay.errors import InputError
from naysay.neighbors import Graph, build, check, exact_cpu, exact_gpu, proposals, query
from naysay.neighbors.proposals_gpu import largest, round_to_11_bits


def brute(rows, k, new=None):
    """The k nearest (indices, float32 squared distances) by definition: float64 sums, rounded once, ties by index."""
    exact = rows.astype(np.float64)
    indices, squared = [], []
    for i, row in enumerate(exact if new is None else new.astype(np.float64)):
        distances = ((exact - row) ** 2).sum(1).astype(np.float32)
        order = np.lexsort((np.arange(len(exact)), distances))
        order = order[order != i][:k] if new is None else order[:k]
        indices.append(order)
        squared.append(distances[order])
    return torch.tensor(np.array(indices), dtype=torch.int32), torch.tensor(np.array(squared))


def same(found, expected):
    return torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


def hard_sets(n=201):
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((n, 24))
    return {
        "plain": normal,
        "all equal": np.full((n, 24), 3.7),
        "grid of ties": rng.integers(0, 3, (n, 4)),
        "wide grid of ties": rng.integers(0, 2, (n, 20)),
        "far from zero": 1e6 + normal,
        "two far groups": np.where(rng.random((n, 1)) < 0.5, 1e6, -1e6) + normal,
        "one wild row": np.concatenate([normal[1:], np.full((1, 24), 1e8)]),
        "duplicates": np.repeat(normal, 4, axis=0)[:n],
        "half zeros": np.concatenate([np.zeros((n // 2, 24)), normal[n // 2 :]]),
        "heavy tails": rng.standard_cauchy((n, 24)),
        "squares underflow": 1e-20 * normal,
        "squares vanish": 1e-30 * normal,
        "large": 1e17 * normal,
        "one column": rng.random((n, 1)),
        "one column in order": np.arange(n)[:, None],
    }


@pytest.mark.parametrize("name", hard_sets())
def test_both_exact_searches_equal_a_float64_brute_force_bit_for_bit(name):
    rows = hard_sets()[name].astype(np.float32)
    for k in (1, 16, len(rows) - 1):
        expected = brute(rows, k)
        kinds = [torch.float32] if rows.shape[1] < proposals.MIN_INT8 else [torch.float32, torch.int8]
        for dtype in kinds:
            assert same(exact_cpu.search(rows, k, block=97, dtype=dtype), expected), (k, dtype)
        assert same(exact_gpu.search(torch.from_numpy(rows), k, products=10_000, width=128), expected), k
    new = np.concatenate([rows[:9], 1.01 * rows[9:20]]).astype(np.float32)
    assert same(exact_cpu.search_among(rows, new, 16, block=97), brute(rows, 16, new))
    assert same(exact_gpu.search_among(torch.from_numpy(rows), torch.from_numpy(new), 16), brute(rows, 16, new))


@settings(derandomize=True, max_examples=25, deadline=None)
@given(
    n=st.integers(2, 90),
    d=st.integers(1, 3),
    values=st.integers(1, 3),
    block=st.integers(1, 100),
    seed=st.integers(0, 10**6),
    data=st.data(),
)
def test_ties_on_grids_are_broken_by_index(n, d, values, block, seed, data):
    rows = np.random.default_rng(seed).integers(0, values, (n, d)).astype(np.float32)
    k = data.draw(st.integers(1, n - 1))
    expected = brute(rows, k)
    assert same(exact_cpu.search(rows, k, block=block), expected)
    assert same(exact_gpu.search(torch.from_numpy(rows), k, products=1000, width=64), expected)


@pytest.fixture(scope="module")
def crowd():
    """Enough rows to be sorted into clusters, no multiple of any block, with ties; and the graph of 12 neighbours."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((40, 32))[rng.integers(0, 40, 4999)] + 0.3 * rng.standard_normal((4999, 32))
    rows = np.concatenate([rows, rows[:100]]).astype(np.float32)
    return rows, exact_cpu.search(rows, 12)


def test_the_graph_does_not_depend_on_block_size_codes_or_threads(crowd):
    rows, expected = crowd
    some = np.arange(0, len(rows), 50)
    reference = brute(rows, 12, rows[some])
    # the brute force of rows among all holds the row itself: its k - 1 nearest others are the first k - 1 of the graph
    others = torch.stack([line[line != i][:11] for line, i in zip(reference[0], some, strict=True)])
    assert torch.equal(expected[0][some, :11], others)
    threads = torch.get_num_threads()
    try:
        for use, block, dtype in ((1, 1024, torch.int8), (3, 700, torch.int8), (2, 512, torch.float32)):
            torch.set_num_threads(use)
            assert same(exact_cpu.search(rows, 12, block=block, dtype=dtype), expected), (use, block, dtype)
            assert torch.get_num_threads() == use
    finally:
        torch.set_num_threads(threads)


def test_the_gpu_code_on_cpu_tensors_gives_the_cpu_graph(crowd):
    rows, expected = crowd
    assert same(exact_gpu.search(torch.from_numpy(rows), 12, products=2**22), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_gpu_gives_the_cpu_graph(crowd):
    rows, expected = crowd
    graph = build(torch.from_numpy(rows).cuda(), 12)
    assert graph.device.type == "cuda"
    assert same((graph.indices.cpu(), graph.distances.cpu()), expected)


def test_changing_to_finer_codes_on_the_way_changes_nothing(crowd, monkeypatch):
    rows, expected = crowd
    monkeypatch.setattr(exact_cpu, "choose", lambda d: torch.int8)
    monkeypatch.setattr(exact_cpu, "IDEAL", 0)
    monkeypatch.setattr(exact_cpu, "WASTEFUL", 0.0)
    made = []

    def encode(rows, centre, dtype):
        made.append(dtype)
        return proposals.encode(rows, centre, dtype)

    monkeypatch.setattr(exact_cpu, "encode", encode)
    assert same(exact_cpu.search(rows, 12), expected)
    assert made == [torch.int8, torch.float32]


def test_leave_to_round_products_to_bfloat16_is_not_taken(crowd):
    rows, expected = crowd
    products = torch.backends.mkldnn.matmul
    before = products.fp32_precision
    products.fp32_precision = "bf16"
    try:
        assert same(exact_cpu.search(rows, 12, dtype=torch.float32), expected)
        assert products.fp32_precision == "bf16"
    finally:
        products.fp32_precision = before


@pytest.mark.parametrize("dtype", [torch.int8, torch.float32])
def test_codes_move_no_row_further_than_they_say(dtype):
    for name in ("plain", "heavy tails", "one wild row", "two far groups", "all equal", "wide grid of ties"):
        rows = hard_sets()[name].astype(np.float32)
        centre = proposals.find_centre(torch.from_numpy(rows)).numpy()
        codes = proposals.encode(rows, centre, dtype)
        stands_for = codes.scale[:, None].astype(np.float64) * codes.codes.numpy()
        moved = np.linalg.norm(rows.astype(np.float64) - centre - stands_for, axis=1)
        assert (moved <= codes.residual).all(), name
        # the largest residual is not idle either: within a ten thousandth of what was moved, or of nothing
        assert codes.residual.max() <= 1.0001 * moved.max() + 1e-5 * np.abs(rows).max(), name
        half = (stands_for**2).sum(1) / 2
        assert (codes.half <= half).all(), name
        assert (codes.half >= half * (1 - 2 * codes.margin)).all(), name


def test_the_largest_by_groups_are_thelargest():
    values = torch.randint(0, 1000, (20, 640), generator=torch.Generator().manual_seed(0)).float()
    for wanted in (1, 7, 50, 640):
        most, places = largest(values, wanted)
        assert torch.equal(most.sort(1, descending=True).values, values.topk(wanted).values)
        assert torch.equal(values.gather(1, places), most)
        assert all(len(set(line)) == wanted for line in places.tolist())


def test_rounded_numbers_have_eleven_bits_and_are_the_nearest():
    numbers = torch.randn(10_000, generator=torch.Generator().manual_seed(0))
    rounded = round_to_11_bits(numbers)
    mantissa, _ = torch.frexp(rounded)
    assert torch.equal(mantissa * 2048, (mantissa * 2048).round())
    assert ((rounded - numbers).abs() <= numbers.abs() * 2.0**-11).all()


def test_duplicates_stay_and_the_row_itself_never_is_its_neighbour():
    graph = build(np.ones((200, 20)), 5)
    assert (graph.distances == 0).all()
    assert graph.indices[0].tolist() == [1, 2, 3, 4, 5]
    assert graph.indices[3].tolist() == [0, 1, 2, 4, 5]
    assert graph.indices[199].tolist() == [0, 1, 2, 3, 4]


def test_permuting_rows_without_ties_permutes_the_graph():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((500, 16)).astype(np.float32)
    order = rng.permutation(500)
    graph, permuted = build(rows, 9), build(rows[order], 9)
    assert torch.equal(torch.from_numpy(order)[permuted.indices].int(), graph.indices[order])
    assert torch.equal(permuted.distances, graph.distances[order])


@pytest.mark.parametrize("offset", [1e6, 1e8, -3e12])
def test_numbers_far_from_zero_keep_their_neighbours(offset):
    rng = np.random.default_rng(7)
    # whole numbers of 1/64 and an offset in float64 add up exactly, and their differences are exact in float32
    rows = rng.integers(-640, 640, (400, 8)) / 64
    rows[:, 3] = 0.25  # a constant column
    expected, nearest = brute(rows, 10), brute(rows[:300], 5, rows[300:])
    for far in (rows + offset, (rows + offset).astype(">f8"), torch.from_numpy(rows + offset)):
        graph = build(far, 10)
        assert same((graph.indices, graph.distances), expected)
    found = query(rows[:300] + offset, rows[300:] + offset, 5)
    assert same((found.indices, found.distances), nearest)
    whole = build((rows * 64 + offset).astype(np.int64), 10)
    assert torch.equal(whole.indices, expected[0])


@pytest.mark.parametrize("offset", [1e6, 1e8, -3e12])
@pytest.mark.parametrize("missing", [0.04, 0.1, 0.45, 0.7])
def test_times_of_which_some_are_missing_as_zero_keep_their_neighbours(offset, missing):
    rng = np.random.default_rng(9)
    rows, gone = rng.integers(-640, 640, (1000, 8)) / 64, int(1000 * missing)
    times = (rows + offset).copy()
    times[:gone] = 0  # whole rows, as 10 % of a log without times
    times[gone:][rng.random(1000 - gone) < missing, 2] = -1  # and one column, by another code
    times = times[rng.permutation(1000)]
    there = np.flatnonzero((times != 0).all(1) & (times[:, 2] != -1))
    nearest = brute(times[there] - offset, 5)  # differences are exact in float64
    graph = build(times, 5)
    assert torch.equal(graph.indices[there], torch.from_numpy(there).int()[nearest[0].long()])
    assert torch.equal(graph.distances[there], nearest[1])
    found = query(times, times[there[:50]], 5)
    assert torch.equal(found.indices[:, 0], torch.from_numpy(there[:50]).int())
    assert torch.equal(found.distances[:, 1:], nearest[1][:50, :4])


@pytest.mark.parametrize("kind", ["normal", "half zeros", "heavy tails", "counts", "shares", "two groups", "few rows"])
@pytest.mark.parametrize("seed", range(5))
def test_the_columns_of_numbers_near_zero_are_taken_as_they_are(kind, seed):
    rng = np.random.default_rng(8 + seed)
    rows = {
        "normal": rng.normal([0, 1, -2, 0, 3, 0], 1, (300, 6)),
        "half zeros": np.maximum(rng.normal(size=(300, 6)), 0),
        "heavy tails": np.exp(4 * rng.normal(size=(300, 6))),
        "counts": rng.poisson([0.1, 1, 10, 1, 1, 1], (300, 6)).astype(float),
        "shares": rng.dirichlet(np.full(6, 0.1), 300),
        "two groups": np.where(rng.random((300, 1)) < 0.3, 50, -50) + rng.normal(size=(300, 6)),
        "few rows": rng.random((12, 6)),
    }[kind]
    graph = build(rows, 7)
    assert same((graph.indices, graph.distances), brute(rows.astype(np.float32), 7))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_warning_says_where_float32_cannot_tell_rows_apart_whatever_is_taken_away(metric):
    rng = np.random.default_rng(12)
    rows = rng.normal(size=(600, 8))
    places = np.where(rng.random((600, 1)) < 0.3, 1e9, -1e9)
    if metric == "cosine":  # two bundles of directions
        places = places * np.where(np.arange(8) < 4, 1, np.sign(places))
    words = r"float32 must tell rows apart; got distances that it falsifies in \d+% of a sample of rows.* Bring these"
    with pytest.warns(UserWarning, match=words):
        build(rows + places, 5, metric=metric)
    with pytest.warns(UserWarning, match=words):
        query(rows + places, rows[:50] + places[:50], 5, metric=metric)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # but not where numbers do not differ there, or other columns tell rows apart
        build(np.where(places[:, :1] > 0, rows + 1e9, 0), 5, metric=metric)
        build(np.concatenate([1e3 * rows, np.where(rows[:, :1] > 0, 1e3, 2e3)], 1), 5, metric=metric)
        build(np.repeat(rows, 7, 0) + 1e-12 * rng.normal(size=(4200, 8)), 7, metric=metric)


@pytest.mark.parametrize(("offset", "spread"), [(1e6, 1), (1e8, 1), (1e4, 1e-3), (-1e9, 1)])
def test_directions_that_hardly_differ_keep_their_neighbours(offset, spread):
    rng = np.random.default_rng(11)
    rows = (offset + spread * rng.normal(size=(600, 8))) * rng.uniform(0.5, 2, (600, 1))  # lengths do not count
    rows[7] = 0  # no direction, and no reason to round the others
    exact = rows.astype(np.longdouble)
    unit = exact / np.maximum(np.sqrt((exact**2).sum(1, keepdims=True)), 1e-9)
    there = np.flatnonzero(rows.any(1))
    unit = ((unit - unit[there].mean(0)) / unit[there].std()).astype(np.float64)
    truth = np.take(there, brute(unit[there], 10)[0].numpy())
    wanted = [set(row) for row in truth.tolist()]
    for found in (build(rows, 10, metric="cosine"), build(torch.from_numpy(rows), 10, "approximate", "cosine")):
        kept = [len(set(found.indices[i].tolist()) & near) for i, near in zip(there, wanted, strict=True)]
        assert np.mean(kept) > 9.9  # of 10; float64 itself swaps a few that are equally near at 1e9
        assert found.distances[7].isinf().all()
    asked = query(rows, rows[there[:80]], 11, metric="cosine").indices
    kept = [len(set(row.tolist()) & near) for row, near in zip(asked, wanted, strict=False)]
    assert np.mean(kept) > 9.9
    assert torch.equal(asked[:, 0], torch.from_numpy(there[:80]).int())


def test_cosine_is_euclidean_between_rows_of_length_one():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((100, 8)) * 10 ** rng.uniform(-12, 12, (100, 1))
    graph = build(rows, 5, metric="cosine")
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    assert same((graph.indices, graph.distances), brute(unit, 5))
    assert graph.metric == "cosine"
    new = query(rows, rows[:4], 1, metric="cosine")
    assert new.indices[:, 0].tolist() == [0, 1, 2, 3]


def test_every_kind_of_matrix_gives_the_same_graph(tmp_path):
    whole = np.random.default_rng(4).integers(0, 100, (60, 5))
    rows = whole.astype(np.float32)
    read_only = rows.copy()
    read_only.flags.writeable = False
    np.save(tmp_path / "rows.npy", rows)
    kinds = [rows.tolist(), whole, np.asfortranarray(rows), rows[::-1][::-1], read_only]
    kinds += [whole.astype(np.uint16), *(rows.astype(kind) for kind in (np.float16, np.float64, ">f4"))]
    kinds += [np.load(tmp_path / "rows.npy", mmap_mode="r"), torch.from_numpy(rows)]
    kinds += [torch.from_numpy(rows).to(torch.bfloat16), torch.from_numpy(rows).requires_grad_()]
    expected = build(rows, 4)
    for kind in kinds:
        assert build(kind, 4) == expected


def test_query_includes_a_row_that_is_in_the_old_set():
    rows = np.random.default_rng(5).standard_normal((80, 20)).astype(np.float32)
    graph = query(rows, rows[10:13], 80)
    assert graph.indices[:, 0].tolist() == [10, 11, 12]
    assert (graph.n, graph.k, graph.columns) == (3, 80, 80)
    assert repr(graph) == "Graph(3 rows, 80 neighbours among 80, euclidean, exact, recall=1.0000, on cpu)"


GOOD = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((GOOD, 6), r"k must be between 1 and 5, the number of other rows of 6; got 6\."),
        ((GOOD, 0), r"k must be between 1 and 5, .*; got 0\."),
        ((GOOD, 2.0), r"k must be a whole number of neighbours; got 2\.0\."),
        ((GOOD[:1], 1), r"k must be between 1 and 0, the number of other rows of 1; got 1\."),
        (
            (GOOD[0], 1),
            r"an \(n, d\) matrix, one row per instance; got shape \(2,\)\. For one feature per instance use .*reshape",
        ),
        ((GOOD.reshape(3, 2, 2), 1), r"got shape \(3, 2, 2\)\. Flatten each instance"),
        ((GOOD[:, :0], 1), r"got shape \(6, 0\)\."),
        (
            (np.where(GOOD == 5, np.nan, GOOD), 1),
            r"must be finite float32 numbers; got NaN, inf or more than 3\.4e38 in row 2\.",
        ),
        ((np.where(GOOD == 10, 1e39, GOOD), 1), r"got NaN, inf or more than 3\.4e38 in row 5\."),
        (
            (GOOD * 1e19, 1),
            r"small enough for float32 squared distances; got rows .* from their middle\. "
            r"Divide all features by one number\.",
        ),
        ((GOOD.astype(str), 1), r"a dense \(n, d\) matrix of numbers; got ndarray of <U"),
        ((GOOD.astype(complex), 1), r"a dense \(n, d\) matrix of numbers; got ndarray of complex128\."),
        (
            (GOOD, 1, "exakt"),
            r"unknown method 'exakt': did you mean exact\? The known ones are approximate, auto, exact\.",
        ),
        ((GOOD, 1, "exact", "l2"), r"unknown metric 'l2': The known ones are cosine, euclidean\."),
    ],
)
def test_build_says_what_is_wrong(arguments, words):
    with pytest.raises(InputError, match=words):
        build(*arguments)


def test_query_says_what_is_wrong():
    with pytest.raises(InputError, match=r"new must have the 2 columns that features has; got 1\."):
        query(GOOD, GOOD[:, :1], 1)
    with pytest.raises(InputError, match=r"k must be between 1 and 6, the number of rows of features; got 7\."):
        query(GOOD, GOOD, 7)
    with pytest.raises(InputError, match=r"new must be finite float32 numbers; .* in row 0\."):
        query(GOOD, GOOD * np.nan, 1)
    with pytest.raises(InputError, match=r"features and new must be on one device; got cpu and meta\."):
        query(torch.ones(3, 2), torch.ones(1, 2, device="meta"), 1)


def test_too_large_numbers_are_refused_by_the_gpu_code_too():
    with pytest.raises(InputError, match=r"small enough for float32 squared distances"):
        exact_gpu.search(torch.from_numpy((GOOD * 1e19).astype(np.float32)), 1)


# rows of zeros, by cosine


def cosine_oracle(x, asked, k, *, itself):
    """Rows and distances of the k nearest by cosine, in float64 of float32 rows of length 1; gaps are inf."""

    def unit(rows):
        lengths = np.sqrt((rows.astype(np.float64) ** 2).sum(1, keepdims=True))
        return (rows / np.where(lengths, lengths, 1)).astype(np.float32).astype(np.float64)

    rows, there = unit(x), x.any(1)
    neighbors, distances = [], []
    for i, one in enumerate(unit(asked)):
        apart = ((rows - one) ** 2).sum(1).astype(np.float32)
        apart[~there | (itself & (np.arange(len(x)) == i)) | (not one.any())] = np.inf
        order = np.argsort(apart, kind="stable")[:k]
        neighbors.append(order)
        distances.append(apart[order])
    return np.array(neighbors), np.array(distances)


def same_neighbors(graph, oracle):
    there = np.isfinite(oracle[1])
    assert np.array_equal(graph.distances.numpy(), oracle[1])
    assert np.array_equal(graph.indices.numpy()[there], oracle[0][there])
    check(graph)


@pytest.mark.parametrize("k", [1, 5, 56, 57, 59])  # of 60 rows 57 are not zero
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_row_of_zeros_has_no_neighbours_and_is_nobodys(k, kind):
    x = np.random.default_rng(0).normal(size=(60, 4)).astype(kind)
    x[[0, 17, 59]] = 0
    same_neighbors(build(x, k, metric="cosine"), cosine_oracle(x, x, k, itself=True))
    new = x[[0, 3, 17, 4]]
    same_neighbors(query(x, new, k, metric="cosine"), cosine_oracle(x, new, k, itself=False))
    assert build(x, k, metric="cosine").to_csr().nnz == 57 * min(k, 56)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_gpu_leaves_the_same_gaps():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32))
    x[::50] = 0
    assert build(x.cuda(), 9, metric="cosine").to("cpu") == build(x, 9, metric="cosine")
    assert query(x.cuda(), x[:60].cuda(), 9, metric="cosine").to("cpu") == query(x, x[:60], 9, metric="cosine")


def test_the_approximate_search_leaves_rows_of_zeros_out_too():
    x = np.random.default_rng(0).normal(size=(3000, 6)).astype(np.float32)
    x[::100] = 0
    graph, exact = (build(x, 7, method, "cosine") for method in ("approximate", "exact"))
    check(graph)
    assert graph.distances[::100].isinf().all()
    assert graph.distances[x.any(1)].isfinite().all()
    assert not np.isin(graph.indices[x.any(1)], np.arange(0, 3000, 100)).any()
    assert (graph.indices == exact.indices).float().mean() > 0.95
    same_neighbors(exact, cosine_oracle(x, x, 7, itself=True))


@pytest.mark.parametrize("rows", [2, 5])
def test_where_at_most_one_row_has_a_direction_nobody_has_neighbours(rows):
    for filled in (0, 1):
        x = np.zeros((rows, 3), np.float32)
        x[:filled] = 1
        graph = build(x, rows - 1, metric="cosine")
        check(graph)
        assert graph.distances.isinf().all()
        assert graph.to_csr().nnz == 0
    assert query(x, x, rows, metric="cosine").distances[1:].isinf().all()


def test_gaps_survive_a_file_and_are_refused_where_they_cannot_be(tmp_path):
    x = np.eye(5, 3, dtype=np.float32)
    graph = build(x, 2, metric="cosine")
    graph.save(tmp_path / "g.safetensors")
    assert Graph.load(tmp_path / "g.safetensors") == graph
    with pytest.raises(InputError, match="distances must be finite"):
        check(replace(graph, metric="euclidean"))
