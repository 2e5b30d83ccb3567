"""Label sharing past one machine: features in shards that no machine could hold, from files to files, on Ray.

It is Algorithm 1 as `naysay.augment` runs it, in the same stages: labels, rows, neighbours, weights, rounds. With the
exact method the neighbours are those of one machine bit for bit, and so are the labels of its numba backend. No process
ever holds more features than a few blocks; what a worker does hold of all n rows is the labels of one round, n K
numbers. A run that is killed and started again goes on where it was. See docs/CLUSTER.md.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from naysay import shares, transition
from naysay.augmentation import Report, Sharing
from naysay.augmentation.diagnostics import merge
from naysay.augmentation.propagation import divide_rows
from naysay.augmentation.schemes import BY_ANGLE, check_whole
from naysay.augmentation.weights import gamma_of, warn_unless_fits
from naysay.cluster.connection import Crew, connect, hired
from naysay.cluster.folders import RESULT, File, Paths, Shard, Work, find_shards, open_work
from naysay.cluster.prepare import NameTexts, Naming, count_labels, cut, find_centre, name_classes, prepare, write_shard
from naysay.cluster.rounds import Recipe, Rounds, share_labels
from naysay.cluster.search import Search, find_neighbors, group
from naysay.errors import InputError, unknown
from naysay.labels import Contradictions
from naysay.neighbors import EXACT_UP_TO, Graph
from naysay.neighbors.rows import MAX_ROWS, check_k
from naysay.shares import Evidence

PAPER = Sharing()
BLOCK_BYTES = 2**26  # of features in a block, unless the number of rows is given


@dataclass(frozen=True)
class Settings:
    """How labels are shared, and what else the result depends on or an unfinished run must not change; checked."""

    sharing: Sharing = PAPER
    contradictions: Contradictions = "raise"
    n_classes: int | None = None
    classes: tuple[str, ...] | None = None
    nlist: int | None = None
    nprobe: int | None = None
    block_rows: int | None = None

    def __post_init__(self) -> None:
        if self.contradictions not in get_args(Contradictions):
            raise unknown("contradictions", self.contradictions, get_args(Contradictions))
        check_whole(nlist=self.nlist, nprobe=self.nprobe, block_rows=self.block_rows)

    def as_dict(self) -> dict[str, Any]:
        """All settings by name, those of sharing among them, ready for JSON."""
        others = asdict(replace(self, sharing=PAPER))
        del others["sharing"]
        return {**self.sharing.as_dict(), **others}


@dataclass(frozen=True)
class Account:
    """What was done: the report of `augment_report`, the classes, and what it cost; also in augment.json.

    search: method, recall and, where there are lists, nlist and nprobe. seconds: of each stage. peak_bytes: of each
    worker process. skipped: how many jobs of a stage an earlier, interrupted run had done.
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
        return asdict(self) | {"report": self.report.as_dict()}


