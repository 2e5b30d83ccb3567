"""The labels of items: in columns of their own table, in long rows of another, by annotators, or drawn from truth."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from naysay import datasets, labels, transition
from naysay.datasets import Dataset, Items
from naysay.datasets.columns import header
from naysay.datasets.dataset import Texts, numbered
from naysay.datasets.images import whole_names
from naysay.errors import InputError, unknown
from naysay.labels import Contradictions
from naysay.reading.classes import Classes, Names, find_classes
from naysay.reading.oracle import Oracle
from naysay.transition import HUMAN

BIASED = {"biased-weak": "weak", "biased-strong": "strong"}
Origin = Mapping[str, Any]


def only_one(argument: str, names: Names) -> str | None:
    """The one name, or none, that was given for an argument that may have several elsewhere."""
    if len(names) > 1:
        raise InputError(f"only one {argument}= can be named here; got {', '.join(names)}.")
    return names[0] if names else None


@dataclass(frozen=True, eq=False)
class Labelled:
    """n items, their labels `comp` (n, K) and the names of the K classes.

    table: the long rows the labels came from, columns item, label and perhaps annotator and options; else None.
    origin: where all this comes from, for the record (JSON). oracle: the truth, where it is known.
    """

    items: Items
    comp: Tensor
    classes: tuple[str, ...]
    table: Mapping[str, Any] | None = None
    origin: Origin = field(default_factory=dict)
    oracle: Oracle | None = None


@dataclass(frozen=True)
class Naming:
    """How texts become classes: all classes in order, if they were named, and what is done about doubtful texts."""

    classes: Names | None
    merge_spelling: bool
    contradictions: Contradictions

    def find(self, counts: Mapping[str, int], who: str = "a label", among: Names | None = None) -> Classes:
        """The classes of texts that were given so many times each, or which of the classes `among` they name."""
        return find_classes(counts, among or self.classes, merge_spelling=self.merge_spelling, who=who)

    def find_true(self, y_true: Any, origin: Origin, column: str | None, among: Names | None = None) -> Classes:
        """The classes of the truth's texts, which came from a `column`, or which of the classes `among` they name."""
        if any(isinstance(text, list) for text in y_true):
            lists = f"{origin['path']} holds lists in its column {column!r}"
            raise InputError(f"{lists}, where an item must have one true class.")
        return self.find(_counted(y_true), "the truth", among)


@dataclass(frozen=True)
class Draws:
    """Labels drawn from the truth, for an experiment: by which transition, how many of each item, and the seed."""

    transition: str | None
    n_labels: int | None
    seed: int

    def draw(self, y_true: Any, n_classes: int, source: str) -> tuple[Tensor, str]:
        """The labels (n, K) of items of these classes, and how they were drawn, in words."""
        name, m = self.transition or "uniform", self.n_labels or 1
        if name == "uniform":
            T = transition.uniform(n_classes)
        elif name in BIASED:
            T = transition.biased(n_classes, BIASED[name], self.seed)
        elif name in HUMAN:
            T = transition.human(name)
            if len(T) != n_classes:
                has = f"has {len(T)} classes and {source} has {n_classes}"
                raise InputError(f"the published matrix {name} {has}. Choose another with transition=.")
        else:
            raise unknown("transition", name, ("uniform", *BIASED, *HUMAN))
        numbers = transition.sample(y_true, T, m, self.seed)
        each = f"{m} label{'s' if m > 1 else ''} each"
        return labels.from_indices(numbers, n_classes), f"drawn from the truth: {name}, {each}, seed {self.seed}"


@dataclass(frozen=True)
class LongRows:
    """A table with a row for each label, the columns that its parts are in, and whether options shown must hold."""

    path: Path
    id: str | None
    item: str | None
    label: Names
    annotator: str | None
    options: str | None
    strict: bool

    def read(self) -> dict[str, Any]:
        """The columns item, label and, where they were named, annotator and options (a list each)."""
        columns = header(self.path)
        item = self.item or next((name for name in ("item", self.id, "id") if name in columns), "item")
        parts = {"item": item, "label": only_one("label", self.label) or "label"}
        parts |= {part: name for part in ("annotator", "options") if (name := getattr(self, part)) is not None}
        read = datasets.read_columns(self.path, list(dict.fromkeys(parts.values())))
        table = {part: read[name].tolist() for part, name in parts.items()}
        for part in ("item", "label", "annotator"):
            if any(isinstance(cell, list) for cell in table.get(part, ())):
                lists = f"{self.path} holds lists in its column {parts[part]!r}"
                raise InputError(f"{lists}, where a row must have one {part}. Write a row for each.")
        if "options" in table:
            table["options"] = [list(labels.listed(cell)) for cell in table["options"]]
        return table


