"""What one run is asked to do to its rows: the same settings on the same shards give the same result, on however many
workers.
"""

from dataclasses import asdict, dataclass
from typing import Any, get_args

from naysay.augmentation import schemes, weights
from naysay.augmentation.propagation import check_settings
from naysay.errors import InputError, unknown
from naysay.labels import Contradictions
from naysay.neighbors import EXACT_UP_TO, METHODS
from naysay.neighbors.graph import METRICS


@dataclass(frozen=True)
class Settings:
    """The settings of `augment_shards`, checked. rounds None: the scheme's own; n_neighbors None:
    `schemes.neighbours_for`.
    """

    scheme: str = "dms"
    n_neighbors: int | None = 64
    alpha: float = 0.1
    gamma: float | str = 1.0
    rounds: int | None = None
    method: str = "auto"
    metric: str = "euclidean"
    tol: float | None = None
    contradictions: Contradictions = "raise"
    n_classes: int | None = None
    classes: tuple[str, ...] | None = None
    nlist: int | None = None
    nprobe: int | None = None
    block_rows: int | None = None

    def __post_init__(self) -> None:
        schemes.get(self.scheme)
        check_settings(self.alpha, self.rounds, self.tol)
        weights.check_gamma(self.gamma)
        choices = (("method", METHODS), ("metric", METRICS), ("contradictions", get_args(Contradictions)))
        for name, known in choices:
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)
        check_whole(n_neighbors=self.n_neighbors, nlist=self.nlist, nprobe=self.nprobe, block_rows=self.block_rows)

    @property
    def total(self) -> int:
        """How many rounds labels travel, at most; 0 where nothing is shared."""
        row = schemes.get(self.scheme)
        return 0 if row.weights is None else row.rounds if self.rounds is None else int(self.rounds)

    @property
    def by_rank(self) -> bool:
        """Whether neighbours weigh by rank, and not by distance."""
        return schemes.get(self.scheme).weights == "rank"

    def search_method(self, n: int) -> str:
        """How the neighbours of n rows are found: "exact" or "approximate"."""
        return self.method if self.method != "auto" else "exact" if n <= EXACT_UP_TO else "approximate"

    def neighbours(self, n: int, n_classes: int) -> int:
        """How many neighbours each of n rows shares with."""
        return schemes.neighbours_for(self.scheme, n, n_classes) if self.n_neighbors is None else int(self.n_neighbors)

    def as_dict(self) -> dict[str, Any]:
        """The settings by name, ready for JSON."""
        return asdict(self)


def check_whole(**numbers: int | None) -> None:
    """Raise InputError unless each number that is given is whole and at least 1."""
    for name, value in numbers.items():
        if value is not None and (isinstance(value, bool) or int(value) != value or value < 1):
            raise InputError(f"{name} must be a whole number of at least 1; got {value!r}.")
