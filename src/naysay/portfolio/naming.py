"""How labels come about, found by models rather than by neighbours: the T under which labels held out are likeliest.

Answers are compared, simplest first: every wrong class alike; each as it is popular; a T counted from what cross-fitted
models say the items are, joined with their labels (expectation and maximisation, the models trained anew by each T);
and the one that is left with a share of the labels named at random, the item's own class among them. A richer answer
has to gain log n / n nats a label for each of its parameters, twice what the Bayesian information criterion asks: these
parameters were found by the labels that judge them. A counted T must also leave most predictions as they were: where
naming is so uneven that classes can be confused with one another, the likelihood does not tell which is which, and a T
that renames them looks as good as the truth.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from naysay import transition
from naysay.bases.through import Floats, as_floats, own_evidence, softmax
from naysay.portfolio.blend import loss_of, sharpness
from naysay.statistics import Fit, by_gain

NOISES = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4)  # shares of labels at random that are tried
ROUNDS = 5  # of counting T and training by it
STEPS = 20  # of expectation and maximisation in each
AGREE = 0.6  # of the predictions that a counted T may not change
DRAWN = 3.0  # labels of each class that speak for popularity before any is counted

CrossFit = Callable[[Floats], Floats]  # T -> the probabilities (n, K) of labelled rows by models that did not see them


@dataclass(frozen=True, eq=False)
class Naming:
    """T (K, K), how it was found ("uniform", "popularity", "counted" or "given"), and the loss of each answer tried.

    noise: the share of the labels that T takes to be named at random. even: the test whether every wrong class is named
    alike, by what the other answers gain; None where nothing was compared.
    """

    T: Floats
    how: str
    losses: dict[str, float]
    noise: float = 0.0
    even: Fit | None = None


def find(comp: Floats, counts: Floats, cross_fit: CrossFit) -> Naming:
    """How the labels `comp` (n, K), of which each row has `counts` (n, K), come about."""
    n_classes, price = comp.shape[1], np.log(counts.sum()) / counts.sum()
    uniform = as_floats(transition.uniform(n_classes))
    popular = as_floats(transition.popularity(torch.from_numpy(comp)))
    p = cross_fit(uniform)
    losses = {"uniform": _mean(p, comp, uniform)}
    T, how = uniform, "uniform"
    by_popularity = cross_fit(popular)
    losses["popularity"] = _mean(by_popularity, comp, popular)
    if losses["uniform"] - losses["popularity"] > (n_classes - 1) * price:
        T, how, p = popular, "popularity", by_popularity
    chance = max(n_classes * (n_classes - 2) - (n_classes - 1), 1) * price
    first = losses[how]
    for _ in range(ROUNDS):
        counted = count(p, counts, T, popular)
        after = cross_fit(counted)
        loss = _mean(after, comp, counted)
        losses.setdefault("counted", loss)
        same = float((after.argmax(1) == p.argmax(1)).mean())
        if first - loss < chance or loss > losses[how] or same < AGREE:
            break
        T, how, p = counted, "counted", after
        losses["counted"] = loss
    noise, T = _noise(p, comp, T, price)
    return Naming(T, how, losses, noise, _even(losses, float(counts.sum()), n_classes))


def _even(losses: dict[str, float], n_labels: float, n_classes: int) -> Fit:
    """Whether naming is even, against the answer that speaks more clearly against it.

    To be trained by, an answer must gain more than chance gives at its worst; to be doubted, even naming need only lose
    more than chance gives mostly: what is in between is not trained by, and says that evenness is not so.
    """
    parameters = {"popularity": n_classes - 1, "counted": n_classes * (n_classes - 2)}
    tests = [by_gain(n_labels * (losses["uniform"] - losses[how]), n_labels, df) for how, df in parameters.items()]
    return max(tests, key=lambda test: test.effect_low)


def _noise(p: Floats, comp: Floats, T: Floats, price: float) -> tuple[float, Floats]:
    """The share of labels named at random that makes them likeliest, and T with it; 0 where that gains too little.

    The models' probabilities p (n, K) were found without noise, which made them less sure: so each share is judged with
    the sharpness that suits it.
    """
    logs = np.log(np.maximum(p, 1e-9))

    def loss(T: Floats) -> float:
        return _mean(softmax(sharpness(logs, comp, T) * logs), comp, T)

    at_random = np.full_like(T, 1 / len(T))
    mixed = {noise: (1 - noise) * T + noise * at_random for noise in NOISES}
    losses = {noise: loss(found) for noise, found in mixed.items()}
    best = min(losses, key=lambda noise: losses[noise])
    return (best, mixed[best]) if loss(T) - losses[best] > price else (0.0, T)


def count(p: Floats, counts: Floats, T: Floats, popular: Floats) -> Floats:
    """T as the labels (n, K) of items with the probabilities p (n, K) count it, beginning with T."""
    off = 1 - np.eye(len(T))
    prior = np.log(np.maximum(p, 1e-9))
    for _ in range(STEPS):
        likely = softmax(prior + own_evidence(counts, T))
        found = (likely.T @ counts + DRAWN * popular) * off
        T = found / found.sum(1, keepdims=True)
    return T


def _mean(p: Floats, comp: Floats, T: Floats) -> float:
    return float(loss_of(p, comp, T).mean())
