"""The result: for every shard a Parquet file of its name, with an id and for every class not_CLASS, as `naysay augment`
writes.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from naysay.augmentation.diagnostics import Description, describe
from naysay.augmentation.propagation import divide_rows
from naysay.augmentation.sharded.blocks import File, read_run
from naysay.augmentation.sharded.prepare import PART
from naysay.augmentation.sharded.source import Shard
from naysay.datasets.columns import read_blocks
from naysay.files import replacing


def write_shard(
    shard: Shard, out: Path, comp: Sequence[File], shared: Sequence[File], classes: Sequence[str]
) -> Description:
    """Write the shard's labels, rows divided by their sums, to the folder `out`; what became of those it had."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    told, start = [], shard.first
    with replacing(out / f"{shard.stem}.parquet") as unfinished:
        schema = pa.schema([("id", pa.string()), *((f"not_{name}", pa.float32()) for name in classes)])
        with pq.ParquetWriter(unfinished, schema) as writer:
            for ids in _ids(shard):
                stop = start + len(ids)
                Z = divide_rows(torch.from_numpy(read_run(shared, start, stop)))
                told.append(describe(read_run(comp, start, stop), Z))
                writer.write_table(pa.table([pa.array(ids), *Z.numpy().T], schema=schema))
                start = stop
    return merge(told)


def merge(told: Sequence[Description]) -> Description:
    """One description of all rows from those of some rows each."""

    def mean(name: str, of: Sequence[int]) -> float:
        terms = [getattr(one, name) * count for one, count in zip(told, of, strict=True) if count]
        return sum(terms) / sum(of) if sum(of) else math.nan

    had, has = [one.rows - one.unlabelled for one in told], [one.rows - one.unreached for one in told]
    return Description(
        rows=sum(one.rows for one in told),
        classes=told[0].classes,
        unlabelled=sum(one.unlabelled for one in told),
        unreached=sum(one.unreached for one in told),
        entropy_before=mean("entropy_before", had),
        entropy_after=mean("entropy_after", has),
        moved_mean=mean("moved_mean", had),  # alpha is above 0: a row that had labels has some
        moved_most=max((one.moved_most for one in told if not math.isnan(one.moved_most)), default=math.nan),
    )


def _ids(shard: Shard) -> Iterator[Any]:
    """The ids of the shard's rows, some at a time: its id column, or the row numbers in the whole."""
    if shard.id is not None:
        for _, texts, _ in read_blocks(Path(shard.path), [shard.id], [], lists=False):
            yield texts[shard.id]
        return
    for start in range(0, shard.rows, PART):
        yield np.arange(shard.first + start, shard.first + min(start + PART, shard.rows)).astype(np.str_).astype(object)
