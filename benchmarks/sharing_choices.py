"""The settings of sharing chosen by hidden labels, against the paper's and the command's usual ones.

    python -m benchmarks sharing-choices --data DATA --features FEATURES                  12,000 rows, three draws
    python -m benchmarks sharing-choices --data DATA --features FEATURES --rows 60000 --draws 1 --only cifar mnist

Every set is compared by angle, as in the paper (rows of length 1). The share of rows whose least named class is the
true one, the true one being asked for nothing else, by five ways: `paper` (64 neighbours, gamma 1, alpha 0.1), `usual`
(what the command takes if nothing is said; it compares pixels by distance), `root` (the same with the root of a class
as many neighbours, also where class shares are known), `chosen` (neighbours, gamma and alpha "auto") and, on the first
draw, `whitened` (the read-out "auto", too). Each without class shares and with even ones. DATA holds the sets as
`naysay.datasets` has them, FEATURES an .npz with "train" for CIFAR-10 and CIFAR-20, from the encoders in weights/. What
stands in the results already is not run again.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import table_sets
import torch
from measuring import RESULTS, cpu_seconds, record

from naysay import labels, neighbors, transition
from naysay.augmentation import Sharing, neighbors_for, share
from naysay.features import find_space
from naysay.seeds import stream

SIDES = {"digits": 8, "mnist": 28}  # of images that are their pixels
OUT = RESULTS / "sharing_choices.jsonl"
MOST = 128  # neighbours that are tried
WAYS = {
    "paper": Sharing("dms", metric="cosine"),
    "usual": Sharing("dms", None, gamma=None, metric="cosine"),
    "root": Sharing("dms", None, gamma=None, metric="cosine"),
    "chosen": Sharing("dms", "auto", "auto", "auto", metric="cosine"),
    "whitened": Sharing("dms", "auto", "auto", "auto", metric="cosine", whiten="auto"),
}


class Set(NamedTuple):
    """Features (n, d), the true classes, and how labels come about: a T (K, K), or those that were given (n, m)."""

    x: Any
    y: Any
    T: torch.Tensor | None
    given: Any = None


def from_encoder(name: str, T: Callable[[], torch.Tensor] | None) -> Callable[[argparse.Namespace], Set]:
    """A set of images by the features of an encoder; without T, with the labels that its file holds."""

    def load(asked: argparse.Namespace) -> Set:
        plain = name.removeprefix("acl")
        held = np.load(asked.data / f"{name}.npz")
        x = np.load(asked.features / f"{plain}.npz")["train"].astype(np.float32)
        return Set(x, held["y_train"].astype(int), T() if T else None, None if T else held["comp_train"])

    return load


def pixels(asked: argparse.Namespace) -> Set:
    """MNIST."""
    held = np.load(asked.mnist or asked.data / "mnist.npz")
    return Set(
        held["x_train"].reshape(len(held["x_train"]), -1).astype(np.float32), held["y_train"].astype(int), uniform()
    )


def uniform() -> torch.Tensor:
    return transition.uniform(10)


SETS: dict[str, Callable[[argparse.Namespace], Set]] = {
    "cifar10": from_encoder("cifar10", uniform),
    "cifar20": from_encoder("cifar20", lambda: transition.uniform(20)),
    "digits": lambda asked: Set(*table_sets.digits(0), uniform()),
    "mnist": pixels,
    "cifar10, LLaVA": from_encoder("aclcifar10", None),
    "cifar10, people's matrix": from_encoder("cifar10", lambda: transition.human("clcifar10")),
    "texts, weak bias": lambda asked: Set(*table_sets.texts(0), transition.biased(12, "weak", seed=0)),
}


def compare(name: str, asked: argparse.Namespace, draw: int, done: set[Any]) -> Iterator[dict[str, Any]]:
    """Every way of sharing the labels of one draw of rows and labels."""
    found = SETS[name](asked)
    rows = np.sort(stream(draw, f"rows of {name}").permutation(len(found.x))[: asked.rows])
    x, y = torch.from_numpy(found.x[rows]), torch.from_numpy(found.y[rows])
    if found.T is None:
        drawn = torch.from_numpy(found.given[rows][:, draw % found.given.shape[1]])
    else:
        drawn = transition.sample(y, found.T, seed=draw)
    comp = labels.from_indices(drawn, int(found.y.max()) + 1)
    graph, searched = None, 0.0
    for way, sharing in WAYS.items():
        for shares in (None, "even"):
            key = name, len(rows), draw, way, shares
            if key in done or way not in asked.ways or (way == "whitened" and draw) or (way == "root" and not shares):
                continue
            pixels = way in ("usual", "root") and name in SIDES
            if graph is None and way != "whitened" and not pixels:
                before = cpu_seconds()
                graph = neighbors.build(x, min(MOST, len(x) - 1), metric="cosine")
                searched = cpu_seconds() - before
            how = Sharing(**{**vars(sharing), "class_shares": shares})
            if way == "root":
                how = replace(how, n_neighbors=neighbors_for("dms", *comp.shape))
            wall, cpu = time.perf_counter(), cpu_seconds()
            if pixels:
                space = find_space(x.reshape(-1, SIDES[name], SIDES[name]).numpy())
                Z, report = share(torch.from_numpy(np.asarray(space.features)), comp, replace(how, metric=space.metric))
            else:
                Z, report = share(x if way == "whitened" else graph, comp, how)
            spent = {"wall_s": round(time.perf_counter() - wall, 2), "cpu_s": round(cpu_seconds() - cpu, 2)}
            told = report.as_dict()
            yield {
                **dict(zip(("set", "rows", "draw", "way", "class_shares"), key, strict=True)),
                "right": round(float((Z.argmin(1) == y).double().mean()), 5),
                **{setting: told[setting] for setting in ("neighbours", "gamma", "alpha")},
                "whiten": told.get("whiten"),
                "choice": told.get("choice"),
                **spent,
                "graph_cpu_s": round(searched, 2),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--mnist", type=Path, help="mnist.npz, if it is not in DATA")
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first draw's number")
    parser.add_argument("--only", nargs="+", default=[""], help="sets whose name begins so")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # that gamma 1 weighs all alike
    lines = [json.loads(line) for line in asked.out.read_text().splitlines()] if asked.out.exists() else []
    done = {tuple(line[part] for part in ("set", "rows", "draw", "way", "class_shares")) for line in lines}
    for name in SETS:
        for draw in range(asked.first, asked.first + asked.draws):
            if any(name.startswith(begin) for begin in asked.only):
                for line in compare(name, asked, draw, done):
                    shown = {part: line[part] for part in list(line) if part != "choice"}
                    print(shown, flush=True)
                    record(asked.out, "sharing-choices", name, ("torch", "numpy", "scikit-learn"), [line])


if __name__ == "__main__":
    main()
