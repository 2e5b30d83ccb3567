"""What an engine costs: 24 small trainings on digits (2 losses x 3 schemes x 4 seeds) through `local` and `ray`.

    python benchmarks/engine.py                    # minutes; on a machine that does nothing else
    ... --workers 2 --epochs 160 --out FILE        # also as a JSON line

The work is the sum of the jobs' seconds alone in one process, one after the other, on one thread. An engine's overhead
is (workers x wall - work) / work, from before its start to after its end: what its workers load, wait and talk is in
it. The start-up, from the call until the first job begins, is shown apart; so is how much longer the jobs themselves
took side by side than alone, which two threads of one core or other work on the machine bring about, and no engine can
help. Then everything once more with a worker killed in the middle. The records must be the same in all five runs, but
for times and process numbers, to the last digit of every epoch's loss.
The goal: overheads below 25 %.
"""

import argparse
import itertools
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from measuring import record

from naysay import engine

LOSSES = ("scl-nl", "l-w")
SCHEMES = ("none", "rms", "dms")
SEEDS = range(4)
ENGINES = ("local", "ray")
OF_THE_RUN = ("seconds", "began", "pid")  # what may differ between two runs of one job
GOAL = 0.25


def train(loss: str, scheme: str, seed: int, epochs: int) -> dict[str, Any]:
    """One job: draw labels, share them, train, judge; every epoch's loss is in the record."""
    began = time.time()
    from naysay import datasets, labels, metrics, transition
    from naysay.holdout import prepare
    from naysay.learning import Config
    from naysay.learning import train as fit

    digits = datasets.load("digits")
    comp = labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=seed), 10)
    pixels = digits.x_train.reshape(len(comp), -1).astype("float32")
    ready = prepare(digits.x_train, comp, features=pixels, scheme=scheme, seed=seed, n_neighbors=8, metric="cosine")
    config = Config(loss=loss, epochs=epochs, seed=seed)
    trained = fit(config, ready.x, ready.comp, held_out=ready.held_out, progress=False)
    return {
        "config": {"loss": loss, "scheme": scheme, "seed": seed, "epochs": epochs},
        "test_accuracy": metrics.oracle_accuracy(trained.predictor.predict(digits.x_test), digits.y_test),
        "best_epoch": trained.best_epoch,
        "losses": [figures["loss"] for figures in trained.history],
        "held_out": [figures["held_out"] for figures in trained.history],
        "began": began,
        "pid": os.getpid(),
    }


def jobs(epochs: int) -> Iterator[engine.Job]:
    """The sweep."""
    for loss, scheme, seed in itertools.product(LOSSES, SCHEMES, SEEDS):
        given = {"loss": loss, "scheme": scheme, "seed": seed, "epochs": epochs}
        yield engine.Job(f"{loss}/{scheme}/{seed}", train, given)


def sweep(started: AbstractContextManager[engine.Engine], epochs: int, *, kill: bool = False) -> dict[str, Any]:
    """Wall-clock and start-up seconds of a sweep, and its ledger's records; with `kill` a worker dies on the way."""
    with tempfile.TemporaryDirectory(prefix="naysay-engine-") as folder:
        ledger, begin = engine.Ledger(Path(folder) / "sweep.jsonl"), time.time()
        with started as running:
            for done, one in enumerate(engine.run_recorded(running, jobs(epochs), ledger, doing="trainings"), 1):
                if kill and done == 5:
                    os.kill(one["pid"], signal.SIGKILL)  # which is at the next job by now
        wall, records = time.time() - begin, ledger.read()
    return {"wall": wall, "start": min(one["began"] for one in records) - begin, "records": records}


def results(records: list[dict[str, Any]]) -> dict[str, Any]:
    """What the records say of the trainings, by key."""
    return {one["key"]: {name: value for name, value in one.items() if name not in OF_THE_RUN} for one in records}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--epochs", type=int, default=160)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    load = os.getloadavg()[0]

    alone = sweep(engine.start("local", workers=0, threads=1), given.epochs)
    work, truth = sum(one["seconds"] for one in alone["records"]), results(alone["records"])
    assert len(truth) == 24
    print(f"alone in one process: {work:.1f} s of work in 24 jobs; load before {load:.1f}", flush=True)
    line: dict[str, Any] = {"work": work, "load before": load, "workers": given.workers, "epochs": given.epochs}
    for name in ENGINES:
        whole, killed = (
            sweep(engine.start(name, workers=given.workers, threads=1), given.epochs, kill=kill)
            for kill in (False, True)
        )
        overhead = (given.workers * whole["wall"] - work) / work
        slower = (sum(one["seconds"] for one in whole["records"]) - work) / work
        assert len({one["pid"] for one in killed["records"]}) > given.workers, "no worker was killed"
        same, same_after_kill = results(whole["records"]) == truth, results(killed["records"]) == truth
        print(
            f"{name}: wall {whole['wall']:.1f} s, of which start-up {whole['start']:.1f} s; "
            f"overhead {overhead:.1%} (goal {GOAL:.0%}), "
            f"of which {slower:.1%} in the jobs themselves; "
            f"records identical: {same}; with a worker killed: {same_after_kill}, wall {killed['wall']:.1f} s",
            flush=True,
        )
        line[name] = {
            "wall": whole["wall"],
            "start": whole["start"],
            "overhead": overhead,
            "jobs slower": slower,
            "identical": same,
            "identical after a kill": same_after_kill,
            "wall with a kill": killed["wall"],
        }
    if given.out:
        record(given.out, "engine", "digits of scikit-learn", ("torch", "ray"), [line])
    if not all(line[name]["identical"] and line[name]["identical after a kill"] for name in ENGINES):
        raise SystemExit("the records are not the same")


if __name__ == "__main__":
    main()
