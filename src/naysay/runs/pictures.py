"""Pictures of the predictions, without truth: class shares against what labels imply, confidence, confused pairs, and
what doubtful items look like.

`picture` makes plain arrays of the kept model's training rows, which lie in the run folder; `figures` turns them into
what the report draws. A folder of an older version has none of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay.audit import Audit
from naysay.audit.advice import shares_unknown
from naysay.audit.content import implied_share
from naysay.report import Bars, Column, Dots, Value

Arrays = dict[str, NDArray[Any]]

BINS = 10  # of the confidence
PAIRS = 12  # that are shown, and the fewest items that make one
FEWEST = 0.5
VALUES = 6  # of a doubtful item

SURE = "How many training items the model is so sure of. Items that it is unsure of are listed below as doubtful."
BETWEEN = (
    "By the model's own probabilities, how many training items that are predicted one of the two are the other one."
)
PREDICTED = "predicted"
IMPLIED, STATED = "implied by the labels", "stated"
IF_EVEN = (
    "The labels imply shares if every wrong class is named alike; whiskers are 95 % intervals. Where the two differ by "
    "more, predictions favour or neglect a class."
)
AS_STATED = "Where predicted and stated shares differ much, predictions favour or neglect a class."
UNTOLD = "How common the classes are cannot be told from these labels, so nothing stands beside it."


def picture(p: Tensor, predicted: Tensor, x: Any, names: Sequence[str], doubtful: Tensor) -> Arrays:
    """The arrays of rows with probabilities `p` (n, K) and predicted classes; x: their columns, or images.

    doubtful: rows whose most telling columns are kept, those in which the two classes between which it lies are
    farthest apart.
    """
    n_classes = p.shape[1]
    counts = torch.histc(p.max(1).values, BINS, 0.0, 1.0)
    mass = torch.zeros(n_classes, n_classes, dtype=torch.float64, device=p.device)
    mass.index_add_(0, predicted, p.double())
    either = (mass + mass.T).triu(1)
    most, at = either.flatten().topk(min(PAIRS, n_classes * (n_classes - 1) // 2))
    most, at = most[most >= FEWEST], at[most >= FEWEST]
    pairs = torch.stack([at // n_classes, at % n_classes], 1)
    arrays = {
        "confidence_counts": counts.long().numpy(),
        "pairs": pairs.numpy(),
        "pairs_mass": most.numpy(),
    }
    if getattr(x, "ndim", 0) == 2 and np.issubdtype(x.dtype, np.floating):
        arrays |= _values(p, predicted, x, names, doubtful)
    return arrays


def _values(p: Tensor, predicted: Tensor, x: NDArray[Any], names: Sequence[str], doubtful: Tensor) -> Arrays:
    n_classes, d = p.shape[1], x.shape[1]
    total = np.zeros((n_classes, d))
    np.add.at(total, predicted.numpy(), x)
    count = np.bincount(predicted.numpy(), minlength=n_classes)[:, None]
    spread = x.std(0, dtype=np.float64) + 1e-12  # squares of 1e30 are no float32
    # a class that is never predicted has no mean: then the item's own distance from the mean of all is what is telling
    means = np.where(count > 0, total / np.maximum(count, 1), x.mean(0, dtype=np.float64))
    first, second = p[doubtful].topk(2, dim=1).indices.numpy().T
    apart = np.abs(means[first] - means[second]) / spread
    telling = np.argsort(-apart, axis=1, kind="stable")[:, :VALUES]
    called = np.array([names[k] if len(names) == d else f"column {k}" for k in range(d)], np.str_)
    return {
        "doubtful_columns": called[telling],
        "doubtful_values": np.take_along_axis(x[doubtful.numpy()], telling, 1),
    }


def figures(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any], audit: Audit) -> list[Dots | Bars]:
    """The pictures of a run, those that its folder has."""
    names, found = about["classes"], [_shares(arrays["class_counts"], about, audit)]
    if "confidence_counts" in arrays:
        counts = arrays["confidence_counts"].tolist()
        used = [at for at, count in enumerate(counts) if count]
        bins = [(f"{100 * at // BINS} to {100 * (at + 1) // BINS} %", counts[at]) for at in range(used[0], BINS)]
        found.append(Bars("Confidence of the predictions", bins[::-1], note=SURE))
    if len(arrays.get("pairs", ())):
        pairs = [f"{names[a]} or {names[b]}" for a, b in arrays["pairs"].tolist()]
        mass = arrays["pairs_mass"].tolist()
        found.append(Bars("Pairs that are hard to tell apart", list(zip(pairs, mass, strict=True)), "", 1, BETWEEN))
    return found


def _shares(counts: NDArray[Any], about: Mapping[str, Any], audit: Audit) -> Dots | Bars:
    """The share of each class among the predictions, beside that which was stated or which the labels imply."""
    predicted, stated = counts / counts.sum(), about["settings"].get("class_shares")
    beside: list[Value] | None = None
    if stated is not None:
        even = [1 / len(counts)] * len(counts)
        beside, name, note = [Value(one) for one in (even if isinstance(stated, str) else stated)], STATED, AS_STATED
    elif not shares_unknown(audit):
        implied = map(implied_share, audit.marginals.classes)
        beside, name, note = [Value(one.value, low=one.low, high=one.high) for one in implied], IMPLIED, IF_EVEN
    order, title = np.argsort(-predicted, kind="stable").tolist(), "Class shares"
    if beside is None:
        rows = [(about["classes"][at], float(predicted[at])) for at in order]
        return Bars(f"{title} of the predictions", rows, "%", 1, UNTOLD)
    both = [(about["classes"][at], [Value(float(predicted[at])), beside[at]]) for at in order]
    return Dots(f"{title}: predicted and {name}", [Column(PREDICTED), Column(name)], both, note)


def values_of(arrays: Mapping[str, NDArray[Any]], at: int) -> list[tuple[str, str]]:
    """The most telling columns of the doubtful item at this place, with its values."""
    if "doubtful_columns" not in arrays:
        return []
    pairs = zip(arrays["doubtful_columns"][at].tolist(), arrays["doubtful_values"][at].tolist(), strict=True)
    return [(name, f"{value:.4g}") for name, value in pairs]
