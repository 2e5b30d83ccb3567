"""Exact neighbours and propagation on one GPU: are they right, and how near to what the chip can do?

    python benchmarks/gpu.py                       50,000 x 512 and 1,000,000 x 512 rows, 64 neighbours: a minute
    python benchmarks/gpu.py --rows 5000 --many 0  a quick look, on a CPU too

Neighbours are checked first, bit for bit, against float64 differences of some rows, and propagation against as many
rounds in float64. The peers are what one would write in torch: products of all rows and topk (not exact), and
`embedding_bag`. The floors are measured in the same process: products alone, and copying. One line of JSON a
measurement goes to `benchmarks/results/gpu.jsonl`. Training steps are `training.py --gpu`.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measuring import RESULTS, record, take_turns
from neighbors import make_rows
from torch import Tensor

import naysay
from naysay.augmentation import propagate, weights
from naysay.neighbors import exact_gpu
from naysay.seeds import stream

ALPHA = 0.1
TOLERANCE = 1e-6
BLOCK = 4096  # rows of products at once, where a peer or a floor needs them

Line = dict[str, Any]


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def timed(runs: dict[str, Callable[[], Any]], device: torch.device, repeats: int) -> dict[str, float]:
    """The least seconds of each, in turns, the device's work included; each runs once before."""

    def whole(run: Callable[[], Any]) -> None:
        run()
        wait(device)

    waiting = {name: partial(whole, run) for name, run in runs.items()}
    take_turns(waiting, 1)
    return {name: turn.wall for name, turn in take_turns(waiting, repeats).items()}


def check_neighbors(rows: Tensor, k: int, checked: int) -> int:
    """Stop unless that many rows have bit for bit the neighbours that float64 differences, rounded and sorted, give."""
    indices, distances = exact_gpu.search(rows, k)
    wide = rows.double()
    asked = stream(0, "benchmark check").permutation(len(rows))[:checked]
    for i in map(int, asked):
        squared = (wide - wide[i]).square_().sum(1).float()
        squared[i] = torch.inf  # a row is not its own neighbour
        order = squared.argsort(stable=True)[:k]
        if not (torch.equal(order.int(), indices[i]) and torch.equal(squared[order], distances[i])):
            raise SystemExit(f"The graph differs from a float64 brute force in row {i}: not timed.")
    return len(asked)


def products_and_topk(rows: Tensor, k: int) -> Tensor:
    """Neighbours as one would write them: |a - b|^2 by a product at the set precision, and topk; not exact."""
    half = rows.square().sum(1) / 2
    found = [torch.topk(part @ rows.T - half, k + 1).indices for part in rows.split(BLOCK)]
    return torch.cat(found)


def products_alone(rows: Tensor) -> None:
    room = torch.empty(BLOCK, len(rows), device=rows.device)
    for part in rows.split(BLOCK):
        torch.mm(part, rows.T, out=room[: len(part)])


def bench_neighbors(name: str, rows: Tensor, k: int, repeats: int, checked: int, peers: bool) -> list[Line]:
    """Seconds of the exact graph, of torch's way and of its products alone, with TF32 as ours has it."""
    device = rows.device
    checked = check_neighbors(rows, k, checked)
    runs: dict[str, Callable[[], Any]] = {"naysay, exact": partial(exact_gpu.search, rows, k)}
    if peers:
        runs |= {"torch, TF32 products and topk, not exact": partial(products_and_topk, rows, k)}
        runs |= {"floor: TF32 products alone": partial(products_alone, rows)}
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    least = timed(runs, device, repeats)
    torch.set_float32_matmul_precision(before)
    peak = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else None
    case = f"neighbours, {name} {rows.shape[0]} x {rows.shape[1]}, k={k}"
    lines = [{"case": case, "who": who, "ms": round(1000 * seconds, 3)} for who, seconds in least.items()]
    lines[0] |= {"checked_rows": checked, "peak_gib": None if peak is None else round(peak, 2)}
    return lines


def in_double_precision(indices: Tensor, W: Tensor, comp: Tensor, rounds: int) -> Tensor:
    """Exactly `rounds` rounds in float64: the reference."""
    z = given = comp.double()
    wide, at = W.double(), indices.long()
    for _ in range(rounds):
        z = ALPHA * given + (1 - ALPHA) * torch.einsum("nk,nkc->nc", wide, z[at])
    return z / z.sum(1, keepdim=True)


