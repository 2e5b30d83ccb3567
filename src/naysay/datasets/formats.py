"""The known sets as they are published, decoded into arrays.

Digits are scikit-learn's 1,797 of 8 x 8 pixels: Alpaydin and Kaynak, "Optical Recognition of Handwritten Digits", UCI,
1998 (its test part). MNIST and its like are IDX: four gzipped files, each a header (type, number of axes, sizes) and
the bytes; only type 8 (unsigned bytes) occurs. Source: http://yann.lecun.com/exdb/mnist.

CIFAR is a tar.gz of pickled batches, read in memory without unpacking to disk. A batch is a dict with `data` (n, 3072),
each row red, green, blue planes of 32 x 32, and its labels. Source: https://www.cs.toronto.edu/~kriz/cifar.html.
CIFAR-20 is CIFAR-100's images under 20 superclasses, of which two maps are in use: the published one, and that of
CLCIFAR20 and ACLCIFAR20, which counts the streetcar (fine class 81) with the transportation vehicles (18), not with the
others (19). Public code mixes them between training and test; here they are two sets.

CLCIFAR and ACLCIFAR are one pickle each, with complementary labels by people, or by a vision-language model: a dict
with `names`, `images` (32, 32, 3), `ord_labels` and `cl_labels` (three per image: most published numbers use the first
only), for the training images; the test images are CIFAR's own. Sources: https://github.com/ntucllab/CLImage_Dataset
and https://github.com/yahcreepers/PAKDD_ACLImage_Dataset. Neither gives a checksum, so a file must prove itself by what
it says: shapes, ranges, as many images of each class as CIFAR has, and the published share of labels that name the true
class.
"""

import gzip
import math
import struct
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from naysay import memory
from naysay.datasets import unpickle
from naysay.datasets.dataset import Array
from naysay.errors import InputError

CIFAR_100 = ["fine_labels", "coarse_labels"]
STREETCAR, TRANSPORTATION = 81, 18
N_LABELS = 3  # of each image, by CLCIFAR's and ACLCIFAR's annotators
# published rates have two decimals of a percent, and differ between papers by one or two of these
NOISE_TOLERANCE = 0.001
AGAIN = "Delete it and load the set again."
Arrays = dict[str, Array]
Labels = Callable[[Arrays], Array]  # the labels of a batch


def decode_digits() -> Arrays:
    """The digits as uint8 images (n, 8, 8): their 17 levels stretched to 0 to 255, as every other image here has them.

    The split is fixed and stratified: every fifth digit of each class is a test digit, 1,442 for training and 355 not.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x, y = np.rint(bunch.images * (255 / 16)).astype(np.uint8), bunch.target
    test = np.zeros(len(y), bool)
    for k in range(10):
        test[np.flatnonzero(y == k)[4::5]] = True
    return {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test]}


def decode_idx(train_images: Path, train_labels: Path, test_images: Path, test_labels: Path) -> Arrays:
    """Images (n, H, W) and labels (n,) of the four files."""
    paths = {"x_train": train_images, "y_train": train_labels, "x_test": test_images, "y_test": test_labels}
    return {key: read_idx(path) for key, path in paths.items()}


def read_idx(path: Path) -> Array:
    """The bytes in one gzipped IDX file."""
    try:
        with gzip.open(path) as file:
            raw = file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be unpacked ({error}). {AGAIN}") from error
    n_axes = raw[3] if raw[:3] == b"\0\0\x08" and len(raw) > 3 else 0
    header = 4 + 4 * n_axes
    shape = struct.unpack(f">{n_axes}I", raw[4:header]) if n_axes and len(raw) >= header else ()
    if not shape or len(raw) != header + math.prod(shape):
        raise InputError(f"{path} is not a whole IDX file of bytes: {len(raw)} bytes say shape {shape}. {AGAIN}")
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape).copy()


def decode_cifar10(archive: Path) -> Arrays:
    """CIFAR-10, in the order of its batches."""
    train = [f"data_batch_{i}" for i in range(1, 6)]
    return _decode_cifar(archive, train, "test_batch", ["labels"], lambda batch: batch["labels"])


def decode_cifar20(archive: Path) -> Arrays:
    """CIFAR-100's images under the 20 classes of CLCIFAR20."""

    def moved(batch: Arrays) -> Array:
        return np.where(batch["fine_labels"] == STREETCAR, TRANSPORTATION, batch["coarse_labels"])

    return _decode_cifar(archive, ["train"], "test", CIFAR_100, moved)


def decode_cifar20_standard(archive: Path) -> Arrays:
    """CIFAR-100's images under its published 20 superclasses."""
    return _decode_cifar(archive, ["train"], "test", CIFAR_100, lambda batch: batch["coarse_labels"])


