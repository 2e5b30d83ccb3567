"""Rows without neighbours: by cosine a row of zeros, which has no direction, has none and is nobody's.

A graph has k places for every row. Those that stay free have the distance inf, of which weights make 0. Their indices
are still of k different rows, none the row itself, so that whatever reads a graph stays within its bounds.
"""

import torch

from naysay.neighbors.graph import Graph
from naysay.neighbors.rows import Rows


def with_gaps(found: Graph | None, rows: Rows, asking: Rows, k: int) -> Graph:
    """The graph of all rows, those of zeros too, from one of the others (None where there are too few for one)."""
    device, itself, n, of = rows.numbers.device, asking is rows, len(asking.numbers), len(rows.numbers)
    kept, asked = (
        torch.arange(len(some.numbers), device=device) if some.kept is None else some.kept for some in (rows, asking)
    )
    without = torch.ones(of, dtype=torch.bool, device=device).index_fill_(0, kept, False).nonzero().flatten()
    spare = torch.cat([without, kept])[: k + 1]  # one more, as none may be the row itself
    place, own = torch.arange(k, device=device), torch.arange(n, device=device)[:, None]
    skip = (spare == own).float().argmax(1, keepdim=True).where((spare == own).any(1, keepdim=True) & itself, k)
    indices = spare[(place + (place >= skip)).clamp(max=len(spare) - 1)]
    distances = torch.full((n, k), torch.inf, device=device)
    if found is not None:
        indices[asked, : found.k] = kept[found.indices.long()]
        indices[asked, found.k :] = without[: k - found.k]
        distances[asked, : found.k] = found.distances
    how = ("exact", 1.0) if found is None else (found.method, found.recall)
    return Graph(indices.int(), distances, "cosine", *how, None if itself else of)
