"""Self-supervised pretraining: from images alone to an encoder.

The images stay on the device as uint8; each epoch draws its own numbers, runs its steps without a word from the host,
and ends with a line of the curve. A run with a folder continues from the folder's checkpoint, and ends as if never
interrupted. Over several processes each takes its slice of every batch, and the first one alone reads and writes the
folder, reports and asks the oracle. They take the steps of one process to rounding, so a run may go on with more or
fewer processes than it was begun with.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from naysay import files
from naysay.errors import InputError
from naysay.features import checkpoint
from naysay.features.collapse import check_alive
from naysay.features.recipes import Config
from naysay.features.siamese import Siamese
from naysay.features.step import Step
from naysay.models import resnet18_encoder
from naysay.processes import ALONE, Processes
from naysay.seeds import lent


@dataclass(frozen=True)
class Pretrained:
    """What a run leaves: the encoder in eval mode, the curve (one record an epoch), and whether all epochs were run."""

    encoder: nn.Module
    curve: list[dict[str, Any]]
    config: Config
    finished: bool


def pretrain(
    images: Tensor,
    config: Config,
    *,
    folder: Path | None = None,
    device: torch.device | str = "cpu",
    encoder: nn.Module | None = None,
    width: int = 512,
    oracle: Callable[[nn.Module], float] | None = None,
    oracle_every: int = 20,
    save_every: int = 20,
    seconds: float | None = None,
    fit: float | None = None,
    compiled: bool | None = None,
    captured: bool | None = None,
    report: Callable[[dict[str, Any]], None] | None = None,
    processes: Processes = ALONE,
) -> Pretrained:
    """Train an encoder on `images` (n, H, W, C) uint8.

    `folder` holds the checkpoint and curve.jsonl, and is continued from. `oracle` scores the encoder on the side every
    `oracle_every` epochs (kNN accuracy, where truth is known; training does not see it). `seconds` ends the call after
    the epoch in which they run out, to be continued by another call; `fit` instead sets the number of epochs so that a
    fresh run ends within that many seconds of this call. `compiled` and `captured` (on by default on a GPU, the latter
    on one alone) compile the step and capture it as a CUDA graph. `report` gets each epoch's record. `processes` (from
    `naysay.processes.join`) are those that share the work, all with the same arguments.
    """
    begun, device = time.monotonic(), torch.device(device)
    on_gpu = device.type == "cuda"
    images = _check(images, config, processes).to(device)
    record = processes.agree(checkpoint.read_record(folder) if folder and processes.first else None)
    if record and fit:
        config = replace(config, epochs=record["config"]["epochs"])
    if record and record["config"] != _plain(config):
        raise InputError(
            f"{folder} holds a run with other settings. Continue it with the same settings, or give another folder."
        )
    model = _build(config, encoder, width, images.shape[3], processes).to(device)
    if on_gpu:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    with _fast_convolutions(on_gpu):
        step = Step(
            images, model.train(), config, compiled=on_gpu if compiled is None else compiled, processes=processes
        )
        step.load(0)
        if on_gpu and processes.size == 1 if captured is None else captured:
            step.capture()
        curve: list[dict[str, Any]] = []
        if folder and record and processes.first:
            checkpoint.read_into(folder, step.state())
        processes.copy_first_(step.state().values())
        if record:
            curve = record["curve"]
        elif fit:
            within = _epochs_within(step, begun + fit, oracle_every if oracle else 0)
            config = replace(config, epochs=processes.agree(within))
            step.config = config
        spent = curve[-1]["seconds"] if curve else 0.0
        for epoch in range(len(curve), config.epochs):
            start = time.monotonic()
            line = _epoch(step, epoch)
            last = epoch + 1 == config.epochs
            if oracle and processes.first and ((epoch + 1) % oracle_every == 0 or last):
                line["knn"] = _score(model, oracle)
            spent += time.monotonic() - start
            curve.append(line | {"seconds": round(spent, 2)})
            if report and processes.first:
                report(curve[-1])
            check_alive(curve)  # before anything is kept of a dead run
            stop = seconds is not None and processes.agree(time.monotonic() - begun > seconds)
            if folder and processes.first and (stop or last or (epoch + 1) % save_every == 0):
                checkpoint.write(folder, step.state(), {"config": _plain(config), "curve": curve})
                files.replace(folder / "curve.jsonl", "".join(json.dumps(row) + "\n" for row in curve).encode())
            if stop:
                break
    return Pretrained(model.encoder().eval(), curve, config, len(curve) == config.epochs)


def _check(images: Tensor, config: Config, processes: Processes) -> Tensor:
    images = images[..., None] if images.ndim == 3 else images
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[3] not in (1, 3):
        raise InputError(
            f"images must be uint8, (n, H, W) or (n, H, W, 1 or 3); got {images.dtype} of shape {tuple(images.shape)}."
        )
    if len(images) < config.batch:
        raise InputError(
            f"a step takes {config.batch} images; got {len(images)} in all. Give more images or a smaller batch."
        )
    if config.batch % processes.size:
        raise InputError(
            f"every process takes an equal share of a batch; got a batch of {config.batch} and {processes.size} "
            "processes. "
            f"A batch of {config.batch - config.batch % processes.size or processes.size} would do."
        )
    return images


def _plain(config: Config) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(asdict(config)))  # tuples become lists, as in a file
    return plain


def _build(
    config: Config, encoder: nn.Module | None, width: int, channels: int, processes: Processes = ALONE
) -> Siamese:
    with lent(config.seed, "pretrain/encoder"):
        return Siamese(encoder or resnet18_encoder(channels), config, width, processes)


@contextlib.contextmanager
def _fast_convolutions(on_gpu: bool) -> Iterator[None]:
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = on_gpu or before  # shapes never change: let cuDNN time its algorithms once
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _epoch(step: Step, epoch: int) -> dict[str, Any]:
    start = time.monotonic()
    step.load(epoch)
    for _ in range(step.steps):
        step()
    loss, spread = step.means()
    rate = step.steps * step.config.batch * step.config.views / (time.monotonic() - start)
    return {"epoch": epoch + 1, "loss": round(loss, 5), "spread": round(spread, 4), "views_per_second": round(rate)}


def _score(model: Siamese, oracle: Callable[[nn.Module], float]) -> float:
    model.eval()
    score = oracle(model.encoder())
    model.train()
    return round(score, 4)


def _epochs_within(step: Step, deadline: float, oracle_every: int, sample: int = 100) -> int:
    """How many epochs fit before the monotonic `deadline`, from the time of some steps; the state is afterwards as
    before.
    """
    before = {name: tensor.clone() for name, tensor in step.state().items()}
    taken = min(sample, step.steps)
    for _ in range(2):  # the first round warms up
        step.load(0)
        step.means()
        start = time.monotonic()
        for _ in range(taken):
            step()
        step.means()
        each = (time.monotonic() - start) / taken
    with torch.no_grad():
        for name, tensor in step.state().items():
            tensor.copy_(before[name])
    epoch = 1.01 * each * step.steps + 0.03 + (2.0 / oracle_every if oracle_every else 0)  # 2 s for each scoring
    return max(1, int((deadline - time.monotonic() - 5) / epoch))