def _images(rows: Array) -> Array:
    """(n, 3072) rows of colour planes as (n, 32, 32, 3) images."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _decode_cifar(archive: Path, train: list[str], test: str, keys: list[str], labels: Labels) -> Arrays:
    batches = _batches(archive, [*train, test], ["data", *keys])
    return {
        "x_train": np.concatenate([_images(batches[name]["data"]) for name in train]),
        "y_train": np.concatenate([labels(batches[name]) for name in train]),
        "x_test": _images(batches[test]["data"]),
        "y_test": labels(batches[test]),
    }


def _batches(archive: Path, names: list[str], keys: list[str]) -> dict[str, Arrays]:
    """The named members of the archive, each as the arrays of its `keys`."""
    found: dict[str, Arrays] = {}
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:  # in order: a gzip stream cannot be read backwards
                name, file = PurePosixPath(member.name).name, tar.extractfile(member) if member.isfile() else None
                if name in names and file is not None:
                    memory.afford(2 * member.size, f"{name} of {archive}", AGAIN)
                    found[name] = _batch(unpickle.load(file, archive), keys, archive)
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise InputError(f"{archive} cannot be unpacked ({error}). {AGAIN}") from error
    missing = sorted(set(names) - set(found))
    if missing:
        raise InputError(f"{archive} lacks {', '.join(missing)}. {AGAIN}")
    return found


def _batch(content: Any, keys: list[str], archive: Path) -> Arrays:
    batch = {key: unpickle.array(content[key], archive) for key in keys if isinstance(content, dict) and key in content}
    n = len(batch["data"]) if "data" in batch else 0
    right = {key: (("u", n, 3072) if key == "data" else ("i", n)) for key in keys}
    if {key: (value.dtype.kind, *value.shape) for key, value in batch.items()} != right or batch["data"].itemsize != 1:
        got = {key: f"{value.dtype} {value.shape}" for key, value in batch.items()}
        raise InputError(f"{archive} must hold batches of {', '.join(keys)}, data uint8 (n, 3072); got {got}. {AGAIN}")
    return batch


def decode_annotated(pickled: Path, archive: Path, *, base: Callable[[Path], Arrays], noise: float) -> Arrays:
    """The annotated training set of `pickled` with the test set of CIFAR's `archive`, which `base` decodes."""
    way_out = f"Delete it and load the set again, or put the publisher's {pickled.name} there."
    memory.afford(2 * pickled.stat().st_size, str(pickled), way_out)
    with pickled.open("rb") as file:
        content = unpickle.load(file, pickled)
    if not isinstance(content, dict) or not {"images", "ord_labels", "cl_labels"} <= content.keys():
        raise InputError(f"{pickled} must hold a dict with images, ord_labels and cl_labels; it does not. {way_out}")
    plain = base(archive)
    x, y, comp = (unpickle.array(content[key], pickled) for key in ("images", "ord_labels", "cl_labels"))
    y = y.reshape(-1)  # some write each label as a list of one
    x = _images(x) if x.ndim == 2 and x.shape[1] == 3072 else x
    wrong = _fault(x, y, comp, np.bincount(plain["y_train"]), noise)
    if wrong:
        raise InputError(f"{pickled} is not the published file: {wrong}. {way_out}")
    return {**plain, "x_train": x, "y_train": y, "comp_train": comp[:, :N_LABELS]}


def _fault(x: Array, y: Array, comp: Array, counts: Array, noise: float) -> str | None:
    n, n_classes = int(counts.sum()), len(counts)
    if x.shape != (n, 32, 32, 3) or x.dtype != np.uint8:
        return f"images must be uint8 ({n}, 32, 32, 3); got {x.dtype} {x.shape}"
    numbers = comp.dtype.kind in "iu" and y.dtype.kind in "iu"
    if not numbers or comp.ndim != 2 or len(comp) != n or comp.shape[1] < N_LABELS:
        got = f"{y.dtype} {y.shape} and {comp.dtype} {comp.shape}"
        return f"labels must be class numbers, ({n},) and ({n}, {N_LABELS}); got {got}"
    if min(y.min(), comp.min()) < 0 or max(y.max(), comp.max()) >= n_classes:
        return f"labels must lie between 0 and {n_classes - 1}"
    if not np.array_equal(np.bincount(y, minlength=n_classes), counts):
        return f"its classes have {np.bincount(y).tolist()} images, CIFAR's {counts.tolist()}"
    share = float((comp[:, :N_LABELS] == y[:, None]).mean())
    if abs(share - noise) > NOISE_TOLERANCE:
        return f"{share:.2%} of its labels name the true class, where {noise:.2%} are published"
    return None
