"""What a recipe is: what is learned from a batch. How (epochs, rates, checkpoints, processes) is the loop's.

A recipe is a row of `naysay.learning.recipes.RECIPES`. Its `build` turns a `Task` (settings, rows, labels) into a
`Learner`: the modules that are trained, the views of an image that they want, their terms and how these combine to a
loss, what happens after a step (a moving average), and what happens before an epoch (labels renewed). All of it works
on tensors that stay where they are, so that the loop may compile a step, capture it, or share it between processes.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from naysay.errors import InputError, unknown
from naysay.processes import ALONE, Processes

if TYPE_CHECKING:
    from naysay.learning.config import Config

Figures = dict[str, Any]
SURE = 0.95  # what a target's largest entry must be for it to count as covered, in recipes that make targets
LARGEST = {True: 10**18, False: 10**38}  # of whole and of other numbers: what 64 bits, and float32, can hold


class Diverged(InputError):
    """The loss or the weights are no longer finite; the last good checkpoint stays."""


def refuse_non_numbers(record: Any) -> None:
    """Raise InputError where a setting whose default is a number is none, a whole one no whole one, or is too large.

    What is 1 or more by default is a count, which cannot be less than 1.
    """
    for setting in dataclasses.fields(record):
        name, value = setting.name, getattr(record, setting.name)
        usual: Any = setting.default
        number, whole = isinstance(usual, Real), isinstance(usual, int)
        if number and not isinstance(value, Real):
            raise InputError(f"{name} must be a number; got {value!r:.80}.")
        if not number or isinstance(usual, bool):
            continue
        if whole and not isinstance(value, Integral):
            raise InputError(f"{name} must be a whole number; got {value!r}.")
        if whole and usual >= 1 and int(value) < 1:
            raise InputError(f"{name} must be at least 1; got {value}.")
        if abs(value) > (largest := LARGEST[whole]):
            raise InputError(f"{name} must be at most {largest:.0e}; got a number beyond it.")


@dataclass(frozen=True, eq=False)
class Task:
    """What a recipe is given. x: rows as they are, on the device they stay on, tables (n, d) or images (n, H, W, C).

    comp: labels (n, K), None where a recipe needs none. model: the caller's own, in place of `config.model`.
    relabel: renews the labels that are trained on, given the learner and the epoch (from 0); None where they stay.
    """

    config: "Config"
    x: Tensor
    comp: Tensor | None = None
    T: Tensor | None = None
    model: nn.Module | None = None
    processes: Processes = ALONE
    relabel: "Callable[[Learner, int], Tensor | None] | None" = None


class Learner(nn.Module):
    """A recipe at work. A recipe says `forward` and `product`; the rest has defaults.

    The parameters that need gradients are trained, and everything in the state dict is kept in checkpoints.
    """

    figures: tuple[str, ...] = ()  # the names of what `forward` tells beside its terms
    whole_batches = False  # whether a last batch that is shorter than the others is left out
    worth_compiling = False  # whether compiling a step pays on a GPU, in a run of a million images and more

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.config, self.x, self.processes = task.config, task.x, task.processes

    def groups(self) -> list[dict[str, Any]]:
        """Parameter groups for the optimiser; one with "constant": True keeps its learning rate at the peak."""
        return [{"params": [parameter for parameter in self.parameters() if parameter.requires_grad]}]

    def before_epoch(self, epoch: int) -> None:
        """Whatever is renewed between two epochs (counted from 0), in place."""

    def draw(self, epoch: int, order: Tensor) -> Tensor | None:
        """Random numbers (m, D) for the rows numbered `order` (m,), the same on every process; None for none."""
        return None

    def forward(self, rows: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The terms of this process's part of the batch `rows` (B,), whose draws (b, D) are given; and its `figures`.

        The mean of the terms over the processes is the mean over the batch; `combine` makes a loss of it.
        """
        raise NotImplementedError

    def combine(self, mean: Tensor) -> Tensor:
        """The batch's loss from the mean of the terms."""
        return mean

    def after_step(self) -> None:
        """What follows the optimiser's step, such as a moving average."""

    def check(self, history: Sequence[Figures], kept: str) -> None:
        """Raise where the epoch that `history` ends with went wrong; `kept` says in words what is left of the run."""
        figures = history[-1]
        if math.isfinite(figures["loss"]) and bool(torch.stack([p.isfinite().all() for p in self.parameters()]).all()):
            return
        raise Diverged(
            f"training diverged in epoch {figures['epoch']} at learning rate {figures['learning_rate']:.3g}: the loss "
            f"is {figures['loss']:.3g} or a weight is not finite. Try a tenth of the learning rate, warmup_epochs, "
            f"or a bounded loss such as scl-exp or pc.{kept}"
        )

    def product(self) -> Any:
        """What was learned, as it is now: a predictor, an encoder."""
        raise NotImplementedError

    def extra_tensors(self) -> dict[str, Tensor]:
        """What a checkpoint holds beside the state, for those who read the product from it."""
        return {}

    def description(self) -> dict[str, Any]:
        """What a checkpoint says of the product, for those who build it again (JSON)."""
        return {}

    @property
    def images_in_all(self) -> int:
        """How many images or rows go through the network in the whole run."""
        return self.config.epochs * len(self.x)


@dataclass(frozen=True)
class Recipe:
    """One row of the table.

    needs_labels: whether it learns a classifier from labels (`learning.train`), or an encoder from images alone
    (`features.pretrain`). options: the frozen dataclass of the recipe's own settings. published: settings that differ
    from `Config`'s defaults, as the source has them. unused: settings of `Config` that it has no use for. as_given: it
    learns labels as they are given unless a scheme is named to share them by, and an encoder is where it starts.
    shares: it shares labels between neighbours itself, and has an option `class_shares` for it. takes: "images" or
    "rows" where it learns from nothing else.
    """

    name: str
    build: Callable[[Task], Learner]
    source: str
    summary: str
    needs_labels: bool = True
    options: type = field(default=type(None))
    published: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    unused: tuple[str, ...] = ()
    as_given: bool = False
    shares: bool = False
    takes: str = ""

    @property
    def option_names(self) -> list[str]:
        """The names of the recipe's own settings."""
        return [f.name for f in dataclasses.fields(self.options)] if dataclasses.is_dataclass(self.options) else []

    def read_options(self, config: "Config") -> Any:
        """The recipe's own settings, as its dataclass."""
        for name in config.options:
            if name not in self.option_names:
                raise unknown(f"option of the recipe {self.name}", name, self.option_names)
        return self.options(**config.options)

    def all_options(self, config: "Config") -> dict[str, Any]:
        """The recipe's own settings by name, also those that the config leaves out."""
        options = self.read_options(config)
        return {} if options is None else dataclasses.asdict(options)

    def refuse_unused(self, config: "Config") -> None:
        """Raise InputError where the config changes a setting that would change nothing."""
        defaults = type(config).__dataclass_fields__
        for name in self.unused:
            usual = defaults[name]
            if getattr(config, name) != (usual.default_factory() if callable(usual.default_factory) else usual.default):
                raise InputError(f"the recipe {self.name} has no use for {name}; got {getattr(config, name)!r}.")
