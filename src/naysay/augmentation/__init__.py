"""Augmentation: every row shares its complementary labels with its nearest neighbours (Algorithm 1, arXiv 2305.08344).

    Z = naysay.augment(features, comp)                                  # DMS with the paper's settings
    Z, report = augmentation.augment_report(features, comp)             # and what it did, told without the truth
    Z, report = augmentation.share(features, comp, Sharing("rms", 16))  # the settings as one record

Neighbours are looked up in the features as they are. The paper's gamma = 1 belongs to rows of length 1:
`metric="cosine"` gives them that length first, and is right for most embeddings; on a table of any other scale
`gamma="auto"` reads it off the distances. The graph joins the rows given here and no others, so rows held out for
validation must not be among them.
"""

from typing import Any

import torch

from naysay.augmentation.diagnostics import Description, Report, describe
from naysay.augmentation.inputs import destination, read_graph, read_labels
from naysay.augmentation.propagation import Propagation, divide_rows, propagate
from naysay.augmentation.schemes import SCHEMES, Scheme, Sharing, neighbors_for
from naysay.augmentation.weights import effective_neighbors, warn_unless_fits

__all__ = [
    "SCHEMES",
    "Description",
    "Propagation",
    "Report",
    "Scheme",
    "Sharing",
    "augment",
    "augment_report",
    "describe",
    "neighbors_for",
    "propagate",
    "share",
]


def augment(
    features: Any,
    comp: Any,
    scheme: str = "dms",
    n_neighbors: int | None = 64,
    alpha: float = 0.1,
    gamma: float | str = 1.0,
    rounds: int | None = None,
    *,
    n_classes: int | None = None,
    method: str = "auto",
    metric: str = "euclidean",
    tol: float | None = None,
) -> Any:
    """Labels Z (n, K) float32 after sharing: a numpy array, or a tensor on its device if features or comp is one.

    features: (n, d), or a ready `naysay.neighbors.Graph` of the rows, of which the nearest `n_neighbors` are used (all,
    if it has fewer).
    comp: labels as a float matrix (n, K), or class numbers (n,), (n, m) or ragged lists, with -1 or an empty list for
    unlabelled.
    scheme: none, rss, rms, dss or dms (`SCHEMES`): it sets the weights, and the rounds unless you give them.
    n_neighbors: of each row; None takes as many as the classes are large enough for, at most 64.
    alpha: the weight of a row's own labels, above 0 and at most 1.
    gamma: how fast the weights of dss and dms fall with squared distance; "auto" lets the last neighbour weigh 1/k of
    the nearest.
    n_classes: K, for class numbers; without it the largest number given is the last class.
    method, metric: how `naysay.neighbors.build` finds neighbours (exact, approximate, auto; euclidean, cosine).
    tol: end the rounds once no entry changes by more than this; `augment_report` says after how many.

    Rows sum to 1, or to 0 where no label arrives within the rounds. Unlabelled rows receive labels, and give none of
    their own.
    """
    sharing = Sharing(scheme, n_neighbors, alpha, gamma, rounds, metric, method, tol)
    return share(features, comp, sharing, n_classes=n_classes)[0]


def augment_report(
    features: Any,
    comp: Any,
    scheme: str = "dms",
    n_neighbors: int | None = 64,
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
    sharing = Sharing(scheme, n_neighbors, alpha, gamma, rounds, metric, method, tol)
    return share(features, comp, sharing, n_classes=n_classes)


def share(features: Any, comp: Any, sharing: Sharing, *, n_classes: int | None = None) -> tuple[Any, Report]:
    """The labels Z (n, K) after sharing as the record says, and what was done; features and comp as in `augment`."""
    row = sharing.row
    device, as_tensor = destination(features, comp)
    given = read_labels(comp, n_classes).to(device, torch.float32)
    if row.weigh is None or sharing.total == 0:
        Z = divide_rows(given)
        report = Report(row.name, 0, 0.0, sharing.alpha, None, 0, 0.0, None, describe(given, Z))
        return (Z if as_tensor else Z.cpu().numpy()), report
    n, n_classes = given.shape
    graph = read_graph(features, n, n_classes, sharing).to(device)
    gamma = sharing.gamma_for(graph.distances) if row.uses_gamma else None
    W = row.weigh(graph.distances, gamma)
    effective = effective_neighbors(W)
    if gamma is not None:
        warn_unless_fits(gamma, graph.distances.amin(1), effective, graph.k, graph.distances)
    shared = propagate(graph.indices, W, given, alpha=sharing.alpha, rounds=sharing.total, tol=sharing.tol)
    Z = shared.labels
    report = Report(
        scheme=row.name,
        neighbors=graph.k,
        effective_neighbors=float(effective.median()),
        alpha=sharing.alpha,
        gamma=gamma,
        rounds=shared.rounds,
        change=shared.change,
        recall=graph.recall,
        labels=describe(given, Z),
    )
    return (Z if as_tensor else Z.cpu().numpy()), report
