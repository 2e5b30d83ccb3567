"""Estimating T: how labels come about, told from neighbours' labels, without an ordinary label.

The idea. Items close in the feature space mostly share their class, and the class that their labels avoid is probably
it. So each item's *likely class* is the one named least by its neighbours, against how often it is named at all:
argmin_k (k Z_ik + 1/2) / (k m_k + 1/2), for shared labels Z (by rank, which no scale of the features changes),
marginals m and k neighbours; the halves keep a class that is seldom named from winning by default. Z is found with the
item's own labels hidden, and those of a fifth of all items with it (cross-fitting): an item's labels never speak about
themselves.

- Noise: the share of labels that name the item's likely class, P(k = y). It is counted on the *clear* half, the half of
  each likely class whose lead over the second class is largest, because the likely class is wrong most often elsewhere.
  Labels named at random have 1 / K.
- Bias: how unevenly the labels of a likely class spread over the other classes; `transition` is that spread as T.

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

from naysay import labels, neighbors
from naysay.datasets.dataset import unfinite_row
from naysay.errors import InputError
from naysay.seeds import stream
from naysay.statistics import Counts, Fit, Floats, Share, fit, share

SAMPLE = 20_000  # rows: neighbours of so many are found in seconds, and a share is then known to 0.7 points at worst
NEIGHBORS = 64  # the paper's number
# the paper's alpha; after 30 rounds 0.9^30 = 4 % of the way is left, too little to change which class is least
ALPHA, ROUNDS = 0.1, 30
HIDDEN = 0.2  # the share of items whose labels are hidden together: more costs neighbours, less costs time
CLEAR = 0.5  # the share of each likely class that counts as clear
EMPTY = 0.5  # labels added to each class, observed and expected
FEWEST_PER_CLASS = 10  # labelled items per class, on average, below which neighbours are too few to speak
TOLD = 3.0  # standard errors below chance from which neighbours are taken to say something at all
MOST_LABELS = 64  # a row whose weights are no multiples of 1/1 ... 1/64 is no set of labels but a soft one
# how far a weight times the number of labels may lie from a whole number: labels.validate's own tolerance on row sums
WHOLE = 1e-3
BLOCK = 65_536  # rows looked at together, so that a million need little memory

LabelCounts = NDArray[np.int32]


@dataclass(frozen=True)
class Estimate:
    """What neighbours say; `rows` labelled items were looked at, of `labelled`, each with `neighbors` neighbours.

    `told` is false where an item's neighbours say nothing about its labels: then noise, bias and transition mean
    nothing. `foresight` is how much more rarely than by chance a label names the likely class: 0 for nothing told, 1
    for never. `noise` is counted on the clear items and `noise_everywhere` on all. `random` is the noise of labels
    named at random, 1 / K. `transition` (K, K) is T as plain numbers, `class_shares` the shares of the likely classes.
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

    @property
    def T(self) -> Tensor:
        """T (K, K) in float64, for the losses and criteria that take one; refused where nothing was told."""
        if not self.told:
            raise _refused("an item's neighbours say nothing about its labels in this space.")
        T = torch.tensor(self.transition, dtype=torch.float64)
        return T / T.sum(1, keepdim=True)


def estimate_transition(
    comp: Any,
    features: Any = None,
    *,
    graph: neighbors.Graph | None = None,
    metric: str = "euclidean",
    sample: int = SAMPLE,
    seed: int = 0,
) -> Estimate:
    """T and what is known about it, from labels `comp` (n, K) as they were given and features (n, ...), or their graph.

    At most `sample` labelled items, drawn with `seed`, are asked; see `Estimate.told` before you rely on it.
    """
    comp = labels.validate(comp).detach().cpu()
    features = features.detach().cpu().numpy() if isinstance(features, Tensor) else features
    found, _, why = ask_neighbors(comp, label_counts(comp), features, graph, metric, sample, seed)
    if found is None:
        raise _refused(why)
    return found


