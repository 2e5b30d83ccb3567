"""Augmentation: every row shares its complementary labels with its nearest neighbours (Algorithm 1, arXiv 2305.08344).

    Z = naysay.augment(features, comp)                                  # DMS with the paper's settings
    Z, report = augmentation.augment_report(features, comp)             # and what it did, told without the truth
    Z, report = augmentation.share(features, comp, Sharing("rms", 16))  # the settings as one record

Neighbours are looked up in the features as they are. The paper gives no gamma; 1, ours, belongs to rows of length 1:
`metric="cosine"` gives them that length first, and is right for most embeddings; on a table of any other scale, and
where 1 weighs all alike, `gamma="auto"` reads it off the distances. `n_neighbors="auto"` chooses neighbours and gamma
by hidden labels (`augmentation.choice`), as `alpha="auto"` and `whiten="auto"` do for theirs. The graph joins the rows
given here and no others, so rows held out for validation must not be among them.
"""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay import labels, neighbors, shares
from naysay import transition as transitions
from naysay.augmentation.choice import Choice, Settled, foresight, settle
from naysay.augmentation.diagnostics import Description, Report, are_turned, describe
from naysay.augmentation.propagation import Propagation, divide_rows, propagate
from naysay.augmentation.schemes import SCHEMES, Scheme, Sharing, neighbors_for
from naysay.augmentation.weights import effective_neighbors, warn_unless_fits
from naysay.errors import InputError
from naysay.features.whiten import whiten as whitened
from naysay.neighbors import Graph

__all__ = [
    "SCHEMES",
    "Choice",
    "Description",
    "Propagation",
    "Report",
    "Scheme",
    "Settled",
    "Sharing",
    "augment",
    "augment_report",
    "correct",
    "describe",
    "foresight",
    "neighbors_for",
    "propagate",
    "read_space",
    "share",
]


def augment(
    features: Any,
    comp: Any,
    scheme: str = "dms",
    n_neighbors: int | str | None = 64,
    alpha: float | str = 0.1,
    gamma: float | str | None = 1.0,
    rounds: int | None = None,
    *,
    n_classes: int | None = None,
    method: str = "auto",
    metric: str = "euclidean",
    tol: float | None = None,
    class_shares: Any = None,
    transition: Any = None,
    whiten: float | str | None = None,
) -> Any:
    """Labels Z (n, K) float32 after sharing: a numpy array, or a tensor on its device if features or comp is one.

    features: (n, d), or a ready `naysay.neighbors.Graph` of the rows; of one with more neighbours the nearest are used.
    comp: a float matrix (n, K), or class numbers (n,), (n, m) or ragged lists; -1 or an empty list is unlabelled.
    scheme: none, rss, rms, dss or dms (`SCHEMES`): it sets the weights, and the rounds unless you give them.
    n_neighbors: of each row; None takes as many as the classes are large enough for, at most 64; "auto" chooses, with
    gamma where that is "auto" or None, what foresees hidden labels best: 64 unless another is better beyond its error.
    alpha: the weight of a row's own labels, above 0 and at most 1, or "auto" to choose it in the same way.
    gamma: how fast weights of dss and dms fall with squared distance; "auto": the last weighs 1/k of the nearest;
    None: 1 by angle, "auto" elsewhere.
    whiten: compare features by angle after `naysay.features.whiten` of this strength; "auto" chooses whether and how.
    n_classes: K, for class numbers; without it the largest number given is the last class.
    method, metric: how `naysay.neighbors.build` finds neighbours (exact, approximate, auto; euclidean, cosine).
    tol: end the rounds once no entry changes by more than this; `augment_report` says after how many.
    class_shares: how common the classes are, "even" or K shares: what popular labels get wrong is then put right, and
    what comes out are labels as uniform naming would give them (`naysay.shares`). None knows nothing, and corrects
    nothing; nor does the scheme none. transition: the T (K, K) by which labels came about, where it is known; it
    corrects in the same way.

    Rows sum to 1, or to 0 where no label arrives within the rounds. Unlabelled rows receive labels and give none.
    """
    sharing = Sharing(scheme, n_neighbors, alpha, gamma, rounds, metric, method, tol, class_shares, transition, whiten)
    return share(features, comp, sharing, n_classes=n_classes)[0]


