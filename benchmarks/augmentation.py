"""Label sharing against its peers on the same data in one process: is it right, and what part of their time is it?

    python benchmarks/augmentation.py                  50,000 x 512 rows, 64 neighbours, 100 rounds: minutes on 2 cores
    python benchmarks/augmentation.py --rows 5000      a quick look

The rows and the neighbours are those of `neighbors.py`, one turn each, for the work is long. Peers of the propagation:
scipy's CSR product in float32 and scikit-learn's LabelSpreading. Each is first checked to give the same answer. Times
are the least of several, in turns. One line of JSON a measurement goes to `benchmarks/results/augmentation.jsonl`.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import RESULTS, compare, record, take_turns
from neighbors import bench_exact, load_rows

import naysay
from naysay.augmentation import propagate, weights
from naysay.neighbors import Graph

ALPHA = 0.1
TOLERANCE = 1e-6  # float32 against a double-precision reference of exactly as many rounds


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

    own = {f"naysay, {backend}": partial(ours, backend) for backend in ("torch", "numba")}
    competitors = {"scipy CSR, float32": scipy, **own}
    exact = in_double_precision(graph, W, given, rounds)
    errors = {name: float(np.abs(run() - exact).max()) for name, run in competitors.items()}
    for name, error in errors.items():
        if not error < TOLERANCE:
            raise SystemExit(f"{name} is off by {error:.1e} from {rounds} rounds in double precision: not timed.")
    turns = take_turns(competitors, repeats)
    return compare(f"propagation, K={n_classes}, {rounds} rounds", turns, errors, "scipy CSR, float32")


def bench_label_spreading(graph: Graph, rounds: int) -> list[dict[str, Any]]:
    """scikit-learn's LabelSpreading on the same graph; `propagate` gets its matrix, 1 / sqrt(in-degrees), to check."""
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


def floors(graph: Graph, n_classes: int, rounds: int) -> list[dict[str, Any]]:
    """What the machine could do at best: its measured matrix and copy rates, and the propagation's time by these."""
    a = torch.rand(2048, 2048)
    seconds = take_turns({"product": lambda: a @ a}, 5)["product"].wall
    flops = 2 * 2048**3 / seconds
    big = torch.empty(32 * 2**20)  # 128 MiB, beyond the caches
    big.fill_(1)
    other = torch.empty_like(big)
    seconds = take_turns({"copy": lambda: other.copy_(big)}, 5)["copy"].wall
    rate = 2 * big.numel() * 4 / seconds
    # a row number, of 16 bits where they suffice, and a weight
    edges, edge_bytes = graph.indices.numel(), 6 if graph.n <= 2**16 else 8
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
    parser.add_argument("--neighbors", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "augmentation.jsonl")
    chosen = parser.parse_args(argv)
    x, origin = load_rows(chosen.rows, chosen.dims)
    graph, rows = bench_exact(x, chosen.neighbors, 1)
    for n_classes in (10, 20):
        rows += bench_propagation(graph, n_classes, chosen.rounds, chosen.repeats)
        rows += floors(graph, n_classes, chosen.rounds)
    rows += bench_label_spreading(graph, chosen.rounds)
    show(rows)
    sizes = {"rows": graph.n, "neighbours": graph.k}
    packages = ("torch", "numpy", "scipy", "scikit-learn", "faiss-cpu", "numba")
    record(chosen.out, "augmentation", origin, packages, [{**sizes, **row} for row in rows])


if __name__ == "__main__":
    main()
