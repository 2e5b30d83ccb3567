"""The portfolio: many candidates, each judged by labels that it did not see, and one mixture of the best of them.

    found = portfolio.fit(x, comp, seed=0)               # what was tried, what of it is kept, and how much it counts
    found.model.probabilities(found.model.logits(rows))  # calibrated

1. How labels come about is found with the quick candidates (`naming`), unless it is given.
2. Every candidate that the budget affords is cross-fitted: trained without each part of the labels in turn.
3. Each is calibrated by one factor, and the mixture that makes the labels likeliest is found (`blend`).
4. The parts of the mixture are trained once more, on all rows.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import holdout, transition
from naysay.augmentation import Sharing, share
from naysay.bases import Base
from naysay.bases.through import Floats, as_floats, softmax
from naysay.errors import InputError
from naysay.estimation import label_counts
from naysay.portfolio import blend, naming
from naysay.portfolio.candidates import Candidate, affordable, check_budget, check_classes
from naysay.portfolio.mixture import Mixture, Part
from naysay.portfolio.spaces import enter
from naysay.seeds import stream

Rows = NDArray[np.int64]
Tell = Callable[[str], None]

FOLDS, FEW_FOLDS, MANY = 5, 2, 20_000  # above so many rows two folds judge well enough
FEWEST = 4  # labelled rows: two folds of two
SAMPLE = 5000  # labelled rows that tell how labels come about: more would only take longer
SHARED = Sharing("dms", None, gamma="auto")


@dataclass(frozen=True, eq=False)
class Tried:
    """One candidate: its probabilities p (n, K) of the labelled rows, of models that did not see their labels.

    loss (n,): of those labels; factor: by which its logits were calibrated; base: the setting that was best.
    """

    row: Candidate
    base: Base
    factor: float
    p: Floats
    loss: Floats
    seconds: float


@dataclass(frozen=True, eq=False)
class Found:
    """What was tried, the weight of each in the mixture, what there was no time for, and the mixture itself.

    p (n, K): the mixture's probabilities of the labelled `rows`, of models and weights that did not see their labels;
    loss (n,): of those labels.
    """

    tried: tuple[Tried, ...]
    weights: Floats
    left: tuple[str, ...]
    naming: naming.Naming
    rows: Rows
    p: Floats
    loss: Floats
    model: Mixture
    folds: int
    seconds: float


def budget_for(n_rows: int) -> float:
    """Seconds when none are given: 75 for up to 2,000 rows, then 15 more for every 1,000, at most 10 minutes."""
    return min(600.0, 75.0 + max(0, n_rows - 2000) * 0.015)


def fit(
    x: Any,
    comp: Tensor,
    *,
    T: Any = None,
    T_is_stated: bool = True,
    assume: str = "auto",
    class_shares: Tensor | None = None,
    budget: float | None = None,
    seed: int = 0,
    tell: Tell = lambda text: None,
) -> Found:
    """Try what the budget (seconds) affords on rows x, a table (n, d) or images, with labels `comp` (n, K).

    T: how labels come about, where it is known; else it is found, unless `assume` is "uniform" or "popularity".
    T_is_stated: whether it was stated, and not estimated from the labels: before such a T class shares count.
    class_shares (K,): how common classes are, where it is known: the mixture's predictions then have these shares.
    """
    started = time.perf_counter()
    if budget is not None:
        check_budget(budget)
    check_classes(*comp.shape)
    given, x = comp.double().numpy(), np.asarray(x)
    labelled = np.flatnonzero(given.sum(1) > 0)
    if 0 < len(labelled) < FEWEST:
        few = f"got {len(labelled)}. Label some more."
        raise InputError(f"trying several models needs at least {FEWEST} rows with labels; {few}")
    parts = _parts(comp, seed)
    n, d = len(parts[0][0]), int(np.prod(x.shape[1:]))
    allowed = budget_for(len(labelled)) if budget is None else budget
    rows, left = affordable(allowed, n, d, given.shape[1], len(parts), x.ndim > 2)
    if class_shares is not None:
        rows = [row.knowing(as_floats(class_shares), T_is_stated=T is not None and T_is_stated) for row in rows]
    tell("finding how labels come about")
    named = _naming(T, assume, x, comp, [row for row in rows if row.quick] or rows[:1], seed)
    random = f", {named.noise:.0%} at random" if named.noise else ""
    tell(f"labels are taken to come about by {WORDS[named.how]}{random}; trying {len(rows)} candidates")
    tried = []
    for row in rows:
        one = _try(row, x, given, named.T, parts, labelled, seed)
        tried.append(one)
        tell(f"{row.name}: loss {one.loss.mean():.4f} in {one.seconds:.1f} s")
    weights = blend.weights([one.p for one in tried], given[labelled], named.T)
    p, doubt = _unseen(tried, given, named.T, parts, labelled), 1 / (len(labelled) + 1)
    offsets = np.zeros(given.shape[1])
    if class_shares is not None:  # with the doubt of the model that is kept: offsets that suit surer ones mislead it
        p = (1 - doubt) * p + doubt / given.shape[1]
        offsets = _offsets(p, class_shares)
        p = softmax(np.log(p) + offsets)
    kept = [(one, float(weight)) for one, weight in zip(tried, weights, strict=True) if weight > 0]
    tell("training " + ", ".join(one.row.name for one, _ in kept) + " on all rows")
    fitted = tuple(_part(one, x, given, named.T, seed) for one, _ in kept)
    by = np.array([weight for _, weight in kept])
    model = Mixture(fitted, by / by.sum(), offsets, x.shape[1:], doubt)
    seconds = time.perf_counter() - started
    loss, missed = blend.loss_of(p, given[labelled], named.T), tuple(row.name for row in left)
    return Found(tuple(tried), weights, missed, named, labelled, p, loss, model, len(parts), seconds)


def judge_apart(
    found: Found,
    x: Any,
    comp: Tensor,
    rows: Tensor,
    held: Tensor,
    seed: int,
    tell: Tell = lambda text: None,
    *,
    whole: Any = None,
) -> Found:
    """What `fit` found on `rows` of x, judged by the labels of the rows `held`, which had no part in it (but in a T
    that all labels told, as assume="estimated" has it).

    The parts of its mixture are then trained once more, on all rows; their weights and factors stay. whole: these rows,
    where columns became other numbers in x for the held-out ones having no part in it.
    """
    started = time.perf_counter()
    whole = np.asarray(x if whole is None else whole)
    x, given, T, judges = np.asarray(x), comp.double().numpy(), found.naming.T, held.numpy()
    inside, labels, trained = x[rows.numpy()], given[rows.numpy()], {part.name: part for part in found.model.parts}
    tell("training the others on the same rows")
    tried = []
    for one in found.tried:
        begun = time.perf_counter()
        part = trained.get(one.row.name) or _part(one, inside, labels, T, seed)
        p = part.probabilities(x[judges])
        seconds = one.seconds + time.perf_counter() - begun
        tried.append(replace(one, p=p, loss=blend.loss_of(p, given[judges], T), seconds=seconds))
    p = as_floats(found.model.logits(x[judges]).exp())
    tell("training " + ", ".join(trained) + " on all rows, those that judged too")
    again = tuple(_part(one, whole, given, T, seed) for one in found.tried if one.row.name in trained)
    return replace(
        found,
        tried=tuple(tried),
        rows=judges,
        p=p,
        loss=blend.loss_of(p, given[judges], T),
        model=replace(found.model, parts=again, shape=whole.shape[1:]),
        folds=1,
        seconds=found.seconds + time.perf_counter() - started,
    )


WORDS = {
    "uniform": "naming every wrong class alike",
    "popularity": "naming classes by their popularity",
    "counted": "a matrix that was counted from them",
    "given": "the matrix that was given",
}


def _naming(T: Any, assume: str, x: Any, comp: Tensor, quick: Sequence[Candidate], seed: int) -> naming.Naming:
    """How labels come about: as given or assumed, or as the quick candidates find it among at most SAMPLE rows."""
    n_classes = comp.shape[1]
    if T is not None:
        return naming.Naming(as_floats(torch.as_tensor(T)), "given", {})
    if assume == "uniform":
        return naming.Naming(as_floats(transition.uniform(n_classes)), "uniform", {})
    if assume == "popularity":
        return naming.Naming(as_floats(transition.popularity(comp)), "popularity", {})
    labelled = np.flatnonzero((comp.sum(1) > 0).numpy())
    some = np.sort(stream(seed, "naming").permutation(labelled)[:SAMPLE])
    few, rows = comp[torch.from_numpy(some)], x[some]
    given, parts, every = few.double().numpy(), _parts(few, seed), np.arange(len(some))

    def cross_fit(T: Floats) -> Floats:
        found = [_try(row, rows, given, T, parts, every, seed).p for row in quick]
        return blend.mix(found, blend.weights(found, given, T))

    return naming.find(given, _counts(few), cross_fit)


def _counts(comp: Tensor) -> Floats:
    """How often each class is named in each row (n, K); a soft row, which nobody gave as labels, is as it is."""
    try:
        return as_floats(label_counts(comp))
    except InputError:
        return as_floats(comp)


def _parts(comp: Tensor, seed: int) -> list[tuple[Rows, Rows]]:
    """The rows to train on and those that judge, for each fold."""
    n_labelled = int((comp.sum(1) > 0).sum())
    folds = FEW_FOLDS if n_labelled > MANY else min(FOLDS, n_labelled // 2)
    return [(rows.numpy(), held.numpy()) for rows, held in holdout.folds(comp, folds, seed)]


def _try(
    row: Candidate,
    x: Any,
    comp: Floats,
    T: Floats,
    parts: Sequence[tuple[Rows, Rows]],
    labelled: Rows,
    seed: int,
) -> Tried:
    started = time.perf_counter()
    logits = np.zeros((len(row.settings), *comp.shape))
    for rows, held in parts:
        space = enter(row.space, x[rows], seed)
        inside, outside = space(x[rows]), space(x[held])
        shared = _share(row, x[rows], comp[rows], seed)
        for at, base in enumerate(row.settings):
            logits[at, held] = base.fit(inside, shared, T, seed).logits(outside)
    best = None
    for base, of in zip(row.settings, logits[:, labelled], strict=True):
        factor = blend.sharpness(of, comp[labelled], T)
        p = softmax(factor * of)
        loss = blend.loss_of(p, comp[labelled], T)
        if best is None or loss.mean() < best[3].mean():
            best = (base, factor, p, loss)
    assert best is not None  # every candidate has a setting
    return Tried(row, *best, time.perf_counter() - started)


def _unseen(
    tried: Sequence[Tried], comp: Floats, T: Floats, parts: Sequence[tuple[Rows, Rows]], labelled: Rows
) -> Floats:
    """The mixture's probabilities (n, K) of the labelled rows, each fold's by weights that its labels had no part in.

    Weights chosen by all labels flatter: on rules over categories, where no model is much better than chance, the
    estimated accuracy was 1.5 points higher for it.
    """
    p = np.empty_like(tried[0].p)
    for _, held in parts:
        at = np.searchsorted(labelled, held)
        others = np.delete(np.arange(len(labelled)), at)
        weights = blend.weights([one.p[others] for one in tried], comp[labelled[others]], T)
        p[at] = blend.mix([one.p[at] for one in tried], weights)
    return p


def _part(one: Tried, x: Any, comp: Floats, T: Floats, seed: int) -> Part:
    """The candidate's best setting, trained on all rows."""
    space = enter(one.row.space, x, seed)
    model = one.base.fit(space(x), _share(one.row, x, comp, seed), T, seed)
    return Part(one.row.name, space, model, one.factor)