def _refused(why: str) -> InputError:
    way_out = "Assume uniform labels, or give other features."
    return InputError(f"how labels come about cannot be estimated here: {why} {way_out}")


def _check(features: Any, graph: neighbors.Graph | None, n: int, sample: int) -> None:
    """Raise InputError unless features or graph, where given, describe n rows that can be compared."""
    if sample < 1:
        raise InputError(f"sample must be at least 1 row; got {sample}.")
    if graph is not None and (graph.n != n or graph.columns is not None):
        raise InputError(f"graph must join the {n} rows of comp with each other; got {graph!r}.")
    if features is None:
        return
    if not isinstance(features, np.ndarray) or features.ndim < 2 or len(features) != n:
        got = getattr(features, "shape", type(features).__name__)
        raise InputError(f"features must be an array with one row per row of comp, ({n}, d); got {got}.")
    if features.dtype.kind not in "fiub":
        got = f"{features.dtype} values"
        raise InputError(f"features must be numbers; got {got}. Leave out columns of text, or turn them into numbers.")
    row = unfinite_row(features)
    if row is not None:
        raise InputError(f"features must be finite; got NaN or inf in row {row}. Mend or drop such rows.")


def label_counts(comp: Tensor) -> LabelCounts:
    """How often each class is named in each row, (n, K) whole numbers, from rows that weigh m labels 1/m each.

    The smallest numbers that fit: a row that names two classes twice each counts as two labels.
    """
    weights = comp.detach().cpu().numpy()
    counts = np.zeros(weights.shape, dtype=np.int32)
    for start in range(0, len(weights), BLOCK):
        todo = start + np.flatnonzero(weights[start : start + BLOCK].any(1))
        for m in range(1, MOST_LABELS + 1):
            if not len(todo):
                break
            scaled = weights[todo] * m
            whole = np.rint(scaled)
            fits = (np.abs(scaled - whole) <= WHOLE).all(1) & (whole.sum(1) == m)
            counts[todo[fits]] = whole[fits]
            todo = todo[~fits]
        if len(todo):
            row = int(todo[0])
            raise InputError(
                f"an audit needs the labels as they were given, m labels weighing 1/m each; row {row} of comp is soft "
                f"({', '.join(f'{w:.3g}' for w in weights[row][:5])} ...). Audit the labels before augmentation."
            )
    return counts


