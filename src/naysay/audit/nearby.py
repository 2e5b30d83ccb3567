"""What neighbours say of the labels: an estimate of their noise and their bias that needs no ordinary label.

The idea. Items close in the feature space mostly share their class, and the class that their labels avoid is probably
it. So each item's
*likely class* is the one named least by its neighbours, against how often it is named at all:
argmin_k (k Z_ik + 1/2) / (k m_k + 1/2), for shared labels Z (scheme RMS, which no scale of the features changes),
marginals m and k neighbours; the halves keep a class that is seldom named from winning by default. Z is found with the
item's own labels hidden, and those of a fifth of all items with it (cross-fitting): an item's labels never speak about
themselves.

- Noise: the share of labels that name the item's likely class, P(k = y). Counted on the *clear* half, the half of each
  likely class
  whose lead over the second class is largest, because the likely class is wrong most often elsewhere. Labels named at random have 1 / K.
- Bias: how unevenly the labels of a likely class spread over the other classes; and `transition`, that spread as a
  matrix T.

Which way it errs. If a share w of the clear items has another class than the likely one, and those items' labels name
the likely class at the rate t (1 / (K - 1) for even naming), the expected count is (1 - w) noise + w t. So the estimate
leans high, by w (t - noise), whenever labels are better than random, and cannot be told from features that mix classes;
the interval covers the counting, not w. Measured with a known T, one label each (noise true -> estimated; TV: mean
total variation between rows of the estimated and the true T):

| labels | 1,797 digits, pixels | TV | 20,000 of CIFAR-10, kNN accuracy 82 % | TV |
| --- | --- | --- | --- | --- |
| even | 0 -> 0.001 | 0.03 | 0 -> 0.007 | 0.02 |
| even, 30 % at random | 0.036 -> 0.054 | 0.06 | 0.030 -> 0.038 | 0.03 |
| people's (clcifar10) | 0.048 -> 0.072 | 0.11 | 0.038 -> 0.048 | 0.03 |
| a machine's (aclcifar10) | 0.003 -> 0.012 | 0.11 | 0.003 -> 0.006 | 0.03 |
| strong bias | 0 -> 0.003 | 0.20 | 0 -> 0.010 | 0.26 |

Strong bias hardly ever names a third of the wrong classes: the avoided classes are then many, the likely one is often
wrong, and T is a sketch. That naming is biased is still seen, though as less than it is (0.64 and 0.62 for 0.93), for
mistaken classes mix rows of T.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import neighbors
from naysay.audit.counts import Given, LabelCounts
from naysay.audit.shares import Counts, Fit, Floats, Share, fit, share
from naysay.augmentation.propagation import propagate
from naysay.augmentation.weights import by_rank
from naysay.seeds import stream

NEIGHBORS = 64  # the paper's number
# the paper's alpha; after 30 rounds 0.9^30 = 4 % of the way is left, too little to change which class is least
ALPHA, ROUNDS = 0.1, 30
HIDDEN = 0.2  # the share of items whose labels are hidden together: more costs neighbours, less costs time
CLEAR = 0.5  # the share of each likely class that counts as clear
EMPTY = 0.5  # labels added to each class, observed and expected
FEWEST_PER_CLASS = 10  # labelled items per class, on average, below which neighbours are too few to speak
SUSPECTS = 20  # items listed to be looked at
TOLD = 3.0  # standard errors below chance from which neighbours are taken to say something at all


@dataclass(frozen=True)
class Suspect:
    """An item whose label names its likely class, although its neighbours are clear."""

    item: str
    named: str


@dataclass(frozen=True)
class Neighbourhood:
    """What neighbours say; `rows` labelled items were looked at, of `labelled`, each with `neighbors` neighbours.

    `told` is false where an item's neighbours say nothing about its labels: then noise, bias and transition mean
    nothing. `foresight` is how much more rarely than by chance a label names the likely class: 0 for nothing told, 1
    for never. `noise` is counted on the clear items and `noise_everywhere` on all. `random` is the noise of labels
    named at random, 1 / K. `transition` (K, K): T estimated, for use with the losses that take one.
    """

    rows: int
    labelled: int
    neighbors: int
    clear: int
    told: bool
    foresight: float
    noise: Share
    noise_everywhere: Share
    random: float
    bias: Fit
    transition: tuple[tuple[float, ...], ...]
    class_shares: tuple[float, ...]
    suspects: tuple[Suspect, ...]


def sample_rows(labelled: Counts, sample: int, seed: int) -> Counts:
    """At most `sample` of the row numbers `labelled`, at random, rising."""
    if len(labelled) <= sample:
        return labelled
    return np.sort(stream(seed, "audit sample").choice(labelled, sample, replace=False))


def graph_of(features: Any, metric: str, n_classes: int) -> neighbors.Graph:
    """The graph of rows (n, ...) with `NEIGHBORS` neighbours, or half a class where classes are small: more would be of
    other classes.
    """
    flat = torch.as_tensor(np.ascontiguousarray(features, dtype=np.float32)).flatten(1)
    k = min(NEIGHBORS, max(1, len(flat) // (2 * n_classes)))
    return neighbors.build(flat, k, metric=metric)


def others_say(graph: neighbors.Graph, comp: Tensor, rows: Counts, seed: int) -> Floats:
    """Shared labels Z (len(rows), K) of the rows, each found with its own labels hidden; a row that no label reaches is
    zero.
    """
    folds = max(1, math.ceil(len(rows) / (HIDDEN * graph.n)))
    fold = stream(seed, "audit folds").permutation(len(rows)) % folds
    weights, shared = by_rank(graph.n, graph.k), np.zeros((len(rows), comp.shape[1]))
    for f in range(folds):
        held = torch.from_numpy(rows[fold == f])
        visible = comp.to(torch.float32).index_fill(0, held, 0.0)
        shared[fold == f] = propagate(graph.indices, weights, visible, alpha=ALPHA, rounds=ROUNDS).labels[held].numpy()
    return shared


def likely_classes(shared: Floats, marginal: Floats, k: int) -> tuple[Counts, NDArray[np.bool_]]:
    """Each row's likely class (n,), -1 where no label reaches it, and whether it is clear (n,), from Z (n, K) and
    marginals (K,).
    """
    lift = (k * shared + EMPTY) / (k * marginal + EMPTY)
    lift[:, marginal == 0] = np.inf  # a class that nobody ever names is avoided everywhere, which says nothing
    two = np.partition(lift, 1, axis=1)
    likely = np.where(shared.any(1), lift.argmin(1), -1)
    lead = np.log(two[:, 1] / two[:, 0])
    clear = np.zeros(len(likely), dtype=bool)
    for y in range(len(marginal)):
        members = np.flatnonzero(likely == y)
        clear[members[np.argsort(-lead[members], kind="stable")[: math.ceil(CLEAR * len(members))]]] = True
    return likely, clear & (lead > 0)


def neighbourhood(
    graph: neighbors.Graph, given: Given, rows: Counts, labelled: int, seed: int
) -> tuple[Neighbourhood, Counts]:
    """What neighbours say of `rows` of the graph's rows, and each row's likely class (n,), -1 where it is not clear."""
    counts, n_classes = given.counts, len(given.classes)
    marginal = counts.sum(0) / counts.sum()
    likely, clear = likely_classes(others_say(graph, given.comp, rows, seed), marginal, graph.k)
    reached = likely != -1
    own = counts[rows]
    by_class = np.zeros((n_classes, n_classes))
    np.add.at(by_class, likely[reached], own[reached])
    everywhere = share(int(np.trace(by_class)), int(by_class.sum()))
    clear_own, clear_class = own[clear], likely[clear]
    wrong = clear_own[np.arange(len(clear_own)), clear_class]
    chance = float((by_class.sum(1) / max(by_class.sum(), 1) * marginal).sum())
    error = math.sqrt(chance * (1 - chance) / max(everywhere.of, 1))
    found = Neighbourhood(
        rows=len(rows),
        labelled=labelled,
        neighbors=graph.k,
        clear=int(clear.sum()),
        told=everywhere.of > 0 and chance - everywhere.value > TOLD * error,
        foresight=1 - everywhere.value / chance if everywhere.of else 0.0,
        noise=share(int(wrong.sum()), int(clear_own.sum())),
        noise_everywhere=everywhere,
        random=1 / n_classes,
        bias=_bias(by_class),
        transition=_transition(by_class, clear_own, clear_class),
        class_shares=tuple((np.bincount(likely[reached], minlength=n_classes) / max(int(reached.sum()), 1)).tolist()),
        suspects=_suspects(given, rows[clear][wrong > 0], clear_class[wrong > 0], seed),
    )
    pointed = np.full(graph.n, -1)
    pointed[rows[clear]] = clear_class
    return found, pointed


def _bias(by_class: Floats) -> Fit:
    """How unevenly labels spread over the classes other than the likely one, row by row of (K, K) counts."""
    n_classes = len(by_class)
    off = by_class * (1 - np.eye(n_classes))
    totals = off.sum(1, keepdims=True)
    expected = totals / (n_classes - 1) * (1 - np.eye(n_classes))
    return fit(off, expected, int((totals > 0).sum()) * (n_classes - 2))


def _transition(by_class: Floats, clear_own: LabelCounts, clear_class: Counts) -> tuple[tuple[float, ...], ...]:
    """T (K, K): the diagonal from clear items, where it leans least; the rest from all items, which are more."""
    n_classes = len(by_class)
    clear = np.zeros((n_classes, n_classes))
    np.add.at(clear, clear_class, clear_own)
    # half a label more in every cell off the diagonal: a zero would make one label infinitely surprising to the loss
    # `fwd`
    off = (by_class + EMPTY) * (1 - np.eye(n_classes))
    diagonal = np.diag(clear) / np.maximum(clear.sum(1), 1)
    T = off / off.sum(1, keepdims=True) * (1 - diagonal)[:, None] + np.diag(diagonal)
    return tuple(tuple(row) for row in T.tolist())


def _suspects(given: Given, rows: Counts, named: Counts, seed: int) -> tuple[Suspect, ...]:
    """At random, not the clearest first: a fair sample to look at tells what share of the suspects is truly wrong."""
    chosen = np.sort(stream(seed, "audit suspects").permutation(len(rows))[:SUSPECTS])
    items = given.names(rows[chosen], SUSPECTS)
    return tuple(Suspect(item, given.classes[k]) for item, k in zip(items, named[chosen], strict=True))
