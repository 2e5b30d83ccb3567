"""`make gates`: whether the package is as right, as fast and as light as it was.

    python -m benchmarks gates                     accuracy and modules against gates.json
    python -m benchmarks gates --against COMMIT    speed too, against that commit
    python -m benchmarks gates --write             stores what it measures

It guards a rebuild of the whole package. It exits with 1 if a rule fails or a figure is missing.

- Accuracy, paired by seed: the mean of the table rows falls by more than 0.5 points and 2 standard
  errors, or a row by more than 1 point and 5 standard errors.
- Speed: a task takes over 1.1 times the other tree's CPU seconds or peak memory (propagation: 1.6
  times), by the median of five turns. In each turn both trees run at once, each on its core.
- Modules: a call loads more of them.
"""

import argparse
import json
import math
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "benchmarks" / "gates.json"
MNIST = ROOT.parent / "shared" / "data" / "mnist.npz"
# the dearest first, so that two processes end together
TABLES = (
    "digits/uniform",
    "display/three",
    "waves/strongly biased",
    "spirals/noisy",
    "csv",
    "frame",
    "few_rows/uniform",
    "wine/popular",
)
IMAGES = ("mnist_toy", "consistent_tiny")
ROWS = (*TABLES, *IMAGES, "digits_paper", "taught_tiny")
SPEED = ("graph", "rounds", "fit_1500", "fit_20000", "start_command", "start_predict")
MODULES = ("modules of augment", "modules of classifier", "modules of command")
TURNS = 5
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow", "faiss-cpu")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Rows = Mapping[str, Mapping[str, float]]
Ratios = Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True)
class Finding:
    """What a comparison says about one figure that is not as it was."""

    kind: Literal["failure", "worse", "better", "missing"]
    """worse: beyond chance, but within the rules."""
    text: str


