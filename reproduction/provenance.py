"""Where a table's numbers come from, read off its records: hardware, dates, data, encoders, and commands."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reproduction.spec import Spec, Wanted, plans
from reproduction.standing import Record, by_run
from reproduction.values import written
from reproduction.words import COMMAND, duration


@dataclass(frozen=True)
class Provenance:
    """The records of the runs that a spec wants, by the run's key, and its plans: every full run, every quick one."""

    spec: Spec
    records: Mapping[str, Record]
    full: Sequence[Wanted]
    quick: Sequence[Wanted]

    def runs(self) -> list[str]:
        """A line for each hardware: how many runs, full or quick, when, how long in all; and how many failed."""
        full, lines = {run.key for run in self.full}, []
        for name, here in self._by_hardware().items():
            n_full = sum(key in full for key in here)
            kinds = [f"{count} {kind}" for count, kind in ((n_full, "full"), (len(here) - n_full, "quick")) if count]
            days = sorted({record["environment"]["started"][:10] for record in here.values()})
            when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
            versions = sorted({record["environment"]["versions"]["torch"] for record in here.values()})
            took = duration(sum(record["seconds"] for record in here.values()))
            lines.append(f"{' and '.join(kinds)} on {name}, torch {' and '.join(versions)}, {when}, {took} in all")
        failed = len(self.records) - len(self._succeeded())
        return [*lines, *([f"{failed} failed"] if failed else [])]

    def data(self) -> list[str]:
        """A line for each data set and encoder: its name, its hash, and what the record notes of it."""
        lines = []
        for record in self._succeeded().values():
            about, encoder = record["data"], record["encoder"]
            known = [f"hash {about['hash'][:12]}", "simulated labels" if about["simulated"] else "", about["note"]]
            lines.append(f"{about['name']} ({'; '.join(filter(None, known))})")
            lines += [f"encoder {encoder['name']} (hash {encoder['hash'][:12]})"] if encoder else []
        return list(dict.fromkeys(lines))

    def commands(self) -> list[str]:
        """Commands that make the records, with `--only` where they are a part; without records, those that make all."""
        keys = set(self._succeeded())
        shortened = {run.values["dataset"] for run in self.quick if run.quick and run.key in keys}
        # what --quick wants too, it made in passing
        by_quick = {run.key for run in self.quick if run.values["dataset"] in shortened} & keys
        found = []
        for flag, runs, made in (("", self.full, keys - by_quick), (" --quick", self.quick, by_quick)):
            asked = {run.key: {name: written(value) for name, value in run.said.items()} for run in runs}
            done = [said for key, said in asked.items() if key in made]
            parts = _parts(done, list(asked.values()))
            found += [f"{COMMAND} run {self.spec.name}{flag}{_as_options(part)}" for part in parts]
        return found or [f"{COMMAND} run {self.spec.name}{flag}" for flag in ("", " --quick")]

    def _succeeded(self) -> dict[str, Record]:
        return {key: record for key, record in self.records.items() if "failed" not in record}

    def _by_hardware(self) -> dict[str, dict[str, Record]]:
        found: dict[str, dict[str, Record]] = {}
        for key, record in self._succeeded().items():
            found.setdefault(record["environment"]["hardware"]["name"], {})[key] = record
        return found


def provenance(spec: Spec, records: Iterable[Record]) -> Provenance:
    """Where the numbers of a spec come from, given all records."""
    full, quick = plans(spec)
    return Provenance(spec, by_run([*full, *quick], records), full, quick)


# what a reader asks for first
TELLING = (
    *("experiment", "dataset", "model", "optimizer", "loss", "scheme", "inputs", "fine_tune"),
    *("n_train", "n_neighbors", "seed"),
)
Said = Mapping[str, str]  # what a run can be asked for by, as text
Part = Mapping[str, Sequence[str]]  # of some runs: values by name, as --only has them


def _parts(done: Sequence[Said], runs: Sequence[Said]) -> list[Part]:
    """Parts of `runs` that hold all that were done, and others only where no values tell them apart."""
    if not done:
        return []
    part = _around(done, runs)
    if sum(_holds(part, run) for run in runs) == len(done):
        return [part]
    apart = [split for name in _names(done) if len(split := _alike(done, name)) > 1]
    if not apart:
        return [part]
    return [smaller for alike in min(apart, key=len) for smaller in _parts(alike, runs)]


def _around(done: Sequence[Said], runs: Sequence[Said]) -> Part:
    """The values of those that were done, without any that says nothing of `runs` that the others do not."""
    part = {name: here for name in _names(done) if (here := _forms(done, name)) != _forms(runs, name)}
    part |= {name: _forms(done, name) for name in _names(done) if any(name not in run for run in runs)}
    held = [run for run in runs if _holds(part, run)]
    for name in sorted(part, key=lambda name: name in TELLING):
        less = {other: forms for other, forms in part.items() if other != name}
        if sum(_holds(less, run) for run in runs) == len(held):
            part = less
    return {name: part[name] for name in (*TELLING, *part) if name in part}


def _names(runs: Sequence[Said]) -> list[str]:
    """What every one of the runs says."""
    return [name for name in runs[0] if all(name in run for run in runs)]


def _forms(runs: Sequence[Said], name: str) -> list[str]:
    return list(dict.fromkeys(run[name] for run in runs if name in run))


def _alike(done: Sequence[Said], name: str) -> list[list[Said]]:
    """The runs by their value of that name, those together for which all else is the same."""
    by_form: dict[str, list[Said]] = {}
    for run in done:
        by_form.setdefault(run[name], []).append(run)
    together: dict[frozenset[frozenset[tuple[str, str]]], list[Said]] = {}
    for runs in by_form.values():
        rest = frozenset(frozenset((other, said) for other, said in run.items() if other != name) for run in runs)
        together.setdefault(rest, []).extend(runs)
    return list(together.values())


def _holds(part: Part, run: Said) -> bool:
    return all(run.get(name) in forms for name, forms in part.items())


def _as_options(part: Part) -> str:
    return "".join(f" --only {name}={','.join(forms)}" for name, forms in part.items())
