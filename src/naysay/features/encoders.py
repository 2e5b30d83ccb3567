"""Trained encoders as files: fp16 safetensors with a card beside it that says where the numbers come from.

`NAME.safetensors` holds the encoder's state in half precision (11 million numbers, 22 MB); `NAME.json` is the card:
data, method, epochs, kNN accuracy, command, hardware, date, and the file's own hash. Half precision moves a feature by
about 1e-3 of its size, far less than the spread between two runs.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from naysay import files
from naysay.errors import InputError
from naysay.models import resnet18_encoder


def save_encoder(path: Path, encoder: nn.Module, card: dict[str, Any]) -> None:
    """Write the encoder in half precision at `path` (.safetensors) and its card beside it (.json)."""
    content = save({name: _halve(tensor).cpu().contiguous() for name, tensor in encoder.state_dict().items()})
    full = card | {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()}
    files.replace(path, content)
    files.replace(path.with_suffix(".json"), (json.dumps(full, indent=2) + "\n").encode())


def load_encoder(path: Path) -> tuple[nn.Module, dict[str, Any]]:
    """The ResNet-18 encoder at `path`, in float32 and eval mode, and its card; the file must be the one the card speaks
    of.
    """
    if not path.exists() or not path.with_suffix(".json").exists():
        raise InputError(
            f"an encoder is {path.name} with its card {path.with_suffix('.json').name}; not both are in {path.parent}."
        )
    try:
        card: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
        expected = card["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path.with_suffix('.json')} is no encoder's card ({error!r}). Fetch it again.") from error
    if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
        raise InputError(f"{path} is not the file its card speaks of: the hashes differ. Fetch it again.")
    try:
        state = {
            name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in load_file(path).items()
        }
        encoder = resnet18_encoder(state["0.weight"].shape[1])
        encoder.load_state_dict(state)
    except (SafetensorError, KeyError, RuntimeError) as error:
        raise InputError(f"{path} does not hold a ResNet-18 encoder ({str(error).splitlines()[0]}).") from error
    return encoder.eval(), card


def _halve(tensor: Tensor) -> Tensor:
    # statistics of large activations can leave half precision's range; weights never do
    return (
        tensor.half() if tensor.is_floating_point() and tensor.abs().max() < torch.finfo(torch.float16).max else tensor
    )
