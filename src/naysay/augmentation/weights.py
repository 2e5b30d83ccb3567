"""How much a row listens to each of its neighbours: non-negative weights (n, k) whose rows sum to 1.

Where a row has no neighbour the distance is inf and the weight 0: a row without any sums to 0.

By rank the k-th nearest weighs 1/k; by distance it weighs exp(-gamma * squared distance) (arXiv 2305.08344, Section 4).
The paper's text gives no gamma. 1, on rows of length 1, is our choice for its tables, and a flat one: squared distances
of 64 neighbours differ by a tenth or two there, and all weigh nearly alike. `auto_gamma` suits distances of any scale.
"""

import math
import warnings

import torch
from torch import Tensor

EVEN = 0.99  # of k effective neighbours: the last then weighs 0.7 of the nearest, or more


def by_rank(n: int, k: int, device: torch.device | str = "cpu") -> Tensor:
    """Weights (n, k) float32 proportional to 1, 1/2, ..., 1/k, nearest first, the same in every row."""
    row = 1 / torch.arange(1, k + 1, dtype=torch.float64, device=device)
    return (row / row.sum()).to(torch.float32).expand(n, k).contiguous()


def by_distance(distances: Tensor, gamma: float) -> Tensor:
    """Weights (n, k) float32 proportional to exp(-gamma * distances), from squared distances (n, k).

    Weights are relative to the nearest's: taking its distance away changes no normalised weight and keeps it from
    underflow. So by_distance(d + c) = by_distance(d) for any c, however far away all neighbours are.
    """
    nearest = distances.amin(1, keepdim=True)
    return _summing_to_1(torch.exp(-gamma * (distances - nearest.where(nearest.isfinite(), 0))))


def without_gaps(weights: Tensor, distances: Tensor) -> Tensor:
    """Weights (n, k), and 0 where a distance (n, k) is inf, since there is no neighbour."""
    there = distances.isfinite()
    return weights if bool(there.all()) else _summing_to_1(weights.where(there, 0))


def _summing_to_1(raw: Tensor) -> Tensor:
    sums = raw.sum(1, keepdim=True)
    return raw / sums.where(sums > 0, 1)


def auto_gamma(distances: Tensor) -> float:
    """The gamma at which, in a typical row of squared distances (n, k), the k-th neighbour weighs 1/k of the nearest,
    as ranks have it: log k over the median of the k-th's distance less the nearest's.

    Scaling the features by any number leaves the weights as they are, and so does adding the same to all distances, as
    noise in many dimensions does. Where most rows have k neighbours at one distance it is the median over the other
    rows; where all have, weights are equal whatever gamma is, and 1 is returned.
    """
    return gamma_of(distances[:, -1] - distances[:, 0], distances.shape[1])


def gamma_of(spread: Tensor, k: int) -> float:
    """`auto_gamma`, from the k-th distance less the nearest of each row (n,)."""
    spread = spread[spread.isfinite()]  # a row that lacks a neighbour has none
    typical = float(spread.median()) if len(spread) else 0.0
    if typical == 0 and bool((spread > 0).any()):
        typical = float(spread[spread > 0].median())
    return math.log(k) / typical if typical > 0 and k > 1 else 1.0


def effective_neighbors(weights: Tensor) -> Tensor:
    """How many neighbours each row in effect listens to, (n,): 1 / sum of squared weights, 1 to k, or 0 for none."""
    effective = 1 / weights.square().sum(1)
    return effective.where(effective.isfinite(), 0)


def warn_unless_fits(gamma: float, spread: Tensor, effective: Tensor, k: int, distances: Tensor | None = None) -> None:
    """Warn if the median row in effect hears fewer than two of its k neighbours, or all of them alike.

    spread: the k-th squared distance less the nearest (n,); rows where it is 0 cannot be weighed and do not count.
    distances: all of them, if one process has them, for the warning's words.
    """
    heard = float(effective[spread > 0].median()) if bool((spread > 0).any()) else k / 2
    if min(2.0, k / 2) <= heard <= EVEN * k or k == 1:
        return
    whose = "" if distances is None else f", whose median squared distance is {float(distances.median()):.3g}"
    weighed = f"{heard:.1f} of {k} neighbours in effect"
    even = f"most rows listen to all alike, to {weighed}. gamma='auto' weighs by distance."
    alone = "most rows listen to their nearest neighbour alone. Use gamma='auto', or metric='cosine' for embeddings."
    warnings.warn(
        f"gamma={gamma:g} does not suit these features{whose}: {even if heard > EVEN * k else alone}",
        stacklevel=4,  # of whoever called `augment` or `augment_shards`
    )
