"""Settings of sharing chosen without an ordinary label: those by which neighbours best foresee labels that are hidden.

The idea. The labels of a fifth of the rows are hidden, those of the others are shared by each candidate, and what
arrives at a row then says what the row is, read exactly as it will be read later: by its least named class, or as
`naysay.shares` corrects it. Through T (the one that is known, else `transition.popularity`) that makes each hidden
label likely or not. The candidate under which they are likeliest is kept, if it is so by more than two standard errors
of the paired difference; the paper's settings otherwise (`selection.choose`). Its confidence is calibrated first
(`selection.calibrated_scel`), and popular labels, which are foreseen anywhere, win little, for T names them anyway.

Two scores that were tried and order settings wrongly, by the truth: shared labels taken as the probabilities of hidden
ones ask for ever more neighbours, since averages foresee labels well where they do not tell classes apart; and what
class shares would correct, scored where they are not known, asks for 64 where 16 name the class more often (LLaVA).

Neighbours and gamma are chosen together, since few neighbours and many of which the near ones weigh more are much the
same; then a gamma between, then alpha. The features' read-out (as they are, centred, half whitened, whitened:
`naysay.features.whiten`) is chosen before them, each at its best settings, among at most SAMPLE rows, because each
needs a graph of its own.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from naysay import selection, shares, transition
from naysay.augmentation.propagation import propagate
from naysay.augmentation.schemes import BY_ANGLE, Sharing, neighbors_for
from naysay.augmentation.weights import auto_gamma
from naysay.neighbors import Graph, build
from naysay.seeds import stream
from naysay.selection import Estimate

ALPHAS = (0.03, 0.1, 0.3)
EVENER = (1 / 16, 1 / 4, 1.0)  # parts of the gamma that distances call for; the first weighs neighbours almost alike
STRENGTHS = (None, 0.0, 0.5, 1.0)  # of whitening; None: features as they are
HIDDEN = 5  # parts, of which one is hidden at a time: fewer would cost neighbours their labels, more would cost time
JUDGES = 20_000  # hidden labels that are enough: a part of 10,000 rows more costs as much as all before
SAMPLE = 20_000  # rows: four graphs of so many cost two thirds of one of 50,000
FEWEST_PER_CLASS = 10  # labels per class, on average, below which nothing is chosen: the audit's number
LEFT = 0.04  # of the way to endless rounds may be left: too little to change which class is least
SURE = 2.0  # standard errors: of a dozen candidates the best is often one better by luck
LOWEST = -1e4  # of a logit: a class of share 0 has -inf, which no criterion takes

# from numbers of rows (None: all) and a strength of whitening to the graph of these rows
Build = Callable[[Tensor | None, float | None], Graph]


@dataclass(frozen=True)
class Tried:
    """Settings that were tried, the mean loss of hidden labels by them, and how much less it is than by the paper's.

    In nats a label; `error` is the standard error of the `gain`, which is paired.
    """

    n_neighbors: int
    gamma: float | None
    alpha: float
    whiten: float | None
    loss: float
    gain: float
    error: float

    def __str__(self) -> str:
        by = "" if self.gamma is None else f", gamma {self.gamma:.4g}"
        how = "" if self.whiten is None else f", whitened by {self.whiten:g}"
        return f"{self.n_neighbors} neighbours{by}, alpha {self.alpha:g}{how}"


@dataclass(frozen=True)
class Choice:
    """What was `kept` of what was `tried`, by so many hidden `labels`; the first of tried are the paper's settings.

    read_outs: of the features, each with the settings that suit it, the first as they are; their gains are over that.
    Where labels are too few, nothing was tried, and what would have been tried first is kept.
    """

    labels: int
    kept: Tried | None
    tried: tuple[Tried, ...] = ()
    read_outs: tuple[Tried, ...] = ()

    def __str__(self) -> str:
        if self.kept is None:
            return "too few labels to choose settings by: the first to be tried were taken"
        lines = [f"chosen by {self.labels} hidden labels: {self.kept}"]
        for what, tried in (("settings", self.tried), ("read-outs", self.read_outs)):
            if len(tried) > 1:
                best = max(tried, key=lambda one: one.gain)
                gain = f"{best.gain:.2g} ± {best.error:.1g} nats a label"
                won = f"the best, {best}, gains {gain} over {tried[0]}" if best.gain > 0 else f"none beats {tried[0]}"
                lines.append(f"{len(tried)} {what} tried; {won}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Settled:
    """The graph to share over, and the settings in numbers; how they were chosen, where any was to be."""

    graph: Graph
    sharing: Sharing
    choice: Choice | None = None

    @property
    def alpha(self) -> float:
        return float(self.sharing.alpha)

    @property
    def whiten(self) -> float | None:
        return None if self.sharing.whiten is None else float(self.sharing.whiten)


def settle(build: Build, given: Tensor, sharing: Sharing, *, seed: int = 0) -> Settled:
    """The graph of rows with labels `given` (n, K), and numbers for the settings of `sharing` that are "auto"."""
    if not sharing.chooses:
        graph = build(None, None if sharing.whiten is None else float(sharing.whiten))
        k = min(sharing.neighbors(*given.shape), graph.k)
        return Settled(graph.nearest(k), replace(sharing, n_neighbors=k))
    read_outs: tuple[Tried, ...] = ()
    strength = sharing.whiten
    if strength == "auto":
        strength, read_outs = choose_read_out(build, given, sharing, seed=seed)
    graph = build(None, None if strength is None else float(strength))
    judged, kept, labels = choose(graph, given, replace(sharing, whiten=strength), seed=seed)
    usual = next(iter(judged.values()), None)
    tried = {how: _tried(how, loss, usual, graph) for how, loss in judged.items() if usual}
    choice = Choice(labels, tried.get(kept), tuple(tried.values()), read_outs) if sharing.total else None
    return Settled(graph.nearest(_k(kept)), kept, choice)


def choose(
    graph: Graph, given: Tensor, sharing: Sharing, *, seed: int = 0
) -> tuple[dict[Sharing, Estimate], Sharing, int]:
    """Every setting that was tried with its loss, the one that is kept, and by how many hidden labels.

    The graph has as many neighbours as are tried at most: they serve every smaller number.
    """
    ks = tuple(dict.fromkeys(min(k, graph.k) for k in sharing.tries(*given.shape)))
    alphas = ALPHAS if sharing.alpha == "auto" else (float(sharing.alpha),)
    usual = Sharing().alpha if sharing.alpha == "auto" else sharing.alpha
    kept = replace(sharing, n_neighbors=ks[0], alpha=usual, gamma=gammas(graph, sharing, ks[0])[0])
    hidden = hide(given, seed) if sharing.total else []
    steps: Sequence[Callable[[Sharing], list[Sharing]]] = (
        lambda at: [replace(at, n_neighbors=k, gamma=gamma) for k in ks for gamma in gammas(graph, sharing, k)[::2]],
        lambda at: [replace(at, gamma=gamma) for gamma in gammas(graph, sharing, _k(at))],
        lambda at: [replace(at, alpha=alpha) for alpha in alphas],
    )
    judged: dict[Sharing, Estimate] = {}
    for step in steps if hidden else ():
        options = dict.fromkeys([kept, *step(kept)])
        for one in options:
            judged[one] = judged[one] if one in judged else foresee(graph, given, one, hidden)
        kept = selection.choose({one: [judged[one]] for one in options}, kept, enough=SURE).kept
    return judged, kept, sum(map(len, hidden))


def choose_read_out(
    build: Build, given: Tensor, sharing: Sharing, *, seed: int = 0
) -> tuple[float | None, tuple[Tried, ...]]:
    """The strength of whitening to use, None for features as they are, and what was tried, each at its best."""
    rows = _some(len(given), seed, "read-outs", given.device)
    some = given if rows is None else given[rows]
    best: dict[float | None, tuple[Sharing, Estimate, Graph]] = {}
    for strength in STRENGTHS:
        graph = build(rows, strength)
        judged, kept, _ = choose(graph, some, replace(sharing, whiten=strength), seed=seed)
        if not judged:
            return None, ()
        best[strength] = kept, judged[kept], graph
    chosen = selection.choose({strength: [loss] for strength, (_, loss, _) in best.items()}, None, enough=SURE).kept
    usual = best[None][1]
    return chosen, tuple(_tried(how, loss, usual, graph) for how, loss, graph in best.values())


def gammas(graph: Graph, sharing: Sharing, k: int) -> tuple[float | str | None, ...]:
    """The gammas to try with k neighbours, the paper's first; only that of `sharing` unless it is to be chosen too.

    1 is the paper's (as we read it) by cosine alone: in other units it may weigh nobody but the nearest.
    """
    if not (sharing.n_neighbors == "auto" and sharing.gamma in (None, "auto") and sharing.row.uses_gamma):
        return (sharing.gamma,)
    suits = auto_gamma(graph.distances[:, :k])
    return (BY_ANGLE if graph.metric == "cosine" else EVENER[0] * suits, *(part * suits for part in EVENER[1:]))


def hide(given: Tensor, seed: int, judges: int = JUDGES) -> list[Tensor]:
    """Numbers of the rows whose labels are hidden together, part by part; none where labels are too few to choose by.

    Not every part is hidden where fewer hold enough labels, `judges`.
    """
    labelled = given.sum(1).nonzero()[:, 0].cpu()
    if len(labelled) < FEWEST_PER_CLASS * given.shape[1]:
        return []
    order = labelled[torch.from_numpy(stream(seed, "hidden labels").permutation(len(labelled)))]
    parts = min(HIDDEN, math.ceil(judges * HIDDEN / len(labelled)))
    return [order[at::HIDDEN].sort().values.to(given.device) for at in range(parts)]


def foresee(graph: Graph, given: Tensor, sharing: Sharing, hidden: Sequence[Tensor]) -> Estimate:
    """The loss of each hidden label, in nats, by what the labels of others say after sharing."""
    assert sharing.row.weigh is not None  # a scheme that shares nothing has nothing to choose
    near = graph.nearest(_k(sharing))
    W = sharing.row.weigh(near.distances, sharing.gamma_for(near) if sharing.row.uses_gamma else None)
    alpha = float(sharing.alpha)
    rounds = min(sharing.total, math.ceil(math.log(LEFT) / math.log1p(-alpha)) if alpha < 1 else 1)
    arrived = []
    for rows in hidden:
        visible = given.index_fill(0, rows, 0.0)
        arrived.append(propagate(near.indices, W, visible, alpha=alpha, rounds=rounds).labels[rows])
    Z, own = torch.cat(arrived), given[torch.cat(list(hidden))]
    if sharing.corrects:
        logits = shares.find(Z, given, sharing.class_shares, sharing.transition).logits(Z)
    else:
        logits = -shares.SHARPNESS * Z.shape[1] * Z  # the least named class leads
    return judge(logits, own, given, sharing.transition)


def foresight(
    features: Tensor, given: Tensor, sharing: Sharing, *, evener: float = 1.0, seed: int = 0, judges: int = JUDGES
) -> tuple[Estimate | None, float]:
    """The loss of hidden labels by what neighbours in the features (n, d) share, and the gamma of their weights.

    Of spaces for the same labels (n, K) the one with the least loss shares them best. None where labels are too few to
    hide any. It is told by at most SAMPLE rows, and by about as many hidden labels as `judges` says. evener: the part
    that is taken of the gamma that distances call for. n_neighbors None is the root of a class here, with class shares
    too: so the recipes that ask share labels themselves, and their records do.
    """
    rows, hidden = hide_some(given, seed, judges)
    if rows is not None:
        features, given = features[rows], given[rows]
    if sharing.n_neighbors is None:
        sharing = replace(sharing, n_neighbors=neighbors_for(sharing.scheme, *given.shape))
    sharing = sharing.within(*given.shape)
    graph = build(features, sharing.neighbors(*given.shape), sharing.method, sharing.metric)
    gamma = evener * sharing.gamma_for(graph)
    return foresee(graph, given, replace(sharing, gamma=gamma), hidden) if hidden else None, gamma


def hide_some(given: Tensor, seed: int, judges: int = JUDGES) -> tuple[Tensor | None, list[Tensor]]:
    """The rows by which readings of labels given (n, K) are compared, None for all, and those among them to `hide`."""
    rows = _some(len(given), seed, "first space", given.device)
    return rows, hide(given if rows is None else given[rows], seed, judges)


def judge(logits: Tensor, own: Tensor, given: Tensor, T: Tensor | None) -> Estimate:
    """The loss of each hidden label `own` (m, K), by logits (m, K) of classes; T: None is how popular `given` are."""
    known = transition.popularity(given) if T is None else transition.validate(T, given.shape[1])
    return selection.calibrated_scel([(logits.clamp_min(LOWEST), own, known)])[0]


def _some(n: int, seed: int, name: str, device: torch.device) -> Tensor | None:
    """The numbers of SAMPLE rows of n, drawn by the stream; None where there are no more."""
    if n <= SAMPLE:
        return None
    return torch.from_numpy(stream(seed, name).permutation(n)[:SAMPLE]).sort().values.to(device)


def _k(sharing: Sharing) -> int:
    assert isinstance(sharing.n_neighbors, int)  # of a candidate it is a number
    return sharing.n_neighbors


def _tried(how: Sharing, loss: Estimate, usual: Estimate, graph: Graph) -> Tried:
    k = _k(how)
    gamma = how.gamma_for(graph.nearest(k)) if how.row.uses_gamma else None
    better = selection.gain(loss, usual)
    whitened = None if how.whiten is None else float(how.whiten)
    return Tried(k, gamma, float(how.alpha), whitened, loss.value, better.difference, better.standard_error)
