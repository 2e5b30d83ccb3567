"""Self-supervised pretraining: from images alone to an encoder, by a recipe that needs no labels.

The loop is `naysay.learning`'s: a run with a folder continues from its checkpoint and ends as if never interrupted,
and several processes take the steps of one, to rounding, so that a run may go on with more or fewer than it began with.
At its end the encoder gets its read-out, by the same images. Images that are left out take part in none of it.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from naysay.errors import InputError, intact
from naysay.features.encoders import WithReadout, network_of
from naysay.features.readout import fit_readout
from naysay.features.unseen import account
from naysay.features.unseen import leave_out as draw
from naysay.features.whiten import Readout
from naysay.learning import Config, Figures, Run, Snapshot, Task, recipes
from naysay.learning.folder import CHECKPOINT, START_OVER, alone_in, load
from naysay.learning.rows import as_inputs
from naysay.learning.steps import suited_to
from naysay.processes import ALONE, Processes

FEW = 4  # steps that are timed on a CPU, twice


@dataclass(frozen=True)
class Pretrained:
    """What a run leaves: the encoder in eval mode, the curve (one record an epoch), whether all epochs were run.

    The encoder of a finished run ends with its read-out, unless it gives all images the same output. seen: which images
    it has seen and which were left out, for its card (`naysay.features.unseen`).
    """

    encoder: nn.Module
    curve: list[Figures]
    config: Config
    finished: bool
    seen: dict[str, Any]

    @property
    def network(self) -> nn.Module:
        """The encoder without its read-out: what the curve's figures are of."""
        return network_of(self.encoder)


def pretrain(
    images: Tensor,
    config: Config,
    *,
    folder: str | Path | None = None,
    device: torch.device | str | None = None,
    encoder: nn.Module | None = None,
    leave_out: float | None = None,
    oracle: Callable[[nn.Module], float] | None = None,
    oracle_every: int = 20,
    save_every: int = 20,
    seconds: float | None = None,
    fit: float | None = None,
    estimate: Callable[[float, Config], None] | None = None,
    report: Callable[[Figures], None] | None = None,
    processes: Processes = ALONE,
) -> Pretrained:
    """Train an encoder on `images` (n, H, W) or (n, H, W, C) uint8 by `config`, as `learning.configure` makes it.

    `folder` holds the checkpoint and records.jsonl, and is continued from. encoder: a module of your own in place of a
    ResNet-18, whose output is `config.options["width"]` wide. leave_out: the share of the images, drawn by the config's
    seed, that takes no part, so that runs can be judged by them (`naysay.runs.Settings.apart`). `oracle` scores the
    encoder on the side every `oracle_every` epochs (kNN accuracy, where truth is known; training does not see it).
    `seconds` ends the call after the epoch in which they run out, to be continued by another call; `fit` instead sets
    the number of epochs so that a fresh run ends within that many seconds of this call. `estimate` gets, before the
    first epoch, the seconds that those left will take, by some steps that leave no trace, and the settings. `report`
    gets each epoch's figures. device and processes: as in `learning.train`.
    """
    begun = time.monotonic()
    images = as_inputs(images)
    seen = account(images, leave_out, config.seed)
    identity = {} if folder is None else {"data": seen["pixels"], "share of images left out": leave_out}
    if leave_out is not None:
        images = images[draw(len(images), leave_out, config.seed)[0]]
    placed = images.to(processes.device if device is None else device)
    if fit and folder is not None:
        config = _as_begun(config, Path(folder) / CHECKPOINT, processes)
    learner = recipes.build(Task(config, placed, model=encoder, processes=processes))
    with alone_in(folder, processes):
        run = Run(learner, identity=identity, folder=folder, checkpoint_every=save_every)
        if fit and not run.history:
            run.set_epochs(processes.agree(_epochs_within(run, begun + fit, oracle_every if oracle else 0)))
        if estimate and (ahead := learner.config.epochs - len(run.history)):
            each = _seconds_per_step(run)
            if processes.first:
                estimate(each * run.steps.count * ahead, learner.config)

        def look(snapshot: Snapshot) -> dict[str, Any]:
            if oracle is None or not (snapshot.epoch % oracle_every == 0 or snapshot.last):
                return {}
            return {"knn": round(oracle(snapshot.predictor), 4)}

        left = None if seconds is None else seconds - (time.monotonic() - begun)
        run.go([look], report or (lambda figures: None), left)
    finished = len(run.history) == learner.config.epochs
    network = learner.product().eval()
    readout = _readout(network, images, config.seed, processes) if finished else None
    ended = network if readout is None else WithReadout(network, readout.to(placed.device)).eval()
    return Pretrained(ended, run.history, learner.config, finished, seen)


def _readout(network: nn.Module, images: Tensor, seed: int, processes: Processes) -> Readout | None:
    """The read-out as the first process finds it, for all; None, with a warning, where outputs cannot be whitened."""
    found = None
    if processes.first:
        try:
            found = fit_readout(network, images, seed)
        except InputError as error:  # the network is there all the same, and may have taken hours
            warnings.warn(f"the encoder is kept without a read-out: {error}", stacklevel=3)
    return processes.agree(found)


def _as_begun(config: Config, place: Path, processes: Processes) -> Config:
    """The config with the number of epochs of the checkpoint at `place`, if there is one: a run has one length."""
    with intact(place, START_OVER):
        begun = load(place)[1]["identity"]["config"]["epochs"] if processes.first and place.exists() else None
    epochs = processes.agree(begun)
    return config if epochs is None else replace(config, epochs=epochs)


def _seconds_per_step(run: Run) -> float:
    """The time of a step, from a hundred of them on a GPU, where they are short, and a few on a CPU."""
    with suited_to(run.learner):
        return run.steps.seconds_per_step(100 if run.device.type == "cuda" else FEW)


def _epochs_within(run: Run, deadline: float, oracle_every: int) -> int:
    """How many epochs fit before the monotonic `deadline`, from the time of some steps."""
    epoch = 1.01 * _seconds_per_step(run) * run.steps.count + 0.03
    epoch += 2.0 / oracle_every if oracle_every else 0  # 2 s for each scoring
    return max(1, int((deadline - time.monotonic() - 5) / epoch))
