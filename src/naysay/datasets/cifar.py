"""CIFAR-10 and CIFAR-100 as published for Python: a tar.gz of pickled batches, read in memory without unpacking to
disk.

A batch is a dict with `data` (n, 3072), each row red, green, blue planes of 32 x 32, and its labels. Source:
https://www.cs.toronto.edu/~kriz/cifar.html. CIFAR-20 is CIFAR-100's images under 20 superclasses, of which two maps are
in use: the published one, and that of CLCIFAR20 and ACLCIFAR20, which counts the streetcar (fine class 81) with the
transportation vehicles (18), not with the others (19). Public code mixes them between training and test; here they are
two sets.
"""

import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from naysay.datasets import unpickle
from naysay.datasets.dataset import Array
from naysay.errors import InputError

STREETCAR, TRANSPORTATION = 81, 18


def decode_10(archive: Path) -> dict[str, Array]:
    """CIFAR-10, in the order of its batches."""
    train = [f"data_batch_{i}" for i in range(1, 6)]
    batches = _batches(archive, [*train, "test_batch"], ["data", "labels"])
    return _arrays([batches[name] for name in train], batches["test_batch"], lambda batch: batch["labels"])


def decode_20(archive: Path) -> dict[str, Array]:
    """CIFAR-100's images under the 20 classes of CLCIFAR20."""
    return _decode_100(
        archive, lambda batch: np.where(batch["fine_labels"] == STREETCAR, TRANSPORTATION, batch["coarse_labels"])
    )


def decode_20_standard(archive: Path) -> dict[str, Array]:
    """CIFAR-100's images under its published 20 superclasses."""
    return _decode_100(archive, lambda batch: batch["coarse_labels"])


def images(rows: Array) -> Array:
    """(n, 3072) rows of colour planes as (n, 32, 32, 3) images."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _decode_100(archive: Path, labels: Any) -> dict[str, Array]:
    batches = _batches(archive, ["train", "test"], ["data", "fine_labels", "coarse_labels"])
    return _arrays([batches["train"]], batches["test"], labels)


def _arrays(train: Sequence[dict[str, Array]], test: dict[str, Array], labels: Any) -> dict[str, Array]:
    return {
        "x_train": np.concatenate([images(batch["data"]) for batch in train]),
        "y_train": np.concatenate([labels(batch) for batch in train]),
        "x_test": images(test["data"]),
        "y_test": labels(test),
    }


def _batches(archive: Path, names: list[str], keys: list[str]) -> dict[str, dict[str, Array]]:
    """The named members of the archive, each as the arrays of its `keys`."""
    found: dict[str, dict[str, Array]] = {}
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:  # in order: a gzip stream cannot be read backwards
                name, file = PurePosixPath(member.name).name, tar.extractfile(member) if member.isfile() else None
                if name in names and file is not None:
                    found[name] = _batch(unpickle.load(file, archive), keys, archive)
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise InputError(f"{archive} cannot be unpacked ({error}). Delete it and load the set again.") from error
    missing = sorted(set(names) - set(found))
    if missing:
        raise InputError(f"{archive} lacks {', '.join(missing)}. Delete it and load the set again.")
    return found


def _batch(content: Any, keys: list[str], archive: Path) -> dict[str, Array]:
    batch = {key: unpickle.array(content[key], archive) for key in keys if isinstance(content, dict) and key in content}
    n = len(batch["data"]) if "data" in batch else 0
    right = {key: (("u", n, 3072) if key == "data" else ("i", n)) for key in keys}
    if {key: (value.dtype.kind, *value.shape) for key, value in batch.items()} != right or batch["data"].itemsize != 1:
        got = {key: f"{value.dtype} {value.shape}" for key, value in batch.items()}
        raise InputError(
            f"{archive} must hold batches of {', '.join(keys)}, data uint8 (n, 3072); got {got}. Delete it and load "
            "again."
        )
    return batch
