"""The noise of labels by likelihood: how often they name the true class, where nobody knows which class that is.

An item's own label names class k with the chance (P T)_k, for its posterior P by others' labels. T's rows are the
popularity model but for one diagonal entry v, the noise, in all of them. Where the posterior is sharp a label tells of
v, where it is not a label tells of the posterior: whether it is too sure of itself, P^b with b below 1, or not sure
enough. v and b are found together, from all items, and v's interval is that of its profile likelihood, so that what
cannot be told from features that mix classes makes it wide. Counting the labels that name the likely class, on the
clearest items alone, instead calls every mistaken class noise, and needs ten times the labels.
"""

from dataclasses import dataclass

import numpy as np

from naysay.statistics import Floats, LabelCounts

SHARPENED = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3, 1.8, 2.5, 3.5, 5.0)  # powers of the posterior that are tried
FINE = 40  # rates tried at a time, first in all and then about the likeliest
DROP = 2.0  # nats by which ends of the interval are less likely than its best: two standard errors of a normal one


@dataclass(frozen=True)
class Noise:
    """The share of labels that name the true class: the likeliest `value`, and what is as good as two errors off."""

    value: float
    low: float
    high: float


def by_likelihood(own: LabelCounts | Floats, posteriors: Floats, popular: Floats) -> Noise:
    """The noise of the items' own labels (r, K), by posteriors (r, K) from others' and the popularity model (K, K)."""
    rows, classes = np.nonzero(own * (posteriors.sum(1, keepdims=True) > 0))
    if not len(rows):
        return Noise(0.0, 0.0, 1 / own.shape[1])
    times = own[rows, classes]
    logs = np.log(np.maximum(posteriors, 1e-30))
    logs -= logs.max(1, keepdims=True)
    named = []  # for each sharpening, what chance of its label an item has if T were a unit matrix, or without noise
    for power in SHARPENED:
        P = np.exp(power * logs)
        P /= P.sum(1, keepdims=True)
        named.append((P[rows, classes], (P @ popular)[rows, classes]))

    def profile(rates: Floats) -> Floats:
        chances = ([np.maximum(v * hit + (1 - v) * miss, 1e-30) for v in rates] for hit, miss in named)
        best: Floats = np.max([[float(times @ np.log(q)) for q in of] for of in chances], axis=0)
        return best

    rates = np.linspace(0, 1, FINE) ** 2 / own.shape[1]  # up to labels named at random, finest near 0
    for _ in range(2):
        values = profile(rates)
        likely = np.flatnonzero(values >= values.max() - DROP)
        value, low, high = float(rates[values.argmax()]), float(rates[likely[0]]), float(rates[likely[-1]])
        around = rates[max(likely[0] - 1, 0)], rates[min(likely[-1] + 1, len(rates) - 1)]
        rates = np.linspace(*around, FINE)
    return Noise(value, low, high)
