"""Neighbour search against its peers on the same rows and machine: is it right, and what part of their time is it?

    python benchmarks/neighbors.py                 50,000 x 512, 64 neighbours, one process: two minutes on 2 cores
    python benchmarks/neighbors.py --approximate   1,000,000 x 128, each in a process of its own: about ten minutes

Exact peers: faiss's flat index and scikit-learn's brute force. Approximate peer: pynndescent's own default graph of as
many neighbours. Results are checked first: ours against a float64 brute force of some rows, bit for bit; the peers'
distances against ours. Times are the least of several turns, wall and processor time both. One line of JSON a
measurement goes to `benchmarks/results/neighbors.jsonl`.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import RESULTS, compare, record, take_turns

from naysay import neighbors
from naysay.neighbors import exact_cpu, proposals
from naysay.seeds import stream

FEATURES = Path(__file__).resolve().parents[2] / "shared" / "data" / "cifar10_features.npz"
ROUNDING = 1e-5  # the peers subtract float32 squared lengths of about 1


def load_rows(n: int, d: int) -> tuple[np.ndarray, str]:
    """Rows of length 1 (n, d) float32, and where they come from."""
    if FEATURES.exists() and n <= 50_000 and d == 512:
        with np.load(FEATURES) as file:
            rows, origin = file["train"][:n] * file["scale"].astype(np.float32), FEATURES.name
    else:
        rows, origin = make_rows(n, d), "synthetic, see make_rows"
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), origin


def make_rows(n: int, d: int) -> np.ndarray:
    """Clusters that touch, on a curved surface of 12 dimensions, with a little noise in all d: (n, d) float32."""
    draw = stream(0, "benchmark rows")
    centres = draw.standard_normal((max(10, n // 1000), 12), dtype=np.float32)
    bend = draw.standard_normal((12, 64), dtype=np.float32) / 2
    spread = draw.standard_normal((64, d), dtype=np.float32) / 8
    rows = np.empty((n, d), np.float32)
    for start in range(0, n, 100_000):
        part = rows[start : start + 100_000]
        latent = centres[draw.integers(0, len(centres), len(part))]
        latent = latent + 0.6 * draw.standard_normal((len(part), 12), dtype=np.float32)
        part[:] = np.tanh(latent @ bend) @ spread + 0.05 * draw.standard_normal(part.shape, dtype=np.float32)
    return rows


def check_exact(rows: np.ndarray, graph: neighbors.Graph, checked: int = 200) -> None:
    """Stop unless some rows of the graph are bit for bit what float64 differences, summed, rounded and sorted give."""
    wide = rows.astype(np.float64)
    for i in stream(0, "benchmark check").permutation(len(rows))[:checked]:
        squared = ((wide - wide[i]) ** 2).sum(1).astype(np.float32)
        order = np.lexsort((np.arange(len(rows)), squared))
        order = order[order != i][: graph.k]
        if not (np.array_equal(order, graph.indices[i]) and np.array_equal(squared[order], graph.distances[i])):
            raise SystemExit(f"The graph differs from a float64 brute force in row {i}: not timed.")


def bench_exact(rows: np.ndarray, k: int, repeats: int) -> tuple[neighbors.Graph, list[dict[str, Any]]]:
    """The exact graph, and lines for ours with both kinds of code, faiss and scikit-learn, in parts of faiss's time."""
    import faiss
    from sklearn.neighbors import NearestNeighbors

    def ours(codes: torch.dtype | None = None) -> np.ndarray:
        return exact_cpu.search(rows, k, dtype=codes)[1].numpy()

    def flat() -> np.ndarray:
        index = faiss.IndexFlatL2(rows.shape[1])
        index.add(rows)
        return index.search(rows, k + 1)[0][:, 1:]  # the row itself comes first, or a duplicate at the same distance

    def brute() -> np.ndarray:
        return NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=-1).fit(rows).kneighbors()[0] ** 2

    competitors: dict[str, Callable[[], np.ndarray]] = {
        "faiss IndexFlatL2": flat,
        "scikit-learn, brute force": brute,
        "naysay": ours,
        "naysay, int8 codes": partial(ours, torch.int8),
        "naysay, float32 codes": partial(ours, torch.float32),
    }
    neighbors.build(rows[: 4 * k], k, method="exact")  # compiles what is compiled on first use
    graph = neighbors.build(rows, k, method="exact")
    check_exact(rows, graph)
    turns = take_turns(competitors, repeats)
    errors = {name: float(np.abs(turn.answer - graph.distances.numpy()).max()) for name, turn in turns.items()}
    for name, error in errors.items():
        if not error <= (0 if name.startswith("naysay") else ROUNDING):
            raise SystemExit(f"{name} differs from the checked graph by {error:.1e} in a squared distance.")
    lines = compare(f"exact graph, {rows.shape[0]} x {rows.shape[1]}, k={k}", turns, errors, "faiss IndexFlatL2")
    return graph, lines + floors(*rows.shape)


