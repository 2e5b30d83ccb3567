"""The work folder: what is finished stays finished, so that a run that was killed goes on where it was.

It lies in the output folder as `.work` until all is done. Every file in it is whole from the moment it has its name; a
stage skips what is there. The settings and the shards (name, size, time of change) are written down first: another run
may not go on with this one's files. All workers must see the folder, and the shards, under the same path: on several
machines that is a shared file system.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import stat
from pathlib import Path
from typing import Any

from naysay import files
from naysay.augmentation.sharded.source import Shard
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
    """The work folder of this run in the folder `out`: new, or as an interrupted run with the same shards and settings
    left it.
    """
    work = Work(out / ".work")
    asked = {"settings": dict(settings), "shards": [asdict(shard) | _version(shard) for shard in shards]}
    asked = json.loads(json.dumps(asked))  # as it will be read again
    if (out / RESULT).exists() and not force:
        raise InputError(
            f"{out} holds a finished result. Choose another folder, or pass force=True (--force) to replace it."
        )
    before = work.read("run.json")
    if before is not None and before != asked:
        if not force:
            changed = (
                "shards"
                if before.get("shards") != asked["shards"]
                else _difference(before["settings"], asked["settings"])
            )
            raise InputError(
                f"{out} holds an unfinished run with other {changed}. Run it as it was to go on, choose another "
                "folder, "
                "or pass force=True (--force) to begin anew."
            )
        shutil.rmtree(work.folder)
    elif before is None and out.exists() and any(out.iterdir()) and not (out / RESULT).exists():
        raise InputError(f"{out} holds other files. Choose a new or empty folder.")
    if work.read("run.json") is None:
        work.write("run.json", asked)
    return work


def close_work(work: Work) -> None:
    """Remove the work folder: all is done."""
    shutil.rmtree(work.folder)


def _version(shard: Shard) -> dict[str, list[int]]:
    seen = [stat(path) for path in (shard.path, shard.labels) if path is not None]
    return {"bytes": [file.st_size for file in seen], "changed_ns": [file.st_mtime_ns for file in seen]}


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    return "settings (" + ", ".join(sorted(name for name in {*before, *now} if before.get(name) != now.get(name))) + ")"
