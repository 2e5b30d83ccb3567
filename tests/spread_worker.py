"""A program for tests of work on two processes: it imports torch once and forks, so a process costs milliseconds.

`python spread_worker.py pair FOLDER` pretrains on two processes, whole and killed in between, and on one; then one of
two fails. It prints one JSON line.
"""

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

import torch
import torch._dynamo  # which the first optimiser would import, in every child anew
from forking import fork
from test_features_pretrain import OPTIONS, RATE, SETTINGS, small_encoder, stripes

from naysay import files
from naysay.errors import InputError
from naysay.features import pretrain
from naysay.learning import configure
from naysay.learning.folder import load
from naysay.processes import join, one_voice

torch.set_num_threads(1)  # before any product: a forked child may not use a thread pool that its parent has started

CONFIG = configure("fastsiam", **SETTINGS, **OPTIONS, target_momentum=0.9)


def run(folder, encoder_seed=0, **more):
    """Pretrain as the process that the environment says; leave weights and curve in FOLDER/rankN.pt and .json."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = []
    processes = join()
    done = pretrain(
        stripes()[0],
        more.pop("config", CONFIG),
        encoder=small_encoder(encoder_seed),
        folder=folder,
        save_every=1,
        oracle=lambda encoder: float(asked.append(1) or 0.5),
        oracle_every=2,
        processes=processes,
        **more,
    )
    torch.save(done.encoder.state_dict(), folder / f"rank{processes.rank}.pt")
    (folder / f"rank{processes.rank}.json").write_text(json.dumps({"curve": done.curve, "asked": len(asked)}))


def start_pair(work):
    """Two forked processes that do work(rank), joined under a port of their own."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]

    def one(rank):
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE="2")
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
        work(rank)

    return [fork(lambda rank=rank: one(rank)) for rank in range(2)]


def finish(children):
    if sum([os.waitpid(child, 0)[1] for child in children]):  # every child is waited for, also after one has failed
        raise SystemExit("a process failed")


def kill_after_an_epoch(folder, children):
    """Kill both processes once the folder holds a checkpoint; the epochs that were left."""
    deadline = time.monotonic() + 30
    kept = folder / "checkpoint.safetensors"
    while not kept.exists():
        if time.monotonic() > deadline:
            raise SystemExit("waited in vain")
    for child in children:
        os.kill(child, signal.SIGKILL)
    if [os.waitpid(child, 0)[1] for child in children] != [signal.SIGKILL] * 2:
        raise SystemExit("the training ended before it could be killed")
    return len(load(kept)[1]["history"])


def slow(line):
    time.sleep(0.3)  # so that the kill comes before the end


def pair(folder):
    """The results of one process and of two, and what a pair that was killed came to."""
    finish([fork(lambda: run(folder / "one"))])
    # the second process's encoder is another: what the first one has is what counts
    finish(start_pair(lambda rank: run(folder / "two", encoder_seed=rank)))
    rate = configure("emp", **SETTINGS, **RATE)
    finish([fork(lambda: run(folder / "emp-one", config=rate))])
    finish(start_pair(lambda rank: run(folder / "emp-two", config=rate)))
    killed = folder / "killed"
    left = kill_after_an_epoch(killed, start_pair(lambda rank: run(killed, report=slow)))
    finish(start_pair(lambda rank: run(killed)))
    # begun by two, ended by one
    mixed = folder / "mixed"
    finish(start_pair(lambda rank: run(mixed, seconds=0.0)))
    finish([fork(lambda: run(mixed))])
    finish(start_pair(lambda rank: refuse(folder / f"refused{rank}")))
    said = []
    for failing in range(2):
        finish(start_pair(lambda rank, failing=failing: fail(rank, failing, folder / f"said{rank}")))
        said.append([(folder / f"said{rank}").read_text() for rank in range(2)])
    refused = [(folder / f"refused{rank}").read_text() for rank in range(2)]
    return {"left": left, "refused": refused, "said": said, "unfinished": terminated(folder / "terminated")}


def terminated(folder):
    """End two processes in mid-writing, as torchrun ends those that wait; the names of the files that stay behind."""
    folder.mkdir()

    def write(rank):
        with one_voice(), files.replacing(folder / f"whole{rank}"):
            (folder / f"begun{rank}").touch()
            time.sleep(30)

    children = start_pair(write)
    deadline = time.monotonic() + 30
    while not all((folder / f"begun{rank}").exists() for rank in range(2)):
        if time.monotonic() > deadline:
            raise SystemExit("waited in vain")
    for child in children:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    return sorted(path.name for path in folder.iterdir())


def fail(rank, failing, file):
    """One process fails while the other waits for it; what each leaves with is written to `file`."""
    try:
        with one_voice():
            processes = join()
            if rank == failing:
                raise InputError("it failed")
            processes.average_([torch.ones(3)])
    except InputError as error:
        file.write_text(str(error))
    except SystemExit as error:
        file.write_text(f"exit {error.code}")


def refuse(file):
    try:
        run(file.parent / "odd", config=configure("fastsiam", **{**SETTINGS, "batch_size": 15}, **OPTIONS))
    except InputError as error:
        file.write_text(str(error))


if __name__ == "__main__":
    print(json.dumps({"pair": pair}[sys.argv[1]](Path(sys.argv[2]))))
