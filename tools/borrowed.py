"""Makes records on a borrowed machine with torch alone (no typer, pydantic or faiss): named runs, or those gone stale.

    python tools/borrowed.py --data DATA --weights weights --out OUT [--minutes 15] [--list] RUN ...
    python tools/borrowed.py --data DATA --out OUT --quick --only dataset=cifar10 --only seed=1 tab-main
    python tools/borrowed.py --data DATA --out OUT --stale
    CUDA_VISIBLE_DEVICES= python tools/borrowed.py ... --workers 12 RUN ...        beside a GPU, on its machine's cores

A RUN is SPEC, SPEC:LABEL or SPEC:LABEL:SEED, such as "tab-recipe:CIFAR10, uniform, 1:0"; what is recorded in RESULTS or
OUT is not done again; `--list` only tells which runs are meant. None begins after so many minutes. Each finished record
is a line of OUT/<experiment>.jsonl at once: `tools/merge_records.py OUT` puts them into results/. Decode the images
there first (shared/data/unpack.py). On an H200 the recipe's headline run took 212 s, others of its table 23 to 73, a
run of 30 epochs of the paper's tables about 22, the first of a loss 40 to 70, the one of 100 epochs 125; with all other
cores at work that last one did not end within 310.
"""

import argparse
import itertools
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]  # nothing is installed there

import torch  # noqa: E402

from reproduction import compiled  # noqa: E402
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


def stale(have):
    """The runs of WORTH, in its order, whose newest record was made before a repair."""
    found = {}
    for name, quick, only in WORTH:
        runs = wanted(get(name), quick=quick, only=only)
        old = by_run(runs, have)
        found |= {run.key: run for run in runs if run.key in old and old[run.key]["key"] != run.key}
    return list(found.values())


def named(text, quick):
    """The runs, full or quick, that SPEC, SPEC:LABEL or SPEC:LABEL:SEED means."""
    name, label, seed = (*text.split(":"), None, None)[:3]
    every = wanted(get(name), quick=quick)
    runs = [run for run in every if label in (None, run.label) and seed in (None, str(run.values["seed"]))]
    if not runs:
        labels = ", ".join(dict.fromkeys(repr(run.label) for run in every))
        raise SystemExit(f"no run is {text!r}; the labels of {name} are {labels}")
    return runs


def chosen(runs, only):
    """Those of the runs that have one of the values of every `name=value,value`."""
    for name, texts in (condition.split("=", 1) for condition in only):
        runs = [run for run in runs if str(run.said.get(name)) in texts.split(",")]
    return runs


def say(run):
    shown = ("dataset", "model", "optimizer", "n_train", "loss", "scheme", "sharing", "n_neighbors")
    what = " ".join([run.label, *(str(run.values[name]) for name in shown if name in run.values)])
    return f"{what} seed {run.values['seed']}"


def one_thread():
    torch.set_num_threads(1)


def records_of(runs, place, note, deadline, workers):
    """Each run that could begin in time, and its record as it comes."""
    if not workers:
        for run in itertools.takewhile(lambda _: time.monotonic() < deadline, runs):
            yield run, perform(run.experiment, run.values, place, note)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), one_thread) as pool:
        begun = {}
        waiting = iter(runs)
        while True:
            while len(begun) < workers and time.monotonic() < deadline and (run := next(waiting, None)) is not None:
                begun[pool.submit(perform, run.experiment, dict(run.values), place, note)] = run
            if not begun:
                return
            done = next((one for one in begun if one.done()), None)
            if done is None:
                time.sleep(0.1)
            else:
                yield begun.pop(done), done.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="SPEC, SPEC:LABEL or SPEC:LABEL:SEED")
    parser.add_argument("--stale", action="store_true", help="those made before a repair, the worthiest first")
    parser.add_argument("--quick", action="store_true", help="of a RUN its quick form")
    parser.add_argument("--only", action="append", default=[], metavar="NAME=VALUES", help="only runs with these")
    parser.add_argument("--data", required=True, help="the folder of cifar10.npz, cifar20.npz and the like")
    parser.add_argument("--weights", default="weights", help="the folder of encoders")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="the records that there are")
    parser.add_argument("--out", type=Path, required=True, help="where new records go")
    parser.add_argument("--minutes", type=float, default=15, help="no run begins after so long")
    parser.add_argument("--note", default="JPEG q95 copies of the images", help="what every record says of the data")
    parser.add_argument("--workers", type=int, default=0, help="runs at a time, each in a process with one thread")
    parser.add_argument("--list", action="store_true", help="tell the runs and start none")
    asked = parser.parse_args()
    deadline = time.monotonic() + 60 * asked.minutes
    asked.out.mkdir(parents=True, exist_ok=True)
    have = [record for folder in (asked.results, asked.out) for record in read(folder) if "failed" not in record]
    recorded = {record["key"] for record in have}
    meant = [run for text in asked.runs for run in named(text, asked.quick)] + (stale(have) if asked.stale else [])
    meant = [run for run in chosen(meant, asked.only) if run.key not in recorded]
    runs = list({run.key: run for run in meant}.values())
    print(f"{len(runs)} runs")
    if asked.list:
        print(*map(say, runs), sep="\n")
        return
    if not asked.workers:
        runs = compiled.in_groups(runs)
    place, done = Place(os.path.abspath(asked.data), os.path.abspath(asked.weights)), 0
    for run, record in records_of(runs, place, asked.note or None, deadline, asked.workers):
        ledger(asked.out, run.experiment).add(record)
        done += 1
        said = f"{record['figures']['test_accuracy']:.4f} in {record['seconds']:.0f} s"
        print(f"{done}/{len(runs)} {say(run)}: {said}", flush=True)
    if done < len(runs):
        print(f"{len(runs) - done} runs were not begun in time")


if __name__ == "__main__":
    main()
