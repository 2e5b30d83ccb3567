"""Estimates that stay honest: of some hundred estimated accuracies, how many hold the truth within two standard errors?

    python -m benchmarks estimates [--data FOLDER] [--features FOLDER] [--only digits,blobs-5] [--draws 4]

For each set, kind of labels and draw: a fifth of the rows is held out, T is estimated on the other rows alone, four
classifiers learn from them, and `estimation.estimate_accuracy` judges each by the labels held out. The truth is the
accuracy on the same rows. Draws differ in the number of labels, 1 or 3, and in whether class shares are said to be
even; the four classifiers of a draw share its T and its labels, so their errors are alike.

Sets of the digits and of generators are always there; MNIST and KMNIST need --data, and CIFAR --features with it (the
arrays `train` of an encoder's features). The sets of `KEPT` took no part when the estimator was made. One JSON line a
run in benchmarks/results/estimates.jsonl; a table is printed at the end.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from measuring import RESULTS, record
from torch import Tensor

import naysay
from naysay import decoding, estimation, labels, neighbors, selection, shares, transition
from naysay.learning import Config, train

ROWS, MOST, COLUMNS = 3000, 10_000, 64
HELD_OUT = 0.2
WITHIN = 2  # standard errors
KEPT = ("kmnist", "clusters-6", "clusters-9")


class Set(NamedTuple):
    """Features (n, d), the truth (n,), and labels that somebody gave (n, m), where there are some."""

    x: Tensor
    y: Tensor
    given: Tensor | None = None


def blobs(k: int, apart: float) -> Set:
    """k round classes in 16 dimensions."""
    rng = np.random.default_rng(k)
    y = rng.integers(0, k, ROWS)
    centres = rng.normal(0, 1, (k, 16))
    x = apart * (centres / np.linalg.norm(centres, axis=1, keepdims=True))[y] + rng.normal(0, 1, (ROWS, 16))
    return Set(torch.from_numpy(x).float(), torch.from_numpy(y))


def clusters(k: int) -> Set:
    """k classes of unequal size, each two clusters, by scikit-learn's generator."""
    from sklearn.datasets import make_classification

    sizes = np.linspace(1, 2, k) / np.linspace(1, 2, k).sum()
    about = {"n_features": 20, "n_informative": 12, "n_redundant": 0, "class_sep": 2.0, "n_clusters_per_class": 2}
    x, y = make_classification(ROWS, n_classes=k, weights=list(sizes), flip_y=0, random_state=k, **about)
    return Set(torch.from_numpy(x).float(), torch.from_numpy(y))


def digits() -> Set:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return Set(torch.from_numpy(bunch.data).float(), torch.from_numpy(bunch.target))


def stored(name: str, data: Path | None, features: Path | None) -> Set | None:
    """A set from files, its first rows by 64 principal directions; None where the files are not given."""
    folder = features if name.startswith("cifar") else data
    if data is None or folder is None or not (folder / f"{name}.npz").exists():
        return None
    truth = np.load(data / f"{name}.npz")["y_train"]
    x = np.load(folder / f"{name}.npz")["train" if folder == features else "x_train"]
    rows = np.random.default_rng(0).permutation(len(x))[: MOST if folder == features else 5000]
    machine = data / f"acl{name}.npz"
    given = torch.from_numpy(np.load(machine)["comp_train"][rows]) if machine.exists() else None
    wide = torch.from_numpy(x[rows].reshape(len(rows), -1).astype(np.float32))
    wide = wide / wide.norm(dim=1, keepdim=True).clamp_min(1e-9)
    torch.manual_seed(0)
    directions = torch.pca_lowrank(wide, COLUMNS)[2]
    return Set((wide - wide.mean(0)) @ directions, torch.from_numpy(truth[rows].astype(np.int64)), given)


def sets(data: Path | None, features: Path | None) -> dict[str, Callable[[], Set | None]]:
    """The sets by name, made when they are asked for."""
    made: dict[str, Callable[[], Set | None]] = {"digits": digits}
    made |= {f"blobs-{k}": lambda k=k, apart=apart: blobs(k, apart) for k, apart in ((5, 5.0), (8, 4.0), (12, 5.0))}
    made |= {f"clusters-{k}": lambda k=k: clusters(k) for k in (6, 9)}
    return made | {
        name: lambda name=name: stored(name, data, features) for name in ("mnist", "kmnist", "cifar10", "cifar20")
    }


def kinds(k: int) -> dict[str, Tensor | None]:
    """T by kind of labels; None for the labels that somebody gave."""
    even = transition.uniform(k)
    made = {"uniform": even, "10 % noise": transition.noisy(even, 0.1), "20 % noise": transition.noisy(even, 0.2)}
    made |= {"weak bias": transition.biased(k, "weak"), "strong bias": transition.biased(k, "strong")}
    if k in (10, 20):
        made |= {
            "people's matrix": transition.human(f"clcifar{k}"),
            "machine's matrix": transition.human(f"aclcifar{k}"),
        }
    return {**made, "machine": None}


