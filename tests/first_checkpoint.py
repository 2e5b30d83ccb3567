"""A program that kills `naysay pretrain` at every step of writing its first checkpoint, and calls it again.

`python first_checkpoint.py FOLDER` logs what the command does to files of its folder, by Python's audit events, from
the hidden folder of the first checkpoint to the line in the records after it. Then it ends a process by SIGKILL right
before each of these steps, calls the command again to its end, and prints a JSON line for each.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
from forking import fork
from kills import bits, naysay, unfinished, weights
from test_features_pretrain import stripes

from naysay.learning.folder import load
from naysay.learning.records import read

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}
EPOCHS = 2
MADE = weights("checkpoint.safetensors"), bits("encoder.safetensors")


def pretrain(place):
    asked = ("--method", "emp", "--network", "small", "--epochs", EPOCHS, "--batch", 8, "--save-every", 1)
    naysay("pretrain", place.parent / "images.npy", *asked, "--quiet", "--out", place)


def watched(place, at):
    """Call `at` with each step that this process takes in the folder `place`, before it is taken."""

    def hook(event, given):
        if event not in STEPS or not isinstance(given[0], str | os.PathLike):
            return
        paths = [os.fspath(path) for path in given[: 2 if event == "os.rename" else 1]]
        # what a hidden folder holds is removed by names without a path
        if any(str(place) in path for path in paths) or (event in ("os.remove", "os.rmdir") and "/" not in paths[0]):
            at(" ".join([event, *(Path(path).name for path in paths)]))

    sys.addaudithook(hook)


def ended(work):
    """How a child that does `work` ended."""
    return os.waitpid(fork(work), 0)[1]


def log(place):
    """Every step of a run that nobody kills, in their order."""
    kept = place.with_suffix(".log")

    def work():
        with kept.open("w", buffering=1) as file:
            watched(place, lambda step: print(step, file=file))
            pretrain(place)

    if ended(work):
        raise SystemExit("the command failed")
    return kept.read_text().splitlines()


def kill_before(place, number):
    """Run the command and kill it right before the step of that number."""
    taken = iter(range(number))

    def at(step):
        if next(taken, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    if ended(lambda: (watched(place, at), pretrain(place))) != signal.SIGKILL:
        raise SystemExit(f"the command was not killed before step {number}")


def first_of(place):
    """The figures of the first epoch, its time too, where there is a checkpoint."""
    kept = place / "checkpoint.safetensors"
    return load(kept)[1]["history"][0] if kept.exists() else None


def main(folder):
    """Kill, look, and call again, for each step."""
    np.save(folder / "images.npy", stripes(n=16, size=8)[0].numpy())
    steps = log(folder / "whole")
    renamed = next(i for i, step in enumerate(steps) if step == "os.rename new.safetensors checkpoint.safetensors")
    begun = max(i for i, step in enumerate(steps[:renamed]) if step.startswith("os.mkdir .checkpoint."))
    over = next(i for i, step in enumerate(steps) if i > renamed and step == "open records.jsonl")
    for number in range(begun, over + 1):
        place = folder / f"killed {number}"
        kill_before(place, number)
        found, left = first_of(place), len(unfinished(place))
        if ended(lambda place=place: pretrain(place)):
            raise SystemExit(f"the command failed after a kill before step {number}")
        same = all(made(place) == made(folder / "whole") for made in MADE)
        told = {"step": steps[number], "left": left, "found": found is not None, "same": same}
        told |= {"continued": found is not None and first_of(place) == found, "litter": len(unfinished(place))}
        epochs = [line["epoch"] for line in read(place / "records.jsonl") if line["kind"] == "epoch"]
        print(json.dumps({**told, "epochs": epochs}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
