"""Figures for experiments in which the truth is known; every function that takes it is called `oracle_*`.

They say how right predictions and labels are, and how well labels are shared (Lin et al. 2023).
A classifier is told about one wrong class of an instance, `seen`, and learns about the others, `unseen`, only through
similar instances. Its confidence (softmax probability) on unseen complementary labels says how well that worked;
perfect sharing is 0. Of labels, mass on the true class is error, and the class with the least mass is the guess.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from naysay import labels, neighbors
from naysay.errors import InputError, unknown
from naysay.learning import Observer, Snapshot
from naysay.neighbors import Graph
from naysay.neighbors.graph import METRICS
from naysay.seeds import stream


def oracle_accuracy(predicted: Any, y_true: Any) -> float:
    """The share of rows whose predicted class is true, hits over n; `predicted` is classes (n,) or logits (n, K)."""
    predicted = torch.as_tensor(predicted)
    y_true = torch.as_tensor(y_true, device=predicted.device)
    if predicted.ndim == 2:
        predicted = predicted.argmax(1)
    if predicted.shape != y_true.shape or not len(y_true):
        got = f"{tuple(predicted.shape)} for {tuple(y_true.shape)} true classes"
        raise InputError(f"predicted must be one class number (or one row of logits) per true class; got {got}.")
    return int((predicted == y_true).sum()) / len(y_true)


def oracle_mass(Z: Any, y_true: Any) -> float:
    """The mean mass of labels Z (n, K) on the true class, over rows with labels: 0 is perfect, 1/K is chance."""
    Z, y_true = _matching(Z, y_true)
    labelled = Z.sum(1) > 0
    if not bool(labelled.any()):
        raise InputError("no row has a label, so there is no mass on the true class; pass labelled rows.")
    return float(Z.double().gather(1, y_true[:, None])[labelled].mean())


def oracle_argmin_accuracy(Z: Any, y_true: Any) -> float:
    """The share of rows of Z (n, K) whose least-labelled class is the true one.

    Where several classes share the least mass, a row counts as the true class's share of them: unlabelled, as 1/K.
    """
    Z, y_true = _matching(Z, y_true)
    least = Z.amin(1, keepdim=True) == Z
    return float((least.gather(1, y_true[:, None])[:, 0].double() / least.sum(1)).mean())


@dataclass(frozen=True)
class Confidence:
    """Mean confidence on complementary labels: those given, those never given, and, by Z, the augmented ones."""

    seen: float
    unseen: float
    augmented: float | None


def oracle_confidence(logits: Tensor, comp: Tensor, y_true: Tensor, augmented: Tensor | None = None) -> Confidence:
    """Mean softmax probability (n, K) on complementary labels, each over the rows that have such labels.

    seen: the classes named in `comp`, weighted by it. unseen: the classes that are neither true nor named, each row's
    mean. augmented: all wrong classes, weighted by Z = `augmented` (n, K).
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


