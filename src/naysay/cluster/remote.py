"""The ray engine: one Ray task per attempt, as many at a time as the cluster has room for.

Ray's own retries are off, so that attempts are counted here, as on the local engine. As many jobs as there are workers
are with Ray at any moment; nodes that join a cluster later are used as soon as they are there.
"""

import functools
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from naysay.cluster.connection import connect, is_connected
from naysay.engine import cores, share_of_threads
from naysay.engine.jobs import ATTEMPTS, OCCUPIED, Attempt, Engine, Failure, Job, Outcome, Reply, Turns, died
from naysay.engine.worker import Handle, MainMemory, environment, pack_apart, pack_job, perform, receive
from naysay.errors import InputError


@contextmanager
def started(workers: int | None, threads: int | None, address: str | None) -> Iterator[Engine]:
    """The engine on the cluster at `address`, or on one of this machine that ends with the block."""
    room = None if workers is None else workers * share_of_threads(threads, cores(), workers)
    # a Ray that is started here gives its workers their threads: with another environment they would be started anew
    own = address is None and not is_connected()
    inherited = environment(share_of_threads(threads, cores(), workers or cores())) if own else {}
    connected = connect(address, workers=room, variables=inherited)
    with connected as ray, closing(Remote(ray, workers, threads, inherited)) as engine:
        yield engine


class Remote:
    """The ray engine, over a connected `ray`."""

    name = "ray"

    def __init__(self, ray: Any, workers: int | None, threads: int | None, inherited: dict[str, str]) -> None:
        self._ray, self._wished = ray, workers
        self._running: dict[Any, Attempt] = {}  # by Ray's reference
        cpus, gpus = self._has("CPU"), self._has("GPU")
        self._threads = share_of_threads(threads, cpus, workers or gpus or cpus)
        self._unit = ("GPU", 1) if gpus else ("CPU", self._threads)
        largest = max((int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]), default=0)
        self._task = ray.remote(
            # what no machine has would be waited for without end
            num_cpus=min(self._threads, largest or self._threads),
            num_gpus=min(1, gpus / (workers or gpus)) if gpus else 0,
            max_retries=0,
            runtime_env=None if inherited == environment(self._threads) else {"env_vars": environment(self._threads)},
        )(_perform)

    def _has(self, resource: str) -> int:
        return int(self._ray.cluster_resources().get(resource, 0))

    @property
    def workers(self) -> int:
        """How many jobs run at a time: as asked, or one per GPU or per `threads` CPUs of the cluster as it is now."""
        resource, each = self._unit
        return self._wished or max(1, self._has(resource) // each)

    def share(self, value: Any) -> Handle:
        import numpy as np

        # as arrays, which Ray's object store keeps as they are and hands out without a copy
        parts = [np.frombuffer(part, np.uint8) for part in pack_apart(value, _by_value())]
        return Handle(self._ray.put(parts))

    def run(self, jobs: Iterable[Job], attempts: int = ATTEMPTS) -> Generator[Outcome]:
        turns, finished, running = Turns(jobs, attempts), list[Outcome](), self._running
        if running:
            raise InputError(OCCUPIED)
        try:
            while True:
                while len(running) < self.workers and (attempt := turns.take()) is not None:
                    running[self._submit(attempt.job)] = attempt
                yield from finished
                if not running:
                    return
                done, _ = self._ray.wait(list(running), num_returns=1)
                finished = [outcome for one in done for outcome in turns.end(running.pop(one), self._fetch(one))]
        finally:
            self.close()

    def close(self) -> None:
        """End the jobs that run: nobody waits for them any more."""
        while self._running:
            self._ray.cancel(self._running.popitem()[0], force=True)

    def _submit(self, job: Job) -> Any:
        message, shared = pack_job(job, _by_value())
        return self._task.remote(message, sys.path, list(shared), *(handle.place for handle in shared.values()))

    def _fetch(self, one: Any) -> Reply:
        exceptions = self._ray.exceptions
        try:
            return receive(Reply(*self._ray.get(one)))
        except exceptions.WorkerCrashedError:
            return died("was ended from outside, or crashed")
        except exceptions.RayError as error:
            return Reply(None, Failure(type(error).__name__, str(error).strip()), 0.0)


def _perform(message: bytes, path: list[str], names: list[str], *values: list[Any]) -> tuple[Any, ...]:
    """In a Ray worker: modules are looked for where the driver has them, as the local engine's workers do."""
    sys.path.extend(place for place in path if place not in sys.path)
    return tuple(perform(message, dict(zip(names, values, strict=True)), _by_value()))


@functools.cache
def _by_value() -> Any:
    """Ray's pickler, which sends what a script itself defines by value: its workers do not run it, as local ones do."""
    from ray import cloudpickle

    return type("ByValue", (MainMemory, cloudpickle.CloudPickler), {})
