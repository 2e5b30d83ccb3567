"""Classification without training (Lin et al. 2023, baselines): a point's neighbours' labels estimate how often each
class is named as wrong there, and the class named least often is predicted; with a T, the class whose row of T is
nearest (L1) to the estimate; with class shares, the class of the largest posterior (`naysay.shares`).

Few neighbours with one label each leave several classes unnamed, and a T or class shares then put them in an order by
next to nothing. So classes count as equals up to half of what a single label would change, and among equals the class
is taken that four times as many neighbours say, shares and all, then one by the seed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay import labels, neighbors, selection, shares, transition
from naysay.errors import InputError
from naysay.losses.estimates import closeness, onto_simplex
from naysay.seeds import stream
from naysay.selection import Estimate
from naysay.shares import Evidence

SURE = 2.0  # standard errors, of one in many candidates: the luckiest of nine is often one above the usual by chance
KS = tuple(2**power for power in range(2, 11))  # 4, 8, ..., 1024
MORE = 4  # times as many neighbours are asked where some classes are equally little named
ROUNDING = 1e-6  # relative: means of float32 labels that are equal on paper differ by less


def local_distribution(comp: Tensor, near: Tensor) -> Tensor:
    """The mean (m, K) of the labels `comp` (n, K) of each point's neighbours `near` (m, k); uniform without labels."""
    total = torch.zeros(len(near), comp.shape[1], dtype=comp.dtype, device=comp.device)
    for column in near.long().unbind(1):  # (m, k, K) at once would not fit in memory for k = 1024
        total += comp[column]
    mass = total.sum(1, keepdim=True)
    return torch.where(mass > 0, total / mass, 1 / comp.shape[1])


def pick(scores: Tensor, *others: Callable[[Tensor], Tensor], slack: float = 0.0) -> Tensor:
    """Class numbers (m,) of the best of the scores (m, K), up to the slack and rounding.

    Among equals the others decide in turn: each is asked for the scores (r, K) of the rows (r,) that have some still.
    """
    best = _equals(scores, slack)
    for other in others:
        rows = (best.sum(1) > 1).nonzero()[:, 0]
        if len(rows):
            best[rows] &= _equals(torch.where(best[rows], other(rows).to(scores), -torch.inf))
    return best.int().argmax(1)


def draw(comp: Tensor, seed: int) -> Tensor:
    """Scores (n, K) by which the seed decides between classes of the rows `comp` (n, K) that all else leaves equal."""
    return torch.from_numpy(stream(seed, "ties").random(comp.shape, dtype=np.float32)).to(comp.device)


