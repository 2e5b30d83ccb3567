"""How labels are shared: the schemes of Algorithm 1 as a table, and all settings as one record, `Sharing`.

The schemes' names are the paper's (arXiv 2305.08344): Ranking- or Distance-based weights, Single- or Multi-step
sharing. To add a scheme, add a row here and, where it weighs neighbours in a new way, a function in `weights`.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any, Self

from torch import Tensor

from naysay import shares
from naysay.augmentation.propagation import check_settings
from naysay.augmentation.weights import auto_gamma, by_distance, by_rank, without_gaps
from naysay.errors import InputError, unknown
from naysay.neighbors import METHODS
from naysay.neighbors.graph import METRICS, Graph

NEIGHBORS, FEWEST_NEIGHBORS = 64, 8  # the paper's number; and what one label each needs to say anything
BY_ANGLE = 1.0  # gamma, where rows have length 1
TRIED = (4, 8, 16, 32, 64, 128)  # neighbours, where their number is chosen

# from squared distances (n, k), nearest first, and gamma (None unless the scheme uses it) to weights (n, k)
Weigh = Callable[[Tensor, Any], Tensor]


@dataclass(frozen=True)
class Scheme:
    """One row: how neighbours are weighed (None shares nothing), how many rounds labels travel, if gamma matters."""

    name: str
    weigh: Weigh | None
    rounds: int
    summary: str
    uses_gamma: bool = False


def _rank(distances: Tensor, gamma: None) -> Tensor:
    return without_gaps(by_rank(len(distances), distances.shape[1], distances.device), distances)


SCHEMES: dict[str, Scheme] = {
    row.name: row
    for row in (
        Scheme("none", None, 0, "labels as they were given"),
        Scheme("rss", _rank, 1, "ranking-based single-step sharing"),
        Scheme("rms", _rank, 100, "ranking-based multi-step sharing"),
        Scheme("dss", by_distance, 1, "distance-based single-step sharing", uses_gamma=True),
        Scheme("dms", by_distance, 100, "distance-based multi-step sharing", uses_gamma=True),
    )
}


def get(name: str) -> Scheme:
    """The scheme called `name`, in capitals or not."""
    if (key := str(name).lower()) not in SCHEMES:
        raise unknown("scheme", name, SCHEMES)
    return SCHEMES[key]


def neighbors_for(scheme: str, n_rows: int, n_classes: int, *, shares_known: bool = False) -> int:
    """Neighbours that a row shares with when no number is asked for: the paper's 64, or fewer where classes are small.

    A single step must meet labels of every wrong class among the neighbours: half a class of them. Many steps travel
    far anyway, and a small neighbourhood keeps them inside the class: the square root of a class. On digits (130 a
    class), rms with 64, 16 and 11 neighbours makes the true class the least named in 90.0, 94.6 and 95.1 % of rows; dss
    with the same in 85.6, 52.2 and 34.4 %. Where class shares are known and put the labels right, more are the better
    (what is named by other classes' rows is taken out again): 0.6 times the class to the power of 2/3, which is 17 in a
    class of 150, 32 of 400 and 64 of 1,100 (docs/CHOOSING.md has figures).
    """
    size = n_rows / n_classes
    many = 0.6 * size ** (2 / 3) if shares_known else math.sqrt(size)
    wanted = size / 2 if get(scheme).rounds == 1 else max(math.sqrt(size), many)
    return int(max(1, min(NEIGHBORS, n_rows - 1, max(FEWEST_NEIGHBORS, wanted))))


@dataclass(frozen=True)
class Sharing:
    """How labels are shared, checked when it is made; `augment` says what each setting means.

    The defaults are the paper's. n_neighbors None is `neighbors_for` the rows and classes that come; gamma None is 1 by
    angle, and read off the distances, as "auto" is, where a space has a scale of its own; "auto" of n_neighbors, alpha
    and whiten is chosen by hidden labels (`augmentation.choice`).
    """

    scheme: str = "dms"
    n_neighbors: int | str | None = NEIGHBORS
    alpha: float | str = 0.1
    gamma: float | str | None = BY_ANGLE
    rounds: int | None = None
    metric: str = "euclidean"
    method: str = "auto"
    tol: float | None = None
    class_shares: Any = None
    transition: Any = None
    whiten: float | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scheme", get(self.scheme).name)
        # as plain numbers, so that records compare, and are written as JSON; share() checks them against the classes
        for name in ("class_shares", "transition"):
            if (given := getattr(self, name)) is not None and not isinstance(given, str):
                object.__setattr__(self, name, plain(name, given))
        if isinstance(self.class_shares, str):
            shares.read(self.class_shares, 3)
        if isinstance(self.transition, str):
            raise InputError(f"transition must be a matrix T (K, K) or None; got {self.transition!r}.")
        self._check_words()
        check_settings(self.alpha, self.rounds, self.tol)
        if self.gamma not in (None, "auto") and (isinstance(self.gamma, str) or not 0 < self.gamma < math.inf):
            must = 'gamma must be a positive number, or "auto" to take it from the distances'
            raise InputError(f"{must}; got {self.gamma!r}.")
        for name, known in (("method", METHODS), ("metric", METRICS)):
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)

    def _check_words(self) -> None:
        """Raise InputError for what is no number, a word other than "auto", and a strength that does not exist."""
        for name in ("n_neighbors", "alpha", "gamma", "rounds", "tol", "whiten"):
            given = getattr(self, name)
            if not (isinstance(given, Real | str) or (given is None and name != "alpha")):
                raise InputError(f"{name} must be a number; got {given!r}.")
        must = {
            "n_neighbors": 'a whole number of at least 1, None to follow the size of the classes, or "auto"',
            "alpha": 'a number above 0 and at most 1, or "auto"',
            "whiten": 'a strength from 0 (centred) to 1 (wholly whitened), None, or "auto"',
        }
        for name, what in must.items():
            given = getattr(self, name)
            if isinstance(given, str) and given != "auto":
                raise InputError(f"{name} must be {what} to be chosen by hidden labels; got {given!r}.")
        if not isinstance(self.n_neighbors, str):
            check_whole(n_neighbors=self.n_neighbors)
        if not (self.whiten is None or self.whiten == "auto" or 0 <= float(self.whiten) <= 1):
            raise InputError(f"whiten must be {must['whiten']}; got {self.whiten!r}.")

    @property
    def chooses(self) -> bool:
        """Whether neighbours, alpha or the read-out of the features are still to be chosen."""
        return "auto" in (self.n_neighbors, self.alpha, self.whiten)

    @property
    def row(self) -> Scheme:
        return get(self.scheme)

    @property
    def total(self) -> int:
        """How many rounds labels travel, at most; 0 where nothing is shared."""
        return 0 if self.row.weigh is None else self.row.rounds if self.rounds is None else int(self.rounds)

    def neighbors(self, n_rows: int, n_classes: int) -> int:
        """How many neighbours each of so many rows shares with; where that is to be chosen, the most that are tried."""
        if self.n_neighbors == "auto":
            return max(self.tries(n_rows, n_classes))
        known = self.class_shares is not None
        return int(self.n_neighbors or neighbors_for(self.scheme, n_rows, n_classes, shares_known=known))

    def tries(self, n_rows: int, n_classes: int) -> tuple[int, ...]:
        """The numbers of neighbours to choose from, the paper's first, or half a class where classes are small."""
        if self.n_neighbors != "auto":
            return (self.neighbors(n_rows, n_classes),)
        usual = min(NEIGHBORS, max(FEWEST_NEIGHBORS, n_rows // (2 * n_classes)))
        tried = (usual, *(k for k in TRIED if k <= 2 * usual and k != usual))
        return tuple(k for k in tried if k < n_rows) or (max(1, n_rows - 1),)

    def within(self, n_rows: int, n_classes: int) -> Self:
        """The same, with a number of neighbours that so many rows have, unless it is to be chosen."""
        if self.n_neighbors == "auto":
            return self
        return replace(self, n_neighbors=max(1, min(self.neighbors(n_rows, n_classes), n_rows - 1)))

    def gamma_for(self, graph: Graph) -> float:
        """The gamma of weights by the squared distances of a graph.

        By angle the peaked weights of "auto" cost up to 14 points where labels favour some classes (docs/CHOOSING.md).
        """
        if self.gamma is None and graph.metric == "cosine":
            return BY_ANGLE
        return auto_gamma(graph.distances) if self.gamma in (None, "auto") else float(self.gamma)

    @property
    def corrects(self) -> bool:
        """Whether shared labels are corrected (`naysay.shares`), by shares that are known or by a T.

        Labels as given are not: one label alone tells too little to be weighed against its popularity.
        """
        return self.total > 0 and (self.class_shares is not None or self.transition is not None)

    def as_dict(self) -> dict[str, Any]:
        """The settings by name, ready for JSON; those of the correction and of whitening where there is one."""
        seldom = {"class_shares", "transition", "whiten"}
        return {name: value for name, value in asdict(self).items() if name not in seldom or value is not None}


def plain(name: str, numbers: Any) -> Any:
    """An array of numbers as nested tuples."""
    try:
        listed = shares.as_floats(numbers).tolist()
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers; got {numbers!r}.") from None
    return tuple(tuple(row) if isinstance(row, list) else row for row in listed) if isinstance(listed, list) else listed


def check_whole(**numbers: int | None) -> None:
    """Raise InputError unless each number that is given is whole and at least 1."""
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or value % 1 != 0 or value < 1):
            raise InputError(f"{name} must be a whole number of at least 1; got {value!r}.")
