"""Classification without training (Lin et al. 2023, baselines): a point's neighbours' labels estimate how often each
class is named as wrong there, and the class named least often is predicted; with a T, the class whose row of T is
nearest (L1) to the estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from naysay import labels, losses, neighbors, selection, transition
from naysay.errors import InputError
from naysay.selection import Estimate

KS = tuple(2**power for power in range(2, 11))  # 4, 8, ..., 1024


def local_distribution(comp: Tensor, near: Tensor) -> Tensor:
    """The mean (m, K) of the labels `comp` (n, K) of each point's neighbours `near` (m, k); uniform without labels."""
    total = torch.zeros(len(near), comp.shape[1], dtype=comp.dtype, device=comp.device)
    for column in near.long().unbind(1):  # (m, k, K) at once would not fit in memory for k = 1024
        total += comp[column]
    mass = total.sum(1, keepdim=True)
    return torch.where(mass > 0, total / mass, 1 / comp.shape[1])


def decode(distribution: Tensor, T: Tensor | None = None) -> Tensor:
    """Class numbers (m,): the least likely label (the first of equals), or with T (K, K) the nearest row."""
    return distribution.argmin(1) if T is None else losses.nearest_row(distribution, T)


@dataclass(frozen=True, eq=False)
class NeighborDecoder:
    """Labelled rows in a feature space, ready to predict: features (n, d), comp (n, K), k neighbours, T if known."""

    features: Tensor
    comp: Tensor
    k: int
    T: Tensor | None = None

    def distribution(self, features: Any) -> Tensor:
        """How likely each class is to be named as wrong, (m, K), at `features` (m, d)."""
        near = neighbors.query(self.features, torch.as_tensor(features), self.k).indices
        return local_distribution(self.comp, near)

    def predict(self, features: Any) -> Tensor:
        """Class numbers (m,)."""
        return decode(self.distribution(features), self.T)


def choose_k(
    features: Any, comp: Any, *, T: Any = None, ks: Sequence[int] = KS, held_out: float = 0.1, seed: int = 0
) -> tuple[NeighborDecoder, dict[int, Estimate]]:
    """The decoder with the best k of `ks` by the URE of the 0-1 loss on a held-out share, and each k's estimate.

    The decoder returned holds all rows. Without a T, labels are decoded by the least likely one and judged as uniform.
    """
    features, comp = torch.as_tensor(features), labels.validate(comp)
    T = None if T is None else transition.validate(T, comp.shape[1])
    rows, held = selection.hold_out(len(comp), held_out, seed)
    ks = sorted(k for k in ks if k <= len(rows))
    if not ks:
        raise InputError(f"no k of the candidates is within the {len(rows)} training rows; pass smaller ks.")
    near = neighbors.query(features[rows], features[held], ks[-1]).indices
    predicted = {k: decode(local_distribution(comp[rows], near[:, :k]), T) for k in ks}
    estimates = {k: selection.ure_accuracy(predicted[k], comp[held], T) for k in ks}
    best = max(ks, key=lambda k: estimates[k].value)
    return NeighborDecoder(features, comp, best, T), estimates
