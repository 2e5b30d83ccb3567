"""Label sharing against its peers on the same data, in one process, on this machine: is it right, and what part of their time does it take?

    python benchmarks/augmentation.py                    50,000 x 512 rows, 64 neighbours, 100 rounds: a few minutes on 2 cores
    python benchmarks/augmentation.py --rows 5000        a quick look

The features are `../shared/data/cifar10_features.npz` where that is, else synthetic clusters of the same size. Peers: scikit-learn's brute
force and faiss's flat index for neighbours, scipy's CSR product in float32 and scikit-learn's LabelSpreading
for propagation. Each is first checked to give the same answer. Times are the least of several, the competitors taking turns, so that other
work on the machine disturbs all alike. One line of JSON a measurement goes to `benchmarks/results/augmentation.jsonl`.
"""

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import naysay
from naysay.augmentation import propagate, weights
from naysay.neighbors import Graph

HERE = Path(__file__).resolve().parent
FEATURES = HERE.parents[1] / "shared" / "data" / "cifar10_features.npz"
ALPHA = 0.1
TOLERANCE = 1e-6  # float32 against a double-precision reference of exactly as many rounds


def load_features(rows: int, dims: int) -> tuple[np.ndarray, str]:
    """Rows of length 1, (rows, dims) float32, and where they come from."""
    if FEATURES.exists() and rows <= 50_000 and dims == 512:
        with np.load(FEATURES) as file:
            x, origin = file["train"][:rows] * file["scale"].astype(np.float32), "cifar10_features.npz"
    else:
        draw = naysay.seeds.stream(0, "benchmark features")
        centres = draw.standard_normal((10, dims), dtype=np.float32)
        x = centres[draw.integers(0, 10, rows)] + 1.5 * draw.standard_normal((rows, dims), dtype=np.float32)
        origin = "synthetic clusters"
    return x / np.linalg.norm(x, axis=1, keepdims=True), origin


def take_turns(competitors: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, float]]:
    """The least wall time and the least CPU time of each, in seconds, over `repeats` turns."""
    best = dict.fromkeys(competitors, (float("inf"), float("inf")))
    for _ in range(repeats):
        for name, run in competitors.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            taken = time.perf_counter() - wall, time.process_time() - cpu
            best[name] = (min(best[name][0], taken[0]), min(best[name][1], taken[1]))
    return best


def bench_neighbours(x: np.ndarray, k: int) -> tuple[Graph, list[dict[str, Any]]]:
    """The exact graph, and its time against scikit-learn's brute force and faiss's flat index: one turn each, the work is long."""
    import faiss
    from sklearn.neighbors import NearestNeighbors

    def sklearn() -> np.ndarray:
        return NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=-1).fit(x).kneighbors()[0] ** 2

    def flat() -> np.ndarray:
        index = faiss.IndexFlatL2(x.shape[1])
        index.add(x)
        return index.search(x, k + 1)[0][:, 1:]  # the row itself comes first, or a duplicate at the same distance

    def ours() -> Graph:
        return naysay.neighbors.build(x, k, method="exact")

    found: dict[str, Any] = {}
    competitors = {"scikit-learn, brute force": sklearn, "faiss IndexFlatL2": flat, "naysay, exact": ours}
    naysay.neighbors.build(x[: 4 * k], k, method="exact")  # compiles what is compiled on first use
    times = take_turns({name: partial(lambda name, run: found.update({name: run()}), name, run) for name, run in competitors.items()}, 1)
    graph = found.pop("naysay, exact")
    errors = {name: float(np.abs(distances - graph.distances.numpy()).max()) for name, distances in found.items()}
    for name, error in errors.items():
        if not error < 1e-5:  # the peers round differences of float32 squared lengths of 1
            raise SystemExit(f"{name} and naysay differ by {error:.1e} in a squared distance between rows of length 1.")
    return graph, compare(f"exact graph, {x.shape[0]} x {x.shape[1]}, k={k}", times, errors, "faiss IndexFlatL2")


