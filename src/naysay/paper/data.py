"""The data sets that specs name: images with their truth, and the complementary labels of a run.

The labels are drawn (one uniform label for each image), given by annotators (the first three), or simulated: three
different labels drawn from how people were seen to choose by class. Draws depend on the run's seed alone, through the
streams of `naysay.seeds`. Sets are read once for all runs of a process, and lie on the device that trains.
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from naysay import datasets, labels, transition
from naysay.datasets import CATALOG, Dataset
from naysay.errors import InputError, unknown
from naysay.seeds import stream


@dataclass(frozen=True)
class Row:
    """A name in a spec: which known set has the images, which encoder is made for them (None: pixels), and where labels
    come from.
    """

    name: str
    images: str
    encoder: str | None = None
    annotated: bool = False
    human: str | None = None  # the published matrix that labels are simulated with

    @property
    def n_labels(self) -> int:
        """Labels of each image."""
        return 3 if self.annotated or self.human else 1


SETS: dict[str, Row] = {
    row.name: row
    for row in (
        Row("digits", "digits"),
        Row("mnist", "mnist"),
        Row("fashion-mnist", "fashion-mnist"),
        Row("kmnist", "kmnist"),
        Row("kmnist-partial", "kmnist-partial"),
        Row("cifar10", "cifar10", "cifar10"),
        Row("cifar20", "cifar20", "cifar20"),
        Row("clcifar10", "clcifar10", "cifar10", annotated=True),
        Row("clcifar20", "clcifar20", "cifar20", annotated=True),
        Row("aclcifar10", "aclcifar10", "cifar10", annotated=True),
        Row("aclcifar20", "aclcifar20", "cifar20", annotated=True),
        Row("clcifar10-simulated", "cifar10", "cifar10", human="clcifar10"),
        Row("clcifar20-simulated", "cifar20", "cifar20", human="clcifar20"),
    )
}


@dataclass(frozen=True)
class Place:
    """Where files are: the data folder (None: the usual one), and the folder of encoders."""

    data: str | None = None
    weights: str = "weights"


@dataclass(frozen=True, eq=False)
class Images:
    """A set on the device that trains: images as tensors, the truth beside them."""

    x: Tensor
    y_true: Tensor
    x_test: Tensor
    y_test: Tensor


def row(name: Any) -> Row:
    """The row of SETS called `name`."""
    if name not in SETS:
        raise unknown("dataset of a spec", name, SETS)
    return SETS[str(name)]


def is_here(name: str, place: Place) -> bool:
    """Whether the set can be read without a download."""
    images = row(name).images
    embedded = CATALOG[images].decode is not None and not CATALOG[images].sources
    return embedded or (datasets.data_folder(place.data) / f"{images}.npz").exists()


def lacking(name: str, place: Place) -> str | None:
    """What to do where the set's images cannot be had; None where they can (they are downloaded where they have a
    home).
    """
    if is_here(name, place):
        return None
    try:
        load(name, place)
    except InputError as error:
        return str(error)
    return None


def load(name: str, place: Place) -> Dataset:
    """The set that has the images of `name`."""
    return _read(row(name).images, place.data)


def images(name: str, place: Place) -> Images:
    """Images and truth of the set `name`, on the device."""
    return _on_device(row(name).images, place.data)


def complementary(name: str, seed: int, place: Place) -> Tensor:
    """The labels (n, K) of a run: drawn by its seed, or those that were given."""
    its, data = row(name), load(name, place)
    if its.annotated:
        if data.comp_train is None:
            raise InputError(
                f"{name}.npz in {datasets.data_folder(place.data)} has no annotations (comp_train). Import the "
                "published files: "
                f"naysay data import {name} FILE..."
            )
        return labels.from_indices(data.comp_train[:, : its.n_labels], data.n_classes)
    T = transition.uniform(data.n_classes) if its.human is None else transition.human(its.human)
    return labels.from_indices(transition.sample(data.y_train, T, its.n_labels, seed=seed), data.n_classes)


def training_rows(n: int, n_train: int | str, seed: int) -> Tensor:
    """The numbers of the rows to train on: all, or the first `n_train` of a random order, so that smaller parts lie
    within larger ones.
    """
    if n_train == "all":
        return torch.arange(n)
    if not 1 <= int(n_train) <= n:
        raise InputError(f"n_train must be 1 to {n}, the rows of the set, or all; got {n_train}.")
    return torch.from_numpy(stream(seed, "training rows").permutation(n)[: int(n_train)])


def about(name: str, place: Place, note: str | None) -> dict[str, Any]:
    """What a record says of the data: the hash is of the images and whatever else the file holds."""
    return {"name": name, "hash": load(name, place).fingerprint, "simulated": row(name).human is not None, "note": note}


def device() -> torch.device:
    """Where runs are trained, as `training.one_device` chooses."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@functools.cache
def _read(name: str, data: str | None) -> Dataset:
    return datasets.load(name, None if data is None else Path(data))


@functools.cache
def _on_device(name: str, data: str | None) -> Images:
    read = _read(name, data)
    x, x_test = (torch.from_numpy(part).to(device()) for part in (read.x_train, read.x_test))
    return Images(x, torch.from_numpy(read.y_train), x_test, torch.from_numpy(read.y_test))
