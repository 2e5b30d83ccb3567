"""Where a table's numbers come from, read off its records: hardware, dates, data, encoders, and commands."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reproduction.spec import Spec, Wanted, plans
from reproduction.standing import Record, by_run
from reproduction.values import Value, written
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
            new = [run for run in runs if run.key in made]
            parts: dict[str, list[str]] = {}
            for name in dict.fromkeys(run.values["dataset"] for run in new):
                parts.setdefault(_only(_of(new, name), _of(runs, name)), []).append(str(name))
            everywhere = {run.values["dataset"] for run in runs}
            for rest, datasets in parts.items():
                only = f" --only dataset={','.join(datasets)}" if len(datasets) < len(everywhere) else ""
                found.append(f"{COMMAND} run {self.spec.name}{flag}{only}{rest}")
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


def _of(runs: Sequence[Wanted], dataset: Value) -> list[Wanted]:
    return [run for run in runs if run.values["dataset"] == dataset]


def _only(done: Sequence[Wanted], runs: Sequence[Wanted]) -> str:
    """The options that leave those of `runs` that were done: the forms of each value that takes fewer among them."""
    options = ""
    for name in dict.fromkeys(name for run in runs for name in run.said):
        here, there = ([written(run.said[name]) for run in part if name in run.said] for part in (done, runs))
        if here and set(here) != set(there):
            options += f" --only {name}={','.join(dict.fromkeys(here))}"
    return options
