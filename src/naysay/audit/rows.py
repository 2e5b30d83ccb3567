"""The long table of labels as arrays: one entry per (item, annotator, class), with repeats counted and taken out.

An audit is lenient where `naysay.labels.from_table` is strict: a label that was not among the options shown is counted
here, refused there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.audit.shares import Counts
from naysay.errors import InputError
from naysay.labels import column, column_names, is_missing, listed

NOBODY = -1


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct labels: `item`, `label` and `annotator` are numbers (m,), an annotator -1 where none is named.

    `annotators` are the names, None where the table has no such column. `shown` (m, K) is true for the options of each
    row, and `place` (m,) the position of the label among its `n_shown` (m,) options, -1 where it was not among them;
    None where no options are known.
    """

    item: Counts
    label: Counts
    annotator: Counts
    annotators: tuple[str, ...] | None
    repeated: int
    shown: NDArray[np.bool_] | None
    n_shown: Counts | None
    place: Counts | None

    def counts(self, n_items: int, n_classes: int) -> NDArray[np.int32]:
        """How often each item names each class, (n, K)."""
        flat = np.bincount(self.item * n_classes + self.label, minlength=n_items * n_classes)
        return flat.reshape(n_items, n_classes).astype(np.int32)


def read(
    table: Any,
    classes: Sequence[Any],
    items: Sequence[Any],
    *,
    item: str,
    label: str,
    annotator: str,
    options: str,
) -> Rows:
    """The distinct labels of a long table; the columns `annotator` and `options` may be absent, and empty labels say
    nothing.
    """
    shown = column(table, options) if has(table, options) else None
    what, whose = column(table, label), column(table, item)
    no_item, no_label = _missing(whose, item), _missing(what, label)
    if no_item:
        at = next(i for i, name in enumerate(whose) if name in no_item)
        raise InputError(
            f"row {at} of the table has an empty cell in its item column {item!r}; name the item or drop the row."
        )
    items_of = _numbers(whose, items, "labels item {!r}, which is not among the items; drop the row or add the item")
    given = np.array([name not in no_label for name in what], dtype=bool)
    labels_of = np.full(len(what), NOBODY)
    labels_of[given] = _numbers(
        [name for name in what if name not in no_label],
        classes,
        "names class {!r}, which is not among the classes; correct its spelling",
    )
    names, people = _people(table, annotator, len(what))

    keys = ((items_of * (len(names) + 1) + people + 1) * len(classes) + labels_of)[given]
    first = np.flatnonzero(given)[np.sort(np.unique(keys, return_index=True)[1])]
    options_of = _options(shown, classes, labels_of, first) if shown is not None else (None, None, None)
    annotators = tuple(str(name) for name in names) if has(table, annotator) else None
    return Rows(
        items_of[first], labels_of[first], people[first], annotators, int(given.sum()) - len(first), *options_of
    )


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
    """Those of a column's values that are empty cells; a set, because looking at each of a million cells takes seconds."""
    try:
        return {value for value in set(values) if is_missing(value)}
    except TypeError:
        raise InputError(
            f"column {name!r} of the table must hold one name per cell; got lists. Give each label a row of its own."
        ) from None


def _numbers(names: Sequence[Any], known: Sequence[Any], unknown: str) -> Counts:
    number = {name: i for i, name in enumerate(known)}
    found = np.array([number.get(name, NOBODY) for name in names], dtype=np.int64)
    if (found == NOBODY).any():
        at = int((found == NOBODY).argmax())
        raise InputError(f"a row of the table {unknown.format(names[at])}.")
    return found


def _options(
    shown: list[Any], classes: Sequence[Any], labels: Counts, rows: Counts
) -> tuple[NDArray[np.bool_], Counts, Counts]:
    """Which classes were shown (m, K), how many (m,), and where among them the label was (m,)."""
    number = {name: i for i, name in enumerate(classes)}

    @cache
    def known(names: tuple[Any, ...]) -> tuple[int, ...]:
        try:
            return tuple(number[name] for name in names)
        except KeyError as error:
            raise InputError(
                f"the options shown name class {error.args[0]!r}, which is not among the classes; correct its spelling."
            ) from None

    mask, place = np.zeros((len(rows), len(classes)), dtype=bool), np.full(len(rows), NOBODY)
    n_shown = np.zeros(len(rows), dtype=np.int64)
    for i, row in enumerate(rows.tolist()):
        found = known(listed(shown[row]))
        mask[i, list(found)] = True
        n_shown[i] = len(found)
        if labels[row] in found:
            place[i] = found.index(labels[row])
    return mask, n_shown, place
