"""CIFAR with complementary labels that somebody gave: CLCIFAR by people, ACLCIFAR by a vision-language model (LLaVA).

Each is published as one pickle, a dict with `names`, `images` (32, 32, 3), `ord_labels` and `cl_labels` (three per
image: most published numbers use the first only), for the training images; the test images are CIFAR's own. Sources:
https://github.com/ntucllab/CLImage_Dataset and https://github.com/yahcreepers/PAKDD_ACLImage_Dataset. Neither gives a
checksum, so a file must prove itself by what it says: shapes, ranges, as many images of each class as CIFAR has, and
the published share of labels that name the true class.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from naysay.datasets import cifar, unpickle
from naysay.datasets.dataset import Array
from naysay.errors import InputError

N_LABELS = 3
# published rates have two decimals of a percent, and differ between papers by one or two of these
NOISE_TOLERANCE = 0.001


def decode(pickled: Path, archive: Path, *, base: Callable[[Path], dict[str, Array]], noise: float) -> dict[str, Array]:
    """The annotated training set of `pickled` with the test set of CIFAR's `archive`, which `base` decodes."""
    with pickled.open("rb") as file:
        content = unpickle.load(file, pickled)
    if not isinstance(content, dict) or not {"images", "ord_labels", "cl_labels"} <= content.keys():
        raise InputError(
            f"{pickled} must hold a dict with images, ord_labels and cl_labels; it does not. {_way_out(pickled)}"
        )
    plain = base(archive)
    x, y, comp = (unpickle.array(content[key], pickled) for key in ("images", "ord_labels", "cl_labels"))
    y = y.reshape(-1)  # some write each label as a list of one
    x = cifar.images(x) if x.ndim == 2 and x.shape[1] == 3072 else x
    wrong = _fault(x, y, comp, np.bincount(plain["y_train"]), noise)
    if wrong:
        raise InputError(f"{pickled} is not the published file: {wrong}. {_way_out(pickled)}")
    return {**plain, "x_train": x, "y_train": y, "comp_train": comp[:, :N_LABELS]}


def _fault(x: Array, y: Array, comp: Array, counts: Array, noise: float) -> str | None:
    n, n_classes = int(counts.sum()), len(counts)
    if x.shape != (n, 32, 32, 3) or x.dtype != np.uint8:
        return f"images must be uint8 ({n}, 32, 32, 3); got {x.dtype} {x.shape}"
    if (
        comp.ndim != 2
        or len(comp) != n
        or comp.shape[1] < N_LABELS
        or comp.dtype.kind not in "iu"
        or y.dtype.kind not in "iu"
    ):
        return f"labels must be class numbers, ({n},) and ({n}, {N_LABELS}); got {y.dtype} {y.shape} and {comp.dtype} {comp.shape}"
    if min(y.min(), comp.min()) < 0 or max(y.max(), comp.max()) >= n_classes:
        return f"labels must lie between 0 and {n_classes - 1}"
    if not np.array_equal(np.bincount(y, minlength=n_classes), counts):
        return f"its classes have {np.bincount(y).tolist()} images, CIFAR's {counts.tolist()}"
    share = float((comp[:, :N_LABELS] == y[:, None]).mean())
    if abs(share - noise) > NOISE_TOLERANCE:
        return f"{share:.2%} of its labels name the true class, where {noise:.2%} are published"
    return None


def _way_out(path: Path) -> str:
    return f"Delete it and load the set again, or put the publisher's {path.name} there."
