"""The run folder: `checkpoint.safetensors` (the last whole epoch), `best.safetensors` (the best by the criterion),
`records.jsonl`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from naysay import files
from naysay.training import checkpoint, records
from naysay.training.learner import Learner
from naysay.training.predictor import Predictor
from naysay.training.records import Figures


class RunFolder:
    """Where a run keeps itself; with `path` None everything is a no-op and the run lives in memory only."""

    def __init__(self, path: str | Path | None, identity: Mapping[str, Any], resume: bool, every: int) -> None:
        self.path = None if path is None else Path(path)
        self.identity, self.every = dict(identity), every
        self.resumes = resume and self.path is not None and self.checkpoint.exists()

    @property
    def checkpoint(self) -> Path:
        """The last whole epoch."""
        return self._at("checkpoint.safetensors")

    @property
    def best(self) -> Path:
        """The best epoch by the criterion on held-out rows."""
        return self._at("best.safetensors")

    @property
    def records(self) -> Path:
        """The JSON lines."""
        return self._at("records.jsonl")

    def _at(self, name: str) -> Path:
        assert self.path is not None
        return self.path / name

    def restore(self, learner: Learner, optimizer: torch.optim.Optimizer) -> list[Figures]:
        """Put the last whole epoch's state into learner and optimiser; the figures of the epochs so far, none for a new
        run.
        """
        if not self.resumes:
            return []
        tensors, meta = checkpoint.load(self.checkpoint)
        checkpoint.refuse_foreign(self.checkpoint, meta["identity"], self.identity)
        learner.load_state_dict(
            {name: value for name, value in tensors.items() if name.startswith(("model.", "transition."))}
        )
        checkpoint.restore_optimizer(
            optimizer, {name: value for name, value in tensors.items() if name.startswith("optimizer.")}
        )
        return list(meta["history"])

    def begin(self, history: Sequence[Figures], learner: Learner, environment: Mapping[str, Any]) -> None:
        """Remove what a kill left half written, check that there is room, and write the records up to here."""
        for path in (self.checkpoint, self.best, self.records):
            files.sweep(path)
        n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in learner.state_dict().values())
        # the model with two moments, twice when both an old and a new checkpoint will stand side by side, and the best
        # one
        files.probe(self.checkpoint, (3 if self.resumes else 7) * n_bytes + (1 << 16))
        run = {"kind": "run", **self.identity, **environment}
        records.rewrite(self.records, [run, *({"kind": "epoch", **figures} for figures in history)])

    def restore_best(self, device: torch.device) -> dict[str, Tensor]:
        """The best epoch's tensors."""
        return {name: tensor.to(device) for name, tensor in checkpoint.load(self.best)[0].items()}

    def save(
        self,
        learner: Learner,
        optimizer: Any,
        predictor: Predictor,
        history: Sequence[Figures],
        is_best: bool,
        *,
        last: bool,
    ) -> None:
        """Write the epoch that `history` ends with: the best weights, the checkpoint, then the line in the records.

        In this order, because what is repeated after a kill is then always the whole epoch.
        """
        if self.path is None:
            return
        if is_best:
            checkpoint.save(self.best, predictor.tensors(), {**predictor.description(), "epoch": len(history)})
        if last or len(history) % self.every == 0:
            state = predictor.tensors() | learner.state_dict() | checkpoint.optimizer_tensors(optimizer)
            checkpoint.save(
                self.checkpoint, state, {"identity": self.identity, "history": list(history), **predictor.description()}
            )
        records.append(self.records, {"kind": "epoch", **history[-1]})

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the result as the records' last line."""
        if self.path is not None:
            records.append(self.records, {"kind": "result", **result})