def augment_report(
    features: Any,
    comp: Any,
    scheme: str = "dms",
    n_neighbors: int | str | None = 64,
    alpha: float | str = 0.1,
    gamma: float | str | None = 1.0,
    rounds: int | None = None,
    *,
    n_classes: int | None = None,
    method: str = "auto",
    metric: str = "euclidean",
    tol: float | None = None,
    class_shares: Any = None,
    transition: Any = None,
    whiten: float | str | None = None,
) -> tuple[Any, Report]:
    """What `augment` returns for the same arguments, and an account of what it did to the labels."""
    sharing = Sharing(scheme, n_neighbors, alpha, gamma, rounds, metric, method, tol, class_shares, transition, whiten)
    return share(features, comp, sharing, n_classes=n_classes)


def share(features: Any, comp: Any, sharing: Sharing, *, n_classes: int | None = None) -> tuple[Any, Report]:
    """The labels Z (n, K) after sharing as the record says, and what was done; features and comp as in `augment`.

    Features may also be what `read_space` made of them, with its settings in place of those that were to be chosen.
    """
    row = sharing.row
    tensors = [given.device for given in (features, comp) if isinstance(given, Tensor)]
    # the work is done with the first tensor, else with the graph, else on the CPU
    device = tensors[0] if tensors else features.device if isinstance(features, Graph) else torch.device("cpu")
    given = read_labels(comp, n_classes).to(device, torch.float32)
    shares.read(sharing.class_shares, given.shape[1])  # before the work, not after it
    if row.weigh is None or sharing.total == 0:
        Z, alpha = divide_rows(given), Sharing().alpha if sharing.alpha == "auto" else sharing.alpha
        report = Report(row.name, 0, 0.0, float(alpha), None, 0, 0.0, None, describe(given, Z))
        return (Z if tensors else Z.cpu().numpy()), report
    if sharing.transition is not None:
        transitions.validate(sharing.transition, given.shape[1])
    found = features if isinstance(features, Settled) else read_space(features, given, sharing)
    graph, sharing, alpha = found.graph, found.sharing, found.alpha
    gamma = sharing.gamma_for(graph) if row.uses_gamma else None
    W = row.weigh(graph.distances, gamma)
    effective = effective_neighbors(W)
    if gamma is not None and sharing.gamma is not None and found.choice is None:  # one that was chosen suits
        spread = graph.distances[:, -1] - graph.distances[:, 0]
        warn_unless_fits(gamma, spread, effective, graph.k, graph.distances)
    if sharing.transition is None and sharing.class_shares is not None:
        warn_if_contradicted(graph, W, given, sharing.class_shares)
    shared = propagate(graph.indices, W, given, alpha=alpha, rounds=sharing.total, tol=sharing.tol)
    Z, turned = correct(shared.labels, given, sharing)
    became = shared.rounds, shared.change, graph.recall, describe(given, Z), turned, found.whiten, found.choice
    report = Report(row.name, graph.k, float(effective.median()), alpha, gamma, *became)
    return (Z if tensors else Z.cpu().numpy()), report


def correct(Z: Tensor, given: Tensor, sharing: Sharing) -> tuple[Tensor, float | None]:
    """Labels Z (n, K), shared from those `given`, corrected where the record knows how, and the part of rows it turned.

    A row is turned if its least named class after the correction was none of the least named ones before.
    """
    if not sharing.corrects:
        return Z, None
    corrected = shares.find(Z, given, sharing.class_shares, sharing.transition).correct(Z)
    return corrected, float(are_turned(Z, corrected).double().mean()) if len(Z) else 0.0


def warn_if_contradicted(graph: Graph, W: Tensor, given: Tensor, class_shares: Any) -> None:
    """Warn where the labels are named evenly and imply other class shares than those stated."""
    # neighbours alone, once: after many rounds a row's own labels come back to it
    others = torch.nn.functional.embedding_bag(graph.indices, given, per_sample_weights=W.to(given), mode="sum")
    implied = shares.contradicted(given, others, class_shares)
    if implied is not None:
        said = ", ".join(f"{share:.3f}" for share in implied.tolist())
        warnings.warn(
            f"class_shares do not fit the labels, which name wrong classes evenly and so imply shares of {said}. "
            "Pass those, or None.",
            stacklevel=4,
        )


