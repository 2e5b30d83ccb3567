"""The data folder: one file `<folder>/<name>.npz` per set, read without pickle, checked, and written whole or not.

The folder is the one given, or $NAYSAY_DATA, or the platform's cache folder. Beside the npz files lies `originals/`,
the published files as they were downloaded (or put there by hand); it may be deleted once the npz exists.
"""

import io
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from naysay import files, memory
from naysay.datasets.dataset import KEYS, Array, Dataset, checked_texts, faults, from_arrays
from naysay.errors import InputError

# what numpy and zipfile raise on files that are cut short, altered, or something else altogether
BAD_CONTENT = (
    *(ValueError, EOFError, KeyError, TypeError, RuntimeError, tokenize.TokenError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
UNREADABLE = (OSError, MemoryError, *BAD_CONTENT)
HEADER_BYTES = 1 << 16
HEADERS = {  # how an array begins, and what reads the rest of that
    b"\x93NUMPY\x01\x00": np.lib.format.read_array_header_1_0,
    b"\x93NUMPY\x02\x00": np.lib.format.read_array_header_2_0,
}
FEWER = "Give fewer rows, or features in a .npy file of float32, which is not read at once."
WAY_OUT = "Choose another data folder with data= or $NAYSAY_DATA."


def folder(data: str | os.PathLike[str] | None = None) -> Path:
    """The data folder: `data`, or $NAYSAY_DATA, or the platform's cache folder for naysay. It need not exist yet."""
    if chosen := data or os.environ.get("NAYSAY_DATA"):
        path = Path(chosen).expanduser()
    else:
        import platformdirs

        path = platformdirs.user_cache_path("naysay")
    if path.exists() and not path.is_dir():
        got = f"the file {path}"
        raise InputError(f"the data folder must be a folder; got {got}. Give another with data= or $NAYSAY_DATA.")
    return path


def require_file(path: Path, way_out: str = "Give the path of a file.") -> None:
    """Refuse what is there and no file: opening a pipe would wait for somebody to write into it."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a file. {way_out}")


def plain(array: Array | bytes, path: Path) -> Array:
    """An array of `path` in this machine's byte order, floats in at most 64 bits, as all that follows takes them."""
    if isinstance(array, bytes):  # what numpy makes of a part that does not begin as an array does
        raise ValueError("it holds something else than arrays")
    kind = np.dtype(np.float64) if array.dtype.char == "g" else array.dtype.newbyteorder("=")
    if array.dtype == kind:
        return array
    memory.afford(array.size * kind.itemsize, str(path), FEWER)
    with np.errstate(over="ignore"):  # what 64 bits cannot hold becomes inf, which is then refused
        return array.astype(kind)


def npz_headers(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """The shapes and types of the arrays in an npz file, of which nothing is unpacked but their first bytes."""
    require_file(path)
    found = {}
    with _reading(path), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as file:
                    head = io.BytesIO(file.read(HEADER_BYTES))
                read = HEADERS.get(head.read(8))
                if read is not None:  # what else there may be is refused where it is read
                    shape, _, kind = read(head)
                    found[name.removesuffix(".npy")] = (shape, kind)
    return found


@contextmanager
def _reading(path: Path, way_out: str = "Replace it with a whole copy.") -> Iterator[None]:
    """Around what is read of an npz file: what goes wrong is said in one sentence."""
    try:
        yield
    except InputError:  # which is a ValueError too
        raise
    except UNREADABLE as error:
        raise InputError(f"{path} cannot be read as .npz ({error}). {way_out}") from error


def read_npz(path: Path, way_out: str = "Replace it with a whole copy.") -> dict[str, Array]:
    """All arrays of an npz file; objects in it are refused, never unpickled."""
    require_file(path)
    with _reading(path, way_out):
        with zipfile.ZipFile(path) as archive:  # np.load would take any other file for a single array or a pickle
            names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
            unpacked = sum(member.file_size for member in archive.infolist())
        memory.afford(unpacked, str(path), FEWER)
        with np.load(path, allow_pickle=False) as file:
            return {name: plain(file[name], path) for name in names}


def read(path: Path, name: str, shape: tuple[int, ...] | None = None) -> Dataset:
    """The Dataset in the npz file `path`; `shape` is what one instance of the set must have."""
    way_out = f"Delete it and load {name!r} again, or put a whole copy there."
    arrays = {key: value for key, value in read_npz(path, way_out).items() if key in KEYS}
    if "classes" in arrays and arrays["classes"].dtype.kind == "U":
        checked_texts(arrays["classes"], path)
    for wrong in faults(arrays, shape):
        raise InputError(f"{path} does not hold {name!r}: {wrong}. {way_out}")
    return from_arrays(name, arrays)


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write the npz file `path` in one step: at no moment is there a file of that name that is not whole."""
    with files.replacing(path, WAY_OUT) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
