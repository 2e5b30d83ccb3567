"""What a training will take, before it begins: the time of a step and the memory it needs, both measured on a few.

A learner of the same settings is made of a few batches of the rows, so that nothing of the real one is touched and
whatever it does once for all rows (sharing labels, say) costs nothing here. That, and an epoch's looks at other rows,
are not in the time; nor is what compiling saves on a GPU: it is what steps take, and about what the whole takes.
"""

import dataclasses
import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from naysay.learning import recipes
from naysay.learning.config import Config
from naysay.learning.recipe import Task
from naysay.learning.rows import as_inputs
from naysay.learning.steps import Steps, suited_to
from naysay.processes import ALONE, Processes

STEPS = 2  # that are timed, after one that is not
ON_A_CPU = 32  # rows of a step that is timed there: a step of 512 images takes a ResNet-18 half a minute


@dataclass(frozen=True)
class Foreseen:
    """Of one training: the seconds of a step, the steps in all, and the bytes that it holds at its fullest."""

    seconds_per_step: float
    steps: int
    n_bytes: int

    @property
    def seconds(self) -> float:
        """Of all steps."""
        return self.seconds_per_step * self.steps


def foresee(config: Config, x: Any, n_classes: int, processes: Processes = ALONE) -> Foreseen:
    """What training by `config` on rows x (n, ...) will take here, shared between the processes."""
    n, device = len(x), processes.device
    size = min(config.batch_size, n)
    few = size if device.type == "cuda" else min(size, ON_A_CPU)
    some = as_inputs(x[: few * (STEPS + 1)]).to(device)
    comp = torch.nn.functional.one_hot(torch.arange(len(some), device=device) % n_classes, n_classes).float()
    learner = recipes.build(Task(dataclasses.replace(config, compile="no", batch_size=few), some, comp))
    steps = Steps(learner)
    with suited_to(learner):
        steps.load(0)
        kept = _kept_by_a_step(steps)
        started = time.perf_counter()
        steps.run(0, taken := min(STEPS, steps.count))
        steps.means()  # waits for the device
        each = (time.perf_counter() - started) / taken
    # every row lies on the device with its labels; there are as many gradients as weights
    rows = n * (some.nbytes // len(some) + 4 * n_classes)
    weights = sum(p.nbytes for group in steps.optimizer.param_groups for p in group["params"])
    state = weights + sum(tensor.nbytes for tensor in steps.state().values())
    part = size / few / processes.size
    return Foreseen(each * part, config.epochs * math.ceil(n / size), round(rows + state + kept * part))


def _kept_by_a_step(steps: Steps) -> int:
    """Take a step; the bytes of what its forward pass keeps for the backward one, but for the weights."""
    kept: dict[int, int] = {}
    weights = {p.untyped_storage().data_ptr() for group in steps.optimizer.param_groups for p in group["params"]}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        steps.run(0, 1)
    steps.means()
    return sum(kept.values())
