"""What the benchmarks share: turns, so that other work disturbs all competitors alike, and records with an origin."""

import json
import os
import platform
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import naysay
from naysay.learning.records import processor

RESULTS = Path(__file__).resolve().parent / "results"


class Turn(NamedTuple):
    """The least wall and CPU seconds of a competitor, and its last answer."""

    wall: float
    cpu: float
    answer: Any


def take_turns(competitors: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, Turn]:
    """The best of `repeats` turns of each."""
    best: dict[str, Turn] = {}
    for _ in range(repeats):
        for name, run in competitors.items():
            wall, cpu = time.perf_counter(), cpu_seconds()
            answer = run()
            taken = Turn(time.perf_counter() - wall, cpu_seconds() - cpu, answer)
            before = best.get(name, taken)
            best[name] = Turn(min(before.wall, taken.wall), min(before.cpu, taken.cpu), answer)
    return best


def cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def compare(case: str, turns: Mapping[str, Turn], errors: Mapping[str, float], peer: str) -> list[dict[str, Any]]:
    """One line for each competitor: its times, and what part they are of the peer's."""
    return [
        {
            "case": case,
            "who": name,
            "wall_s": round(turn.wall, 4),
            "cpu_s": round(turn.cpu, 4),
            "peer": peer,
            "ratio": round(turn.wall / turns[peer].wall, 4),
            "cpu_ratio": round(turn.cpu / turns[peer].cpu, 4),
            "max_error": errors.get(name),
        }
        for name, turn in turns.items()
    ]


def record(
    path: Path, benchmark: str, origin: str, packages: Sequence[str], lines: Sequence[Mapping[str, Any]]
) -> None:
    """Append the lines to the results, each with date, machine, load, versions and the data's origin."""
    versions = {"python": platform.python_version(), "naysay": naysay.__version__}
    about = {
        "benchmark": benchmark,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}",
        "load": round(os.getloadavg()[0], 2),
        "versions": {**versions, **{name: version(name) for name in packages}},
        "data": origin,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps({**about, **line}) + "\n" for line in lines)
    print(f"{len(lines)} lines written to {path}")
