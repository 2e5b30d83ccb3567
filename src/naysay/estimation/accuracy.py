"""How right predictions are, told by labels held out and an estimated T, with an error that includes T's, or not told.

The unbiased estimate of the accuracy needs the inverse of T (`naysay.selection`). The further naming is from even, the
worse T's condition, and the more an error of a label, or of T, weighs: with a language model's labels the standard
error is 30 points and more, even if T is known. A number that wide tells nothing, and is not given. Neither is one
under a T that the labels themselves reject (`matrix.rejects`).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from naysay import labels, selection
from naysay.errors import InputError
from naysay.estimation.neighborhood import Estimate
from naysay.seeds import torch_stream
from naysay.statistics import SMALL, Z95, Fit
from naysay.transition import solve

WIDEST = 0.1  # a standard error beyond which a number tells nothing: two of them each way are 40 points
DRAWS = 200  # of T within its errors


@dataclass(frozen=True)
class Accuracy:
    """The estimated accuracy with its standard error, both None where it cannot be told, and in one clause why not.

    labels_error, transition_error: what chance in the labels held out, and what T's errors, add to the standard error.
    """

    value: float | None
    standard_error: float | None
    labels_error: float
    transition_error: float
    why_not: str = ""


def estimate_accuracy(
    predicted: Tensor, comp: Tensor, found: Estimate | None, *, rejected: Fit | None = None, seed: int = 0
) -> Accuracy:
    """The accuracy of predictions (n,), logits or classes, on rows with labels `comp` (n, K) that no model was shown.

    found: the estimate of T, from other rows; None assumes uniform labels. rejected: the test of T on held-out labels.
    """
    if found is not None and not found.told:
        return Accuracy(None, None, math.nan, math.nan, "neighbours say nothing about how labels come about")
    if rejected is not None and rejected.effect_low > SMALL:
        return Accuracy(None, None, math.nan, math.nan, "the labels do not follow the T that the estimate assumes")
    T = None if found is None else found.T
    try:
        judged = selection.ure_accuracy(predicted, comp, T)
    except InputError:
        return Accuracy(None, None, math.nan, math.inf, "labels this uneven do not tell one class from another")
    spread = 0.0 if found is None else _spread(predicted, comp, found, seed)
    error = math.hypot(judged.standard_error, spread)
    if not error <= WIDEST:
        return Accuracy(None, None, judged.standard_error, spread, "labels this uneven leave it open by too much")
    return Accuracy(min(max(judged.value, 0.0), 1.0), error, judged.standard_error, spread)


def _spread(predicted: Tensor, comp: Tensor, found: Estimate, seed: int) -> float:
    """The standard deviation of the estimate as T varies within its errors; infinite where some such T has no use."""
    comp = labels.validate(comp).double()
    predicted = predicted.argmax(1) if predicted.ndim == 2 else predicted
    n_classes = comp.shape[1]
    met = torch.nn.functional.one_hot(predicted.long(), n_classes).double().T @ comp / (comp.sum(1) > 0).sum()
    generator = torch_stream(seed, "errors of T")
    errors, eye = torch.tensor(found.errors, dtype=torch.float64), torch.eye(n_classes, dtype=torch.float64)
    noise, values = found.purest, []
    assert noise is not None, "an estimate made now has it"
    for _ in range(DRAWS):
        normal = torch.randn(n_classes + 1, n_classes, dtype=torch.float64, generator=generator)
        # the diagonal errs as a whole, by what the clearest items leave open; the other entries each for itself
        shift = float(normal[-1, 0]) * (noise.high - noise.low) / (2 * Z95)
        diagonal = (found.T.diagonal() + shift).clamp_min(0.0)
        other = ((found.T + errors * normal[:-1]) * (1 - eye)).clamp_min(0.0)
        T = other / other.sum(1, keepdim=True) * (1 - diagonal)[:, None] + torch.diag(diagonal)
        try:
            values.append(float((solve(T, eye).T * met).sum()))
        except InputError:
            return math.inf
    return float(torch.tensor(values).std())
