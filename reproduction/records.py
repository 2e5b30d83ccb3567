"""A run becomes a record: one line of `<results>/<experiment>.jsonl` with values, figures, and where they come from.

    {"key", "experiment", "values", "version" (by part, `versions`), "figures", "history" (by epoch), "seconds",
     "data": {"name", "hash", "simulated", "note"}, "encoder": {"name", "hash"} or null,
     "environment": versions, hardware, date}

The key is the run's (`spec.Wanted.key`): what is recorded is never run again, by whatever table it is wanted, until a
repair gives the run another key.
"""

import itertools
import math
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from naysay.engine import ATTEMPTS, Engine, Job, Ledger, Outcome, run_recorded
from naysay.learning import environment
from reproduction import compiled, sets
from reproduction.experiments import EXPERIMENTS
from reproduction.sets import Place
from reproduction.spec import Wanted
from reproduction.values import Value


def ledger(results: str | Path, experiment: str) -> Ledger:
    """The file of all records of that kind."""
    return Ledger(Path(results) / f"{experiment}.jsonl")


def read(results: Path) -> list[dict[str, Any]]:
    """All records in a results folder; none where there is no folder yet."""
    return [record for path in sorted(results.glob("*.jsonl")) for record in Ledger(path).read()]


def perform(experiment: str, values: Mapping[str, Value], place: Place, note: str | None = None) -> dict[str, Any]:
    """Do one run, here and now: its record."""
    key, version = next(iter(Wanted(experiment, "", values).keys.items()))
    its_environment = environment(sets.device(), 1)
    compiled.forget_others(experiment, values)
    started = time.perf_counter()
    result = EXPERIMENTS[experiment](values, place)
    return {
        "key": key,
        "experiment": experiment,
        "values": dict(values),
        "version": dict(version),
        "figures": {name: _finite(value) for name, value in result.figures.items()},
        **({} if result.history is None else {"history": [_short(line) for line in result.history]}),
        "seconds": round(time.perf_counter() - started, 3),
        "data": sets.about(str(values["dataset"]), place, note),
        "encoder": result.encoder,
        "environment": its_environment,
    }


def run_all(
    engine: Engine,
    parts: Iterable[Iterable[Wanted]],
    results: str | Path,
    place: Place,
    *,
    note: str | None = None,
    limit: float | None = None,
) -> Iterator[dict[str, Any]]:
    """Do the runs that are not recorded, part after part; each is on disk when it is given here.

    None begins after `limit` seconds.
    """
    until = Until(engine, math.inf if limit is None else time.monotonic() + limit)
    for runs in map(list, parts):
        for experiment in dict.fromkeys(run.experiment for run in runs):
            shared = {"experiment": experiment, "place": place, "note": note}
            jobs = [
                Job(run.key, perform, {"values": dict(run.values), **shared})
                for run in compiled.in_groups(run for run in runs if run.experiment == experiment)
            ]
            try:
                yield from run_recorded(until, jobs, ledger(results, experiment), doing="runs")
            except TimeIsUp:
                return


class TimeIsUp(Exception):
    """The jobs that were begun are done, and no other may begin."""


class Until:
    """An engine that begins nothing after `deadline` (of time.monotonic): what is in flight ends, then `TimeIsUp`."""

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


def _short(line: Mapping[str, Any]) -> dict[str, Any]:
    """An epoch's figures to six digits, which is more than a curve shows, and less than half of the file."""
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in line.items()}


def _finite(value: float | int | None) -> float | int | None:
    """The figure as JSON has it: what is not a number is null."""
    return None if value is None or not math.isfinite(value) else value