def ask_neighbors(
    comp: Tensor, counts: LabelCounts, features: Any, graph: neighbors.Graph | None, metric: str, sample: int, seed: int
) -> tuple[Estimate | None, Counts, str]:
    """What neighbours say, by the graph of all n rows or by features, or None; likely classes; and why it is None.

    The classes are (n,): each row's likely class, -1 where it is not clear or the row was not asked.
    """
    _check(features, graph, len(counts), sample)
    n_classes, pointed = counts.shape[1], np.full(len(counts), -1)
    labelled = rows = np.flatnonzero(counts.any(1))
    if len(labelled) > sample:
        rows = np.sort(stream(seed, "audit sample").choice(labelled, sample, replace=False))
    if len(rows) < (fewest := FEWEST_PER_CLASS * n_classes):
        few = f"{len(rows)} labelled items are too few to estimate noise and bias from neighbours"
        return None, pointed, f"{few}: {fewest} are needed."
    if features is None and graph is None:
        return None, pointed, "neighbours are needed, so pass features, or a graph."
    asked = rows
    if graph is None:
        flat = torch.as_tensor(np.ascontiguousarray(features[rows], dtype=np.float32)).flatten(1)
        # half a class of neighbours where classes are small: more would be of others
        graph = neighbors.build(flat, min(NEIGHBORS, max(1, len(flat) // (2 * n_classes))), metric=metric)
        comp, counts, asked = comp[torch.from_numpy(rows)], counts[rows], np.arange(len(rows))
    marginal = counts.sum(0) / counts.sum()
    likely, clear = likely_classes(others_say(graph.to("cpu"), comp, asked, seed), marginal, graph.k)
    reached, own = likely != -1, counts[asked]
    by_class, clearly = np.zeros((2, n_classes, n_classes))
    np.add.at(by_class, likely[reached], own[reached])
    np.add.at(clearly, likely[clear], own[clear])
    everywhere = share(int(np.trace(by_class)), int(by_class.sum()))
    chance = float((by_class.sum(1) / max(by_class.sum(), 1) * marginal).sum())
    error = math.sqrt(chance * (1 - chance) / max(everywhere.of, 1))
    estimate = Estimate(
        rows=len(rows),
        labelled=len(labelled),
        neighbors=graph.k,
        clear=int(clear.sum()),
        told=everywhere.of > 0 and chance - everywhere.value > TOLD * error,
        foresight=1 - everywhere.value / chance if everywhere.of else 0.0,
        noise=share(int(np.trace(clearly)), int(clearly.sum())),
        noise_everywhere=everywhere,
        random=1 / n_classes,
        bias=_bias(by_class),
        transition=_transition(by_class, clearly),
        class_shares=tuple((np.bincount(likely[reached], minlength=n_classes) / max(int(reached.sum()), 1)).tolist()),
    )
    pointed[rows] = np.where(clear, likely, -1)
    return estimate, pointed, ""


def others_say(graph: neighbors.Graph, comp: Tensor, rows: Counts, seed: int) -> Floats:
    """Shared labels Z (len(rows), K), each row's found with its own labels hidden; zeros where no label reaches."""
    folds = max(1, math.ceil(len(rows) / (HIDDEN * graph.n)))
    fold = stream(seed, "audit folds").permutation(len(rows)) % folds
    rank = 1 / torch.arange(1, graph.k + 1, dtype=torch.float64)
    # the nearest neighbour weighs 1, the k-th 1/k, of all but the row's own part
    weights = ((rank / rank.sum()).float() * (1 - ALPHA)).expand(graph.n, graph.k).contiguous()
    shared = np.zeros((len(rows), comp.shape[1]))
    for f in range(folds):
        held = torch.from_numpy(rows[fold == f])
        visible = Z = comp.to(torch.float32).index_fill(0, held, 0.0)
        for _ in range(ROUNDS):
            near = torch.nn.functional.embedding_bag(graph.indices, Z, per_sample_weights=weights, mode="sum")
            Z = ALPHA * visible + near
        total = Z[held].sum(1, keepdim=True)
        shared[fold == f] = (Z[held] / total.where(total > 0, 1.0)).numpy()
    return shared


def likely_classes(shared: Floats, marginal: Floats, k: int) -> tuple[Counts, NDArray[np.bool_]]:
    """From Z (n, K) and marginals (K,): likely classes (n,), -1 where no label reaches, and whether they are clear."""
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


def _bias(by_class: Floats) -> Fit:
    """How unevenly labels spread over the classes other than the likely one, row by row of (K, K) counts."""
    n_classes, others = len(by_class), 1 - np.eye(len(by_class))
    off = by_class * others
    totals = off.sum(1, keepdims=True)
    return fit(off, totals / (n_classes - 1) * others, int((totals > 0).sum()) * (n_classes - 2))


def _transition(by_class: Floats, clearly: Floats) -> tuple[tuple[float, ...], ...]:
    """T (K, K): the diagonal from clear items, where it leans least; the rest from all items, which are more."""
    # half a label more in every cell off the diagonal: a zero would make one label infinitely surprising to `fwd`
    off = (by_class + EMPTY) * (1 - np.eye(len(by_class)))
    diagonal = np.diag(clearly) / np.maximum(clearly.sum(1), 1)
    T = off / off.sum(1, keepdims=True) * (1 - diagonal)[:, None] + np.diag(diagonal)
    return tuple(tuple(row) for row in T.tolist())