def augment_shards(
    shards: Paths,
    out: str | PathLike[str],
    sharing: Sharing = PAPER,
    *,
    labels: Paths | None = None,
    features: str | None = None,
    label: Sequence[str] = (),
    id: str | None = None,
    classes: Sequence[str] | None = None,
    name_texts: NameTexts | None = None,
    n_classes: int | None = None,
    contradictions: Contradictions = "raise",
    nlist: int | None = None,
    nprobe: int | None = None,
    block_rows: int | None = None,
    checkpoint_every: int = 10,
    address: str | None = None,
    workers: int | None = None,
    threads: int = 1,
    force: bool = False,
) -> Account:
    """Share the labels of all shards' rows and write the folder `out`: a Parquet file for each shard, and augment.json.

    shards, labels, features, label, id: see `folders.find_shards`. Labels are class numbers (n_i,) or (n_i, m), -1 for
    none, or `comp` (n_i, K); in Parquet columns numbers, names, or lists of either. Without id, rows are numbered.
    sharing: as for one machine; its method "approximate" is here faiss inverted lists, and "auto" is exact up to
    `neighbors.EXACT_UP_TO` rows. nlist, nprobe: how many lists there are and are looked into, else by rule (`search`).
    classes: their names in order; n_classes: K, for numbers; name_texts: from how often texts were given to a `Naming`.
    block_rows: that a worker searches at a time, else 64 MiB. checkpoint_every: rounds between two checkpoints.
    address: the Ray cluster to join; None starts one here. workers: jobs at a time, of `threads` CPUs each, else as
    many as fit. force: replace a finished result, and begin anew where an unfinished run had other settings.
    """
    if sharing.chooses or sharing.whiten is not None:
        need = "settings of sharing over shards must be numbers, and features are not whitened"
        raise InputError(f"{need}; got {sharing!r}. Choose them on a part that one machine holds.")
    named = None if classes is None else tuple(classes)
    settings = Settings(sharing, contradictions, n_classes, named, nlist, nprobe, block_rows)
    check_whole(checkpoint_every=checkpoint_every, workers=workers, threads=threads)
    found, out = find_shards(shards, labels, features=features, label=label, id=id), Path(out).absolute()
    if (n := found[-1].first + found[-1].rows) > MAX_ROWS:
        raise InputError(f"the shards may have at most {MAX_ROWS} rows in all; got {n}.")
    work = open_work(out, found, settings.as_dict(), force=force)
    with connect(address, workers=workers and workers * threads) as ray:
        fits = max(1, int(ray.cluster_resources().get("CPU", 1)) // threads)
        with hired(ray, min(workers or fits, fits), threads) as crew:
            account = flow(Run(found, settings, work, crew, ray, threads, checkpoint_every), name_texts)
    Work(out).write(RESULT, account.as_dict())
    shutil.rmtree(work.folder)
    return account


@dataclass(frozen=True)
class Run:
    """A run's input, its folders, and its workers, of `threads` CPUs each."""

    shards: list[Shard]
    settings: Settings
    work: Work
    crew: Crew
    ray: Any
    threads: int
    checkpoint_every: int

    @property
    def n(self) -> int:
        return self.shards[-1].first + self.shards[-1].rows


def flow(run: Run, name_texts: NameTexts | None) -> Account:
    """Do what is not done yet, write the output, and say what was done."""
    sharing, naming = run.settings.sharing, _name_classes(run, name_texts)
    shares.read(sharing.class_shares, len(naming.names))  # before the work, not after it
    rows, comp = _prepare(run, naming)
    search: dict[str, Any] = {"method": None, "recall": None}
    k, gamma, n_classes, alpha = 0, None, len(naming.names), float(sharing.alpha)
    shared = Rounds(comp, 0, 0.0, [], np.zeros(1), None)
    if sharing.total:
        k = sharing.neighbors(run.n, n_classes)
        graph, search = _find_graph(run, rows, k)
        gamma = _gamma(run, graph, k) if sharing.row.uses_gamma else None
        files = tuple(graph), tuple(comp)
        recipe = Recipe(run.n, k, n_classes, sharing.scheme, alpha, gamma, *files, 0, run.n)
        shared = share_labels(run.ray, run.crew, run.work, recipe, sharing, run.checkpoint_every)
        if gamma is not None and sharing.gamma is not None:
            warn_unless_fits(gamma, torch.from_numpy(shared.spread), torch.from_numpy(shared.effective), k)
    evidence = _find_evidence(run, comp, shared.files, n_classes) if sharing.corrects else None
    to = partial(write_shard, out=run.work.folder.parent, comp=comp, shared=shared.files, classes=naming.names)
    written = run.crew.each(partial(to, evidence=evidence), run.shards, "writing shards")
    described = merge([description for description, _ in written])
    turned = None if evidence is None else sum(turned for _, turned in written) / run.n
    heard = float(torch.from_numpy(shared.effective).median())
    became = shared.done, shared.change, search["recall"], described, turned
    return Account(
        report=Report(sharing.scheme, k, heard, alpha, gamma, *became),
        classes=naming.names,
        rows=run.n,
        width=run.shards[0].width,
        shards=tuple(shard.path for shard in run.shards),
        settings=run.settings.as_dict(),
        search=search,
        workers=len(run.crew.workers),
        threads=run.threads,
        label_bytes=4 * run.n * n_classes,
        seconds={stage: round(taken, 3) for stage, taken in run.crew.seconds.items()},
        round_seconds=tuple(round(taken, 4) for taken in shared.seconds),
        peak_bytes=run.crew.peaks,
        skipped=run.crew.skipped,
    )


def _name_classes(run: Run, name_texts: NameTexts | None) -> Naming:
    kept = run.work.read("classes.json")
    if kept is None:
        counted = run.crew.each(count_labels, run.shards, "reading labels")
        naming = name_classes(counted, run.settings.classes, name_texts, run.settings.n_classes)
        kept = {"names": naming.names, "number": dict(naming.number)}
        run.work.write("classes.json", kept)
    return Naming(tuple(kept["names"]), kept["number"])


def _prepare(run: Run, naming: Naming) -> tuple[list[File], list[File]]:
    """See that every shard's rows and labels can be mapped: the files of both."""
    work, shards = run.work, run.shards
    comp = [work.comp(at) for at in range(len(shards))]
    centre = find_centre(shards, run.settings.sharing.metric)
    run.crew.finish(partial(_prepare_one, work, shards, run.settings, naming, centre), comp, "checking shards")
    rows = [work.rows(at) if work.rows(at).exists() else shard.path for at, shard in enumerate(shards)]
    return list(map(Shard.file, shards, rows)), list(map(Shard.file, shards, comp))


def _prepare_one(work: Work, shards: Sequence[Shard], settings: Settings, naming: Naming, centre: Any, at: int) -> None:
    about = settings.sharing.metric, naming, settings.contradictions, centre
    prepare(shards[at], work.rows(at), work.comp(at), *about)


def _find_graph(run: Run, rows: Sequence[File], k: int) -> tuple[list[File], dict[str, Any]]:
    """The files of the graph, and how it was found."""
    check_k(k, run.n - 1, f"the number of other rows of {run.n}")
    settings, method = run.settings, run.settings.sharing.method
    size = settings.block_rows or max(1024, BLOCK_BYTES // (4 * run.shards[0].width))
    blocks = cut(rows, size)
    search = Search(run.work, blocks, group(run.n, size), None, k, settings.sharing.metric)
    if method == "auto":
        method = "exact" if run.n <= EXACT_UP_TO else "approximate"
    about = find_neighbors(run.crew, search, method=method, nlist=settings.nlist, nprobe=settings.nprobe)
    return [(str(run.work.graph(at)), block.first, block.rows) for at, block in enumerate(blocks)], about


def _find_evidence(run: Run, comp: Sequence[File], shared: Sequence[File], n_classes: int) -> Evidence:
    """How labels are corrected, found over all files as `shares.find` finds it in memory; no process holds them all."""
    sharing, doing = run.settings.sharing, "finding class shares"
    totals = run.crew.each(count_named, comp, doing)
    T = None if sharing.transition is None else transition.validate(sharing.transition, n_classes)
    evidence = Evidence(sum(named for named, _ in totals) / max(1, sum(rows for _, rows in totals)), T)
    wanted = shares.read(sharing.class_shares, n_classes)
    if wanted is None:
        return evidence

    def look(offsets: torch.Tensor, double: bool) -> tuple[float, torch.Tensor, torch.Tensor, int]:
        parts = run.crew.each(partial(read_moments, replace(evidence, offsets=offsets), double), shared, doing)
        value, mass, square, rows = (sum(part[at] for part in parts) for at in range(4))
        return value, mass, square, rows

    return shares.with_offsets(evidence, wanted, look)


def count_named(file: File) -> tuple[torch.Tensor, int]:
    """How often the labels in a file name each class (K,), and how many of its rows have labels."""
    given = torch.from_numpy(np.load(file[0]))
    return given.sum(0, dtype=torch.float64), int((given.sum(1) > 0).sum())


def read_moments(evidence: Evidence, double: bool, file: File) -> tuple[float, torch.Tensor, torch.Tensor, int]:
    """What `shares.solve` needs to know of the shared labels in a file."""
    return shares.moments(evidence, divide_rows(torch.from_numpy(np.load(file[0]))), double)


def _gamma(run: Run, graph: Sequence[File], k: int) -> float:
    """The gamma of the weights, as `Sharing.gamma_for` has it: read off the distances from one number of each row."""
    asked = run.settings.sharing.gamma
    if asked is None and run.settings.sharing.metric == "cosine":
        return BY_ANGLE
    if asked not in (None, "auto"):
        return float(asked)
    spreads = run.crew.each(read_spread, [path for path, _, _ in graph], "choosing gamma")
    return gamma_of(torch.from_numpy(np.concatenate(spreads)), k)


def read_spread(path: str) -> Any:
    """The squared distance of a block's rows (b,) to their last neighbour less that to their first."""
    distances = Graph.load(path).distances
    return (distances[:, -1] - distances[:, 0]).numpy()
