"""Estimating T: how labels come about, told from neighbours' labels, without an ordinary label.

The idea. Items close in the feature space mostly share their class, and the class that their labels avoid is probably
it. So each item's *likely class* is the one named least by its neighbours, against how often it is named at all:
argmin_k (k Z_ik + 1/2) / (k m_k + 1/2), for shared labels Z (by rank, which no scale of the features changes),
marginals m and k neighbours; the halves keep a class that is seldom named from winning by default. Where class shares
are known it is the class of the largest posterior under them (`naysay.shares`). Z is found with the item's own labels
hidden, and those of a fifth of all items with it (cross-fitting): an item's labels never speak about themselves.

- Noise: the share of labels that name the item's likely class, P(k = y). It is counted on the *clear* half, the half of
  each likely class whose lead over the second class is largest, because the likely class is wrong most often elsewhere.
  Labels named at random have 1 / K.
- Bias: how unevenly the labels of a likely class spread over the other classes.
- T: its diagonal is the noise by likelihood (`naysay.estimation.noise`), its other entries are learned
  (`naysay.estimation.matrix`).

Which way it errs. If a share w of the clear items has another class than the likely one, and those items' labels name
the likely class at the rate t (1 / (K - 1) for even naming), the expected count is (1 - w) noise + w t. So what is
counted leans high, by w (t - noise), whenever labels are better than random; its interval covers the counting, not w.
The likelihood weighs each item by how sure its class is, and does not lean. Measured with a known T, one label each
(noise true -> counted, likeliest; TV: mean total variation between rows of the estimated and the true T):

| labels | 1,797 digits, pixels | TV | 8,000 of CIFAR-10, an encoder's features | TV |
| --- | --- | --- | --- | --- |
| even | 0 -> 0.001, 0.000 | 0.03 | 0 -> 0.002, 0.000 | 0.02 |
| even, 30 % (CIFAR: 20 %) at random | 0.036 -> 0.054, 0.035 | 0.03 | 0.020 -> 0.022, 0.015 | 0.02 |
| people's (clcifar10) | 0.048 -> 0.072, 0.050 | 0.10 | 0.039 -> 0.054, 0.043 | 0.04 |
| a machine's (aclcifar10) | 0.003 -> 0.012, 0.000 | 0.08 | 0.002 -> 0.005, 0.002 | 0.04 |
| strong bias | 0 -> 0.003, 0.000 | 0.20 | 0 -> 0.004, 0.003 | 0.21 |

Strong bias hardly ever names a third of the wrong classes: the avoided classes are then many, the likely one is often
wrong, and T is a sketch.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import labels, neighbors, shares, transition
from naysay.augmentation.propagation import propagate
from naysay.augmentation.weights import by_rank, without_gaps
from naysay.datasets.dataset import unfinite_row
from naysay.errors import InputError
from naysay.estimation.matrix import learn, neighborhoods, posteriors_before, rejects
from naysay.estimation.meaning import Agreement, agreement
from naysay.estimation.noise import Noise, by_likelihood
from naysay.estimation.votes import AnnotatorT, Votes, by_annotator, given_options
from naysay.seeds import stream
from naysay.statistics import Counts, Fit, Floats, LabelCounts, Matrix, Share, as_matrix, fit, share

SAMPLE = 20_000  # rows: neighbours of so many are found in seconds, and a share is then known to 0.7 points at worst
NEIGHBORS = 64  # the paper's number
# the paper's alpha; after 30 rounds 0.9^30 = 4 % of the way is left, too little to change which class is least
ALPHA, ROUNDS = 0.1, 30
HIDDEN = 0.2  # the share of items whose labels are hidden together: more costs neighbours, less costs time
CLEAR = 0.5  # the share of each likely class that counts as clear
EMPTY = 0.5  # labels added to each class, observed and expected
FEWEST_PER_CLASS = 10  # labelled items per class, on average, below which neighbours are too few to speak
TOLD = 3.0  # standard errors below chance from which neighbours are taken to say something at all

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Estimate:
    """What neighbours say; `rows` labelled items were looked at, of `labelled`, each with `neighbors` neighbours.

    `told` is false where an item's neighbours say nothing about its labels: then noise, bias and transition mean
    nothing. `foresight` is how much more rarely than by chance a label names the likely class: 0 for nothing told, 1
    for never. `noise` is counted on the clear items and `noise_everywhere` on all. `random` is the noise of labels
    named at random, 1 / K. `transition` (K, K) is T as plain numbers, `class_shares` the shares of the likely classes.
    `errors` (K, K) are T's standard errors. T took `steps` and is drawn to popularity by `shrinkage`.
    `gain`: nats by which a label becomes more likely if neighbours are read by T, rather than by popularity alone.
    `likeliest` is the noise by likelihood, which T has on average (`noise.by_likelihood`). `follows` and `even` test
    whether labels come about by T, and by uniform naming (`matrix.rejects`). `annotators`: each one's T. `agreement` of
    labels with their neighbours' tells whether they are ordinary ones, which say what items are. `beyond` is the bias
    that popularity does not explain.
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
    transition: Matrix
    class_shares: tuple[float, ...]
    # what audits of before did not hold
    errors: Matrix = ()
    shrinkage: float = 0.0
    steps: int = 0
    gain: float = 0.0
    likeliest: Noise | None = None
    follows: Fit | None = None
    even: Fit | None = None
    annotators: tuple[AnnotatorT, ...] = ()
    agreement: Agreement | None = None
    beyond: Fit | None = None

    @property
    def T(self) -> Tensor:
        """T (K, K) in float64, for the losses and criteria that take one; refused where nothing was told."""
        if not self.told:
            raise not_told("an item's neighbours say nothing about its labels in this space.")
        # a record of plain numbers has no device: the CPU is where its readers expect a matrix
        T = torch.tensor(self.transition, dtype=torch.float64, device="cpu")
        return T / T.sum(1, keepdim=True)


