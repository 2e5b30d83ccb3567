"""Kills at random moments: whatever was being done, nothing is lost and the next call ends with the same bits.

`python tests/kills.py [--kills 120] [--seed 0] [--jobs fit,augment,...]` (`make kills`) does a job in a process of its
own, ends it by SIGKILL or SIGTERM at a random moment, looks, and does it again to the end. After the kill each result
is absent, as it was before, or whole, and what was given is as it was. After the next call the result is that of a run
that nobody killed, to the bit, and nothing unfinished is left. It prints a JSON line of what was done; the first thing
that is otherwise ends it with the seed that shows it again.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Event

os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}  # a forked child may not use its parent's thread pool

import numpy as np
import torch
import torch._dynamo  # which the first optimiser would import, in every child anew
from forking import fork
from test_cli import write_csv
from test_datasets_download import BODY, SUM, Handler
from test_features_pretrain import TINY, small_encoder, stripes

from naysay import cli, engine, files, labels
from naysay.datasets import Source, store
from naysay.datasets.download import fetch
from naysay.features import pretrain
from naysay.learning import Config, HeldOut, train
from naysay.learning.folder import load

torch.set_num_threads(1)
FIT = ["--id", "id", "--label", "not_label", "--epochs", "3", "--quiet"]


def naysay(*arguments):
    """The command as a user runs it, signals and all, but silent."""
    sys.argv = ["naysay", *map(str, arguments)]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        try:
            cli.main()
        except SystemExit as end:
            if end.code:
                os._exit(end.code)


def get(place):
    port = int((place / "in" / "port").read_text())
    fetch(Source("file.bin", (f"http://127.0.0.1:{port}/file.bin",), SUM), place, "set")


def keep(place):
    """A file written anew again and again, as a cache or a data set is."""
    for number in range(20):
        store.write(place / "kept.npz", {"x": np.full(30_000, number)})


def record(place):
    ledger = engine.Ledger(place / "ledger.jsonl")
    for number in range(60):
        ledger.add({"key": str(number), "text": "\r" * number})


def learn(place):
    draw = np.random.default_rng(0)
    x, comp = draw.normal(size=(200, 16)).astype(np.float32), labels.from_indices(draw.integers(0, 5, 200), 5)
    config = Config(epochs=8, batch_size=50, model_options={"hidden": 2_000})
    train(config, x[:150], comp[:150], held_out=HeldOut(x[150:], comp[150:]), folder=place / "training")


def weights(*names):
    """The bits of checkpoints' tensors; their descriptions hold times."""
    return lambda place: [
        hashlib.sha256(tensor.numpy().tobytes()).hexdigest()
        for name in names
        for _, tensor in sorted(load(place / name)[0].items())
    ]


def bits(*names):
    """The bytes of files."""
    return lambda place: [(place / name).read_bytes() for name in names]


def learned(place):
    return [(place / "RUN" / name).read_bytes() for name in ("model.safetensors", "report.npz", "audit.json")]


@dataclass(frozen=True)
class Row:
    """A job: what is done in a place, what it makes there, and what must come out, to the bit.

    goes_on: whether it may be called again when it is done. before: whether the result stands there before, of old.
    """

    work: object
    makes: str
    result: object
    goes_on: bool = False
    before: bool = False


JOBS = {
    "fit": Row(lambda at: naysay("fit", at / "in" / "data.csv", *FIT, "--out", at / "RUN"), "RUN", learned),
    "refit": Row(
        lambda at: naysay("fit", at / "in" / "data.csv", *FIT, "--seed", 1, "--force", "--out", at / "RUN"),
        "RUN",
        learned,
        goes_on=True,
        before=True,
    ),
    "augment": Row(
        lambda at: naysay("augment", at / "in" / "data.csv", *FIT[:4], "--out", at / "z.csv"), "z.csv", bits("z.csv")
    ),
    "predict": Row(
        lambda at: naysay("predict", at / "in" / "RUN", at / "in" / "data.csv", "--out", at / "p.parquet"),
        "p.parquet",
        bits("p.parquet"),
    ),
    "train": Row(
        learn, "training", weights("training/checkpoint.safetensors", "training/best.safetensors"), goes_on=True
    ),
    "pretrain": Row(
        lambda at: pretrain(stripes()[0], TINY, encoder=small_encoder(), folder=at / "encoder", save_every=1),
        "encoder",
        weights("encoder/checkpoint.safetensors"),
        goes_on=True,
    ),
    "get": Row(get, "originals/file.bin", bits("originals/file.bin"), goes_on=True),
    "keep": Row(keep, "kept.npz", bits("kept.npz"), goes_on=True),
    "ledger": Row(record, "ledger.jsonl", bits("ledger.jsonl"), goes_on=True),
}
COMMANDS = ("fit", "refit", "augment", "predict")
IN_ONE_STEP = (*COMMANDS, "get")  # their result appears in one step: after a kill it is whole, or as it was


