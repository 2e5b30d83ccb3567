"""In which order to compare rows: similar rows side by side, near blocks first.

Rows are sorted by cluster, the clusters along a chain from each to its nearest, and cut into blocks. A row then meets
most of its neighbours in its own block and the next few, so its bound falls early and the blocks that come later
propose little. The order changes how long an exact search takes and never what it finds; an approximate search (see
`approximate`) leaves the last blocks out.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay.neighbors.rows import Rows
from naysay.neighbors.schedule import run_all
from naysay.seeds import torch_stream

SAMPLE_PER_CLUSTER = 64


def cluster_order(rows: Rows, n_clusters: int, rounds: int = 3) -> tuple[Any, Any]:
    """The row numbers (n,) sorted by cluster along the chain, and the clusters' edges in them (n_clusters + 1,)."""
    draw = torch_stream(0, "neighbors/clusters")
    drawn = torch.randperm(len(rows), generator=draw, device=draw.device)[: SAMPLE_PER_CLUSTER * n_clusters]
    sample = Rows(rows.read(drawn.sort().values))
    centres = sample.numbers[torch.randperm(len(sample), generator=draw, device=draw.device)[:n_clusters]].clone()
    for _ in range(rounds):
        nearest = _assign(sample, centres)
        sizes = torch.bincount(nearest, minlength=n_clusters)[:, None]
        means = torch.zeros_like(centres).index_add_(0, nearest, sample.numbers) / sizes.clamp(min=1)
        centres = torch.where(sizes > 0, means, centres)
    cluster = _assign(rows, centres[_chain(centres)])
    edges = torch.zeros(n_clusters + 1, dtype=torch.long, device=cluster.device)
    edges[1:] = torch.bincount(cluster, minlength=n_clusters).cumsum(0)
    return cluster.argsort(stable=True).numpy(), edges.numpy()


def near_pairs_first(rows: Any, edges: Any) -> Any:
    """All pairs (I, J), I <= J, of the blocks between `edges`, the nearest centres first: (pairs, 2) int64."""
    centres = block_centres(rows, edges)
    first, second = torch.triu_indices(len(centres), len(centres))
    apart = torch.cdist(centres, centres)[first, second]
    # each block with itself before all others: that is where a row's first bound comes from
    apart[first == second] = -1
    order = apart.argsort(stable=True)
    return torch.stack((first[order], second[order]), 1).numpy()


def even_edges(n: int, size: int) -> Any:
    """Where the fewest equal blocks of at most `size` rows begin, and the end."""
    return np.linspace(0, n, -(-n // size) + 1).round().astype(np.int64)


def cluster_edges(clusters: Any, size: int) -> Any:
    """Blocks that follow the clusters: small clusters joined until size / 4 rows, large ones cut to at most `size`."""
    edges = [0]
    for end in clusters[1:]:
        if end - edges[-1] >= size // 4:
            edges += (edges[-1] + even_edges(end - edges[-1], size)[1:]).tolist()
    # what is left after the last block is too small for one of its own
    edges[-1] = int(clusters[-1])
    return np.array(edges)


def block_centres(rows: Any, edges: Any) -> Tensor:
    """The means (blocks, d) of the rows between `edges`."""
    return torch.from_numpy(np.stack([rows[start:stop].mean(0) for start, stop in pairwise(edges)]))


def closeness(rows: Tensor, centres: Tensor) -> Tensor:
    """(n, m), larger for the centres (m, d) nearer to each row (n, d)."""
    return torch.addmm(-centres.square().sum(1) / 2, rows, centres.T)


def _assign(rows: Rows, centres: Tensor) -> Tensor:
    """The number of the centre (m, d) nearest to each row: (n,)."""
    nearest = torch.empty(len(rows), dtype=torch.long, device=centres.device)

    def work(part: slice) -> None:
        nearest[part] = closeness(rows.read(part), centres).argmax(1)

    parts = [slice(start, start + 2048) for start in range(0, len(rows), 2048)]
    run_all(parts, work, "sorting rows")
    return nearest


def _chain(centres: Tensor) -> Tensor:
    """The centres' numbers, each followed by the nearest one not yet named."""
    apart = torch.cdist(centres, centres)
    chain, apart[:, 0] = [0], torch.inf
    for _ in range(len(centres) - 1):
        chain.append(int(apart[chain[-1]].argmin()))
        apart[:, chain[-1]] = torch.inf
    return torch.tensor(chain, device=centres.device)
