"""What can be counted in the labels alone: how many items have how many labels, and which classes are named how often.

Uneven marginals do not prove biased naming. If every wrong class is named equally often, a class with the share pi_k of
the items is named with the share (1 - pi_k) / (K - 1): the rare classes are named more. Turned round, even naming
implies class shares pi_k = 1 - (K - 1) m_k for marginals m_k. It also sets a ceiling: no class can be named more than 1
/ (K - 1), whatever the class shares, so a class above it is named with bias, and no imbalance explains it away.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay.audit.shares import Counts, Fit, Share, at_least, fit, percent, share, size
from naysay.errors import InputError

MOST_LABELS = 64  # a row whose weights are no multiples of 1/1 ... 1/64 is no set of labels but a soft one
# how far a weight times the number of labels may lie from a whole number: labels.validate's own tolerance on row sums
WHOLE = 1e-3
BLOCK = 65_536  # rows looked at together, so that a million need little memory
LISTED = 10  # items named as examples
ALPHA = 0.01  # a class is called above the ceiling at this level, shared among the K classes (Bonferroni)

LabelCounts = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Given:
    """The labels as they were given: `comp` (n, K), how often each item names each class, and what items and classes
    are called.
    """

    comp: Tensor
    counts: LabelCounts  # (n, K)
    classes: tuple[str, ...]
    items: Sequence[Any] | None  # None: their row numbers

    def names(self, rows: Counts, limit: int = LISTED) -> tuple[str, ...]:
        """What the first `limit` of the rows are called."""
        return tuple(str(row if self.items is None else self.items[row]) for row in rows[:limit].tolist())

    def take(self, rows: Counts) -> "Given":
        """These rows only, under their own names."""
        items = rows.tolist() if self.items is None else [self.items[row] for row in rows]
        return Given(self.comp[torch.from_numpy(rows)], self.counts[rows], self.classes, items)


@dataclass(frozen=True)
class Coverage:
    """How many items have how many labels. `by_labels[m]` counts the items with m labels, the last entry those with as
    many or more.
    """

    items: int
    classes: int
    labels: int
    unlabelled: Share
    by_labels: tuple[int, ...]
    mean: float  # labels per labelled item
    most: int
    most_items: tuple[str, ...]  # items with the most labels, where others have fewer
    solved: int  # items of which all classes but one are named: that one is their class
    contradicting: int  # items of which every class is named
    contradicting_items: tuple[str, ...]


@dataclass(frozen=True)
class ClassCount:
    """One class: how often it is named, and the share of the items it would have if naming were even (below 0: naming
    is not).
    """

    name: str
    named: Share
    implied_share: float
    above_ceiling: bool


@dataclass(frozen=True)
class Marginals:
    """How often the classes are named, against 1/K each; `ceiling` is 1 / (K - 1), see above."""

    classes: tuple[ClassCount, ...]
    uniform: Fit
    ceiling: float
    meaning: str


def label_counts(comp: Tensor) -> LabelCounts:
    """How often each class is named in each row, (n, K) whole numbers, from rows that weigh m labels 1/m each.

    The smallest numbers that fit: a row that names two classes twice each counts as two labels.
    """
    weights = comp.detach().cpu().numpy()
    counts = np.zeros(weights.shape, dtype=np.int32)
    for start in range(0, len(weights), BLOCK):
        soft = _whole_numbers(weights[start : start + BLOCK], counts[start : start + BLOCK])
        if len(soft):
            row = start + int(soft[0])
            raise InputError(
                f"an audit needs the labels as they were given, m labels weighing 1/m each; row {row} of comp is soft "
                f"({', '.join(f'{w:.3g}' for w in weights[row][:5])} ...). Audit the labels before augmentation."
            )
    return counts


def _whole_numbers(weights: NDArray[np.floating[Any]], counts: LabelCounts) -> Counts:
    """Fill `counts` (n, K) with the fewest labels that weigh as `weights` (n, K) do; the rows for which there are none."""
    todo = np.flatnonzero(weights.any(1))
    for m in range(1, MOST_LABELS + 1):
        if not len(todo):
            break
        scaled = weights[todo] * m
        whole = np.rint(scaled)
        fits = (np.abs(scaled - whole) <= WHOLE).all(1) & (whole.sum(1) == m)
        counts[todo[fits]] = whole[fits]
        todo = todo[~fits]
    return todo


def coverage(given: Given) -> Coverage:
    """How many items have how many labels."""
    n, n_classes = given.counts.shape
    per_item, named = given.counts.sum(1), (given.counts > 0).sum(1)
    most, labelled = int(per_item.max()), int((per_item > 0).sum())
    contradicting = np.flatnonzero(named == n_classes)
    return Coverage(
        items=n,
        classes=n_classes,
        labels=int(per_item.sum()),
        unlabelled=share(n - labelled, n),
        by_labels=tuple(np.bincount(np.minimum(per_item, LISTED)).tolist()),
        mean=float(per_item.sum() / max(labelled, 1)),
        most=most,
        most_items=given.names(np.flatnonzero(per_item == most)) if most * labelled > per_item.sum() else (),
        solved=int((named == n_classes - 1).sum()),
        contradicting=len(contradicting),
        contradicting_items=given.names(contradicting),
    )


def marginals(given: Given) -> Marginals:
    """How often each class is named, with the test against even marginals."""
    named: Counts = given.counts.sum(0, dtype=np.int64)
    n_classes, total = len(named), int(named.sum())
    ceiling = 1 / (n_classes - 1)
    # the chance of as many namings or more, if the class were named as often as even naming can
    above = at_least(named, np.full(n_classes, total), np.full(n_classes, ceiling)) < ALPHA / n_classes
    rows = tuple(
        ClassCount(name, share(count, total), 1 - count / total / ceiling, bool(high))
        for name, count, high in zip(given.classes, named.tolist(), above, strict=True)
    )
    uniform = fit(named.astype(np.float64), np.full(n_classes, total / n_classes), n_classes - 1)
    return Marginals(rows, uniform, ceiling, _meaning(rows, uniform, ceiling))


def _meaning(rows: Sequence[ClassCount], uniform: Fit, ceiling: float) -> str:
    if uniform.p_value >= ALPHA:
        return "The classes are named about equally often: no more uneven than chance makes them."
    typical = f"a typical class is named {percent(uniform.effect, 0)} more or less often than the mean, a {size(uniform.effect)} effect"
    high = [row.name for row in rows if row.above_ceiling]
    if high:
        return (
            f"The classes are not named equally often: {typical}. Even naming of wrong classes names none of them "
            "more than "
            f"{percent(ceiling)}, whatever the class sizes; {len(high)} of {len(rows)} classes are above that, so the "
            "naming is biased."
        )
    smallest, largest = min(row.implied_share for row in rows), max(row.implied_share for row in rows)
    return (
        f"The classes are not named equally often: {typical}. Biased naming would do that, and so would even naming "
        "of unequal classes: "
        f"their shares would then lie between {percent(max(smallest, 0))} and {percent(largest)}. Judge by what you "
        "know of the classes."
    )
