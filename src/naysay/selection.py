"""Choosing settings without an ordinary label: three criteria on held-out complementary labels, with standard errors.

Complementary labels z of a row of class y have the mean T[y]; a = z Tinv therefore has the mean e_y, and the mean over
rows of sum_j a_j loss_j is an unbiased risk estimate (URE) of the ordinary risk, for the 0-1 loss and for the log loss
(Ishida et al. 2019). SCEL, the mean of -log (p T)_k, is the log likelihood of the labels that were given (Lin and Lin
2023); it needs no inverse of T.

An estimate is noisy: with 5,000 single labels the standard error of `ure_accuracy` is about 1.4 points at K = 10 and
3.5 at K = 20. So compare candidates on the same rows with `compare`, and never read the estimate as an accuracy. Rows
without labels say nothing and are left out.

The best of several noisy estimates is often a lucky one, so `choose` keeps the recommended candidate unless another is
better by more than a standard error of their paired difference. The sharpest criterion for that is `calibrated_scel`.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from naysay import labels, transition
from naysay.errors import InputError, unknown
from naysay.seeds import stream

ENOUGH = 1.0  # standard errors by which another candidate must be better than the recommended one to take its place
FACTORS = tuple(2 ** (power / 3) for power in range(-15, 10))  # 1/32 to 8: the minimum is flat, so steps may be wide

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A criterion's value with its standard error; `rows` (n,) are the rows' own values, for a paired comparison.

    worst: the value of a row that is surely wrong, where the criterion has one.
    """

    criterion: str
    value: float
    standard_error: float
    rows: Tensor = field(repr=False)
    worst: float | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """The value with its standard error, as "0.912 ± 0.014"; an accuracy within 0 and 1."""
        value = min(max(self.value, 0.0), 1.0) if self.criterion == "ure-accuracy" else self.value
        return f"{value:.4g} ± {self.standard_error:.2g}"


@dataclass(frozen=True)
class Comparison:
    """First minus second on the same rows: the mean difference, its standard error, z, and two-sided normal p value."""

    difference: float
    standard_error: float
    z: float
    p_value: float


def ure_accuracy(predicted: Tensor, comp: Tensor, T: Tensor | None = None) -> Estimate:
    """The accuracy, estimated: mean_i sum_k z_ik Tinv[k, prediction_i], from logits (n, K) or class numbers (n,)."""
    comp = labels.validate(comp).double()
    predicted = torch.as_tensor(predicted).to(comp.device)
    if predicted.ndim == 2:
        predicted = _logits(predicted, comp).argmax(1)
    if predicted.shape != comp.shape[:1] or predicted.is_floating_point():
        raise InputError(
            f"predicted must be logits {tuple(comp.shape)} or {len(comp)} class numbers, as comp has rows; "
            f"got shape {tuple(predicted.shape)} of {predicted.dtype}."
        )
    explained = ordinary(comp, T)
    rows = explained.gather(1, predicted.long()[:, None])[:, 0]
    return _estimate("ure-accuracy", rows, comp, worst=float(explained.min()))


def ure_log_loss(logits: Tensor, comp: Tensor, T: Tensor | None = None) -> Estimate:
    """The ordinary log loss, estimated: mean_i sum_j (z_i Tinv)_j * -log p_j(x_i)."""
    comp = labels.validate(comp).double()
    loss = -_logits(logits, comp).log_softmax(1)
    return _estimate("ure-log-loss", (ordinary(comp, T) * loss).sum(1), comp)


def scel(logits: Tensor, comp: Tensor, T: Tensor | None = None) -> Estimate:
    """The surrogate complementary estimation loss, the labels' own log loss: mean_i sum_k z_ik * -log (p_i T)_k."""
    comp = labels.validate(comp).double()
    named = _logits(logits, comp).softmax(1) @ _transition(T, comp)
    # a label that the model calls impossible costs 708: with infinity one such row would make models incomparable
    return _estimate("scel", -(comp * named.clamp_min(torch.finfo(torch.float64).tiny).log()).sum(1), comp)


