"""Who gave the labels: how much, how evenly, and how far they agree with each other.

Two annotators who name different classes of one item do not contradict each other: both may be right. Agreement above 1
/ (K - 1), which independent, even naming of wrong classes gives, shows shared habits (the most obviously wrong class)
and not that the labels are right. A wrong label shows only against the neighbours (`naysay.audit.nearby`); who gives
those is told here.
"""

from dataclasses import dataclass

import numpy as np

from naysay.audit.rows import NOBODY, Rows
from naysay.audit.shares import Counts, Fit, Floats, Share, at_least, fit, share

FAVOURITE = 0.5  # an annotator who surely names one class more than half of the time is naming it without looking
FEWEST_LABELS = 10  # below this an interval spans most of what is possible
FAMILY_ALPHA = 0.01  # the chance that any annotator at all is suspected wrongly, shared among them (Bonferroni)


@dataclass(frozen=True)
class Annotator:
    """One annotator. `agreement`: with others on the same item. `suspected`: labels that name what the neighbours say
    is the class.
    """

    name: str
    labels: int
    items: int
    favourite: str
    favourite_share: Share
    agreement: Share | None
    suspected: Share | None
    p_value: float | None  # of as many suspected labels or more at the other annotators' rate
    one_sided: bool  # names its favourite far more often than the others do
    contradicts_neighbours: bool


@dataclass(frozen=True)
class Annotators:
    """All of them, those with something against them first, then by the number of labels. `unnamed`: labels that nobody
    is named for.
    """

    rows: tuple[Annotator, ...]
    unnamed: int
    agreement: Share | None
    chance: float


@dataclass(frozen=True)
class Shown:
    """The options that were shown. `named` is, class by class, the share of times it was named when it was shown.

    `evenly` tests whether the options were named evenly; `positions` counts the labels by their place in lists of the
    commonest length.
    """

    rows: int
    not_shown: int
    named: tuple[Share, ...]
    evenly: Fit
    positions: tuple[int, ...]
    position: Fit


def annotators(rows: Rows, classes: tuple[str, ...], likely: Counts | None) -> Annotators | None:
    """The annotators of `rows`; `likely` (n,) is each item's class as clear neighbours tell it, -1 where they don't."""
    if rows.annotators is None:
        return None
    named = rows.annotator != NOBODY
    item, label, who = rows.item[named], rows.label[named], rows.annotator[named]
    n_people, n_classes = len(rows.annotators), len(classes)
    if n_people == 0:
        return Annotators((), int((~named).sum()), None, 1 / (n_classes - 1))
    by_class = np.bincount(who * n_classes + label, minlength=n_people * n_classes).reshape(n_people, n_classes)
    total = by_class.sum(1)
    seen = np.bincount(np.unique(item * n_people + who) % n_people, minlength=n_people)
    agree, pairs = _pairs(item, label, who, n_classes, n_people)
    wrong, judged = _against(item, label, who, likely, n_people)
    p_values = tails(wrong, judged)
    found = []
    for a in np.flatnonzero(total).tolist():
        top = int(by_class[a].argmax())
        favourite = share(int(by_class[a, top]), int(total[a]))
        others = (by_class[:, top].sum() - by_class[a, top]) / max(int(total.sum() - total[a]), 1)
        found.append(
            Annotator(
                name=rows.annotators[a],
                labels=int(total[a]),
                items=int(seen[a]),
                favourite=classes[top],
                favourite_share=favourite,
                agreement=share(int(agree[a]), int(pairs[a])) if pairs[a] else None,
                suspected=share(int(wrong[a]), int(judged[a])) if judged[a] else None,
                p_value=float(p_values[a]) if judged[a] else None,
                one_sided=bool(total[a] >= FEWEST_LABELS and favourite.low > FAVOURITE and favourite.low > 2 * others),
                contradicts_neighbours=bool(
                    judged[a] >= FEWEST_LABELS and p_values[a] < FAMILY_ALPHA / max((judged > 0).sum(), 1)
                ),
            )
        )
    found.sort(key=lambda row: (not row.contradicts_neighbours, not row.one_sided, -row.labels, row.name))
    # each pair was seen from both sides
    together = share(int(agree.sum()) // 2, int(pairs.sum()) // 2) if pairs.any() else None
    return Annotators(tuple(found), int((~named).sum()), together, 1 / (n_classes - 1))


def shown(rows: Rows, n_classes: int) -> Shown | None:
    """What the options shown tell, or None where none are known."""
    if rows.shown is None or rows.n_shown is None or rows.place is None or not rows.n_shown.any():
        return None
    known, inside = rows.n_shown > 0, rows.place != NOBODY
    offered = rows.shown[inside]
    named = np.bincount(rows.label[inside], minlength=n_classes)
    expected = (offered / rows.n_shown[inside][:, None]).sum(0)
    usual = int(np.bincount(rows.n_shown[inside]).argmax()) if inside.any() else 0
    positions = np.bincount(rows.place[inside & (rows.n_shown == usual)], minlength=usual)
    return Shown(
        rows=int(known.sum()),
        not_shown=int((known & ~inside).sum()),
        named=tuple(share(int(k), int(of)) for k, of in zip(named, offered.sum(0), strict=True)),
        evenly=fit(named.astype(np.float64), expected, n_classes - 1),
        positions=tuple(positions.tolist()),
        position=fit(positions.astype(np.float64), np.full(usual, positions.sum() / max(usual, 1)), usual - 1),
    )


def tails(wrong: Counts, judged: Counts) -> Floats:
    """For each annotator the chance (n,) of as many wrong labels or more, if wrong ones come at the rate of all the
    others.
    """
    # one wrong and one right label are added: a rate of exactly zero would condemn the first slip
    rate = (wrong.sum() - wrong + 1) / (judged.sum() - judged + 2)
    return np.where(judged > 0, at_least(wrong, np.maximum(judged, 1), rate), 1.0)


def _pairs(item: Counts, label: Counts, who: Counts, n_classes: int, n_people: int) -> tuple[Counts, Counts]:
    """Of each annotator's labels: how many labels of others on the same items there are, and how many of those name the
    same class.
    """
    if not len(item):
        return np.zeros(n_people, np.int64), np.zeros(n_people, np.int64)
    same = _group_sizes(item * n_classes + label) - 1
    others = _group_sizes(item) - _group_sizes(item * n_people + who)
    return (
        np.bincount(who, same, n_people).astype(np.int64),
        np.bincount(who, others, n_people).astype(np.int64),
    )


def _group_sizes(keys: Counts) -> Counts:
    """For each entry, how many entries have its key."""
    _, group, size = np.unique(keys, return_inverse=True, return_counts=True)
    sizes: Counts = size[group]
    return sizes


def _against(item: Counts, label: Counts, who: Counts, likely: Counts | None, n_people: int) -> tuple[Counts, Counts]:
    """How many of each annotator's labels name their item's `likely` class, and how many of them can be judged so."""
    if likely is None:
        return np.zeros(n_people, np.int64), np.zeros(n_people, np.int64)
    clear = likely[item] != NOBODY
    wrong = clear & (label == likely[item])
    return np.bincount(who[wrong], minlength=n_people), np.bincount(who[clear], minlength=n_people)