def _share(row: Candidate, x: Any, comp: Floats, seed: int) -> Floats:
    """The labels after sharing between neighbours, as the candidate wants it."""
    if row.scheme == "none":
        return comp
    features = enter(row.shared_in, x, seed)(x).astype(np.float32)
    how = replace(SHARED, scheme=row.scheme).within(*comp.shape)
    shared, _ = share(features, torch.from_numpy(comp).float(), how)
    return as_floats(shared)


def _offsets(p: Floats, class_shares: Tensor) -> Floats:
    """What is added to log probabilities (n, K) so that their mean is the class shares, as far as n rows can tell.

    Rows drawn by these very shares have others by chance (chi-square); to have them exactly, rows of which the models
    are sure would have to change their class, and with them all others of that class.
    """
    wanted, logs = np.maximum(as_floats(class_shares), 1e-6), np.log(p)
    offsets, free = np.zeros(p.shape[1]), p.shape[1] - 1
    by_chance = (free + 2 * np.sqrt(2 * free)) / len(p)
    for _ in range(100):
        found = np.maximum(softmax(logs + offsets).mean(0), 1e-9)
        if ((found - wanted) ** 2 / wanted).sum() <= by_chance:
            break
        offsets += np.log(wanted) - np.log(found)
    lowered: Floats = offsets - offsets.max()
    return lowered
