"""The steps of an epoch: batch, forward, backward, update, and whatever the recipe does after a step.

Everything that changes from step to step lies in tensors that were filled before the epoch: the order of the rows, the
numbers drawn for them, the learning rates. So on one GPU a whole step can be compiled and captured as a CUDA graph that
counts its own steps; replaying it needs nothing from the host, and small batches are no longer bound by launches. All
numbers come from streams named by the epoch: an epoch is the same whether or not the run was interrupted before it.
Several processes draw the same numbers and take a part of each batch; their gradients are averaged, sent as one tensor.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from naysay import cores
from naysay.learning.config import Config
from naysay.learning.muon import Muon, parted
from naysay.learning.recipe import Learner
from naysay.seeds import lent, torch_stream

SMALL_STEP = 10_000_000  # multiply-adds forward; on two busy cores digits took 7 s with one thread and 20 with two
MANY_IMAGES = 1_000_000  # of a whole run: then compiling makes up for the minute it takes


def learning_rate(config: Config, step: int, steps_per_epoch: int) -> float:
    """The rate at `step`, counted from 0: linear over the warm-up, then constant, or half a cosine down to 0.

    A closed formula of the step, so that a resumed run needs no scheduler's state.
    """
    warmup, total = config.warmup_epochs * steps_per_epoch, config.epochs * steps_per_epoch
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    if config.schedule == "constant":
        return config.learning_rate
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


class Steps:
    """The steps of a learner over its n rows: `load` an epoch, `run` it, read its `means`."""

    def __init__(self, learner: Learner) -> None:
        config, self.device = learner.config, learner.x.device
        self.learner, self.processes, self.n = learner, learner.processes, len(learner.x)
        self.compiled = should_compile(learner)
        self.captured = self.compiled and self.device.type == "cuda" and self.processes.size == 1
        self.size = min(config.batch_size, self.n)
        whole = self.compiled or learner.whole_batches  # a compiled step has one shape
        self.count = self.n // self.size if whole else math.ceil(self.n / self.size)
        self.used = self.count * self.size if whole else self.n
        self.optimizer = build_optimizer(learner, capturable=self.captured)
        self.total = torch.zeros((), device=self.device)  # the sum of the loss over the epoch's rows
        self.told = torch.zeros(len(learner.figures), device=self.device)  # and those of the recipe's figures
        self.order = torch.empty(0, dtype=torch.int64, device=self.device)
        self.draws: Tensor | None = None
        self.rates: Any = []
        self.at = torch.zeros(1, dtype=torch.int64, device=self.device)  # the captured step's own count
        self._objective: Any = self._evaluate
        if self.compiled:
            self._objective = torch.compile(self._evaluate, fullgraph=self.processes.size == 1, dynamic=False)
        self._graph: torch.cuda.CUDAGraph | None = None

    def load(self, epoch: int) -> None:
        """Put the order, the drawn numbers and the rates of `epoch` (from 0) in place."""
        config = self.learner.config
        self.learner.train()
        self.learner.before_epoch(epoch)
        generator = torch_stream(config.seed, f"order/{epoch}")
        order = torch.randperm(self.n, generator=generator, device=generator.device)[: self.used].to(self.device)
        draws = self.learner.draw(epoch, order)
        rates = [learning_rate(config, epoch * self.count + step, self.count) for step in range(self.count)]
        self.total.zero_(), self.told.zero_(), self.at.zero_()
        if not self.captured:
            self.order, self.draws, self.rates = order, draws, rates
            return
        if self._graph is None:
            self.order, self.draws, self.rates = order, draws, torch.tensor(rates, device=self.device)
            self._capture()
        self.order.copy_(order)
        self.rates.copy_(torch.tensor(rates, device=self.device))
        if self.draws is not None and draws is not None:
            self.draws.copy_(draws)

    def run(self, epoch: int, count: int | None = None) -> None:
        """Take the steps of the loaded epoch, or the first `count` of them."""
        with lent(self.learner.config.seed, f"dropout/{epoch}/{self.processes.rank}", self.device):
            for step in range(self.count if count is None else count):
                if self._graph is not None:
                    self._graph.replay()
                    continue
                batch = slice(step * self.size, (step + 1) * self.size)
                for group in self.optimizer.param_groups:
                    group["lr"] = self.learner.config.learning_rate if group.get("constant") else self.rates[step]
                self._take(self.order[batch], None if self.draws is None else self.draws[batch])

    def means(self) -> dict[str, float]:
        """The loss and the recipe's figures, averaged over the rows of the epoch; waits for the device."""
        names = ("loss", *self.learner.figures)
        sums = torch.cat([self.total[None], self.processes.mean(self.told)])
        return dict(zip(names, (sums / self.used).tolist(), strict=True))

    def state(self) -> dict[str, Tensor]:
        """All tensors that training changes, by name: the learner's state and the optimiser's."""
        return {**self.learner.state_dict(), **optimizer_tensors(self.optimizer)}

    def seconds_per_step(self, sample: int = 100) -> float:
        """The time of a step, from some steps that leave no trace."""
        before = {name: tensor.clone() for name, tensor in self.state().items()}
        taken, each = min(sample, self.count), 0.0
        for _ in range(2):  # the first round warms up
            self.load(0)
            self.means()
            start = time.monotonic()
            self.run(0, taken)
            self.means()
            each = (time.monotonic() - start) / taken
        self._restore(before)
        return each

    def _evaluate(self, rows: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The batch's loss, and the recipe's figures."""
        learner = self.learner
        with torch.autocast(self.device.type, torch.bfloat16, enabled=learner.config.mixed(self.device)):
            terms, told = learner(rows, draws)
        return learner.combine(self.processes.mean(terms)), told

    def _take(self, rows: Tensor, draws: Tensor | None) -> None:
        value, told = self._objective(rows, None if draws is None else self.processes.part(draws))
        value.backward()
        self._align()
        if self.processes.size > 1:
            self.processes.average_([p.grad for p in self._parameters() if p.grad is not None])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.learner.after_step()
        self.total.add_(value.detach(), alpha=len(rows))
        if told is not None:
            self.told.add_(told, alpha=len(rows))

    def _parameters(self) -> Iterator[nn.Parameter]:
        return (parameter for group in self.optimizer.param_groups for parameter in group["params"])

    def _align(self) -> None:
        # a 1 x 1 kernel's gradient may come with other strides on its axes of length 1, which fused CUDA updates refuse
        if self.device.type == "cuda":
            for p in self._parameters():
                if p.grad is not None and p.grad.stride() != p.stride():
                    p.grad = p.grad.as_strided(p.shape, p.stride())

    def _counted(self) -> None:
        """A step that finds its own place in the epoch: what is captured."""
        for group in self.optimizer.param_groups:
            if not group.get("constant"):
                group["lr"].copy_(self.rates.index_select(0, self.at)[0])
        place = self.at * self.size + torch.arange(self.size, device=self.device)
        self._take(self.order[place], None if self.draws is None else self.draws[place])
        self.at.add_(1)

    def _capture(self) -> None:
        """Capture the step as a CUDA graph; the state is afterwards what it was before."""
        before = {name: tensor.clone() for name, tensor in self.state().items()}
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # warm-up: compile, choose algorithms, create gradients, all outside the capture
            for _ in range(3):
                self.at.zero_()
                self._counted()
        torch.cuda.current_stream().wait_stream(side)
        self.at.zero_()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._counted()
        self._graph = graph
        self._restore(before)

    def _restore(self, before: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, tensor in self.state().items():
                tensor.copy_(before[name])
        self.total.zero_(), self.told.zero_(), self.at.zero_()


def should_compile(learner: Learner) -> bool:
    """Whether torch.compile is used: "auto" where it pays."""
    if learner.config.compile != "auto":
        return learner.config.compile == "yes"
    return learner.x.is_cuda and learner.worth_compiling and learner.images_in_all >= MANY_IMAGES


def build_optimizer(learner: Learner, *, capturable: bool = False) -> torch.optim.Optimizer:
    """AdamW, SGD or Muon, in fused form where torch has one (one kernel instead of a dozen), with its state made.

    With moments of zero the first step is like any other, for captured steps and for checkpoints. A captured step reads
    its learning rate from a tensor.
    """
    config, device = learner.config, learner.x.device
    fused = device.type in ("cpu", "cuda")
    groups = parted(learner.groups(), learner) if config.optimizer == "muon" else learner.groups()
    for group in groups:
        group["lr"] = torch.tensor(config.learning_rate, device=device) if capturable else config.learning_rate
    momentum, decay = config.momentum, config.weight_decay
    optimizer: torch.optim.Optimizer
    if config.optimizer == "sgd":
        optimizer = torch.optim.SGD(groups, momentum=momentum, weight_decay=decay, fused=fused)
    elif config.optimizer == "muon":
        optimizer = Muon(groups, momentum, decay, fused=fused, capturable=capturable)
    else:
        optimizer = torch.optim.AdamW(groups, weight_decay=decay, fused=fused, capturable=capturable)
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            if config.optimizer == "adamw" or not group.get("matrices", True):
                state["step"] = torch.zeros((), device=device if fused else "cpu")
                state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            elif config.momentum or config.optimizer == "muon":
                state["momentum_buffer"] = torch.zeros_like(parameter)
    return optimizer


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state by name, "optimizer.<parameter number>.<what>": the tensors themselves, no copies."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {
        f"optimizer.{number}.{what}": value
        for number, parameter in enumerate(parameters)
        for what, value in optimizer.state[parameter].items()
    }


@contextmanager
def suited_to(learner: Learner) -> Iterator[None]:
    """Inside, torch is set to suit the learner's steps; after it, it is as it was.

    One thread where a step is so small that threads would wait for each other more than work, and no more of them than
    there are cores free. On a GPU cuDNN may time its algorithms once, as shapes never change.
    """
    threads, timed = torch.get_num_threads(), torch.backends.cudnn.benchmark
    dense = not any(isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) for module in learner.modules())
    parameters = sum(parameter.numel() for parameter in learner.parameters())
    small = dense and learner.config.batch_size * parameters < SMALL_STEP
    torch.set_num_threads(1 if small else min(threads, cores.free()))
    torch.backends.cudnn.benchmark = timed or learner.x.is_cuda
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.cudnn.benchmark = timed