class Draw(NamedTuple):
    """What one draw of labels comes to: T as found, and the classes that each scheme predicts for the rows held out."""

    found: estimation.Estimate
    comp: Tensor
    held: Tensor
    predicted: dict[str, Tensor]


def draw(these: Set, T: Tensor | None, n_labels: int, class_shares: str | None, seed: int) -> Draw:
    """Labels drawn, T estimated and classifiers fitted, all without the rows held out."""
    k = int(these.y.max()) + 1
    named = these.given[:, :n_labels] if T is None else transition.sample(these.y, T, n_labels, seed)
    comp = labels.from_indices(named, k)
    rows, held = selection.hold_out(len(comp), HELD_OUT, seed)
    x, given = these.x[rows], comp[rows]
    graph = neighbors.build(x, min(64, len(x) // (2 * k)))
    found = estimation.estimate_transition(given, graph=graph, class_shares=class_shares, seed=seed)
    shared = torch.as_tensor(naysay.augment(graph, given, "rms", class_shares=class_shares))
    near = neighbors.query(x, these.x[held], graph.k).indices
    local = decoding.local_distribution(given, near)
    predicted = {
        "least named": local.argmin(1),
        "even shares": shares.find(local, given, "even").posterior(local).argmax(1),
    }
    for scheme, learned in (("linear, none", given), ("mlp, rms", shared)):
        config = Config(model=scheme.split(",")[0], epochs=10, batch_size=256, weight_decay=0.01, seed=seed)
        predicted[scheme] = train(config, x, learned, progress=False).predictor.logits(these.x[held]).argmax(1)
    return Draw(found, comp, held, predicted)


def judge(drawn: Draw, y: Tensor) -> Iterable[dict[str, Any]]:
    """One line for each scheme: the estimate, and the truth."""
    for scheme, predicted in drawn.predicted.items():
        told = estimation.estimate_accuracy(predicted, drawn.comp[drawn.held], drawn.found)
        true = float((predicted == y[drawn.held]).double().mean())
        line = {"scheme": scheme, "true": true, "value": told.value, "standard_error": told.standard_error}
        line |= {"labels_error": told.labels_error, "transition_error": told.transition_error}
        holds = None if told.value is None else abs(true - told.value) <= WITHIN * told.standard_error
        yield {**line, "holds": holds, "why_not": told.why_not}


def table(lines: list[dict[str, Any]], by: str) -> str:
    """Coverage, how often nothing is told and the mean standard error, by the value of one column."""
    text = [
        f"| {by} | runs | told | of those within {WITHIN} standard errors | mean standard error | mean error |",
        "| --- " * 6 + "|",
    ]
    for value in dict.fromkeys(line[by] for line in lines):
        of = [line for line in lines if line[by] == value]
        told = [line for line in of if line["holds"] is not None]
        cells = [f"{100 * len(told) / len(of):.0f} %"]
        if told:
            cells += [f"{100 * np.mean([line['holds'] for line in told]):.0f} %"]
            cells += [f"{100 * np.mean([line['standard_error'] for line in told]):.1f}"]
            cells += [f"{100 * np.mean([line['value'] - line['true'] for line in told]):+.1f}"]
        text.append(" | ".join(["", str(value), str(len(of)), *cells, *[""] * (4 - len(cells)), ""]).strip())
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="the folder of mnist.npz, kmnist.npz, cifar10.npz, aclcifar10.npz, ..."
    )
    parser.add_argument(
        "--features", type=Path, help="the folder of cifar10.npz and cifar20.npz, an encoder's features"
    )
    parser.add_argument("--only", default="", help="sets by name")
    parser.add_argument("--draws", type=int, default=4, help="of labels, for each set and kind")
    parser.add_argument("--out", type=Path, default=RESULTS / "estimates.jsonl")
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines: list[dict[str, Any]] = []
    origin = "see set; labels drawn with the seed"
    for name, make in sets(args.data, args.features).items():
        these = make() if not args.only or name in args.only.split(",") else None
        if these is None:
            continue
        started, before = time.process_time(), len(lines)
        for kind, T in kinds(int(these.y.max()) + 1).items():
            for seed in range(args.draws if T is not None or these.given is not None else 0):
                n_labels, class_shares = (1, 3)[seed % 2], (None, "even")[seed // 2 % 2]
                about = {"set": name, "kept": name in KEPT, "labels": kind, "n_labels": n_labels, "seed": seed}
                drawn = draw(these, T, n_labels, class_shares, seed)
                lines += [{**about, "class_shares": class_shares, **line} for line in judge(drawn, these.y)]
        print(f"{name}: {time.process_time() - started:.0f} s of CPU time", flush=True)
        record(args.out, "estimates", origin, ("torch",), lines[before:])
    kept = [line for line in lines if line["kept"]]
    for title, part in (("All sets", lines), ("Sets that took no part in making it", kept)):
        print(f"\n{title}\n\n{table(part, 'labels')}\n\n{table(part, 'scheme')}\n\n{table(part, 'set')}")


if __name__ == "__main__":
    main()
