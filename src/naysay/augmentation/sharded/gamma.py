"""gamma over shards: the same statistic of all rows as on one machine, from two numbers of each row instead of its k distances."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from naysay.augmentation import weights
from naysay.neighbors import Graph


def read_ends(path: str) -> tuple[Any, Any]:
    """The squared distances (b,) of a block's rows to their first and to their last neighbour."""
    distances = Graph.load(path).distances
    return distances[:, 0].numpy().copy(), distances[:, -1].numpy().copy()


def auto_gamma(ends: Sequence[tuple[Any, Any]], k: int) -> float:
    """`weights.auto_gamma` of all blocks' rows: log k over the median of the last distance less the first."""
    return weights.gamma_of(torch.cat([torch.from_numpy(furthest - nearest) for nearest, furthest in ends]), k)


def warn_unless_fits(nearest: Any, effective: Any, k: int, gamma: float) -> None:
    """The warning of `augment` where gamma does not suit the distances (n,) to the nearest and the effective neighbours (n,)."""
    if not weights.suits(torch.from_numpy(nearest), torch.from_numpy(effective), k, gamma):
        warnings.warn(
            f"gamma={gamma:g} does not suit these features: most rows listen to their nearest neighbour alone, or to all alike. "
            "Use gamma='auto', or metric='cosine' for embeddings.",
            stacklevel=4,
        )
