"""The run: audit the labels, hold some out, share the rest between neighbours, train, judge by the labels held out.

Each scheme is trained on the same rows and judged on the same held-out ones, so that their difference is paired and far
sharper than either estimate alone. Held-out labels take no part in sharing (`naysay.holdout`). What was judged is what
is kept: the model is not trained again on all rows. Several processes prepare alike, take their labels from the first
one, and share the training.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from naysay import holdout, neighbors, selection
from naysay.audit import Audit, audit
from naysay.augmentation import Report, share
from naysay.estimation import estimate_transition
from naysay.features import Space, find_space
from naysay.holdout import Parted
from naysay.learning import Observer, Predictor, Snapshot, Trained, train
from naysay.processes import ALONE, Processes
from naysay.reading import Labelled, Oracle
from naysay.runs.settings import Settings
from naysay.selection import Comparison, Estimate

LOOKED_AT = 20_000  # training rows on which each epoch's confidence is measured: more would cost an epoch's time again

Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Attempt:
    """One scheme: the labels it made, what became of them, the trained model and its estimate on the held-out rows."""

    scheme: str
    shared: Tensor
    sharing: Report
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
    """A finished run: `rows` and `held` number the training and held-out rows; `graph` joins the former, if any share.

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
    processes: Processes = ALONE,
) -> Fitted:
    """Run `settings` on the data. progress: a bar while training (None: on a terminal). tell: gets a line at each step.

    processes: those that share the training (`naysay.processes.join`), all with the same arguments.
    """
    started = time.perf_counter()
    space = find_space(data.items.x, settings.space, settings.encoder, columns=data.items.features)
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
    rows, held = holdout.split(data.comp, settings.held_out, settings.config.seed)
    part, T = holdout.part(data.items.x, data.comp, rows, held), None
    if settings.assume == "estimated":
        # machines may round differently, and all must train on the same labels
        T = processes.agree(estimated_transition(part.given, space, rows, settings.config.seed))
    graph, n, n_classes = None, len(rows), len(data.classes)
    if any(scheme != "none" for scheme in settings.schemes):
        wanted = [settings.sharing_by(scheme).within(n, n_classes) for scheme in settings.schemes if scheme != "none"]
        k = max(sharing.neighbors(n, n_classes) for sharing in wanted)
        tell(f"finding the {k} nearest neighbours of {len(rows):,} training rows")
        graph = neighbors.build(space.features[rows.numpy()], k, settings.sharing.method, space.metric)
    attempts, x = [], data.items.x
    for scheme in settings.schemes:
        tell(f"training with scheme {scheme}, {settings.config.epochs} epochs")
        attempts.append(
            _attempt(scheme, graph, x, part, T, settings, oracle=oracle, progress=progress, processes=processes)
        )
    best = max(range(len(attempts)), key=lambda at: attempts[at].estimate.value)
    others, judged = attempts[:best] + attempts[best + 1 :], attempts[best].estimate
    versus = {other.scheme: selection.compare(judged, other.estimate) for other in others}
    seconds = time.perf_counter() - started
    return Fitted(settings, found, space, tuple(attempts), best, versus, rows, held, graph, T, seconds, processes.size)


def estimated_transition(given: Tensor, space: Space, rows: Tensor, seed: int) -> Tensor:
    """T (K, K), estimated from the training `rows` alone: the held-out labels judge what was fitted."""
    return estimate_transition(given, space.features[rows.numpy()], metric=space.metric, seed=seed).T


def _attempt(
    scheme: str,
    graph: neighbors.Graph | None,
    x: Any,
    part: Parted,
    T: Tensor | None,
    settings: Settings,
    *,
    oracle: Oracle | None,
    progress: bool | None,
    processes: Processes,
) -> Attempt:
    started = time.perf_counter()
    shared, sharing = share(graph, part.given, settings.sharing_by(scheme).within(*part.given.shape))
    shared = processes.agree(shared)
    # a row that no label reaches would only cost time
    reached = shared.sum(1) > 0
    rows, given = part.rows[reached], part.given[reached]
    x = x[rows.numpy()]
    if oracle is None:
        observer = _confidence(x, given, shared[reached])
    else:
        observer = oracle.observer(rows, part.held_rows, given, shared[reached])
    trained = train(
        settings.config,
        x,
        shared[reached],
        T=T,
        held_out=part.held_out,
        observers=[observer],
        progress=progress,
        processes=processes,
    )
    assert part.held_out is not None  # `split` holds at least two rows out
    predicted = trained.predictor.predict(part.held_out.x).cpu()
    estimate = selection.ure_accuracy(predicted, part.held_out.comp, T)
    figures = {} if oracle is None else oracle.of_labels(part.rows, shared)
    return Attempt(scheme, shared, sharing, trained, estimate, figures, time.perf_counter() - started)


def _confidence(x: Any, given: Tensor, shared: Tensor) -> Observer:
    """What can be seen without truth: the mean confidence of evenly spread training rows on labels given and shared."""
    step = max(1, len(given) // LOOKED_AT)
    looked, given, shared = x[::step], given[::step], shared[::step]
    labelled = given.sum(1) > 0

    def observe(snapshot: Snapshot) -> dict[str, float]:
        logits = snapshot.predictor.logits(looked)
        p = snapshot.predictor.probabilities(logits).cpu()
        return {
            "confidence_seen": float((p * given).sum(1)[labelled].mean()),
            "confidence_augmented": float((p * shared).sum(1).mean()),
        }

    return observe
