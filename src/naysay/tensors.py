"""Tensors as files: safetensors with a JSON description in the header, and a hash of both. Nothing is ever unpickled.

A file appears whole or not at all (`naysay.files`), and the same tensors with the same description are the same bytes.
Checkpoints, models and neighbour graphs are written here; an encoder is plain safetensors with a card beside it, so
that other programs can read it (`naysay.features.encoders`).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from torch import Tensor

from naysay import files
from naysay.errors import InputError


def save(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any], *, format: str, key: str) -> None:
    """Write `tensors` and their description `about` (JSON, under `key` in the header) to `path`."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    told = json.dumps(about, allow_nan=False)
    with files.replacing(path) as unfinished:
        try:
            save_file(ready, unfinished, {"format": format, key: told, "digest": digest(ready, told)})
        except SafetensorError as error:  # its way of saying that the disk is full
            raise InputError(
                f"the disk of {path.parent} has no room for {path.name} ({error}). "
                "Free some space or choose another folder."
            ) from error
        with unfinished.open("rb+") as file:
            _sort_header(file)


def load(
    path: Path, *, format: str, key: str, what: str, way_out: str, before: Sequence[str] = ()
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file and their description; a file that is damaged, altered or of another format is refused.

    before: formats of earlier versions, whose files hold no hash.
    """
    from safetensors import SafetensorError, safe_open

    if path.exists() and not path.is_file():  # a pipe would be waited on for ever
        raise InputError(f"{path} is not a file, and must be a {what} file. {way_out}")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            found = header.get("format")
            if found != format and found not in before:
                raise InputError(f"{path} must be a {what} file ({format}); got format {found!r}. {way_out}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
        if found == format and header["digest"] != digest(tensors, header[key]):
            raise InputError(f"{path} was changed after it was saved: its contents don't match its checksum. {way_out}")
        about = json.loads(header[key])
    except InputError:
        raise
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{path} is not a whole {what} file: {error}. {way_out}") from None
    if not isinstance(about, dict):
        raise InputError(f"{path} is not a whole {what} file: its description is no object. {way_out}")
    return tensors, about


def digest(tensors: Mapping[str, Tensor], told: str) -> str:
    """A hash of the description, and of each tensor's name, shape, type and bytes."""
    total = hashlib.blake2b(told.encode(), digest_size=16)
    for name in sorted(tensors):
        total.update(f"{name} {tuple(tensors[name].shape)} {tensors[name].dtype} ".encode())
        total.update(tensors[name].numpy().reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def fingerprint(*arrays: Any) -> str:
    """A hash of arrays' types, shapes and values, to name data by; None stands for itself."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if array is None:
            total.update(b"none")
            continue
        values = np.ascontiguousarray(array.detach().cpu().numpy() if isinstance(array, Tensor) else array)
        total.update(f"{values.dtype.str}{values.shape}".encode())
        total.update(values.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def _sort_header(file: BinaryIO) -> None:
    """Put the header's metadata in order: safetensors writes it in an order that changes from run to run."""
    size = int.from_bytes(file.read(8), "little")
    header = json.loads(file.read(size))
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    if len(text) > size:
        raise AssertionError(f"a sorted header of {len(text)} bytes cannot take the place of {size}")
    file.seek(8)
    file.write(text.ljust(size))
