"""How right predictions are, told by labels held out and an estimated T, with an error that includes T's, or not told.

The unbiased estimate of the accuracy needs the inverse of T (`naysay.selection`). The further naming is from even, the
worse T's condition, and the more an error of a label, or of T, weighs: with a language model's labels the standard
error is 30 points and more, even if T is known. A number that wide tells nothing, and is not given. Neither is one
under a T that the labels themselves reject (`matrix.rejects`), nor where naming is so far from even that likely classes
are often mistaken, and T with them.

What weighs most is T's diagonal: with K classes an error of 1 % in the noise moves the estimate by K - 1 points. So the
noise is found by likelihood (`naysay.estimation.noise`), and its interval is a part of the error.

What is shown is the 95 % interval within 0 and 1 and what it assumes. Where wrong classes are named alike, the number
of predictions that a label hits is binomial, with the chance m (1 - accuracy) / (K - 1) for m labels a row, and the
interval is exact (Clopper and Pearson 1934); else it reaches 1.96 standard errors to each side.

Tests ask whether labels follow T: among neighbours, and among items of one prediction, which are the purer groups where
neighbours are poor (`by_predictions`); of even naming also what other answers gain in likelihood (`portfolio.naming`),
which no mixture of classes explains away. What they leave open widens the interval, as independent errors add up: if
the wrong classes that the model confuses are named by a part w more or less often than T says, its errors are hit so
much more or less often; and as models avoid being hit, this mostly flatters, by the least of K - 1 classes rather than
by a usual one. Noise, labels of an item's own class, does not show in these tests, and hides right predictions: the
largest that the likelihood leaves open (`noise`) widens the interval upwards. Where the judged models saw a `seen` part
of the labels, the one trained on all of them may be better: the interval then reaches up to the error times `seen`, as
if errors fell in proportion to the labels.

Two mistakes agree with themselves, and no test of labels against T sees them. If classes are named by popularity, a
model that learned nothing predicts the one that is named least, and even naming calls that class common: so where even
naming is assumed the interval also holds what popularity says (`popular`). And where items avoid a wrong class as they
do their own, they are taken for it, and T is counted so: seen once, 0.7 to 1.0 was told where 0.005 was true. Then
nothing is told (`_mistakable`). On hard sets (`python -m benchmarks hard`) such cases were one told interval in five.

Before those two, which only widen or withhold, the truth lay within two standard errors in 97 % of the 634 runs that
were told a number, of 992 of `python -m benchmarks estimates` (ten sets, 5 to 20 classes, 1 or 3 labels an item, four
classifiers; 4 of them share each T and its labels), and in 96.5 % on the three sets that took no part when this was
made:

| labels | told | of those within two | mean standard error, points | mean error |
| --- | --- | --- | --- | --- |
| uniform | 97 % | 99 % | 4.6 | +0.4 |
| 10 % at random | 98 % | 98 % | 6.3 | +0.3 |
| 20 % at random | 86 % | 96 % | 7.0 | -0.3 |
| weak bias | 98 % | 98 % | 6.7 | +0.4 |
| people's (clcifar10, 20) | 35 % | 79 % | 8.8 | -5.0 |
| strong bias, a machine's (by matrix and as given) | 0 % | | | |
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from naysay import labels, selection, transition
from naysay.estimation.matrix import rejects
from naysay.estimation.neighborhood import Estimate
from naysay.estimation.noise import Noise
from naysay.seeds import torch_stream
from naysay.statistics import MEDIUM, SMALL, Z95, Fit, exact_interval
from naysay.transition import invertible
from naysay.words import percent

WIDEST = 0.15  # a standard error beyond which a number tells nothing: two of them each way are 60 points
DRAWS = 200  # of T within its errors
ONE = 0.6827  # the share of a normal distribution within one standard error
LEAST = 1e-6
INTERVAL = 2.0  # standard errors from the likeliest noise to the ends of its interval
HABITS = 0.2  # unevenness of each class's own, which only who knows the classes can count: see `_mistakable`
AVOIDED = 0.25  # of its popularity, below which a wrong class is avoided as a true one is, and may be taken for it
TOLD_APART = 0.005  # half a point, by which another reading must change an interval to be worth a word
ALIKE = "every wrong class is named alike"
POPULAR = ", or as it is popular"
AS_SHOWN = "labels come about as neighbours show"


@dataclass(frozen=True)
class Accuracy:
    """The estimated accuracy with its standard error, both None where it cannot be told, and in one clause why not.

    labels_error, transition_error: what chance in the labels held out, and what T's errors, add to the standard error.
    low, high: the 95 % interval, within 0 and 1; assumes: what it holds under, in one clause.
    """

    value: float | None
    standard_error: float | None
    labels_error: float
    transition_error: float
    why_not: str = ""
    low: float | None = None
    high: float | None = None
    assumes: str = ""


def estimate_accuracy(
    predicted: Tensor,
    comp: Tensor,
    found: Estimate | None,
    *,
    tests: Sequence[Fit] = (),
    noise: Noise | None = None,
    seen: float = 1.0,
    popular: bool = False,
    seed: int = 0,
) -> Accuracy:
    """The accuracy of predictions (n,), logits or classes, on rows with labels `comp` (n, K) that no model was shown.

    found: the estimate of T, from other rows; None assumes uniform labels. tests: of T, best by other labels than those
    it was made from; without any, its own. noise: what labels leave open of it, where T is uniform. seen: the part of
    the labels that the judged models were shown. popular: whether uniform labels may as well name classes by their
    popularity, so that the interval must hold what that says, too.
    """
    # tests and intervals are counted by numpy and scipy, so all of it lies on the CPU
    predicted, comp = torch.as_tensor(predicted).cpu(), labels.validate(comp).cpu()
    predicted = predicted.argmax(1) if predicted.ndim == 2 else predicted
    if found is not None and not found.told:
        return _untold("neighbours say nothing about how labels come about")
    if not tests and found is not None and found.follows is not None:
        tests = [found.follows]
    if any(test.effect_low > SMALL for test in tests):
        return _untold("the labels do not follow the T that the estimate assumes")
    if found is not None and (_mistakable(found, comp) or not invertible(found.T)):
        return _untold("labels this uneven do not tell one class from another")
    judged = selection.ure_accuracy(predicted, comp, None if found is None else found.T)
    error = _labels_error(judged, comp, found)
    spread = 0.0 if found is None else _spread(predicted, comp, found, seed)
    both = math.hypot(error, spread)
    if not both <= WIDEST:
        few = _labels_error(selection.ure_accuracy(predicted, comp), comp, None) > WIDEST
        return _untold(f"labels this {'few' if few else 'uneven'} leave it open by too much", error, spread)
    value = min(max(judged.value, 0.0), 1.0)
    exact = _by_hits(judged, comp) if found is None else None
    low, high = exact or (max(value - Z95 * both, 0.0), min(value + Z95 * both, 1.0))
    open_to = max((test.effect_high for test in tests), default=0.0)
    share = 0.0 if noise is None else noise.high
    missed = _by_noise(value, share, comp.shape[1])
    least = _least_of(comp.shape[1] - 1)
    low, high = _widened(value, low, high, open_to, least, missed, seen)
    either = ""
    if popular and found is None:
        other = selection.ure_accuracy(predicted, comp, transition.popularity(comp))
        at, reach = min(max(other.value, 0.0), 1.0), Z95 * other.standard_error
        ends = max(at - reach, 0.0), min(at + reach, 1.0)
        below, above = _widened(at, *ends, open_to, least, _by_noise(at, share, comp.shape[1]), seen)
        either = POPULAR if below < low - TOLD_APART or above > high + TOLD_APART else ""
        low, high = min(low, below), max(high, above)
    if high - low > 4 * WIDEST:
        return _untold("labels this few, or this noisy, leave it open by too much", error, spread)
    within = f", to within {percent(max(open_to, 0.001), int(open_to < 0.01))}" if open_to else ""
    if tests and not any(test.df for test in tests):
        within = ", which labels this few cannot test"
    if found is not None:
        assumes = AS_SHOWN + within
    elif missed:
        assumes = f"{ALIKE}{either}{within}, and the true one by at most {percent(share)} of the labels"
    else:
        assumes = f"{ALIKE}{either}{',' if either else ''} and the true one never{within}"
    return Accuracy(value, both, error, spread, "", low, high, assumes)


def _widened(
    value: float, low: float, high: float, open_to: float, least: float, missed: float, seen: float
) -> tuple[float, float]:
    """The interval with what the tests leave open, the noise that hides right predictions, and labels not yet seen.

    Downwards an error may be hit more rarely by `least` times what tests leave open, upwards more often by that itself.
    """
    down = min(least * open_to, 1 - LEAST)
    below, above = (1 - value) * down / (1 - down), (1 - value) * open_to / (1 + open_to)
    low, high = max(value - math.hypot(value - low, below), 0.0), value + math.hypot(high - value, above, missed)
    return low, 1 - (1 - min(high, 1.0)) * seen


def _least_of(n: int) -> float:
    """How far the least of n normal numbers lies below their mean, in standard deviations (Blom 1958), at least 1.

    A model's mistakes are not any wrong class: of all it takes the one that it saw named least.
    """
    from scipy.special import ndtri

    return max(1.0, float(ndtri((n - 0.375) / (n + 0.25))))


def _mistakable(found: Estimate, comp: Tensor) -> bool:
    """Whether classes may have been taken for one another, and T with them, which then agrees with the mistake.

    A class is told by being named hardly ever. It is not where naming is far from even altogether; where wrong classes
    are named as unevenly, and not by their popularity, as the likely class is avoided; where naming is uneven, and
    clearly in another way for each likely class, which only who knows the classes can count; nor where T has items that
    avoid a wrong class, too.
    """
    if found.even is not None and found.even.effect_low > MEDIUM:
        return True
    if found.beyond is not None and found.beyond.effect_low > SMALL and found.bias.effect_low > found.foresight:
        return True
    proven = found.even is not None and found.even.effect_low > SMALL
    if proven and found.beyond is not None and found.beyond.effect_low > HABITS:
        return True
    T = found.T
    itself = torch.eye(len(T), dtype=T.dtype, device=T.device)
    usual = transition.popularity(comp) + itself
    return bool(((T + itself) / usual < AVOIDED).any())


def _by_noise(value: float, noise: float, n_classes: int) -> float:
    """By how much an accuracy is larger than it seems, if this share of the labels names the item's own class.

    Such labels hit right predictions: an accuracy a looks like a (1 - noise K) + noise.
    """
    tells = 1 - noise * n_classes  # 0 for labels named at random, which tell nothing
    return max(min((value - noise) / tells, 1.0) - value, 0.0) if tells > LEAST else 1 - value


def by_predictions(predicted: Tensor, comp: Tensor, T: Tensor | None) -> Fit:
    """The test whether labels `comp` (n, K) of items with one prediction, which may be wrong, come about by T."""
    T = transition.uniform(comp.shape[1]) if T is None else T
    return rejects(predicted.numpy(force=True), comp.double().numpy(force=True), T.numpy(force=True))


def _by_hits(judged: selection.Estimate, comp: Tensor) -> tuple[float, float] | None:
    """The exact interval where every labelled row names as many classes, with equal weights; else None."""
    most = comp.max(1).values[comp.sum(1) > 0].double()
    m, n, wrong = round(1 / float(most[0])), len(judged.rows), comp.shape[1] - 1
    if not torch.allclose(most, torch.full_like(most, 1 / m)) or int((comp > 0).sum()) != m * n:
        return None
    few, many = exact_interval(int((judged.rows < 0.5).sum()), n)  # a hit counts 1 - (K - 1) / m, all else 1
    return max(1 - many * wrong / m, 0.0), max(1 - few * wrong / m, 0.0)


def _untold(why_not: str, labels_error: float = math.nan, transition_error: float = math.nan) -> Accuracy:
    return Accuracy(None, None, labels_error, transition_error, why_not)


def _labels_error(judged: selection.Estimate, comp: Tensor, found: Estimate | None) -> float:
    """The standard error by chance in the labels, with one row more that is as wrong as a row can be.

    Where labels hit hardly a prediction, the few hits say little of how many there might have been.
    """
    worst = selection.ordinary(labels.validate(comp).double(), None if found is None else found.T).min()
    return float(torch.cat([judged.rows, worst[None]]).std()) / math.sqrt(len(judged.rows))


def _spread(predicted: Tensor, comp: Tensor, found: Estimate, seed: int) -> float:
    """How far the estimate moves, in two of three cases, as T varies within its errors; infinite where T has no use."""
    comp = labels.validate(comp).double()
    n_classes, noise = comp.shape[1], found.likeliest
    assert noise is not None, "an estimate made now has it"
    met = torch.nn.functional.one_hot(predicted.long(), n_classes).double().T @ comp / (comp.sum(1) > 0).sum()
    generator = torch_stream(seed, "errors of T")
    normal = torch.randn(
        DRAWS, n_classes + 1, n_classes, dtype=torch.float64, generator=generator, device=generator.device
    )
    errors = torch.tensor(found.errors, dtype=torch.float64, device=comp.device)
    eye = torch.eye(n_classes, dtype=torch.float64, device=comp.device)
    # the diagonal errs as a whole, upwards and downwards by as much as the labels allow; other entries each for itself
    whole = normal[:, -1, :1]
    shift = whole * torch.where(whole > 0, noise.high - noise.value, noise.value - noise.low) / INTERVAL
    diagonal = (found.T.diagonal() + shift).clamp(0.0, 1.0)
    other = ((found.T + errors * normal[:, :-1]) * (1 - eye)).clamp_min(0.0)
    other = other / other.sum(2, keepdim=True).clamp_min(torch.finfo(other.dtype).tiny)
    T = other * (1 - diagonal)[:, :, None] + torch.diag_embed(diagonal)
    if not invertible(T):
        return math.inf
    values = (torch.linalg.inv(T).mT * met).sum((1, 2))
    # a few of them may be anywhere, so not the root mean square
    return float((values - (torch.linalg.inv(found.T).T * met).sum()).abs().quantile(ONE))
