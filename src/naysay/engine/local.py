"""The local engine: one process per worker, with a pipe of its own, spawned and not forked (torch's threads do not
survive a fork).

The standard library's ProcessPoolExecutor breaks as a whole when one worker dies, leaves its workers behind when the
driver is killed (cpython issue 111873), and waits for ever for a worker that was killed while it sent a result, because
every process holds both ends of its queues. With a pipe per worker the end of a process is the end of its file, at any
moment, on both sides.
"""

import multiprocessing
import signal
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import connection, reduction, resource_tracker
from typing import Any

from naysay.engine.here import Here
from naysay.engine.jobs import ATTEMPTS, Engine, Job, Outcome
from naysay.engine.packing import pack_job
from naysay.engine.placing import VISIBLE, cores, environ, environment, gpus, share_of_threads
from naysay.engine.sharing import SharedFile
from naysay.engine.turns import Attempt, Turns, died, occupied
from naysay.engine.worker import receive, serve
from naysay.errors import InputError

START_ATTEMPTS = 3
PATIENCE = 5.0  # seconds for an idle worker to leave before it is ended


@contextmanager
def started(workers: int | None, threads: int | None) -> Iterator[Engine]:
    """The engine with `workers` processes (None: one per GPU, else per core; 0: in this process), which end with the
    block.
    """
    if workers == 0:
        with Here.with_threads(threads) as here:
            yield here
        return
    devices = gpus()
    workers = len(devices) or cores() if workers is None else workers
    variables = environment(share_of_threads(threads, cores(), workers))
    pinned = [{VISIBLE: devices[at % len(devices)]} if len(devices) > 1 else {} for at in range(workers)]
    engine = Local([variables | pin for pin in pinned])
    try:
        yield engine
    finally:
        engine.close()


class Local:
    """The local engine; `environments` has one mapping of variables per worker."""

    name = "local"

    def __init__(self, environments: list[dict[str, str]]) -> None:
        self._workers = [_Worker(variables) for variables in environments]

    @property
    def workers(self) -> int:
        """How many jobs run at the same time."""
        return len(self._workers)

    def share(self, value: Any) -> SharedFile:
        """Put something large once where all workers reach it."""
        return SharedFile(value)

    def run(self, jobs: Iterable[Job], attempts: int = ATTEMPTS) -> Generator[Outcome]:
        """The outcomes in the order of completion; workers are started when there is something for them to do."""
        turns, finished = Turns(jobs, attempts), list[Outcome]()
        if any(worker.attempt is not None for worker in self._workers):
            raise occupied()
        try:
            while True:
                for worker in self._workers:
                    if worker.attempt is None and (attempt := turns.take()) is not None:
                        worker.give(attempt)
                yield from finished
                busy = {worker.connection: worker for worker in self._workers if worker.attempt is not None}
                if not busy:
                    return
                finished = [outcome for ready in connection.wait(list(busy)) for outcome in busy[ready].hear(turns)]
        finally:
            for worker in self._workers:
                if worker.attempt is not None:  # the caller has left in the middle: nobody waits for this job any more
                    worker.kill()

    def close(self) -> None:
        """End all workers, at once those that are still at a job."""
        for worker in self._workers:
            worker.leave()
        for worker in self._workers:
            worker.kill(PATIENCE if worker.attempt is None else 0.0)


class _Worker:
    """A process, this side of its pipe, and the attempt it is at; the process is started for the first job, and anew
    after a death.
    """

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self.attempt: Attempt | None = None
        self.process: Any = None
        self.connection: Any = None
        self.ready = False
        self.failed_starts = 0

    def give(self, attempt: Attempt) -> None:
        """Begin the attempt, as soon as the process is ready."""
        self.attempt = attempt
        if self.process is not None and not self.process.is_alive():
            self.kill()  # it died while it had nothing to do
            self.attempt = attempt
        if self.process is None:
            self._start()
        elif self.ready:
            self._send()

    def hear(self, turns: Turns) -> list[Outcome]:
        """Take what the process has sent, which may be its end; the outcome, if this was the last attempt at the job."""
        attempt = self.attempt
        assert attempt is not None
        try:
            reply = self.connection.recv()
        except (EOFError, OSError):
            return self._mourn(attempt, turns)
        if not self.ready:
            self.ready, self.failed_starts = True, 0
            self._send()
            return []
        self.attempt = None
        return turns.settle(attempt, receive(reply))

    def leave(self) -> None:
        """Let the process end by itself."""
        if self.connection is not None:
            self.connection.close()

    def kill(self, patience: float = 0.0) -> None:
        """End the process, at once or after so many seconds."""
        if self.process is not None:
            self.process.join(patience)
            self.process.kill()
            self.process.join()
            self.connection.close()
        self.process, self.connection, self.ready, self.attempt = None, None, False, None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs,))
        resource_tracker.ensure_running()  # now: when it starts by itself below, it lets interrupts through again
        with environ(self.variables), _no_interrupts():
            process.start()
        theirs.close()  # so that its end is the end of the file here
        self.process, self.connection = process, ours

    def _send(self) -> None:
        assert self.attempt is not None
        message, shared = pack_job(self.attempt.job)
        try:
            self.connection.send((message, {name: handle.spans for name, handle in shared.items()}))
            for handle in shared.values():
                reduction.send_handle(self.connection, handle.file.fileno(), self.process.pid)
        except OSError:
            return  # it has just died; `hear` finds the end of the file

    def _mourn(self, attempt: Attempt, turns: Turns) -> list[Outcome]:
        begun, process = self.ready, self.process
        self.kill(PATIENCE)  # its pipe is closed, so it has ended or is about to
        if begun:
            return turns.settle(attempt, died(_ending(process.exitcode)))
        self.failed_starts += 1
        if self.failed_starts == START_ATTEMPTS:
            raise InputError(
                f"{START_ATTEMPTS} workers ended while they started; the last one {_ending(process.exitcode)}. "
                'A script must start its work under `if __name__ == "__main__":`; else run with workers=0.'
            )
        self.give(attempt)
        return []


def _ending(exitcode: int) -> str:
    return (
        f"was ended by {signal.Signals(-exitcode).name}" if exitcode < 0 else f"ended with the exit status {exitcode}"
    )


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Children of the block never hear of Ctrl-C, from their first instruction on: the driver does, and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
