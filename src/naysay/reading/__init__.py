"""Reading: a user's files, or a known set, become items with complementary labels, as the command has them.

    data = naysay.read("data.csv", id="id", label="not_label")          # labels in a column of the items' own table
    data = naysay.read("items.csv", labels="votes.csv", label="not", annotator="worker")  # in long rows of another
    data = naysay.read("digits", transition="biased-weak")              # drawn from the truth, for experiments
    data.items.x, data.comp, data.classes                               # what sharing and training take

Where the truth is known it is kept apart, in `data.oracle`, which gives figures and takes no part in anything else.
"""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from naysay.datasets.columns import header
from naysay.errors import InputError
from naysay.labels import Contradictions
from naysay.reading import labelling
from naysay.reading.classes import Classes, find_classes
from naysay.reading.items import known_set, only_one, own_items
from naysay.reading.labelling import Draws, Labelled, LongRows, Naming
from naysay.reading.oracle import Oracle

__all__ = ["Classes", "Labelled", "Oracle", "find_classes", "known_set", "only_one", "read"]


def read(
    source: str | PathLike[str],
    *,
    id: str | None = None,
    label: str | Sequence[str] = (),
    features: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    truth: str | None = None,
    labels: str | PathLike[str] | None = None,
    item: str | None = None,
    annotator: str | None = None,
    options: str | None = None,
    classes: Sequence[str] | None = None,
    merge_spelling: bool = False,
    contradictions: Contradictions = "raise",
    transition: str | None = None,
    n_labels: int | None = None,
    seed: int = 0,
    data: str | PathLike[str] | None = None,
    strict: bool = True,
) -> Labelled:
    """The items of `source` (CSV, Parquet, .npy, .npz, a folder of images, the name of a known set) and their labels.

    id: the column of item ids; else one that is called id, else rows are numbered from 0.
    label: the column or columns that say what an item is not; in `labels`, the column of long rows that does.
    features, ignore: columns, or patterns such as "e*", to take and to leave out; else all not named otherwise.
    truth: the column of ordinary labels, where they are known; they go into `oracle` and nowhere else.
    labels: a table with a row for each label: its columns `item` (else item or id), `label`, and perhaps `annotator`
    (who said so) and `options` (the classes shown, as a|b|c). strict: refuse a label that no option shown says.
    classes: all classes in order, where labels do not name each. merge_spelling: take "Cat" and "cat" for one class.
    contradictions: what becomes of an item of which every class is said to be wrong (`naysay.labels.from_indices`).
    transition, n_labels, seed: draw so many labels of each item from the truth: uniform, biased-weak, biased-strong,
    or as published (`naysay.transition.human`). Of a known set, n_labels is how many annotators' labels to take.
    data: the folder of the known sets.
    """
    label, features, ignore = (
        [names] if isinstance(names, str) else list(names) for names in (label, features, ignore)
    )
    naming, draws = Naming(classes, merge_spelling, contradictions), Draws(transition, n_labels, seed)
    rows = None if labels is None else LongRows(Path(labels), id, item, label, annotator, options, strict)
    known = known_set(source, data, whole=not (features or label or id))
    if known is not None:
        return labelling.of_known(known, str(source), naming, draws, rows)
    path, own = Path(source), () if rows else label
    items, origin = own_items(path, id=id, label=own, features=features, ignore=ignore, truth=truth)
    y_true, items = items.y_true, replace(items, y_true=None)
    if rows is None and transition is not None:
        return labelling.drawn(items, origin, y_true, truth, naming, draws)
    if rows is not None:
        given = labelling.in_long_rows(items, origin, rows, naming, folder=path.is_dir())
    elif items.labels is not None:
        given = labelling.in_columns(items, origin, label, naming)
    else:
        columns = f" Its columns are {', '.join(header(path)[:20])}." if "columns" in origin else ""
        raise InputError(
            f'no labels were named for {source}: pass label="COLUMN", or labels="FILE" with long rows.{columns}'
        )
    return labelling.with_oracle(given, y_true, truth, naming)
