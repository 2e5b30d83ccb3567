"""The default against two lines of scikit-learn, on tables, texts and few rows with labels as people give them.

    python -m benchmarks tables --seeds 5 --processes 2 --out benchmarks/results/tables.jsonl
    python -m benchmarks tables --show benchmarks/results/tables.jsonl

By the truth of a test set, 4,000 rows or 30 % of a real set, everything is measured and nothing chosen. `plain` are
forest, boosting, logistic regression and nearest neighbours of scikit-learn, trained on the labels; the class with the
least probability of being named is predicted, as it is and over how often it is named (`/f`). The best of these eight,
chosen by the truth, is what the default is held against. `interval` is what the run says of its own accuracy, where it
says anything; `calibration` the mean distance of stated and true shares over ten bins of confidence.
"""

import argparse
import json
import multiprocessing
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.table_sets import FASHION, KEPT_OUT, REAL, ROWS, SETS, TESTED
from naysay import labels, runs, transition
from naysay.datasets.dataset import Items, numbered
from naysay.learning import Config
from naysay.reading import Labelled

TEST = 0.3
KINDS = ("uniform", "three", "noisy", "popular", "biased", "strongly biased")


def draw(y: Any, kind: str, seed: int) -> Any:
    """Complementary labels (n, K) of the true classes: one each, three where said."""
    n_classes = int(y.max()) + 1
    T = transition.uniform(n_classes)
    if kind == "noisy":
        T = transition.noisy(T, 0.1)
    elif kind == "popular":
        T = torch.linspace(3, 0.5, n_classes, dtype=torch.float64).repeat(n_classes, 1).fill_diagonal_(0)
        T = T / T.sum(1, keepdim=True)
    elif kind in ("biased", "strongly biased"):
        T = transition.biased(n_classes, "weak" if kind == "biased" else "strong", seed)
    named = transition.sample(y, T, 3 if kind == "three" else 1, seed)
    return labels.from_indices(named, n_classes)


def plain(x: Any, comp: Any, x_test: Any) -> dict[str, Any]:
    """What the alternatives predict."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows, named = np.nonzero(comp)
    often = np.maximum(comp.sum(0), 1e-9)
    alternatives = {
        "forest": RandomForestClassifier(300, random_state=0),
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(min(20, len(x) // 3))),
    }
    predicted = {}
    for name, classifier in alternatives.items():
        p = np.zeros((len(x_test), comp.shape[1]))
        fitted = classifier.fit(x[rows], named)
        p[:, fitted.classes_] = fitted.predict_proba(x_test)
        predicted |= {name: p.argmin(1), f"{name}/f": (p / often).argmin(1)}
    return predicted


def calibration_error(p: Any, right: Any) -> float:
    """Expected calibration error over ten bins of the stated probability."""
    stated, bins = p.max(1), np.minimum((p.max(1) * 10).astype(int), 9)
    return float(sum(abs((stated - right)[bins == at].sum()) for at in range(10)) / len(right))


def split(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """Rows and classes of a set, and the numbers of the rows to train on and to test on."""
    x, y = SETS[name](seed)
    order = np.random.default_rng([seed, 1]).permutation(len(x))
    test, train = np.split(order, [int(TEST * len(x)) if SETS[name] in REAL else TESTED])
    return x, y, train, test


def fit_default(x: Any, comp: Any, seed: int) -> Any:
    """The run that the command's default makes of rows with labels (n, K)."""
    classes = tuple(map(str, range(comp.shape[1])))
    data = Labelled(Items(numbered(len(x)), x), comp.float(), classes)
    return runs.fit(data, runs.Settings(Config(seed=seed), auto=True), tell=lambda line: None)


