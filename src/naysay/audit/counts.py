"""What can be counted: how many items have how many labels, which classes are named how often, and what is there twice.

Uneven marginals do not prove biased naming. If every wrong class is named equally often, a class with the share pi_k of
the items is named with the share (1 - pi_k) / (K - 1): the rare classes are named more. Turned round, even naming
implies class shares pi_k = 1 - (K - 1) m_k for marginals m_k. It also sets a ceiling: no class can be named more than 1
/ (K - 1), whatever the class shares, so a class above it is named with bias, and no imbalance explains it away.

Copies of an item may name different classes without contradiction; only if together they name every class is something
wrong.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from naysay.statistics import Counts, Fit, LabelCounts, Share, above_ceiling, fit, share, size
from naysay.words import percent

BLOCK = 65_536  # rows read together, so that features may be a memory-mapped file
LISTED = 10  # items named as examples
ALPHA = 0.01  # of the test against even marginals


@dataclass(frozen=True, eq=False)
class Given:
    """The labels as they were given: `comp` (n, K), how often each item names each class, and what all is called."""

    comp: Tensor
    counts: LabelCounts  # (n, K)
    classes: tuple[str, ...]
    items: Sequence[Any] | None  # None: their row numbers

    def names(self, rows: Counts, limit: int = LISTED) -> tuple[str, ...]:
        """What the first `limit` of the rows are called."""
        return tuple(str(row if self.items is None else self.items[row]) for row in rows[:limit].tolist())


@dataclass(frozen=True)
class Coverage:
    """How many items have how many labels: `by_labels[m]` counts those with m, the last entry those with m or more."""

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
    """How often a class is named, and its share of the items if naming were even (below 0: naming is not).

    implied_error: the standard error of that share, by counting.
    """

    name: str
    named: Share
    implied_share: float
    above_ceiling: bool
    implied_error: float = 0.0


@dataclass(frozen=True)
class Marginals:
    """How often the classes are named, against 1/K each; `ceiling` is 1 / (K - 1), see above."""

    classes: tuple[ClassCount, ...]
    uniform: Fit
    ceiling: float
    meaning: str


@dataclass(frozen=True)
class Duplicates:
    """`repeated_labels`: rows of the table that say the same again, `by_whom` if annotators tell them apart, or None.

    `copies`: items beyond the first of each group of items with the same features, None without features;
    `conflicting`: groups that together name every class; `examples`: items of such groups, or else of any.
    """

    repeated_labels: int | None
    by_whom: bool
    groups: int | None
    copies: int | None
    conflicting: int | None
    examples: tuple[tuple[str, ...], ...]


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
    rows = tuple(
        ClassCount(name, share(count, total), 1 - count / total / ceiling, bool(high), _error(count, total) / ceiling)
        for name, count, high in zip(given.classes, named.tolist(), above_ceiling(named), strict=True)
    )
    uniform = fit(named.astype(np.float64), np.full(n_classes, total / n_classes), n_classes - 1)
    return Marginals(rows, uniform, ceiling, _meaning(rows, uniform, ceiling))


def _error(count: int, total: int) -> float:
    """The standard error of count / total; as if one label more were there where it would be 0."""
    p = min(max(count, 1), total - 1) / total if total > 1 else 0.5
    return math.sqrt(p * (1 - p) / max(total, 1))


def _meaning(rows: Sequence[ClassCount], uniform: Fit, ceiling: float) -> str:
    if uniform.p_value >= ALPHA:
        return "The classes are named about equally often: no more uneven than chance makes them."
    uneven = (
        f"The classes are not named equally often: a typical class is named {percent(uniform.effect, 0)} more or less "
        f"often than the mean, a {size(uniform.effect)} effect."
    )
    if high := sum(row.above_ceiling for row in rows):
        return (
            f"{uneven} Even naming of wrong classes names none of them more than {percent(ceiling)}, whatever the "
            f"class sizes; {high} of {len(rows)} classes are above that, so the naming is biased."
        )
    implied = [row.implied_share for row in rows]
    shares = f"their shares would then lie between {percent(max(min(implied), 0))} and {percent(max(implied))}"
    return (
        f"{uneven} Biased naming would do that, and so would even naming of unequal classes: {shares}. Judge by what "
        "you know of the classes."
    )


def duplicates(features: Any, given: Given, repeated: int | None, by_whom: bool) -> Duplicates:
    """The duplicates among features (n, ...), where there are any; `repeated` and `by_whom` are what the table told."""
    if features is None:
        return Duplicates(repeated, by_whom, None, None, None, ())
    _, group, size = np.unique(fingerprints(features), return_inverse=True, return_counts=True)
    rows = np.flatnonzero(size[group] > 1)
    members, number = np.unique(group[rows], return_inverse=True)
    said = given.counts[rows] > 0
    named, alone = np.zeros((len(members), said.shape[1]), dtype=bool), np.zeros(len(members), dtype=bool)
    np.logical_or.at(named, number, said)
    np.logical_or.at(alone, number, said.all(1))
    conflicting = named.all(1) & ~alone  # an item that names every class by itself is counted elsewhere
    shown = np.flatnonzero(conflicting if conflicting.any() else np.ones(len(members), dtype=bool))[:LISTED]
    examples = tuple(given.names(rows[number == g]) for g in shown)
    return Duplicates(repeated, by_whom, len(members), len(rows) - len(members), int(conflicting.sum()), examples)


def fingerprints(features: Any) -> Counts:
    """A 64-bit hash (n,) of each row, equal for equal rows; a false pair among a million has odds of 1 in 10^7."""
    parts = []
    for start in range(0, len(features), BLOCK):
        block = np.asarray(features[start : start + BLOCK])
        if block.dtype.kind == "f":
            block = block + block.dtype.type(0)  # -0.0 becomes 0.0, its equal
        block = np.ascontiguousarray(block).reshape(len(block), -1).view(np.uint8)
        parts.append(b"".join(hashlib.blake2b(row.data, digest_size=8).digest() for row in block))
    return np.frombuffer(b"".join(parts), dtype=np.int64)
