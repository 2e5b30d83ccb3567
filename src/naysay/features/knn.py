"""How good are features? Weighted nearest-neighbour accuracy (Wu et al. 2018), as self-supervised work reports it.

Each of the k = 200 nearest training rows by cosine similarity s votes for its class with weight exp(s / 0.1). This
needs the ordinary labels: it is an oracle's figure, shown beside a run and never used by it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from naysay.errors import InputError
from naysay.rounding import find_centre, to_unit


def oracle_knn_accuracy(
    train: Tensor,
    y_true_train: Tensor,
    test: Tensor,
    y_true_test: Tensor,
    *,
    k: int = 200,
    temperature: float = 0.1,
    chunk: int = 1000,
) -> float:
    """The share of test rows (m, d) whose class the k nearest training rows (n, d) vote for; on their device."""
    if train.ndim != 2 or test.ndim != 2 or train.shape[1] != test.shape[1]:
        got = f"{tuple(train.shape)} and {tuple(test.shape)}"
        raise InputError(f"features must be (n, d) and (m, d) of one width; got {got}.")
    if k > len(train):
        raise InputError(f"k must be at most the number of training rows, {len(train)}; got {k}.")
    labels, truth = (y.to(train.device).long() for y in (y_true_train, y_true_test))
    test, centre = test.to(train.device), find_centre(train, unit=True)
    if centre is None:
        bank, queries = F.normalize(train.float(), dim=1), F.normalize(test.float(), dim=1)
    else:  # directions that hardly differ: cos(a, b) = 1 - |a - b|^2 / 2, whatever is taken away from both
        bank, queries = to_unit(train)[0] - centre, to_unit(test)[0] - centre
    classes = int(torch.maximum(labels.max(), truth.max())) + 1
    hits = 0
    for start in range(0, len(queries), chunk):
        asking = queries[start : start + chunk]
        near = asking @ bank.T
        if centre is not None:  # of which the part that is the same for all columns is left out until they are chosen
            near -= bank.square().sum(1) / 2
        near, index = near.topk(k, dim=1)
        if centre is not None:
            near += 1 - asking.square().sum(1, keepdim=True) / 2
        votes = torch.zeros(len(near), classes, dtype=near.dtype, device=near.device)
        votes.scatter_add_(1, labels[index], torch.exp(near / temperature))
        hits += int((votes.argmax(1) == truth[start : start + chunk]).sum())
    return hits / len(queries)
