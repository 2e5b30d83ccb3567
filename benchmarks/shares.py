"""Class shares: what they cost beside the sharing itself, and what right and wrong ones do where classes are unequal.

    python benchmarks/shares.py                     both: some minutes of one core
    python benchmarks/shares.py --only imbalance    digits and MNIST, 1:10 and 1:50, evenly named and biased labels

Cost: posteriors under even shares against 100 rounds of sharing (50,000 rows, 10 classes, 64 neighbours), and the
estimate of T against the exact graph, each in turns with what it is compared with, CPU time of one thread. Imbalance:
classes fall off geometrically; the share of rows whose least named class is the true one (DMS, the number of neighbours
left to the library) without shares, with the true ones and with even ones, which are wrong; and of how many draws wrong
and true shares are warned of. Mean and sd over five draws of rows and labels. One line of JSON a measurement goes to
`benchmarks/results/shares.jsonl`.
"""

import argparse
import statistics
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import RESULTS, compare, record, take_turns
from neighbors import load_rows

from naysay import augment, datasets, labels, metrics, neighbors, shares, transition
from naysay.augmentation import propagate, weights
from naysay.seeds import stream

DRAWS, MOST_ROWS = 5, 5_000
POPULAR = torch.tensor([1.5, 1.3, 1.2, 1.1, 1.0, 1.0, 0.9, 0.8, 0.7, 0.5], dtype=torch.float64)


def cost(n: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Even shares against the sharing, and the estimate of T against the graph."""
    x, _ = load_rows(n, 512)
    built = take_turns({"exact graph": lambda: neighbors.build(x, 64)}, 1)
    graph = built["exact graph"].answer
    W = weights.by_distance(graph.distances, 1.0)
    named = stream(0, "benchmark labels").choice(10, graph.n, p=(POPULAR / POPULAR.sum()).numpy())
    comp = labels.from_indices(named, 10)
    Z = propagate(graph.indices, W, comp, alpha=0.1, rounds=100).labels
    competitors = {
        "100 rounds": lambda: propagate(graph.indices, W, comp, alpha=0.1, rounds=100),
        "even shares": lambda: shares.find(Z, comp, "even").correct(Z),
    }
    yield from compare("even shares, K=10", take_turns(competitors, repeats), {}, "100 rounds")
    estimated = {"estimate of T": lambda: transition.estimate(comp, x, class_shares="even")}
    turns = built | take_turns(estimated, 1)
    yield from compare("estimate of T, K=10", turns, {}, "exact graph")


def imbalance(data: Path | None) -> Iterator[dict[str, Any]]:
    """The least named class under no, the true, and even shares."""
    popular = POPULAR * (1 - torch.eye(10))
    kinds = {
        "uniform": transition.uniform(10),
        "popularity": popular / popular.sum(1, keepdim=True),
        "weak bias": transition.biased(10, "weak", seed=0),
    }
    for name in ("digits", "mnist"):
        read = datasets.load(name, data)
        x = torch.nn.functional.normalize(torch.from_numpy(read.x_train).flatten(1).float())
        for ratio in (10, 50):
            found: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
            for seed in range(DRAWS):
                rows = torch.from_numpy(unequal(read.y_train, ratio, seed))
                y_true = torch.from_numpy(read.y_train)[rows].long()
                graph = neighbors.build(x[rows], 64)
                for kind, T in kinds.items():
                    comp = labels.from_indices(transition.sample(y_true, T, seed=seed), 10)
                    found[kind].append(draw(graph, comp, y_true))
            for kind, them in found.items():
                line: dict[str, Any] = {"case": f"{name}, 1:{ratio}, {kind}", "rows": len(rows), "draws": DRAWS}
                for shared in ("none", "true", "even"):
                    values = [one[shared] for one in them]
                    line[shared] = round(statistics.mean(values), 4)
                    line[f"{shared}_sd"] = round(statistics.stdev(values), 4)
                line["least_gain_of_true"] = round(min(one["true"] - one["none"] for one in them), 4)
                for warned in ("even_warned", "true_warned"):
                    line[warned] = int(sum(one[warned] for one in them))
                yield line


def unequal(y_true: np.ndarray, ratio: float, seed: int) -> np.ndarray:
    """Rows of which the last class has 1/ratio of the first's, the others between them; at most MOST_ROWS."""
    draw = stream(seed, "unequal classes")
    counts = np.bincount(y_true).min() * ratio ** (-np.arange(10) / 9)
    parts = [draw.permutation(np.flatnonzero(y_true == k))[: round(count)] for k, count in enumerate(counts)]
    return draw.permutation(np.concatenate(parts))[:MOST_ROWS]


def draw(graph: neighbors.Graph, comp: torch.Tensor, y_true: torch.Tensor) -> dict[str, float]:
    """How often the least named class is the true one, by what is known of the shares, and whether a warning came."""
    found: dict[str, float] = {}
    true = torch.bincount(y_true, minlength=10).double() / len(y_true)
    for name, given in (("none", None), ("true", true), ("even", "even")):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            Z = augment(graph, comp, n_neighbors=None, class_shares=given)
        found[name] = metrics.oracle_argmin_accuracy(torch.as_tensor(Z), y_true)
        found[f"{name}_warned"] = float(any("class_shares" in str(one.message) for one in told))
    return found


def main(argv: list[str] | None = None) -> None:
    """Measure, show, and append to the results; `argv` is the command line unless given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("cost", "imbalance"))
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", type=Path, help="the folder of mnist.npz; else $NAYSAY_DATA or the cache folder")
    parser.add_argument("--out", type=Path, default=RESULTS / "shares.jsonl")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    parts = {"cost": lambda: cost(chosen.rows, chosen.repeats), "imbalance": lambda: imbalance(chosen.data)}
    lines = []
    for name, part in parts.items():
        for line in part() if chosen.only in (None, name) else ():
            print(", ".join(f"{key} {value}" for key, value in line.items() if value is not None), flush=True)
            lines.append(line)
    origin = "cifar10_features.npz (cost), digits, MNIST"
    record(chosen.out, "shares", origin, ("torch", "numpy", "numba"), lines)


if __name__ == "__main__":
    main()
