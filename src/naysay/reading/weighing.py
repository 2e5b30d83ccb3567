"""Annotators weighed by how reliable their labels are, told from neighbours, so that good ones count for more.

A label is suspected where it names the class that its item's clear neighbours point to (`naysay.estimation`). An
annotator whose labels are named at random has 1 / K of them suspected, a reliable one hardly any; the rate, drawn
towards that of all (a few labels prove little), gives the reliability 1 - K rate, between 0 and 1. A label then counts
as so many labels as quarters of the best annotator's reliability its own has: what `comp` is does not change, for a
label given twice weighs twice. An item's labels are weighed against each other; whose items have one label each are
told apart only where the weight is 0, which leaves an annotator out.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from naysay import labels
from naysay.errors import InputError
from naysay.estimation import SAMPLE, ask_neighbors, label_counts
from naysay.features import find_space
from naysay.statistics import Counts, Floats

if TYPE_CHECKING:
    from naysay.reading.labelling import Labelled

DRAWN = 20  # labels at the rate of all that are added to each annotator's
STEPS = 4  # weights are 0 to so many


def reliability(wrong: Counts, judged: Counts, n_classes: int) -> Floats:
    """How reliable annotators (a,) are, 0 to 1, of whose `judged` labels so many are wrong by the neighbours."""
    usual = wrong.sum() / max(judged.sum(), 1)
    rate = (wrong + DRAWN * usual) / (judged + DRAWN)
    found: Floats = np.clip(1 - n_classes * rate, 0.0, 1.0)
    return found


def against(item: Counts, label: Counts, who: Counts, likely: Counts, n_people: int) -> tuple[Counts, Counts]:
    """For each annotator, how many labels name their item's `likely` class, and how many can be judged (else -1)."""
    clear = likely[item] != -1
    wrong = clear & (label == likely[item])
    return np.bincount(who[wrong], minlength=n_people), np.bincount(who[clear], minlength=n_people)


def weigh(data: "Labelled", contradictions: labels.Contradictions, seed: int) -> "Labelled":
    """The labelled items with each label counted by its annotator's reliability, which `origin` tells."""
    table = data.table or {}
    if "annotator" not in table:
        raise InputError('weigh_annotators=True needs to know who said what: pass annotator="COLUMN" too.')
    item, label, who, names = _distinct(table, data.items.ids.tolist(), data.classes)
    space = find_space(data.items.x, columns=data.items.features)
    counts = label_counts(data.comp)
    near, likely, why = ask_neighbors(data.comp, counts, space.features, None, space.metric, SAMPLE, seed)
    if near is None or not near.told:
        why = why or "an item's neighbours say nothing about its labels."
        raise InputError(f"annotators cannot be weighed: {why} Leave weigh_annotators=True out.")
    n_classes = len(data.classes)
    reliable = reliability(*against(item, label, who, likely, len(names)), n_classes)
    most = int(np.bincount(item).max(initial=1))
    steps = max(1, min(STEPS, labels.MOST // most))  # so that a row remains a set of so many labels
    weight = np.rint(steps * reliable / max(float(reliable.max(initial=0)), 1e-9)).astype(np.int64)
    flat = np.bincount(item * n_classes + label, weight[who], len(data.comp) * n_classes)
    comp = labels.from_counts(flat.astype(np.int64).reshape(-1, n_classes), contradictions)
    left_out = {name for name, times in zip(names, weight.tolist(), strict=True) if times == 0}
    kept = [at for at, name in enumerate(table["annotator"]) if name not in left_out]
    said = {str(name): round(value, 3) for name, value in zip(names, reliable.tolist(), strict=True)}
    rows = {part: [column[at] for at in kept] for part, column in table.items()}
    return replace(data, comp=comp, table=rows, origin={**data.origin, "reliability": said})


def _distinct(table: Any, ids: list[str], classes: tuple[str, ...]) -> tuple[Counts, Counts, Counts, list[Any]]:
    """The distinct labels as numbers of items, classes and annotators, and who these are (None: nobody is named)."""
    row, k = ({name: i for i, name in enumerate(names)} for names in (ids, classes))
    names = list(dict.fromkeys(table["annotator"]))
    number = {name: i for i, name in enumerate(names)}
    said = zip(table["item"], table["label"], table["annotator"], strict=True)
    found = {(row[item], k[label], number[who]): None for item, label, who in said if label is not None}
    item, label, who = np.array(list(found) or np.empty((0, 3)), np.int64).reshape(-1, 3).T
    return item, label, who, names
