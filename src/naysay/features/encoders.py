"""Encoders: images through them, batch by batch, and trained ones as files with a card that says where they come from.

`NAME.safetensors` holds the encoder's state in half precision (11 million numbers, 22 MB), and beside the network's the
tensors of a read-out where there is one (`readout.mean`, `readout.axes`, float32, 1 MB); `NAME.json` is the card: data,
method, epochs, kNN accuracy, which images it has seen (`unseen`), command, hardware, date, and the file's own hash.
Half precision moves a feature by about 1e-3 of its size, far less than the spread between two runs.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from naysay import files
from naysay.datasets.dataset import Array
from naysay.errors import InputError
from naysay.features.whiten import Readout
from naysay.learning.views import normalise, to_float
from naysay.models import resnet18_encoder, small_resnet_encoder
from naysay.models.readout import READOUT, split_readout
from naysay.models.resnet import SMALL
from naysay.words import count

AGAIN = "Fetch it again."


class WithReadout(nn.Module):
    """An encoder that ends with a read-out: the network's rows (n, d), half whitened."""

    def __init__(self, network: nn.Module, readout: Readout) -> None:
        super().__init__()
        self.network, self.readout = network, readout

    def forward(self, x: Tensor) -> Tensor:
        rows: Tensor = self.readout(self.network(x))
        return rows


def network_of(encoder: nn.Module) -> nn.Module:
    """The encoder without its read-out: itself where it has none."""
    return encoder.network if isinstance(encoder, WithReadout) else encoder


def embed(encoder: nn.Module, images: Tensor, *, batch: int = 2500, precision: str = "auto") -> Tensor:
    """The representations (n, d) of uint8 images (n, H, W, C), computed and left where the encoder is.

    Images are normalised as in pretraining; rows of numbers (n, d) go in as they are. The encoder comes back in the
    mode it was in. precision: "float32", "bf16", or "auto": bf16 on a GPU and float32 elsewhere. What an encoder gives
    in float64 stays so.
    """
    weights = weights_of(encoder)
    dtype = weights.dtype if weights.is_floating_point() else torch.float32
    kind = weights.device.type
    mixed = precision == "bf16" or (precision == "auto" and kind == "cuda")
    rounding = torch.autocast(kind, torch.bfloat16) if mixed else contextlib.nullcontext()
    out = []
    with _eval_mode(encoder), torch.no_grad(), rounding:
        for start in range(0, len(images), batch):
            x = images[start : start + batch].to(weights.device)
            if x.ndim > 2:
                x = normalise(to_float(x)).contiguous(memory_format=torch.channels_last)
            y = encoder(x.to(dtype))
            if not isinstance(y, Tensor) or y.shape[:-1] != (len(x),):
                got = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
                raise InputError(
                    f"an encoder must return (n, d), a row of features for each of {len(x)} images; got {got}. "
                    "Pool and flatten."
                )
            out.append(y if y.dtype == torch.float64 else y.float())
    return torch.cat(out)


def weights_of(encoder: nn.Module) -> Tensor:
    """One of the encoder's tensors, which says where and in what precision it computes; an empty one if it has none."""
    # without a tensor nothing says where it computes: where new tensors are made
    return next(chain(encoder.parameters(), encoder.buffers()), torch.empty(0, device=torch.get_default_device()))


def save_encoder(path: str | Path, encoder: nn.Module, card: dict[str, Any]) -> None:
    """Write the encoder at `path` (.safetensors), in half precision but for its read-out, and its card beside it."""
    path = Path(path)
    state = {name: _halve(tensor) for name, tensor in network_of(encoder).state_dict().items()}
    if isinstance(encoder, WithReadout):
        state |= {f"{READOUT}{name}": tensor for name, tensor in encoder.readout.state_dict().items()}
    content = save({name: tensor.cpu().contiguous() for name, tensor in state.items()})
    full = card | {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()}
    files.replace(path, content)
    files.replace(path.with_suffix(".json"), (json.dumps(full, indent=2) + "\n").encode())


def load_encoder(path: str | Path, *, readout: bool = True) -> tuple[nn.Module, dict[str, Any]]:
    """The encoder at `path`, a ResNet-18 or the small one, in float32 and eval mode, and the card of this very file.

    It ends with its read-out where the file holds one; readout=False gives the network alone.
    """
    encoder, card, _ = read_encoder(path)
    return encoder if readout else network_of(encoder), card


