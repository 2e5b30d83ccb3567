"""The labels of items: in columns of their own table, in long rows of another, by annotators, or drawn from truth."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from naysay import labels, memory, transition
from naysay.datasets import Dataset, Items
from naysay.datasets.dataset import Texts, numbered
from naysay.datasets.images import whole_names
from naysay.errors import InputError, unknown
from naysay.reading import class_names, matrices
from naysay.reading.asked import Asked, only_one
from naysay.reading.cells import split_cells
from naysay.reading.classes import Classes, Names
from naysay.reading.exports import EXPORTS
from naysay.reading.long_rows import heard, read_matrix, read_statements
from naysay.reading.oracle import Oracle
from naysay.reading.statements import KINDS, as_rows
from naysay.reading.weighing import weigh
from naysay.transition import HUMAN
from naysay.words import count

BIASED = {"biased-weak": "weak", "biased-strong": "strong"}
MATRICES = ("dummies", "signed", "snorkel")
FORMATS = (*MATRICES, *EXPORTS)
Origin = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Labelled:
    """n items, their labels `comp` (n, K) and the names of the K classes.

    table: the long rows the labels came from, columns item, label and perhaps annotator and options; else None.
    origin: where all this comes from, for the record (JSON). oracle: the truth, where it is known.
    sure: whether it was said, or follows from their format, that labels say what items are not.
    """

    items: Items
    comp: Tensor
    classes: tuple[str, ...]
    table: Mapping[str, Any] | None = None
    origin: Origin = field(default_factory=dict)
    oracle: Oracle | None = None
    sure: bool = False


def of_known(data: Dataset, source: str, asked: Asked) -> Labelled:
    """A known set with the labels of a long file, of its annotators where it has any, or drawn from its truth."""
    names = tuple(data.classes.tolist())
    items = Items(numbered(len(data.x_train)), data.x_train)
    oracle = Oracle(data.x_train, data.y_train, data.x_test, data.y_test)
    origin = {"name": data.name, "path": source, "tested_on": oracle.tested_on}
    if asked.labels is not None:
        named = asked if asked.classes else replace(asked, classes=names)
        return replace(in_long_rows(items, origin, asked.labels, named, folder=Path(source).is_dir()), oracle=oracle)
    if data.comp_train is not None and asked.transition is None:
        most = data.comp_train.shape[1]
        m = most if asked.n_labels is None else asked.n_labels
        if not 1 <= m <= most:
            which = f"which has {most} labels of each item"
            raise InputError(f"of {data.name}, {which}, 1 to {most} can be taken; got n_labels={m}.")
        comp = labels.from_indices(data.comp_train[:, :m], len(names), contradictions=asked.contradictions)
        how = f"the first {m} of each item's annotations"
    else:
        comp, how = _draw(asked, data.y_train, len(names), source)
    return Labelled(items, comp, names, origin={**origin, "labels": how}, oracle=oracle, sure=True)


def drawn(items: Items, origin: Origin, y_true: Any, asked: Asked) -> Labelled:
    """A user's own items whose labels are drawn from the truth that came with them."""
    if y_true is None:
        way_out = 'which is not known here: pass truth="COLUMN", or label="COLUMN" instead'
        raise InputError(f'transition="{asked.transition}" draws labels from the truth, {way_out}.')
    missing = next((i for i, text in enumerate(y_true) if text is None), None)
    if missing is not None:
        lacks = f"item {items.ids[missing]!r} has none. Fill it in, or leave the row out"
        raise InputError(f'transition="{asked.transition}" needs the truth of every item; {lacks}.')
    classes = _find_true(asked, y_true, origin)
    oracle = Oracle(items.x, _numbers(classes, y_true))
    comp, how = _draw(asked, oracle.y_true, len(classes.names), origin["path"])
    said = {**origin, "labels": how, "tested_on": oracle.tested_on}
    return Labelled(items, comp, classes.names, None, said, oracle, sure=True)


def _draw(asked: Asked, y_true: Any, n_classes: int, source: str) -> tuple[Tensor, str]:
    """Labels (n, K) drawn for items of these classes, and how, in words."""
    name, m = asked.transition or "uniform", asked.n_labels or 1
    if name == "uniform":
        T = transition.uniform(n_classes)
    elif name in BIASED:
        T = transition.biased(n_classes, BIASED[name], asked.seed)
    elif name in HUMAN:
        T = transition.human(name)
        if len(T) != n_classes:
            has = f"has {len(T)} classes and {source} has {n_classes}"
            raise InputError(f"the published matrix {name} {has}. Choose another with transition=.")
    else:
        raise unknown("transition", name, ("uniform", *BIASED, *HUMAN))
    numbers = transition.sample(y_true, T, m, asked.seed)
    how = f"drawn from the truth: {name}, {count(m, 'label')} each, seed {asked.seed}"
    return labels.from_indices(numbers, n_classes), how


def _find_true(asked: Asked, y_true: Any, origin: Origin, among: Names | None = None) -> Classes:
    """The classes of the truth's texts, or which of the classes `among` they name."""
    if any(isinstance(text, list) for text in y_true):
        lists = f"{origin['path']} holds lists in its column {asked.truth!r}"
        raise InputError(f"{lists}, where an item must have one true class.")
    return asked.find(_counted(y_true), "the truth", among)