def floors(n: int, d: int) -> list[dict[str, Any]]:
    """The time of n^2 d / 2 multiply-adds, each pair once, at the rate of 1024 x 1024 rows measured on all cores."""
    lines = []
    for dtype in (torch.int8, torch.float32):
        codes = torch.ones(1024, d, dtype=dtype)
        rate = 1024**2 * d / take_turns({"product": partial(proposals.multiply, codes, codes)}, 20)["product"].wall
        name = str(dtype).removeprefix("torch.")
        lines.append(
            {
                "case": f"floor, {n} x {d}, {name} products",
                "who": "this machine",
                "multiply_adds_g": round(rate / 1e9, 1),
                "floor_s": round(n**2 / 2 * d / rate, 3),
            }
        )
    return lines


def bench_approximate(n: int, d: int, k: int, peer_too: bool = True) -> list[dict[str, Any]]:
    """A line for ours and one for pynndescent's, each built in a process of its own, with the recall of 1,000 rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, make_rows(n, d))
        rows = np.load(path, mmap_mode="r")
        asked = np.sort(stream(0, "benchmark recall").permutation(n)[:1000])
        true = neighbors.query(rows, rows[asked], k + 1)
        furthest = true.distances[:, -1].numpy()  # of the k others: the row itself is among the k + 1
        builders = {"pynndescent, its default": build_pynndescent} if peer_too else {}
        builders["naysay, approximate"] = build_ours
        lines = []
        for name, build in builders.items():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                distances, about = pool.apply(build, (path, asked, k))
            recall = float((distances <= furthest[:, None] * (1 + 1e-5)).sum() / (len(asked) * k))
            case = f"approximate graph, {n} x {d}, k={k}"
            lines.append({"case": case, "who": name, "recall": round(recall, 4), **about})
        for line in lines:
            line |= {"peer": lines[0]["who"], "ratio": round(line["wall_s"] / lines[0]["wall_s"], 3), "max_error": None}
            line["cpu_ratio"] = round(line["cpu_s"] / lines[0]["cpu_s"], 3)
        return lines


def build_ours(path: Path, asked: np.ndarray, k: int) -> tuple[np.ndarray, dict[str, Any]]:
    """The squared distances (m, k) of the asked rows, and the time and memory of the whole graph."""
    rows = np.load(path)
    neighbors.build(rows[:10_000], k, "approximate")  # compiles what is compiled on first use
    wall, cpu = time.perf_counter(), time.process_time()
    graph = neighbors.build(rows, k, "approximate")
    taken = {"wall_s": round(time.perf_counter() - wall, 1), "cpu_s": round(time.process_time() - cpu, 1)}
    taken["claimed_recall"] = graph.recall
    return graph.distances[asked].numpy(), taken | {"peak_gib": peak_gib()}


def build_pynndescent(path: Path, asked: np.ndarray, k: int) -> tuple[np.ndarray, dict[str, Any]]:
    """The same by pynndescent, asked for k neighbours, of which the row itself is one."""
    from pynndescent import NNDescent

    rows = np.load(path)
    NNDescent(rows[:5000], n_neighbors=k, random_state=0)
    wall, cpu = time.perf_counter(), time.process_time()
    indices, distances = NNDescent(rows, n_neighbors=k, random_state=0).neighbor_graph
    taken = {"wall_s": round(time.perf_counter() - wall, 1), "cpu_s": round(time.process_time() - cpu, 1)}
    # the row itself is no neighbour: it counts as one that is missing
    return np.where(indices[asked] == asked[:, None], np.inf, distances[asked] ** 2), taken | {"peak_gib": peak_gib()}


def peak_gib() -> float:
    """The most memory that this process has held."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)


def main(argv: list[str] | None = None) -> None:
    """Check, time, print, and append to the results; `argv` is the command line unless given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--approximate", action="store_true")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--dims", type=int)
    parser.add_argument("--neighbors", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "neighbors.jsonl")
    chosen = parser.parse_args(argv)
    if chosen.approximate:
        origin = "synthetic, see make_rows"
        lines = bench_approximate(chosen.rows or 1_000_000, chosen.dims or 128, chosen.neighbors)
    else:
        rows, origin = load_rows(chosen.rows or 50_000, chosen.dims or 512)
        _, lines = bench_exact(rows, chosen.neighbors, chosen.repeats)
    for line in lines:
        print(", ".join(f"{name} {value}" for name, value in line.items() if value is not None))
    packages = ("torch", "numpy", "scikit-learn", "faiss-cpu", "numba", "pynndescent")
    record(chosen.out, "neighbors", origin, packages, lines)


if __name__ == "__main__":
    main()
