"""What a module is, as text to be hashed: its weights, its layers, their settings, and the code of classes that are not
torch's.

Two modules that say the same of themselves compute the same, as far as their own code goes; functions that this code
calls are not followed. What cannot be told (an object that only has an address, as in "<Thing at 0x7f...>") makes the
whole module one that is not recognised again. A miss costs time, a false hit costs the result: where in doubt, two
modules are different.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from naysay.datasets.dataset import content_hash

# what torch keeps in every module: its parts are told one by one, its mode does not count
MACHINERY = frozenset(vars(nn.Module()))


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
        own = [
            kind
            for kind in type(module).__mro__
            if issubclass(kind, nn.Module) and not kind.__module__.startswith("torch.")
        ]
        yield f"{name} {_tell(type(module))} {[_tell(vars(kind)[key]) for kind in own for key in _functions(kind)]}"
        yield _tell({key: value for key, value in vars(module).items() if key not in MACHINERY})
        yield _tell([list(module._forward_pre_hooks.values()), list(module._forward_hooks.values())])


def _weights(encoder: nn.Module) -> Iterator[str]:
    for name, tensor in (
        *encoder.named_parameters(remove_duplicate=False),
        *encoder.named_buffers(remove_duplicate=False),
    ):
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
            text = _tell(
                [value.__code__, value.__defaults__, *(cell.cell_contents for cell in value.__closure__ or ())]
            )
        case CodeType():
            text = f"{value.co_code!r} {value.co_names} {_tell(value.co_consts)}"
        case _:
            text = repr(value)
            if re.search(r" at 0x[0-9a-f]+", text):
                raise UntoldError(text)
    return text
