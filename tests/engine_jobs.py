"""Jobs for the tests of the engines, which other processes must be able to import, and a driver to be killed:

`python engine_jobs.py ENGINE FOLDER N SECONDS` does N recorded jobs that last so long, on two workers.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from naysay import engine
from naysay.errors import InputError


def wait_for(condition, seconds=60.0):
    """For tests: return as soon as the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def arithmetic(seed, table):
    """Numbers with all their digits, an array that is shared, and how many threads may have made them."""
    x = np.random.default_rng(seed).normal(size=(300, 300))
    return {
        "product": x @ x,
        "shared": table["rows"][seed] @ table["rows"].T,
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def write_shared(table):
    table["rows"][0] = 1


def logged(folder, name, seconds=0.0):
    """Leave a line in the log, then take some time."""
    with open(Path(folder) / "log", "a") as log:
        log.write(f"{name}\n")
    time.sleep(seconds)
    return {"square": int(name) ** 2}


def victim(folder):
    """Wait to be killed the first time, with the process's number in a file; the second time, give back how many times
    it was begun.
    """
    with open(Path(folder) / "victim", "a") as file:
        file.write(f"{os.getpid()}\n")
    begun = (Path(folder) / "victim").read_text().splitlines()
    if len(begun) == 1:
        time.sleep(60)
    return len(begun)


def large(folder):
    """A result that does not fit into a pipe, from a process whose number is in a file."""
    with open(Path(folder) / "victim", "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(0.2)
    return np.zeros(10_000_000)


def fail(times, folder):
    with open(Path(folder) / "failures", "a") as file:
        file.write("x")
    if (Path(folder) / "failures").stat().st_size <= times:
        raise ValueError("the well is dry")
    return {"value": "at last"}


def refuse(folder):
    with open(Path(folder) / "failures", "a") as file:
        file.write("x")
    raise InputError("epochs must be at least 1; got 0.")


def leave():
    sys.exit(3)


def unpicklable():
    return lambda: None


def half(x):
    if x % 2:
        raise InputError(f"only even numbers can be halved; got {x}.")
    return x // 2


def variable(name, seconds=0.0):
    time.sleep(seconds)
    return os.environ.get(name), sys.stderr.isatty(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())


def lines(text, folder):
    """Add records to one ledger, each key also tried by every other process."""
    ledger = engine.Ledger(Path(folder) / "ledger.jsonl")
    return [at for at in range(25) if ledger.add({"key": str(at), "by": text})]


def jobs(folder, n, seconds):
    return [
        engine.Job(f"job {at}", logged, {"folder": str(folder), "name": str(at), "seconds": seconds}) for at in range(n)
    ]


def drive(name, folder, n, seconds):
    with engine.start(name, workers=2) as started:
        for record in engine.run_recorded(
            started, jobs(folder, n, seconds), engine.Ledger(Path(folder) / "ledger.jsonl"), tell=print
        ):
            assert record["square"] == int(record["key"].split()[1]) ** 2


if __name__ == "__main__":
    drive(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
