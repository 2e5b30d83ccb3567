"""From how often labels name each class to what an item is, and back: the arithmetic of T that all bases share.

An item of class y gets label k with probability T[y, k]. So probabilities p (n, K) of the classes make labels of the
probabilities q = p T, and a model of the classes is trained on labels by the loss -log (p T)_k ("forward" correction,
Patrini et al. 2017; with a uniform T it is SCL-NL). A model of the labels themselves, such as a forest's, knows q;
`classes_of` finds the p that explains it best: q Tinv where that is a distribution, and never a negative number.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.seeds import stream

Floats = NDArray[np.float64]

STEPS = 50  # of expectation and maximisation in `classes_of`: the likelihood is concave, and then no longer moves much
LARGEST_CONDITION = 1e3  # of T, beyond which its inverse only makes noise of chance
LEAST = 1e-12  # below which a probability counts as none
UNSEEN = 1e-3  # the probability that a model of the labels gives to a class that it has never met
TIE = 1e-6  # by which scores differ that say the same
SLIP = 1e-3  # the probability by which any label may be a slip: one label alone never excludes a class for good


def softmax(scores: Floats) -> Floats:
    """Probabilities (n, K) of scores (n, K)."""
    powers: Floats = np.exp(scores - scores.max(1, keepdims=True))
    shares: Floats = powers / powers.sum(1, keepdims=True)
    return shares


def classes_of(named: Floats, T: Floats) -> Floats:
    """The probabilities p (n, K) of the classes that make sum_k q_k log (p T)_k largest, for q = `named` (n, K).

    Where q Tinv is a distribution it is the answer; elsewhere expectation and maximisation find it, step by step.
    """
    p = np.full((len(named), len(T)), 1 / len(T))
    if np.linalg.cond(T) < LARGEST_CONDITION:
        p = np.linalg.solve(T.T, named.T).T
    outside = (p < 0).any(1) | (np.abs(p @ T - named).max(1) > 1e-9)
    some, q = np.maximum(p[outside], 1e-3), named[outside]
    some /= some.sum(1, keepdims=True)
    for _ in range(STEPS):
        some *= (q / np.maximum(some @ T, LEAST)) @ T.T
        some /= np.maximum(some.sum(1, keepdims=True), LEAST)
    p[outside] = some
    return p


def slope(p: Floats, comp: Floats, T: Floats) -> tuple[Floats, float]:
    """The gradient (n, K) in the scores of the loss sum_k comp_k * -log (p T)_k, and the sum of the loss."""
    named = np.maximum(p @ T, LEAST)
    drawn = p * ((comp / named) @ T.T)
    return p * drawn.sum(1, keepdims=True) - drawn, float(-(comp * np.log(named)).sum())


def own_evidence(counts: Floats, T: Floats) -> Floats:
    """The log likelihood (n, K) of an item's own labels, given how often it got each (n, K), under each class."""
    return counts @ np.log((1 - SLIP) * T + SLIP / len(T)).T


def told_apart(scores: Floats, x: Any) -> Floats:
    """The scores (n, K), of which the best that are equal differ by up to TIE: their order is drawn, row by row.

    A model of few neighbours or trees leaves many classes equal, and the first of them would be everybody's answer. A
    row's draw hangs on the row of x (n, ...), whatever the model takes, and on no other row.
    """
    from scipy.sparse import issparse
    from sklearn.utils import _safe_indexing

    equal = scores >= scores.max(1, keepdims=True) - TIE
    apart = scores.copy()
    for row in np.flatnonzero(equal.sum(1) > 1):
        content = x[row].toarray() if issparse(x) else np.asarray(_safe_indexing(x, [row]))
        drawn = stream(0, f"ties/{content.tolist()}").random(scores.shape[1])
        apart[row] += TIE * np.where(equal[row], drawn, 0.0)
    return apart


def as_floats(values: Any) -> Floats:
    """Numbers as float64, whatever holds them."""
    return np.asarray(values, dtype=np.float64)
