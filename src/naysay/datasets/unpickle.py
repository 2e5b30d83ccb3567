"""Pickles from outside, read without letting them run anything: containers, text, bytes, numbers, arrays of these.

A pickle names the functions that rebuild its objects. Here each of the few names that dumped arrays use stands for a
function of this module; any other name is refused before it is looked up. Not even numpy's own functions are called:
its dtype and ndarray believe flags and sizes they are told, so arrays are rebuilt here, from checked type codes and the
bytes that are really there. Python 2 pickles (CIFAR's) and all protocols up to 5 are read; text and keys come back as
str.
"""

import pickle
import re
from pathlib import Path
from typing import IO, Any

import numpy as np

from naysay.datasets.dataset import Array
from naysay.errors import InputError

# what a malformed pickle makes the interpreter of its opcodes raise
BROKEN = (pickle.PickleError, EOFError, AttributeError, LookupError, TypeError, ValueError, OverflowError, MemoryError)


def load(file: IO[bytes], path: Path) -> Any:
    """The content of the pickle `file`; `path` is named in errors. Arrays in it are read with `array`."""
    try:
        return _Unpickler(file, encoding="latin1").load()
    except BROKEN as error:
        way_out = "Delete it, and get it from its publisher."
        raise InputError(f"{path} holds a pickle that cannot be read ({error}). {way_out}") from error


def array(value: Any, path: Path) -> Array:
    """The numpy array of what `load` gave: an array, or (nested) lists of arrays or numbers of one shape."""
    if isinstance(value, _Array):
        return value.values
    if not isinstance(value, list | tuple):
        return np.asarray(value)
    try:
        return np.array([array(item, path) if isinstance(item, _Array | list | tuple) else item for item in value])
    except ValueError as error:
        way_out = "Delete it and load the set again."
        raise InputError(f"{path} holds lists of different lengths where it should not. {way_out}") from error


class _Dtype:
    """Stands for numpy.dtype: only booleans, numbers and fixed-length text, in either byte order."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not re.fullmatch(r"[biufSU]\d+", _text(code)):
            raise pickle.UnpicklingError(f"it has an array of type {code!r}, which is neither numbers nor text")
        self.plain = np.dtype(_text(code))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = _text(state[1])
        if order in ("<", ">"):
            self.plain = self.plain.newbyteorder("<" if order == "<" else ">")


class _Array:
    """Stands for a numpy array that gets its content in a second step, as pickles before protocol 5 write them."""

    values: Array = np.empty(0)

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        self.values = _from_buffer(raw, dtype, shape, "F" if fortran else "C")


def _from_buffer(raw: Any, dtype: _Dtype, shape: tuple[int, ...], order: Any) -> Array:
    raw = _encode(raw) if isinstance(raw, str) else raw
    return np.frombuffer(raw, dtype.plain).reshape(shape, order="F" if order == "F" else "C")


def _scalar(dtype: _Dtype, raw: Any) -> Any:
    return _from_buffer(raw, dtype, (1,), "C")[0]


def _encode(text: str, _: str = "latin1") -> bytes:
    return text.encode("latin1")


def _text(value: Any) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


ALLOWED = {
    ("numpy", "ndarray"): _Array,  # never called: only handed to _reconstruct
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
    ("_codecs", "encode"): _encode,  # how protocols 0 to 2 write bytes
    ("__builtin__", "bytes"): lambda: b"",  # and how they write none; without arguments, which could ask for any size
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which data has no need of")
        return ALLOWED[module, name]