def estimate_transition(
    comp: Any,
    features: Any = None,
    *,
    graph: neighbors.Graph | None = None,
    class_shares: Any = None,
    votes: Votes | None = None,
    metric: str = "euclidean",
    sample: int = SAMPLE,
    seed: int = 0,
) -> Estimate:
    """T and what is known about it, from labels `comp` (n, K) as they were given and features (n, ...), or their graph.

    class_shares: how common the classes are, "even" or K shares; without them, those of the likely classes.
    votes: the single labels behind comp, with who gave them and what was shown, where that is known.
    At most `sample` labelled items, drawn with `seed`, are asked; see `Estimate.told` before you rely on it.
    """
    comp = labels.validate(comp).detach().cpu()
    features = features.detach().cpu().numpy() if isinstance(features, Tensor) else features
    wanted = shares.read(class_shares, comp.shape[1])
    if votes is not None:
        votes.check(*comp.shape)
    found, _, why = ask_neighbors(comp, label_counts(comp), features, graph, metric, sample, seed, wanted, votes)
    if found is None:
        raise not_told(why)
    return found


def not_told(why: str) -> InputError:
    """The sentence where T cannot be told, with the reason."""
    why = why or "an item's neighbours say nothing about its labels in this space."
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
    """How often each class is named in each row, (n, K) whole numbers, from rows that weigh m labels 1/m each."""
    weights = comp.detach().cpu()
    counts, told = labels.tally(weights, dtype=torch.int32)
    if not bool(told.all()):
        row = int((~told).nonzero()[0])
        raise InputError(
            f"an audit needs the labels as they were given, m labels weighing 1/m each; row {row} of comp is soft "
            f"({', '.join(f'{w:.3g}' for w in weights[row, :5].tolist())} ...). Audit the labels before augmentation."
        )
    return counts.numpy()


