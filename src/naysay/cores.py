"""Cores: how many threads this process can use, and how they wait.

Threads of one step of training wait for each other thousands of times a second. Where they wait awake (OpenMP's way,
unless told otherwise) and a core is busy with something else, or a container may use less than it sees, most of the
time goes into waiting: on two cores under a load of five, two epochs of a small network on 3,000 rows took 0.9 s with
one thread, 24 s with two that wait awake, and 0.5 s with two that sleep.

So the command lets threads sleep while they wait (`sleep_while_waiting`, before torch is loaded). In Python, where
torch is loaded already, training takes no more threads than there are cores that others leave free (`free`).
"""

import math
import os
import sys
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
WAITING = "OMP_WAIT_POLICY"


def sleep_while_waiting() -> None:
    """Let OpenMP's threads sleep while they wait, unless the environment says how they should; before torch loads."""
    os.environ.setdefault(WAITING, "PASSIVE")


def usable(groups: Path = GROUPS) -> int:
    """The cores that this process may use: those it may run on, or fewer where a container is held to fewer."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, _quota(groups)))


def free(groups: Path = GROUPS) -> int:
    """The usable cores that others leave: at least one, and all of them where threads sleep while they wait."""
    most = usable(groups)
    if os.environ.get(WAITING, "").upper() == "PASSIVE" or not hasattr(os, "getloadavg"):
        return most
    others = max(0.0, os.getloadavg()[0] - 1) * most / (os.cpu_count() or most)  # one of those that run is this one
    return max(1, round(most - others))


def held(groups: Path = GROUPS) -> str:
    """A sentence about cores that are there and may not be used, if there are such."""
    may, there = usable(groups), os.cpu_count() or 1
    return f"training uses {may} of {there} cores: this process may not use more" if may < there else ""


def _quota(groups: Path) -> int:
    """The cores that a container is held to, rounded up, in either version of Linux' control groups."""
    new, old = groups / "cpu.max", groups / "cpu"
    if new.exists():
        quota, period = new.read_text().split()
    elif (old / "cpu.cfs_quota_us").exists():
        quota, period = ((old / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
    else:
        return sys.maxsize
    return sys.maxsize if quota in ("max", "-1") else math.ceil(int(quota) / int(period))
