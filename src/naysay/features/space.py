"""The space in which neighbours are looked up: what counts as near for tables, embeddings and images.

A table's columns have units of their own, so they are standardised; an embedding's directions mean more than its
lengths, so its rows are compared by angle. Images go through an encoder where there is one. Else they are compared by
their pixels, which share a unit already (standardising them blows up the corners: on digits it costs 4 points of the
labels' accuracy), or by the first principal components where pixels are many.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from naysay.errors import InputError, unknown
from naysay.features.extract import Ahead, Cache, extract
from naysay.features.frozen import Frozen, is_encoder
from naysay.features.raw import pca, standardise

SPACES = ("auto", "standardised", "cosine", "pca", "raw")
COMPONENTS = 64  # principal components kept
MANY_PIXELS = 256  # above which images without an encoder are compared by principal components


@dataclass(frozen=True, eq=False)
class Space:
    """Features (n, d), how their rows are compared (a metric of `naysay.neighbors`), and what they are, in words."""

    features: Any
    metric: str
    about: str


def find_space(
    x: Any,
    how: str = "auto",
    encoder: str | PathLike[str] | Frozen | None = None,
    *,
    columns: Sequence[str] = (),
    cache: Cache = None,
    ahead: Ahead | None = None,
) -> Space:
    """The space of rows `x` (n, d) or images (n, H, W[, C]): one of `SPACES`.

    "standardised" columns or pixels, "cosine" (rows as they are, by angle), "pca", or "raw"; "auto" chooses, for a
    table by the names of its `columns`: those of one embedding are vector[0], vector[1], ...
    encoder, with "auto": the file of an encoder for images, or of ready-made embeddings, a row for each of x, or an
    encoder that was read; with `cache`, the folder in which what it computes is kept, and `ahead` (as in
    `naysay.features.extract`).
    """
    check_space(how, encoder)
    images = x.ndim > 2
    if encoder is not None:
        if isinstance(encoder, Frozen) or is_encoder(encoder):
            refuse_table(x)
        if isinstance(encoder, Frozen):
            return Space(encoder(x, cache=cache, ahead=ahead), "cosine", f"{_name(encoder)}, by angle")
        return Space(extract(encoder, x, cache=cache, ahead=ahead), "cosine", f"{_name(encoder)}, by angle")
    if how == "auto":
        many = images and x[0].size > MANY_PIXELS and len(x) > COMPONENTS
        how = "pca" if many else "raw" if images else "cosine" if is_embedding(columns) else "standardised"
    flat = x.reshape(len(x), -1)
    what = "pixels" if images else "columns"
    if how == "standardised":
        return Space(standardise(x), "euclidean", f"standardised {what}")
    if how == "pca":
        kept = min(COMPONENTS, flat.shape[1], len(flat))
        return Space(pca(x, kept), "euclidean", f"{kept} principal components of the {what}")
    if how == "cosine":
        return Space(flat, "cosine", f"{what} as they are, by angle")
    return Space(flat, "euclidean", f"{what} as they are")


def check_space(how: str, encoder: str | PathLike[str] | Frozen | None) -> None:
    """Raise InputError where there is no such space, or an encoder leaves nothing to choose."""
    if how not in SPACES:
        raise unknown("space", how, SPACES)
    if encoder is not None and how != "auto":
        angle = f"{_name(encoder)} gives the features, which are compared by angle"
        raise InputError(f'{angle}; space="{how}" is for items as they are. Leave one of the two out.')


def _name(encoder: str | PathLike[str] | Frozen) -> str:
    """What the encoder's file is called."""
    return encoder.name if isinstance(encoder, Frozen) else Path(encoder).name


def refuse_table(x: Any) -> None:
    """Raise InputError for rows where an encoder needs images."""
    if x.ndim == 2:
        raise InputError(
            "an encoder turns images into features; got a table, whose columns are features already. Leave it out."
        )


def is_embedding(columns: Sequence[str]) -> bool:
    """Whether the columns were one column of lists: vector[0], vector[1], ..."""
    return bool(columns) and all(re.search(r"\[\d+\]$", name) for name in columns)
