"""The run: audit the labels, hold some out, share the rest between neighbours, train, judge by the labels held out.

Each scheme is trained on the same rows and judged on the same held-out ones, so that their difference is paired and far
sharper than either estimate alone. Held-out labels take no part in sharing; they are drawn from the labelled rows, as
the others could not judge.
What was judged is what is kept: the model is not trained again on all rows. Several processes prepare alike, take their
labels from the first one, and share the training.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from naysay import neighbors, selection
from naysay.audit import Audit, audit
from naysay.augmentation import Report as Sharing
from naysay.augmentation import augment_report
from naysay.errors import InputError
from naysay.estimation import estimate_transition
from naysay.runs.labelled import Labelled
from naysay.runs.settings import Settings
from naysay.runs.space import Space, find_space
from naysay.selection import Comparison, Estimate
from naysay.training import HeldOut, Observer, Predictor, Snapshot, Trained, train

if TYPE_CHECKING:
    from lightning_fabric import Fabric

LOOKED_AT = 20_000  # training rows on which each epoch's confidence is measured: more would cost an epoch's time again

Tell = Callable[[str], None]


class Oracle(Protocol):
    """What the truth says, for those who have it: it gives figures for the records, and a run cannot see behind it."""

    def observer(self, rows: Tensor, held: Tensor, given: Tensor, shared: Tensor) -> Observer:
        """What training calls after each epoch: `rows` and `held` number the training and held-out rows; labels are
        (len(rows), K).
        """

    def of_labels(self, rows: Tensor, shared: Tensor) -> dict[str, float]:
        """Figures on the labels (len(rows), K) that training takes."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """One scheme: the labels it made, what became of them, the trained model and its estimate on the held-out rows."""

    scheme: str
    shared: Tensor
    sharing: Sharing
    trained: Trained
    estimate: Estimate
    oracle: dict[str, float]
    seconds: float

    @property
    def predictor(self) -> Predictor:
        """The model of the last epoch."""
        return self.trained.predictor


@dataclass(frozen=True, eq=False)
class Fitted:
    """A finished run. `rows` and `held` number the training and held-out rows; `graph` joins the former (None where
    nothing was shared).

    versus: the chosen attempt minus each other one, paired on the held-out rows.
    """

    settings: Settings
    audit: Audit
    space: Space
    attempts: tuple[Attempt, ...]
    best: int
    versus: dict[str, Comparison]
    rows: Tensor
    held: Tensor
    graph: neighbors.Graph | None
    T: Tensor | None
    seconds: float
    processes: int = 1

    @property
    def chosen(self) -> Attempt:
        """The attempt with the highest estimate."""
        return self.attempts[self.best]


def fit(
    data: Labelled,
    settings: Settings,
    *,
    oracle: Oracle | None = None,
    progress: bool | None = None,
    tell: Tell = print,
    fabric: "Fabric | None" = None,
) -> Fitted:
    """Run `settings` on the data. `progress`: a bar while training (None: on a terminal); `tell` gets a line at each
    step.

    fabric: for devices other than one (`training.spread`); every process calls this with the same arguments.
    """
    started = time.perf_counter()
    space = find_space(data.items, settings.space, settings.encoder)
    tell(f"auditing {len(data.comp):,} items with {len(data.classes)} classes; neighbours by {space.about}")
    found = audit(
        data.comp,
        features=space.features,
        table=data.table,
        classes=data.classes,
        items=list(data.items.ids),
        metric=space.metric,
        seed=settings.config.seed,
    )
    for advice in found.advice:
        if advice.level == "act":
            tell(f"audit: {advice.text}")
    rows, held = split(data.comp, settings.held_out, settings.config.seed)
    T = (
        None
        if settings.assume == "uniform"
        else estimated_transition(data.comp[rows], space, rows, settings.config.seed)
    )
    T = _first(fabric, T)
    part = Part(data.items.x, rows, held, data.comp[rows], HeldOut(data.items.x[held.numpy()], data.comp[held]), T)
    graph, n, n_classes = None, len(rows), len(data.classes)
    if any(scheme != "none" for scheme in settings.schemes):
        k = max(settings.neighbours(scheme, n, n_classes) for scheme in settings.schemes if scheme != "none")
        tell(f"finding the {k} nearest neighbours of {len(rows):,} training rows")
        graph = neighbors.build(space.features[rows.numpy()], k, metric=space.metric)
    attempts = []
    for scheme in settings.schemes:
        tell(f"training with scheme {scheme}, {settings.config.epochs} epochs")
        attempts.append(_attempt(scheme, graph, part, settings, oracle=oracle, progress=progress, fabric=fabric))
    best = max(range(len(attempts)), key=lambda at: attempts[at].estimate.value)
    versus = {
        other.scheme: selection.compare(attempts[best].estimate, other.estimate)
        for at, other in enumerate(attempts)
        if at != best
    }
    seconds, processes = time.perf_counter() - started, 1 if fabric is None else fabric.world_size
    return Fitted(settings, found, space, tuple(attempts), best, versus, rows, held, graph, T, seconds, processes)


@dataclass(frozen=True, eq=False)
class Part:
    """What every attempt shares: all rows, which of them train and which are held out, the labels given to the former,
    the judge, and T.
    """

    x: Any
    rows: Tensor
    held: Tensor
    given: Tensor
    judge: HeldOut
    T: Tensor | None


def split(comp: Tensor, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Numbers of the rows to train on and to hold out: a `share` of the labelled rows is held out, unlabelled rows only
    receive.
    """
    labelled = comp.sum(1).nonzero()[:, 0]
    if not len(labelled):
        raise InputError(
            f"no row has a label; got {len(comp)} rows without any. Check that the label column was read at all."
        )
    _, held = selection.hold_out(len(labelled), share, seed)
    keep = torch.ones(len(comp), dtype=torch.bool)
    keep[labelled[held]] = False
    return keep.nonzero()[:, 0], labelled[held]