def bench_propagation(indices: Tensor, distances: Tensor, n_classes: int, rounds: int, repeats: int) -> list[Line]:
    """Milliseconds of `propagate`, of its rounds alone, and of the same by torch's `embedding_bag`."""
    n, device = len(indices), indices.device
    W = weights.by_distance(distances, 1.0)
    named = stream(0, "benchmark labels").integers(0, n_classes, n)
    comp = naysay.labels.from_indices(named, n_classes).to(device)

    def ours(backend: str, rounds: int = rounds) -> Tensor:
        return propagate(indices, W, comp, alpha=ALPHA, rounds=rounds, backend=backend).labels

    fast = "triton" if device.type == "cuda" else "torch"
    small = n * indices.shape[1] * n_classes < 10**8  # of a larger one the reference would not fit
    error = float((ours(fast).double() - in_double_precision(indices, W, comp, rounds)).abs().max()) if small else None
    if error is not None and not error < TOLERANCE:
        raise SystemExit(f"propagate is off by {error:.1e} from {rounds} rounds in double precision: not timed.")
    names = {f"naysay, {fast}": partial(ours, fast), "naysay, torch (embedding_bag)": partial(ours, "torch")}
    least = timed(names | {"twice the rounds": partial(ours, fast, 2 * rounds)}, device, repeats)
    alone = least.pop("twice the rounds") - least[f"naysay, {fast}"]
    case = f"propagation, {n} x {indices.shape[1]}, K={n_classes}, {rounds} rounds"
    lines = [{"case": case, "who": who, "ms": round(1000 * seconds, 3)} for who, seconds in least.items()]
    lines[0]["max_error"] = error
    lines.append({"case": case, "who": f"{rounds} further rounds", "ms": round(1000 * alone, 3)})
    rate, size = copy_rate(device), 8 * n * indices.shape[1] + 12 * n * n_classes  # row numbers, weights and labels
    floor = {"ms": round(1000 * rounds * size / rate, 3), "gb_s": round(rate / 1e9)}
    lines.append({"case": case, "who": "floor: a round's bytes, each from memory once", **floor})
    return lines


def copy_rate(device: torch.device) -> float:
    """Bytes read and written a second between two arrays far beyond the caches."""
    big = torch.ones(2**28 if device.type == "cuda" else 2**25, device=device)
    other = torch.empty_like(big)
    return 2 * big.nbytes / timed({"copy": lambda: other.copy_(big)}, device, 5)["copy"]


def main(argv: list[str] | None = None) -> None:
    """Check, time, print, and append to the results; `argv` is the command line unless given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--many", type=int, default=1_000_000, help="rows of the large case; 0 leaves it out")
    parser.add_argument("--dims", type=int, default=512)
    parser.add_argument("--neighbors", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu.jsonl")
    chosen = parser.parse_args(argv)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    k, lines = chosen.neighbors, []
    clustered = torch.from_numpy(make_rows(chosen.rows, chosen.dims)).to(device)
    gaussian = torch.randn(chosen.rows, chosen.dims, generator=torch.Generator().manual_seed(0)).to(device)
    for name, rows in (("clustered", clustered), ("gaussian", gaussian)):
        lines += bench_neighbors(name, rows, k, chosen.repeats, 500, peers=True)
    found = exact_gpu.search(clustered, k)
    for n_classes in (10, 20):
        lines += bench_propagation(*found, n_classes, chosen.rounds, chosen.repeats)
    if chosen.many:
        rows = torch.from_numpy(make_rows(chosen.many, chosen.dims)).to(device)
        lines += bench_neighbors("clustered", rows, k, 1, 10, peers=False)
        lines += bench_propagation(*exact_gpu.search(rows, k), 10, chosen.rounds, 3)
    for line in lines:
        print(", ".join(f"{name} {value}" for name, value in line.items() if value is not None))
    about = {"device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu"}
    packages = ("torch", "numpy", *(("triton",) if device.type == "cuda" else ()))
    record(chosen.out, "gpu", "synthetic, see make_rows", packages, [{**about, **line} for line in lines])


if __name__ == "__main__":
    main()