def in_columns(items: Items, origin: Origin, texts: Texts, columns: Names, asked: Asked) -> Labelled:
    """Labels in columns of the data itself: classes, several in a cell or in a column each, or a matrix of codes."""
    said = {**origin, "labels": f"in {', '.join(columns) or 'the array labels'}"}
    if asked.format is not None or matrices.is_dummies(texts, asked.classes):
        named = columns if len(columns) == texts.shape[1] else [str(j) for j in range(texts.shape[1])]
        return in_matrix(items, said, texts, named, replace(asked, format=asked.format or "dummies"))
    counts = _counted(texts.reshape(-1))
    matrices.refuse_codes(counts, asked.classes)
    parts = split_cells(counts, asked.classes)
    classes = asked.find(_spread(counts, parts))
    sure = asked.labels_say is not None
    if not parts and asked.labels_say in (None, "not"):
        comp = labels.from_indices(_numbers(classes, texts), len(classes.names), contradictions=asked.contradictions)
        return Labelled(items, comp, classes.names, origin=said, sure=sure)
    rule_out, every = KINDS[asked.labels_say or "not"], range(len(classes.names))
    number = {None: ()} | {
        text: tuple(dict.fromkeys(classes.number[part] for part in parts.get(text, (text,)) if part in classes.number))
        for text in counts
    }
    memory.afford(8 * len(every) * texts.size, "labels that name many classes", "Give fewer rows or classes.")
    ruled_out = {text: rule_out(k, (), every) if k else [] for text, k in number.items()}
    rows = [[k for text in row for k in ruled_out[text]] for row in texts.tolist()]
    comp = labels.from_indices(rows, len(classes.names), contradictions=asked.contradictions)
    return Labelled(items, comp, classes.names, origin=said, sure=sure)


def in_matrix(items: Items, origin: Origin, texts: Texts, columns: Names, asked: Asked) -> Labelled:
    """Labels in a matrix of codes, (n, m) texts."""
    if asked.format not in MATRICES:
        raise InputError(f'format="{asked.format}" is that of a file of labels: pass labels="FILE" too.')
    if asked.labels_say not in (None, "not"):
        raise InputError(
            f'format="{asked.format}" says itself what labels say; leave labels_say="{asked.labels_say}" out.'
        )
    comp, names = matrices.read_matrix(texts, columns, asked.format, asked.classes, asked.contradictions)
    sure = asked.labels_say is not None or asked.format != "dummies"
    return Labelled(items, comp, names, origin={**origin, "format": asked.format}, sure=sure)


def in_long_rows(items: Items, origin: Origin, path: Path, asked: Asked, *, folder: bool) -> Labelled:
    """Labels in a file of their own, of long rows; images of a `folder` may be named without their endings."""
    if asked.format in MATRICES:
        texts, columns = read_matrix(asked, path, items.ids.tolist())
        said = {**origin, "labels_file": str(path), "labels": f"the matrix {path.name}"}
        return in_matrix(items, said, texts, columns, asked)
    called = class_names.names_in(path, [only_one("label", asked.label) or "label"])
    asked = asked if asked.classes or called is None else replace(asked, classes=called)
    statements, exported = read_statements(asked, path)
    if folder:
        whole = whole_names(items.ids)
        statements = [one._replace(item=whole.get(one.item, one.item)) for one in statements]
    counts = dict.fromkeys((name for one in statements for name in one.shown or ()), 0)
    counts |= _counted(text for one in statements for text in one.classes)
    matrices.refuse_codes(counts, asked.classes)
    parts = split_cells(counts, asked.classes)
    classes = asked.find(_spread(counts, parts))
    if parts:
        spread = (tuple(part for text in one.classes for part in parts.get(text, (text,))) for one in statements)
        statements = [one._replace(classes=several) for one, several in zip(statements, spread, strict=True)]
    statements = heard(asked, statements)  # of those that do not count, the names still are classes
    table = as_rows(statements, classes.names, classes.number, asked.strict)
    who, ids = "annotator" if "annotator" in table else None, items.ids.tolist()
    comp = labels.from_table(table, classes.names, ids, annotator=who, contradictions=asked.contradictions)
    said = {"labels_file": str(path), "labels": f"{len(statements):,} rows of {path.name}"}
    sure = exported or asked.labels_say is not None
    data = Labelled(items, comp, classes.names, table, {**origin, **said}, sure=sure)
    return weigh(data, asked.contradictions, asked.seed) if asked.weigh_annotators else data


def with_oracle(data: Labelled, y_true: Any, asked: Asked) -> Labelled:
    """The labelled items with the truth that came with them, in the classes of the labels."""
    if y_true is None or all(text is None for text in y_true):
        return data
    classes = _find_true(asked, y_true, data.origin, data.classes)
    oracle = Oracle(data.items.x, _numbers(classes, y_true))
    return replace(data, origin={**data.origin, "truth": asked.truth, "tested_on": oracle.tested_on}, oracle=oracle)


def _spread(counts: Mapping[str, int], parts: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """How often each label is given, where some texts hold several."""
    found: Counter[str] = Counter()
    for text, times in counts.items():
        for part in parts.get(text, (text,)):
            found[part] += times
    return dict(found)


def _counted(texts: Iterable[Any]) -> dict[str, int]:
    return {text: count for text, count in Counter(texts).items() if text is not None}


def _numbers(classes: Classes, texts: Any) -> Any:
    """Class numbers in the shape of `texts`, -1 where a text says nothing."""
    flat = [classes.number.get(text, -1) for text in texts.reshape(-1).tolist()]
    return np.array(flat, np.int64).reshape(texts.shape)
