"""Several views an image, each predicted against the mean of the others' targets (FastSiam, Pototzky et al. 2022).

One view is a noisy target; the mean of V - 1 views is a steady one, which bears small batches and high rates and
reaches SimSiam's quality in a fraction of its time. With V = 2 the loss is SimSiam's, exactly. A momentum target (BYOL,
Grill et al. 2020) is an option on top: the targets then come from a moving average of the network instead of the
network itself.
"""

import torch.nn.functional as F
from torch import Tensor


def mean_of_others(targets: Tensor) -> Tensor:
    """For each view of `targets` (V, n, d) the mean of the V - 1 other views."""
    return (targets.sum(0, keepdim=True) - targets) / (len(targets) - 1)


def views_loss(predictions: Tensor, targets: Tensor) -> Tensor:
    """The loss of V views, predictions and targets (V, n, d): each prediction against the mean of the others' targets."""
    return -F.cosine_similarity(predictions.float(), mean_of_others(targets.detach().float()), dim=-1).mean()
