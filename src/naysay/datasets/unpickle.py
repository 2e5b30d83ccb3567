"""Pickles from outside, read without letting them run anything: lists, dicts, text, bytes, numbers, arrays of these.

A pickle is a small program that names the functions which rebuild its objects. Here it is run by a loop of our own over
the few opcodes that data needs (`pickletools` cuts it into opcodes and their arguments): a name is a value that can be
called and nothing else, it stands for a function of this module, and any other name is refused. Not even numpy's own
functions are called: its dtype and ndarray believe flags and sizes they are told, so arrays are rebuilt here, from
checked type codes and the bytes that are really there. Nothing is taken that the file does not bring: what is stored
under a huge number, refers to itself or multiplies itself costs no more than its bytes. Python 2's binary pickles
(CIFAR's) and all protocols up to 5 are read; text and keys come back as str.
"""

import pickle
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from naysay import memory
from naysay.datasets.dataset import Array
from naysay.errors import InputError

# what a malformed pickle makes the loop over its opcodes raise
BROKEN = (pickle.PickleError, EOFError, AttributeError, LookupError, TypeError, ValueError, OverflowError, MemoryError)
MOST_STEPS = 5_000_000  # opcodes, twice what 50,000 images with their labels need: 20 seconds at most
MOST_NUMBERS = 8_000_000  # in nested lists: what is written as lists is labels
MOST_COPIES = 8  # of the file's bytes
DEEPEST = 6  # lists in lists
# opcodes that bring a value as their argument, and those that stand for one
PLAIN = {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE"}
PLAIN |= {"SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING", "SHORT_BINSTRING"}
PLAIN |= {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"}
FIXED: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}


def load(file: IO[bytes], path: Path) -> Any:
    """The content of the pickle `file`; `path` is named in errors. Arrays in it are read with `array`."""
    try:
        return _run(file.read())
    except BROKEN as error:
        way_out = "Delete it, and get it from its publisher."
        raise InputError(f"{path} holds a pickle that cannot be read ({error}). {way_out}") from error


def array(value: Any, path: Path) -> Array:
    """The numpy array of what `load` gave: an array, or (nested) lists of arrays or numbers of one shape."""
    way_out = "Delete it and load the set again."
    parts, n_bytes = _measure(value, path, way_out, {})
    if parts > MOST_NUMBERS:
        raise InputError(f"{path} holds lists of {parts:,} parts, more than data has need of. {way_out}")
    memory.afford(2 * n_bytes, str(path), way_out)
    try:
        return _stacked(value)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path} holds lists of different lengths where it should not. {way_out}") from error


def _measure(
    value: Any, path: Path, way_out: str, known: dict[int, tuple[int, int]], depth: int = 0
) -> tuple[int, int]:
    """How many parts and bytes `value` has when its lists are written out; `known` holds those of lists seen before."""
    if not isinstance(value, list | tuple):
        if isinstance(value, _Array | np.ndarray):
            return 1, _stacked(value).nbytes
        if not isinstance(value, bool | int | float | np.number | np.bool_):
            raise InputError(f"{path} holds {type(value).__name__} where it should hold numbers. {way_out}")
        return 1, 8
    if depth == DEEPEST:
        raise InputError(f"{path} holds lists in lists, more than {DEEPEST} deep. {way_out}")
    if id(value) not in known:
        parts = [_measure(item, path, way_out, known, depth + 1) for item in value]
        known[id(value)] = 1 + sum(part[0] for part in parts), sum(part[1] for part in parts)
    return known[id(value)]


def _stacked(value: Any) -> Array:
    if isinstance(value, _Array):
        return value.values
    if not isinstance(value, list | tuple):
        return np.asarray(value)
    return np.array([_stacked(item) if isinstance(item, _Array | list | tuple) else item for item in value])


class _Dtype:
    """Stands for numpy.dtype: only booleans, numbers and fixed-length text, in either byte order."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not re.fullmatch(r"[biufSU]\d{1,9}", _text(code)):
            raise pickle.UnpicklingError(f"it has an array of type {code!r}, which is neither numbers nor text")
        self.plain = np.dtype(_text(code))

    def set_state(self, state: tuple[Any, ...]) -> None:
        order = _text(state[1])
        if order in ("<", ">"):
            self.plain = self.plain.newbyteorder("<" if order == "<" else ">")


class _Array:
    """Stands for a numpy array that gets its content in a second step, as pickles before protocol 5 write them."""

    values: Array = np.empty(0)

    def __init__(self, *_: Any) -> None:
        pass

    def set_state(self, state: tuple[Any, ...]) -> None:
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
    if not isinstance(value, str | bytes):
        raise pickle.UnpicklingError(f"it has {type(value).__name__} where a word should be")
    return value.decode("ascii") if isinstance(value, bytes) else value


ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
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


class _Name(NamedTuple):
    """A name of `ALLOWED`: what it stands for is out of the pickle's reach."""

    module: str
    name: str


