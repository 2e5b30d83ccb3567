"""Where independent work runs: processes of this machine (`local`), or Ray, here or on a cluster (docs/CLUSTER.md).

    with engine.start("local", workers=2) as started:
        for record in engine.run_recorded(started, jobs, engine.Ledger("results.jsonl")):
            ...

It knows nothing of labels: jobs are functions with keywords, and the same jobs give the same values on either engine.
What goes in and comes out are `jobs`; how they reach a process and come back, `worker`; the processes of this machine,
`local`; and a file of what is done, which survives a kill, the `ledger`.
"""

from contextlib import AbstractContextManager
from importlib import import_module
from typing import cast

from naysay.cores import usable as cores
from naysay.engine import local
from naysay.engine.jobs import ATTEMPTS, Engine, Failure, Job, JobFailed, Outcome, each
from naysay.engine.ledger import Ledger, run_recorded
from naysay.engine.worker import share_of_threads
from naysay.errors import InputError, unknown

NAMES = ("local", "ray")

__all__ = [
    "ATTEMPTS",
    "NAMES",
    "Engine",
    "Failure",
    "Job",
    "JobFailed",
    "Ledger",
    "Outcome",
    "cores",
    "each",
    "run_recorded",
    "share_of_threads",
    "start",
]


def start(
    name: str = "local", *, workers: int | None = None, threads: int | None = None, address: str | None = None
) -> AbstractContextManager[Engine]:
    """An engine, and its end when the block is left.

    workers: how many jobs at a time; else one per GPU, or per core where there is none. 0 (local only): this process.
    threads: of each worker's arithmetic (workers=0: torch's alone); else the cores over the workers. The same number
    gives the same last digits everywhere.
    address: the Ray cluster to join, "auto" or "host:port"; else Ray is started here.
    """
    if name not in NAMES:
        raise unknown("engine", name, NAMES)
    for what, number, least in (("workers", workers, 0 if name == "local" else 1), ("threads", threads, 1)):
        if number is not None and number < least:
            raise InputError(f"{what} of the {name} engine must be at least {least}; got {number}.")
    if name == "ray":
        # by name: what needs Ray is a later stage, which stands on this one
        started = import_module("naysay.cluster.remote").started
        return cast(AbstractContextManager[Engine], started(workers, threads, address))
    if address is not None:
        raise InputError(f"the local engine has no address; got {address!r}. Use the engine ray to join a cluster.")
    return local.started(workers, threads)
