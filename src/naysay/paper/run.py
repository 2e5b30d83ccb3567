"""A run becomes a record: one line of `<results>/<experiment>.jsonl` with its values, its figures, and where they come
from.

    {"key", "experiment", "values", "figures", "history" (sharing only), "seconds", "data": {"name", "hash", "simulated", "note"},
     "encoder": {"name", "hash"} or null, "environment": versions, hardware, date}

The key is the run's (`spec.Wanted.key`): what is recorded is never run again, by whatever table it is wanted.
"""

import itertools
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from naysay.engine import ATTEMPTS, Engine, Job, Ledger, Outcome, run_recorded
from naysay.paper import augmented, classifier, compiled, data, decoding, sharing
from naysay.paper.data import Place
from naysay.paper.result import Result
from naysay.paper.spec import Wanted
from naysay.paper.values import Value
from naysay.learning import records

Experiment = Callable[[Mapping[str, Value], Place], Result]
EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {"sharing": sharing.run, "classifier": classifier.run, "augmented": augmented.run, "decoding": decoding.run}
)


def perform(
    key: str, experiment: str, values: Mapping[str, Value], place: Place, note: str | None = None
) -> dict[str, Any]:
    """Do one run, here and now: its record."""
    environment = records.environment(data.device(), 1)
    compiled.settle(experiment, values)
    started = time.perf_counter()
    result = EXPERIMENTS[experiment](values, place)
    record = {
        "key": key,
        "experiment": experiment,
        "values": dict(values),
        "figures": records.clean(result.figures),
        "history": result.history,
        "seconds": round(time.perf_counter() - started, 3),
        "data": data.about(str(values["dataset"]), place, note),
        "encoder": result.encoder,
        "environment": environment,
    }
    return {name: part for name, part in record.items() if name != "history" or part is not None}


def ledger(results: str | Path, experiment: str) -> Ledger:
    """The file of all records of that kind."""
    return Ledger(Path(results) / f"{experiment}.jsonl")


def run_all(
    engine: Engine,
    runs: Iterable[Wanted],
    results: str | Path,
    place: Place,
    *,
    note: str | None = None,
    limit: float | None = None,
) -> Iterator[dict[str, Any]]:
    """Do those of `runs` that are not recorded; each is on disk when its record is given here. After `limit` seconds
    none is begun.
    """
    runs = list(runs)
    until = Until(engine, math.inf if limit is None else time.monotonic() + limit)
    for experiment in dict.fromkeys(run.experiment for run in runs):
        jobs = [
            Job(
                run.key,
                perform,
                {"key": run.key, "experiment": experiment, "values": dict(run.values), "place": place, "note": note},
            )
            for run in compiled.in_groups(run for run in runs if run.experiment == experiment)
        ]
        try:
            yield from run_recorded(until, jobs, ledger(results, experiment), doing="runs")
        except TimeIsUp:
            return


class TimeIsUp(Exception):
    """The jobs that were begun are done, and no other may begin."""


class Until:
    """An engine that begins nothing after `deadline` (of time.monotonic): what is in flight is finished, then comes
    `TimeIsUp`.
    """

    def __init__(self, engine: Engine, deadline: float) -> None:
        self.engine, self.deadline = engine, deadline
        self.name, self.workers, self.share = engine.name, engine.workers, engine.share

    def run(self, jobs: Iterable[Job], attempts: int = ATTEMPTS) -> Generator[Outcome]:
        """The outcomes of the jobs that were begun in time."""
        yield from self.engine.run(itertools.takewhile(lambda job: self._in_time(), jobs), attempts)
        if not self._in_time():
            raise TimeIsUp

    def _in_time(self) -> bool:
        return time.monotonic() < self.deadline