def estimated_transition(given: Tensor, space: Space, rows: Tensor, seed: int) -> Tensor:
    """T (K, K), estimated from the training `rows` alone: the held-out labels judge what was fitted."""
    return estimate_transition(given, space.features[rows.numpy()], metric=space.metric, seed=seed).T


def _first(fabric: "Fabric | None", value: Tensor | None) -> Any:
    """The first process's value: machines may round differently, and all must train on the same labels."""
    return value if fabric is None or fabric.world_size == 1 else fabric.broadcast(value)


def _attempt(
    scheme: str,
    graph: neighbors.Graph | None,
    part: Part,
    settings: Settings,
    *,
    oracle: Oracle | None,
    progress: bool | None,
    fabric: "Fabric | None",
) -> Attempt:
    started = time.perf_counter()
    k = settings.neighbours(scheme, *part.given.shape)
    shared, sharing = augment_report(graph, part.given, scheme, k, settings.alpha, settings.gamma)
    shared = _first(fabric, shared)
    # a row that no label reaches would only cost time
    reached = shared.sum(1) > 0
    x, rows = part.x[part.rows[reached].numpy()], part.rows[reached]
    if oracle is None:
        observer = _confidence(x, part.given[reached], shared[reached])
    else:
        observer = oracle.observer(rows, part.held, part.given[reached], shared[reached])
    trained = train(
        settings.config,
        x,
        shared[reached],
        T=part.T,
        held_out=part.judge,
        observers=[observer],
        progress=progress,
        fabric=fabric,
    )
    estimate = selection.ure_accuracy(trained.predictor.predict(part.judge.x).cpu(), part.judge.comp, part.T)
    truth = {} if oracle is None else oracle.of_labels(part.rows, shared)
    return Attempt(scheme, shared, sharing, trained, estimate, truth, time.perf_counter() - started)


def _confidence(x: Any, given: Tensor, shared: Tensor) -> Observer:
    """The mean confidence on the labels given and on the labels shared, of evenly spread training rows: what can be
    seen without truth.
    """
    step = max(1, len(given) // LOOKED_AT)
    looked, given, shared = x[::step], given[::step], shared[::step]
    labelled = given.sum(1) > 0

    def observe(snapshot: Snapshot) -> dict[str, float]:
        p = snapshot.predictor.logits(looked).softmax(1).cpu()
        return {
            "confidence_seen": float((p * given).sum(1)[labelled].mean()),
            "confidence_augmented": float((p * shared).sum(1).mean()),
        }

    return observe