def serve(port):
    """A server that breaks off after 200,000 bytes each time, in a process of its own; its number."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.asked, server.knows_range, server.slip = {"/file.bin": BODY}, [], True, 0
    server.cut, server.content_type = 200_000, "application/octet-stream"
    server.halfway, server.go_on = Event(), Event()
    server.go_on.set()
    port.write_text(str(server.server_address[1]))
    return fork(server.serve_forever)


def done(job, place):
    """Do the job to its end in another process; how long that took."""
    started = time.monotonic()
    _, status = os.waitpid(fork(lambda: JOBS[job].work(place)), 0)
    if status:
        raise SystemExit(f"{job} in {place} ended with status {status}")
    return time.monotonic() - started


def given(folder):
    """What was given to the jobs, to be compared after."""
    return {path: path.read_bytes() for path in sorted((folder / "in").rglob("*")) if path.is_file()}


def unfinished(place):
    return [path for path in place.rglob("*") if files.is_unfinished(path)]


def prepare(folder, jobs):
    """What is given to the jobs."""
    (folder / "in").mkdir(parents=True)
    numbers = np.random.default_rng(0).normal(size=(90, 3)).round(3).tolist()
    table = [["id", "a", "b", "c", "not_label"], *([f"i{i}", *row, "xyz"[i % 3]] for i, row in enumerate(numbers))]
    write_csv(folder / "in" / "data.csv", table)
    if {*jobs} & {*COMMANDS}:
        naysay("fit", folder / "in" / "data.csv", *FIT, "--out", folder / "in" / "RUN")  # compiles, for all children


def main():
    """Kill, look, do again; the figures."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--kills", type=int, default=120)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--jobs", default=",".join(JOBS))
    asked = asked.parse_args()
    jobs, draw, counted = asked.jobs.split(","), random.Random(asked.seed), Counter()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        prepare(root, jobs)
        server = serve(root / "in" / "port") if "get" in jobs else None
        try:
            before, whole, seconds, old = given(root), {}, {}, {}
            for job in jobs:
                place = start(root, f"whole {job}", job)
                old[job] = JOBS[job].result(place) if JOBS[job].before else None
                seconds[job] = done(job, place)
                whole[job] = JOBS[job].result(place)
            for number in range(asked.kills):
                job = jobs[number % len(jobs)]
                ending = draw.choice([signal.SIGKILL, signal.SIGTERM])
                place = start(root, f"{number} {job}", job)
                what = f"seed {asked.seed}, kill {number}, {job}, {ending.name}"
                check(kill(job, place, ending, draw.uniform(0, seconds[job]), what, old, whole, counted), what)
                now = given(root)
                changed = [str(path) for path in {*now, *before} if now.get(path) != before.get(path)]
                check(not changed, f"{what}: {changed} has changed")
                shutil.rmtree(place)
        finally:
            if server:
                os.kill(server, signal.SIGKILL)
                os.waitpid(server, 0)
    print(json.dumps({"kills": asked.kills, "seed": asked.seed, **dict(sorted(counted.items()))}))


def start(root, name, job):
    """A place for the job with what is given, and an old result where it has one."""
    place = root / name
    place.mkdir()
    (place / "in").symlink_to(root / "in")
    if JOBS[job].before:
        shutil.copytree(root / "in" / "RUN", place / "RUN")
    return place


def kill(job, place, ending, delay, what, old, whole, counted):
    """Kill the job after so many seconds and do it again."""
    row = JOBS[job]
    # a child has its parent's handlers, and the parent has called the command
    child = fork(lambda: (signal.signal(signal.SIGTERM, signal.SIG_DFL), row.work(place)))
    time.sleep(delay)
    os.kill(child, ending)
    _, status = os.waitpid(child, 0)
    counted[job] += 1
    counted["ended by it"] += status != 0
    left = unfinished(place)
    counted[f"left something unfinished, {ending.name}"] += bool(left)
    stands = (place / row.makes).exists()
    counted["result was there"] += stands
    if stands and job in IN_ONE_STEP:
        check(row.result(place) in (old[job], whole[job]), f"{what}: half a result")
    if row.before and not stands:  # the old one had made way; the next run puts it back
        check(left, f"{what}: the old result is lost")
    if not stands or row.goes_on:
        done(job, place)
    else:
        files.replace(place / "another", b"of another run in the same folder")
    check(not unfinished(place), f"{what}: {unfinished(place)} is left after the next run")
    check(row.result(place) == whole[job], f"{what}: the result is another")
    return True


def check(condition, sentence):
    """End with the sentence where the condition does not hold."""
    if not condition:
        raise SystemExit(sentence)


if __name__ == "__main__":
    main()
