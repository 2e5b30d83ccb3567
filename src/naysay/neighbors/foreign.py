"""Graphs that somebody else built: index and distance arrays, or a scipy sparse matrix, checked and put in order."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay.errors import InputError
from naysay.neighbors.graph import Graph, check, check_range


def from_arrays(
    indices: Any,
    distances: Any,
    *,
    squared: bool = True,
    metric: str = "euclidean",
    columns: int | None = None,
    recall: float | None = None,
) -> Graph:
    """The graph of index and distance arrays (n, k), checked and put in order (by distance, then by index).

    squared: False where the distances are plain ones, as scikit-learn's are; they are squared here.
    columns: the number of rows pointed into, where these are not the n rows themselves.
    """
    found, lengths = torch.as_tensor(indices), torch.as_tensor(distances)
    if found.ndim != 2 or found.shape != lengths.shape or 0 in found.shape:
        raise InputError(
            "indices and distances must be two arrays of one shape (n, k), one row per instance; "
            f"got shapes {tuple(found.shape)} and {tuple(lengths.shape)}."
        )
    if found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise InputError(
            f"indices must be whole numbers of rows; got {found.dtype}. Were indices and distances swapped?"
        )
    # checked before the narrowing to int32, which would wrap a huge index into a valid one
    check_range(found, columns)
    lengths = lengths.to(torch.float32) if squared else lengths.to(torch.float32).square()
    graph = Graph(*_ordered(found.to(torch.int32), lengths), metric, "given", recall, columns)
    check(graph)
    return graph


def from_csr(matrix: Any, *, squared: bool = True, metric: str = "euclidean", recall: float | None = None) -> Graph:
    """The graph of a scipy sparse matrix (n, n) whose stored entries are distances, the same number in every row.

    A stored zero is a neighbour at distance zero; an entry that is not stored is no neighbour.
    squared: False for plain distances, as `sklearn.neighbors.kneighbors_graph(mode="distance")` gives.
    """
    csr = matrix.tocsr()
    degrees = np.diff(csr.indptr)
    if len(degrees) == 0 or degrees.min() != degrees.max() or degrees[0] == 0:
        got = f"{degrees.min()} to {degrees.max()}" if len(degrees) else "no rows"
        raise InputError(
            f"A graph must store the same number of neighbours, at least one, in every row; got {got}. "
            "Keep each row's k nearest (and stored zeros: don't call eliminate_zeros)."
        )
    (n, into), k = csr.shape, int(degrees[0])
    indices, distances = csr.indices.reshape(n, k), csr.data.reshape(n, k)
    columns = None if n == into else into
    return from_arrays(indices, distances, squared=squared, metric=metric, columns=columns, recall=recall)


def _ordered(indices: Tensor, distances: Tensor) -> tuple[Tensor, Tensor]:
    """Both arrays with each row sorted by (distance, index)."""
    by_index = indices.argsort(dim=1, stable=True)
    indices, distances = indices.gather(1, by_index), distances.gather(1, by_index)
    by_distance = distances.argsort(dim=1, stable=True)
    return indices.gather(1, by_distance).contiguous(), distances.gather(1, by_distance).contiguous()