def read_encoder(path: str | PathLike[str], way_out: str = AGAIN) -> tuple[nn.Module, dict[str, Any], bytes]:
    """What `load_encoder` gives, and the bytes of the file, for whoever keeps a copy. way_out: where it is unusable."""
    card, content = read_card(path, way_out)
    try:
        state = {name: t.float() if t.is_floating_point() else t for name, t in load(content).items()}
        weights, ending = split_readout(state)
        encoder = _network_for(weights["0.weight"])
        encoder.load_state_dict(weights)
        if ending:
            encoder = WithReadout(encoder, _readout_of(ending, width_of(encoder)))
    except (SafetensorError, KeyError, RuntimeError, ValueError) as error:
        found = str(error).splitlines()[0]
        raise InputError(f"{path} does not hold a ResNet-18 encoder ({found}). {way_out}") from error
    return encoder.eval(), card, content


def _network_for(first: Tensor) -> nn.Module:
    """The network whose first weight this is; ValueError where it is none's, before anything of its size is built."""
    shape = tuple(first.shape)
    # a shape with a 0 in it takes no bytes and may ask for any number of channels
    if len(shape) != 4 or shape[2:] != (3, 3) or not first.numel():
        raise ValueError(f"its first weight must be of shape (width, channels, 3, 3); got {shape}")
    return small_resnet_encoder(shape[1]) if 8 * shape[0] == SMALL else resnet18_encoder(shape[1])


def read_card(path: str | PathLike[str], way_out: str = AGAIN) -> tuple[dict[str, Any], bytes]:
    """The card of the encoder at `path`, and the bytes of the file that it speaks of."""
    path = Path(path)
    beside = path.with_suffix(".json")
    if not path.is_file() or not beside.is_file():
        both = f"an encoder is {path.name} with its card {beside.name}"
        raise InputError(f"{both}; not both are in {path.parent.absolute()}. {way_out}")
    try:
        card: dict[str, Any] = json.loads(beside.read_text())
        expected = card["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{beside} is no encoder's card ({error!r}). {way_out}") from error
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != expected:
        raise InputError(f"{path} is not the file its card speaks of: the hashes differ. {way_out}")
    return card, content


def channels_of(encoder: nn.Module) -> int:
    """The channels of the images that an encoder of ours takes."""
    return next(encoder.parameters()).shape[1]


def width_of(encoder: nn.Module) -> int:
    """How many numbers an encoder of ours gives for an image."""
    first = next(encoder.parameters())
    return embed(encoder, torch.zeros(1, 8, 8, first.shape[1], dtype=torch.uint8, device=first.device)).shape[1]


def with_channels(images: Array, encoder: nn.Module) -> Array:
    """Images (n, H, W[, C]) with as many channels as an encoder of ours takes: grey ones three times, for colours."""
    if images.ndim not in (3, 4):
        raise InputError(f"an encoder takes images (n, H, W) or (n, H, W, C); got shape {tuple(images.shape)}.")
    wanted, got = channels_of(encoder), images.shape[3] if images.ndim == 4 else 1
    if wanted == 3 and got == 1:
        return np.repeat(images.reshape(*images.shape[:3], 1), 3, axis=3)
    if got != wanted:
        raise InputError(
            f"the encoder takes images of {count(wanted, 'channel')}, and these have {got}. "
            "Give it images like those it was trained on, or train one on these (naysay pretrain)."
        )
    return images


def _readout_of(tensors: dict[str, Tensor], width: int) -> Readout:
    """The read-out that a file's tensors are; ValueError where they are not one for rows of so many numbers."""
    wanted = {"mean": (width,), "axes": (width, width)}
    got = {name: tuple(tensor.shape) for name, tensor in sorted(tensors.items())}
    if got != wanted:
        raise ValueError(f"its read-out must be of shapes {wanted}; got {got}")
    if not all(tensor.is_floating_point() and tensor.isfinite().all() for tensor in tensors.values()):
        raise ValueError("its read-out must hold finite floats")
    return Readout(**tensors)


@contextlib.contextmanager
def _eval_mode(encoder: nn.Module) -> Iterator[None]:
    # a frozen part may be in another mode than the whole
    modes = [(module, module.training) for module in encoder.modules()]
    encoder.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _halve(tensor: Tensor) -> Tensor:
    # statistics of large activations can leave half precision's range; weights never do
    fits = tensor.is_floating_point() and tensor.abs().max() < torch.finfo(torch.float16).max
    return tensor.half() if fits else tensor
