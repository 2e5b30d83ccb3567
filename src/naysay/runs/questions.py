"""What to ask next: of which items, "is it k?", so that the answers tell most about what the items are.

How much an answer tells. Let Y be an item's class with the probabilities p, and A the answer to "is it k?", which Y
decides. What A tells of Y is their mutual information I(Y; A) = H(A) - H(A | Y) = H(A), since H(A | Y) = 0: the binary
entropy h(p_k) = -p_k log2 p_k - (1 - p_k) log2(1 - p_k), at most one bit, where p_k is a half (Lindley 1956; MacKay
1992). An answer that is wrong with the chance e, whatever Y, tells h(p_k (1 - e) + (1 - p_k) e) - h(e): less, in the
same order, so no error rate is needed to choose. What is known already is not asked: the classes that an item is said
not to be have the probability 0, and the others what the model gives them, scaled to 1.

A batch. The most telling questions may be a hundred times the same one, about copies of one doubtful item, or about one
pair of classes. So an item is asked about once, no class is asked about more than twice as often as all alike would be,
and an item is passed over that lies close to one that is asked about; only then, if questions are still wanted, these
too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay import neighbors
from naysay.features import find_space
from naysay.statistics import Counts, Floats

CANDIDATES = 20  # times the questions wanted: so many of the most telling items are looked at
MOST = 5000  # of them
NEAR = 10  # other candidates that a question about a typical item stands for


@dataclass(frozen=True, eq=False)
class Questions:
    """Whether `rows` (m,) are of `classes` (m,), the `probability` that they are, and the `bits` an answer tells."""

    rows: Counts
    classes: Counts
    probability: Floats
    bits: Floats


def information(p: Any) -> Floats:
    """What the answer to "is it k?" tells of an item's class, in bits, where the class is k with the probability p."""
    p = np.clip(np.asarray(p, dtype=np.float64), 0.0, 1.0)
    logs = (np.log2(np.maximum(part, np.finfo(np.float64).tiny)) for part in (p, 1 - p))
    told: Floats = np.maximum(-(p * next(logs) + (1 - p) * next(logs)), 0.0)
    return told


def given_known(p: Any, known: NDArray[np.bool_]) -> Floats:
    """Probabilities (n, K) of classes without those `known` (n, K) to be wrong; zeros where none is left."""
    left = np.where(known, 0.0, np.asarray(p, dtype=np.float64))
    # of a row whose probability is all on classes that are ruled out, the model knows nothing more
    left = np.where(left.sum(1, keepdims=True) > 0, left, ~known)
    scaled: Floats = left / np.maximum(left.sum(1, keepdims=True), np.finfo(np.float64).tiny)
    return scaled


def choose(p: Any, known: NDArray[np.bool_], x: Any, n: int) -> Questions:
    """The n most telling questions, fewer where there are none left, of items x with class probabilities p (n, K)."""
    p = given_known(p, known)
    bits = information(p)  # of a class that is ruled out, or of the only one left, none
    asked = bits.argmax(1)
    best = bits[np.arange(len(bits)), asked]
    order = np.argsort(-best, kind="stable")
    order = order[best[order] > 0][: max(2 * n, min(CANDIDATES * n, MOST))]
    alike = _alike(x, order)
    most, times = -(-2 * n // bits.shape[1]), np.zeros(bits.shape[1], dtype=np.int64)
    stood_for, chosen, passed_over = np.zeros(len(order), dtype=bool), [], []
    for at, k in enumerate(asked[order].tolist()):
        if stood_for[at] or times[k] >= most:
            passed_over.append(at)
            continue
        chosen.append(at)
        times[k] += 1
        stood_for |= alike(at)
        if len(chosen) == n:
            break
    rows = order[sorted([*chosen, *passed_over[: n - len(chosen)]])]
    return Questions(rows, asked[rows], p[rows, asked[rows]], best[rows])


def _alike(x: Any, rows: Counts) -> Callable[[int], NDArray[np.bool_]]:
    """Which of the rows lie as close to one of them, by its place, as the near neighbours of a typical one do."""
    if len(rows) <= NEAR:
        return lambda at: np.zeros(len(rows), dtype=bool)
    space = find_space(np.asarray(x[rows]))
    features = np.asarray(space.features, dtype=np.float32).reshape(len(rows), -1)
    if space.metric == "cosine":
        features = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    typical = float(np.median(neighbors.build(features, NEAR).distances[:, -1].cpu().numpy()))
    return lambda at: np.square(features - features[at]).sum(1) <= typical
