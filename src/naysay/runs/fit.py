"""The run: audit the labels, hold some out, share the rest between neighbours, train, judge by the labels held out.

Each scheme is trained on the same rows and judged on the same held-out ones, so that their difference is paired and far
sharper than either estimate alone. Where training takes seconds every label is held out once (cross-fitting), so that
all of them judge. Held-out labels take no part in sharing (`naysay.holdout`). The recommended scheme is kept unless
another is better by more than a standard error (`naysay.selection.choose`), and is then trained once more on all
labels; the estimates remain those of the models that were judged. Several processes prepare alike, take their labels
from the first one, and share the training.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from naysay import cores, holdout, neighbors, portfolio, selection, shares, transition
from naysay.audit import Audit, audit, refuse_ordinary
from naysay.datasets import Items, store
from naysay.errors import InputError
from naysay.estimation import SAMPLE, ask_neighbors, label_counts, not_told
from naysay.estimation import Estimate as EstimatedT
from naysay.features import Frozen, Space, find_space, refuse_table
from naysay.learning.foresee import foresee
from naysay.processes import ALONE, Processes
from naysay.reading import Labelled, Oracle
from naysay.runs import mixed
from naysay.runs.apart import part_by_encoders
from naysay.runs.attempt import Attempt, Ground, Model, attempt, calibrated, learn
from naysay.runs.settings import GAIN, HELD_OUT, Settings, recommend
from naysay.selection import Choice
from naysay.words import count, joined

Tell = Callable[[str], None]
WORTH_TELLING = 10.0  # seconds


@dataclass(frozen=True, eq=False)
class Fitted:
    """A finished run: what was tried, which of it was kept and why, and the model: the kept scheme's, trained on all
    labels or, where none was trained again, the one that was judged.
    """

    settings: Settings
    audit: Audit
    space: Space
    attempts: tuple[Attempt, ...]
    choice: Choice[str]
    kept: Model
    held: Tensor  # numbers of the rows that judged, in the order of the estimates' rows
    seen: float  # the share of the labelled rows that each of the judged models has seen
    folds: int
    seconds: float
    processes: int = 1
    not_tried: tuple[str, ...] = ()  # candidates for which the budget was too small
    encoder: Frozen | None = None  # by which images became the rows that were learned
    saw: str = ""  # which images the encoders were pretrained on (`naysay.runs.apart`)
    items: Items | None = None  # as the kept model takes them, where its training rows alone say what columns become
    learned_of_all: tuple[str, ...] = ()  # what the items that judged had a part in with their columns, in words

    @property
    def chosen(self) -> Attempt:
        """The attempt whose scheme is kept."""
        return next(attempt for attempt in self.attempts if attempt.name == self.choice.kept)

    @property
    def rows(self) -> Tensor:
        """Numbers of the rows that the kept model was trained on."""
        return self.kept.ground.part.rows

    def taken(self, data: Labelled) -> Labelled:
        """The data as the kept model takes them: with the columns that belong to it."""
        return data if self.items is None else replace(data, items=self.items)

    def learned(self, data: Labelled) -> Any:
        """The rows of the data as the model takes them: as they are, or as the encoder made them of images."""
        return self.taken(data).items.x if self.encoder is None else self.space.features

    @property
    def T(self) -> Tensor | None:
        """How labels come about, as the kept model took it."""
        return self.kept.ground.T


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
    _check(data, settings)
    saw, part = part_by_encoders(data, settings)
    if part is not None:
        tell(f"judging by the labels of {count(len(part[1]), 'image')}, which the encoder left out")
    encoder = _encoder(data, settings, tell)
    space = find_space(
        data.items.x,
        settings.space,
        encoder or settings.encoder,
        columns=data.items.features,
        ahead=_ahead(tell),
    )
    tell(f"auditing {len(data.comp):,} items with {len(data.classes)} classes; neighbours by {space.about}")
    found = audit(
        data.comp,
        features=space.features,
        table=data.table,
        classes=data.classes,
        items=list(data.items.ids),
        metric=space.metric,
        seed=settings.config.seed,
        class_shares=settings.sharing.class_shares,
    )
    if not data.sure:
        refuse_ordinary(found)
    for advice in found.advice:
        if advice.level == "act":
            tell(f"audit: {advice.text}")
    near = found.neighborhood if found.neighborhood is not None and found.neighborhood.told else None
    if near is None and settings.assume == "estimated":
        raise not_told(" ".join(found.not_told))
    of_all = () if settings.apart or data.items.columns is None else data.items.columns.learned
    if settings.auto:
        mixture = _mixed(data, settings, found, space, encoder, near, part, oracle, tell, processes, started)
        return replace(mixture, saw=saw, learned_of_all=of_all)
    parts = _parts(data.comp, settings) if part is None else [part]
    tell(_plan(settings, len(parts)))
    if data.items.x.ndim > 2 and (ahead := _foreseen(data, settings, len(parts), processes)):
        tell(ahead)
    prepare = partial(_ground, space=space, settings=settings, near=near, tell=tell, processes=processes)
    train = partial(learn, settings=settings, oracle=oracle, progress=progress, processes=processes)
    models: dict[str, list[Model]] = {scheme: [] for scheme in settings.schemes}
    for fold, (rows, held) in enumerate(parts, 1):
        taken = replace(data, items=data.items.seen_by(rows.numpy())) if settings.apart else data
        ground = prepare(taken, settings.schemes, rows, held)
        for scheme, of in models.items():
            tell(f"training with scheme {scheme}" + (f", fold {fold} of {len(parts)}" if len(parts) > 1 else ""))
            of.append(train(scheme, ground, taken.items.x))
            left = len(parts) * len(models) + settings.refit - sum(map(len, models.values()))
            if len(of) == 1 and scheme == settings.schemes[-1] and left:  # the first training waits for torch
                tell(f"that took {_duration(of[0].seconds)}; about {_duration(of[0].seconds * left)} to go")
    seen = _seen(models[settings.schemes[0]][0].ground.part)  # the same for all schemes
    less = seen if settings.refit else 1.0  # a model that is kept as it was judged gains nothing more
    attempts = tuple(attempt(scheme, of, found.neighborhood, less) for scheme, of in models.items())
    recommended = recommend(settings.schemes, near is not None)
    # machines may round differently, and all must train the same scheme
    choice = processes.agree(selection.choose({one.name: (one.loss, one.estimate) for one in attempts}, recommended))
    kept, items = models[choice.kept][0], None if settings.refit or taken.items is data.items else taken.items
    if settings.refit:
        every = torch.arange(len(data.comp), device=data.comp.device)
        nothing = every[:0]
        ground = prepare(data, [choice.kept], every, nothing)
        tell(f"training with scheme {choice.kept}, which is kept, on all labels")
        kept = train(choice.kept, ground, data.items.x)
    chosen = next(one for one in attempts if one.name == choice.kept)
    kept = calibrated(kept, chosen.sharpness)
    held = torch.cat([held for _, held in parts])
    rest = (held, seen, len(parts), time.perf_counter() - started, processes.size)
    return Fitted(settings, found, space, attempts, choice, kept, *rest, saw=saw, items=items, learned_of_all=of_all)


def _seen(part: holdout.Parted) -> float:
    """The share of the labelled rows that are trained on."""
    labelled = int((part.given.sum(1) > 0).sum())
    return labelled / (labelled + len(part.held_rows))


def _check(data: Labelled, settings: Settings) -> None:
    """Raise InputError, before anything takes long, where these settings cannot be meant of these data."""
    if settings.flips and data.items.x.ndim == 2:
        raise InputError("flips are for images, which have a mirror image; got a table. Leave flips out.")
    if settings.auto:
        portfolio.check_classes(*data.comp.shape)


def _mixed(
    data: Labelled,
    settings: Settings,
    found: Audit,
    space: Space,
    encoder: Frozen | None,
    near: EstimatedT | None,
    part: tuple[Tensor, Tensor] | None,
    oracle: Oracle | None,
    tell: Tell,
    processes: Processes,
    started: float,
) -> Fitted:
    """The run whose model is a mixture of what the portfolio holds."""
    if settings.apart and part is None:
        part = holdout.split(data.comp, settings.held_out or HELD_OUT, settings.config.seed)
        tell(f"judging by the labels of {count(len(part[1]), 'item')}, which are kept out of everything else")
    if encoder is not None:
        data = replace(data, items=replace(data.items, x=space.features))
        oracle = None if oracle is None else oracle.through(partial(encoder, ahead=_ahead(tell)), space.features)
    seen = None if part is None else data.items.seen_by(part[0].numpy()).x
    tried = mixed.try_all(data, settings, near, part, seen, tell)
    by_neighbors = near is not None and settings.assume != "uniform"
    judged_by = near.T if near is not None and by_neighbors else mixed.named_by(tried)
    attempts = mixed.attempts(tried, data.comp, judged_by, found.neighborhood)
    name = mixed.name_of_kept(attempts)
    untold = next(one for one in attempts if one.name == name).accuracy.low is None
    if untold and judged_by is not None and mixed.named_by(tried) is None:
        # neighbours know T too badly, and models call naming even: what that says, unless neighbours reject it
        attempts = mixed.attempts(tried, data.comp, None, found.neighborhood)
    choice = selection.lead({one.name: (one.loss, one.estimate) for one in attempts}, name)
    kept = mixed.kept(tried, data, space, settings, oracle)
    held, folds, seconds = torch.from_numpy(tried.rows), tried.folds, time.perf_counter() - started
    rest = (held, mixed.seen(tried, data.comp), folds, seconds, processes.size, tried.left, encoder)
    return Fitted(settings, found, space, attempts, choice, kept, *rest)


def _encoder(data: Labelled, settings: Settings, tell: Tell) -> Frozen | None:
    """The encoder whose rows the models learn, told before they are computed; None where they learn what is given."""
    if not settings.embeds:
        return None
    refuse_table(data.items.x)
    encoder, images = Frozen.load(str(settings.encoder)), count(len(data.comp), "image")
    tell(f"models learn what {encoder.name} makes of the images, {encoder.width} numbers each, and not their pixels")
    tell(f"of {images} it is computed once and kept in {store.folder() / 'features'}")
    return encoder


def _ahead(tell: Tell) -> Callable[[float], None]:
    """Tells how long an encoder will still take, where that is worth telling."""

    def told(seconds: float) -> None:
        if seconds >= WORTH_TELLING:
            tell(f"features of images: about {_duration(seconds)} to go")

    return told


def _parts(comp: Tensor, settings: Settings) -> list[tuple[Tensor, Tensor]]:
    """The rows to train on and to hold out, once or for each fold."""
    n_folds, seed = settings.folds_for(len(comp), int((comp.sum(1) > 0).sum())), settings.config.seed
    if n_folds > 1:
        return holdout.folds(comp, n_folds, seed)
    return [holdout.split(comp, HELD_OUT if settings.held_out is None else settings.held_out, seed)]


def _plan(settings: Settings, n_folds: int) -> str:
    """What will be trained, told before it is."""
    trainings = count(n_folds * len(settings.schemes) + settings.refit, "training")
    held = f"each of {n_folds} folds of the labels held out" if n_folds > 1 else "some labels held out"
    again = ", then the one that is kept on all labels" if settings.refit else ""
    return f"{trainings} of {count(settings.config.epochs, 'epoch')}: {joined(settings.schemes)} with {held}{again}"


def _foreseen(data: Labelled, settings: Settings, n_folds: int, processes: Processes) -> str:
    """What a network on images will take, by a few steps; nothing where that is hardly worth waiting to hear."""
    one = foresee(settings.training, data.items.x, len(data.classes), processes)
    seconds = one.seconds * (n_folds * len(settings.schemes) + settings.refit)
    if seconds < WORTH_TELLING:
        return ""
    where = count(cores.usable(), "core") if processes.device.type == "cpu" else "a GPU"
    return (
        f"this will take about {_duration(seconds)} on this machine ({where}), by a few steps of "
        f"{_duration(one.seconds_per_step)} each, and {one.n_bytes / 1e9:.1f} GB of memory"
    )


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _ground(
    data: Labelled,
    schemes: Sequence[str],
    rows: Tensor,
    held: Tensor,
    *,
    space: Space,
    settings: Settings,
    near: EstimatedT | None,
    tell: Tell,
    processes: Processes,
) -> Ground:
    """What schemes start from if these rows are trained on and those held out; near: what all labels tell of T."""
    part = holdout.part(data.items.x, data.comp, rows, held)
    if settings.apart and settings.encoder is None and len(held):
        space = find_space(data.items.x[rows.numpy()], settings.space, columns=data.items.features)
        features = space.features
    else:
        features = space.features[rows.numpy()]
    judged_by, T, by_T = None, None, False
    if settings.assume == "popularity":
        judged_by, T = transition.popularity(data.comp), transition.popularity(part.given)
    elif near is not None and settings.assume != "uniform":
        # what a model learns by comes from its training rows alone; where too few of them tell anything, all may, but
        # apart from those held out only where an estimate was asked for
        told = _told(part.given, features, space, settings) if len(held) else near
        if not settings.apart or settings.assume == "estimated":
            told = told or near
        judged_by, T = near.T, None if told is None else told.T
        by_T = settings.sharing.class_shares is not None and told is not None and told.gain > GAIN
    # machines may round differently, and all must train on the same labels
    judged_by, T, by_T = processes.agree((judged_by, T, by_T))
    graph, shape = None, part.given.shape
    if wanted := [settings.sharing_by(scheme).within(*shape) for scheme in schemes if scheme != "none"]:
        k = max(sharing.neighbors(*shape) for sharing in wanted)
        tell(f"finding the {k} nearest neighbours of {len(rows):,} training rows")
        graph = neighbors.build(features, k, settings.sharing.method, space.metric)
    return Ground(part, graph, judged_by, T, by_T)


def _told(given: Tensor, features: Any, space: Space, settings: Settings) -> EstimatedT | None:
    """How labels come about as neighbours show it; None where they show nothing."""
    seed, known = settings.config.seed, shares.read(settings.sharing.class_shares, given.shape[1])
    found, *_ = ask_neighbors(given, label_counts(given), features, None, space.metric, SAMPLE, seed, known)
    return found if found is not None and found.told else None
