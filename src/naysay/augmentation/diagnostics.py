"""What augmentation did to the labels, told without the truth: how spread they are, how far they moved, whom they meet.

Entropy is in nats: 0 for one label, log K for a row that says nothing. A row moved by the total variation distance
between its labels before and after: 0 is not at all, 1 is to other classes altogether.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from naysay import labels
from naysay.augmentation.choice import Choice
from naysay.errors import InputError


@dataclass(frozen=True)
class Description:
    """Labels before and after augmentation. Means are over rows that have labels; NaN where no row has.

    unlabelled: rows that had no label before. unreached: rows that have none after.
    """

    rows: int
    classes: int
    unlabelled: int
    unreached: int
    entropy_before: float
    entropy_after: float
    moved_mean: float
    moved_most: float

    def __str__(self) -> str:
        return (
            f"{self.rows} rows, {self.classes} classes\n"
            f"rows without labels: {self.unlabelled} before, {self.unreached} after\n"
            f"mean entropy of a row: {self.entropy_before:.3f} before, {self.entropy_after:.3f} after "
            f"({math.log(self.classes):.3f} would say nothing)\n"
            f"rows moved (total variation): {self.moved_mean:.3f} on average, {self.moved_most:.3f} at most"
        )


@dataclass(frozen=True)
class Report:
    """What `augment` did: its settings as they were used, and what became of the labels.

    neighbors: of each row, 0 where nothing was shared; effective_neighbors: 1 / sum of squared weights, of the median
    row. gamma: None unless the scheme uses it. rounds: those run; change: the largest of an entry in the last. recall:
    the graph's, None if nobody measured it. turned: the part of rows whose least named class the correction by class
    shares or a T changed, None where there was none. whiten: the strength by which features were whitened. choice: how
    settings were chosen, where any was to be.
    """

    scheme: str
    neighbors: int
    effective_neighbors: float
    alpha: float
    gamma: float | None
    rounds: int
    change: float
    recall: float | None
    labels: Description
    turned: float | None = None
    whiten: float | None = None
    choice: Choice | None = None

    def as_dict(self) -> dict[str, Any]:
        """All figures by name, those of the labels under "labels"; the names are those that files have always had.

        What was whitened and chosen stands there only where something was.
        """
        found = {name.replace("neighbors", "neighbours"): value for name, value in asdict(self).items()}
        return {name: value for name, value in found.items() if name not in ("whiten", "choice") or value is not None}

    def __str__(self) -> str:
        by = "" if self.gamma is None else f", gamma {self.gamma:.4g}"
        by += "" if self.whiten is None else f", features whitened by {self.whiten:g}"
        return (
            f"{self.scheme}: {self.neighbors} neighbours ({self.effective_neighbors:.1f} in effect), "
            f"alpha {self.alpha:g}{by}, {self.rounds} rounds (last change {self.change:.1e})\n{self.labels}"
            + ("" if self.turned is None else f"\nrows whose least named class was corrected: {self.turned:.1%}")
            + ("" if self.choice is None else f"\n{self.choice}")
        )


def describe(before: Any, after: Any) -> Description:
    """What became of the labels `before` (n, K) when they turned into `after` (n, K)."""
    before, after = labels.validate(before), labels.validate(after)
    if before.shape != after.shape:
        shapes = f"{tuple(before.shape)} and {tuple(after.shape)}"
        raise InputError(f"before and after must label the same rows and classes; got {shapes}.")
    before, after = before.cpu().double(), after.cpu().double()
    had, has = before.sum(1) > 0, after.sum(1) > 0
    moved = (before - after).abs().sum(1)[had & has] / 2
    return Description(
        rows=before.shape[0],
        classes=before.shape[1],
        unlabelled=int((~had).sum()),
        unreached=int((~has).sum()),
        entropy_before=float(entropy(before)[had].mean()),
        entropy_after=float(entropy(after)[has].mean()),
        moved_mean=float(moved.mean()),
        moved_most=float(moved.max()) if len(moved) else math.nan,
    )


def are_turned(Z: Tensor, corrected: Tensor) -> Tensor:
    """Which rows (n,) have a least named class that was none of their least named ones in Z (n, K)."""
    return Z.gather(1, corrected.argmin(1, keepdim=True))[:, 0] > Z.amin(1)


def merge(told: Sequence[Description]) -> Description:
    """One description of all rows from those of some rows each."""

    def mean(name: str, of: Sequence[int]) -> float:
        terms = [getattr(one, name) * count for one, count in zip(told, of, strict=True) if count]
        return sum(terms) / sum(of) if sum(of) else math.nan

    had, has = [one.rows - one.unlabelled for one in told], [one.rows - one.unreached for one in told]
    return Description(
        rows=sum(one.rows for one in told),
        classes=told[0].classes,
        unlabelled=sum(one.unlabelled for one in told),
        unreached=sum(one.unreached for one in told),
        entropy_before=mean("entropy_before", had),
        entropy_after=mean("entropy_after", has),
        moved_mean=mean("moved_mean", had),  # alpha is above 0: a row that had labels has some
        moved_most=max((one.moved_most for one in told if not math.isnan(one.moved_most)), default=math.nan),
    )


def entropy(comp: Tensor) -> Tensor:
    """The entropy (n,) in nats of the rows of labels (n, K); 0 for an unlabelled row."""
    logarithms: Tensor = torch.special.xlogy(comp, comp)
    return -logarithms.sum(1)
