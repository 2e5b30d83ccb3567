"""The training loop. Data lives on the device, a batch is one index into it, and everything random is named by the
epoch.

So a run that is killed and resumed, or spread over several processes, takes the same steps. Over several processes each
takes its share of the same batch; batch normalisation then sees each share's own statistics, and the first process's
running ones are kept (where that matters, convert the model with torch.nn.SyncBatchNorm.convert_sync_batchnorm and pass
it as `model`).
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from naysay import losses
from naysay.seeds import lent
from naysay.training import records
from naysay.training.config import Config
from naysay.training.data import TrainingData
from naysay.training.learner import bits, objective, suitable_threads
from naysay.training.optim import learning_rate, set_learning_rate
from naysay.training.run import HeldOut, Observer, Run, Snapshot, Trained

if TYPE_CHECKING:
    from lightning_fabric import Fabric


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
    fabric: "Fabric | None" = None,
    progress: bool | None = None,
) -> Trained:
    """Train on rows `x` (n, d), (n, H, W) or (n, H, W, C) with complementary labels `comp` (n, K); T is uniform unless
    given.

    held_out: rows with complementary labels, on which each epoch is judged; the best epoch's weights are kept beside
    the last's.
    observers: called after each epoch with a `Snapshot`, they return figures for the records (this is where truth may
    be, never here).
    folder: where checkpoints and records go; a run that was interrupted there is continued (`resume`).
    model: a module of your own, trained in place, instead of `config.model`. fabric: for devices other than one (see
    docs/TRAINING.md).
    """
    run = Run.set_up(
        config,
        x,
        comp,
        T=T,
        held_out=held_out,
        folder=folder,
        resume=resume,
        every=checkpoint_every,
        model=model,
        fabric=fabric,
    )
    with (
        suitable_threads(run.module, config.batch_size),
        records.progress(config.epochs, len(run.history), progress) as show,
    ):
        for epoch in range(len(run.history), config.epochs):
            started = time.perf_counter()
            loss = one_epoch(run.fabric, run.learner, run.optimizer, run.data, epoch, whole=run.compiled)
            figures = {"epoch": epoch + 1, "loss": loss, "learning_rate": run.optimizer.param_groups[0]["lr"]}
            run.stop_if_diverged(figures)
            figures["seconds"] = time.perf_counter() - started
            if run.fabric.is_global_zero:
                snapshot = Snapshot(epoch + 1, epoch + 1 == config.epochs, run.predictor())
                for observe in (run.judge, *observers):
                    figures.update(observe(snapshot))
            run.keep(run.fabric.broadcast(records.clean(figures)))
            show(run.history[-1])
    return run.finish()


def one_epoch(
    fabric: "Fabric", learner: Any, optimizer: Any, data: TrainingData, epoch: int, *, whole: bool = False
) -> float:
    """Every row once, in batches (`whole`: without a shorter last one); the mean loss over the rows."""
    learner.train()
    batches, views, loss = data.batches(epoch, whole=whole), data.views(epoch), losses.get(data.config.loss)
    total = torch.zeros((), device=data.x.device)
    with lent(data.config.seed, f"dropout/{epoch}/{fabric.global_rank}", fabric.device):
        for step, rows in enumerate(batches):
            set_learning_rate(optimizer, learning_rate(data.config, epoch * len(batches) + step, len(batches)))
            mine = rows[fabric.global_rank :: fabric.world_size]
            share = learner(data.inputs(mine, views), bits(data.labels(rows, mine))) * (fabric.world_size / len(rows))
            value = objective(fabric, loss, share)
            fabric.backward(value)
            optimizer.step()
            optimizer.zero_grad()
            total += value.detach() * len(rows)
    return float(total) / sum(map(len, batches))
