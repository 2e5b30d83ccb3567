"""One run from its shards to its output, stage by stage: labels, rows, neighbours, weights, rounds, files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from naysay.augmentation.diagnostics import Report
from naysay.augmentation.sharded import gamma
from naysay.augmentation.sharded.blocks import File, cut, rows_of_a_block
from naysay.augmentation.sharded.crew import Crew
from naysay.augmentation.sharded.output import merge, write_shard
from naysay.augmentation.sharded.part import Recipe
from naysay.augmentation.sharded.prepare import Naming, Settle, count_labels, name_classes, prepare
from naysay.augmentation.sharded.rounds import Rounds, share_labels
from naysay.augmentation.sharded.search import Search, find_neighbours, group
from naysay.augmentation.sharded.settings import Settings
from naysay.augmentation.sharded.source import Shard
from naysay.augmentation.sharded.work import Work
from naysay.neighbors.rows import check_k


@dataclass(frozen=True)
class Account:
    """What was done: the report of `augment_report`, the classes, and what it cost; it is also in augment.json beside
    the shards.

    search: method, recall and, where there are lists, nlist and nprobe. seconds: of each stage. peak_bytes: of each
    worker process.
    skipped: how many jobs of a stage an earlier, interrupted run had done.
    label_bytes: of one round, which every machine reads, and of which it gets all but its own part from the others.
    """

    report: Report
    classes: tuple[str, ...]
    rows: int
    width: int
    shards: tuple[str, ...]
    settings: dict[str, Any]
    search: dict[str, Any]
    workers: int
    threads: int
    label_bytes: int
    seconds: dict[str, float]
    round_seconds: tuple[float, ...]
    peak_bytes: dict[str, int]
    skipped: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """All of it by name, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Run:
    """A run's input, its folders, and its workers, of `threads` CPUs each."""

    shards: list[Shard]
    settings: Settings
    work: Work
    out: Path
    crew: Crew
    ray: Any
    threads: int
    checkpoint_every: int

    @property
    def n(self) -> int:
        """The number of all rows."""
        return self.shards[-1].first + self.shards[-1].rows


def flow(run: Run, settle: Settle | None) -> Account:
    """Do what is not done yet, write the output, and say what was done."""
    naming = _name_classes(run, settle)
    rows, comp = _prepare(run, naming)
    search: dict[str, Any] = {"method": None, "recall": None}
    k, used, shared = 0, None, Rounds(comp, 0, 0.0, [], np.zeros(1), None)
    if run.settings.total:
        k = run.settings.neighbours(run.n, len(naming.names))
        graph, search = _find_graph(run, rows, k)
        used = _gamma(run, graph, k)
        recipe = Recipe(run.n, k, len(naming.names), run.settings.alpha, used, tuple(graph), tuple(comp), 0, run.n)
        rounds, tol = run.settings.total, run.settings.tol
        shared = share_labels(
            run.ray, run.crew, run.work, recipe, rounds=rounds, tol=tol, checkpoint_every=run.checkpoint_every
        )
        if used is not None:
            gamma.warn_unless_fits(shared.nearest, shared.effective, k, used)
    write = partial(write_shard, out=run.out, comp=comp, shared=shared.files, classes=naming.names)
    described = merge(run.crew.each(write, run.shards, "writing shards"))
    effective = float(torch.from_numpy(shared.effective).median())
    return Account(
        report=Report(
            run.settings.scheme.lower(),
            k,
            effective,
            run.settings.alpha,
            used,
            shared.done,
            shared.change,
            search["recall"],
            described,
        ),
        classes=naming.names,
        rows=run.n,
        width=run.shards[0].width,
        shards=tuple(shard.path for shard in run.shards),
        settings=run.settings.as_dict(),
        search=search,
        workers=len(run.crew.workers),
        threads=run.threads,
        label_bytes=4 * run.n * len(naming.names),
        seconds={stage: round(taken, 3) for stage, taken in run.crew.seconds.items()},
        round_seconds=tuple(round(taken, 4) for taken in shared.seconds),
        peak_bytes=run.crew.peaks,
        skipped=run.crew.skipped,
    )


def _name_classes(run: Run, settle: Settle | None) -> Naming:
    kept = run.work.read("classes.json")
    if kept is None:
        counted = run.crew.each(count_labels, run.shards, "reading labels")
        naming = name_classes(counted, run.settings.classes, settle, run.settings.n_classes)
        kept = {"names": naming.names, "number": dict(naming.number)}
        run.work.write("classes.json", kept)
    return Naming(tuple(kept["names"]), kept["number"])


def _prepare(run: Run, naming: Naming) -> tuple[list[File], list[File]]:
    """See that every shard's rows and labels can be mapped: the files of both."""
    work, shards = run.work, run.shards
    run.crew.finish(
        partial(_prepare_one, work, shards, run.settings, naming),
        list(map(work.comp, range(len(shards)))),
        "checking shards",
    )
    rows = [str(work.rows(at)) if work.rows(at).exists() else shard.path for at, shard in enumerate(shards)]
    return (
        [(path, shard.first, shard.rows) for path, shard in zip(rows, shards, strict=True)],
        [(str(work.comp(at)), shard.first, shard.rows) for at, shard in enumerate(shards)],
    )


def _prepare_one(work: Work, shards: Sequence[Shard], settings: Settings, naming: Naming, at: int) -> None:
    prepare(shards[at], work.rows(at), work.comp(at), settings.metric, naming, settings.contradictions)


def _find_graph(run: Run, rows: Sequence[File], k: int) -> tuple[list[File], dict[str, Any]]:
    """The files of the graph, and how it was found."""
    check_k(k, run.n - 1, f"the number of other rows of {run.n}")
    settings = run.settings
    width = run.shards[0].width
    blocks = tuple(cut(rows, width, settings.block_rows))
    groups = group(run.n, rows_of_a_block(width, settings.block_rows))
    search = Search(run.work, blocks, groups, None, k, settings.metric)
    about = find_neighbours(
        run.crew, search, method=settings.search_method(run.n), nlist=settings.nlist, nprobe=settings.nprobe
    )
    return [(str(run.work.graph(at)), block.first, block.rows) for at, block in enumerate(blocks)], about


def _gamma(run: Run, graph: Sequence[File], k: int) -> float | None:
    """The gamma of the weights, None where they go by rank."""
    if run.settings.by_rank:
        return None
    if run.settings.gamma != "auto":
        return float(run.settings.gamma)
    return gamma.auto_gamma(run.crew.each(gamma.read_spread, [path for path, _, _ in graph], "choosing gamma"), k)
