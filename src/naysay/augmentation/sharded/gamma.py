"""gamma over shards: the same statistic of all rows as on one machine, from one number of each row instead of its k
distances.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from naysay.augmentation import weights
from naysay.neighbors import Graph


def read_spread(path: str) -> Any:
    """The squared distance of a block's rows (b,) to their last neighbour less that to their first."""
    distances = Graph.load(path).distances
    return (distances[:, -1] - distances[:, 0]).numpy()


def auto_gamma(spreads: Sequence[Any], k: int) -> float:
    """`weights.auto_gamma` of all blocks' rows: log k over the median of the last distance less the first."""
    return weights.gamma_of(torch.cat([torch.from_numpy(one) for one in spreads]), k)


def warn_unless_fits(nearest: Any, effective: Any, k: int, gamma: float) -> None:
    """The warning of `augment` where gamma does not suit the distances (n,) to the nearest and the effective neighbours
    (n,).
    """
    if not weights.suits(torch.from_numpy(nearest), torch.from_numpy(effective), k, gamma):
        warnings.warn(
            f"gamma={gamma:g} does not suit these features: most rows listen to their nearest neighbour alone, or to "
            "all alike. "
            "Use gamma='auto', or metric='cosine' for embeddings.",
            stacklevel=4,
        )
