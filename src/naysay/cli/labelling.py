"""The labels of items: in columns of their own table, in long rows of another, by a known set's annotators, or drawn
from the truth.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from naysay import datasets, labels, transition
from naysay.cli.reading import Input, Reading
from naysay.cli.truth import Truth
from naysay.datasets import Dataset, Items
from naysay.datasets.columns import header
from naysay.errors import InputError, unknown
from naysay.runs import Classes, Labelled, settle
from naysay.transition import HUMAN

BIASED = {"biased-weak": "weak", "biased-strong": "strong"}
Origin = dict[str, Any]


def of_known(reading: Reading, data: Dataset, strict: bool) -> Input:
    """A known set with its annotators' labels, where it has any; with those of a long file; or with labels drawn from
    its truth.
    """
    names = tuple(data.classes.tolist())
    items = Items(np.arange(len(data.x_train)).astype(np.str_).astype(object), data.x_train)
    truth = Truth(data.x_train, data.y_train, data.x_test, data.y_test)
    origin: Origin = {"name": data.name, "path": reading.data, "tested_on": truth.tested_on}
    if reading.labels is not None:
        asked = reading if reading.classes else replace(reading, classes=names)
        return Input(in_long_rows(asked, items, origin, strict), truth)
    if data.comp_train is not None and reading.transition is None:
        m = data.comp_train.shape[1] if reading.n_labels is None else reading.n_labels
        if not 1 <= m <= data.comp_train.shape[1]:
            raise InputError(
                f"--n-labels must be 1 to {data.comp_train.shape[1]}, the labels that {data.name} has of each item; "
                f"got {m}."
            )
        comp = labels.from_indices(data.comp_train[:, :m], len(names), contradictions=reading.contradictions)
        return Input(
            Labelled(items, comp, names, origin={**origin, "labels": f"the first {m} of each item's annotations"}),
            truth,
        )
    comp, how = draw(data.y_train, len(names), reading)
    return Input(Labelled(items, comp, names, origin={**origin, "labels": how}), truth)


def draw(truth: Any, n_classes: int, reading: Reading) -> tuple[Tensor, str]:
    """Labels drawn from the truth, for an experiment, and how in words."""
    name, m = reading.transition or "uniform", reading.n_labels or 1
    if name == "uniform":
        T = transition.uniform(n_classes)
    elif name in BIASED:
        T = transition.biased(n_classes, BIASED[name], reading.seed)
    elif name in HUMAN:
        T = transition.human(name)
        if len(T) != n_classes:
            raise InputError(
                f"the published matrix {name} has {len(T)} classes and {reading.data} has {n_classes}. Choose another "
                "--transition."
            )
    else:
        raise unknown("transition", name, ("uniform", *BIASED, *HUMAN))
    numbers = transition.sample(truth, T, m, reading.seed)
    each = f"{m} label{'s' if m > 1 else ''} each"
    return labels.from_indices(numbers, n_classes), f"drawn from the truth: {name}, {each}, seed {reading.seed}"


def drawn(reading: Reading, items: Items, origin: Origin) -> Input:
    """A user's own items whose labels are drawn from the truth that came with them."""
    if items.y_true is None:
        raise InputError(
            "--transition draws labels from the truth, which is not known here: pass --truth COLUMN, or --label "
            "COLUMN instead."
        )
    missing = next((i for i, text in enumerate(items.y_true) if text is None), None)
    if missing is not None:
        raise InputError(
            f"--transition needs the truth of every item; item {items.ids[missing]!r} has none. Fill it in, or leave "
            "the row out."
        )
    classes = settle(_counted(items.y_true.tolist()), reading.classes, merge=reading.merge_spelling, who="the truth")
    numbers = _numbers(classes, items.y_true)
    comp, how = draw(numbers, len(classes.names), reading)
    truth = Truth(items.x, numbers)
    return Input(
        Labelled(items, comp, classes.names, origin={**origin, "labels": how, "tested_on": truth.tested_on}), truth
    )