@dataclass(frozen=True, eq=False)
class NeighborDecoder:
    """Labelled rows in a feature space, ready to predict: features (n, d), comp (n, K), k neighbours, T if known.

    class_shares: how common the classes are, "even" or K shares, else None; the seed decides between equals.
    """

    features: Tensor
    comp: Tensor
    k: int
    T: Tensor | None = None
    class_shares: Any = None
    seed: int = 0

    @cached_property
    def evidence(self) -> Evidence | None:
        """How posteriors follow from neighbours' labels, None where no class shares are known.

        The offsets are those for which the rows themselves, each by its own neighbours, have the shares.
        """
        if self.class_shares is None:
            return None
        near = neighbors.build(self.features, min(self.k, len(self.features) - 1)).indices
        return shares.find(local_distribution(self.comp, near), self.comp, self.class_shares, self.T)

    def distribution(self, features: Any) -> Tensor:
        """How likely each class is to be named as wrong, (m, K), at `features` (m, d)."""
        return local_distribution(self.comp, self._near(features, self.k))

    def posterior(self, features: Any, n_classes: int | None = None) -> Tensor:
        """How likely each class is, (m, K), or of the first n_classes; equals are equally likely, and the likeliest."""
        return self._explained(self._near(features, self.k), n_classes)

    def predict(self, features: Any, n_classes: int | None = None) -> Tensor:
        """Class numbers (m,), of the first n_classes where only those are meant."""
        return self._best(features, self._near(features, self.k), self.evidence, n_classes)

    def classify(self, features: Any, n_classes: int | None = None) -> tuple[Tensor, Tensor]:
        """What `posterior` and `predict` give, from one search."""
        near = self._near(features, self.k)
        return self._explained(near, n_classes), self._best(features, near, self.evidence, n_classes)

    def _near(self, features: Any, k: int) -> Tensor:
        return neighbors.query(self.features, torch.as_tensor(features), k).indices

    def _explained(self, near: Tensor, n_classes: int | None) -> Tensor:
        scores, named = self._scores(near, self.evidence)[:, :n_classes], local_distribution(self.comp, near)
        if self.evidence is not None:
            explained = self.evidence.posterior(named)[:, :n_classes].double()
        elif self.T is None:
            explained = selection.ordinary(named, None).clamp(min=0)[:, :n_classes].double()
        else:  # the row of T that is nearest is the likeliest, which named Tinv need not say
            explained = onto_simplex(closeness(named.double(), self.T)[:, :n_classes].double())
        equals = _equals(scores, self._grain(self.evidence))
        shared = (explained * equals).sum(1, keepdim=True) / equals.sum(1, keepdim=True)
        explained = torch.where(equals, shared, explained)
        return explained / explained.sum(1, keepdim=True)

    def _best(self, features: Any, near: Tensor, evidence: Evidence | None, n_classes: int | None = None) -> Tensor:
        """Class numbers (m,) by the first k of the neighbours `near`; more, for ties, are among them or looked up."""
        more = min(MORE * self.k, len(self.features))

        def by_more(rows: Tensor) -> Tensor:
            found = near[rows] if near.shape[1] >= more else self._near(torch.as_tensor(features)[rows], more)
            return self._scores(found[:, :more], evidence)[:, :n_classes]

        def by_seed(rows: Tensor) -> Tensor:
            # drawn for each row in the space, so that a point's class does not hang on the others asked with it
            return draw(self.comp, self.seed)[near[rows, 0].long(), :n_classes]

        scores = self._scores(near[:, : self.k], evidence)[:, :n_classes]
        return pick(scores, by_more, by_seed, slack=self._grain(evidence))

    def _scores(self, near: Tensor, evidence: Evidence | None) -> Tensor:
        """How well each class (m, K) explains the labels of the neighbours `near` (m, k)."""
        named = local_distribution(self.comp, near).double()
        if evidence is not None:
            return evidence.logits(named)
        return -named if self.T is None else -torch.cdist(named, self.T.to(named), p=1)

    def _grain(self, evidence: Evidence | None) -> float:
        """Half of what one of the k neighbours' labels moves a score; 0 where scores are the labels' own numbers."""
        if evidence is None and self.T is None:
            return 0.0
        label = float(self.comp.square().sum(1).double().mean()) / self.k  # of a shared row, which holds many, less
        return label * (2.0 if evidence is None else evidence.of_a_label) / 2  # from class to class it moves L1 by 2


def _equals(scores: Tensor, slack: float = 0.0) -> Tensor:
    """Which classes (m, K) have the best score of their row, up to the slack and rounding."""
    best = scores.amax(1, keepdim=True)
    return scores >= best - slack - ROUNDING * best.abs().clamp_min(1.0)


def choose_k(
    features: Any,
    comp: Any,
    *,
    T: Any = None,
    class_shares: Any = None,
    ks: Sequence[int] = KS,
    usual: int | None = None,
    held_out: float = 0.1,
    seed: int = 0,
) -> tuple[NeighborDecoder, dict[int, Estimate]]:
    """The decoder with the best k of `ks` by the URE of the 0-1 loss on a held-out share, and each k's estimate.

    usual: a number of neighbours that stays, or the nearest of `ks` to it, unless another is better by more than two
    standard errors of the difference on the same rows (`selection.choose`); None takes the highest estimate, as the
    paper's baseline does, and with it the luckiest of many that hardly differ.
    The decoder returned holds all rows. Without a T, labels are judged as uniform; where class shares are known, as
    named by their popularity (`transition.popularity`).
    """
    features, comp = torch.as_tensor(features), labels.validate(comp)
    T = None if T is None else transition.validate(T, comp.shape[1])
    judge = transition.popularity(comp) if T is None and class_shares is not None else T
    rows, held = selection.hold_out(len(comp), held_out, seed)
    ks = sorted(k for k in ks if k <= len(rows))
    if not ks:
        raise InputError(f"no k of the candidates is within the {len(rows)} training rows; pass smaller ks.")
    near = neighbors.query(features[rows], features[held], ks[-1]).indices
    predicted = {}
    for k in ks:
        evidence = None
        if class_shares is not None:  # offsets from the held-out rows, which are a fair sample and need no more search
            evidence = shares.find(local_distribution(comp[rows], near[:, :k]), comp[rows], class_shares, T)
        decoder = NeighborDecoder(features[rows], comp[rows], k, T, seed=seed)
        predicted[k] = decoder._best(features[held], near, evidence)
    estimates = {k: selection.ure_accuracy(predicted[k], comp[held], judge) for k in ks}
    best = max(ks, key=lambda k: estimates[k].value)
    if usual is not None:
        nearest = min(ks, key=lambda k: abs(math.log(k / usual)))
        best = selection.choose({k: (estimates[k],) for k in ks}, nearest, enough=SURE).kept
    return NeighborDecoder(features, comp, best, T, class_shares, seed), estimates
