"""The loop: epochs of any recipe, each judged, recorded and kept, so that a run killed anywhere goes on bit for bit.

Data lives on the device, a batch is an index into it, and everything random is named by the epoch; so a run that is
resumed, or spread over several processes, takes the same steps. Over several processes the first one alone reads and
writes the folder, asks the observers and speaks.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from naysay.errors import InputError, intact
from naysay.learning import records
from naysay.learning.folder import ANOTHER, START_OVER, RunFolder, architecture, load, save
from naysay.learning.recipe import Figures, Learner
from naysay.learning.steps import Steps, suited_to


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What an observer sees after an epoch: its number (from 1), whether it is the last, and what is learned so far."""

    epoch: int
    last: bool
    learner: Learner

    @property
    def predictor(self) -> Any:
        """The recipe's product as it is now: a predictor, or of a recipe without labels an encoder."""
        return self.learner.product()


Observer = Callable[[Snapshot], Mapping[str, Any]]


class Judge(Protocol):
    """Gives each epoch its "held_out" figure, by which the best epoch is found."""

    def __call__(self, snapshot: Snapshot) -> Figures: ...
    def better(self, first: float, second: float) -> bool: ...


class Run:
    """A run between epochs: what is learned, its history, and the best epoch's tensors where there is a judge."""

    def __init__(
        self,
        learner: Learner,
        *,
        identity: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        resume: bool = True,
        checkpoint_every: int = 1,
        judge: Judge | None = None,
    ) -> None:
        """Build the state, or restore it from the folder.

        identity: what a checkpoint must share with this run to be continued by it, beside its settings and its model.
        """
        self.device, self.processes, self.judge = learner.x.device, learner.processes, judge
        self.learner = learner.to(self.device)
        self.steps = Steps(learner)
        told = {"config": learner.config.as_dict(), "model": architecture(learner), **(identity or {})}
        self.folder = RunFolder(folder, told, resume, checkpoint_every)
        self.best_state: dict[str, Tensor] = {}
        self.history: list[Figures] = []
        self._restore()

    @property
    def best_epoch(self) -> int | None:
        """The number of the best epoch so far by the judge, the earliest of equals."""
        if self.judge is None or not self.history:
            return None
        best = 0
        for at, figures in enumerate(self.history):
            if self.judge.better(figures["held_out"], self.history[best]["held_out"]):
                best = at
        return best + 1

    def set_epochs(self, epochs: int) -> None:
        """Let the run, which must not have begun, be so long."""
        self.learner.config = dataclasses.replace(self.learner.config, epochs=epochs)
        self.folder.identity["config"] = self.learner.config.as_dict()

    def go(
        self,
        observers: Sequence[Observer] = (),
        show: Callable[[Figures], None] = lambda figures: None,
        seconds: float | None = None,
    ) -> None:
        """Run the epochs that are left, or those that begin before `seconds` have passed."""
        begun, epochs = time.monotonic(), self.learner.config.epochs
        self._begin()
        with suited_to(self.learner):
            for epoch in range(len(self.history), epochs):
                self._epoch(epoch, [*([] if self.judge is None else [self.judge]), *observers])
                if self.processes.first:
                    show(self.history[-1])
                stop = seconds is not None and self.processes.agree(time.monotonic() - begun > seconds)
                self._keep(last=epoch + 1 == epochs or stop)
                if stop:
                    break

    def _epoch(self, epoch: int, observers: Sequence[Observer]) -> None:
        """Train, check and look: the epoch's figures at the end of the history."""
        started = time.perf_counter()
        self.steps.load(epoch)
        self.steps.run(epoch)
        figures = {"epoch": epoch + 1, **self.steps.means(), "learning_rate": float(self.steps.rates[-1])}
        figures["seconds"] = time.perf_counter() - started
        left = f" The checkpoint of epoch {len(self.history)} stays in {self.folder.path}."
        self.learner.check([*self.history, figures], left if self.folder.path and self.history else "")
        if self.processes.first:
            self.learner.eval()
            snapshot = Snapshot(epoch + 1, epoch + 1 == self.learner.config.epochs, self.learner)
            for observe in observers:
                figures.update(observe(snapshot))
        self.history.append(self.processes.agree(records.clean(figures)))

    def _keep(self, *, last: bool) -> None:
        """Keep the epoch that the history ends with: its weights if they are the best, the checkpoint, its line."""
        learner = self.learner
        if self.best_epoch == len(self.history):
            self.best_state = {name: tensor.clone() for name, tensor in learner.extra_tensors().items()}
            if self.processes.first and self.folder.path is not None:
                save(self.folder.best, self.best_state, {**learner.description(), "epoch": len(self.history)})
        if self.processes.first and self.folder.path is not None:
            state = {**learner.extra_tensors(), **self.steps.state()}
            self.folder.keep(state, learner.description(), self.history, last=last)

    def _restore(self) -> None:
        """Continue what the folder holds, if anything: the first process reads, the others get what it has."""
        state = self.steps.state()
        if self.processes.first:
            self.history = self.folder.restore(state)
        self.history = self.processes.agree(self.history)
        if len(self.history) > self.learner.config.epochs:
            raise InputError(
                f"{self.folder.checkpoint} holds {len(self.history)} epochs of this run and "
                f"{self.learner.config.epochs} are asked for. {ANOTHER}"
            )
        self.processes.copy_first_(state.values())
        with intact(self.folder.checkpoint, START_OVER):
            has_best = self.best_epoch is not None
        if has_best:
            best = load(self.folder.best)[0] if self.processes.first else {}
            self.best_state = {name: tensor.to(self.device) for name, tensor in self.processes.agree(best).items()}

    def _begin(self) -> None:
        """See that the folder can be written, before the work."""
        if self.processes.first and self.folder.path is not None:
            n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in self.learner.state_dict().values())
            self.folder.begin(self.history, n_bytes, records.environment(self.device, self.processes.size))