def in_columns(reading: Reading, items: Items, origin: Origin) -> Labelled:
    """Labels in columns of the data itself."""
    texts = items.labels if items.labels is not None else np.empty((len(items.ids), 0), object)
    classes = settle(_counted(texts.reshape(-1).tolist()), reading.classes, merge=reading.merge_spelling)
    comp = labels.from_indices(_numbers(classes, texts), len(classes.names), contradictions=reading.contradictions)
    return Labelled(
        items, comp, classes.names, origin={**origin, "labels": f"in {', '.join(reading.label) or 'the array labels'}"}
    )


def in_long_rows(reading: Reading, items: Items, origin: Origin, strict: bool) -> Labelled:
    """Labels in long rows of a file of their own."""
    path = Path(reading.labels or "")
    table = _long_rows(path, reading)
    if Path(reading.data).is_dir():
        table["item"] = _with_endings(items.ids, table["item"])
    shown = table.get("options", [])
    counts = dict.fromkeys((name for cell in shown for name in cell), 0) | _counted(table["label"])
    classes = settle(counts, reading.classes, merge=reading.merge_spelling)
    table["label"] = [classes.spelled(text) for text in table["label"]]
    if shown:
        table["options"] = [[classes.spelled(name) for name in cell] for cell in shown]
    comp = labels.from_table(
        table,
        classes.names,
        items.ids.tolist(),
        annotator="annotator" if "annotator" in table else None,
        options="options" if strict and shown else None,
        contradictions=reading.contradictions,
    )
    said = f"{len(table['item']):,} rows of {path.name}"
    return Labelled(items, comp, classes.names, table, {**origin, "labels_file": str(path), "labels": said})


def _long_rows(path: Path, reading: Reading) -> dict[str, Any]:
    """The columns item, label and, where they were named, annotator and options (a list each) of a long table."""
    columns = header(path)
    item = reading.item or next((name for name in ("item", reading.id, "id") if name in columns), "item")
    parts = {
        "item": item,
        "label": reading.only("label") or "label",
        "annotator": reading.annotator,
        "options": reading.options,
    }
    named = {part: name for part, name in parts.items() if name is not None}
    read = datasets.read_columns(path, list(dict.fromkeys(named.values())))
    table = {part: read[name].tolist() for part, name in named.items()}
    for part in ("item", "label", "annotator"):
        if any(isinstance(cell, list) for cell in table.get(part, ())):
            raise InputError(
                f"{path} holds lists in its column {named[part]!r}, where a row must have one {part}. Write a row for "
                "each."
            )
    if "options" in table:
        table["options"] = [_listed(cell) for cell in table["options"]]
    return table


def _listed(cell: Any) -> list[str]:
    parts = cell if isinstance(cell, list) else [] if cell is None else cell.split("|")
    return [part.strip() for part in parts if part.strip()]


def _with_endings(ids: Any, given: list[Any]) -> list[Any]:
    """Images as their files are called; a name without an ending stands for the one image that has it, if there is one
    only.
    """
    stems = Counter(name.rpartition(".")[0] for name in ids)
    whole = {stem: name for name in ids if stems[stem := name.rpartition(".")[0]] == 1} | {name: name for name in ids}
    return [whole.get(name, name) for name in given]


def with_truth(reading: Reading, data: Labelled) -> Input:
    """The truth that came with the items, in the classes of the labels."""
    texts = data.items.y_true
    if texts is None or all(text is None for text in texts):
        return Input(data, None)
    if any(isinstance(text, list) for text in texts):
        raise InputError(
            f"{reading.data} holds lists in its column {reading.truth!r}, where an item must have one true class."
        )
    classes = settle(_counted(texts.tolist()), data.classes, merge=reading.merge_spelling, who="the truth")
    truth = Truth(data.items.x, _numbers(classes, texts))
    origin = {**data.origin, "truth": reading.truth, "tested_on": truth.tested_on}
    return Input(Labelled(data.items, data.comp, data.classes, data.table, origin), truth)


def _counted(texts: Sequence[Any]) -> dict[str, int]:
    return {text: count for text, count in Counter(texts).items() if text is not None}


def _numbers(classes: Classes, texts: Any) -> Any:
    """Class numbers in the shape of `texts`, -1 where a text says nothing."""
    flat = [classes.number.get(text, -1) for text in texts.reshape(-1).tolist()]
    return np.array(flat, np.int64).reshape(texts.shape)
