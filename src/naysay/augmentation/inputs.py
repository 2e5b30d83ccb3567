"""What `augment` accepts: features or a ready graph, labels in any of their forms, from numpy or torch."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay import labels, neighbors
from naysay.augmentation.schemes import Sharing
from naysay.errors import InputError
from naysay.neighbors import Graph


def read_labels(comp: Any, n_classes: int | None) -> Tensor:
    """Labels (n, K) from a float matrix (n, K), or from class numbers (n,), (n, m) or ragged lists."""
    lists = [row for row in comp if isinstance(row, list | tuple)] if isinstance(comp, list | tuple) else []
    if any(isinstance(value, float) for row in lists for value in row):
        comp = np.asarray(comp, dtype=np.float32)  # rows of floats are a matrix, rows of whole numbers class numbers
    elif hasattr(comp, "__array__") and not isinstance(comp, Tensor):
        comp = np.asarray(comp)
    shape: tuple[int, ...] = tuple(getattr(comp, "shape", ()))
    if len(shape) == 2 and _is_floating(comp):
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


def read_graph(features: Any, n: int, n_classes: int, sharing: Sharing) -> Graph:
    """The graph over which n rows share, built unless the features are one already."""
    if hasattr(features, "tocsr"):
        raise InputError(
            "features must be a dense (n, d) array or a graph; got a scipy sparse matrix. If it is a neighbour graph, "
            "pass naysay.neighbors.from_csr(matrix); if it is a table, pass matrix.toarray()."
        )
    rows = features.n if isinstance(features, Graph) else len(features)
    if rows != n:
        raise InputError(f"features and comp must have one row per instance each; got {rows} and {n} rows.")
    k = sharing.neighbors(n, n_classes)
    if not isinstance(features, Graph):
        return neighbors.build(features, k, sharing.method, sharing.metric)
    if features.columns is not None:
        raise InputError(
            f"the graph must join the rows with each other; got {features!r}. Build it from these rows alone."
        )
    return features.nearest(min(k, features.k))


def destination(features: Any, comp: Any) -> tuple[torch.device, bool]:
    """Where to work (with the first tensor, else with the graph, else on the CPU), and whether to return a tensor."""
    tensors = [given.device for given in (features, comp) if isinstance(given, Tensor)]
    if tensors:
        return tensors[0], True
    return (features.device if isinstance(features, Graph) else torch.device("cpu")), False


def _is_floating(array: Any) -> bool:
    return array.is_floating_point() if isinstance(array, Tensor) else bool(np.issubdtype(array.dtype, np.floating))