def measure(job: tuple[str, str, int]) -> dict[str, Any]:
    """One set, kind of labels and seed."""
    name, kind, seed = job
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    x, y, train, test = split(name, seed)
    comp = draw(y[train], kind, seed)
    alternatives = {
        other: float((found == y[test]).mean()) for other, found in plain(x[train], comp.numpy(), x[test]).items()
    }
    started = time.process_time()
    fitted = fit_default(x[train], comp, seed)
    seconds = time.process_time() - started
    model = fitted.kept.predictor
    p = model.probabilities(model.logits(x[test])).numpy()
    right, told = p.argmax(1) == y[test], fitted.chosen.accuracy
    return {
        "set": name,
        "labels": kind,
        "seed": seed,
        "plain": alternatives,
        "default": float(right.mean()),
        "interval": None if told.low is None else [told.low, told.high],
        "why_not": told.why_not,
        "calibration": calibration_error(p, right),
        "mixture": {one.name: one.weight for one in fitted.attempts if one.weight},
        "seconds": seconds,
    }


def show(path: Path) -> str:
    """The table of the records, a line for each set and kind of labels, and what the issue asks of it."""
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for line in path.read_text().splitlines():
        one = json.loads(line)
        groups[one["set"], one["labels"]].append(one)
    lines = [
        "| data | labels | default | best plain | which | difference | inside | calibration | s |",
        "| --- " * 9 + "|",
    ]
    leads, held, errors = [], [], []
    kept_out = {make.__name__ for make in KEPT_OUT}
    held_once: list[bool] = []
    for (name, kind), of in groups.items():
        means = {other: np.mean([one["plain"][other] for one in of]) for other in of[0]["plain"]}
        best = max(means, key=lambda other: means[other])
        ours = np.mean([one["default"] for one in of])
        told = [one["interval"][0] <= one["default"] <= one["interval"][1] for one in of if one["interval"]]
        leads.append(100 * (ours - means[best]))
        held += told
        held_once += told if name in kept_out else []
        errors.append(np.mean([one["calibration"] for one in of]))
        kept = " *" if name in kept_out else ""
        inside = f"{sum(told)} of {len(told)}" if told else "not told"
        seconds = np.mean([one["seconds"] for one in of])
        cells = f"{100 * ours:.1f} | {100 * means[best]:.1f} | {best} | {leads[-1]:+.1f} | {inside} | {errors[-1]:.3f}"
        lines.append(f"| {name}{kept} | {kind} | {cells} | {seconds:.0f} |")
    lines.append(
        f"\n{len(leads)} rows: {np.mean(leads):+.1f} points on average, {sum(lead < -1 for lead in leads)} more than a "
        f"point behind, worst {min(leads):+.1f}; {sum(held)} of {len(held)} intervals hold the truth "
        f"({np.mean(held):.1%}), {sum(held_once)} of {len(held_once)} on sets kept out; calibration error "
        f"{np.mean(errors):.3f}."
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=[name for name in SETS if name != "fashion" or FASHION.exists()])
    parser.add_argument("--labels", nargs="*", help=f"of {', '.join(KINDS)}; else those of the benchmark's rows")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which no more is begun")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/tables.jsonl"))
    parser.add_argument("--show", type=Path)
    asked = parser.parse_args()
    if asked.show:
        print(show(asked.show))
        return
    done = set()
    if asked.out.exists():
        lines = [json.loads(line) for line in asked.out.read_text().splitlines()]
        done = {(one["set"], one["labels"], one["seed"]) for one in lines}
    kinds = {name: asked.labels or ROWS[name] for name in asked.sets}
    jobs = [(name, kind, seed) for seed in range(asked.seeds) for name, of in kinds.items() for kind in of]
    jobs, end = [job for job in jobs if job not in done], time.monotonic() + asked.limit
    context = multiprocessing.get_context("spawn")
    with asked.out.open("a") as file, context.Pool(asked.processes, maxtasksperchild=8) as pool:
        for one in pool.imap_unordered(measure, jobs):
            file.write(json.dumps(one) + "\n")
            file.flush()
            best = max(one["plain"].values())
            print(f"{one['set']}, {one['labels']}, {one['seed']}: {one['default']:.3f} ({best:.3f})", flush=True)
            if time.monotonic() > end:
                pool.terminate()
                break
    print(show(asked.out), file=sys.stderr)


if __name__ == "__main__":
    main()
