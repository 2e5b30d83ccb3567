"""Checkpoints: one safetensors file with the tensors, and the run's record as JSON in its header.

One file, so that a kill at any moment leaves a whole checkpoint: the new one or the old one. Nothing is pickled.
"""

import json
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from naysay import files
from naysay.errors import InputError

NAME = "checkpoint.safetensors"


def write(folder: Path, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
    """Write `tensors` and the JSON `record` as the folder's checkpoint, in place of any earlier one."""
    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    files.replace(folder / NAME, save(ready, {"record": json.dumps(record)}))


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of the folder's checkpoint, or None where there is none."""
    if not (folder / NAME).exists():
        return None
    with safe_open(folder / NAME, "pt") as file:
        metadata = file.metadata() or {}
    if "record" not in metadata:
        raise InputError(
            f"{folder / NAME} is not a checkpoint of naysay: its header has no record. Remove it or give another "
            "folder."
        )
    record: dict[str, Any] = json.loads(metadata["record"])
    return record


def read_into(folder: Path, tensors: dict[str, Tensor]) -> None:
    """Copy the checkpoint's tensors into `tensors`, in place; both must have the same names and shapes."""
    with safe_open(folder / NAME, "pt") as file:
        found, wanted = set(file.keys()), set(tensors)
        if found != wanted:
            odd = sorted(found ^ wanted)[0]
            raise InputError(
                f"the checkpoint in {folder} is of another network ({odd} is in one of them only). Give another folder."
            )
        for name, tensor in tensors.items():
            tensor.detach().copy_(file.get_tensor(name))
