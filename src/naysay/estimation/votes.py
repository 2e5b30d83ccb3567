"""T of each annotator, and T where only some classes were shown: from single votes and their items' posteriors.

An annotator's T is the pooled one, moved by the annotator's own labels: as many pooled labels stand in each row as make
the other half of each annotator's labels likeliest. Where options are known, an annotator is taken to choose among
those shown in proportion to fixed weights (Luce 1959), P(k | y, shown) = T[y, k] / sum of T[y, shown]; T is then what
would be named if all classes were shown, found by Hunter's iteration (2004).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.errors import InputError
from naysay.statistics import Counts, Floats, Matrix, as_matrix

STRENGTHS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 1e5)  # pooled labels in each row, of which one is chosen
STEPS = 200
EMPTY = 0.5


@dataclass(frozen=True, eq=False)
class Votes:
    """Single labels (m,): rows of comp and classes by number, annotators by number (-1: nobody), the options shown.

    `shown` (m, K) is true for the classes that were offered; None where nobody knows.
    """

    item: Counts
    label: Counts
    annotator: Counts | None = None
    shown: NDArray[np.bool_] | None = None

    def check(self, n: int, n_classes: int) -> None:
        """Raise InputError unless the votes are arrays about n rows and so many classes."""
        for name, most in (("item", n), ("label", n_classes)):
            numbers = getattr(self, name)
            whole = isinstance(numbers, np.ndarray) and numbers.ndim == 1 and numbers.dtype.kind in "iu"
            if not whole or (len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < most):
                raise InputError(f"votes must have an array (m,) of whole numbers 0 to {most - 1} as `{name}`.")
        shapes = {"label": (len(self.item),), "annotator": (len(self.item),), "shown": (len(self.item), n_classes)}
        for name, shape in shapes.items():
            got = getattr(self, name)
            if got is not None and np.shape(got) != shape:
                raise InputError(f"votes must have `{name}` of shape {shape}, as `item` has it; got {np.shape(got)}.")

    def among(self, rows: NDArray[Any], n: int) -> "Votes":
        """The votes about these of n rows, whose numbers become their places."""
        place = np.full(n, -1)
        place[rows] = np.arange(len(rows))
        kept = place[self.item] >= 0
        who = None if self.annotator is None else self.annotator[kept]
        return Votes(place[self.item[kept]], self.label[kept], who, None if self.shown is None else self.shown[kept])


@dataclass(frozen=True)
class AnnotatorT:
    """One annotator's T (K, K) with its standard errors, from so many labels."""

    annotator: int
    labels: int
    transition: Matrix
    errors: Matrix


def given_options(P: Floats, votes: Votes, start: Floats) -> Floats:
    """T (K, K) if all classes were shown, from posteriors P (n, K) and votes with options, beginning at `start`."""
    assert votes.shown is not None, "without options there is nothing to undo"
    shown = votes.shown | np.eye(P.shape[1], dtype=bool)[votes.label]  # what was named was there to be named
    if not (shown.sum(1) > 1).any():
        raise InputError("the options shown leave no choice; got one option for every label. Leave options= out.")
    weight, T = P[votes.item], np.maximum(start, 1e-6)
    named = np.zeros_like(T)
    np.add.at(named.T, votes.label, weight)
    sets, which = np.unique(shown, axis=0, return_inverse=True)
    met = np.zeros((len(sets), len(T)))
    np.add.at(met, which.ravel(), weight)
    for _ in range(STEPS):
        offered = (met / np.maximum(T @ sets.T, 1e-12).T).T @ sets  # (K, K): how often k was there, by rivals
        T = (named + EMPTY * start) / (offered + EMPTY)
        T /= T.sum(1, keepdims=True)
    return T


def by_annotator(P: Floats, votes: Votes, pooled: Floats) -> tuple[AnnotatorT, ...]:
    """Each annotator's T, from posteriors P (n, K) and the pooled T (K, K)."""
    if votes.annotator is None:
        return ()
    known = votes.annotator >= 0
    names, who = np.unique(votes.annotator[known], return_inverse=True)
    label, weight, half = votes.label[known], P[votes.item[known]], np.arange(int(known.sum())) % 2
    counts = np.zeros((2, len(names), *pooled.shape))  # by half, annotator, label and class
    np.add.at(counts, (half, who, label), weight)
    counts = counts.swapaxes(2, 3)

    def drawn(counts: Floats, strength: float) -> Floats:
        T: Floats = (counts + strength * pooled) / (counts.sum(-1, keepdims=True) + strength)
        return T

    def likelihood(strength: float) -> float:
        T = drawn(counts[::-1], strength)  # each half is judged by what the other found
        return float(np.log(np.maximum((weight * T[half, who, :, label]).sum(1), 1e-12)).sum())

    best = max(STRENGTHS, key=likelihood)
    found, counts = [], counts.sum(0)
    for at, name in enumerate(names):
        T = drawn(counts[at], best)
        errors = np.sqrt(T * (1 - T) / (counts[at].sum(-1, keepdims=True) + best))
        found.append(AnnotatorT(int(name), round(float(counts[at].sum())), as_matrix(T), as_matrix(errors)))
    return tuple(found)
