"""Jobs that own blocks, on all cores, without barriers: a thread takes the first job whose blocks nobody holds.

Numpy, torch and compiled kernels let go of the interpreter lock while they compute, so plain threads suffice. In a job
torch computes on one thread. Nothing waits for the slowest core of each step, which on a busy machine costs more than
the step itself.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import torch

from naysay.progress import track

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failure:
    """What a job raised, on its way to the caller's thread."""

    error: BaseException


def run_all(jobs: Sequence[Job], work: Callable[[Job], None], doing: str) -> None:
    """Do `work(job)` for all jobs, none of which changes what another uses, under a bar that says what is done."""
    for _ in track(run(jobs, lambda _: set(), work), len(jobs), doing):
        pass


def run(jobs: Sequence[Job], owned: Callable[[Job], set[int]], work: Callable[[Job], Result]) -> Iterator[Result]:
    """The results of `work(job)` as they come, begun in about that order; no two at once share a block of `owned`."""
    threads = torch.get_num_threads()
    changed, held, stopped = threading.Condition(), set[int](), False
    upcoming, waiting = iter(jobs), list[tuple[Job, set[int]]]()
    finished: queue.SimpleQueue[Result | Failure] = queue.SimpleQueue()

    def take() -> tuple[Job, set[int]] | None:
        with changed:
            while not stopped:
                for place, (_, blocks) in enumerate(waiting):
                    if held.isdisjoint(blocks):
                        held.update(blocks)
                        return waiting.pop(place)
                more = list(islice(upcoming, 1)) if len(waiting) < 4 * threads else []
                waiting.extend((job, owned(job)) for job in more)
                if not waiting:
                    return None
                if not more:
                    changed.wait()
        return None

    def labour() -> None:
        torch.set_num_threads(1)
        while (taken := take()) is not None:
            job, blocks = taken
            try:
                finished.put(work(job))
            except BaseException as error:
                finished.put(Failure(error))
            with changed:
                held.difference_update(blocks)
                changed.notify_all()

    team = [threading.Thread(target=labour, daemon=True) for _ in range(threads)]
    try:
        for worker in team:
            worker.start()
        for _ in jobs:
            result = finished.get()
            if isinstance(result, Failure):
                raise result.error
            yield result
    finally:
        with changed:
            stopped = True
            changed.notify_all()
        for worker in team:
            worker.join()
        torch.set_num_threads(threads)
