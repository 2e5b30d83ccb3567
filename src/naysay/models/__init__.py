"""Models: what turns an instance into logits, and into the representation just before them.

Every model is a `Classifier`: an encoder, then one linear head. `model(x)` gives logits (n, K), never probabilities;
`model.represent(x)` gives the representation (n, d) before the last layer. Images come channels first, as floats.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from naysay.errors import InputError, unknown
from naysay.models.convnet import convnet_encoder, pooled_resnet_encoder
from naysay.models.lenet import lenet_encoder
from naysay.models.resnet import SMALL, resnet18_encoder, small_resnet_encoder
from naysay.seeds import lent

__all__ = ["MODELS", "Classifier", "ModelRow", "build", "fitting", "resnet18_encoder", "small_resnet_encoder"]


class Classifier(nn.Module):
    """An encoder (n, ...) -> (n, d) with a linear head (n, d) -> (n, K)."""

    def __init__(self, encoder: nn.Module, width: int, n_classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(width, n_classes)

    def represent(self, x: Tensor) -> Tensor:
        """The representation (n, d) before the last layer."""
        representation: Tensor = self.encoder(x)
        return representation

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, K)."""
        logits: Tensor = self.head(self.encoder(x))
        return logits


Shape = tuple[int, ...]
PRETRAINED, SIDE = ("resnet18", "small-resnet"), 32  # models whose encoders are pretrained, for images of any side
WIDEST = 1_000_000  # units of a layer: more is a slip, and would take the machine's memory


def _linear(shape: Shape) -> tuple[nn.Module, int]:
    return nn.Flatten(), math.prod(shape)


def _mlp(shape: Shape, hidden: int = 256) -> tuple[nn.Module, int]:
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), hidden), nn.ReLU()), hidden


def _lenet(shape: Shape) -> tuple[nn.Module, int]:
    return lenet_encoder(shape), 84


def _convnet(shape: Shape, width: int = 32) -> tuple[nn.Module, int]:
    return convnet_encoder(shape[0], width), 4 * width


def _pooled_resnet(shape: Shape, width: int = 16) -> tuple[nn.Module, int]:
    return pooled_resnet_encoder(shape[0], width), 4 * width


def _resnet18(shape: Shape) -> tuple[nn.Module, int]:
    return resnet18_encoder(shape[0]), 512


def _small_resnet(shape: Shape) -> tuple[nn.Module, int]:
    return small_resnet_encoder(shape[0]), SMALL


@dataclass(frozen=True)
class ModelRow:
    """One row of the table: `encoder` maps an input shape (and the row's own options) to a module and its width d."""

    name: str
    encoder: Callable[..., tuple[nn.Module, int]]
    smallest: int  # images need at least this many pixels a side; 0: tables are fine too
    about: str

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise InputError where an option is not one of this model's, or no number of units."""
        known = list(inspect.signature(self.encoder).parameters)[1:]
        for name, value in options.items():
            if not known:
                raise InputError(f"the model {self.name} has no options; got {name!r}.")
            if name not in known:
                raise unknown(f"option of the model {self.name}", name, known)
            if not isinstance(value, Integral) or not 1 <= int(value) <= WIDEST:
                raise InputError(f"{name} must be a whole number from 1 to {WIDEST:,}; got {value!r:.80}.")


MODELS = {
    row.name: row
    for row in (
        ModelRow("linear", _linear, 0, "one linear layer"),
        ModelRow("mlp", _mlp, 0, "one hidden layer of `hidden` (256) rectified units: 784-256-10 on MNIST"),
        ModelRow("lenet", _lenet, 12, "LeNet-5 with rectified units and max-pooling, for 28 x 28 and 32 x 32"),
        ModelRow("convnet", _convnet, 8, "three convolutions of `width` (32) maps and more: images on a CPU"),
        ModelRow(
            "pooled-resnet", _pooled_resnet, 8, "five convolutions of `width` (16) maps and more: images on a CPU"
        ),
        ModelRow(
            "resnet18", _resnet18, 8, "ResNet-18 with the CIFAR stem (3 x 3, no pooling), for 32 x 32 and 64 x 64"
        ),
        ModelRow("small-resnet", _small_resnet, 8, "a ResNet of 1/30 of resnet18's arithmetic, for a CPU"),
    )
}


def fitting(shapes: Mapping[str, Shape]) -> str | None:
    """The model for whose encoder tensors of these names and shapes were trained (`naysay.features.pretrain`).

    None where they are no such encoder's; tensors beside those of the encoder change nothing.
    """
    first = shapes.get("0.weight", ())
    if len(first) != 4:
        return None
    for name in PRETRAINED:
        with torch.device("meta"):  # shapes alone
            encoder, _ = MODELS[name].encoder((first[1], SIDE, SIDE))
        if all(shapes.get(key) == tuple(tensor.shape) for key, tensor in encoder.state_dict().items()):
            return name
    return None


def build(name: str, input_shape: Shape, n_classes: int, seed: int = 0, **options: int) -> Classifier:
    """The model `name` for inputs of shape (d,) or (C, H, W), its weights drawn from the stream "model" of `seed`."""
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    row = MODELS[name]
    if len(input_shape) not in (1, 3) or min(input_shape) < 1:
        raise InputError(f"input_shape must be (d,) for tables or (C, H, W) for images; got {tuple(input_shape)}.")
    if row.smallest and (len(input_shape) != 3 or min(input_shape[1:]) < row.smallest):
        raise InputError(
            f"{name} needs images (C, H, W) of at least {row.smallest} x {row.smallest} pixels; "
            f"got input_shape {tuple(input_shape)}. For tables and tiny images use mlp or linear."
        )
    row.check_options(options)
    with lent(seed, "model"):
        encoder, width = row.encoder(tuple(input_shape), **options)
        return Classifier(encoder, width, n_classes)
