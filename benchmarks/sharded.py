"""Augmentation over shards on Ray against one process on the same rows: time, memory, recall, and what comes out.

    python benchmarks/sharded.py                     2,000,000 x 64 in 8 shards, 64 neighbours, 100 rounds, two workers
    python benchmarks/sharded.py --rows 100000       a quick look

Rows are those of benchmarks/neighbors.py (`make_rows`); the true class is which of ten random directions a row points
along most, and each row has one complementary label drawn evenly from the others. Each way runs in a process of its
own. Memory is the proportional set size (every shared page counted once) of the process and all its descendants, Ray's
own and its object store included, looked at every second. One line of JSON a way goes to
`benchmarks/results/sharded.jsonl`.
"""

import argparse
import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import RESULTS, record
from neighbors import make_rows

from naysay.seeds import stream

K = 10
KINDS = ("Pss", "Pss_Anon", "Pss_File", "Pss_Shmem")


def make_shards(folder: Path, n: int, d: int, shards: int) -> None:
    """Rows and labels in shards of unequal size, and the true classes in one file."""
    rows = make_rows(n, d)
    y = np.argmax(
        (rows - rows[:4096].mean(0)) @ stream(0, "benchmark classes").standard_normal((d, K), dtype=np.float32), 1
    )
    comp = (y + stream(0, "benchmark labels").integers(1, K, n)) % K
    edges = np.cumsum([0, *np.linspace(0.5, 1.5, shards)])
    edges = (edges / edges[-1] * n).round().astype(int)
    for kind, array in (("rows", rows), ("labels", comp)):
        (folder / kind).mkdir()
        for at in range(shards):
            np.save(folder / kind / f"part-{at:03}.npy", array[edges[at] : edges[at + 1]])
    np.save(folder / "classes.npy", y)


def run_sharded(folder: Path, k: int, rounds: int, workers: int, method: str) -> dict[str, Any]:
    """What the sharded way says of itself, and how often the class that is named least is the true one."""
    import pyarrow.parquet as pq

    from naysay.augmentation import Sharing
    from naysay.cluster import augment_shards

    start = time.perf_counter()
    sharing = Sharing(n_neighbors=k, rounds=rounds, gamma="auto", method=method)
    options = {"labels": folder / "labels", "n_classes": K, "workers": workers}
    account = augment_shards(folder / "rows", folder / "out", sharing, **options)
    taken = time.perf_counter() - start
    parts = [pq.read_table(path).drop(["id"]) for path in sorted((folder / "out").glob("*.parquet"))]
    least = np.concatenate([np.stack([column.to_numpy() for column in part.columns], 1).argmin(1) for part in parts])
    kept = account.as_dict()
    rounds_s = sorted(kept.pop("round_seconds"))
    return {
        "wall_s": round(taken, 1),
        "recall": account.search["recall"],
        "search": account.search,
        "seconds": account.seconds,
        "round_median_s": rounds_s[len(rounds_s) // 2],
        "label_bytes_per_round": account.label_bytes,
        "worker_peak_gib": [round(peak / 2**30, 2) for peak in account.peak_bytes.values()],
        "least_named_is_true": _share_true(folder, least),
    }


def run_single(folder: Path, k: int, rounds: int, _: int, method: str) -> dict[str, Any]:
    """The same by `naysay.augment` on all rows in one process."""
    from naysay import neighbors
    from naysay.augmentation import augment_report

    rows = np.concatenate([np.load(path) for path in sorted((folder / "rows").iterdir())])
    comp = np.concatenate([np.load(path) for path in sorted((folder / "labels").iterdir())])
    start = time.perf_counter()
    graph = neighbors.build(rows, k, method=method)
    found = time.perf_counter()
    Z, report = augment_report(graph, comp, n_neighbors=k, rounds=rounds, gamma="auto", n_classes=K)
    done = time.perf_counter()
    return {
        "wall_s": round(done - start, 1),
        "recall": report.recall,
        "seconds": {"finding neighbours": round(found - start, 1), "sharing labels": round(done - found, 1)},
        "least_named_is_true": _share_true(folder, Z.argmin(1)),
    }


def _share_true(folder: Path, least: np.ndarray) -> float:
    return round(float((least == np.load(folder / "classes.npy")).mean()), 4)


def watch(pid: int, ended: threading.Event, peaks: dict[str, int], ticks: dict[int, int]) -> None:
    """The most memory that the process and its descendants held together, by kind, until `ended`; and each CPU time."""
    while not ended.wait(1.0):
        total = dict.fromkeys(KINDS, 0)
        for process in descendants(pid):
            try:
                lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                ticks[process] = sum(map(int, fields[11:13]))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
            for line in lines:
                name, _, rest = line.partition(":")
                if name in total:
                    total[name] += int(rest.split()[0]) * 1024
        for name, size in total.items():
            peaks[name] = max(peaks.get(name, 0), size)


def descendants(pid: int) -> list[int]:
    """The process and all that it started, directly or not."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _work(run: Any, arguments: tuple[Any, ...], results: Any) -> None:
    results.put(run(*arguments))


def measured(run: Any, *arguments: Any) -> dict[str, Any]:
    """What `run` gives, in a process of its own, with the most memory of it and its descendants."""
    context = multiprocessing.get_context("spawn")
    results, ended, peaks, ticks = context.SimpleQueue(), threading.Event(), dict[str, int](), dict[int, int]()
    load = os.getloadavg()[0]
    process = context.Process(target=_work, args=(run, arguments, results))
    process.start()
    watcher = threading.Thread(target=watch, args=(process.pid, ended, peaks, ticks))
    watcher.start()
    process.join()
    ended.set()
    watcher.join()
    if process.exitcode:
        raise SystemExit(f"{run.__name__} failed: see above.")
    return {
        **results.get(),
        "cpu_s": round(sum(ticks.values()) / os.sysconf("SC_CLK_TCK"), 1),
        "load_before": round(load, 2),
        "peak_gib": {name: round(size / 2**30, 2) for name, size in peaks.items()},
    }


def main(argv: list[str] | None = None) -> None:
    """Run both ways, print, and append to the results; `argv` is the command line unless given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--dims", type=int, default=64)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--neighbors", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--method", default="approximate")
    parser.add_argument("--ways", default="sharded,single")
    parser.add_argument("--out", type=Path, default=RESULTS / "sharded.jsonl")
    chosen = parser.parse_args(argv)
    ways = {"sharded": run_sharded, "single": run_single}
    folder = Path(tempfile.mkdtemp(prefix="naysay-sharded-"))
    try:
        make_shards(folder, chosen.rows, chosen.dims, chosen.shards)
        sizes = f"{chosen.rows} x {chosen.dims}, k={chosen.neighbors}, K={K}"
        case = f"augmentation, {sizes}, {chosen.rounds} rounds, {chosen.method}"
        for way in chosen.ways.split(","):
            found = measured(ways[way], folder, chosen.neighbors, chosen.rounds, chosen.workers, chosen.method)
            print(", ".join(f"{name} {value}" for name, value in {"who": way, **found}.items()), flush=True)
            lines, packages = [{"case": case, "who": way, **found}], ("torch", "ray", "faiss-cpu")
            record(chosen.out, "sharded", "synthetic, see make_rows", packages, lines)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
