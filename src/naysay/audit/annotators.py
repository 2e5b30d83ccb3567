"""Who gave the labels: the long table as arrays, and how much, how evenly and in what agreement annotators name.

Two annotators who name different classes of one item do not contradict each other: both may be right. Agreement above 1
/ (K - 1), which independent, even naming of wrong classes gives, shows shared habits (the most obviously wrong class)
and not that the labels are right. A wrong label shows only against the neighbours (`naysay.estimation`); who gives
those is told here. An audit is lenient where `naysay.labels.from_table` is strict: a label that was not among the
options shown is counted here, refused there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.errors import InputError
from naysay.labels import column, column_names, is_missing, listed
from naysay.reading.weighing import against
from naysay.statistics import Counts, Fit, Floats, Share, at_least, fit, share

Mask = NDArray[np.bool_]
NOBODY = -1
FAVOURITE = 0.5  # an annotator who surely names one class more than half of the time is naming it without looking
FEWEST_LABELS = 10  # below this an interval spans most of what is possible
FAMILY_ALPHA = 0.01  # the chance that any annotator at all is suspected wrongly, shared among them (Bonferroni)


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct labels: `item`, `label` and `annotator` are numbers (m,), an annotator -1 where none is named.

    `annotators` are the names, None where the table has no such column. `shown` (m, K) is true for the options of each
    row, and `place` (m,) the position of the label among them, -1 where it is not; None where no options are known.
    """

    item: Counts
    label: Counts
    annotator: Counts
    annotators: tuple[str, ...] | None
    repeated: int
    shown: Mask | None
    place: Counts | None


@dataclass(frozen=True)
class Annotator:
    """One annotator; `agreement` with others on the same item, `suspected` labels: they name the likely class."""

    name: str
    labels: int
    items: int
    favourite: str
    favourite_share: Share
    agreement: Share | None
    suspected: Share | None
    p_value: float | None  # of as many suspected labels or more at the other annotators' rate
    one_sided: bool  # names its favourite far more often than the others do
    contradicts_neighbors: bool


@dataclass(frozen=True)
class Annotators:
    """Those with something against them first, then by number of labels; `unnamed` labels have no annotator."""

    rows: tuple[Annotator, ...]
    unnamed: int
    agreement: Share | None
    chance: float


@dataclass(frozen=True)
class Shown:
    """The options that were shown; `named` is, class by class, the share of times it was named when it was shown.

    `evenly` tests whether that is even; `positions` counts labels by their place in lists of the commonest length.
    """

    rows: int
    not_shown: int
    named: tuple[Share, ...]
    evenly: Fit
    positions: tuple[int, ...]
    position: Fit


