"""Makes records again that a repair made stale and that want a GPU, the worthiest first, within a time.

    python tools/stale_records.py --data DATA --weights weights --results results --out OUT [--minutes 15] [--list]

`--list` only tells the runs. Each finished record is a line of OUT/<experiment>.jsonl at once; append those lines to
results/ and write the page anew (`python -m reproduction write`). It needs neither typer, pydantic nor faiss, so that a
borrowed machine with torch alone will do: decode the images there first (shared/data/unpack.py). A run of 30 epochs
took about 21 s of an H200 by itself, the one of 100 epochs 295 s.
"""

import argparse
import os
import time
from pathlib import Path

from reproduction.records import ledger, perform, read
from reproduction.sets import Place
from reproduction.spec import get, wanted
from reproduction.standing import by_run

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="the folder of cifar10.npz, cifar20.npz and aclcifar10.npz")
    parser.add_argument("--weights", default="weights", help="the folder of encoders")
    parser.add_argument("--results", type=Path, default=Path("results"), help="the records that there are")
    parser.add_argument("--out", type=Path, required=True, help="where new records go")
    parser.add_argument("--minutes", type=float, default=15, help="no run begins after so long")
    parser.add_argument("--note", default="JPEG q95 copies of the images", help="what every record says of the data")
    parser.add_argument("--list", action="store_true", help="tell the runs and start none")
    asked = parser.parse_args()
    began, runs = time.monotonic(), stale(asked.results)
    print(f"{len(runs)} runs are stale")
    place = Place(os.path.abspath(asked.data), os.path.abspath(asked.weights))
    asked.out.mkdir(parents=True, exist_ok=True)
    for number, run in enumerate(runs, 1):
        what = " ".join(
            str(run.values[name]) for name in ("dataset", "loss", "scheme", "sharing") if name in run.values
        )
        told = f"{number}/{len(runs)} {what} {run.values.get('n_neighbors', '')} seed {run.values['seed']}"
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
