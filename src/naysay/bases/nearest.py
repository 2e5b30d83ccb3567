"""The labels of the nearest rows as evidence: a class is as likely as it makes its neighbours' labels likely.

Labels of k neighbours, each of the item's own class or not, are taken as drawn from T independently; they are not, and
how much too sure that is, the calibration of the portfolio tells.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay import neighbors
from naysay.bases.through import Floats, own_evidence


@dataclass(frozen=True, eq=False)
class NearestModel:
    """Rows (n, d), the evidence of their labels (n, K), and how many of them are asked."""

    rows: NDArray[np.float32]
    evidence: NDArray[np.float32]
    k: int

    def logits(self, x: Any) -> Floats:
        """The evidence (n, K) of the k nearest rows, a label's worth on average."""
        near = neighbors.query(self.rows, np.ascontiguousarray(x, np.float32), self.k).indices.numpy()
        total = np.zeros((len(near), self.evidence.shape[1]))
        for column in near.T:
            total += self.evidence[column]
        mean: Floats = total / np.sqrt(self.k)
        return mean


@dataclass(frozen=True)
class Nearest:
    """k: how many neighbours are asked."""

    k: int = 64

    def fit(self, x: Any, comp: Floats, T: Floats, seed: int = 0) -> NearestModel:
        """Keep the labelled rows of x (n, d)."""
        labelled = comp.sum(1) > 0
        evidence = own_evidence(comp[labelled], T).astype(np.float32)
        rows = np.ascontiguousarray(x[labelled], np.float32)
        return NearestModel(rows, evidence, min(self.k, len(rows)))
