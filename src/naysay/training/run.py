"""What the loop works on: a run's parts set up, judged on held-out labels, kept in memory and on disk, and handed out
at the end.
"""

import copy
import dataclasses
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from naysay import labels, selection, transition
from naysay.errors import InputError
from naysay.training import checkpoint, records
from naysay.training.config import Config
from naysay.training.data import TrainingData, as_inputs, input_shape
from naysay.training.folder import RunFolder
from naysay.training.learner import Learner, build_learner, compile_learner, should_compile
from naysay.training.optim import build_optimizer
from naysay.training.predictor import Predictor
from naysay.training.records import Figures

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that take no part in training, with their complementary labels, and the criterion that judges each epoch on
    them.
    """

    x: Any
    comp: Tensor
    criterion: str = "ure-accuracy"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What an observer sees after an epoch: its number (from 1), whether it is the last, and the model as it is now."""

    epoch: int
    last: bool
    predictor: Predictor


Observer = Callable[[Snapshot], Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished run: the last epoch's predictor, the best epoch's (None without held-out rows), and each epoch's
    figures.
    """

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


class Diverged(InputError):
    """The loss or the weights are no longer finite; the last good checkpoint stays."""


class Run:
    """The state of a training run between epochs."""

    def __init__(
        self, fabric: "Fabric", data: TrainingData, learner: Learner, T: Tensor | None, held_out: HeldOut | None
    ) -> None:
        self.fabric, self.data, self.config, self.T = fabric, data, data.config, T
        self.module = learner.to(fabric.device)
        self.shape = input_shape(data.x)
        self.optimizer: Any = build_optimizer(self.config, learner.parameters(), fabric.device)
        self.held_out = held_out
        self.criterion = None if held_out is None else selection.criterion(held_out.criterion)
        self.history: list[Figures] = []
        self.best_state: dict[str, Tensor] = {}
        self.compiled = should_compile(self.config, fabric.device, self.config.epochs * len(data.x))

    @classmethod
    def set_up(
        cls,
        config: Config,
        x: Any,
        comp: Any,
        *,
        T: Any,
        held_out: HeldOut | None,
        folder: str | Path | None,
        resume: bool,
        every: int,
        model: nn.Module | None,
        fabric: "Fabric | None",
    ) -> Self:
        """Check everything, put the data on the device, build or restore the state, and try the folder: whatever can
        fail, fails here.
        """
        x, comp = as_inputs(x), labels.validate(comp)
        T = None if T is None else transition.validate(T, comp.shape[1])
        held_out = None if held_out is None else _checked(held_out, config, x, comp)
        fabric = one_device(config) if fabric is None else fabric
        if fabric.strategy.precision.precision != config.precision:
            raise InputError(
                f"the fabric computes in {fabric.strategy.precision.precision} and the config asks for "
                f"{config.precision}; "
                "make them equal (naysay.training.one_device shows how)."
            )
        data = TrainingData.load(x, comp, config, fabric.device)
        run = cls(fabric, data, build_learner(config, input_shape(x), comp.shape[1], T, model), T, held_out)
        run.folder = RunFolder(folder, {} if folder is None else run.identity(x, comp), resume, every)
        run.restore()
        learner: Any = compile_learner(run.module, fabric.device, fabric.world_size) if run.compiled else run.module
        run.learner, run.optimizer = fabric.setup(learner, run.optimizer)
        return run

    folder: RunFolder
    learner: Any  # the module as fabric wraps it

    def identity(self, x: Tensor, comp: Tensor) -> dict[str, Any]:
        """What a checkpoint must share with this run to be continued by it."""
        held, encoder = self.held_out, self.config.encoder
        return {
            "config": self.config.as_dict(),
            "model": checkpoint.architecture(self.module),
            "data": checkpoint.fingerprint(x),
            "labels": checkpoint.fingerprint(comp.float()),
            "transition matrix": checkpoint.fingerprint(self.T),
            "held-out rows": None if held is None else checkpoint.fingerprint(held.x, held.comp.float()),
            "criterion": None if held is None else held.criterion,
            "encoder": None if encoder is None else checkpoint.fingerprint(np.fromfile(encoder, np.uint8)),
        }

    def restore(self) -> None:
        """Continue what the folder holds, if anything, and see that it can be written."""
        self.history = self.folder.restore(self.module, self.optimizer)[: self.config.epochs]
        if self.best_epoch is not None:
            self.best_state = self.folder.restore_best(self.fabric.device)
        if self.fabric.is_global_zero and self.folder.path is not None:
            self.folder.begin(
                self.history, self.module, records.environment(self.fabric.device, self.fabric.world_size)
            )

    def predictor(self) -> Predictor:
        """The model as it is now."""
        learned = self.module.learned_T()
        return Predictor(
            self.module.model, self.data.normaliser, self.config, self.shape, self.T if learned is None else learned
        )

    def judge(self, snapshot: Snapshot) -> Figures:
        """The criterion on the held-out rows, with its standard error."""
        if self.held_out is None or self.criterion is None:
            return {}
        logits = snapshot.predictor.logits(self.held_out.x)
        outputs = snapshot.predictor.decode(logits) if self.criterion.name == "ure-accuracy" else logits
        estimate = self.criterion.estimate(outputs, self.held_out.comp, self.T)
        return {"held_out": estimate.value, "held_out_error": estimate.standard_error}

    @property
    def best_epoch(self) -> int | None:
        """The number of the best epoch so far by the criterion, the earliest of equals."""
        if self.criterion is None or not self.history:
            return None
        sign = -1 if self.criterion.higher_is_better else 1
        return 1 + min(range(len(self.history)), key=lambda at: sign * self.history[at]["held_out"])

    def stop_if_diverged(self, figures: Figures) -> None:
        """Raise `Diverged` before anything is kept of an epoch whose loss or weights are not finite."""
        if math.isfinite(figures["loss"]) and bool(
            torch.stack([p.isfinite().all() for p in self.module.parameters()]).all()
        ):
            return
        kept = (
            f" The checkpoint of epoch {len(self.history)} stays in {self.folder.path}."
            if self.folder.path and self.history
            else ""
        )
        raise Diverged(
            f"training diverged in epoch {figures['epoch']} at learning rate {figures['learning_rate']:.3g}: the loss "
            "is "
            f"{figures['loss']:.3g} or a weight is not finite. Try a tenth of the learning rate, warmup_epochs, "
            f"or a bounded loss such as scl-exp or pc.{kept}"
        )

    def keep(self, figures: Figures) -> None:
        """Add an epoch to the history, and it and its weights to the folder."""
        self.history.append(figures)
        predictor, is_best = self.predictor(), self.best_epoch == len(self.history)
        if is_best:
            self.best_state = {name: tensor.clone() for name, tensor in predictor.tensors().items()}
        if self.fabric.is_global_zero:
            self.folder.save(
                self.module,
                self.optimizer,
                predictor,
                self.history,
                is_best,
                last=len(self.history) == self.config.epochs,
            )

    def finish(self) -> Trained:
        """The result, also as the last line of the records."""
        predictor, best = self.predictor(), None
        if self.best_epoch is not None:
            model = copy.deepcopy(predictor.model)
            model.load_state_dict(
                {n.removeprefix("model."): t for n, t in self.best_state.items() if n.startswith("model.")}
            )
            best = dataclasses.replace(predictor, model=model.eval(), T=self.best_state.get("T"))
        predictor.model.eval()
        trained = Trained(predictor, best, tuple(self.history), self.best_epoch)
        if self.fabric.is_global_zero:
            self.folder.finish({"last": trained.last_figures, "best": trained.best_figures})
        return trained


def one_device(config: Config) -> "Fabric":
    """The default: one GPU where there is one, else the CPU. For more, make such a Fabric with devices=, strategy=,
    num_nodes=.
    """
    from lightning_fabric import Fabric

    quieten()
    return Fabric(accelerator="auto", devices=1, precision=config.precision)  # type: ignore[arg-type]  # checked by Config


def quieten() -> None:
    """Fabric greets with what it was asked for: without."""
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)


def _checked(held_out: HeldOut, config: Config, x: Tensor, comp: Tensor) -> HeldOut:
    held = dataclasses.replace(held_out, x=as_inputs(held_out.x), comp=labels.validate(held_out.comp, comp.shape[1]))
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