def ask_neighbors(
    comp: Tensor,
    counts: LabelCounts,
    features: Any,
    graph: neighbors.Graph | None,
    metric: str,
    sample: int,
    seed: int,
    class_shares: Tensor | None = None,
    votes: Votes | None = None,
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
        flat = features[rows].reshape(len(rows), -1)
        # half a class of neighbours where classes are small: more would be of others
        graph = neighbors.build(flat, min(NEIGHBORS, max(1, len(flat) // (2 * n_classes))), metric=metric)
        comp, counts, asked = comp[torch.from_numpy(rows)], counts[rows], np.arange(len(rows))
    marginal = counts.sum(0) / counts.sum()
    shared = others_say(graph.to("cpu"), comp, asked, seed)
    own = counts[asked]
    before = posteriors_before(shared, own, class_shares)
    lift = _lift(shared, marginal, graph.k) if class_shares is None else -np.log(np.maximum(before.numpy(), 1e-30))
    likely, clear = likely_classes(shared, lift)
    reached = likely != -1
    by_class, clearly = np.zeros((2, n_classes, n_classes))
    np.add.at(by_class, likely[reached], own[reached])
    np.add.at(clearly, likely[clear], own[clear])
    everywhere = share(int(np.trace(by_class)), int(by_class.sum()))
    chance = float((by_class.sum(1) / max(by_class.sum(), 1) * marginal).sum())
    error = math.sqrt(chance * (1 - chance) / max(everywhere.of, 1))
    noise = share(int(np.trace(clearly)), int(clearly.sum()))
    likeliest = by_likelihood(own, before.numpy(), transition.popularity(comp).numpy())
    learned, posteriors = learn(shared, own, before, _diagonal(likeliest.value, clearly), seed)
    likeliest = _again(likeliest, own, posteriors.numpy(), learned, clearly)
    if votes is not None:
        learned |= _by_votes(votes.among(rows, len(pointed)), posteriors, learned)
    group = neighborhoods(graph, len(rows), seed)[asked]
    estimate = Estimate(
        rows=len(rows),
        labelled=len(labelled),
        neighbors=graph.k,
        clear=int(clear.sum()),
        told=everywhere.of > 0 and chance - everywhere.value > TOLD * error,
        foresight=1 - everywhere.value / chance if everywhere.of else 0.0,
        noise=noise,
        noise_everywhere=everywhere,
        random=1 / n_classes,
        bias=_bias(by_class, transition.uniform(n_classes).numpy()),
        class_shares=tuple((np.bincount(likely[reached], minlength=n_classes) / max(int(reached.sum()), 1)).tolist()),
        likeliest=likeliest,
        follows=rejects(group, own, learned["transition"]),
        even=rejects(group, own, transition.uniform(n_classes).numpy()),
        agreement=agreement(graph, counts, asked),
        beyond=_bias(by_class, transition.popularity(comp).numpy()),
        **learned,
    )
    pointed[rows] = np.where(clear, likely, -1)
    return estimate, pointed, ""


def others_say(graph: neighbors.Graph, comp: Tensor, rows: Counts, seed: int) -> Floats:
    """Shared labels Z (len(rows), K), each row's found with its own labels hidden; zeros where no label reaches."""
    folds = max(1, math.ceil(len(rows) / (HIDDEN * graph.n)))
    fold = stream(seed, "audit folds").permutation(len(rows)) % folds
    weights = without_gaps(by_rank(graph.n, graph.k), graph.distances)
    shared = np.zeros((len(rows), comp.shape[1]))
    for f in range(folds):
        held = torch.from_numpy(rows[fold == f])
        visible = comp.to(torch.float32).index_fill(0, held, 0.0)
        found = propagate(graph.indices, weights, visible, alpha=ALPHA, rounds=ROUNDS, backend="torch")
        shared[fold == f] = found.labels[held].numpy()
    return shared


def _by_votes(votes: Votes, posteriors: Tensor, learned: dict[str, Any]) -> dict[str, Any]:
    """What single votes add: T if all classes had been shown, and each annotator's."""
    P, T = posteriors.numpy(), np.array(learned["transition"])
    errors = np.array(learned["errors"])
    if votes.shown is not None:
        # the noise stays: where the truth is seldom shown, small mistakes of the posteriors would decide it
        noise = np.diag(T)[:, None]
        off = given_options(P, votes, T) * (1 - np.eye(len(T)))
        T = off / np.maximum(off.sum(1, keepdims=True), 1e-12) * (1 - noise) + noise * np.eye(len(T))
        # at most as sharp as with every class on show
        errors = np.maximum(errors, np.sqrt(T * (1 - T) / np.maximum(P.sum(0), 1)[:, None]))
    return {"transition": as_matrix(T), "errors": as_matrix(errors), "annotators": by_annotator(P, votes, T)}


def _lift(shared: Floats, marginal: Floats, k: int) -> Floats:
    """How often each class is named here (n, K) against how often at all (K,), of k neighbours and half a label."""
    lift = (k * shared + EMPTY) / (k * marginal + EMPTY)
    lift[:, marginal == 0] = np.inf  # a class that nobody ever names is avoided everywhere, which says nothing
    return lift


def likely_classes(shared: Floats, lift: Floats) -> tuple[Counts, Mask]:
    """From Z and the classes' `lift` (n, K) each: likely classes (n,), -1 where no label reaches, and which are clear.

    Clear is the half of each likely class that leads the second one by most.
    """
    two = np.partition(lift, 1, axis=1)
    likely = np.where(shared.any(1), lift.argmin(1), -1)
    lead = np.log(two[:, 1] / two[:, 0])
    clear = np.zeros(len(likely), dtype=bool)
    for y in range(lift.shape[1]):
        members = np.flatnonzero(likely == y)
        members = members[np.argsort(-lead[members], kind="stable")]
        clear[members[: math.ceil(CLEAR * len(members))]] = True
    return likely, clear & (lead > 0)


def _again(first: Noise, own: LabelCounts, posteriors: Floats, learned: dict[str, Any], clearly: Floats) -> Noise:
    """The noise once more, by the T that was learned, which gets it; the interval holds that by popularity, too."""
    off = np.array(learned["transition"]) * (1 - np.eye(own.shape[1]))
    off /= np.maximum(off.sum(1, keepdims=True), np.finfo(np.float64).tiny)
    noise = by_likelihood(own, posteriors, off)
    diagonal = _diagonal(noise.value, clearly)
    T = off * (1 - diagonal)[:, None] + np.diag(diagonal)
    learned["transition"] = as_matrix(T)
    return Noise(noise.value, min(noise.low, first.low), max(noise.high, first.high))


def _diagonal(noise: float, clearly: Floats) -> Floats:
    """The noise of each class (K,), on average `noise`: they differ as the clear items' labels (K, K) prove they do."""
    of, usual = np.maximum(clearly.sum(1), 1), max(np.trace(clearly) / max(clearly.sum(), 1), 1e-12)
    rates, by_chance = np.diag(clearly) / of, usual / of
    differ = max(float(rates.var() - by_chance.mean()), 0.0)
    uneven = 1 + differ / (differ + by_chance) * (rates / usual - 1)
    diagonal: Floats = np.minimum(noise * uneven / uneven.mean(), 0.5)  # a row must name others, too
    return diagonal


def _bias(by_class: Floats, usual: Floats) -> Fit:
    """How unlike T = `usual` labels spread over the classes other than the likely one, row by row of (K, K) counts."""
    n_classes, others = len(by_class), 1 - np.eye(len(by_class))
    off = by_class * others
    totals = off.sum(1, keepdims=True)
    return fit(off, totals * usual, int((totals > 0).sum()) * (n_classes - 2))
