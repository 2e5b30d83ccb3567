"""The data sets that specs name: images with their truth, the complementary labels of a run, and the feature space.

The labels are drawn (one uniform label for each image), given by annotators (the first three), or simulated: three
labels, each drawn on its own from how people were seen to choose by class. Draws depend on the run's seed alone, by the
streams of `naysay.seeds`. The space in which labels are shared is a trained encoder's features, or the pixels; its rows
have length 1. Sets and spaces are made once for all runs of a process, on the device that trains; features are also
kept on disk between processes (`naysay.features.extract`).
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from naysay import datasets, features, labels, transition
from naysay.datasets import CATALOG, Dataset, Entry
from naysay.errors import InputError, unknown
from naysay.seeds import stream


@dataclass(frozen=True)
class Row:
    """A name in a spec: the known set that has the images, the encoder made for them (None: pixels), whose labels."""

    name: str
    images: str
    encoder: str | None = None
    annotated: bool = False
    human: str | None = None  # the published matrix that labels are simulated with

    @property
    def n_labels(self) -> int:
        """Labels of each image."""
        return 3 if self.annotated or self.human else 1

    @property
    def entry(self) -> Entry:
        """What the catalog knows of the images, which need not be there for it."""
        return CATALOG[self.images]


SETS: dict[str, Row] = {
    row.name: row
    for row in (
        Row("digits", "digits"),
        Row("mnist", "mnist"),
        Row("fashion-mnist", "fashion-mnist"),
        Row("kmnist", "kmnist"),
        Row("kmnist-partial", "kmnist-partial"),
        Row("cifar10", "cifar10", "cifar10"),
        Row("cifar10-simsiam", "cifar10", "cifar10-simsiam"),  # the paper's own encoder
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


@dataclass(frozen=True, eq=False)
class Space:
    """Features (n, d) of the training and test images, on the device, and what a record says of the encoder."""

    train: Tensor
    test: Tensor
    encoder: dict[str, Any]


def row(name: Any) -> Row:
    """The row of SETS called `name`."""
    if name not in SETS:
        raise unknown("dataset of a spec", name, SETS)
    return SETS[str(name)]


def is_here(name: str, place: Place) -> bool:
    """Whether the set can be read without a download."""
    its = row(name)
    embedded = its.entry.decode is not None and not its.entry.sources
    return embedded or (datasets.data_folder(place.data) / f"{its.images}.npz").exists()


def lacking(name: str, place: Place) -> str | None:
    """What to do where the images cannot be had; None where they can, by a download where they have a home."""
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


def complementary(name: str, seed: int, place: Place, n_labels: int | None = None) -> Tensor:
    """The labels (n, K) of a run: drawn by its seed, or those that were given; as many as the set has, or `n_labels`.

    Of given labels those from the seed's on are taken where fewer are asked for.
    """
    its, data = row(name), load(name, place)
    n_labels = n_labels or its.n_labels
    if its.annotated:
        if data.comp_train is None:
            raise InputError(
                f"{name}.npz in {datasets.data_folder(place.data)} has no annotations (comp_train). "
                f"Import the published files: naysay data import {name} FILE..."
            )
        first = seed if n_labels < its.n_labels else 0
        if first + n_labels > data.comp_train.shape[1]:
            raise InputError(
                f"{name} has {data.comp_train.shape[1]} labels of each image; got seed {seed}, which takes "
                f"{n_labels} from number {first + 1} on. Give a smaller seed."
            )
        return labels.from_indices(data.comp_train[:, first : first + n_labels], data.n_classes)
    T = transition.uniform(data.n_classes) if its.human is None else transition.human(its.human)
    return labels.from_indices(transition.sample(data.y_train, T, n_labels, seed=seed), data.n_classes)


def training_rows(n: int, n_train: int | str, seed: int) -> Tensor:
    """The rows to train on: all, or the first `n_train` of a random order, so that smaller parts lie within larger."""
    if n_train == "all":
        return torch.arange(n)
    if not 1 <= int(n_train) <= n:
        raise InputError(f"n_train must be 1 to {n}, the rows of the set, or all; got {n_train}.")
    return torch.from_numpy(stream(seed, "training rows").permutation(n)[: int(n_train)])


def space(name: str, place: Place) -> Space:
    """The space in which the labels of the set `name` are shared."""
    return _space(row(name).images, encoder_file(name, place) if row(name).encoder else None, place)


def encoder_file(name: str, place: Place) -> Path:
    """The encoder for the images of the set `name`; an error says how to make it where it is not there."""
    encoder = row(name).encoder
    if encoder is None:
        raise InputError(f"there is no encoder for {name}, whose features are its pixels: fine_tune must be false.")
    path = Path(place.weights) / f"{encoder}.safetensors"
    if not (path.is_file() and path.with_suffix(".json").is_file()):
        raise InputError(
            f"the encoder {path} is not there (or its card, {path.with_suffix('.json').name}). "
            f"Name its folder with --weights, or make it: naysay pretrain {encoder} --out runs/{encoder}, "
            f"then copy runs/{encoder}/encoder.safetensors and encoder.json to these names."
        )
    return path


def encoder_card(name: str, place: Place) -> dict[str, Any]:
    """What a record says of the encoder in the set's file."""
    return _card(encoder_file(name, place))


def about(name: str, place: Place, note: str | None) -> dict[str, Any]:
    """What a record says of the data: the hash is of the images and whatever else the file holds."""
    return {"name": name, "hash": load(name, place).fingerprint, "simulated": row(name).human is not None, "note": note}


def device() -> torch.device:
    """Where runs are trained: on the GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@functools.cache
def _read(name: str, data: str | None) -> Dataset:
    return datasets.load(name, None if data is None else Path(data))


@functools.cache
def _on_device(name: str, data: str | None) -> Images:
    read = _read(name, data)
    x, x_test = (torch.from_numpy(part).to(device()) for part in (read.x_train, read.x_test))
    return Images(x, torch.from_numpy(read.y_train), x_test, torch.from_numpy(read.y_test))


@functools.cache
def _card(path: Path) -> dict[str, Any]:
    # loading compares the hash with the file
    return {"name": path.stem, "hash": str(features.load_encoder(path)[1]["sha256"])}


@functools.lru_cache(maxsize=4)  # 123 MB each for 60,000 images
def _space(images: str, encoder: Path | None, place: Place) -> Space:
    read = load(images, place)
    if encoder is None:
        train, test = (_unit(torch.from_numpy(x).flatten(1).float()) for x in (read.x_train, read.x_test))
        return Space(train, test, {"name": "pixels", "hash": None})
    cache = datasets.data_folder(place.data) / "features"
    network, _ = features.load_encoder(encoder, readout=False)  # the paper's features are the backbone's
    found = (features.extract(network, x, cache=cache, device=device()) for x in (read.x_train, read.x_test))
    train, test = (_unit(torch.from_numpy(part)) for part in found)
    return Space(train, test, _card(encoder))


def _unit(x: Tensor) -> Tensor:
    return torch.nn.functional.normalize(x.to(device()), dim=1)
