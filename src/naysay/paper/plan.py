"""What `naysay paper run` is about to do: the runs a spec wants, which of them are recorded, and what the others lack
or will take.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from naysay import losses, models
from naysay.augmentation import SCHEMES
from naysay.errors import InputError, unknown
from naysay.paper import data, space
from naysay.paper.data import Place
from naysay.paper.estimate import Estimate, estimate
from naysay.paper.result import config
from naysay.paper.run import ledger
from naysay.paper.spec import Spec, Wanted, wanted
from naysay.selection import criterion


@dataclass(frozen=True)
class Plan:
    """The runs of a spec: those recorded, those that can begin, and those that lack something, by what to do about it."""

    spec: Spec
    wanted: tuple[Wanted, ...]
    recorded: Mapping[str, Mapping[str, Any]]  # by key
    ready: tuple[Wanted, ...]
    absent: Mapping[str, tuple[Wanted, ...]]  # by data set: not in the data folder; it may be possible to download it
    lacking: Mapping[str, tuple[Wanted, ...]]  # by what to do
    estimate: Estimate | None  # of those that are ready


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
    records = [
        record for name in dict.fromkeys(run.experiment for run in runs) for record in ledger(results, name).read()
    ]
    results_of = {record["key"]: record for record in records if "failed" not in record}
    recorded = {run.key: results_of[run.key] for run in runs if run.key in results_of}
    ready: list[Wanted] = []
    absent: dict[str, list[Wanted]] = {}
    lacking: dict[str, list[Wanted]] = {}
    for run in runs:
        if run.key in recorded:
            continue
        name, way_out = str(run.values["dataset"]), _encoder_lacks(run, place)
        if way_out is not None:
            lacking.setdefault(way_out, []).append(run)
        elif not data.is_here(name, place):
            absent.setdefault(data.row(name).images, []).append(run)
        else:
            ready.append(run)
    return Plan(
        spec,
        runs,
        recorded,
        tuple(ready),
        {name: tuple(them) for name, them in absent.items()},
        {way_out: tuple(them) for way_out, them in lacking.items()},
        estimate(ready, records, threads) if ready else None,
    )


def check(run: Wanted) -> None:
    """Refuse a run whose values name things that do not exist, before anything is trained."""
    values = run.values
    data.row(values["dataset"])
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


def get_absent(plan: Plan, place: Place) -> tuple[tuple[Wanted, ...], dict[str, tuple[Wanted, ...]]]:
    """Try to download what is absent: the runs that can begin after all, and the others by what to do."""
    found: list[Wanted] = []
    lacking: dict[str, tuple[Wanted, ...]] = {}
    for name, runs in plan.absent.items():
        way_out = data.lacking(name, place)
        if way_out is None:
            found += runs
        else:
            lacking[way_out] = runs
    return tuple(found), lacking


def _encoder_lacks(run: Wanted, place: Place) -> str | None:
    """What to do for the encoder that the run needs; None where it needs none or it is there."""
    name = str(run.values["dataset"])
    in_space = (
        run.experiment == "decoding"
        or run.values.get("scheme", "none") != "none"
        or run.values.get("inputs") == "features"
    )
    if not (run.values.get("fine_tune") or (in_space and data.row(name).encoder)):
        return None
    try:
        space.encoder_file(name, place)
    except InputError as error:
        return str(error)
    return None
