"""The space in which labels are shared: what counts as near for tables, embeddings and images.

A table's columns have units of their own, so they are standardised; an embedding's directions mean more than its
lengths, so its rows are compared by angle. Images go through an encoder where there is one. Else they are compared by
their pixels, which share a unit already (standardising them blows up the corners: on digits it costs 4 points of the
labels' accuracy), or by the first principal components where pixels are many.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from naysay.datasets import Items
from naysay.errors import InputError, unknown
from naysay.features import extract, pca, standardise

SPACES = ("auto", "standardised", "cosine", "pca", "raw")
COMPONENTS = 64  # principal components kept
MANY_PIXELS = 256  # above which images without an encoder are compared by principal components


@dataclass(frozen=True, eq=False)
class Space:
    """Features (n, d) float32, how their rows are compared, and what they are, in words."""

    features: Any
    metric: str
    about: str


def find_space(items: Items, how: str = "auto", encoder: str | Path | None = None) -> Space:
    """The space of the items: "standardised" columns or pixels, "cosine" (rows as they are, by angle), "pca" or "raw";
    "auto" chooses.

    encoder: the file of an encoder for images, or of ready-made embeddings, a row for each item (see
    `naysay.features.extract`).
    """
    if how not in SPACES:
        raise unknown("space", how, SPACES)
    images = items.x.ndim > 2
    if encoder is not None:
        if not images and Path(encoder).suffix.lower() == ".safetensors":
            raise InputError(
                "an encoder turns images into features; got a table, whose columns are features already. Leave the "
                "encoder out."
            )
        return Space(extract(encoder, items.x), "cosine", f"{Path(encoder).name}, by angle")
    if how == "auto":
        many = images and items.x[0].size > MANY_PIXELS and len(items.x) > COMPONENTS
        how = "pca" if many else "raw" if images else "cosine" if is_embedding(items) else "standardised"
    flat = items.x.reshape(len(items.x), -1)
    what = "pixels" if images else "columns"
    if how == "standardised":
        return Space(standardise(items.x), "euclidean", f"standardised {what}")
    if how == "pca":
        kept = min(COMPONENTS, flat.shape[1], len(flat))
        return Space(pca(items.x, kept), "euclidean", f"{kept} principal components of the {what}")
    return Space(
        flat,
        "cosine" if how == "cosine" else "euclidean",
        f"{what} as they are" + (", by angle" if how == "cosine" else ""),
    )


def is_embedding(items: Items) -> bool:
    """Whether the columns were one column of lists: vector[0], vector[1], ..."""
    return bool(items.features) and all(re.search(r"\[\d+\]$", name) for name in items.features)