def annotators(rows: Rows, classes: tuple[str, ...], likely: Counts) -> Annotators | None:
    """The annotators of `rows`; `likely` (n,) is each item's class as clear neighbours tell it, -1 where they don't."""
    if rows.annotators is None:
        return None
    named = rows.annotator != NOBODY
    item, label, who = rows.item[named], rows.label[named], rows.annotator[named]
    n_people, n_classes = len(rows.annotators), len(classes)
    by_class = np.bincount(who * n_classes + label, minlength=n_people * n_classes).reshape(n_people, n_classes)
    total = by_class.sum(1)
    seen = np.bincount(np.unique(item * n_people + who) % n_people, minlength=n_people)
    agree, pairs = _pairs(item, label, who, n_classes, n_people)
    wrong, judged = against(item, label, who, likely, n_people)
    p_values, too_unlikely = tails(wrong, judged), FAMILY_ALPHA / max((judged > 0).sum(), 1)
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
                contradicts_neighbors=bool(judged[a] >= FEWEST_LABELS and p_values[a] < too_unlikely),
            )
        )
    found.sort(key=lambda row: (not row.contradicts_neighbors, not row.one_sided, -row.labels, row.name))
    # each pair was seen from both sides
    together = share(int(agree.sum()) // 2, int(pairs.sum()) // 2) if pairs.any() else None
    return Annotators(tuple(found), int((~named).sum()), together, 1 / (n_classes - 1))


def shown(rows: Rows, n_classes: int) -> Shown | None:
    """What the options shown tell, or None where none are known."""
    if rows.shown is None or rows.place is None or not rows.shown.any():
        return None
    inside = rows.place != NOBODY
    offered, place = rows.shown[inside], rows.place[inside]
    n_offered = offered.sum(1)
    named = np.bincount(rows.label[inside], minlength=n_classes)
    expected = (offered / n_offered[:, None]).sum(0)
    usual = int(np.bincount(n_offered).argmax()) if inside.any() else 0
    positions = np.bincount(place[n_offered == usual], minlength=usual)
    n_known = int(rows.shown.any(1).sum())
    return Shown(
        rows=n_known,
        not_shown=n_known - len(place),
        named=tuple(share(int(k), int(of)) for k, of in zip(named, offered.sum(0), strict=True)),
        evenly=fit(named.astype(np.float64), expected, n_classes - 1),
        positions=tuple(positions.tolist()),
        position=fit(positions.astype(np.float64), np.full(usual, positions.sum() / max(usual, 1)), usual - 1),
    )


def tails(wrong: Counts, judged: Counts) -> Floats:
    """Each annotator's chance (n,) of so many wrong labels or more, if wrong ones come at the rate of the others."""
    # one wrong and one right label are added: a rate of exactly zero would condemn the first slip
    rate = (wrong.sum() - wrong + 1) / (judged.sum() - judged + 2)
    return np.where(judged > 0, at_least(wrong, np.maximum(judged, 1), rate), 1.0)


def _pairs(item: Counts, label: Counts, who: Counts, n_classes: int, n_people: int) -> tuple[Counts, Counts]:
    """For each annotator, how many labels of others on the same items name the same class, and how many there are."""
    same = _group_sizes(item * n_classes + label) - 1
    others = _group_sizes(item) - _group_sizes(item * n_people + who)
    return np.bincount(who, same, n_people).astype(np.int64), np.bincount(who, others, n_people).astype(np.int64)


def _group_sizes(keys: Counts) -> Counts:
    """For each entry, how many entries have its key."""
    _, group, size = np.unique(keys, return_inverse=True, return_counts=True)
    return np.take(size, group)


def read(
    table: Any, classes: Sequence[Any], items: Sequence[Any], *, item: str, label: str, annotator: str, options: str
) -> Rows:
    """The distinct labels of a long table, which may have no `annotator` and no `options`; empty labels say nothing."""
    shown = column(table, options) if has(table, options) else None
    what, whose = column(table, label), column(table, item)
    no_item, no_label = _missing(whose, item), _missing(what, label)
    if no_item:
        at = next(i for i, name in enumerate(whose) if name in no_item)
        empty = f"row {at} of the table has an empty cell in its item column {item!r}"
        raise InputError(f"{empty}; name the item or drop the row.")
    items_of = _numbers(whose, items, "labels item {!r}, which is not among the items; drop the row or add the item")
    given = np.array([name not in no_label for name in what], dtype=bool)
    labels_of = np.full(len(what), NOBODY)
    unknown = "names class {!r}, which is not among the classes; correct its spelling"
    labels_of[given] = _numbers([name for name in what if name not in no_label], classes, unknown)
    names, people = _people(table, annotator, len(what))

    keys = ((items_of * (len(names) + 1) + people + 1) * len(classes) + labels_of)[given]
    first = np.flatnonzero(given)[np.sort(np.unique(keys, return_index=True)[1])]
    options_of = _options(shown, classes, labels_of, first) if shown is not None else (None, None)
    annotators = tuple(map(str, names)) if has(table, annotator) else None
    repeated = int(given.sum()) - len(first)
    return Rows(items_of[first], labels_of[first], people[first], annotators, repeated, *options_of)


def class_names(table: Any, label: str, options: str) -> list[Any]:
    """All classes that are named or shown, sorted as `naysay.labels.from_table` does."""
    named = column(table, label)
    names = set(named) - _missing(named, label)
    if has(table, options):
        names.update(name for cell in column(table, options) for name in listed(cell))
    return sorted(names, key=lambda name: (str(type(name)), name))


def has(table: Any, name: str) -> bool:
    """Whether the table has a column of that name."""
    return name in column_names(table)


def _people(table: Any, annotator: str, n: int) -> tuple[list[Any], Counts]:
    """The annotators' names, and for each of n rows the number of its own, -1 where none is named."""
    if not has(table, annotator):
        return [], np.full(n, NOBODY)
    who = column(table, annotator)
    nobody = _missing(who, annotator)
    number = {name: i for i, name in enumerate(name for name in dict.fromkeys(who) if name not in nobody)}
    return list(number), np.array([number.get(name, NOBODY) for name in who], dtype=np.int64)


def _missing(values: list[Any], name: str) -> set[Any]:
    """Those of a column's values that are empty cells; each is looked at once, for a million cells take seconds."""
    try:
        return {value for value in set(values) if is_missing(value)}
    except TypeError:
        what = f"column {name!r} of the table must hold one name per cell; got lists"
        raise InputError(f"{what}. Give each label a row of its own.") from None


def _numbers(names: Sequence[Any], known: Sequence[Any], unknown: str) -> Counts:
    number = {name: i for i, name in enumerate(known)}
    found = np.array([number.get(name, NOBODY) for name in names], dtype=np.int64)
    if (found == NOBODY).any():
        at = int((found == NOBODY).argmax())
        raise InputError(f"a row of the table {unknown.format(names[at])}.")
    return found


def _options(shown: list[Any], classes: Sequence[Any], labels: Counts, rows: Counts) -> tuple[Mask, Counts]:
    """Which classes were shown (m, K), and where among them the label was (m,)."""
    number = {name: i for i, name in enumerate(classes)}

    @cache
    def known(names: tuple[Any, ...]) -> tuple[int, ...]:
        try:
            return tuple(number[name] for name in names)
        except KeyError as error:
            what = f"the options shown name class {error.args[0]!r}, which is not among the classes"
            raise InputError(f"{what}; correct its spelling.") from None

    mask, place = np.zeros((len(rows), len(classes)), dtype=bool), np.full(len(rows), NOBODY)
    for i, row in enumerate(rows.tolist()):
        found = known(listed(shown[row]))
        mask[i, list(found)] = True
        if labels[row] in found:
            place[i] = found.index(labels[row])
    return mask, place
