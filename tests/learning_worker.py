"""A program for the tests that kill processes: it imports torch once and forks, so that each victim costs milliseconds.

`python learning_worker.py kill FOLDER` trains in children that are killed, then to the end; `... pair FOLDER` trains on
two processes; `... reading FOLDER` has two that would read labels differently begin together. Each prints a JSON line.
"""

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch._dynamo  # which the first optimiser would import, in every child anew
from forking import fork

from naysay import labels, transition
from naysay.learning import Config, HeldOut, Predictor, Task, configure, recipes, train
from naysay.learning.records import read
from naysay.processes import ALONE, join

torch.set_num_threads(1)  # before any product: a forked child may not use a thread pool that its parent has started


def problem():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(301, 64)).astype(np.float32)
    return x, labels.from_indices(generator.integers(0, 5, 301), 5)


# wide enough that writing a checkpoint takes longer than an epoch
KILLED = Config(epochs=16, batch_size=100, model_options={"hidden": 6_000}, learning_rate=1e-4)


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("waited in vain")


def train_killed(folder):
    x, comp = problem()
    return train(KILLED, x[:250], comp[:250], held_out=HeldOut(x[250:], comp[250:]), folder=folder)


def kill(folder):
    """Kill a training at random moments and in mid-writing; the epochs each left, and whether the end is the same."""
    generator = np.random.default_rng(0)
    place = folder / "killed"
    kept = place / "checkpoint.safetensors"
    left, while_writing = [], 0

    def unfinished():
        return list(place.glob(".checkpoint.*.tmp/new.safetensors"))

    for attempt in range(6):
        before = kept.stat().st_mtime_ns if kept.exists() else 0
        child = fork(lambda: train_killed(place))
        # at least one epoch further
        wait_until(lambda before=before: kept.exists() and kept.stat().st_mtime_ns != before)
        if attempt % 2:
            wait_until(unfinished)
        else:
            time.sleep(generator.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        if os.waitpid(child, 0)[1] != signal.SIGKILL:
            raise SystemExit("the training ended before it could be killed: give it more epochs")
        while_writing += len(unfinished()) == 1
        left.append(sum(line["kind"] == "epoch" for line in read(place / "records.jsonl")))
    for name in ("killed", "whole"):
        if os.waitpid(fork(lambda name=name: train_killed(folder / name)), 0)[1]:
            raise SystemExit(f"the training in {name} failed")
    same = all(
        torch.equal(tensor, Predictor.load(folder / "whole" / file).tensors()[name])
        for file in ("checkpoint.safetensors", "best.safetensors")
        for name, tensor in Predictor.load(folder / "killed" / file).tensors().items()
    )
    epochs = [line["epoch"] for line in read(folder / "killed" / "records.jsonl") if line["kind"] == "epoch"]
    litter = [path.name for path in place.iterdir() if path.name.startswith(".")]
    return {"left": left, "while_writing": while_writing, "same": same, "epochs": epochs, "litter": litter}


def join_two(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE="2")
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    return join()


def on_two(work):
    """Do `work` with the rank and the port of the meeting place, in two processes, to the end."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    children = [fork(lambda rank=rank: work(rank, port)) for rank in range(2)]
    if sum(os.waitpid(child, 0)[1] for child in children):  # every child is waited for, also after one has failed
        raise SystemExit("a process failed")


def train_share(rank, port, folder):
    processes = join_two(rank, port)
    x, comp = problem()
    for loss in ("scl-nl", "ure-ga", "ure-nn", "cpe-t"):
        config = Config(loss=loss, epochs=3, batch_size=50, model_options={"hidden": 16})
        trained = train(config, x, comp, processes=processes, folder=folder / loss)
        if rank == 1:
            trained.predictor.save(folder / f"{loss}.rank1.safetensors")
            (folder / f"{loss}.rank1.json").write_text(json.dumps(trained.history))


def pair(folder):
    """Train on two processes and on one; the largest difference of any weight, per loss, and of the recorded losses."""
    on_two(lambda rank, port: train_share(rank, port, folder))
    x, comp = problem()
    answer = {}
    for loss in ("scl-nl", "ure-ga", "ure-nn", "cpe-t"):
        config = Config(loss=loss, epochs=3, batch_size=50, model_options={"hidden": 16})
        one = train(config, x, comp)
        start = train(Config(**{**config.as_dict(), "epochs": 1, "learning_rate": 1e-12}), x, comp)
        files = folder / loss / "checkpoint.safetensors", folder / f"{loss}.rank1.safetensors"
        both = [Predictor.load(file) for file in files]
        far = [max(float((t - one.predictor.tensors()[n]).abs().max()) for n, t in p.tensors().items()) for p in both]
        moved = max(float((t - one.predictor.tensors()[n]).abs().max()) for n, t in start.predictor.tensors().items())
        losses = json.loads((folder / f"{loss}.rank1.json").read_text())
        apart = max(abs(a["loss"] - b["loss"]) for a, b in zip(losses, one.history, strict=True))
        answer[loss] = {"far": max(far), "moved": moved, "loss": apart}
    return answer


def begin(rank, port, folder, config, x, comp):
    """Begin a run alone, and as one of two processes; what labels are read by."""
    told = {}
    for name, processes in (("alone", ALONE), ("together", join_two(rank, port))):
        learner = recipes.build(Task(config, x, comp, processes=processes))
        learner.before_epoch(0)
        told[name] = {"linear": bool(learner.linear), "powers": learner.powers.tolist()}
    (folder / f"{rank}.json").write_text(json.dumps(told))


def reading(folder):
    """What labels are read by in two processes of which one has labels that say much, the first and then the second."""
    from test_taught import SMALL, named, shifts

    x, y_true = shifts(1500, 0)
    at_random = y_true[torch.randperm(len(y_true), generator=torch.Generator().manual_seed(0))]
    much, nothing = (named(y, transition.uniform(int(y.max()) + 1), 2) for y in (y_true, at_random))
    config, answer = configure("taught", **SMALL, class_shares="even"), []
    for comps in ((much, nothing), (nothing, much)):
        on_two(lambda rank, port, comps=comps: begin(rank, port, folder, config, x, comps[rank]))
        answer.append([json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)])
    return answer


if __name__ == "__main__":
    print(json.dumps({"kill": kill, "pair": pair, "reading": reading}[sys.argv[1]](Path(sys.argv[2]))))
