"""Explicit sharing: what training would be like if every instance had more of its complementary labels (Lin et al.
2023, section 3).

It needs the truth to know which classes are complementary, so it is a way of making labels for experiments, like
`sample`.
"""

from typing import Any

import torch
from torch import Tensor

from naysay import labels
from naysay.errors import InputError
from naysay.seeds import torch_stream


def explicit_sharing(comp: Any, y_true: Any, fraction: float = 0.5, seed: int = 0) -> Tensor:
    """Labels (n, K) with a random `fraction` of each instance's unseen complementary labels added, rows summing to 1.

    Unseen are the classes that are neither true nor named; of u unseen ones, `fraction` * u (rounded, halves up) are
    added. An added label weighs as much as the instance's mean label did, so one label and four added ones weigh 1/5
    each.
    """
    comp = labels.validate(comp)
    y_true = torch.as_tensor(y_true, dtype=torch.int64)
    if y_true.shape != comp.shape[:1]:
        raise InputError(
            f"y_true must have one class number per row of comp; got {tuple(y_true.shape)} for {len(comp)} rows."
        )
    if not 0 <= fraction <= 1:
        raise InputError(f"fraction must be 0 to 1; got {fraction}.")
    seen = comp > 0
    unseen = ~seen & (torch.arange(comp.shape[1]) != y_true[:, None])
    draw = torch.rand(comp.shape, generator=torch_stream(seed, "explicit sharing")).masked_fill(~unseen, 2.0)
    rank = draw.argsort(1).argsort(1)
    added = unseen & (rank < (fraction * unseen.sum(1, keepdim=True) + 0.5).floor())
    weight = 1 / seen.sum(1, keepdim=True).clamp_min(1)
    shared = comp + added * weight
    # a row whose every wrong class stays unseen (unlabelled, fraction 0) stays a row of zeros
    return torch.div(shared, shared.sum(1, keepdim=True).clamp_min(torch.finfo(comp.dtype).tiny))
