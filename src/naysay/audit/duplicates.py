"""What is there twice: rows of the table, and items with exactly the same features.

Copies of an item may name different classes without contradiction; only if together they name every class is something
wrong.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from naysay.audit.counts import LISTED, Given
from naysay.audit.shares import Counts

BLOCK = 65_536  # rows read together, so that features may be a memory-mapped file


@dataclass(frozen=True)
class Duplicates:
    """`repeated_labels`: rows of the table that say the same again, None without a table. `by_whom`: whether annotators
    tell rows apart.

    `copies`: items beyond the first of each group of items with the same features, None without features;
    `conflicting`: groups that together name every class; `examples`: items of such groups, or of any where there are
    none.
    """

    repeated_labels: int | None
    by_whom: bool
    groups: int | None
    copies: int | None
    conflicting: int | None
    examples: tuple[tuple[str, ...], ...]


def duplicates(features: Any, given: Given, repeated: int | None, by_whom: bool) -> Duplicates:
    """The duplicates among features (n, ...), where there are any; `repeated` and `by_whom` are what the table told."""
    if features is None:
        return Duplicates(repeated, by_whom, None, None, None, ())
    counts = given.counts
    _, group, size = np.unique(fingerprints(features), return_inverse=True, return_counts=True)
    rows = np.flatnonzero(size[group] > 1)
    members, number = np.unique(group[rows], return_inverse=True)
    named = np.zeros((len(members), counts.shape[1]), dtype=np.int64)
    np.add.at(named, number, counts[rows])
    alone = np.zeros(len(members), dtype=bool)
    np.logical_or.at(alone, number, (counts[rows] > 0).all(1))
    conflicting = (named > 0).all(1) & ~alone  # an item that names every class by itself is counted elsewhere
    shown = np.flatnonzero(conflicting if conflicting.any() else np.ones(len(members), dtype=bool))[:LISTED]
    examples = tuple(given.names(rows[number == g]) for g in shown)
    return Duplicates(repeated, by_whom, len(members), len(rows) - len(members), int(conflicting.sum()), examples)


def fingerprints(features: Any) -> Counts:
    """A 64-bit hash (n,) of each row: equal rows have equal ones, and among a million others a false pair has odds of 1
    in 10^7.
    """
    parts = []
    for start in range(0, len(features), BLOCK):
        block = np.asarray(features[start : start + BLOCK])
        if block.dtype.kind == "f":
            block = block + block.dtype.type(0)  # -0.0 becomes 0.0, its equal
        block = np.ascontiguousarray(block).reshape(len(block), -1).view(np.uint8)
        parts.append(b"".join(hashlib.blake2b(row.data, digest_size=8).digest() for row in block))
    return np.frombuffer(b"".join(parts), dtype=np.int64)