def calibrated_scel(parts: Sequence[tuple[Tensor, Tensor, Tensor | None]]) -> tuple[Estimate, float]:
    """SCEL over the rows of all parts (logits, comp, T), logits times the one factor that makes it least; that factor.

    A model that has memorised its labels is far too sure, and plain SCEL then tells little else: on digits it preferred
    sharing in a space that costs 14 points, whose model is merely less sure. One factor, fitted to as many labels as
    are held out, leaves what the models know to be compared.
    """
    judged = [(factor, pool([scel(factor * logits, comp, T) for logits, comp, T in parts])) for factor in FACTORS]
    factor, best = min(judged, key=lambda one: one[1].value)
    return best, factor


@dataclass(frozen=True)
class Criterion:
    """One row of the table: the function of (logits, comp, T), and which direction is better."""

    name: str
    estimate: Callable[[Tensor, Tensor, Tensor | None], Estimate]
    higher_is_better: bool
    source: str

    def better(self, first: float, second: float) -> bool:
        """Whether `first` is strictly better than `second`."""
        return first > second if self.higher_is_better else first < second


CRITERIA = {
    row.name: row
    for row in (
        Criterion("ure-accuracy", ure_accuracy, True, "Ishida 2019"),
        Criterion("ure-log-loss", ure_log_loss, False, "Ishida 2019"),
        Criterion("scel", scel, False, "Lin 2023"),
    )
}


def criterion(name: str) -> Criterion:
    """The row `name` of CRITERIA."""
    if name not in CRITERIA:
        raise unknown("criterion", name, CRITERIA)
    return CRITERIA[name]


def compare(first: Estimate, second: Estimate) -> Comparison:
    """The paired comparison of two models by one criterion on the same rows: far sharper than their standard errors."""
    if first.criterion != second.criterion or first.rows.shape != second.rows.shape:
        raise InputError(
            "a paired comparison needs one criterion on the same rows; "
            f"got {first.criterion} on {len(first.rows)} rows and {second.criterion} on {len(second.rows)}. "
            "Evaluate both models on the same held-out rows."
        )
    difference, error = _mean(first.rows - second.rows)
    z = difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0
    return Comparison(difference, error, z, math.erfc(abs(z) / math.sqrt(2)))


def gain(first: Estimate, second: Estimate) -> Comparison:
    """The paired comparison, above 0 where the first is better, whichever direction the criterion calls so."""
    higher = criterion(first.criterion).higher_is_better
    return compare(first, second) if higher else compare(second, first)


def pool(parts: Sequence[Estimate]) -> Estimate:
    """One estimate of the rows of several, in their order: of folds, each of which judged a model of its own.

    The rows are taken as independent. Models of different folds share most of their training rows, so they are not
    quite; of a difference between two candidates, which share those, little of that is left.
    """
    worst = [part.worst for part in parts if part.worst is not None]
    return summarise(parts[0].criterion, torch.cat([part.rows for part in parts]), min(worst, default=None))


@dataclass(frozen=True)
class Choice(Generic[Name]):
    """Which candidate is kept; `gains`: by how much it is better than each other one, by each criterion.

    `decided_by` is the criterion by which it took the recommended one's place, None where the recommended one is kept.
    """

    kept: Name
    recommended: Name
    decided_by: str | None
    gains: Mapping[Name, Mapping[str, Comparison]]