def of_known(data: Dataset, source: str, naming: Naming, draws: Draws, rows: LongRows | None) -> Labelled:
    """A known set with the labels of a long file, of its annotators where it has any, or drawn from its truth."""
    names = tuple(data.classes.tolist())
    items = Items(numbered(len(data.x_train)), data.x_train)
    oracle = Oracle(data.x_train, data.y_train, data.x_test, data.y_test)
    origin = {"name": data.name, "path": source, "tested_on": oracle.tested_on}
    if rows is not None:
        naming = naming if naming.classes else replace(naming, classes=names)
        return replace(in_long_rows(items, origin, rows, naming, folder=Path(source).is_dir()), oracle=oracle)
    if data.comp_train is not None and draws.transition is None:
        most = data.comp_train.shape[1]
        m = most if draws.n_labels is None else draws.n_labels
        if not 1 <= m <= most:
            which = f"which has {most} labels of each item"
            raise InputError(f"of {data.name}, {which}, 1 to {most} can be taken; got n_labels={m}.")
        comp = labels.from_indices(data.comp_train[:, :m], len(names), contradictions=naming.contradictions)
        how = f"the first {m} of each item's annotations"
    else:
        comp, how = draws.draw(data.y_train, len(names), source)
    return Labelled(items, comp, names, origin={**origin, "labels": how}, oracle=oracle)


def drawn(items: Items, origin: Origin, y_true: Any, column: str | None, naming: Naming, draws: Draws) -> Labelled:
    """A user's own items whose labels are drawn from the truth that came with them."""
    if y_true is None:
        way_out = 'which is not known here: pass truth="COLUMN", or label="COLUMN" instead'
        raise InputError(f'transition="{draws.transition}" draws labels from the truth, {way_out}.')
    missing = next((i for i, text in enumerate(y_true) if text is None), None)
    if missing is not None:
        lacks = f"item {items.ids[missing]!r} has none. Fill it in, or leave the row out"
        raise InputError(f'transition="{draws.transition}" needs the truth of every item; {lacks}.')
    classes = naming.find_true(y_true, origin, column)
    oracle = Oracle(items.x, _numbers(classes, y_true))
    comp, how = draws.draw(oracle.y_true, len(classes.names), origin["path"])
    said = {**origin, "labels": how, "tested_on": oracle.tested_on}
    return Labelled(items, comp, classes.names, None, said, oracle)


def in_columns(items: Items, origin: Origin, texts: Texts, columns: Names, naming: Naming) -> Labelled:
    """Labels in columns of the data itself."""
    classes = naming.find(_counted(texts.reshape(-1)))
    comp = labels.from_indices(_numbers(classes, texts), len(classes.names), contradictions=naming.contradictions)
    said = {**origin, "labels": f"in {', '.join(columns) or 'the array labels'}"}
    return Labelled(items, comp, classes.names, origin=said)


def in_long_rows(items: Items, origin: Origin, rows: LongRows, naming: Naming, *, folder: bool) -> Labelled:
    """Labels in long rows of a file of their own; images of a `folder` may be named without their endings."""
    table = rows.read()
    if folder:
        whole = whole_names(items.ids)
        table["item"] = [whole.get(name, name) for name in table["item"]]
    shown = table.get("options", [])
    classes = naming.find(dict.fromkeys((name for cell in shown for name in cell), 0) | _counted(table["label"]))
    table["label"] = [classes.spelled(text) for text in table["label"]]
    if shown:
        table["options"] = [[classes.spelled(name) for name in cell] for cell in shown]
    who, among = "annotator" if "annotator" in table else None, "options" if rows.strict and shown else None
    what_if, ids = naming.contradictions, items.ids.tolist()
    comp = labels.from_table(table, classes.names, ids, annotator=who, options=among, contradictions=what_if)
    said = {"labels_file": str(rows.path), "labels": f"{len(table['item']):,} rows of {rows.path.name}"}
    return Labelled(items, comp, classes.names, table, {**origin, **said})


def with_oracle(data: Labelled, y_true: Any, column: str | None, naming: Naming) -> Labelled:
    """The labelled items with the truth that came with them, in the classes of the labels."""
    if y_true is None or all(text is None for text in y_true):
        return data
    classes = naming.find_true(y_true, data.origin, column, data.classes)
    oracle = Oracle(data.items.x, _numbers(classes, y_true))
    return replace(data, origin={**data.origin, "truth": column, "tested_on": oracle.tested_on}, oracle=oracle)


def _counted(texts: Iterable[Any]) -> dict[str, int]:
    return {text: count for text, count in Counter(texts).items() if text is not None}


def _numbers(classes: Classes, texts: Any) -> Any:
    """Class numbers in the shape of `texts`, -1 where a text says nothing."""
    flat = [classes.number.get(text, -1) for text in texts.reshape(-1).tolist()]
    return np.array(flat, np.int64).reshape(texts.shape)