@dataclass(frozen=True)
class Difference:
    """The mean difference of pairs in points, with its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ± {self.error:.2f} points"


@dataclass(frozen=True)
class Job:
    """A task of one tree."""

    task: str
    tree: Path
    options: tuple[str, ...] = ()


def mean_difference(points: Sequence[float]) -> Difference:
    error = statistics.stdev(points) / math.sqrt(len(points)) if len(points) > 1 else 0.0
    return Difference(mean=statistics.fmean(points), error=error)


def row_points(stored: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float]:
    """The differences by seed, in points."""
    return {seed: 100 * (measured[seed] - stored[seed]) for seed in stored}


def judge_difference(name: str, change: Difference, limit: float, errors: float) -> list[Finding]:
    """A finding where a difference is beyond so many standard errors."""
    if abs(change.mean) <= errors * change.error:
        return []
    if change.mean > 0:
        return [Finding("better", f"{name}: {change}")]
    return [Finding("failure" if change.mean < -limit else "worse", f"{name}: {change}")]


def compare_rows(
    stored: Rows, measured: Rows, rows: Sequence[str] = ROWS, tables: Sequence[str] = TABLES
) -> list[Finding]:
    """What accuracies by row and seed say beside the stored ones."""
    findings = []
    points = {}
    for row in rows:
        before, now = stored.get(row, {}), measured.get(row, {})
        if not before or before.keys() != now.keys():
            reason = "other seeds than stored" if before else "not in the stored file"
            findings.append(Finding("missing", f"{row}: {reason if now else 'not measured'}"))
            continue
        points[row] = row_points(before, now)
        findings += judge_difference(row, mean_difference(list(points[row].values())), 1.0, 5.0)
    if all(row in points for row in tables):
        change = tables_difference(points, tables)
        findings += judge_difference(f"mean of {len(tables)} table rows", change, 0.5, 2.0)
    return findings


def tables_difference(points: Rows, tables: Sequence[str] = TABLES) -> Difference:
    """The difference of the mean over rows, paired by seed."""
    by_seed = zip(*(points[row].values() for row in tables), strict=True)
    return mean_difference([statistics.fmean(rows) for rows in by_seed])


def ratio_of(turns: Sequence[tuple[float, float]]) -> float:
    """The median of this tree's figure over the other's, turn by turn."""
    return statistics.median(here / there for here, there in turns)


def compare_speed(figures: Ratios) -> list[Finding]:
    """What pairs (here, there) of each figure say, of any unit."""
    findings = []
    for task in SPEED:
        if not any(name.split()[0] == task for name in figures):
            findings.append(Finding("missing", f"{task}: not measured"))
    for name, turns in figures.items():
        ratio = ratio_of(turns)
        limit = 1.6 if name.startswith("rounds") else 1.1
        text = f"{name}: {ratio:.2f} times the other tree's"
        if ratio > limit:
            findings.append(Finding("failure", text))
        elif ratio < 1 / limit:
            findings.append(Finding("better", text))
        if len(turns) < TURNS:
            findings.append(Finding("missing", f"{name}: {len(turns)} of {TURNS} turns"))
    return findings


def compare_modules(stored: Mapping[str, int], measured: Mapping[str, int]) -> list[Finding]:
    """What the numbers of loaded modules say beside the stored ones."""
    findings = []
    for name in MODULES:
        if name not in stored or name not in measured:
            where = "measured" if name in stored else "in the stored file"
            findings.append(Finding("missing", f"{name}: not {where}"))
        elif measured[name] != stored[name]:
            text = f"{name}: {measured[name]}, were {stored[name]}"
            worse = measured[name] > stored[name]
            findings.append(Finding("failure" if worse else "better", text))
    return findings


def verdict(findings: Sequence[Finding]) -> str:
    """All findings by kind, the gravest first; without any, "no difference"."""
    titles = {
        "failure": "FAILED",
        "missing": "INCOMPLETE",
        "worse": "worse beyond chance, within the rules",
        "better": "better",
    }
    lines = []
    for kind, title in titles.items():
        texts = [finding.text for finding in findings if finding.kind == kind]
        if texts:
            lines.append(f"{title} ({len(texts)}):")
            lines += [f"  {text}" for text in texts]
    return "\n".join(lines) or "no difference"


def start(job: Job, data: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a task in a session of its own, which can be ended as a whole."""
    one_thread = dict.fromkeys(THREADS, "1")
    environment = {**os.environ, **one_thread, "PYTHONPATH": str(job.tree / "src")}
    environment |= {"PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": ""}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a fresh tree would compile at every start
    words = [sys.executable, "-m", "benchmarks.gate_tasks", job.task, "--data", str(data)]
    with log.open("wb") as output:
        return subprocess.Popen(
            [*words, *job.options],
            cwd=job.tree,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def run_all(jobs: Sequence[Job], data: Path) -> dict[Job, dict[str, float]]:
    """The figures of jobs, of which two run at a time; of one that fails there are none."""
    figures: dict[Job, dict[str, float]] = {}
    running: dict[Job, tuple[subprocess.Popen[bytes], Path, float]] = {}
    waiting = list(jobs)
    with tempfile.TemporaryDirectory() as folder:
        try:
            while waiting or running:
                while waiting and len(running) < 2:
                    job = waiting.pop(0)
                    log = Path(folder) / str(len(waiting))
                    running[job] = (start(job, data, log), log, time.monotonic())
                for job, (process, log, started) in list(running.items()):
                    if process.poll() is None:
                        continue
                    del running[job]
                    lines = log.read_text(errors="replace").splitlines()
                    if process.returncode:
                        print(f"{job.task} failed in {job.tree}:", *lines[-8:], sep="\n  ")
                        continue
                    figures[job] = json.loads(lines[-1])
                    print(f"{job.task}: {time.monotonic() - started:.0f} s", flush=True)
                time.sleep(0.05)
        finally:
            for process, *_ in running.values():
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return figures


def measure_speed(here: Path, there: Path, data: Path) -> dict[str, list[tuple[float, float]]]:
    """Pairs (here, there) of each figure. Both trees run at once, and swap cores every turn."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("speed needs two cores", flush=True)
        return pairs
    with tempfile.TemporaryDirectory() as folder:
        work = {here: Path(folder) / "here", there: Path(folder) / "there"}
        for path in work.values():
            path.mkdir()
        options = {tree: ("--work", str(path)) for tree, path in work.items()}
        prepared = run_all([Job("prepare", tree, options[tree]) for tree in work], data)
        if len(prepared) < len(work):
            return pairs
        for turn in range(TURNS):
            print(f"turn {turn + 1} of {TURNS}", flush=True)
            for task in SPEED:
                jobs = [
                    Job(task, tree, (*options[tree], "--core", str(cores[(turn + at) % 2])))
                    for at, tree in enumerate(work)
                ]
                figures = run_all(jobs, data)
                if len(figures) < len(jobs):
                    continue
                for unit in figures[jobs[0]]:
                    pair = (figures[jobs[0]][unit], figures[jobs[1]][unit])
                    pairs.setdefault(f"{task} {unit}", []).append(pair)
    return dict(sorted(pairs.items()))


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """The files of a commit in a folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="naysay-gates-"))
    tree = folder / "tree"
    try:
        git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        if not (tree / "benchmarks" / "gate_tasks.py").is_file():
            sys.exit(f"{commit} has no benchmarks/gate_tasks.py to measure it by")
        yield tree
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        git("worktree", "prune")


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def origin() -> dict[str, Any]:
    """When, where and of what is measured."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    changes = " with changes" if git("status", "--porcelain", "--", "src") else ""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{next(iter(names), platform.machine())}, {os.cpu_count()} cores",
        "commit": git("rev-parse", "--short=10", "HEAD") + changes,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
    }


def show_rows(stored: Rows, measured: Rows) -> None:
    print(f"\n{'accuracy, %':<24}{'stored':>8}{'now':>8}  difference")
    points = {}
    for row, by_seed in measured.items():
        now = 100 * statistics.fmean(by_seed.values())
        if by_seed.keys() != stored.get(row, {}).keys():
            print(f"{row:<24}{'-':>8}{now:>8.2f}")
            continue
        points[row] = row_points(stored[row], by_seed)
        change = mean_difference(list(points[row].values()))
        before = 100 * statistics.fmean(stored[row].values())
        print(f"{row:<24}{before:>8.2f}{now:>8.2f}  {change}")
    if all(row in points for row in TABLES):
        print(f"{'mean of table rows':<40}  {tables_difference(points)}")


def show_speed(figures: Ratios) -> None:
    print(f"\n{'medians':<24}{'here':>9}{'there':>9}{'ratio':>8}")
    for name, turns in figures.items():
        here, there = (statistics.median(turn[at] for turn in turns) for at in (0, 1))
        print(f"{name:<24}{here:>9.3f}{there:>9.3f}{ratio_of(turns):>8.3f}")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, show, compare, and store where that is asked for or nothing is stored."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks gates",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--against", metavar="COMMIT")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", choices=("accuracy", "speed", "modules"))
    parser.add_argument("--data", type=Path, default=MNIST, help="MNIST's file")
    options = parser.parse_args(argv)
    if options.only == "speed" and not options.against:
        parser.error("--only speed needs --against COMMIT")
    parts = {options.only} if options.only else {"accuracy", "speed", "modules"}
    stored = json.loads(STORED.read_text()) if STORED.is_file() else {}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        other = stack.enter_context(worktree(options.against)) if options.against else None
        measured, speeds = measure(parts, options.data.resolve(), other)
    about = origin()
    if stored:
        before = stored["about"]
        print(f"\nall but speed beside gates.json of {before['commit']}, {before['date']}")
        if any(before[name] != about[name] for name in ("machine", "versions")):
            print("stored on another machine or by other versions: figures will not be equal")
    findings = compare(stored, measured)
    if speeds is not None:
        show_speed(speeds)
        findings += compare_speed(speeds)
    if stored or findings or options.only == "speed":
        print(f"\n{verdict(findings)}")
    else:
        print("\nnothing is stored to compare with")
    if options.write or not (stored or options.only):
        figures = {**stored, "about": about, **measured}
        STORED.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
        print(f"stored in {STORED}")
    return int(any(finding.kind in ("failure", "missing") for finding in findings))


def measure(
    parts: set[str], data: Path, other: Path | None
) -> tuple[dict[str, Any], dict[str, list[tuple[float, float]]] | None]:
    """What this tree has of each part; and speeds beside the other tree, where there is one."""
    measured: dict[str, Any] = {}
    speeds = None
    if "modules" in parts:
        counts = run_all([Job(name, ROOT) for name in MODULES], data)
        measured["modules"] = {job.task: figures["modules"] for job, figures in counts.items()}
    if "accuracy" in parts:
        rows = [row for row in ROWS if data.is_file() or row not in IMAGES]
        if len(rows) < len(ROWS):
            print(f"not measured: {', '.join(IMAGES)}, as there is no {data}")
        accuracies = run_all([Job(row, ROOT) for row in rows], data)
        by_task = {job.task: by_seed for job, by_seed in accuracies.items()}
        measured["accuracy"] = {row: by_task[row] for row in ROWS if row in by_task}
    if "speed" in parts:
        measured["peers"] = run_all([Job("peers", ROOT)], data).get(Job("peers", ROOT), {})
        if other is None:
            print("speed is compared only with --against COMMIT")
        else:
            speeds = measure_speed(ROOT, other, data)
    return measured, speeds


def compare(stored: Mapping[str, Any], measured: Mapping[str, Any]) -> list[Finding]:
    """Show each part beside what is stored; without that, only what is missing is found."""
    findings = []
    if "accuracy" in measured:
        before = stored.get("accuracy", {}) if stored else measured["accuracy"]
        show_rows(before, measured["accuracy"])
        findings += compare_rows(before, measured["accuracy"])
    for part in ("modules", "peers"):
        if part in measured:
            print(f"\n{part}, and as stored:")
            for name, value in measured[part].items():
                print(f"{name:<32}{value:>8}{stored.get(part, {}).get(name, '-'):>8}")
    if "modules" in measured:
        before = stored.get("modules", {}) if stored else measured["modules"]
        findings += compare_modules(before, measured["modules"])
    return findings


if __name__ == "__main__":
    sys.exit(main())
