"""What `naysay paper run` says: the plan, a line for each finished run, and all of it as one object."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from naysay.paper import Wanted
    from naysay.paper.plan import Plan


def plan_lines(planned: "Plan", at_a_time: int) -> list[str]:
    """The plan, line by line."""
    from naysay.paper.words import duration

    missing = len(planned.wanted) - len(planned.recorded)
    lines = [
        planned.spec.title,
        f"{runs(len(planned.wanted))} wanted, {len(planned.recorded)} recorded, {missing} missing",
    ]
    for name, them in planned.absent.items():
        lines.append(f"{len(them)} of them need {name}, which is not in the data folder; a download will be tried")
    for way_out, them in planned.lacking.items():
        lines.append(f"{len(them)} of them cannot run: {way_out}")
    if planned.estimate is not None:
        seconds = duration(planned.estimate.seconds / at_a_time)
        lines.append(
            f"about {seconds} with {at_a_time} at a time, from {planned.estimate.source} of {runs(len(planned.ready))}"
        )
    return lines


def summary(planned: "Plan") -> dict[str, Any]:
    """The plan for machines, with places for what will be done."""
    return {
        "name": planned.spec.name,
        "wanted": len(planned.wanted),
        "recorded": len(planned.recorded),
        "ready": len(planned.ready),
        "absent": {name: len(them) for name, them in planned.absent.items()},
        "lacking": [{"runs": len(them), "way_out": way_out} for way_out, them in planned.lacking.items()],
        "estimated_seconds": None if planned.estimate is None else planned.estimate.seconds,
        "done": 0,
        "failed": [],
    }


def run_line(run: "Wanted", among: Iterable["Wanted"], record: Mapping[str, Any]) -> str:
    """A finished run in a line, with its main figure."""
    from naysay.paper.words import duration, figure, percent

    if "failed" in record:
        return f"{called(run, among)}: failed"
    figures = record["figures"]
    main = "test_accuracy" if "test_accuracy" in figures else next(iter(figures))
    return f"{called(run, among)}: {figure(main)} {percent(figures[main])} %, {duration(record['seconds'])}"


def called(run: "Wanted", among: Iterable["Wanted"]) -> str:
    """The run by its label and by what differs among the runs of that label; where nothing does, by its data set."""
    alike = [other for other in among if other.label == run.label]
    names = [name for name in run.values if len({other.values.get(name) for other in alike}) > 1]
    parts = [*([run.label] if run.label else []), *(f"{name} {run.values[name]}" for name in names)]
    return ", ".join(parts) or str(run.values["dataset"])


def runs(n: int) -> str:
    """1 -> "1 run", 3600 -> "3,600 runs"."""
    return "1 run" if n == 1 else f"{n:,} runs"
