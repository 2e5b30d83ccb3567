"""The sharing schemes of Algorithm 1 as a table: how a neighbour is weighed, and how many rounds labels travel.

The names are the paper's (arXiv 2305.08344): Ranking- or Distance-based weights, Single- or Multi-step sharing.
To add a scheme, add a row here and, where it weighs neighbours in a new way, a function in `weights`.
"""

import math
from dataclasses import dataclass
from typing import Literal

from naysay.errors import unknown

NEIGHBOURS, FEWEST_NEIGHBOURS = 64, 8  # the paper's number; and what one label each needs to say anything


@dataclass(frozen=True)
class Scheme:
    """One row: `weights` "rank" is 1/k for the k-th neighbour, "distance" is exp(-gamma * squared distance), None
    shares nothing.
    """

    name: str
    weights: Literal["rank", "distance"] | None
    rounds: int
    summary: str


SCHEMES: dict[str, Scheme] = {
    row.name: row
    for row in (
        Scheme("none", None, 0, "labels as they were given"),
        Scheme("rss", "rank", 1, "ranking-based single-step sharing"),
        Scheme("rms", "rank", 100, "ranking-based multi-step sharing"),
        Scheme("dss", "distance", 1, "distance-based single-step sharing"),
        Scheme("dms", "distance", 100, "distance-based multi-step sharing"),
    )
}


def get(name: str) -> Scheme:
    """The scheme called `name`, in capitals or not."""
    key = str(name).lower()
    if key not in SCHEMES:
        raise unknown("scheme", name, SCHEMES)
    return SCHEMES[key]


def neighbours_for(scheme: str, n_rows: int, n_classes: int) -> int:
    """Neighbours that a row shares with when no number is asked for: the paper's 64, or fewer where classes are small.

    A single step must meet labels of every wrong class among the neighbours: half a class of them. Many steps travel
    far anyway, and a small neighbourhood keeps them inside the class: the square root of a class. On digits (130 a
    class), rms with 64, 16 and 11 neighbours makes the true class the least named in 90.0, 94.6 and 95.1 % of rows; dss
    with the same in 85.6, 52.2 and 34.4 %.
    """
    size = n_rows / n_classes
    wanted = size / 2 if get(scheme).rounds == 1 else math.sqrt(size)
    return int(max(1, min(NEIGHBOURS, n_rows - 1, max(FEWEST_NEIGHBOURS, wanted))))
