"""What a run does with its labels, beside the settings of training itself; every default with its reason."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from naysay import losses
from naysay.augmentation import schemes
from naysay.augmentation.propagation import check_settings
from naysay.augmentation.schemes import neighbours_for
from naysay.augmentation.weights import check_gamma
from naysay.errors import InputError, unknown
from naysay.features import SPACES
from naysay.models import MODELS
from naysay.training import Config

AUTO = ("none", "dms")  # what is compared when nothing is said: labels as given, and the paper's best scheme
ASSUMPTIONS = ("uniform", "estimated")

ROW_VISITS = 3_000_000  # a few minutes on two cores for a small network, whatever the number of rows
MOST_EPOCHS, FEWEST_EPOCHS = 100, 5
LARGE, LARGE_BATCH = 100_000, 256  # rows from which a larger batch loses nothing and takes half the time


def epochs_within_budget(n_rows: int) -> int:
    """Epochs when none are asked for: as many as keep epochs x rows at 3,000,000, but at least 5 and at most 100."""
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, ROW_VISITS // max(n_rows, 1)))


def batch_size_for(n_rows: int) -> int:
    """The batch size when none is asked for: 64, and 256 from 100,000 rows on."""
    return LARGE_BATCH if n_rows >= LARGE else Config.batch_size


@dataclass(frozen=True)
class Settings:
    """One run. schemes: those that are tried and compared. The settings of sharing are `naysay.augment`'s; gamma is
    read off the distances.

    held_out: the share of the labelled rows by which the schemes are judged. assume: how labels are taken to come about
    by losses and estimates that need to know it, every wrong class alike ("uniform") or as an audit of the training
    rows estimates ("estimated").
    space, encoder: the features in which neighbours are looked up (see `naysay.features.find_space`).
    """

    config: Config = field(default_factory=Config)
    schemes: Sequence[str] = AUTO
    n_neighbors: int | None = None  # None: `neighbours_for`
    alpha: float = 0.1
    gamma: float | str = "auto"
    held_out: float = 0.1
    assume: str = "uniform"
    space: str = "auto"
    encoder: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        for scheme in self.schemes:
            schemes.get(scheme)
        if not self.schemes or len(set(self.schemes)) != len(self.schemes):
            raise InputError(f"schemes must be one or more different schemes; got {', '.join(self.schemes) or 'none'}.")
        losses.get(self.config.loss)
        for kind, name, known in (("model", self.config.model, MODELS), ("space", self.space, SPACES)):
            if name not in known:
                raise unknown(kind, name, known)
        check_settings(self.alpha, None, None)
        check_gamma(self.gamma)
        if self.assume not in ASSUMPTIONS:
            raise unknown("assumption", self.assume, ASSUMPTIONS)
        if not 0 < self.held_out < 1:
            raise InputError(
                f"held_out must be a share between 0 and 1; got {self.held_out}. 0.1 keeps a tenth of the labels for "
                "judging."
            )

    def neighbours(self, scheme: str, n_rows: int, n_classes: int) -> int:
        """How many neighbours a scheme looks at among so many rows."""
        return (
            neighbours_for(scheme, n_rows, n_classes)
            if self.n_neighbors is None
            else max(1, min(self.n_neighbors, n_rows - 1))
        )

    def as_dict(self) -> dict[str, Any]:
        """The settings by name, ready for JSON."""
        return {**dataclasses.asdict(self), "schemes": list(self.schemes), "config": self.config.as_dict()}
