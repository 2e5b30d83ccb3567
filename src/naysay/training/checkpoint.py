"""Checkpoints: one safetensors file per state, its JSON header saying what it belongs to. Nothing is ever unpickled.

At any moment, a kill -9 included, the name stands for one whole state (`naysay.files`). Everything that a resumed run
needs (weights, optimiser, epoch, figures so far) is in that one file.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from naysay import files
from naysay.errors import InputError

FORMAT = "naysay-checkpoint-1"


def save(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Write `tensors` and `meta` (JSON) to `path`, atomically: after a crash there is the old file or the new one,
    whole.
    """
    from safetensors.torch import save as as_bytes

    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": FORMAT, "naysay": json.dumps(meta, allow_nan=False)}
    files.replace(path, as_bytes(ready, header))


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the JSON of a checkpoint."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise InputError(
                    f"{path} is not a checkpoint of this program (format {header.get('format')!r}, wanted {FORMAT!r})."
                )
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(header["naysay"])  # noqa: SIM118 (no mapping)
    except (OSError, SafetensorError, json.JSONDecodeError) as error:
        raise InputError(f"{path} cannot be read as a checkpoint: {error}. Remove it to start over.") from None


def fingerprint(*arrays: Any) -> str:
    """A hash of arrays' shapes, types and values; None stands for itself."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        values = np.ascontiguousarray(array.detach().cpu().numpy() if isinstance(array, Tensor) else array)
        digest.update(f"{values.dtype.str}{values.shape}".encode())
        digest.update(values.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def architecture(module: nn.Module) -> str:
    """A hash of a module's parameter and buffer names, shapes and types."""
    text = json.dumps([(name, list(tensor.shape), str(tensor.dtype)) for name, tensor in module.state_dict().items()])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def refuse_foreign(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise an error that names whatever of the run's identity (config, model, data, labels, ...) differs from the
    checkpoint's.
    """
    settings = {name: (found["config"].get(name), value) for name, value in wanted["config"].items()}
    if wanted["config"]["schedule"] == "constant" and not wanted["config"]["warmup_epochs"]:
        del settings["epochs"]  # with no schedule, a longer run is the shorter one continued
    differ = [f"{name} ({was!r}, now {now!r})" for name, (was, now) in settings.items() if was != now]
    differ += [
        f"the {name} ({found.get(name)}, now {value})"
        for name, value in wanted.items()
        if name != "config" and found.get(name) != value
    ]
    if differ:
        raise InputError(
            f"{path} belongs to another run: it differs in {', '.join(differ)}. "
            "Use another folder, or resume=False to start over in this one."
        )


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state by name, "optimizer.<parameter number>.<what>"."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer.{number}.{what}": torch.as_tensor(value)
        for number, per in state.items()
        for what, value in per.items()
        if value is not None
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put the state of `optimizer_tensors` back, each moment laid out in memory as its parameter is (fused kernels rely
    on it).
    """
    state: dict[int, dict[str, Tensor]] = {}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for name, value in tensors.items():
        _, number, what = name.split(".", 2)
        like = parameters[int(number)]
        state.setdefault(int(number), {})[what] = (
            torch.empty_like(like).copy_(value) if value.shape == like.shape else value.clone()
        )
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
