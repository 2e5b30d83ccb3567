"""The plain recipe: a model and one loss on its labels, as Lin et al. 2023 train on labels shared or not.

Images stay uint8 until a batch is taken; each is shifted and flipped by the same index that takes it. Every random
choice of an epoch is drawn on the CPU, per row, from a stream named by the epoch, so that it depends on neither the
device, nor the number of processes, nor on where a run was interrupted. Tables are normalised once.
"""

from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from naysay import labels, losses, models
from naysay.errors import InputError
from naysay.learning.predictor import Predictor
from naysay.learning.recipe import Learner, Recipe, Task
from naysay.learning.rows import Normaliser, input_shape
from naysay.learning.views import draw_moves, take_moved
from naysay.models.readout import split_readout
from naysay.words import count


class Plain(Learner):
    """A model with its loss and T; the mean of the loss's terms over a batch combines to the batch's loss."""

    comp: Tensor  # the labels (n, K) that are trained on; `set_labels` renews them
    frequency: Tensor | None  # (K,) how often each class is named, for losses of per-class risks
    prepared: Tensor  # what the loss needs of T; None where T is trained along
    renews_labels = False  # whether `before_epoch` changes them: they are then a part of every checkpoint

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        config, comp = task.config, task.comp
        assert comp is not None  # as the row says that it needs labels
        self.worth_compiling = config.model == "resnet18" and task.model is None
        self.moves = bool(config.crop or config.flip)
        if self.moves and self.x.ndim == 2:
            raise InputError(
                "crop and flip are for images (n, H, W) or (n, H, W, C); got a table. Set crop=0 and flip=False."
            )
        if config.crop >= (min(self.x.shape[1:3]) if self.x.ndim == 4 else 1):
            raise InputError(f"crop must be below the images' {min(self.x.shape[1:3])} pixels; got {config.crop}.")
        self.shape, self.T = input_shape(self.x), task.T
        self.loss = losses.get(config.loss)
        kept = self.renews_labels or task.relabel is not None
        # a copy, on which the caller's labels do not depend
        self.register_buffer("comp", comp.to(self.x.device, torch.float32, copy=True), persistent=kept)
        per_class = isinstance(self.loss, losses.PerClassRisk)
        self.register_buffer("frequency", self.comp.mean(0) if per_class else None, persistent=kept)
        self.normaliser = Normaliser.of(self.x, config.normalise)
        if self.x.ndim == 2:
            self.x = self.normaliser(self.x)
        self.model = build_model(task, comp.shape[1])
        start = losses.prepare(config.loss, task.T, torch.empty(0, comp.shape[1], device=self.x.device))
        self.transition = losses.trainable_transition(start) if self.loss.learns_T else None
        # not persistent: it follows from T, which the run's identity already names
        self.register_buffer("prepared", None if self.loss.learns_T else start, persistent=False)
        self.relabel = task.relabel

    def before_epoch(self, epoch: int) -> None:
        """New labels, where the caller renews them."""
        if self.relabel is not None and (renewed := self.relabel(self, epoch)) is not None:
            self.set_labels(renewed)

    def set_labels(self, renewed: Any) -> None:
        """Train on these labels (n, K) from now on."""
        renewed = labels.validate(renewed, self.comp.shape[1])
        if len(renewed) != len(self.comp):
            raise InputError(f"renewed labels must be of the {len(self.comp)} rows trained on; got {len(renewed)}.")
        self.comp.copy_(renewed)
        if self.frequency is not None:
            self.frequency.copy_(self.comp.mean(0))

    def draw(self, epoch: int, order: Tensor) -> Tensor | None:
        """How each image is moved this epoch: down, right, and whether it is flipped."""
        if not self.moves:
            return None
        moves = draw_moves(len(self.x), self.config.crop, self.config.flip, self.config.seed, epoch)
        return moves.to(order.device).index_select(0, order)

    def forward(self, rows: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The sum of the loss's terms over this process's rows, as its share of the batch's mean."""
        mine = self.processes.part(rows)
        logits = self.model(self.inputs(mine, draws))
        # mixed precision is for the model's products; log space needs all 24 bits
        with torch.autocast(rows.device.type, enabled=False):
            prepared = self.prepared if self.transition is None else self.transition()
            terms = self.loss.terms(logits.float(), self.labels(rows, mine), prepared, self.config.eps)
            return terms.sum(0) * (self.processes.size / len(rows)), None

    def combine(self, mean: Tensor) -> Tensor:
        """As the loss has it: for ure-nn and ure-ga the batch's loss is not the mean of its instances' losses."""
        return self.loss.combine(mean)

    def inputs(self, rows: Tensor, moves: Tensor | None) -> Tensor:
        """What the model is fed, (B, d) or (B, C, H, W), of the rows numbered `rows`."""
        if self.x.ndim == 2:
            return self.x.index_select(0, rows)
        padding = self.config.padding
        return self.normaliser(self.x[rows] if moves is None else take_moved(self.x, rows, moves, padding))

    def labels(self, rows: Tensor, mine: Tensor) -> Tensor:
        """The labels of the rows numbered `mine`, a part of the batch `rows`.

        Losses of per-class risks (ure-nn, ure-ga, scarce) get each label weighted so that the batch has the whole set's
        label frequencies (Ishida et al. 2019 estimate with class priors). As drawn, a batch of 64 has some class named
        so often that its risk is negative before the model has learnt anything, and ure-ga then unlearns: on digits it
        ends at 0 % instead of 40 %.
        """
        comp = self.comp.index_select(0, mine)
        if self.frequency is None:
            return comp
        drawn = self.comp.index_select(0, rows).mean(0)
        return comp * torch.where(drawn > 0, self.frequency / drawn, 0)

    def product(self) -> Predictor:
        """The model as it is now, ready to predict."""
        learned = None if self.transition is None else self.transition().detach().double().cpu()
        return Predictor(self.model, self.normaliser, self.config, self.shape, self.T if learned is None else learned)

    def extra_tensors(self) -> dict[str, Tensor]:
        """How inputs are normalised, and T: a predictor can be loaded from a checkpoint."""
        return self.product().tensors()

    def description(self) -> dict[str, Any]:
        """The predictor's."""
        return self.product().description()


ROW = Recipe("plain", Plain, "Lin et al. 2023", "a model and one loss on its labels, given or shared")


def build_model(task: Task, n_classes: int) -> nn.Module:
    """The task's own model, or that of its config with fresh or pretrained weights, on the device of its rows."""
    config, shape = task.config, input_shape(task.x)
    model = task.model
    if model is None:
        model = models.build(config.model, shape, n_classes, config.seed, **config.model_options)
    if config.encoder is not None:
        load_encoder(model, config.encoder)
    if len(shape) == 3:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks this
    return model


def load_encoder(model: nn.Module, path: str | Path) -> None:
    """Fine-tuning's start: put a safetensors file's weights (names as in `model.encoder`) into the model's encoder.

    A read-out that the file may hold beside the network is no part of the model.
    """
    encoder = getattr(model, "encoder", None)
    if not isinstance(encoder, nn.Module):
        raise InputError(f"{type(model).__name__} has no .encoder to load {path} into; use a model of naysay.models.")
    weights = _read(path)
    expected = encoder.state_dict()
    wrong = sorted(name for name in expected.keys() | weights.keys() if _shape(expected, name) != _shape(weights, name))
    if wrong:
        raise InputError(
            f"{path} is not the encoder of this model: {len(wrong)} of {len(expected)} tensors differ, the first being "
            f"{wrong[0]} (in the file {_shape(weights, wrong[0])}, in the model {_shape(expected, wrong[0])}). "
            f"{_way_out(weights, wrong)}"
        )
    encoder.load_state_dict(weights)


def model_of(path: str | PathLike[str]) -> str:
    """The name of the model whose encoder a file holds (`naysay.models.fitting`)."""
    weights = _read(path)
    name = models.fitting({name: tuple(tensor.shape) for name, tensor in weights.items()})
    if name is None:
        known = " or ".join(models.PRETRAINED)
        raise InputError(f"{path} holds the encoder of no model that pretraining knows, {known}. Name its model=.")
    return name


def _read(path: str | PathLike[str]) -> dict[str, Tensor]:
    """The network's tensors in the file of an encoder, without those of its read-out."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return split_readout(load_file(path))[0]
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read as encoder weights (safetensors): {error}.") from None


def _way_out(weights: dict[str, Tensor], wrong: list[str]) -> str:
    """What to do about an encoder of which these tensors are not the model's."""
    if wrong == ["0.weight"] and weights["0.weight"].ndim == 4:
        channels = count(weights["0.weight"].shape[1], "channel")
        return f"It was trained on images of {channels}: give such, or train one on these (naysay pretrain)."
    fits = models.fitting({name: tuple(tensor.shape) for name, tensor in weights.items()})
    return "Choose the model it was trained as." if fits is None else f'It was trained as model="{fits}": choose that.'


def _shape(tensors: dict[str, Tensor], name: str) -> tuple[int, ...] | str:
    return tuple(tensors[name].shape) if name in tensors else "absent"
