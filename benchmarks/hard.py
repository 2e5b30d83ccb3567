"""Intervals on hard sets: classes that overlap, few labels, fourteen ways of naming. How many hold the truth?

    python -m benchmarks hard [--first 0] [--runs 84] [--labels strong similar] [--out FILE]

Each run draws a set of 500 to 2,000 rows (4 to 10 classes; 10 and 20 for people's and machines' matrices), labels by a
T that is drawn anew, and fits the default within three seconds; the truth is the accuracy on 4,000 fresh rows. Six
kinds of sets and fourteen of labels take turns, so that 84 runs in a row have each pair once. One JSON line a run.
"""

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from naysay import labels, runs, transition
from naysay.datasets.dataset import Items, numbered
from naysay.learning import Config
from naysay.reading import Labelled

TESTED, BUDGET, FAR = 4000, 3.0, 0.1


def blobs(rng: Any, n: int, k: int) -> Any:
    """Round classes that overlap."""
    return _round(rng, rng.integers(0, k, n), _centres(rng, k, int(rng.integers(4, 16)), rng.uniform(1.2, 3.0)))


def clusters(rng: Any, n: int, k: int) -> Any:
    """One or two clusters a class, hardly apart, by scikit-learn's generator."""
    from sklearn.datasets import make_classification

    kind = {"n_informative": 8, "n_redundant": 4, "n_clusters_per_class": int(rng.integers(1, 3))}
    kind |= {"class_sep": rng.uniform(0.5, 1.5), "flip_y": rng.uniform(0, 0.1)}
    return make_classification(n, 20, n_classes=k, random_state=int(rng.integers(1 << 30)), **kind)


def waves(rng: Any, n: int, k: int) -> Any:
    """Classes by sums of sines, with noise and four columns of nothing: hardly anybody learns them."""
    inner, outer, x = rng.normal(size=(6, 12)), rng.normal(size=(12, k)), rng.normal(size=(n, 6))
    scores = np.sin(1.5 * x @ inner) @ outer + rng.normal(size=(n, k)) * rng.uniform(0.3, 2)
    return np.concatenate([x, rng.normal(size=(n, 4))], 1), (scores - np.median(scores, 0)).argmax(1)


