"""How well a classifier shares complementary labels between instances (Lin et al. 2023, section 3). All of it needs the
truth.

A classifier is told about one wrong class of an instance, `seen`, and learns about the others, `unseen`, only through
similar instances. Its confidence (softmax probability) on unseen complementary labels says how well that worked;
perfect sharing is 0.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from naysay import labels, neighbors
from naysay.errors import InputError, unknown
from naysay.metrics.augmented import oracle_noise_rate
from naysay.neighbors.graph import METRICS
from naysay.seeds import stream


@dataclass(frozen=True)
class Confidence:
    """Mean confidence on complementary labels: those given, those never given, and, weighted by Z, the augmented ones."""

    seen: float
    unseen: float
    augmented: float | None


def oracle_confidence(logits: Tensor, comp: Tensor, y_true: Tensor, augmented: Tensor | None = None) -> Confidence:
    """Mean softmax probability (n, K) on seen, unseen and augmented complementary labels.

    seen: the classes named in `comp`, weighted by it. unseen: the classes that are neither true nor named, each row's
    mean.
    augmented: all wrong classes, weighted by Z = `augmented` (n, K). Each is a mean over the rows that have such
    labels.
    """
    p, comp, true = _check(logits, comp, y_true)
    unseen = (comp == 0) & ~true
    given = None if augmented is None else _weighted(p, labels.validate(augmented, comp.shape[1]).to(p) * ~true)
    return Confidence(_weighted(p, comp), _weighted(p, unseen.to(p)), given)


def oracle_sharing_efficiency(logits: Tensor, comp: Tensor, y_true: Tensor) -> float:
    """Implicit sharing efficiency: 1 - mean_i (K-1)/(K-2) * (mass of f(x_i) on classes that are neither y_i nor named).

    With s labels the factor is (K-1)/(K-1-s), so that it always is 1 - (K-1) * the mean confidence on an unseen label:
    1 for a classifier that is sure of the truth, 1/K for one that knows nothing.
    """
    p, comp, true = _check(logits, comp, y_true)
    return 1 - (comp.shape[1] - 1) * _weighted(p, ((comp == 0) & ~true).to(p))


def oracle_neighbouring_noise(
    representation: Tensor,
    comp: Tensor,
    y_true: Tensor,
    n_neighbors: int = 128,
    *,
    metric: str = "cosine",
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """Neighbouring noise rate: the share of the `n_neighbors` nearest neighbours' complementary labels that equal one's
    own class.

    `representation` (n, d) is what the classifier sees before its last layer. The paper names no metric; on MNIST,
    where it has 0.73 % and with explicit sharing 0.64 %, "cosine" gives 0.72 and 0.66 % (one seed), "euclidean" 0.80 %
    twice. `sample` asks for a random part of the rows as centres (their neighbours still come from all rows); None asks
    for all.
    """
    comp = labels.validate(comp)
    y_true = torch.as_tensor(y_true, device=comp.device)
    if len(representation) != len(comp) or y_true.shape != comp.shape[:1]:
        raise InputError(
            f"representation, comp and y_true must describe the same rows; got {len(representation)}, {len(comp)} and "
            f"{len(y_true)}."
        )
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    # normalised here, not by the search, which refuses rows of zeros: rectified units do give some
    points = torch.nn.functional.normalize(representation, dim=1) if metric == "cosine" else representation
    if sample is None or sample >= len(comp):
        return oracle_noise_rate(neighbors.build(points, n_neighbors), comp, y_true)
    centres = torch.from_numpy(stream(seed, "neighbouring noise").choice(len(comp), sample, replace=False)).to(
        points.device
    )
    # a centre is among its own nearest rows: ask for one more and drop it by position
    found = neighbors.query(points, points[centres], n_neighbors + 1).indices.to(comp.device).long()
    own = found == centres.to(comp.device)[:, None]
    own[:, -1] |= ~own.any(1)  # where more than k duplicates crowd the centre out of its own list, the farthest goes
    near = found[~own].view(sample, n_neighbors)
    given = float(comp.sum(1)[near].sum(dtype=torch.float64))
    if not given:
        raise InputError("no neighbour has a complementary label, so there is no noise rate; pass labelled rows.")
    return float(comp[near, y_true[centres.to(comp.device), None]].sum(dtype=torch.float64)) / given


def _check(logits: Tensor, comp: Tensor, y_true: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities (n, K), labels (n, K) and the mask (n, K) of true classes, in float64 on one device."""
    logits = torch.as_tensor(logits)
    comp = labels.validate(comp).to(logits.device, torch.float64)
    y_true = torch.as_tensor(y_true, device=logits.device)
    if logits.shape != comp.shape or y_true.shape != comp.shape[:1]:
        raise InputError(
            f"logits and comp must be (n, K) and y_true (n,); got {tuple(logits.shape)}, {tuple(comp.shape)} and "
            f"{tuple(y_true.shape)}."
        )
    classes = torch.arange(comp.shape[1], device=logits.device)
    return logits.double().softmax(1), comp, y_true[:, None] == classes


def _weighted(p: Tensor, weight: Tensor) -> float:
    """The mean over rows of p's mean under the row's weights; rows without weight are left out."""
    total = weight.sum(1)
    rows = total > 0
    if not rows.any():
        raise InputError(
            "no row has such labels, so there is no mean confidence; pass labelled rows of at least 3 classes."
        )
    return float(((p * weight).sum(1)[rows] / total[rows]).mean())
