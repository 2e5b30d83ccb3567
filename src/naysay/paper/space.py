"""The feature space of a set, in which its labels are shared: a trained encoder's features, or the pixels; rows of
length 1.

Features are computed once for all runs of a process, and kept on disk between processes (`naysay.features.extract`).
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from naysay import datasets, features
from naysay.errors import InputError
from naysay.paper import data
from naysay.paper.data import Place


@dataclass(frozen=True, eq=False)
class Space:
    """Features (n, d) of the training and test images, on the device, and what a record says of the encoder."""

    train: Tensor
    test: Tensor
    encoder: dict[str, Any]


def of(name: str, place: Place) -> Space:
    """The space of the set `name`."""
    return _space(data.row(name).images, data.row(name).encoder, place)


def encoder_file(name: str, place: Place) -> Path:
    """The encoder for the images of the set `name`; an error says how to make it where it is not there."""
    encoder = data.row(name).encoder
    if encoder is None:
        raise InputError(f"there is no encoder for {name}, whose features are its pixels: fine_tune must be false.")
    path = Path(place.weights) / f"{encoder}.safetensors"
    if not (path.is_file() and path.with_suffix(".json").is_file()):
        raise InputError(
            f"the encoder {path} is not there (or its card, {path.with_suffix('.json').name}). Name its folder with "
            "--weights, or make it: "
            f"naysay pretrain {encoder} --out runs/{encoder}, then copy runs/{encoder}/encoder.safetensors and "
            "encoder.json to these names."
        )
    return path


def encoder_card(name: str, place: Place) -> dict[str, Any]:
    """What a record says of the encoder in the set's file."""
    path = encoder_file(name, place)
    return {"name": path.stem, "hash": _hash(path)}


@functools.cache
def _hash(path: Path) -> str:
    return str(features.load_encoder(path)[1]["sha256"])  # loading compares it with the file


@functools.lru_cache(maxsize=4)  # 123 MB each for 60,000 images
def _space(images: str, encoder: str | None, place: Place) -> Space:
    read = data.load(images, place)
    if encoder is None:
        return Space(_pixels(read.x_train), _pixels(read.x_test), {"name": "pixels", "hash": None})
    path, cache = encoder_file(images, place), datasets.data_folder(place.data) / "features"
    train, test = (_unit(torch.from_numpy(features.extract(path, x, cache=cache))) for x in (read.x_train, read.x_test))
    return Space(train, test, encoder_card(images, place))


def _pixels(x: Any) -> Tensor:
    return _unit(torch.from_numpy(x).flatten(1).float())


def _unit(x: Tensor) -> Tensor:
    return torch.nn.functional.normalize(x.to(data.device()), dim=1)
