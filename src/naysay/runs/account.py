"""What a run says of its rows, as plain arrays in one .npz, so that the report can be drawn from the run folder alone.

Rows that are shown (examples, their neighbours, doubtful items) lie once in a pool; `examples` and `doubtful` number
rows of the pool.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay.reading import Labelled
from naysay.report import project_2d
from naysay.runs.fit import Fitted
from naysay.runs.pictures import picture
from naysay.seeds import stream

POINTS = 2000  # of the map: more lie on top of each other
EXAMPLES, NEIGHBORS, DOUBTFUL = 8, 5, 24
PICTURES = ((1,), (3,), (4,))  # channels of an image that can be shown
LABELS = 8  # labels of an item that are shown

Arrays = dict[str, NDArray[Any]]


def account(fitted: Fitted, data: Labelled) -> Arrays:
    """The arrays of the report, of the kept model's training rows."""
    model, rows = fitted.kept, fitted.rows
    logits = model.predictor.logits(fitted.learned(data)[rows.numpy()]).cpu()
    p, predicted = model.predictor.probabilities(logits).float(), model.predictor.decode(logits).cpu()
    given = data.comp[rows]
    best, second = p.topk(2, dim=1).values.unbind(1)
    plane = project_2d(fitted.space.features[rows.numpy()], POINTS, fitted.settings.config.seed)
    on_map = torch.from_numpy(plane.rows)
    doubtful = (best - second).topk(min(DOUBTFUL, len(rows)), largest=False).indices
    near = _examples(fitted, len(rows))
    pool, place = torch.unique(torch.cat([near.flatten(), doubtful]), return_inverse=True)
    arrays: Arrays = {
        "heat_given": _by_class(given, predicted),
        "heat_shared": _by_class(model.shared, predicted),
        "class_counts": torch.bincount(predicted, minlength=len(data.classes)).numpy(),
        "map_points": plane.points.astype(np.float32),
        "map_explained": plane.explained.astype(np.float32),
        "map_row": rows[on_map].numpy(),
        "map_id": data.items.ids[rows[on_map].numpy()].astype(np.str_),
        "map_predicted": predicted[on_map].numpy(),
        "map_probability": best[on_map].numpy(),
        "map_labels": _named(given[on_map]),
        "item_row": rows[pool].numpy(),
        "item_id": data.items.ids[rows[pool].numpy()].astype(np.str_),
        "item_labels": _named(given[pool]),
        "item_predicted": predicted[pool].numpy(),
        "item_probabilities": p[pool].numpy(),
        "item_shared": model.shared[pool].numpy(),
        "examples": place[: near.numel()].reshape(near.shape).numpy(),
        "doubtful": place[near.numel() :].numpy(),
    }
    items = fitted.taken(data).items
    x = items.x
    arrays |= picture(p, predicted, x[rows.numpy()], items.features, doubtful)
    if x.dtype == np.uint8 and (x.ndim == 3 or x.shape[3:] in PICTURES):  # other images are learned from, not shown
        arrays["item_image"] = x[rows[pool].numpy()]
    return arrays


def _examples(fitted: Fitted, n: int) -> Tensor:
    """Training rows at random (e, 1 + NEIGHBORS), each followed by its nearest; without a graph, by none."""
    graph = fitted.kept.ground.graph
    rows = np.arange(n) if graph is None else np.flatnonzero(graph.distances[:, :NEIGHBORS].isfinite().all(1).cpu())
    chosen = stream(fitted.settings.config.seed, "report examples").choice(
        rows, min(EXAMPLES, len(rows)), replace=False
    )
    some = torch.from_numpy(np.sort(chosen))
    near = [] if graph is None else [graph.indices[some, :NEIGHBORS].long()]
    return torch.cat([some[:, None], *near], 1)


def _by_class(comp: Tensor, predicted: Tensor) -> NDArray[np.float32]:
    """The mean labels (K, K) of the labelled rows of each predicted class; NaN where no row was predicted so."""
    labelled = comp.sum(1) > 0
    n_classes = comp.shape[1]
    total = torch.zeros(n_classes, n_classes, dtype=torch.float64, device=comp.device)
    total.index_add_(0, predicted[labelled], comp[labelled].double())
    count = torch.bincount(predicted[labelled], minlength=n_classes)[:, None]
    return torch.where(count > 0, total / count, torch.nan).float().numpy()


def _named(comp: Tensor) -> NDArray[np.int64]:
    """The classes that rows (m, K) name, (m, at most LABELS), most weight first, -1 where there are fewer."""
    most = max(1, min(LABELS, int((comp > 0).sum(1).max())))
    weight, named = comp.topk(most, dim=1)
    return torch.where(weight > 0, named, -1).numpy()