def texts(rng: Any, n: int, k: int) -> Any:
    """Short texts of subjects that share most words, as 50 components of TF-IDF."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    usual, subjects = rng.dirichlet(np.full(600, 0.2)), rng.dirichlet(np.full(600, 0.05), k)
    y, part = rng.integers(0, k, n), rng.uniform(0.1, 0.3)
    often = (1 - part) * usual + part * subjects[y]
    counts = np.stack([rng.multinomial(length, p) for length, p in zip(rng.poisson(25, n) + 5, often, strict=True)])
    return TruncatedSVD(50, random_state=0).fit_transform(TfidfTransformer(sublinear_tf=True).fit_transform(counts)), y


def unequal(rng: Any, n: int, k: int) -> Any:
    """Round classes of which the largest is three to eight times the smallest."""
    shares = rng.permutation(np.geomspace(1, rng.uniform(3, 8), k))
    centres = _centres(rng, k, int(rng.integers(4, 16)), rng.uniform(1.5, 3.5))
    return _round(rng, rng.choice(k, n, p=shares / shares.sum()), centres)


def pairs(rng: Any, n: int, k: int) -> Any:
    """Round classes of which each two lie nearly in one place."""
    centres = _centres(rng, k, 8, rng.uniform(3, 5))
    for at in range(1, k, 2):
        centres[at] = centres[at - 1] + rng.normal(size=8) * rng.uniform(0.05, 0.3)
    return _round(rng, rng.integers(0, k, n), centres)


def _centres(rng: Any, k: int, d: int, apart: float) -> Any:
    centres = rng.normal(size=(k, d))
    return centres / np.linalg.norm(centres, axis=1, keepdims=True) * apart


def _round(rng: Any, y: Any, centres: Any) -> Any:
    return centres[y] + rng.normal(size=(len(y), centres.shape[1])), y


def _rows(k: int, rng: Any, evenness: float) -> Any:
    """Rows drawn each for itself from a Dirichlet distribution."""
    off = rng.dirichlet(np.full(k - 1, evenness), k)
    return torch.from_numpy(np.stack([np.insert(row, at, 0.0) for at, row in enumerate(off)]))


def _popular(k: int, rng: Any, ratio: float) -> Any:
    named = torch.from_numpy(np.tile(rng.permutation(np.geomspace(ratio, 1, k)), (k, 1))).fill_diagonal_(0.0)
    return named / named.sum(1, keepdim=True)


def _similar(k: int, rng: Any) -> Any:
    """Of each two classes one is hardly ever named for the other."""
    T = transition.uniform(k)
    for at in range(k):
        if at ^ 1 < k:
            T[at, at ^ 1] *= 0.05
    return T / T.sum(1, keepdim=True)


def _lookalike(k: int, rng: Any) -> Any:
    """One wrong class of each is named more often than the others."""
    T = transition.uniform(k)
    for at in range(k):
        T[at, (at + 1) % k] += rng.uniform(0.2, 0.8)
    return T / T.sum(1, keepdim=True)


def _biased(k: int, rng: Any, strength: str) -> Any:
    return transition.biased(k, strength, int(rng.integers(1 << 30)))


SETS = (blobs, clusters, waves, texts, unequal, pairs)
KINDS: dict[str, Callable[[int, Any], Any]] = {
    "uniform": lambda k, rng: transition.uniform(k),
    "10 % noise": lambda k, rng: transition.noisy(transition.uniform(k), 0.1),
    "weak bias": lambda k, rng: _biased(k, rng, "weak"),
    "strong bias": lambda k, rng: _biased(k, rng, "strong"),
    "rows, uneven": lambda k, rng: _rows(k, rng, 2.0),
    "rows, less uneven": lambda k, rng: _rows(k, rng, 5.0),
    "popular": lambda k, rng: _popular(k, rng, 6.0),
    "popular, noise": lambda k, rng: transition.noisy(_popular(k, rng, 4.0), 0.1),
    "similar": _similar,
    "lookalike": _lookalike,
    "people's": lambda k, rng: transition.human("clcifar10-first"),
    "people's, 20": lambda k, rng: transition.human("clcifar20"),
    "machine's": lambda k, rng: transition.human("aclcifar10"),
    "weak bias, noise": lambda k, rng: transition.noisy(_biased(k, rng, "weak"), 0.1),
}
CLASSES = {"people's": 10, "people's, 20": 20, "machine's": 10}


def measure(number: int) -> dict[str, Any]:
    """The run of this number."""
    rng = np.random.default_rng([77, number])
    make, kind = SETS[number % len(SETS)], list(KINDS)[number // len(SETS) % len(KINDS)]
    k = CLASSES.get(kind) or int(rng.integers(4, 11))
    n = int(rng.choice([500, 1000, 1000, 2000])) if k < 20 else 2000
    x, y = make(rng, n + TESTED, k)
    x, T = x.astype(np.float32), KINDS[kind](k, rng).double()
    n_labels = int(rng.choice([1, 1, 1, 3]))
    named = transition.sample(torch.from_numpy(y[:n]), T / T.sum(1, keepdim=True), n_labels, number)
    data = Labelled(Items(numbered(n), x[:n]), labels.from_indices(named, k).float(), tuple(map(str, range(k))))
    settings = runs.Settings(Config(seed=number), auto=True, budget=BUDGET)
    fitted = runs.fit(data, settings, tell=lambda line: None)
    model, told = fitted.kept.predictor, fitted.chosen.accuracy
    true = float((model.decode(model.logits(x[n:])).numpy() == y[n:]).mean())
    about = {"run": number, "set": make.__name__, "labels": kind, "classes": k, "rows": n, "n_labels": n_labels}
    return about | {"true": true, "low": told.low, "high": told.high, "assumes": told.assumes, "why_not": told.why_not}


def show(lines: list[dict[str, Any]]) -> str:
    """Coverage by kind of labels."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        groups[line["labels"]].append(line)
    text = ["| labels | runs | told | hold the truth | miss it by more than 10 points |", "| --- " * 5 + "|"]
    for name, of in (*groups.items(), ("all", lines)):
        told = [line for line in of if line["low"] is not None]
        off = [max(line["low"] - line["true"], line["true"] - line["high"], 0.0) for line in told]
        text.append(f"| {name} | {len(of)} | {len(told)} | {off.count(0.0)} | {sum(gap > FAR for gap in off)} |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--runs", type=int, default=len(SETS) * len(KINDS))
    parser.add_argument("--labels", nargs="*", help=f"of {', '.join(KINDS)}; else all")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/hard.jsonl"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    lines = []
    for number in range(asked.first, asked.first + asked.runs):
        if asked.labels and list(KINDS)[number // len(SETS) % len(KINDS)] not in asked.labels:
            continue
        lines.append(measure(number))
        with asked.out.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
    print(show(lines))


if __name__ == "__main__":
    main()
