"""What `run` is about to do: the runs a spec wants, which are recorded, and what the others lack or will take."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from naysay import losses, models
from naysay.augmentation import SCHEMES
from naysay.errors import InputError, unknown
from naysay.selection import criterion
from reproduction import sets, words
from reproduction.estimate import Estimate, estimate
from reproduction.experiments import config
from reproduction.records import ledger
from reproduction.sets import Place
from reproduction.spec import Spec, Wanted, wanted
from reproduction.standing import by_run


@dataclass(frozen=True)
class Plan:
    """The runs of a spec: those recorded, those that can begin, and those that lack something."""

    spec: Spec
    wanted: tuple[Wanted, ...]
    recorded: int  # also those that are stale
    stale: frozenset[str]  # keys of runs whose record was made before a repair: they are done again, and first
    ready: Sequence[Wanted]
    absent: Mapping[str, Sequence[Wanted]]  # by data set: not in the data folder; it may be possible to download it
    lacking: Mapping[str, Sequence[Wanted]]  # by what to do
    estimate: Estimate | None  # of those that are ready

    def lines(self, at_a_time: int) -> list[str]:
        """The plan as it is told, line by line."""
        n, stale = len(self.wanted), f" ({len(self.stale)} stale)" if self.stale else ""
        wanted = f"{words.count(n, 'run')} wanted, {self.recorded} recorded{stale}, {n - self.recorded} missing"
        lines = [self.spec.title, wanted]
        for name, them in self.absent.items():
            lines.append(f"{len(them)} of them need {name}, which is not in the data folder; a download will be tried")
        for way_out, them in self.lacking.items():
            lines.append(f"{len(them)} of them cannot run: {way_out}")
        if self.estimate is not None:
            time = words.duration(self.estimate.seconds / at_a_time)
            of = f"{self.estimate.source} of {words.count(len(self.ready), 'run')}"
            lines.append(f"about {time} with {at_a_time} at a time, from {of}")
        return lines

    def summary(self) -> dict[str, Any]:
        """The plan for machines, with places for what will be done."""
        return {
            "name": self.spec.name,
            "wanted": len(self.wanted),
            "recorded": self.recorded,
            "stale": len(self.stale),
            "ready": len(self.ready),
            "absent": {name: len(them) for name, them in self.absent.items()},
            "lacking": [{"runs": len(them), "way_out": way_out} for way_out, them in self.lacking.items()],
            "estimated_seconds": None if self.estimate is None else self.estimate.seconds,
            "done": 0,
            "failed": [],
        }


def make(
    spec: Spec,
    results: str | Path,
    place: Place,
    *,
    quick: bool = False,
    only: Mapping[str, Sequence[str]] | None = None,
    threads: int | None = None,
) -> Plan:
    """Look at everything and start nothing; `threads` is what each run will have, for the estimate of the time."""
    runs = wanted(spec, quick=quick, only=only)
    for run in runs:
        check(run)
    kinds = dict.fromkeys(run.experiment for run in runs)
    records = [record for kind in kinds for record in ledger(results, kind).read()]
    recorded = by_run(runs, [record for record in records if "failed" not in record])
    stale = frozenset(key for key, record in recorded.items() if record["key"] != key)
    ready: list[Wanted] = []
    absent: dict[str, list[Wanted]] = {}
    lacking: dict[str, list[Wanted]] = {}
    for run in runs:
        if run.key in recorded and run.key not in stale:
            continue
        name, way_out = str(run.values["dataset"]), _encoder_lacks(run, place)
        if way_out is not None:
            lacking.setdefault(way_out, []).append(run)
        elif not sets.is_here(name, place):
            absent.setdefault(sets.row(name).images, []).append(run)
        else:
            ready.append(run)
    seconds = estimate(ready, records, threads) if ready else None
    return Plan(spec, runs, len(recorded), stale, ready, absent, lacking, seconds)


def check(run: Wanted) -> None:
    """Refuse a run whose values name things that do not exist, before anything is trained."""
    values = run.values
    sets.row(values["dataset"])
    if "scheme" in values and values["scheme"] not in SCHEMES:
        raise unknown("scheme", values["scheme"], SCHEMES)
    if run.experiment in ("augmented", "decoding"):
        return
    settings = config(values)
    losses.get(settings.loss)
    if settings.model not in models.MODELS:
        raise unknown("model", settings.model, models.MODELS)
    if run.experiment == "classifier":
        if values.get("inputs") == "features" and values.get("fine_tune"):
            raise InputError(
                'a run on features has no encoder to fine-tune: set fine_tune = false, or inputs = "images".'
            )
        criterion(str(values.get("criterion", "ure-accuracy")))


def get_absent(plan: Plan, place: Place) -> tuple[list[Wanted], dict[str, Sequence[Wanted]]]:
    """Try to download what is absent: the runs that can begin after all, and the others by what to do."""
    found: list[Wanted] = []
    lacking: dict[str, Sequence[Wanted]] = {}
    for name, runs in plan.absent.items():
        way_out = sets.lacking(name, place)
        if way_out is None:
            found += runs
        else:
            lacking[way_out] = runs
    return found, lacking


def run_line(run: Wanted, among: Iterable[Wanted], record: Mapping[str, Any]) -> str:
    """A finished run in a line, with its main figure."""
    if "failed" in record:
        return f"{called(run, among)}: failed"
    figures = record["figures"]
    main = "test_accuracy" if "test_accuracy" in figures else next(iter(figures))
    took = words.duration(record["seconds"])
    return f"{called(run, among)}: {words.figure(main)} {words.percent(figures[main])} %, {took}"


def called(run: Wanted, among: Iterable[Wanted]) -> str:
    """The run by its label and by what differs among the runs of that label; where nothing does, by its data set."""
    alike = [other for other in among if other.label == run.label]
    names = [name for name in run.values if len({other.values.get(name) for other in alike}) > 1]
    parts = [*([run.label] if run.label else []), *(f"{name} {run.values[name]}" for name in names)]
    return ", ".join(parts) or str(run.values["dataset"])


def _encoder_lacks(run: Wanted, place: Place) -> str | None:
    """What to do for the encoder that the run needs; None where it needs none or it is there."""
    name, values = str(run.values["dataset"]), run.values
    shares = values.get("scheme", "none") != "none"
    in_space = run.experiment == "decoding" or shares or values.get("inputs") == "features"
    if not (values.get("fine_tune") or (in_space and sets.row(name).encoder)):
        return None
    try:
        sets.encoder_file(name, place)
    except InputError as error:
        return str(error)
    return None
