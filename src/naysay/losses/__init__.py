"""Losses: what a model pays for believing in a class that was named as wrong. All of them take soft labels.

`LOSSES` is the table; `compute(name, logits, comp, T)` the batch's scalar.
To add a loss: its matrix in a file of this folder, its row here.
"""

from typing import Any

from torch import Tensor

from naysay import transition
from naysay.errors import InputError, unknown
from naysay.losses import discriminative, estimates, multiple, order, pairwise, scarce, surrogate, unbiased
from naysay.losses.estimates import TrainableTransition, nearest_row
from naysay.losses.table import Loss, PerClassRisk, PerInstance, Separable

__all__ = [
    "LOSSES",
    "Loss",
    "PerClassRisk",
    "PerInstance",
    "Separable",
    "compute",
    "get",
    "nearest_row",
    "predict",
    "prepare",
    "probabilities",
    "scores",
    "trainable_transition",
]

_FWD, _THROUGH, _SIMPLEX = surrogate.forward_correction, estimates.score_through, estimates.onto_simplex
_RISKS, _INVERSE = unbiased.class_risks, unbiased.ordinary_weights
_ROWS: tuple[Loss, ...] = (
    Separable("pc", "Ishida et al. 2017", pairwise.comparison, saturates=True),
    Separable("ure", "Ishida et al. 2019", unbiased.unbiased, uses_T=True, prepare=_INVERSE),
    PerClassRisk("ure-nn", "Ishida et al. 2019", _RISKS, unbiased.non_negative, uses_T=True, prepare=_INVERSE),
    PerClassRisk("ure-ga", "Ishida et al. 2019", _RISKS, unbiased.gradient_ascent, uses_T=True, prepare=_INVERSE),
    Separable("scl-nl", "Chou et al. 2020", surrogate.negative_learning, takes_eps=True),
    Separable("scl-exp", "Chou et al. 2020", surrogate.exponential, saturates=True),
    Separable("fwd", "Yu et al. 2018", _FWD, uses_T=True, takes_eps=True),
    Separable("l-uw", "Gao & Zhang 2021", discriminative.unweighted, saturates=True, takes_eps=True),
    Separable("l-w", "Gao & Zhang 2021", discriminative.weighted, saturates=True, takes_eps=True),
    Separable("op", "Liu et al. 2023", order.order_preserving),
    Separable("op-w", "Liu et al. 2023", order.weighted),
    PerInstance("mcl-mae", "Feng et al. 2020", multiple.absolute, saturates=True),
    PerInstance("mcl-exp", "Feng et al. 2020", multiple.exponential, saturates=True),
    PerInstance("mcl-log", "Feng et al. 2020", multiple.logarithmic, takes_eps=True),
    PerClassRisk("scarce", "Wang et al. 2024", scarce.risks, scarce.absolute, uses_T=True, prepare=scarce.rarity),
    Separable("cpe-i", "Lin & Lin 2023", estimates.direct, score=estimates.score_direct, normalise=_SIMPLEX),
    Separable("cpe-f", "Lin & Lin 2023", _FWD, uses_T=True, takes_eps=True, score=_THROUGH, normalise=_SIMPLEX),
    Separable(
        "cpe-t",
        "Lin & Lin 2023",
        _FWD,
        uses_T=True,
        learns_T=True,
        takes_eps=True,
        score=_THROUGH,
        normalise=_SIMPLEX,
    ),
)
LOSSES = {row.name: row for row in _ROWS}


def get(name: str) -> Loss:
    """The row of the table, or an error that names the nearest ones."""
    if name not in LOSSES:
        raise unknown("loss", name, LOSSES)
    return LOSSES[name]


def compute(name: str, logits: Tensor, comp: Tensor, T: Any = None, *, eps: float = 0.0) -> Tensor:
    """The batch's scalar loss of logits (n, K) under labels comp (n, K). T (K, K) is uniform unless given.

    `eps` is the floor that published code adds inside logarithms (1e-6); 0, the default, works in log space and needs
    none. For ure-ga the scalar is what the step minimises, which is not the risk while a class's risk is negative.
    """
    loss = get(name)
    if logits.ndim != 2 or logits.shape != comp.shape:
        raise InputError(
            f"logits and comp must both be (n, K), one column per class; got {tuple(logits.shape)} and "
            f"{tuple(comp.shape)}. For class numbers use naysay.labels.from_indices(y, n_classes)."
        )
    if eps and not loss.takes_eps:
        takers = ", ".join(row.name for row in _ROWS if row.takes_eps)
        raise InputError(
            f"loss {name} has no logarithm that takes eps (got eps={eps}); leave it at 0. The losses that do: {takers}."
        )
    return loss.combine(loss.terms(logits, comp.to(logits), prepare(name, T, logits), eps).mean(0))


def scores(name: str, logits: Tensor, T: Any = None) -> Tensor:
    """Scores of the classes (n, K) from what a model of this loss returns: its logits; for cpe-*, how near a row of T.

    The one place where outputs become classes: the largest score is the prediction, and `probabilities` keep the order.
    """
    return get(name).score(logits, _checked(T, logits.shape[1]).to(logits))


def probabilities(name: str, scores: Tensor) -> Tensor:
    """The probabilities (n, K) of classes with these scores, or of some of the classes with some of the columns."""
    return get(name).normalise(scores.double())


def predict(name: str, logits: Tensor, T: Any = None) -> Tensor:
    """The class (n,) that a model of this loss predicts: the largest logit, or for cpe-* the nearest row of T."""
    return scores(name, logits, T).argmax(1)


def trainable_transition(T: Any) -> TrainableTransition:
    """The module that cpe-t trains beside the model; calling it gives T."""
    return TrainableTransition(transition.validate(T))


def prepare(name: str, T: Any, like: Tensor) -> Tensor:
    """What the loss's `terms` need of T (K, K; None: uniform), checked, once; of dtype and device of logits `like`."""
    return get(name).prepare(_checked(T, like.shape[1])).to(like)


def _checked(T: Any, n_classes: int) -> Tensor:
    return transition.uniform(n_classes) if T is None else transition.validate(T, n_classes)
