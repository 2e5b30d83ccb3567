"""A trained encoder that stays as it is, as the way from images to rows: what it makes of them is learned, not pixels.

What a table's columns became is decided once and done to every table to come (`naysay.datasets.recipe`); of images the
encoder is that recipe. So whoever learns its rows keeps the very file with its card, and the hash of what is kept.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from naysay import files
from naysay.features.cache import Features
from naysay.features.encoders import AGAIN, network_of, read_encoder, width_of, with_channels
from naysay.features.extract import Ahead, Cache, extract
from naysay.features.raw import as_numbers

ENCODER = ".safetensors"  # how a file of an encoder ends; other files hold features that are made already


@dataclass(frozen=True, eq=False)
class Frozen:
    """The encoder, its card, and the content of its file, as they were when it was read.

    What is learned are the rows of the network alone: a read-out is for neighbours, and rows that end with it were
    learned 0.2 to 1.9 points worse (docs/FEATURES.md).
    """

    name: str  # of the file
    module: nn.Module
    card: Mapping[str, Any]
    content: bytes

    @classmethod
    def load(cls, path: str | PathLike[str], way_out: str = AGAIN) -> Self:
        """The encoder at `path`, checked against its card; way_out: what to do where it cannot be used."""
        encoder, card, content = read_encoder(path, way_out)
        return cls(Path(path).name, network_of(encoder), card, content)

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the file."""
        return str(self.card["sha256"])

    @property
    def width(self) -> int:
        """How many numbers it gives for an image."""
        return width_of(self.module)

    def __call__(self, images: Any, *, cache: Cache = None, ahead: Ahead | None = None) -> Features:
        """The rows (n, d) of uint8 images (n, H, W[, C]), computed on a GPU where there is one; the rest as `extract`
        has it.
        """
        device = "cuda" if torch.cuda.is_available() else "cpu"
        seen = with_channels(as_numbers(images), self.module)
        return extract(self.module, seen, cache=cache, device=device, ahead=ahead)

    def save(self, path: Path) -> None:
        """Write the file as it was read, and its card beside it."""
        files.replace(path, self.content)
        card = {**self.card, "file": path.name}
        files.replace(path.with_suffix(".json"), (json.dumps(card, indent=2) + "\n").encode())


def is_encoder(path: str | PathLike[str] | None) -> bool:
    """Whether a path is that of an encoder, and not of features that are made already."""
    return path is not None and Path(path).suffix.lower() == ENCODER
