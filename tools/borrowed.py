"""Makes records on a borrowed machine with torch alone (no typer, pydantic or faiss): named runs, or those gone stale.

    python tools/borrowed.py --data DATA --weights weights --out OUT [--minutes 15] [--list] RUN ...
    python tools/borrowed.py --data DATA --weights weights --out OUT --stale

A RUN is SPEC, SPEC:LABEL or SPEC:LABEL:SEED, such as "tab-recipe:CIFAR10, uniform, 1:0"; `--list` only tells which runs
are meant. None begins after so many minutes. Each finished record is a line of OUT/<experiment>.jsonl at once: put
those lines into results/ in the place of older ones with the same key, and write the page anew (`python -m reproduction
write`). Decode the images there first (shared/data/unpack.py). On an H200 the recipe's headline run took 212 s, others
of its table 23 to 73, a run of 30 epochs of the paper's tables about 21, its one of 100 epochs 295.
"""

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]  # nothing is installed there

from reproduction.records import ledger, perform, read  # noqa: E402
from reproduction.sets import Place  # noqa: E402
from reproduction.spec import get, wanted  # noqa: E402
from reproduction.standing import by_run  # noqa: E402

# a spec, whether its quick form is meant, and the values of its runs: what most readers look for comes first
WORTH = (
    ("tab-main", True, {"dataset": ["cifar20"], "loss": ["scl-nl"]}),
    ("tab-main", True, {"dataset": ["aclcifar10"]}),
    ("clcifar10-simulated", True, {}),
    ("tab-baselines", True, {"fine_tune": ["true"]}),
    ("check-order", True, {}),
    ("fig-neighbours", True, {}),
    ("tab-main", True, {"dataset": ["cifar20"], "loss": ["l-w"]}),
    ("tab-explicit", False, {"dataset": ["cifar10"]}),
)


def stale(results):
    """The runs of WORTH, in its order, whose newest record was made before a repair."""
    have, found = [record for record in read(results) if "failed" not in record], {}
    for name, quick, only in WORTH:
        runs = wanted(get(name), quick=quick, only=only)
        old = by_run(runs, have)
        found |= {run.key: run for run in runs if run.key in old and old[run.key]["key"] != run.key}
    return list(found.values())


def named(text):
    """The full runs that SPEC, SPEC:LABEL or SPEC:LABEL:SEED means."""
    name, label, seed = (*text.split(":"), None, None)[:3]
    runs = [run for run in wanted(get(name)) if label in (None, run.label) and seed in (None, str(run.values["seed"]))]
    if not runs:
        labels = ", ".join(dict.fromkeys(repr(run.label) for run in wanted(get(name))))
        raise SystemExit(f"no run is {text!r}; the labels of {name} are {labels}")
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="SPEC, SPEC:LABEL or SPEC:LABEL:SEED")
    parser.add_argument("--stale", action="store_true", help="those made before a repair, the worthiest first")
    parser.add_argument("--data", required=True, help="the folder of cifar10.npz, cifar20.npz and the like")
    parser.add_argument("--weights", default="weights", help="the folder of encoders")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="the records that there are")
    parser.add_argument("--out", type=Path, required=True, help="where new records go")
    parser.add_argument("--minutes", type=float, default=15, help="no run begins after so long")
    parser.add_argument("--note", default="JPEG q95 copies of the images", help="what every record says of the data")
    parser.add_argument("--list", action="store_true", help="tell the runs and start none")
    asked = parser.parse_args()
    began = time.monotonic()
    runs = [run for text in asked.runs for run in named(text)] + (stale(asked.results) if asked.stale else [])
    print(f"{len(runs)} runs")
    place = Place(os.path.abspath(asked.data), os.path.abspath(asked.weights))
    asked.out.mkdir(parents=True, exist_ok=True)
    for number, run in enumerate(runs, 1):
        shown = ("dataset", "loss", "scheme", "sharing", "n_neighbors")
        what = " ".join([run.label, *(str(run.values[name]) for name in shown if name in run.values)])
        told = f"{number}/{len(runs)} {what} seed {run.values['seed']}"
        if asked.list:
            print(told)
            continue
        if time.monotonic() - began > 60 * asked.minutes:
            print(f"{len(runs) - number + 1} runs were not begun in time")
            break
        record = perform(run.experiment, run.values, place, asked.note)
        ledger(asked.out, run.experiment).add(record)
        print(told, f"{record['figures']['test_accuracy']:.4f} in {record['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
