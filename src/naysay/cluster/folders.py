"""The folders of a run: the work folder, in which what is finished stays finished, and the result.

The work folder lies in the output folder as `.work` until all is done, so that a run that was killed goes on where it
was. Every file in it is whole from the moment it has its name; a stage skips what is there. The settings and the shards
(name, size, time of change) are written down first: another run may not go on with this one's files. All workers must
see the folder, and the shards, under the same path: on several machines that is a shared file system.

The result is, for every shard, a Parquet file of its name, with an id and not_CLASS for every class, as `naysay
augment` writes.
"""

import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import stat
from pathlib import Path
from typing import Any

import numpy as np
import torch

from naysay import files
from naysay.augmentation.diagnostics import Description, describe
from naysay.augmentation.propagation import divide_rows
from naysay.cluster.prepare import PART, File, read_run
from naysay.cluster.source import Shard
from naysay.datasets.columns import read_blocks
from naysay.errors import InputError

RESULT = "augment.json"


@dataclass(frozen=True)
class Work:
    """The paths of a run's intermediate files."""

    folder: Path

    def rows(self, shard: int) -> Path:
        """A shard's rows as float32, where the shard itself will not do."""
        return self.folder / "rows" / f"{shard}.npy"

    def comp(self, shard: int) -> Path:
        """A shard's labels; when they are there, the shard has been looked at."""
        return self.folder / "comp" / f"{shard}.npy"

    def index(self, group: int) -> Path:
        """The rows of a group of blocks in lists."""
        return self.folder / "index" / f"{group}.faiss"

    def graph(self, block: int) -> Path:
        """A block's neighbours."""
        return self.folder / "graph" / f"{block}.safetensors"

    def labels(self, done: int, part: int) -> Path:
        """The labels of a part of the rows after so many rounds."""
        return self.folder / "labels" / f"{done}" / f"{part}.npy"

    def named(self, name: str) -> Path:
        """Anything of which there is one."""
        return self.folder / name

    def read(self, name: str) -> Any:
        """The JSON of that name, None where there is none."""
        path = self.named(name)
        return json.loads(path.read_text()) if path.exists() else None

    def write(self, name: str, content: Any) -> None:
        """Keep `content` as the JSON of that name."""
        files.replace(self.named(name), json.dumps(content, indent=1).encode())


def open_work(out: Path, shards: Sequence[Shard], settings: Mapping[str, Any], *, force: bool) -> Work:
    """The work folder of this run in `out`: new, or as an interrupted run with the same shards and settings left it."""
    work = Work(out / ".work")
    asked = {"settings": dict(settings), "shards": [asdict(shard) | _version(shard) for shard in shards]}
    asked = json.loads(json.dumps(asked))  # as it will be read again
    finished, before = (out / RESULT).exists(), work.read("run.json")
    if finished and not force:
        raise InputError(f"{out} holds a finished result. Choose another folder, or pass force=True to replace it.")
    if before is not None and before != asked:
        if not force:
            raise InputError(
                f"{out} holds an unfinished run with other {_difference(before, asked)}. Run it as it was to go on, "
                "choose another folder, or pass force=True to begin anew."
            )
        shutil.rmtree(work.folder)
    elif before is None and out.exists() and any(out.iterdir()) and not finished:
        raise InputError(f"{out} holds other files. Choose a new or empty folder.")
    if work.read("run.json") is None:
        work.write("run.json", asked)
    return work


def _version(shard: Shard) -> dict[str, list[int]]:
    seen = [stat(path) for path in (shard.path, shard.labels) if path is not None]
    return {"bytes": [file.st_size for file in seen], "changed_ns": [file.st_mtime_ns for file in seen]}


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if before.get("shards") != now["shards"]:
        return "shards"
    old, new = before["settings"], now["settings"]
    return f"settings ({', '.join(sorted(name for name in {*old, *new} if old.get(name) != new.get(name)))})"


def write_shard(
    shard: Shard, out: Path, comp: Sequence[File], shared: Sequence[File], classes: Sequence[str]
) -> Description:
    """Write the shard's labels, rows divided by their sums, to the folder `out`; what became of those it had."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    told, start = [], shard.first
    with files.replacing(out / f"{shard.stem}.parquet") as unfinished:
        schema = pa.schema([("id", pa.string()), *((f"not_{name}", pa.float32()) for name in classes)])
        with pq.ParquetWriter(unfinished, schema) as writer:
            for ids in _ids(shard):
                stop = start + len(ids)
                Z = divide_rows(torch.from_numpy(read_run(shared, start, stop)))
                told.append(describe(read_run(comp, start, stop), Z))
                writer.write_table(pa.table([pa.array(ids), *Z.numpy().T], schema=schema))
                start = stop
    return merge(told)


def _ids(shard: Shard) -> Iterator[Any]:
    """The ids of the shard's rows, some at a time: its id column, or the row numbers in the whole."""
    if shard.id is not None:
        for _, texts, _ in read_blocks(Path(shard.path), [shard.id], [], lists=False):
            yield texts[shard.id]
        return
    for start in range(0, shard.rows, PART):
        yield np.arange(shard.first + start, shard.first + min(start + PART, shard.rows)).astype(np.str_).astype(object)


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