def in_double_precision(graph: Graph, W: torch.Tensor, comp: np.ndarray, rounds: int) -> np.ndarray:
    """Exactly `rounds` rounds with scipy in float64: the reference."""
    z = given = comp.astype(np.float64)
    matrix = as_csr(graph, W.double())
    for _ in range(rounds):
        z = ALPHA * given + (1 - ALPHA) * (matrix @ z)
    return z / z.sum(1, keepdims=True)


def as_csr(graph: Graph, W: torch.Tensor) -> Any:
    csr = graph.to_csr()
    return type(csr)((W.numpy().reshape(-1), csr.indices, csr.indptr), shape=csr.shape)


def bench_propagation(graph: Graph, n_classes: int, rounds: int, repeats: int) -> list[dict[str, Any]]:
    """The backends of `propagate` against scipy's CSR product in float32, K classes, DMS weights."""
    W = weights.by_distance(graph.distances, 1.0)
    named = naysay.seeds.stream(0, "benchmark labels").integers(0, n_classes, graph.n)
    comp = naysay.labels.from_indices(named, n_classes)
    given, matrix = comp.numpy(), as_csr(graph, W)

    def scipy() -> np.ndarray:
        z = given
        for _ in range(rounds):
            z = np.float32(ALPHA) * given + np.float32(1 - ALPHA) * (matrix @ z)
        return z / z.sum(1, keepdims=True)

    def ours(backend: str) -> np.ndarray:
        return propagate(graph.indices, W, comp, alpha=ALPHA, rounds=rounds, backend=backend).labels.numpy()

    competitors = {"scipy CSR, float32": scipy, "naysay, torch": partial(ours, "torch"), "naysay, numba": partial(ours, "numba")}
    exact = in_double_precision(graph, W, given, rounds)
    errors = {name: float(np.abs(run() - exact).max()) for name, run in competitors.items()}
    for name, error in errors.items():
        if not error < TOLERANCE:
            raise SystemExit(f"{name} is off by {error:.1e} from {rounds} rounds in double precision: not timed.")
    return compare(f"propagation, K={n_classes}, {rounds} rounds", take_turns(competitors, repeats), errors, "scipy CSR, float32")


def bench_label_spreading(graph: Graph, rounds: int) -> list[dict[str, Any]]:
    """scikit-learn's LabelSpreading on the same graph; its matrix, 1 / sqrt(in-degrees), is given to `propagate` to check equality."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.semi_supervised import LabelSpreading

    named = naysay.seeds.stream(0, "benchmark labels").integers(0, 10, graph.n)
    comp = naysay.labels.from_indices(named, 10)
    connected = as_csr(graph, torch.ones_like(graph.distances, dtype=torch.float64))
    degrees = torch.bincount(graph.indices.reshape(-1), minlength=graph.n).clamp(min=1).double()
    W = (degrees[:, None] * degrees[graph.indices.long()]).rsqrt().float()
    model = LabelSpreading(kernel=lambda *_: connected, alpha=1 - ALPHA, max_iter=rounds, tol=0)

    def spread() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # asked for exactly `rounds`
            return model.fit(np.zeros((graph.n, 1)), named).label_distributions_

    def ours() -> np.ndarray:
        return propagate(graph.indices, W, comp, alpha=ALPHA, rounds=rounds, backend="numba").labels.numpy()

    error = float(np.abs(spread() - ours()).max())
    if not error < TOLERANCE:
        raise SystemExit(f"LabelSpreading and propagate differ by {error:.1e} on the same matrix: not timed.")
    times = take_turns({"scikit-learn LabelSpreading": spread, "naysay, numba": ours}, 1)
    return compare(f"spreading, K=10, {rounds} rounds", times, {"naysay, numba": error}, "scikit-learn LabelSpreading")


def compare(case: str, times: dict[str, tuple[float, float]], errors: dict[str, float], peer: str) -> list[dict[str, Any]]:
    """One row for each competitor: its times, and what part they are of the peer's."""
    return [
        {
            "case": case,
            "who": name,
            "wall_s": round(wall, 4),
            "cpu_s": round(cpu, 4),
            "peer": peer,
            "ratio": round(wall / times[peer][0], 4),
            "cpu_ratio": round(cpu / times[peer][1], 4),
            "max_error": errors.get(name),
        }
        for name, (wall, cpu) in times.items()
    ]


