"""The folder of a run: `checkpoint.safetensors` (the last whole epoch), `best.safetensors` and `records.jsonl`.

At any moment, a kill -9 included, each name stands for one whole state (`naysay.files`). Everything that a resumed run
needs (weights, optimiser, epoch, figures so far) is in the checkpoint alone. One run at a time works in a folder.
"""

import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from naysay import files, tensors
from naysay.errors import MISSING, UNFIT, InputError, intact
from naysay.learning import records
from naysay.learning.recipe import Figures
from naysay.processes import Processes

CHECKPOINT, RECORDS = "checkpoint.safetensors", "records.jsonl"
LONGEST = 1 << 20  # bytes of the records' first line, which holds the settings
START_OVER = "Remove it to start over."
# true of the command too, and of pretraining, which have no resume=False
ANOTHER = "Use another folder, or remove that file to start over in this one."
FORMAT, BEFORE = "naysay-checkpoint-2", ("naysay-checkpoint-1",)


def save(path: Path, state: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write a state and its description (JSON) to `path`: after a crash there is the old file or the new one, whole."""
    tensors.save(path, state, about, format=FORMAT, key="naysay")


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the description of a file that `save` wrote."""
    return tensors.load(path, format=FORMAT, key="naysay", what="checkpoint", way_out=START_OVER, before=BEFORE)


class RunFolder:
    """Where a run keeps itself; with `path` None it lives in memory only, and nothing here is to be written."""

    def __init__(self, path: str | Path | None, identity: Mapping[str, Any], resume: bool, every: int) -> None:
        self.path = None if path is None else Path(path)
        self.identity, self.every = dict(identity), every
        place = self.path or Path()
        self.checkpoint, self.best = place / CHECKPOINT, place / "best.safetensors"
        self.records = place / RECORDS
        self.resumes = resume and self.path is not None and self.checkpoint.exists()

    def restore(self, state: Mapping[str, Tensor]) -> list[Figures]:
        """Put the last whole epoch into the tensors of `state`; the figures of all epochs so far, none in a new run."""
        if not self.resumes:
            return []
        found, about = load(self.checkpoint)
        with intact(self.checkpoint, START_OVER):
            refuse_foreign(self.checkpoint, about.get("identity", {}), self.identity)
            history = [dict(figures) for figures in about["history"]]
            if [figures["epoch"] for figures in history] != [*range(1, len(history) + 1)]:
                raise ValueError("its epochs are not in order")
        odd = [name for name, tensor in state.items() if name not in found or found[name].shape != tensor.shape]
        if odd:
            raise InputError(
                f"{self.checkpoint} does not hold the state of this run: {odd[0]} is missing or of another shape. "
                f"{ANOTHER}"
            )
        for name, tensor in state.items():
            tensor.detach().copy_(found[name])
        return history

    def begin(self, history: Sequence[Figures], n_bytes: int, environment: Mapping[str, Any]) -> None:
        """Check that there is room, and write the records up to here."""
        # the model with two moments, twice when both an old and a new checkpoint stand side by side, and the best one
        files.probe(self.checkpoint, (3 if self.resumes else 7) * n_bytes + (1 << 16))
        run = {"kind": "run", **self.identity, **environment}
        records.rewrite(self.records, [run, *({"kind": "epoch", **figures} for figures in history)])

    def keep(
        self, state: Mapping[str, Tensor], about: Mapping[str, Any], history: Sequence[Figures], *, last: bool
    ) -> None:
        """Write the epoch that `history` ends with: the checkpoint, then the line in the records.

        In this order, because what is repeated after a kill is then always the whole epoch.
        """
        if last or len(history) % self.every == 0:
            save(self.checkpoint, state, {"identity": self.identity, "history": list(history), **about})
        records.append(self.records, {"kind": "epoch", **history[-1]})

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the result as the records' last line."""
        if self.path is not None:
            records.append(self.records, {"kind": "result", **result})


def is_begun(folder: Path, recipes: Collection[str]) -> bool:
    """Whether a run by one of the recipes began in the folder: as its records say, or its checkpoint without them.

    Other programs have files of these names, too, and so has the folder that `naysay fit` leaves.
    """
    try:
        if os.path.lexists(folder / RECORDS):
            if not (folder / RECORDS).is_file():  # a pipe would be waited on for ever
                return False
            with (folder / RECORDS).open("rb") as file:
                first = json.loads(file.readline(LONGEST))
            return bool(first["kind"] == "run" and first["config"]["recipe"] in recipes)
        checkpoint = folder / CHECKPOINT
        return checkpoint.is_file() and load(checkpoint)[1]["identity"]["config"]["recipe"] in recipes
    except (InputError, *MISSING, *UNFIT):  # it is not ours, whatever it is
        return False


def alone_in(folder: str | Path | None, processes: Processes) -> AbstractContextManager[Any]:
    """Be the only run in the folder, if there is one; of several processes that run together, the first sees to it."""
    if folder is None or not processes.first:
        return nullcontext()
    busy = f"another process is training in {folder}. Wait for it, or choose another folder."
    return files.hidden(Path(folder) / CHECKPOINT, busy=busy)


def architecture(module: nn.Module) -> str:
    """A hash of a module's parameter and buffer names, shapes and types."""
    named = [(name, list(tensor.shape), str(tensor.dtype)) for name, tensor in module.state_dict().items()]
    return hashlib.blake2b(json.dumps(named).encode(), digest_size=16).hexdigest()


def refuse_foreign(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise an error that names whatever of the run's identity (config, model, data, ...) is not the checkpoint's."""
    config, was = wanted["config"], found.get("config", {})
    settings = {name: (was.get(name), value) for name, value in config.items()}
    if config["schedule"] == "constant" and not config["warmup_epochs"]:
        del settings["epochs"]  # with no schedule, a longer run is the shorter one continued
    differ = [f"{name} ({before!r}, now {now!r})" for name, (before, now) in settings.items() if before != now]
    others = {name: value for name, value in wanted.items() if name != "config" and found.get(name) != value}
    differ += [f"the {name} ({found.get(name)}, now {value})" for name, value in others.items()]
    if differ:
        raise InputError(f"{path} belongs to another run: it differs in {', '.join(differ)}. {ANOTHER}")
