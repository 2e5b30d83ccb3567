"""Drawing complementary labels from ordinary ones, counting them back, and adding more of those that are still unseen.

Truth is allowed here: this is where labels come from. `explicit_sharing` shows what training would be like if every
instance had more of its complementary labels (Lin et al. 2023, section 3).
"""

from typing import Any

import torch
from torch import Tensor

from naysay import labels
from naysay.errors import InputError
from naysay.seeds import torch_stream
from naysay.transition.matrices import validate


def sample(y_true: Any, T: Any, n_labels: int = 1, seed: int = 0, *, replace: bool = True) -> Tensor:
    """Class numbers (n, n_labels) named as wrong, those of row i drawn from T[y_true[i]] one by one.

    Draws are independent, as annotators are: a class may be named twice, and the labels of class y have the mean T[y],
    which the unbiased estimates and SCEL rest on. With `replace` False none is named twice: label after label is drawn
    in proportion to what T leaves (as one would with an urn), and the mean of several is flatter than T[y].
    """
    T = validate(T)
    y_true = torch.as_tensor(y_true, dtype=torch.int64)
    if y_true.ndim != 1 or (len(y_true) and (int(y_true.min()) < 0 or int(y_true.max()) >= len(T))):
        raise InputError(f"y_true must be (n,) class numbers 0 to {len(T) - 1}, as T has {len(T)} rows.")
    fewest = int((T > 0).sum(1).min())
    if n_labels < 1 or (not replace and n_labels > fewest):
        can = "at least 1" if replace else f"1 to {fewest}, the classes T can name for every true class"
        raise InputError(f"n_labels must be {can}; got {n_labels}.")
    # labels are drawn where the generator is, so that they are the same on every device
    generator = torch_stream(seed, "complementary labels")
    device = generator.device
    T, true = T.to(device), y_true.to(device)
    if replace or n_labels == 1:
        # inverse of the cumulative distribution; the last column is forced to 1 against rounding
        edges = T.cumsum(1)
        edges[edges >= edges[:, -1:] - 1e-12] = 2.0
        u = torch.rand(len(true), n_labels, dtype=torch.float64, generator=generator, device=device)
        return torch.searchsorted(edges[true], u, right=True).to(y_true.device)
    # the n largest of log T + Gumbel noise are n draws without replacement (Plackett-Luce)
    waits = torch.empty(len(true), len(T), dtype=torch.float64, device=device).exponential_(generator=generator)
    drawn: Tensor = (T.log()[true] - waits.log()).topk(n_labels, dim=1).indices
    return drawn.to(y_true.device)


def oracle_empirical(y_true: Any, comp: Any) -> Tensor:
    """The T (K, K) that labels show: row y is the mean of the labelled rows of `comp` (n, K) with true class y."""
    comp = labels.validate(comp).double()
    y_true = _truth(y_true, comp)
    if len(y_true) and (int(y_true.min()) < 0 or int(y_true.max()) >= comp.shape[1]):
        got = f"{int(y_true.min())} to {int(y_true.max())}"
        raise InputError(f"y_true must be class numbers 0 to {comp.shape[1] - 1}; got {got}.")
    total = torch.zeros(comp.shape[1], comp.shape[1], dtype=torch.float64, device=comp.device)
    total.index_add_(0, y_true, comp)
    count = total.sum(1, keepdim=True)
    if bool((count == 0).any()):
        without = int((count == 0).flatten().nonzero()[0])
        raise InputError(f"class {without} has no labelled instance, so its row of T cannot be counted.")
    return total / count


def explicit_sharing(comp: Any, y_true: Any, fraction: float = 0.5, seed: int = 0) -> Tensor:
    """Labels (n, K) with a random `fraction` of each instance's unseen complementary labels added, rows summing to 1.

    Unseen are the classes that are neither true nor named; of u unseen ones, `fraction` * u (rounded, halves up) are
    added. An added label weighs as much as the instance's mean label: one label and four added ones weigh 1/5 each.
    """
    comp = labels.validate(comp)
    y_true = _truth(y_true, comp)
    if not 0 <= fraction <= 1:
        raise InputError(f"fraction must be 0 to 1; got {fraction}.")
    seen = comp > 0
    unseen = ~seen & (torch.arange(comp.shape[1], device=comp.device) != y_true[:, None])
    generator = torch_stream(seed, "explicit sharing")
    draw = torch.rand(comp.shape, generator=generator, device=generator.device).to(comp.device)
    draw = draw.masked_fill(~unseen, 2.0)
    rank = draw.argsort(1).argsort(1)
    added = unseen & (rank < (fraction * unseen.sum(1, keepdim=True) + 0.5).floor())
    weight = 1 / seen.sum(1, keepdim=True).clamp_min(1)
    shared = comp + added * weight
    # a row whose every wrong class stays unseen (unlabelled, fraction 0) stays a row of zeros
    return torch.div(shared, shared.sum(1, keepdim=True).clamp_min(torch.finfo(comp.dtype).tiny))


def _truth(y_true: Any, comp: Tensor) -> Tensor:
    numbers = torch.as_tensor(y_true, dtype=torch.int64, device=comp.device)
    if numbers.shape != comp.shape[:1]:
        got = f"{tuple(numbers.shape)} for {len(comp)} rows"
        raise InputError(f"y_true must have one class number per row of comp; got {got}.")
    return numbers
