"""The neighbour graph: for each row the numbers of its k nearest rows and the squared distances to them, nearest first.

Every row has the same number of neighbours, so the graph is two (n, k) tensors and no pointers. Equal distances are
ordered by index. In a graph of a set with itself a row is never its own neighbour, by position: exact duplicates of a
row do stay. A graph built elsewhere comes in through `foreign`, a saved one through `Graph.load`; both check it.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from naysay import tensors
from naysay.errors import InputError, unknown

METRICS = ("euclidean", "cosine")
FORMAT = "naysay-graph-1"


@dataclass(frozen=True, eq=False)
class Graph:
    """The k nearest neighbours of n rows among `columns` rows, as fixed-degree arrays on one device.

    indices: (n, k) int32, the neighbours' row numbers. distances: (n, k) float32, SQUARED, never falling along a row;
    inf where there is no neighbour, as for a row of zeros by cosine.
    metric: "euclidean", or "cosine": squared distances between rows of length 1, which are 2 - 2 * cosine.
    method: how it was found ("exact", "approximate", or "given" for a foreign graph).
    recall: the share of true neighbours found: 1.0 for exact, that of a sample for approximate, None if not measured.
    columns: the number of rows that the indices point into; None: the n rows themselves, none its own neighbour.
    """

    indices: Tensor
    distances: Tensor
    metric: str = "euclidean"
    method: str = "given"
    recall: float | None = None
    columns: int | None = None

    @property
    def n(self) -> int:
        """The number of rows that have neighbours."""
        return self.indices.shape[0]

    @property
    def k(self) -> int:
        """The number of neighbours of each row."""
        return self.indices.shape[1]

    @property
    def device(self) -> torch.device:
        """Where both tensors are."""
        return self.indices.device

    def __eq__(self, other: object) -> bool:
        """Whether both graphs hold the same neighbours, distances and description, bit for bit."""
        if not isinstance(other, Graph):
            return NotImplemented
        same = torch.equal(self.indices, other.indices) and torch.equal(self.distances, other.distances)
        return same and self._about == other._about

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """One line: sizes and origin, not the numbers."""
        among = "" if self.columns is None else f" among {self.columns}"
        recall = "" if self.recall is None else f", recall={self.recall:.4f}"
        what = f"{self.n} rows, {self.k} neighbours{among}, {self.metric}, {self.method}{recall}"
        return f"Graph({what}, on {self.device})"

    def to(self, device: torch.device | str) -> Self:
        """The same graph with its tensors on `device`."""
        return self._with(self.indices.to(device), self.distances.to(device))

    def nearest(self, k: int) -> Self:
        """The graph of the k nearest of these neighbours: one build for the largest k serves all smaller ones."""
        if not 1 <= k <= self.k:
            raise InputError(
                f"k must be between 1 and the graph's {self.k} neighbours; got {k}. "
                "Build a graph with at least that many."
            )
        return self._with(self.indices[:, :k].contiguous(), self.distances[:, :k].contiguous())

    def to_csr(self) -> Any:
        """A scipy CSR matrix (n, columns) of float32 squared distances, rows nearest first, zeros stored."""
        from scipy.sparse import csr_matrix

        there = self.distances.isfinite().cpu().numpy()
        pointers = np.append(0, np.cumsum(there.sum(1), dtype=np.int64))
        shape = (self.n, self.n if self.columns is None else self.columns)
        parts = (self.distances.cpu().numpy()[there], self.indices.cpu().numpy()[there], pointers)
        return csr_matrix(parts, shape=shape, copy=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a safetensors file; the file appears whole or not at all."""
        arrays = {"indices": self.indices, "distances": self.distances}
        tensors.save(Path(path), arrays, self._about, format=FORMAT, key="graph")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote, refusing a file that is damaged, altered, or not a graph."""
        again = "Build the graph again and save it."
        if not Path(path).is_file():
            raise InputError(f"There is no graph file at {os.fspath(path)!r}. {again}")
        arrays, about = tensors.load(Path(path), format=FORMAT, key="graph", what="graph", way_out=again)
        try:
            graph = cls(arrays["indices"], arrays["distances"], **about)
        except (KeyError, TypeError) as error:
            raise InputError(f"{os.fspath(path)!r} is not a whole graph file: {error}. {again}") from error
        check(graph)
        return graph

    @property
    def _about(self) -> dict[str, Any]:
        return {"metric": self.metric, "method": self.method, "recall": self.recall, "columns": self.columns}

    def _with(self, indices: Tensor, distances: Tensor) -> Self:
        return type(self)(indices, distances, **self._about)


def check(graph: Graph) -> None:
    """Raise InputError unless the graph is as `Graph` says: whole, in range, none twice, no self, finite, in order."""
    told = {"metric": str, "method": str, "recall": float | int | None, "columns": int | None}
    for name, kind in told.items():
        if not isinstance(value := getattr(graph, name), kind) or value is True or value is False:
            raise InputError(f"A graph's {name} must be {kind}; got {value!r:.80}.")
    if graph.metric not in METRICS:
        raise unknown("metric", graph.metric, METRICS)
    kinds = graph.indices.dtype, graph.distances.dtype
    if kinds != (torch.int32, torch.float32):
        raise InputError(f"A graph holds int32 indices and float32 distances; got {kinds[0]} and {kinds[1]}.")
    if graph.indices.ndim != 2 or graph.indices.shape != graph.distances.shape or 0 in graph.indices.shape:
        raise InputError(
            "A graph's indices and distances must have one shape (n, k); "
            f"got {tuple(graph.indices.shape)} and {tuple(graph.distances.shape)}."
        )
    check_range(graph.indices, graph.columns)
    missing = graph.distances == torch.inf if graph.metric == "cosine" else torch.zeros_like(graph.distances) > 0
    if not bool(((graph.distances >= 0) & (graph.distances.isfinite() | missing)).all()):
        raise InputError(
            "A graph's distances must be finite and not negative; got NaN, inf or a negative one. "
            "Are they similarities?"
        )
    if not bool((graph.distances[:, 1:] >= graph.distances[:, :-1]).all()):
        raise InputError(
            "A graph's distances must not fall along a row; got rows out of order. "
            "Use naysay.neighbors.from_arrays, which sorts."
        )
    if graph.columns is None:
        own = torch.arange(graph.n, device=graph.device, dtype=torch.int32)[:, None]
        selfish = int((graph.indices == own).any(1).sum())
        if selfish:
            raise InputError(
                f"No row may be its own neighbour; got {selfish} rows that are. "
                "Drop the row itself (its position, not distance 0)."
            )
    twice = int((graph.indices.sort(dim=1).values.diff(dim=1) == 0).any(1).sum())
    if twice:
        raise InputError(f"A row's neighbours must be different rows; got {twice} rows that name one twice.")
    if graph.recall is not None and not 0 <= graph.recall <= 1:
        raise InputError(f"A graph's recall must be a share between 0 and 1; got {graph.recall}.")


def check_range(indices: Tensor, columns: int | None) -> None:
    limit = indices.shape[0] if columns is None else columns
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= limit:
        raise InputError(f"A graph's indices must be row numbers from 0 to {limit - 1}; got {low} to {high}.")
