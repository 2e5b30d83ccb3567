"""Augmentation: every row shares its complementary labels with its nearest neighbours (Algorithm 1 of arXiv
2305.08344).

    Z = naysay.augment(features, comp)                        # DMS with the paper's settings
    Z, report = augmentation.augment_report(features, comp)   # and what it did, told without a single ordinary label

Neighbours are looked up in the features as they are. The paper's gamma = 1 belongs to rows of length 1:
`metric="cosine"` gives them that length first, and is right for most embeddings; on a table of any other scale
`gamma="auto"` reads it off the distances. The graph joins the rows given here and no others, so rows held out for
validation must not be among them.
"""

import warnings
from typing import Any

import torch
from torch import Tensor

from naysay.augmentation import schemes, weights
from naysay.augmentation.diagnostics import Description, Report, describe
from naysay.augmentation.inputs import destination, read_graph, read_labels
from naysay.augmentation.propagation import Propagation, check_settings, divide_rows, propagate
from naysay.augmentation.schemes import SCHEMES, Scheme
from naysay.neighbors import Graph

__all__ = [
    "SCHEMES",
    "Description",
    "Propagation",
    "Report",
    "Scheme",
    "augment",
    "augment_report",
    "describe",
    "propagate",
]


def augment(
    features: Any,
    comp: Any,
    scheme: str = "dms",
    n_neighbors: int = 64,
    alpha: float = 0.1,
    gamma: float | str = 1.0,
    rounds: int | None = None,
    *,
    n_classes: int | None = None,
    method: str = "auto",
    metric: str = "euclidean",
    tol: float | None = None,
) -> Any:
    """Labels Z (n, K) float32 after sharing: a numpy array, or a tensor on the same device if features or comp is a
    tensor.

    features: (n, d), or a ready `naysay.neighbors.Graph` of the rows, of which the nearest `n_neighbors` are used (all,
    if it has fewer).
    comp: labels as a float matrix (n, K), or class numbers (n,), (n, m) or ragged lists, with -1 or an empty list for
    unlabelled.
    scheme: none, rss, rms, dss or dms (`SCHEMES`): it sets the weights, and the rounds unless you give them.
    alpha: the weight of a row's own labels, above 0 and at most 1.
    gamma: how fast the weights of dss and dms fall with squared distance; "auto" lets the last neighbour weigh 1/k of
    the nearest.
    n_classes: K, for class numbers; without it the largest number given is the last class.
    method, metric: how `naysay.neighbors.build` finds neighbours ("exact", "approximate", "auto"; "euclidean",
    "cosine").
    tol: end the rounds once no entry changes by more than this; `augment_report` says after how many.

    Rows sum to 1, or to 0 where no label arrives within the rounds. Unlabelled rows receive labels, and give none of
    their own.
    """
    return augment_report(
        features,
        comp,
        scheme,
        n_neighbors,
        alpha,
        gamma,
        rounds,
        n_classes=n_classes,
        method=method,
        metric=metric,
        tol=tol,
    )[0]


def augment_report(
    features: Any,
    comp: Any,
    scheme: str = "dms",
    n_neighbors: int = 64,
    alpha: float = 0.1,
    gamma: float | str = 1.0,
    rounds: int | None = None,
    *,
    n_classes: int | None = None,
    method: str = "auto",
    metric: str = "euclidean",
    tol: float | None = None,
) -> tuple[Any, Report]:
    """What `augment` returns for the same arguments, and an account of what it did to the labels."""
    row = schemes.get(scheme)
    check_settings(alpha, rounds, tol)
    weights.check_gamma(gamma)
    total = row.rounds if rounds is None else int(rounds)
    device, as_tensor = destination(features, comp)
    given = read_labels(comp, n_classes).to(device, torch.float32)
    if row.weights is None or total == 0:
        Z = divide_rows(given)
        report = Report(row.name, 0, 0.0, alpha, None, 0, 0.0, None, describe(given, Z))
    else:
        graph = read_graph(features, len(given), n_neighbors, method, metric).to(device)
        W, used = _weigh(graph, row, gamma)
        shared = propagate(graph.indices, W, given, alpha=alpha, rounds=total, tol=tol)
        Z = shared.labels
        effective = float(weights.effective_neighbours(W).median())
        report = Report(
            row.name, graph.k, effective, alpha, used, shared.rounds, shared.change, graph.recall, describe(given, Z)
        )
    return (Z if as_tensor else Z.cpu().numpy()), report


def _weigh(graph: Graph, scheme: Scheme, gamma: float | str) -> tuple[Tensor, float | None]:
    """The scheme's weights (n, k), and the gamma they were made with."""
    if scheme.weights == "rank":
        return weights.by_rank(graph.n, graph.k, graph.device), None
    used = weights.auto_gamma(graph.distances) if gamma == "auto" else float(gamma)
    W = weights.by_distance(graph.distances, used)
    if not weights.fits(graph.distances, W, used):
        typical = float(graph.distances.median())
        warnings.warn(
            f"gamma={used:g} does not suit these features, whose median squared distance is {typical:.3g}: most rows "
            "listen to their "
            "nearest neighbour alone, or to all alike. Use gamma='auto', or metric='cosine' for embeddings.",
            stacklevel=4,
        )
    return W, used