def _named(module: Any, name: Any) -> _Name:
    if not (isinstance(module, str) and isinstance(name, str) and (module, name) in ALLOWED):
        raise pickle.UnpicklingError(f"it asks for {_text(module)}.{_text(name)}, which data has no need of")
    return _Name(module, name)


def _call(function: Any, arguments: Any) -> Any:
    if type(function) is not _Name or type(arguments) is not tuple:
        raise pickle.UnpicklingError("it calls what is no function")
    return ALLOWED[function](*arguments)


def _build(made: Any, state: Any) -> Any:
    if not isinstance(made, _Array | _Dtype):
        raise pickle.UnpicklingError(f"it changes a {type(made).__name__}")
    made.set_state(state)
    return made


def _weight(made: Any) -> int:
    """The bytes of what a call has made, which may be a copy of what the pickle brings."""
    return len(made) if isinstance(made, bytes) else getattr(getattr(made, "values", made), "nbytes", 0)


def _fill(target: Any, pairs: list[Any]) -> None:
    """Put keys and values, in turns, into a dict; a key is text or a number, whose hash no nesting makes dear."""
    if type(target) is not dict or not all(isinstance(key, str | bytes | int | float) for key in pairs[::2]):
        raise pickle.UnpicklingError("it has a key that is neither text nor a number")
    target.update(zip(pairs[::2], pairs[1::2], strict=True))


def _extend(target: Any, items: list[Any]) -> None:
    if type(target) is not list:
        raise pickle.UnpicklingError("it appends to what is no list")
    target.extend(items)


def _run(program: bytes) -> Any:  # noqa: PLR0912, PLR0915 (a branch per opcode)
    """What the program leaves, as the opcodes of the pickle module's documentation say."""
    stack: list[Any] = []
    marks: list[int] = []  # how high the stack was at each
    memo: dict[Any, Any] = {}

    def to_mark() -> list[Any]:
        mark = marks.pop()
        items, stack[mark:] = stack[mark:], []
        return items

    copied = 0
    for step, (opcode, argument, _) in enumerate(pickletools.genops(program)):
        if step == MOST_STEPS:
            raise pickle.UnpicklingError(f"it has more than {MOST_STEPS:,} steps")
        if copied > MOST_COPIES * len(program):  # each array brings its own bytes
            raise pickle.UnpicklingError("it makes more of its bytes than there are")
        match opcode.name:
            case "PROTO" | "FRAME":
                pass
            case name if name in PLAIN:
                stack.append(argument)
            case name if name in FIXED:
                stack.append(FIXED[name])
            case "BINGET" | "LONG_BINGET" | "GET":
                stack.append(memo[argument])
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "BINPUT" | "LONG_BINPUT" | "PUT":
                memo[argument] = stack[-1]
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                last = [stack.pop() for _ in range(int(opcode.name[-1]))]
                stack.append(tuple(reversed(last)))
            case "MARK":
                marks.append(len(stack))
            case "TUPLE":
                stack.append(tuple(to_mark()))
            case "EMPTY_LIST":
                stack.append([])
            case "LIST":
                stack.append(to_mark())
            case "APPEND":
                item = stack.pop()
                _extend(stack[-1], [item])
            case "APPENDS":
                items = to_mark()
                _extend(stack[-1], items)
            case "EMPTY_DICT":
                stack.append({})
            case "DICT":
                pairs = to_mark()
                stack.append({})
                _fill(stack[-1], pairs)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                _fill(stack[-1], [key, value])
            case "SETITEMS":
                pairs = to_mark()
                _fill(stack[-1], pairs)
            case "GLOBAL":
                stack.append(_named(*str(argument).split(" ", 1)))
            case "STACK_GLOBAL":
                name, module = stack.pop(), stack.pop()
                stack.append(_named(module, name))
            case "REDUCE":
                arguments, function = stack.pop(), stack.pop()
                stack.append(_call(function, arguments))
                copied += _weight(stack[-1])
            case "BUILD":
                state = stack.pop()
                copied += _weight(_build(stack[-1], state))
            case "POP":
                stack.pop()
            case "STOP":
                return stack.pop()
            case name:
                raise pickle.UnpicklingError(f"it has the opcode {name}, which data has no need of")
    raise EOFError("it has no end")
