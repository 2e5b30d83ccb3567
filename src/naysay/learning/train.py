"""`train`: labels become a classifier, by a recipe that learns from labels; whatever can fail, fails before training.

Over several processes each takes its part of the same batch. Batch normalisation then sees each part's own statistics,
and the first process's running ones are kept (where that matters, convert the model with
torch.nn.SyncBatchNorm.convert_sync_batchnorm and pass it as `model`).
"""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from naysay import labels, selection, transition
from naysay.errors import InputError
from naysay.learning import recipes, records
from naysay.learning.config import Config
from naysay.learning.folder import alone_in
from naysay.learning.loop import Observer, Run, Snapshot
from naysay.learning.predictor import Predictor
from naysay.learning.recipe import Figures, Learner, Task
from naysay.learning.rows import as_inputs
from naysay.processes import ALONE, Processes
from naysay.tensors import fingerprint


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that take no part in training, with their complementary labels, and the criterion that judges epochs."""

    x: Any
    comp: Tensor
    criterion: str = "ure-accuracy"


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished run: the last epoch's predictor, the best epoch's (None without held-out rows), all figures."""

    predictor: Predictor
    best: Predictor | None
    history: tuple[Figures, ...]
    best_epoch: int | None

    @property
    def last_figures(self) -> Figures:
        """The figures of the last epoch."""
        return self.history[-1]

    @property
    def best_figures(self) -> Figures | None:
        """The figures of the best epoch by the criterion."""
        return None if self.best_epoch is None else self.history[self.best_epoch - 1]


def train(
    config: Config,
    x: Any,
    comp: Any,
    *,
    T: Any = None,
    held_out: HeldOut | None = None,
    observers: Sequence[Observer] = (),
    folder: str | Path | None = None,
    resume: bool = True,
    checkpoint_every: int = 1,
    model: nn.Module | None = None,
    relabel: Callable[[Learner, int], Tensor | None] | None = None,
    device: torch.device | str | None = None,
    processes: Processes = ALONE,
    progress: bool | None = None,
) -> Trained:
    """Train on rows `x` (n, d), (n, H, W) or (n, H, W, C) with labels `comp` (n, K); T is uniform unless given.

    held_out: rows with labels, on which each epoch is judged; the best epoch's weights are kept beside the last's.
    observers: called after each epoch with a `Snapshot`, they return figures for the records (truth may be there, never
    here). folder: where checkpoints and records go; a run that was interrupted there is continued (`resume`).
    model: a module of your own, trained in place, instead of `config.model`. relabel: called before each epoch with the
    learner and the epoch's number (from 0), it returns the labels to train on from then on, or None to keep them; it
    must depend on these alone for a resumed run to be the same. device: a GPU where there is one, unless given.
    processes: those that share the work, from `naysay.processes.join()`, all with the same arguments.
    """
    x, comp = as_inputs(x), labels.validate(comp)
    if len(x) != len(comp):
        raise InputError(f"x and comp must have the same rows; got {len(x)} and {len(comp)}.")
    if len(comp) and not bool(comp.any()):
        raise InputError(f"no row has a label to learn from; got {len(comp)} unlabelled rows. Label some.")
    T = None if T is None else transition.validate(T, comp.shape[1])
    held_out = None if held_out is None else _checked(held_out, config, x, comp)
    placed = x.to(processes.device if device is None else device)
    learner = recipes.build(Task(config, placed, comp, T, model, processes, relabel))
    identity = {} if folder is None else _identity(config, x, comp, T, held_out)
    judge = None if held_out is None else HeldOutJudge(held_out, T)
    with alone_in(folder, processes):
        run = Run(
            learner, identity=identity, folder=folder, resume=resume, checkpoint_every=checkpoint_every, judge=judge
        )
        with records.progress(config.epochs, len(run.history), progress if processes.first else False) as show:
            run.go(observers, show)
        trained = _result(run)
        if processes.first:
            run.folder.finish({"last": trained.last_figures, "best": trained.best_figures})
    return trained


@dataclass(frozen=True, eq=False)
class HeldOutJudge:
    """The criterion on held-out rows, with its standard error."""

    held_out: HeldOut
    T: Tensor | None

    def __call__(self, snapshot: Snapshot) -> Figures:
        """The epoch's estimate."""
        criterion, predictor = selection.criterion(self.held_out.criterion), snapshot.predictor
        logits = predictor.logits(self.held_out.x)
        outputs = predictor.decode(logits) if criterion.name == "ure-accuracy" else logits
        estimate = criterion.estimate(outputs, self.held_out.comp, self.T)
        return {"held_out": estimate.value, "held_out_error": estimate.standard_error}

    def better(self, first: float, second: float) -> bool:
        """Whether the first estimate is strictly better."""
        return selection.criterion(self.held_out.criterion).better(first, second)


def _identity(config: Config, x: Tensor, comp: Tensor, T: Tensor | None, held: HeldOut | None) -> dict[str, Any]:
    """What a checkpoint must share with a run to be continued by it, beside settings and model."""
    return {
        "data": fingerprint(x),
        "labels": fingerprint(comp.float()),
        "transition matrix": fingerprint(T),
        "held-out rows": None if held is None else fingerprint(held.x, held.comp.float()),
        "criterion": None if held is None else held.criterion,
        "encoder": None if config.encoder is None else fingerprint(np.fromfile(config.encoder, np.uint8)),
    }


def _result(run: Run) -> Trained:
    predictor, best = run.learner.product(), None
    if run.best_epoch is not None:
        model, state = copy.deepcopy(predictor.model), run.best_state
        weights = {name.removeprefix("model."): t for name, t in state.items() if name.startswith("model.")}
        model.load_state_dict(weights)
        best = dataclasses.replace(predictor, model=model.eval(), T=state.get("T"))
    predictor.model.eval()
    return Trained(predictor, best, tuple(run.history), run.best_epoch)


def _checked(held_out: HeldOut, config: Config, x: Tensor, comp: Tensor) -> HeldOut:
    rows, given = as_inputs(held_out.x, exact=x.dtype == torch.float64), labels.validate(held_out.comp, comp.shape[1])
    held = dataclasses.replace(held_out, x=rows, comp=given)
    if len(held.x) != len(held.comp) or held.x.shape[1:] != x.shape[1:]:
        raise InputError(
            f"held-out rows must be like the training rows {tuple(x.shape[1:])}, one label row each; "
            f"got {tuple(held.x.shape)} and {len(held.comp)} label rows."
        )
    if config.loss == "cpe-i" and held.criterion != "ure-accuracy":
        raise InputError(
            f"cpe-i gives no class probabilities, which {held.criterion} needs; use the criterion ure-accuracy."
        )
    return held