def read_labels(comp: Any, n_classes: int | None) -> Tensor:
    """Labels (n, K) from a float matrix (n, K), or from class numbers (n,), (n, m) or ragged lists."""
    lists = [row for row in comp if isinstance(row, list | tuple)] if isinstance(comp, list | tuple) else []
    if any(isinstance(value, float) for row in lists for value in row):
        comp = np.asarray(comp, dtype=np.float32)  # rows of floats are a matrix, rows of whole numbers class numbers
    elif hasattr(comp, "__array__") and not isinstance(comp, Tensor):
        comp = np.asarray(comp)
    shape: tuple[int, ...] = tuple(getattr(comp, "shape", ()))
    if len(shape) == 2 and (comp.is_floating_point() if isinstance(comp, Tensor) else comp.dtype.kind == "f"):
        return labels.validate(comp, n_classes)
    if len(shape) == 2 and shape[1] >= 3 and n_classes in (None, shape[1]) and bool(((comp == 0) | (comp == 1)).all()):
        raise InputError(
            f"comp must be a float matrix (n, K), or class numbers; got {comp.dtype} zeros and ones of shape {shape}, "
            "which could be either. Pass floats for a label matrix, or naysay.labels.from_indices(comp, n_classes) for "
            "class numbers."
        )
    return labels.from_indices(comp, largest_class(comp) + 1 if n_classes is None else n_classes)


def largest_class(numbers: Any) -> int:
    """The largest class number in (n,), (n, m) or ragged lists; -1 where there is none."""
    rows = [numbers.cpu() if isinstance(numbers, Tensor) else numbers] if hasattr(numbers, "shape") else numbers
    flat = np.concatenate([np.empty(0, dtype=np.int64), *(np.ravel(row) for row in rows)])
    if flat.dtype.kind not in "iuf":
        return 2  # not numbers at all, which from_indices refuses in its own words
    return int(flat.max(initial=-1, where=np.isfinite(flat)))


def read_space(features: Any, given: Tensor, sharing: Sharing) -> Settled:
    """The graph over which rows with labels `given` (n, K) share, built unless the features are one already, and the
    settings in numbers; both where the labels are.
    """
    if hasattr(features, "tocsr"):
        graph = "If it is a neighbour graph, pass naysay.neighbors.from_csr(matrix)"
        way_out = f"{graph}; if it is a table, pass matrix.toarray()."
        raise InputError(f"features must be a dense (n, d) array or a graph; got a scipy sparse matrix. {way_out}")
    rows, (n, n_classes) = features.n if isinstance(features, Graph) else len(features), given.shape
    if rows != n:
        raise InputError(f"features and comp must have one row per instance each; got {rows} and {n} rows.")
    if isinstance(features, Graph) and sharing.whiten is not None:
        need = f"whiten={sharing.whiten} needs features to whiten; got {features!r}"
        raise InputError(f"{need}. Build the graph of `naysay.features.whiten`'s rows.")
    if isinstance(features, Graph) and features.columns is not None:
        wrong = f"the graph must join the rows with each other; got {features!r}"
        raise InputError(f"{wrong}. Build it from these rows alone.")

    def build(some: Tensor | None, strength: float | None) -> Graph:
        if isinstance(features, Graph):
            return features.to(given.device)
        x, k = features, sharing.neighbors(n if some is None else len(some), n_classes)
        if some is not None:
            x = x[some.to(x.device)] if isinstance(x, Tensor) else np.asarray(x)[some.cpu().numpy()]
        if strength is None:
            return neighbors.build(x, k, sharing.method, sharing.metric).to(given.device)
        x = torch.from_numpy(whitened(x, strength=strength)).to(given.device)
        return neighbors.build(x, k, sharing.method, "cosine")

    return settle(build, given, sharing)
