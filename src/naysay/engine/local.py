"""The local engine: one process per worker, spawned and not forked (torch's threads do not survive a fork).

Without workers, for one GPU, a debugger, or functions that cannot be pickled, the jobs are done in this process. The
standard library's ProcessPoolExecutor breaks as a whole when one worker dies, leaves its workers behind when the driver
is killed (cpython issue 111873), and waits for ever for a worker that was killed while it sent a result, because every
process holds both ends of its queues. With a pipe per worker the end of a process is the end of its file at both ends.
"""

import multiprocessing
import signal
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from multiprocessing import connection, reduction, resource_tracker
from typing import Any

from naysay.engine.jobs import ATTEMPTS, OCCUPIED, Attempt, Engine, Job, Outcome, Reply, Turns, died
from naysay.engine.worker import Handle, environ, environments, failure, pack_job, receive, serve, write_shared
from naysay.errors import Ended, InputError

START_ATTEMPTS = 3
PATIENCE = 5.0  # seconds for an idle worker to leave before it is ended


@contextmanager
def started(workers: int | None, threads: int | None) -> Iterator[Engine]:
    """The engine with `workers` processes (None: one per GPU, else per core; 0: this one), which end with the block."""
    if workers == 0:
        with nullcontext() if threads is None else _threads_of_torch(threads):
            yield Here()
        return
    with closing(Local(environments(workers, threads))) as engine:
        yield engine


@contextmanager
def _threads_of_torch(threads: int) -> Iterator[None]:
    """Torch uses so many threads in the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Here:
    """The local engine without workers: jobs one after another in this process."""

    name = "local"
    workers = 1

    def share(self, value: Any) -> Handle:
        return Handle(value)

    def run(self, jobs: Iterable[Job], attempts: int = ATTEMPTS) -> Generator[Outcome]:
        turns = Turns(jobs, attempts)
        while (attempt := turns.take()) is not None:
            yield from turns.end(attempt, _perform(attempt.job))


def _perform(job: Job) -> Reply:
    started = time.perf_counter()
    try:
        arguments = {name: value.place if isinstance(value, Handle) else value for name, value in job.arguments.items()}
        return Reply(job.call(**arguments), None, time.perf_counter() - started)
    except Ended:
        raise
    except (Exception, SystemExit) as error:  # as in a worker: whatever a job raises is its outcome
        return Reply(None, failure(error), time.perf_counter() - started)


class Local:
    """The local engine; `environments` has one mapping of variables per worker."""

    name = "local"

    def __init__(self, environments: list[dict[str, str]]) -> None:
        self._workers = [_Worker(variables) for variables in environments]

    @property
    def workers(self) -> int:
        return len(self._workers)

    def share(self, value: Any) -> Handle:
        return Handle(write_shared(value))

    def run(self, jobs: Iterable[Job], attempts: int = ATTEMPTS) -> Generator[Outcome]:
        """The outcomes in the order of completion; workers are started when there is something for them to do."""
        turns, finished = Turns(jobs, attempts), list[Outcome]()
        if any(worker.attempt is not None for worker in self._workers):
            raise InputError(OCCUPIED)
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
            if worker.connection is not None:
                worker.connection.close()  # idle ones leave by themselves
        for worker in self._workers:
            worker.kill(PATIENCE if worker.attempt is None else 0.0)


class _Worker:
    """A process, this side of its pipe, and the attempt it is at; started for the first job, and anew after a death."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables, self.ready, self.failed_starts = variables, False, 0
        self.attempt: Attempt | None = None
        self.process: Any = None
        self.connection: Any = None

    def give(self, attempt: Attempt) -> None:
        """Begin the attempt, as soon as the process is ready."""
        if self.process is not None and not self.process.is_alive():
            self.kill()  # it died while it had nothing to do
        self.attempt = attempt
        if self.process is None:
            self._start()
        elif self.ready:
            self._send()

    def hear(self, turns: Turns) -> list[Outcome]:
        """Take what the process has sent, which may be its end; the outcome, if the job is not tried again."""
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
        return turns.end(attempt, receive(reply))

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
        message, handles = pack_job(self.attempt.job)
        shared = {name: handle.place for name, handle in handles.items()}
        with suppress(OSError):  # where it has just died, `hear` finds the end of the file
            self.connection.send((message, {name: spans for name, (_, spans) in shared.items()}))
            for file, _ in shared.values():
                reduction.send_handle(self.connection, file.fileno(), self.process.pid)

    def _mourn(self, attempt: Attempt, turns: Turns) -> list[Outcome]:
        begun, process = self.ready, self.process
        self.kill(PATIENCE)  # its pipe is closed, so it has ended or is about to
        if begun:
            return turns.end(attempt, died(_ending(process.exitcode)))
        self.failed_starts += 1
        if self.failed_starts == START_ATTEMPTS:
            ended = f"{START_ATTEMPTS} workers ended while they started; the last one {_ending(process.exitcode)}"
            way_out = 'A script must start its work under `if __name__ == "__main__":`; else run with workers=0.'
            raise InputError(f"{ended}. {way_out}")
        self.give(attempt)
        return []


def _ending(exitcode: int) -> str:
    if exitcode < 0:
        return f"was ended by {signal.Signals(-exitcode).name}"
    return f"ended with the exit status {exitcode}"


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
