"""Which records stand for a place in a table: full runs before quick ones, and per seed the setting that was chosen.

A place takes its full runs where all of them are recorded; else its quick runs, marked; else those full runs that there
are, marked; else those quick runs that there are. A place without any is missing, never zero. A run whose record was
made before a repair (`versions`) stands with it, marked stale. Among the settings of the grid (`show.choose.over`) each
seed is represented by the one with the best `show.choose.by`, which no ordinary label enters.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from naysay import selection
from reproduction import versions
from reproduction.spec import Spec, Wanted, plans
from reproduction.values import Value

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Standing:
    """What stands for a place in a table."""

    place: Mapping[str, Value]
    kind: str  # "full", "quick", "partial" (full, but not all) or "missing"
    cut: str = ""  # in words, what the records have less than the full runs
    failed: int = 0  # runs of the place
    chosen: tuple[Record, ...] = ()  # one for each seed
    stale: tuple[str, ...] = ()  # what is wrong with some of them, by the repairs that were made since


def by_run(runs: Iterable[Wanted], records: Iterable[Record]) -> dict[str, Record]:
    """By the run's key its newest record, which may stand under an earlier key: a result, or else a failure."""
    there, found = {record["key"]: record for record in records}, dict[str, Record]()
    for run in runs:
        its = [there[key] for key in run.keys if key in there]
        if its:
            found[run.key] = next((record for record in its if "failed" not in record), its[0])
    return found


def stale(run: Wanted, record: Record) -> tuple[str, ...]:
    """What is wrong with the run's record because of repairs made since; nothing where it has the run's own key."""
    return versions.before(run.experiment, run.values, run.keys[record["key"]])


def standings(spec: Spec, records: Iterable[Record]) -> list[Standing]:
    """What stands for each place of the spec, in the spec's order."""
    told, (full_runs, quick_runs) = names(spec), plans(spec)
    by_key = by_run([*full_runs, *quick_runs], records)
    full, quick = _by_place(told, full_runs), _by_place(told, quick_runs)
    newest = _newest_encoders(by_key.values())
    return [
        _standing(spec, dict(place), full.get(place, []), quick.get(place, []), by_key, newest)
        for place in dict.fromkeys([*full, *quick])
    ]


def names(spec: Spec) -> list[str]:
    """What tells places apart: rows and columns, or panels, series and x, and any axis that is not chosen over."""
    if spec.kind == "table":
        shown = [*spec.show["rows"], *spec.show["columns"]]
    else:
        shown = [*spec.show.get("panels", ()), *spec.show.get("series", ()), spec.show["x"]]
    values = {name for block in spec.blocks for name in block.values} | {"label"}
    axes = [name for block in spec.blocks for name, value in block.values.items() if isinstance(value, list)]
    apart = {"seed", *_over(spec)}
    return [name for name in dict.fromkeys([*shown, *axes]) if name in values and name not in apart]


def _over(spec: Spec) -> Sequence[str]:
    over: Sequence[str] = spec.show.get("choose", {}).get("over", ())
    return over


def _by_place(told: Sequence[str], runs: Sequence[Wanted]) -> dict[tuple[tuple[str, Value], ...], list[Wanted]]:
    places: dict[tuple[tuple[str, Value], ...], list[Wanted]] = {}
    for run in runs:
        values = {**run.values, "label": run.label}
        places.setdefault(tuple((name, values[name]) for name in told if name in values), []).append(run)
    return places


def _standing(
    spec: Spec,
    place: Mapping[str, Value],
    full: list[Wanted],
    quick: list[Wanted],
    by_key: Mapping[str, Record],
    newest: Mapping[str, str],
) -> Standing:
    there = {run.key: by_key[run.key] for run in [*full, *quick] if run.key in by_key}
    succeeded = {key for key, record in there.items() if "failed" not in record}
    failed = len(there) - len(succeeded)
    done = [(runs, [run for run in runs if run.key in succeeded]) for runs in (full, quick)]
    some = [(plan, used) for plan, used in done if used]
    if not some:
        return Standing(place, "missing", failed=failed)
    plan, used = next((both for both in some if both[0] == both[1]), some[0])
    kind = "full" if used == full else "quick" if any(run.quick for run in used) else "partial"
    chosen = _choose(spec, used, by_key)
    wrong = dict.fromkeys(text for run in chosen for text in stale(run, by_key[run.key]))
    records = tuple(by_key[run.key] for run in chosen)
    cut = [_cut(full, plan, used, _over(spec)), _other_encoders(records, newest)]
    return Standing(place, kind, ", ".join(filter(None, cut)), failed, records, tuple(wrong))


def _choose(spec: Spec, used: list[Wanted], by_key: Mapping[str, Record]) -> list[Wanted]:
    """For each seed the run of the best setting; the first of equals."""
    by = spec.show.get("choose", {}).get("by", "")

    def merit(run: Wanted) -> float:
        record = by_key[run.key]
        value = record["figures"].get(by)
        if value is None:
            return -math.inf  # a diverged run has no estimate and is chosen last
        judge = selection.criterion(str(record["values"].get("criterion", "ure-accuracy")))
        return float(value) if judge.higher_is_better else -float(value)

    return [max(runs, key=merit) for runs in _by_seed(used).values()]


def _cut(full: list[Wanted], plan: list[Wanted], used: list[Wanted], over: Sequence[str]) -> str:
    """In words what the used runs have less, or other, than the full ones: "30 of 200 epochs, 1 of 5 seeds"."""
    said = []
    for name in full[0].values if full else ():
        ours, theirs = used[0].values[name], full[0].values[name]
        if name not in ("seed", *over) and ours != theirs:
            said.append(f"{ours} of {theirs} epochs" if name == "epochs" else f"{name} {ours} instead of {theirs}")
    all_seeds, seeds, planned = _by_seed(full), _by_seed(used), _by_seed(plan)
    if len(seeds) < len(all_seeds):
        said.append(f"{len(seeds)} of {len(all_seeds)} seeds")
    settings = max((len(runs) for runs in all_seeds.values()), default=0)
    fewest, most = min(map(len, seeds.values())), max(map(len, seeds.values()))
    if any(len(runs) < len(planned[seed]) for seed, runs in seeds.items()):
        said.append(f"grid incomplete: {f'{fewest} to {most}' if fewest < most else most} of {settings} settings")
    elif most < settings:
        said.append(f"{most} of {settings} settings")
    return ", ".join(said)


def _newest_encoders(records: Iterable[Record]) -> dict[str, str]:
    """By data set the hash of the encoder that the newest of the records was made with."""
    with_one = [record for record in records if record.get("encoder")]
    with_one.sort(key=lambda record: str(record["environment"]["started"]))
    return {record["data"]["name"]: record["encoder"]["hash"] for record in with_one}


def _other_encoders(records: Sequence[Record], newest: Mapping[str, str]) -> str:
    """In words that some or all records have another encoder than the newest beside them: it is not in a run's key."""
    others = [record for record in records if record.get("encoder")]
    others = [record for record in others if record["encoder"]["hash"] != newest[record["data"]["name"]]]
    if not others:
        return ""
    encoders = {record["encoder"]["hash"] for record in records if record.get("encoder")}
    return f"{len(encoders)} encoders" if len(encoders) > 1 else "an earlier encoder"


def _by_seed(runs: Sequence[Wanted]) -> dict[Value, list[Wanted]]:
    seeds: dict[Value, list[Wanted]] = {}
    for run in runs:
        seeds.setdefault(run.values["seed"], []).append(run)
    return seeds
