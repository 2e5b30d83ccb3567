"""The IDX format of the MNIST family: four gzipped files, each a header (type, number of axes, sizes) and the bytes.

Source: http://yann.lecun.com/exdb/mnist; only type 8 (unsigned bytes) occurs.
"""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from naysay.datasets.dataset import Array
from naysay.errors import InputError


def decode(train_images: Path, train_labels: Path, test_images: Path, test_labels: Path) -> dict[str, Array]:
    """Images (n, H, W) and labels (n,) of the four files."""
    return {
        "x_train": read(train_images),
        "y_train": read(train_labels),
        "x_test": read(test_images),
        "y_test": read(test_labels),
    }


def read(path: Path) -> NDArray[np.uint8]:
    """The array in one gzipped IDX file."""
    try:
        with gzip.open(path) as file:
            raw = file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be unpacked ({error}). Delete it and load the set again.") from error
    n_axes = raw[3] if raw[:3] == b"\0\0\x08" and len(raw) > 3 else 0
    header = 4 + 4 * n_axes
    shape = struct.unpack(f">{n_axes}I", raw[4:header]) if n_axes and len(raw) >= header else ()
    if not shape or len(raw) != header + math.prod(shape):
        raise InputError(
            f"{path} is not a whole IDX file of bytes: {len(raw)} bytes say shape {shape}. Delete it and load the set "
            "again."
        )
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape).copy()
