"""Kept features: one npz file for each key, with a hash of its own content, and what a module is called in a key.

A file that is cut short, altered, or another key's, counts for nothing and is made again. The folder may be deleted at
any time.

What a module is, as text to be hashed: its weights, its layers, their settings, and the code of classes that are not
torch's. Two modules that say the same of themselves compute the same, as far as their own code goes; functions that
this code calls are not followed. What cannot be told (an object that only has an address, as in "<Thing at 0x7f...>")
makes the whole module one that is not recognised again. A miss costs time, a false hit costs the result: where in
doubt, two modules are different.
"""

import hashlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from naysay.datasets import store
from naysay.datasets.dataset import content_hash
from naysay.errors import InputError

Features = NDArray[Any]  # float32; float64 where that would lose what tells rows apart (`naysay.rounding`)

# what torch keeps in every module: its parts are told one by one, its mode does not count
MACHINERY = frozenset(vars(nn.Module()))


def keep(folder: Path, key: Callable[[], str], compute: Callable[[], Features]) -> Features:
    """The features that `folder` holds under the key; if none, those that `compute` gives, which it then holds."""
    kept = _read(folder, key())
    if kept is None:
        kept = compute()
        # asked again: an encoder may change when it first runs (a counter, a table), and is then what it is after
        _write(folder, key(), kept)
    return kept


def _read(folder: Path, key: str) -> Features | None:
    path = folder / f"{key}.npz"
    if not path.exists():
        return None
    try:
        arrays = store.read_npz(path)
    except InputError:
        arrays = {}
    if set(arrays) != {"features", "hash"} or str(arrays["hash"]) != content_hash({key: arrays["features"]}):
        warnings.warn(f"{path} is not what was written there; its features are computed again.", stacklevel=4)
        return None
    return arrays["features"]


def _write(folder: Path, key: str, features: Features) -> None:
    try:
        store.write(folder / f"{key}.npz", {"features": features, "hash": np.array(content_hash({key: features}))})
    except InputError as error:  # the features are there all the same, and may have taken hours
        way_out = "Give another folder with cache=."
        warnings.warn(f"the features cannot be kept in {folder} ({error.__cause__}). {way_out}", stacklevel=4)


class UntoldError(Exception):
    """Something has no text that stays the same from one run to the next."""


def identity(encoder: nn.Module) -> str:
    """SHA-256 (hex) of what the module is; UntoldError where that cannot be told."""
    encoder = getattr(encoder, "_orig_mod", encoder)  # of a compiled module, what was compiled
    try:
        return _digest(chain(_layers(encoder), _weights(encoder)))
    except RecursionError as error:
        raise UntoldError("something that holds itself") from error


def weights(encoder: nn.Module) -> str:
    """SHA-256 (hex) of the module's parameters and buffers alone."""
    return _digest(_weights(encoder))


def _digest(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def _layers(encoder: nn.Module) -> Iterator[str]:
    for name, module in encoder.named_modules():
        kinds = [kind for kind in type(module).__mro__ if issubclass(kind, nn.Module)]
        own = [kind for kind in kinds if not kind.__module__.startswith("torch.")]
        yield f"{name} {_tell(type(module))} {[_tell(vars(kind)[key]) for kind in own for key in _functions(kind)]}"
        yield _tell({key: value for key, value in vars(module).items() if key not in MACHINERY})
        yield _tell([list(module._forward_pre_hooks.values()), list(module._forward_hooks.values())])


def _weights(encoder: nn.Module) -> Iterator[str]:
    buffers = encoder.named_buffers(remove_duplicate=False)
    for name, tensor in chain(encoder.named_parameters(remove_duplicate=False), buffers):
        yield f"{name} {_tell(tensor)}"


def _functions(kind: type) -> list[str]:
    return sorted(key for key, value in vars(kind).items() if isinstance(value, FunctionType))


def _tell(value: Any) -> str:
    match value:
        case nn.Module() | MethodType():
            raise UntoldError(type(value).__name__)  # a module outside the tree of modules: its weights would go unseen
        case Tensor():
            flat = value.detach().cpu().contiguous().reshape(-1)
            text = f"{value.dtype} {tuple(value.shape)} {content_hash({'': flat.view(torch.uint8).numpy()})}"
        case np.ndarray():
            text = content_hash({"": value})
        case dict():
            text = f"{{{', '.join(f'{_tell(key)}: {_tell(item)}' for key, item in value.items())}}}"
        case list() | tuple():
            text = f"[{', '.join(map(_tell, value))}]"
        case set() | frozenset():
            text = f"[{', '.join(sorted(map(_tell, value)))}]"
        case type() | BuiltinFunctionType():
            text = f"{value.__module__}.{value.__qualname__}"
        case FunctionType():
            held = [cell.cell_contents for cell in value.__closure__ or ()]
            text = _tell([value.__code__, value.__defaults__, *held])
        case CodeType():
            text = f"{value.co_code!r} {value.co_names} {_tell(value.co_consts)}"
        case _:
            text = repr(value)
            if re.search(r" at 0x[0-9a-f]+", text):
                raise UntoldError(text)
    return text
