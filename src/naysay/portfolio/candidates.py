"""The table of what is tried: a base in a space, trained on labels as given or shared, and what it costs.

Costs are seconds of one core for one training, told by rows, columns and classes alone: so the same budget always tries
the same, on a fast machine and on a busy one. A row with several settings is one candidate: the held-out labels take
the best of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from naysay import memory
from naysay.bases import Base, Boosting, Forest, Linear, Nearest, Network
from naysay.bases.network import SMALL, TAUGHT
from naysay.bases.through import Floats
from naysay.errors import InputError
from naysay.portfolio.spaces import COMPONENTS

Cost = Callable[[int, int, int], float]  # of rows n, columns d and classes K, in seconds

# beyond it the condition and the inverses of T (K, K) alone take minutes each
MOST_CLASSES = 5000
MATRICES, SQUARES = 16, 12  # numbers (n, K) and (K, K) that are held at once: a candidate's settings, folds and mixture
FEW_CLASSES = 32  # up to so many, T costs nothing beside the rest
STRENGTHS = tuple(Linear(strength) for strength in (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4))


@dataclass(frozen=True)
class Candidate:
    """One row of the table. settings: tried in turn; scheme: how labels are shared first, by neighbours in the space
    `shared_in`; images: whether it is tried on images too; quick: whether it takes part in finding out how
    labels come about.
    """

    name: str
    space: str
    settings: Sequence[Base]
    cost: Cost
    scheme: str = "none"
    shared_in: str = ""
    images: bool = True
    quick: bool = False

    def knowing(self, class_shares: Floats, T_is_stated: bool) -> Self:
        """The same, its networks told how common classes are (K,), and whether T was stated."""
        each = (
            base.knowing(class_shares, T_is_stated) if isinstance(base, Network) else base for base in self.settings
        )
        return replace(self, settings=tuple(each))


def _through(n: int, K: int) -> float:
    """What n rows cost to be taken through T (K, K), and back."""
    return n * K * K * 2e-10 if K > FEW_CLASSES else 0.0


def _linear(n: int, d: int, K: int) -> float:
    return len(STRENGTHS) * (0.005 + 100 * n * (d + 10) * K * 4e-10 + 100 * _through(n, K))


def _nearest(n: int, d: int, K: int) -> float:
    return 3 * (0.01 + n * n * (d + 20) * 2e-11 + n * K * 128 * 1e-8)


def _network(n: int, d: int, K: int) -> float:
    return 0.3 + SMALL.epochs * (n * (d + 60) * 7e-8 + _through(n, K))


def _taught(n: int, d: int, K: int) -> float:
    spaces = 6 * (0.02 + n * n * (d + 256) * 1e-11 + n * 64 * K * 2e-7)  # two to begin with, and four more
    return spaces + 0.3 + TAUGHT.epochs * n * (d + 60) * 9e-8


def _forest(n: int, d: int, K: int) -> float:
    return 100 * (4e-4 + n * math.sqrt(d) * (K + 6) * 1.5e-8) + 50 * _through(n, K)


def _self_trained(n: int, d: int, K: int) -> float:
    return 300 * (4e-4 + n * math.sqrt(d) * (K + 6) * 6e-8) + 50 * _through(n, K)


def _boosting(n: int, d: int, K: int) -> float:
    return 200 * (1e-3 + n * d * (K + 2) * 2e-8 + _through(n, K))


def _few(cost: Cost) -> Cost:
    """The cost on principal components."""
    return lambda n, d, K: cost(n, min(d, COMPONENTS), K)


def _shared(cost: Cost) -> Cost:
    """The cost with sharing."""
    return lambda n, d, K: cost(n, d, K) + 0.1 + n * n * min(d, COMPONENTS) * 2e-11 + n * 64 * K * 2e-7


NETWORK = (Network(),)
NEAREST = (Nearest(16), Nearest(64), Nearest(256))
TAUGHT_NETWORK = (Network(TAUGHT),)
FOREST, SELF_TRAINED, BOOSTING = (Forest(100),), (Forest(100, rounds=2, best=True),), (Boosting(),)

CANDIDATES = (
    Candidate("linear", "standardised", STRENGTHS, _linear, images=False, quick=True),
    Candidate("linear by ranks", "ranks", STRENGTHS, _linear, images=False),
    Candidate("linear by angle", "angle", STRENGTHS, _linear),
    Candidate("linear on components", "components", STRENGTHS, _few(_linear), quick=True),
    Candidate("linear on shared labels", "components", STRENGTHS, _shared(_few(_linear)), "dms", "components"),
    Candidate("neighbours", "standardised", NEAREST, _nearest, images=False),
    Candidate("neighbours by angle", "angle", NEAREST, _nearest),
    Candidate("neighbours on components", "components", NEAREST, _few(_nearest)),
    Candidate("forest", "flat", FOREST, _forest, quick=True),
    Candidate("self-trained forest", "flat", SELF_TRAINED, _self_trained),
    Candidate("boosting", "flat", BOOSTING, _boosting, images=False),
    Candidate("network", "as-given", NETWORK, _network),
    Candidate("network on shared labels", "as-given", NETWORK, _shared(_network), "dms", "components"),
    Candidate(
        "network on labels shared by columns", "as-given", NETWORK, _shared(_network), "dms", "standardised", False
    ),
    Candidate("taught network", "as-given", TAUGHT_NETWORK, _taught, images=False),
)


def check_budget(budget: float) -> None:
    """Raise InputError for a budget that is none."""
    if not (math.isfinite(budget) and budget > 0):
        raise InputError(f"budget must be above 0 seconds; got {budget}. 75 is enough for 2,000 rows.")


def check_classes(n: int, n_classes: int) -> None:
    """Raise InputError where n rows of so many classes are more than the portfolio can hold, or would ever finish."""
    of = f"trying several models on {n:,} rows with {n_classes:,} classes"
    way_out = "Are these classes, or is it another column? Give fewer rows or classes."
    if n_classes > MOST_CLASSES:
        raise InputError(f"{of} would take hours; {MOST_CLASSES:,} classes are the most that it takes. {way_out}")
    memory.afford(8 * n_classes * (MATRICES * n + SQUARES * n_classes), of, way_out)


def affordable(
    budget: float, n: int, d: int, n_classes: int, n_parts: int, images: bool
) -> tuple[list[Candidate], list[Candidate]]:
    """The candidates that can be tried within the budget, in seconds, cheapest first, and those that cannot.

    Each is trained once for each of n_parts, on n rows of d columns, and perhaps once more in the end.
    """

    def cost(row: Candidate) -> float:
        return (n_parts + 1) * row.cost(n, d, n_classes)

    tried: list[Candidate] = []
    left: list[Candidate] = []
    spent = 0.0
    for row in sorted((row for row in CANDIDATES if row.images or not images), key=cost):
        spent += cost(row)
        (tried if spent <= budget or not tried else left).append(row)
    return tried, left
