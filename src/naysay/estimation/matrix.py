"""T off its diagonal by expectation and maximisation, and the test whether labels follow a T at all.

Posteriors P, from others' labels by popularity with no T yet, weigh the items' own labels: T = P^T labels. Each row is
drawn towards the popularity model (`transition.popularity`) as if by so many times its own labels; T gives new
posteriors, and so on. How many steps and how strong a draw, the labels of half of the items decide, by their likelihood
under what the other half found. More steps find matrices whose likelihood on their own labels is higher and which are
wrong: mostly one step is best, several where bias is strong.

The test: neighbourhoods of some hundred items may mix classes in any way, so their labels may be any mixture of T's
rows; what no mixture explains speaks against T. A T that was estimated from the same labels is seldom rejected, an
assumed one is, as uniform naming by labels of people and machines.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay import shares, transition
from naysay.neighbors import Graph
from naysay.seeds import stream
from naysay.statistics import Counts, Fit, Floats, LabelCounts, as_matrix, fit

SHRINKAGES, STEPS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0), 8  # tried, strongest last
WORTH = 1e-4  # nats a label by which a weaker draw, or one step more, must be better
EMPTY = 0.5  # labels added to each row: a zero would make one label infinitely surprising to `fwd`
NEIGHBORHOOD = 250  # labelled items in one, on average
MIXING, MIXED = 200, 0.01  # steps to its likeliest mixture of classes; the least share that a class has in one
FEWEST = 10  # labels per class that a neighbourhood needs to be tested


def posteriors_before(shared: Floats, own: LabelCounts, class_shares: Tensor | None) -> Tensor:
    """Posteriors (r, K) before any T is known, from others' labels by popularity; under class shares where known."""
    Z = torch.from_numpy(shared)
    return _posterior(Z, shares.find(Z, torch.from_numpy(own), class_shares))


def _posterior(Z: Tensor, evidence: shares.Evidence) -> Tensor:
    """Posteriors (r, K); of a row that no label reaches, zeros."""
    return evidence.posterior(Z) * (Z.sum(1, keepdim=True) > 0)


def learn(
    shared: Floats, own: LabelCounts, before: Tensor, diagonal: Floats, seed: int
) -> tuple[dict[str, Any], Tensor]:
    """T with its errors, and how it was found, from others' labels Z (r, K), the own ones and the posteriors before.

    `diagonal` (K,) is taken as it is: where features mix classes, own labels cannot tell it. The posteriors (r, K) by
    which T was counted come with it.
    """
    Z, labels_of = torch.from_numpy(shared), torch.from_numpy(own).double()
    held = torch.from_numpy(stream(seed, "transition halves").random(len(own)) < 0.5)
    noise, wanted = torch.from_numpy(diagonal), before.mean(0) / before.mean(0).sum()
    popular = transition.popularity(labels_of / labels_of.sum(1, keepdim=True).clamp_min(1))
    prior = popular * (1 - noise)[:, None] + torch.diag(noise)

    def counted(P: Tensor, rows: Tensor, shrinkage: float) -> Tensor:
        counts = (P[rows].T @ labels_of[rows] + EMPTY / len(noise)) * (1 - torch.eye(len(noise), device=noise.device))
        T = (1 - noise)[:, None] * counts / counts.sum(1, keepdim=True)
        return (T + torch.diag(noise) + shrinkage * prior) / (1 + shrinkage)

    def judged(P: Tensor, T: Tensor, rows: Tensor) -> float:
        named = (P[rows] @ T).clamp_min(torch.finfo(P.dtype).tiny).log()
        return float((labels_of[rows] * named).sum() / labels_of[rows].sum().clamp_min(1))

    def steps(rows: Tensor, shrinkage: float, most: int) -> Iterator[tuple[Tensor, Tensor]]:
        P = before
        for _ in range(most):
            T = counted(P, rows, shrinkage)
            yield P, T
            P = _posterior(Z, shares.find(Z, Z, wanted, T))

    best, shrinkage, step = -math.inf, 0.0, 1
    for draw in SHRINKAGES:
        last = -math.inf
        both = zip(steps(~held, draw, STEPS), steps(held, draw, STEPS), strict=True)
        for at, (found, other) in enumerate(both, 1):
            value = (judged(*found, held) + judged(*other, ~held)) / 2
            if value > best + WORTH:
                best, shrinkage, step = value, draw, at
            if value < last:
                break
            last = value
    shrinkage /= 2  # all labels are twice as many as those of a half, against which so many were right
    *_, (P, T) = steps(torch.ones_like(held), shrinkage, step)
    after = _posterior(Z, shares.find(Z, Z, wanted, T))
    seen = (P.T @ labels_of).sum(1, keepdim=True).clamp_min(1)
    # of a mean drawn to its prior as strongly as is likeliest: by chance in the labels, and by being drawn
    errors = (T * (1 - T) / seen / (1 + shrinkage)).sqrt()
    told = {
        "transition": as_matrix(T.numpy()),
        "errors": as_matrix(errors.numpy()),
        "shrinkage": shrinkage,
        "steps": step,
        "gain": judged(after, T, held) - judged(before, T, held),
    }
    return told, P


def neighborhoods(graph: Graph, labelled: int, seed: int) -> Counts:
    """The neighbourhood (n,) of each row: that of the nearest neighbour that has one, outwards from rows at random.

    So many that each has some hundred of the `labelled` rows; -1 where a row has none.
    """
    group = np.full(graph.n, -1)
    indices = graph.indices.cpu()
    own = torch.arange(graph.n, dtype=torch.int32, device=indices.device)[:, None]
    near = indices.where(graph.distances.cpu().isfinite(), own).numpy()  # who has none reaches itself
    centres = stream(seed, "neighborhoods").permutation(graph.n)[: max(1, labelled // NEIGHBORHOOD)]
    group[centres] = np.arange(len(centres))
    while len(left := np.flatnonzero(group == -1)):
        reached = group[near[left]]
        first = (reached >= 0).argmax(1)
        found = reached[np.arange(len(left)), first]
        if (found < 0).all():
            break
        group[left] = found
    return group


def rejects(group: Counts, own: LabelCounts | Floats, T: Any) -> Fit:
    """Whether the labels `own` (n, K) of groups of rows (n,) are mixtures of T's rows, and the size of what is left."""
    rows, n_groups = group >= 0, int(group.max(initial=0)) + 1
    observed = np.zeros((n_groups, own.shape[1]))
    np.add.at(observed, group[rows], own[rows])
    observed = observed[observed.sum(1) >= FEWEST * own.shape[1]]
    if not len(observed):
        return fit(np.zeros(1), np.zeros(1), 0)
    matrix = np.array(T)
    mixture = np.full((len(observed), len(matrix)), 1 / len(matrix))
    for _ in range(MIXING):  # expectation and maximisation of the likeliest mixture, whose rows stay shares
        expected = np.maximum(mixture @ matrix, 1e-12)
        mixture *= (observed / expected) @ matrix.T
        mixture /= np.maximum(mixture.sum(1, keepdims=True), 1e-12)
    expected = observed.sum(1, keepdims=True) * (mixture @ matrix)
    # a mixture of K rows takes a degree of freedom for each class in it beyond the first
    free = int((mixture > MIXED).sum()) - len(observed)
    return fit(observed, expected, max(1, len(observed) * (own.shape[1] - 1) - free))
