"""What is trained: a model together with its loss, so that both are compiled, wrapped and averaged over processes as
one module.

`Learner(x, comp)` gives the SUM over rows of the loss's terms. Over several processes, each with its share of the same
batch, the batch's loss is `combine` of the mean over all rows, which for ure-nn and ure-ga is not the mean of the
processes' losses: `objective` gives each process a scalar whose gradients, averaged over the processes, are exactly
those of that loss.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from naysay import losses, models
from naysay.errors import InputError
from naysay.losses import Loss
from naysay.training.config import Config

# multiply-adds of a forward pass; on two busy cores digits took 7 s with one thread and 20 s with two
SMALL_STEP = 10_000_000


class Learner(nn.Module):
    """A model, a loss and T: (B, ...) inputs and (B, K) labels, or their bits -> the sum of the loss's terms, () or
    (K,).
    """

    prepared: Tensor  # what the loss needs of T; None where T is trained along

    def __init__(self, model: nn.Module, loss: Loss, T: Tensor | None, n_classes: int, eps: float = 0.0) -> None:
        super().__init__()
        self.model, self.loss, self.eps = model, loss, eps
        start = losses.prepare(loss.name, T, torch.empty(0, n_classes))
        self.transition = losses.trainable_transition(start) if loss.learns_T else None
        # not persistent: it follows from T, which the run's identity already names
        self.register_buffer("prepared", None if loss.learns_T else start, persistent=False)

    def forward(self, x: Tensor, comp: Tensor) -> Tensor:
        logits = self.model(x)
        comp = comp.view(torch.float32) if comp.dtype == torch.int32 else comp
        # mixed precision is for the model's products; log space needs all 24 bits
        with torch.autocast(x.device.type, enabled=False):
            prepared = self.prepared if self.transition is None else self.transition()
            return self.loss.terms(logits.float(), comp, prepared, self.eps).sum(0)

    def learned_T(self) -> Tensor | None:
        """The transition matrix that was trained along (cpe-t), else None."""
        return None if self.transition is None else self.transition().detach().double().cpu()


def bits(comp: Tensor) -> Tensor:
    """float32 labels as int32, to pass them through a fabric unchanged: with bf16-mixed it rounds every floating input
    to 8 bits.
    """
    return comp.view(torch.int32)


def build_learner(
    config: Config, shape: tuple[int, ...], n_classes: int, T: Tensor | None, model: nn.Module | None = None
) -> Learner:
    """The learner of `config` for inputs of `shape`; `model`, if given, is trained (changed in place) instead of
    `config.model`.
    """
    if model is None:
        model = models.build(config.model, shape, n_classes, config.seed, **config.model_options)
    if config.encoder is not None:
        load_encoder(model, config.encoder)
    if len(shape) == 3:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks this form
    return Learner(model, losses.get(config.loss), T, n_classes, config.eps)


def load_encoder(model: nn.Module, path: str | Path) -> None:
    """Fine-tuning's start: put the weights of a safetensors file (fp16 or fp32, names as in `model.encoder`) into the
    model's encoder.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    encoder = getattr(model, "encoder", None)
    if not isinstance(encoder, nn.Module):
        raise InputError(f"{type(model).__name__} has no .encoder to load {path} into; use a model of naysay.models.")
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read as encoder weights (safetensors): {error}.") from None
    expected = encoder.state_dict()
    wrong = sorted(name for name in expected.keys() | weights.keys() if _shape(expected, name) != _shape(weights, name))
    if wrong:
        raise InputError(
            f"{path} is not the encoder of this model: {len(wrong)} of {len(expected)} tensors differ, the first "
            f"being {wrong[0]} "
            f"(in the file {_shape(weights, wrong[0])}, in the model {_shape(expected, wrong[0])}). Choose the model "
            "it was trained as."
        )
    encoder.load_state_dict(weights)


def _shape(tensors: dict[str, Tensor], name: str) -> tuple[int, ...] | str:
    return tuple(tensors[name].shape) if name in tensors else "absent"


def objective(fabric: Any, loss: Loss, share: Tensor) -> Tensor:
    """The batch's loss, from this process's share of the mean; the processes' average of `share` is the mean over the
    whole batch.

    With m the averaged mean, the value is combine(m), and its gradient is combine'(m) times that of `share`: the
    processes' average of such gradients is the gradient of combine(m), because m is the average of the shares.
    """
    if fabric.world_size == 1:
        return loss.combine(share)
    mean = fabric.all_reduce(share.detach().clone(), reduce_op="mean").requires_grad_()
    value = loss.combine(mean)
    (slope,) = torch.autograd.grad(value, mean)
    surrogate: Tensor = value.detach() + (slope * (share - share.detach())).sum()
    return surrogate


@contextmanager
def suitable_threads(learner: nn.Module, batch_size: int) -> Iterator[None]:
    """One torch thread inside, where a step is so small that threads would wait for each other longer than they work."""
    before = torch.get_num_threads()
    dense = not any(isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) for module in learner.modules())
    small = dense and batch_size * sum(parameter.numel() for parameter in learner.parameters()) < SMALL_STEP
    torch.set_num_threads(1 if small else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def should_compile(config: Config, device: torch.device, images_in_all: int) -> bool:
    """Whether torch.compile is used: "auto" where it pays, a ResNet on a GPU for long enough to make up for the minute
    it takes.
    """
    if config.compile != "auto":
        return config.compile == "yes"
    return device.type == "cuda" and config.model == "resnet18" and images_in_all >= 1_000_000


def compile_learner(learner: Learner, device: torch.device, processes: int) -> Any:
    """The learner compiled; on one GPU also captured as CUDA graphs, without which the launches of a ResNet-18 step
    take longer than the step itself (53,000 images/s on an H200 without, 83,000 with).
    """
    if device.type == "cuda":
        torch.backends.cudnn.benchmark = True  # shapes do not change: let cuDNN time its algorithms once
    return torch.compile(learner, mode="reduce-overhead" if device.type == "cuda" and processes == 1 else None)
