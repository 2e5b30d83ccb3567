"""Counts with their uncertainty: shares with Wilson intervals, and a chi-square test against what was expected.

A test on a million labels finds every deviation "significant", so each comes with its size: `Fit.effect` is Cohen's w,
the root mean square of (observed / expected - 1) over the expected distribution. 0.1 says that a typical class is named
a tenth more or less often than expected; Cohen (1988) calls 0.1 small, 0.3 medium and 0.5 large.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Z95 = 1.959964  # the normal quantile of a two-sided 95 % interval
CEILING_LEVEL = 0.01  # the chance of calling any class named too often that is not
FEWEST_EXPECTED = 1e-9  # cells with no expectation at all take no part in a test
SMALL, MEDIUM, LARGE = 0.1, 0.3, 0.5  # Cohen's words for w

Counts = NDArray[np.int64]
LabelCounts = NDArray[np.int32]  # (n, K): how often each row names each class
Floats = NDArray[np.float64]
Matrix = tuple[tuple[float, ...], ...]  # a matrix as plain numbers


@dataclass(frozen=True)
class Share:
    """`count` out of `of`, a `value` with its 95 % interval (Wilson 1927): honest at 0, at 1 and for small numbers."""

    count: int
    of: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Fit:
    """Counts against an expectation: chi-square on `df` degrees of freedom, and the effect w with its 95 % interval.

    `effect` has the part of chi-square that chance alone gives (df) taken off: it does not grow as labels become few.
    """

    chi2: float
    df: int
    p_value: float
    effect: float
    effect_low: float
    effect_high: float


def share(count: int, of: int) -> Share:
    """The share `count` / `of` with its Wilson interval; of nothing, anything is possible: 0 within [0, 1]."""
    if of == 0:
        return Share(0, 0, 0.0, 0.0, 1.0)
    p, z2 = count / of, Z95**2
    centre = (p + z2 / (2 * of)) / (1 + z2 / of)
    half = Z95 / (1 + z2 / of) * math.sqrt(p * (1 - p) / of + z2 / (4 * of**2))
    # at p = 0 and p = 1 the end is 0 or 1 exactly; rounding would leave 1e-18
    low, high = 0.0 if count == 0 else centre - half, 1.0 if count == of else centre + half
    return Share(count, of, p, max(low, 0.0), min(high, 1.0))


def exact_interval(count: int, of: int) -> tuple[float, float]:
    """The exact 95 % interval of a share `count` / `of` (Clopper and Pearson 1934), which never holds it less often."""
    from scipy.special import betaincinv

    tail = 0.025
    low = 0.0 if count == 0 else float(betaincinv(count, of - count + 1, tail))
    return low, 1.0 if count == of else float(betaincinv(count + 1, of - count, 1 - tail))


def at_least(count: Counts, of: Counts, rate: Floats) -> Floats:
    """The chance (n,) of `count` or more out of `of`, (n,) each, at the given rates: the upper tail of the binomial."""
    from scipy.special import betainc

    # P(X >= c) is the incomplete beta function I_rate(c, of - c + 1)
    tail: Floats = np.where(count > 0, betainc(np.maximum(count, 1), of - np.maximum(count, 1) + 1, rate), 1.0)
    return tail


def above_ceiling(named: Counts) -> NDArray[np.bool_]:
    """Which classes (K,) are named more often than the 1 / (K - 1) that even naming gives at most, whatever the shares.

    By the chance of so many namings or more, at a level shared among the classes (Bonferroni).
    """
    n_classes = len(named)
    chance = at_least(named, np.full(n_classes, named.sum()), np.full(n_classes, 1 / (n_classes - 1)))
    above: NDArray[np.bool_] = chance < CEILING_LEVEL / n_classes
    return above


def as_matrix(numbers: Floats) -> Matrix:
    """A matrix as plain numbers: tuples compare, and are written as JSON."""
    return tuple(tuple(row) for row in numbers.tolist())


def fit(observed: Floats, expected: Floats, df: int) -> Fit:
    """The chi-square test of counts against expected ones of the same shape and sum, where anything is expected."""
    there = expected > FEWEST_EXPECTED
    total = float(expected.sum())
    if df < 1 or total <= 0:
        return Fit(0.0, max(df, 0), 1.0, 0.0, 0.0, 0.0)
    chi2 = float((np.square(observed - expected)[there] / expected[there]).sum())
    return _sized(chi2, df, total)


def by_gain(nats: float, total: float, df: int) -> Fit:
    """The likelihood-ratio test: `total` labels gain so many nats in all under a rival with df parameters more.

    Twice that gain is chi-square by chance, and the effect w is as of counts: a label gains w^2 / 2 nats.
    """
    return _sized(max(2 * nats, 0.0), df, total)


def _sized(chi2: float, df: int, total: float) -> Fit:
    """A chi-square of `total` labels with its size."""
    from scipy.special import chdtrc

    # chi-square has mean df + lam and variance 2 (df + 2 lam): those lam within Z95 deviations solve a quadratic
    excess, reach = chi2 - df, Z95 * math.sqrt(max(4 * (chi2 - df) + 4 * Z95**2 + 2 * df, 0.0))
    low, high = excess + 2 * Z95**2 - reach, excess + 2 * Z95**2 + reach
    effect, effect_low, effect_high = (math.sqrt(max(lam, 0.0) / total) for lam in (excess, low, high))
    return Fit(chi2, df, float(chdtrc(df, chi2)), effect, effect_low, effect_high)


def size(effect: float) -> str:
    """Cohen's word for an effect."""
    if effect < SMALL:
        return "negligible"
    return "small" if effect < MEDIUM else "medium" if effect < LARGE else "large"