def choose(judged: Mapping[Name, Sequence[Estimate]], recommended: Name, *, enough: float = ENOUGH) -> Choice[Name]:
    """Keep the recommended candidate, unless another is better by more than `enough` standard errors on the same rows.

    judged: each candidate's estimates by one or more criteria. The first one decides; a candidate that another one
    calls worse by more than a standard error does not win. Of several that win, the best by the first is kept.
    """
    if recommended not in judged:
        names = ", ".join(map(str, judged)) or "none"
        raise InputError(f"the recommended candidate must be one of those judged, {names}; got {recommended}.")

    winners = {}
    for name in judged:
        decisive, *others = _gains(judged[name], judged[recommended]).values()
        if decisive.z > enough and all(other.z >= -ENOUGH for other in others):
            winners[name] = decisive.difference
    kept = max(winners, key=lambda name: winners[name], default=recommended)
    decided_by = judged[kept][0].criterion if winners else None
    return replace(lead(judged, kept), recommended=recommended, decided_by=decided_by)


def lead(judged: Mapping[Name, Sequence[Estimate]], kept: Name) -> Choice[Name]:
    """By how much a candidate that is kept anyhow, such as a mixture of the others, is better than each of them."""
    others = {name: _gains(judged[kept], found) for name, found in judged.items() if name != kept}
    return Choice(kept, kept, None, others)


def _gains(first: Sequence[Estimate], second: Sequence[Estimate]) -> dict[str, Comparison]:
    return {one.criterion: gain(one, other) for one, other in zip(first, second, strict=True)}


def hold_out(n: int, fraction: float = 0.1, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Row numbers (rising) to train on and to hold out, a random `fraction` of n; they depend on the arguments only."""
    held = round(n * fraction)
    if not 2 <= held <= n - 1:
        raise InputError(
            f"a held-out part needs at least 2 rows and must leave at least 1 to train on; "
            f"got {held} of {n} rows (fraction {fraction}). Use a fraction such as 0.1, or more rows."
        )
    order = torch.from_numpy(stream(seed, "hold-out").permutation(n).astype(np.int64))
    return order[held:].sort().values, order[:held].sort().values


def ordinary(comp: Tensor, T: Tensor | None = None) -> Tensor:
    """Rows a = z Tinv (n, K), whose mean given the class y is e_y; found by solving a T = z, float64."""
    try:
        return transition.solve(_transition(T, comp).mT, comp.double().mT).mT
    except InputError as error:
        raise InputError(f"{error} Among the criteria, scel needs no inverse.") from None


def _transition(T: Tensor | None, comp: Tensor) -> Tensor:
    matrix = transition.uniform(comp.shape[1]) if T is None else transition.validate(T, comp.shape[1])
    return matrix.to(comp.device, torch.float64)


def _logits(logits: Tensor, comp: Tensor) -> Tensor:
    logits = torch.as_tensor(logits)
    if logits.shape != comp.shape:
        raise InputError(f"logits must have the shape of comp, {tuple(comp.shape)}; got {tuple(logits.shape)}.")
    if not torch.isfinite(logits).all():
        raise InputError(
            "logits must be finite; got NaN or infinity. The model has diverged: train with a lower learning rate."
        )
    return logits.detach().to(comp.device, torch.float64)


def _estimate(name: str, rows: Tensor, comp: Tensor, worst: float | None = None) -> Estimate:
    rows = rows[comp.sum(1) > 0]
    if len(rows) < 2:
        raise InputError(
            f"{name} needs at least 2 labelled rows for a standard error; got {len(rows)}. Hold out more rows."
        )
    return summarise(name, rows, worst)


def summarise(name: str, rows: Tensor, worst: float | None = None) -> Estimate:
    """The estimate of a criterion whose value at each row is given: their mean, with its standard error."""
    value, error = _mean(rows)
    if worst is not None and float(rows.max() - rows.min()) < 1e-9 < abs(worst - value):
        # no row was ever wrong, which few rows cannot prove: the error is that of these rows and one more that is
        error = _mean(torch.cat([rows, rows.new_tensor([worst])]))[1]
    return Estimate(name, value, error, rows, worst)


def _mean(rows: Tensor) -> tuple[float, float]:
    return float(rows.mean()), float(rows.std()) / math.sqrt(len(rows))
