"""Augmentation past one machine: features in shards that no machine could hold, on Ray (docs/CLUSTER.md).

    from naysay.augmentation.sharded import augment_shards
    account = augment_shards("embeddings/", "shared/", labels="labels/", metric="cosine", address="auto")

It is Algorithm 1 as `naysay.augment` runs it, in the same stages: neighbours, weights, rounds. With the exact method
the neighbours are those of one machine bit for bit, and so are the labels of its numba backend. No process ever holds
more features than a few blocks; what a worker does hold of all n rows is the labels of one round, n K numbers. A run
that is killed and started again goes on where it was.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from naysay.augmentation.sharded.crew import hired
from naysay.augmentation.sharded.flow import Account, Run, flow
from naysay.augmentation.sharded.prepare import Settle
from naysay.augmentation.sharded.settings import Settings, check_whole
from naysay.augmentation.sharded.source import Paths, find_shards
from naysay.augmentation.sharded.work import RESULT, Work, close_work, open_work
from naysay.engine.cluster import connect
from naysay.errors import InputError
from naysay.labels import Contradictions
from naysay.neighbors.rows import MAX_ROWS

__all__ = ["Account", "augment_shards"]


def augment_shards(
    shards: Paths,
    out: str | PathLike[str],
    *,
    labels: Paths | None = None,
    features: str | None = None,
    label: Sequence[str] = (),
    id: str | None = None,
    classes: Sequence[str] | None = None,
    settle: Settle | None = None,
    n_classes: int | None = None,
    contradictions: Contradictions = "raise",
    scheme: str = "dms",
    n_neighbors: int | None = 64,
    alpha: float = 0.1,
    gamma: float | str = 1.0,
    rounds: int | None = None,
    method: str = "auto",
    metric: str = "euclidean",
    tol: float | None = None,
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

    shards, labels, features, label, id: see `source.find_shards`. Labels are class numbers (n_i,) or (n_i, m), -1 for
    none, or `comp` (n_i, K); in Parquet columns numbers, names, or lists of either. Without an id rows are numbered
    from 0 through all shards.
    classes: their names in order; n_classes: K, for numbers; settle: a function from how often each text was given to
    names and numbers. scheme, n_neighbors, alpha, gamma, rounds, tol, metric: as in `naysay.augment`; n_neighbors None
    is `schemes.neighbours_for`.
    method: "exact", "approximate" (faiss inverted lists), or "auto", which is exact up to `neighbors.EXACT_UP_TO` rows.
    nlist, nprobe: how many lists there are and how many are looked into (`lists` has the rule that chooses them).
    block_rows: rows that a worker searches at a time, else as many as are 64 MiB. checkpoint_every: rounds between two
    checkpoints.
    address: the Ray cluster to join; None starts one here. workers: jobs at a time, of `threads` CPUs each; else as
    many as fit.
    force: replace a finished result, and begin anew where an unfinished run had other settings.
    """
    settings = Settings(
        scheme=scheme,
        n_neighbors=n_neighbors,
        alpha=alpha,
        gamma=gamma,
        rounds=rounds,
        method=method,
        metric=metric,
        tol=tol,
        contradictions=contradictions,
        n_classes=n_classes,
        classes=None if classes is None else tuple(classes),
        nlist=nlist,
        nprobe=nprobe,
        block_rows=block_rows,
    )
    check_whole(checkpoint_every=checkpoint_every, workers=workers, threads=threads)
    found, out = find_shards(shards, labels, features=features, label=label, id=id), Path(out).absolute()
    if (n := found[-1].first + found[-1].rows) > MAX_ROWS:
        raise InputError(f"the shards may have at most {MAX_ROWS} rows in all; got {n}.")
    work = open_work(out, found, settings.as_dict(), force=force)
    with connect(address, workers=workers and workers * threads) as ray:
        fits = max(1, int(ray.cluster_resources().get("CPU", 1)) // threads)
        with hired(ray, min(workers or fits, fits), threads) as crew:
            account = flow(Run(found, settings, work, out, crew, ray, threads, checkpoint_every), settle)
    Work(out).write(RESULT, account.as_dict())
    close_work(work)
    return account