def floors(graph: Graph, n_classes: int, rounds: int) -> list[dict[str, Any]]:
    """What the machine could do at best: its measured matrix and copy rates, and the time they allow the propagation."""
    a = torch.rand(2048, 2048)
    seconds = take_turns({"product": lambda: a @ a}, 5)["product"][0]
    flops = 2 * 2048**3 / seconds
    big = torch.empty(32 * 2**20)  # 128 MiB, beyond the caches
    big.fill_(1)
    other = torch.empty_like(big)
    seconds = take_turns({"copy": lambda: other.copy_(big)}, 5)["copy"][0]
    rate = 2 * big.numel() * 4 / seconds
    edges, edge_bytes = graph.indices.numel(), 6 if graph.n <= 2**16 else 8  # a row number, of 16 bits where they suffice, and a weight
    return [
        {
            "case": f"floors, K={n_classes}, {rounds} rounds",
            "who": "this machine",
            "matrix_gflops": round(flops / 1e9, 1),
            "copy_gb_s": round(rate / 1e9, 1),
            "arithmetic_s": round(2 * edges * n_classes * rounds / flops, 4),
            "bytes_s": round((edge_bytes * edges + 12 * graph.n * n_classes) * rounds / rate, 4),
        }
    ]


def about(origin: str, graph: Graph) -> dict[str, Any]:
    """What every line of the results carries."""
    cpu = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    packages = ("torch", "numpy", "scipy", "scikit-learn", "faiss-cpu", "numba")
    return {
        "benchmark": "augmentation",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{cpu}, {os.cpu_count()} cores, {platform.system()}",
        "load": round(os.getloadavg()[0], 2),
        "versions": {"naysay": naysay.__version__, "python": platform.python_version(), **{name: version(name) for name in packages}},
        "data": origin,
        "rows": graph.n,
        "neighbours": graph.k,
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", "wall", "CPU", "ratio", "CPU ratio", "largest error", title="label sharing against its peers")
    case = None
    for row in (row for row in rows if "ratio" in row):
        if row["case"] != case:
            case = row["case"]
            table.add_section()
            table.add_row(f"[bold]{case}[/bold]")
        error = "" if row["max_error"] is None else f"{row['max_error']:.1e}"
        times = f"{row['wall_s']:.3f} s", f"{row['cpu_s']:.3f} s", f"{row['ratio']:.3f}", f"{row['cpu_ratio']:.3f}"
        table.add_row(row["who"], *times, error)
    console = Console()
    console.width = max(console.width, 110)  # a log file has no width of its own
    console.print(table)
    for row in (row for row in rows if "matrix_gflops" in row):
        console.print(
            f"{row['case']}: {row['matrix_gflops']} GFLOP/s of float32 product allow {row['arithmetic_s']:.3f} s, "
            f"{row['copy_gb_s']} GB/s of copying {row['bytes_s']:.3f} s"
        )


def main(argv: list[str] | None = None) -> None:
    """Check, time, show, and append to the results; `argv` is the command line unless given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--dims", type=int, default=512)
    parser.add_argument("--neighbours", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "augmentation.jsonl")
    chosen = parser.parse_args(argv)
    x, origin = load_features(chosen.rows, chosen.dims)
    graph, rows = bench_neighbours(x, chosen.neighbours)
    for n_classes in (10, 20):
        rows += bench_propagation(graph, n_classes, chosen.rounds, chosen.repeats)
        rows += floors(graph, n_classes, chosen.rounds)
    rows += bench_label_spreading(graph, chosen.rounds)
    show(rows)
    common = about(origin, graph)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    with open(chosen.out, "a", encoding="utf-8") as file:
        file.writelines(json.dumps({**common, **row}) + "\n" for row in rows)
    print(f"{len(rows)} lines written to {chosen.out}")


if __name__ == "__main__":
    main()
