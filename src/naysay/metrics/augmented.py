"""How right augmented labels are, for experiments in which the truth is known (arXiv 2305.08344; the design's "metrics
beside it").

A complementary label says what a thing is not: mass on the true class is error, and the class with the least mass is
the guess.
"""

from typing import Any

import torch
from torch import Tensor

from naysay import labels
from naysay.errors import InputError
from naysay.neighbors import Graph


def oracle_noise_rate(graph: Graph, comp: Any, y_true: Any) -> float:
    """Neighbouring noise rate: the share of all neighbours' complementary labels `comp` (n, K) that name the row's own
    true class.

    Unlabelled neighbours give no label and don't count. Uniform labels without neighbours' help would have 1/K.
    """
    comp, y_true = _matching(comp, y_true)
    if graph.columns is not None or graph.n != len(comp):
        raise InputError(f"graph must join the {len(comp)} rows of comp with each other; got {graph}.")
    neighbours = graph.indices.to(comp.device).long()
    # one class at a time: (n, k) numbers in memory, not (n, k, K)
    wrong = sum(float(comp[:, c][neighbours[y_true == c]].sum(dtype=torch.float64)) for c in range(comp.shape[1]))
    given = float(comp.sum(1)[neighbours].sum(dtype=torch.float64))
    if not given:
        raise InputError("no neighbour has a complementary label, so there is no noise rate; pass labelled rows.")
    return wrong / given


def oracle_mass(Z: Any, y_true: Any) -> float:
    """The mean mass of labels Z (n, K) on the true class, over the rows that have labels: 0 is perfect, 1/K is chance."""
    Z, y_true = _matching(Z, y_true)
    labelled = Z.sum(1) > 0
    if not bool(labelled.any()):
        raise InputError("no row has a label, so there is no mass on the true class; pass labelled rows.")
    return float(Z.double().gather(1, y_true[:, None])[labelled].mean())


def oracle_argmin_accuracy(Z: Any, y_true: Any) -> float:
    """The share of rows of Z (n, K) whose least-labelled class is the true one.

    Where several classes share the least mass the row counts as the true class's share of them, so that an unlabelled
    row counts as 1/K.
    """
    Z, y_true = _matching(Z, y_true)
    smallest = Z.amin(1, keepdim=True)
    least = smallest == Z
    return float((least.gather(1, y_true[:, None])[:, 0].double() / least.sum(1)).mean())


def _matching(comp: Any, y_true: Any) -> tuple[Tensor, Tensor]:
    comp = labels.validate(comp)
    y_true = torch.as_tensor(y_true).to(comp.device, torch.int64)
    if y_true.shape != comp.shape[:1] or not len(y_true):
        raise InputError(
            f"y_true must be one class number for each row of labels; got {tuple(y_true.shape)} for "
            f"{tuple(comp.shape)}."
        )
    if int(y_true.min()) < 0 or int(y_true.max()) >= comp.shape[1]:
        raise InputError(
            f"y_true must be class numbers from 0 to {comp.shape[1] - 1}; got {int(y_true.min())} to "
            f"{int(y_true.max())}."
        )
    return comp, y_true
