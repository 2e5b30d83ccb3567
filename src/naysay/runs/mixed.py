"""A run that chooses the model itself: the portfolio's candidates, judged by labels they did not see, and a mixture.

Each label is held out once, or those of one part judge what was found on the others. What is kept is the mixture,
trained on all rows; the figures are those of models that did not see the labels that judge them (`naysay.portfolio`).
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay import holdout, neighbors, portfolio, selection, shares, transition
from naysay.augmentation import share
from naysay.estimation import Estimate as EstimatedT
from naysay.estimation.noise import Noise, by_likelihood
from naysay.features import Space
from naysay.reading import Labelled, Oracle
from naysay.runs.attempt import Attempt, Ground, Model, told, usable
from naysay.runs.settings import Settings

Tell = Callable[[str], None]
MIXTURE = "mixture"
NOISE_ROWS = 5000  # that tell how noisy labels are: more would take longer than it narrows


# where models alone tell how labels come about, and no test of it is at hand
BY_MODELS = "how labels come about is told by the models alone, and nothing else shows that it is so"


def try_all(
    data: Labelled,
    settings: Settings,
    near: EstimatedT | None,
    part: tuple[Tensor, Tensor] | None,
    seen: Any,
    tell: Tell,
) -> portfolio.Found:
    """What the portfolio finds; part: the rows to find it on, and those that judge it, where not every label does;
    seen: all rows, as the former alone say what columns become.
    """
    known = shares.read(settings.sharing.class_shares, len(data.classes))
    x, comp, seed = data.items.x, data.comp, settings.config.seed
    found = portfolio.fit(
        x if part is None else holdout.take(seen, part[0]),
        comp if part is None else comp[part[0]],
        assume=settings.assume,
        T=near.T if near is not None and settings.assume == "estimated" else None,
        T_is_stated=False,
        class_shares=known,
        budget=settings.budget,
        seed=seed,
        tell=tell,
    )
    return found if part is None else portfolio.judge_apart(found, seen, comp, *part, seed, tell, whole=x)


def attempts(
    found: portfolio.Found, comp: Tensor, judged_by: Tensor | None, near: EstimatedT | None
) -> tuple[Attempt, ...]:
    """Each candidate as an attempt, and the mixture of them as the last one; of a single part, that one alone."""
    given = comp[torch.from_numpy(found.rows)]

    def judged(name: str, p: Any, loss: Any, factor: float, seconds: float, weight: float | None) -> Attempt:
        predicted = torch.from_numpy(p.argmax(1))
        right = selection.ure_accuracy(predicted, given, usable(judged_by))
        by_labels = selection.summarise("scel", torch.from_numpy(loss))
        noise = noise_of(p, given) if judged_by is None else None  # it is a part of any other T
        accuracy = told(predicted, given, judged_by, near, BY_MODELS, seen(found, comp), noise, found.naming.even)
        return Attempt(name, (), by_labels, factor, right, accuracy, seconds, weight)

    alone = (found.weights > 0).sum() == 1
    tried = []
    for one, weight in zip(found.tried, found.weights, strict=True):
        # what is kept alone is judged as it is kept: with the class shares that were stated
        p, loss = (found.p, found.loss) if alone and weight > 0 else (one.p, one.loss)
        tried.append(judged(one.row.name, p, loss, one.factor, one.seconds, float(weight)))
    if alone:
        return tuple(tried)
    return (*tried, judged(MIXTURE, found.p, found.loss, 1.0, found.seconds, None))


def kept(found: portfolio.Found, data: Labelled, space: Space, settings: Settings, oracle: Oracle | None) -> Model:
    """The mixture as the run's model: trained on all rows, on the labels as they were given."""
    started = time.perf_counter()
    every = torch.arange(len(data.comp), device=data.comp.device)
    nothing = every[:0]
    part = holdout.part(data.items.x, data.comp, every, nothing)
    k = min(5, len(data.comp) - 1)
    graph = neighbors.build(space.features, k, settings.sharing.method, space.metric)  # to show examples by
    shared, report = share(None, data.comp, settings.sharing_by("none"))
    ground = Ground(part, graph, None, named_by(found))
    figures = _against(oracle, found)
    turned = None if settings.sharing.class_shares is None else _turned(found)
    return Model(ground, shared, report, turned, found.model, (figures,), {}, time.perf_counter() - started)


def _turned(found: portfolio.Found) -> float:
    """The part of the labelled rows that class shares give another class."""
    before = (np.log(found.p) - found.model.offsets).argmax(1)
    return float((before != found.p.argmax(1)).mean())


def named_by(found: portfolio.Found) -> Tensor | None:
    """How labels come about, as the models found it; None is every wrong class alike."""
    even = found.naming.how == "uniform" and not found.naming.noise
    return None if even else torch.from_numpy(found.naming.T)


def _against(oracle: Oracle | None, found: portfolio.Found) -> dict[str, float]:
    """What the truth, where it is known, says of the test items; where there are none, of the items held out."""
    if oracle is None:
        return {}
    if oracle.y_test is None:
        predicted, true = found.p.argmax(1), oracle.of_rows(found.rows)
    else:
        logits = found.model.logits(oracle.x_test)
        predicted, true = found.model.decode(logits).numpy(), oracle.y_test
    known = true >= 0
    return {"test_accuracy": float((predicted[known] == true[known]).mean())} if known.any() else {}


def noise_of(p: Any, given: Tensor) -> Noise:
    """How many labels `given` (n, K) name the item's own class, by the probabilities p (n, K) of models that were not
    shown them: models tell it where neighbours, among columns of noise, do not.
    """
    some = slice(None, None, max(1, len(p) // NOISE_ROWS))
    even = transition.uniform(p.shape[1]).numpy()
    return by_likelihood(given[some].double().numpy(), np.asarray(p)[some], even)


def name_of_kept(tried: tuple[Attempt, ...]) -> str:
    """What is kept: the mixture, or the one candidate that makes it up."""
    return next((one.name for one in tried if one.name == MIXTURE), max(tried, key=lambda one: one.weight or 0.0).name)


def seen(found: portfolio.Found, comp: Tensor) -> float:
    """The share of the labels `comp` that each of the judged models saw."""
    held = 1 / found.folds if found.folds > 1 else len(found.rows) / int((comp.sum(1) > 0).sum())
    return float(np.round(1 - held, 3))
