"""What a loss is: a frozen row of the table.

Most losses are a matrix `L[i, k] = loss of "instance i is not class k"`: with labels z an instance's loss is
`sum_k z[i, k] L[i, k]`, so soft labels need no second definition. The batch's loss is always
`combine(terms(logits, comp, prepared).mean(0))`, so that several processes can average the mean before it is combined.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from torch import Tensor

Score = Callable[[Tensor, Tensor], Tensor]


def as_given(T: Tensor) -> Tensor:
    """T itself: what all losses but ure* need of it."""
    return T


def logits_themselves(logits: Tensor, T: Tensor) -> Tensor:
    """Logits as scores of the classes (n, K): all losses but cpe-*."""
    return logits


def softmax(scores: Tensor) -> Tensor:
    """The probabilities (n, K) of classes with these scores: all losses but cpe-*."""
    return scores.softmax(1)


@dataclass(frozen=True)
class Loss(ABC):
    """What all rows share.

    `prepare(T)` is done once, in float64, and gives what `terms` needs of T (the inverse for ure*, else T itself); it
    is then moved to the logits' dtype and device (`naysay.losses.prepare` does both). `eps` is the floor that published
    code puts inside a logarithm. `score(logits, T)` says what a model's outputs mean: a score for each class, the
    largest that of the prediction; `normalise` makes probabilities of such scores, in the same order.
    """

    name: str
    paper: str
    _: KW_ONLY
    uses_T: bool = False  # the formula needs to know how labels come about; others assume nothing, or uniform labels
    learns_T: bool = False  # T is a parameter that is trained along (see trainable_transition)
    saturates: bool = False  # bounded: by the formula itself, the gradient of a confidently wrong prediction vanishes
    takes_eps: bool = False  # published code adds 1e-6 inside a logarithm
    prepare: Callable[[Tensor], Tensor] = as_given
    score: Score = logits_themselves
    normalise: Callable[[Tensor], Tensor] = softmax

    @abstractmethod
    def terms(self, logits: Tensor, comp: Tensor, prepared: Tensor, eps: float = 0.0) -> Tensor:
        """What is averaged over the batch: (n,), or (n, K) where the loss is not a sum over instances."""

    def combine(self, mean: Tensor) -> Tensor:
        """The batch's loss from the mean of the terms: the mean itself, where the loss is a sum over instances."""
        return mean


@dataclass(frozen=True)
class Separable(Loss):
    """A loss given by its matrix L (n, K), (logits, prepared) -> L: linear in the labels."""

    matrix: Callable[..., Tensor]

    def terms(self, logits: Tensor, comp: Tensor, prepared: Tensor, eps: float = 0.0) -> Tensor:
        matrix = self.matrix(logits, prepared, eps) if self.takes_eps else self.matrix(logits, prepared)
        return (comp * matrix).sum(1)


@dataclass(frozen=True)
class PerInstance(Loss):
    """A loss of an instance's whole label set, (logits, comp) -> (n,): not linear in the labels."""

    instance: Callable[..., Tensor]

    def terms(self, logits: Tensor, comp: Tensor, prepared: Tensor, eps: float = 0.0) -> Tensor:
        return self.instance(logits, comp, eps) if self.takes_eps else self.instance(logits, comp)


@dataclass(frozen=True)
class PerClassRisk(Loss):
    """A loss of one or two risks a class, (logits, comp, prepared) -> (n, K) or (n, 2K), joined by `join`: no sum over
    instances.
    """

    risks: Callable[[Tensor, Tensor, Tensor], Tensor]
    join: Callable[[Tensor], Tensor]

    def terms(self, logits: Tensor, comp: Tensor, prepared: Tensor, eps: float = 0.0) -> Tensor:
        return self.risks(logits, comp, prepared)

    def combine(self, mean: Tensor) -> Tensor:
        return self.join(mean)