def oracle_neighboring_noise(
    near: Tensor | Graph,
    comp: Any,
    y_true: Any,
    n_neighbors: int = 128,
    *,
    metric: str = "cosine",
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """Neighbouring noise rate: the share of neighbours' complementary labels `comp` (n, K) that name one's own class.

    near: the graph of the n rows, or a representation (n, d), what the classifier sees before its last layer, whose
    `n_neighbors` nearest are taken. The paper names no metric; on MNIST, where it has 0.73 % and with explicit sharing
    0.64 %, "cosine" gives 0.72 and 0.66 % (one seed), "euclidean" 0.80 % twice. `sample` asks for a random part of the
    rows as centres (their neighbours still come from all rows). Unlabelled neighbours don't count. Uniform labels
    without neighbours' help would have 1/K.
    """
    if isinstance(near, Graph):
        comp, y_true = _matching(comp, y_true)
        if near.columns is not None or near.n != len(comp):
            raise InputError(f"graph must join the {len(comp)} rows of comp with each other; got {near}.")
        return _noise(near.indices, comp, y_true)
    comp = labels.validate(comp)
    y_true = torch.as_tensor(y_true, device=comp.device)
    if len(near) != len(comp) or y_true.shape != comp.shape[:1]:
        got = f"{len(near)}, {len(comp)} and {len(y_true)}"
        raise InputError(f"representation, comp and y_true must describe the same rows; got {got}.")
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    # normalised here, not by the search, which refuses rows of zeros: rectified units do give some
    points = torch.nn.functional.normalize(near, dim=1) if metric == "cosine" else near
    if sample is None or sample >= len(comp):
        return oracle_neighboring_noise(neighbors.build(points, n_neighbors), comp, y_true)
    centres = torch.from_numpy(stream(seed, "neighbouring noise").choice(len(comp), sample, replace=False))
    # a centre is among its own nearest rows: ask for one more and drop it by position
    found = neighbors.query(points, points[centres.to(points.device)], n_neighbors + 1).indices.to(comp.device)
    centres = centres.to(comp.device)
    own = found == centres[:, None]
    own[:, -1] |= ~own.any(1)  # where more than k duplicates crowd the centre out of its own list, the farthest goes
    return _noise(found[~own].view(sample, n_neighbors), comp, y_true[centres])


def oracle_observer(
    x: Any,
    comp: Tensor,
    y_true: Any,
    *,
    x_test: Any = None,
    y_test: Any = None,
    augmented: Tensor | None = None,
    noise_neighbors: int = 128,
    noise_every: int | None = None,
    noise_sample: int | None = None,
) -> Observer:
    """What training calls after each epoch for figures on its rows `x` with labels `comp` (n, K) and truth (n,).

    The truth is in it and nowhere in training. test_accuracy comes with x_test and y_test, confidence_augmented with
    `augmented` (n, K), and neighbouring_noise at the last epoch and every `noise_every` epochs (0: never), over all
    rows or a `noise_sample` of them.
    """
    y_true = torch.as_tensor(y_true)

    def observe(snapshot: Snapshot) -> dict[str, float]:
        predictor = snapshot.predictor
        logits = predictor.logits(x)
        confidence = oracle_confidence(logits, comp, y_true, augmented)
        figures = {
            "train_accuracy": oracle_accuracy(predictor.decode(logits), y_true),
            "confidence_seen": confidence.seen,
            "confidence_unseen": confidence.unseen,
            "sharing_efficiency": oracle_sharing_efficiency(logits, comp, y_true),
        }
        if confidence.augmented is not None:
            figures["confidence_augmented"] = confidence.augmented
        if x_test is not None:
            figures["test_accuracy"] = oracle_accuracy(predictor.decode(predictor.logits(x_test)), y_test)
        if noise_every != 0 and (snapshot.last or (noise_every is not None and snapshot.epoch % noise_every == 0)):
            near = predictor.represent(x)
            noise = oracle_neighboring_noise(near, comp, y_true, noise_neighbors, sample=noise_sample)
            figures["neighbouring_noise"] = noise
        return figures

    return observe


def _noise(indices: Tensor, comp: Tensor, y_true: Tensor) -> float:
    """The share of the labels of rows `indices` (m, k) of comp that name the classes `y_true` (m,)."""
    near = indices.to(comp.device).long()
    given = float(comp.sum(1)[near].sum(dtype=torch.float64))
    if not given:
        raise InputError("no neighbour has a complementary label, so there is no noise rate; pass labelled rows.")
    # one class at a time: (m, k) numbers in memory, not (m, k, K)
    return sum(float(comp[:, c][near[y_true == c]].sum(dtype=torch.float64)) for c in range(comp.shape[1])) / given


def _matching(comp: Any, y_true: Any) -> tuple[Tensor, Tensor]:
    comp = labels.validate(comp)
    y_true = torch.as_tensor(y_true).to(comp.device, torch.int64)
    if y_true.shape != comp.shape[:1] or not len(y_true):
        got = f"{tuple(y_true.shape)} for {tuple(comp.shape)}"
        raise InputError(f"y_true must be one class number for each row of labels; got {got}.")
    low, high = int(y_true.min()), int(y_true.max())
    if low < 0 or high >= comp.shape[1]:
        raise InputError(f"y_true must be class numbers from 0 to {comp.shape[1] - 1}; got {low} to {high}.")
    return comp, y_true


def _check(logits: Tensor, comp: Tensor, y_true: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities (n, K), labels (n, K) and the mask (n, K) of true classes, in float64 on one device."""
    logits = torch.as_tensor(logits)
    comp = labels.validate(comp).to(logits.device, torch.float64)
    y_true = torch.as_tensor(y_true, device=logits.device)
    if logits.shape != comp.shape or y_true.shape != comp.shape[:1]:
        got = f"{tuple(logits.shape)}, {tuple(comp.shape)} and {tuple(y_true.shape)}"
        raise InputError(f"logits and comp must be (n, K) and y_true (n,); got {got}.")
    classes = torch.arange(comp.shape[1], device=logits.device)
    return logits.double().softmax(1), comp, y_true[:, None] == classes


def _weighted(p: Tensor, weight: Tensor) -> float:
    """The mean over rows of p's mean under the row's weights; rows without weight are left out."""
    total = weight.sum(1)
    rows = total > 0
    if not rows.any():
        why = "no row has such labels, so there is no mean confidence"
        raise InputError(f"{why}; pass labelled rows of at least 3 classes.")
    return float(((p * weight).sum(1)[rows] / total[rows]).mean())
