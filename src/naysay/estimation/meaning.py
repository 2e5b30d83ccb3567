"""Do labels say what items are not, or what they are? Ordinary labels that are passed by mistake give themselves away.

An item's nearest neighbours are mostly of its class. Their ordinary labels are therefore mostly its own label. Labels
that say what items are not agree much less: with even naming an item's label is its neighbours' commonest one at most
once in K - 1 times, with the strongest bias of the literature three times in eight (K of 5 and more) or in four (K of 3
and 4, where there are only two or three wrong classes to prefer). So: how often is an item's own label the commonest
among its ten nearest, beyond how often the commonest label of all is named? Labels by popularity gain nothing so, and a
copy of an item says nothing (it may have come with its label). What no number can tell are labels of which every class
always has the same wrong one: they are ordinary labels under other names, and are asked about.

Measured, one label each (`gain`, by the low end of its interval): 0.86 to 1.00 for ordinary labels of iris, wine,
digits, MNIST and blobs, 0.83 of KMNIST, 0.53 of a mixed `make_classification`. Of 4,910 draws of complementary labels
on 26 sets of 3 to 20 classes, even and uneven, the most were 0.30 for uniform and weakly biased ones, 0.58 for strong
bias of 3 or 4 classes and 0.21 of more, 0.49 for popular ones, 0.03 for people's and machines': none
was called ordinary.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay import neighbors
from naysay.seeds import stream
from naysay.statistics import Counts, LabelCounts, Share, share
from naysay.words import percent

NEAREST = 10  # neighbours that are asked: the nearest are of the same class most often
FEWEST = 10  # labels per class below which nothing is said
FEW_CLASSES, SURE_OF_FEW, SURE = 4, 0.68, 0.5  # the gain above which labels are ordinary, of few classes and of more
COPY = 1e-6  # of the furthest neighbour's distance, at which rounding alone keeps copies apart
SAMPLE = 2000  # rows that `ask_meaning` looks at


@dataclass(frozen=True)
class Agreement:
    """`own`: the labels that are the commonest among their neighbours'; `usual`: the share of the commonest of all."""

    own: Share
    usual: float
    classes: int

    @property
    def gain(self) -> float:
        """How much of what is left beyond naming the usual label neighbours know, at least (the interval's low end)."""
        return (self.own.low - self.usual) / max(1 - self.usual, 1e-12)

    @property
    def ordinary(self) -> bool:
        """Whether these look like labels that say what items are."""
        return self.gain > (SURE_OF_FEW if self.classes <= FEW_CLASSES else SURE)


def agreement(graph: neighbors.Graph, counts: LabelCounts, rows: Counts) -> Agreement:
    """How far labels, counts (n, K), of `rows` agree with those of their neighbours in a graph of the n rows."""
    near, apart = (part[torch.from_numpy(rows)].cpu().numpy() for part in (graph.indices, graph.distances))
    votes, seen = np.zeros((len(rows), counts.shape[1])), np.zeros(len(rows), dtype=np.int64)
    labelled = counts.sum(1) > 0
    for j in range(near.shape[1]):
        if (seen >= NEAREST).all():
            break
        asked = (seen < NEAREST) & labelled[near[:, j]]
        asked &= apart[:, j] > COPY * apart[:, -1]
        votes += counts[near[:, j]] * asked[:, None]
        seen += asked
    own = np.where(seen[:, None] > 0, counts[rows], 0)
    agreed = int(own[np.arange(len(rows)), votes.argmax(1)].sum())
    named = own.sum(0)
    return Agreement(share(agreed, int(named.sum())), float(named.max() / max(named.sum(), 1)), counts.shape[1])


def ask_meaning(comp: Tensor, features: Any, seed: int = 0) -> Agreement | None:
    """The agreement of labels (n, K) in the standardised space of features (n, ...), by a sample of the labelled rows.

    None where there are too few, or the labels are soft: such are nobody's mistake.
    """
    rows = np.flatnonzero(comp.sum(1).numpy() > 0)
    rows = np.sort(stream(seed, "meaning").permutation(rows)[:SAMPLE])
    given = comp[torch.from_numpy(rows)]
    if len(rows) < FEWEST * comp.shape[1] or not bool((given.max(1).values == 1).all()):
        return None
    from naysay.features import find_space

    x = np.asarray(features[rows])
    graph = neighbors.build(find_space(x, "standardised" if x.ndim == 2 else "raw").features, 2 * NEAREST)
    return agreement(graph, given.numpy().astype(np.int32), np.arange(len(rows)))


def ordinary(found: Agreement) -> str:
    """What to say of labels that look ordinary: what was seen, and what to do in either case."""
    often = f"{percent(found.own.value, 0)} of them are the commonest among the labels of their items' neighbours"
    return (
        f"these look like ordinary labels, which say what items are: {often} (the commonest of all is "
        f"{percent(found.usual, 0)}), and labels that say what items are not agree far less"
    )
