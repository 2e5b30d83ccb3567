"""Reading: a user's files, or a known set, become items with complementary labels, as the command has them.

    data = naysay.read("data.csv", id="id", label="not_label")          # labels in a column of the items' own table
    data = naysay.read("items.csv", labels="votes.csv", label="not", annotator="worker")  # in long rows of another
    data = naysay.read("digits", transition="biased-weak")              # drawn from the truth, for experiments
    data.items.x, data.comp, data.classes                               # what sharing and training take

Where the truth is known it is kept apart, in `data.oracle`, which gives figures and takes no part in anything else.

What is asked is one record (`asked`). Labels come by one of five ways (`labelling`): with a known set, drawn from the
truth, in columns (`cells` that hold several, or `matrices` of codes), or in a file of their own (`long_rows`): there
`statements`, those of annotation tools (`exports`) too, become labels, perhaps by `weighing` who made them. Their texts
become `classes`, by names that a file may have for them (`class_names`); the truth goes to the `oracle`.
"""

import fnmatch
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from naysay import datasets
from naysay.datasets import Dataset, Items, store
from naysay.datasets.columns import read_items
from naysay.datasets.dataset import REQUIRED
from naysay.datasets.kinds import Category
from naysay.datasets.opening import header
from naysay.errors import InputError, unknown
from naysay.labels import Contradictions
from naysay.reading import labelling
from naysay.reading.asked import Asked, only_one, refuse_shared
from naysay.reading.class_names import names_in, spell
from naysay.reading.classes import Classes, Names, find_classes, read_shares
from naysay.reading.labelling import FORMATS, Labelled
from naysay.reading.long_rows import read_truth
from naysay.reading.oracle import Oracle
from naysay.words import few

__all__ = [
    "Classes",
    "Labelled",
    "Oracle",
    "find_classes",
    "known_set",
    "only_one",
    "read",
    "read_shares",
    "refuse_shared",
]

Place = str | PathLike[str]
SAID = ("not", "is", "one-of", None)  # what labels in columns of the items' own table can say


def read(
    source: Place,
    *,
    id: str | None = None,
    label: str | Sequence[str] = (),
    features: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    truth: str | None = None,
    labels: Place | None = None,
    item: str | None = None,
    annotator: str | None = None,
    options: str | None = None,
    format: str | None = None,
    labels_say: str | None = None,
    without: str | Sequence[str] = (),
    weigh_annotators: bool = False,
    classes: Sequence[str] | None = None,
    merge_spelling: bool = False,
    contradictions: Contradictions = "raise",
    transition: str | None = None,
    n_labels: int | None = None,
    seed: int = 0,
    data: Place | None = None,
    strict: bool = True,
) -> Labelled:
    """The items of `source` (CSV, Parquet, .npy, .npz, a folder of images, the name of a known set) and their labels.

    id: the column of item ids; else one that is called id, else rows are numbered from 0.
    label: the column or columns that say what an item is not; in `labels`, the column of long rows that does.
    features, ignore: columns, or patterns such as "e*", to take and to leave out; else all not named otherwise.
    truth: the column of ordinary labels, where they are known; they go into `oracle` and nowhere else. A folder of
    images and a .npy have no columns: it is then one of `labels`; else the names of subfolders are the truth.
    labels: a table with a row for each label: its columns `item` (else item or id), `label`, and perhaps `annotator`
    (who said so) and `options` (the classes shown, as a|b|c). strict: refuse a label that no option shown says.
    format: how labels are written, where their looks do not tell: "dummies", "signed" or "snorkel" (matrices of codes,
    in columns, or in `labels`: `naysay.reading.matrices`), or a tool's export in `labels`: "label-studio", "prodigy",
    "argilla" (`naysay.reading.exports`).
    labels_say: what labels say of an item: "not" (what it is not), "is", "one-of" these, "chosen" among `options`, or
    the column of `labels` that tells for each (`naysay.reading.statements`). None: "not", and `naysay.runs.fit` asks
    where they look like ordinary labels. Of an export, all that is said, or only what says so.
    without: annotators whose labels are left out. weigh_annotators: count the others' labels by how reliable they are,
    as neighbours tell (`naysay.reading.weighing`).
    classes: all classes in order, where labels do not name each. merge_spelling: take "Cat" and "cat" for one class.
    contradictions: what becomes of an item of which every class is said to be wrong (`naysay.labels.from_indices`).
    transition, n_labels, seed: draw so many labels of each item from the truth: uniform, biased-weak, biased-strong,
    or as published (`naysay.transition.human`). Of a known set, n_labels is how many annotators' labels to take.
    data: the folder of the known sets.
    """
    given = locals()
    reading = _recorded(given)
    for name in ("label", "features", "ignore", "without"):
        given[name] = [given[name]] if isinstance(given[name], str) else list(given[name])
    given["labels"] = None if labels is None else Path(labels)
    asked = Asked(**{name: value for name, value in given.items() if name not in ("source", "data")})
    _check(asked)
    made = _read(source, data, asked)
    return replace(made, origin={**made.origin, "reading": reading})


def _check(asked: Asked) -> None:
    """Raise InputError where what is asked cannot be meant."""
    if asked.format is not None and asked.format not in FORMATS:
        raise unknown("format of labels", asked.format, FORMATS)
    if asked.labels is not None:
        _refuse(asked, ("transition", "n_labels"), f"labels are those of {asked.labels}")
        refuse_shared(id=asked.id, truth=asked.truth)
        return
    refuse_shared(id=asked.id, label=asked.label, truth=asked.truth)
    says = None if asked.labels_say in SAID else asked.labels_say
    of_rows = {"item": asked.item, "annotator": asked.annotator, "options": asked.options}
    for name, value in {**of_rows, "without": next(iter(asked.without), None), "labels_say": says}.items():
        if value is not None:
            raise InputError(f'{name}="{value}" is a column of long rows: pass labels="FILE" too.')
    if asked.transition is not None:
        _refuse(asked, ("format", "labels_say"), f'transition="{asked.transition}" draws labels')
    if asked.weigh_annotators:
        raise InputError('weigh_annotators=True needs to know who said what: pass labels="FILE" with annotators too.')


def _refuse(asked: Asked, names: Names, why: str) -> None:
    """Raise InputError where one of these was asked, which would change nothing; why: what is so, in words."""
    for name in names:
        if value := getattr(asked, name):
            said = value if isinstance(value, str | int) else value[0]
            given = f'{name}="{said}"' if isinstance(said, str) else f"{name}={said}"
            raise InputError(f"{why}, so that {given} would change nothing. Leave it out.")


def _read(source: Place, data: Place | None, asked: Asked) -> Labelled:
    known = known_set(source, data, whole=not (asked.features or asked.label or asked.id))
    of_table = ("id", "features", "ignore", *(() if asked.labels else ("label",)))
    if known is not None:
        of_labels = () if asked.labels else ("format", "labels_say", "classes", "merge_spelling")
        _refuse(asked, (*of_table, "truth", *of_labels), f"{source} is a known set, with its own classes and truth")
        return labelling.of_known(known, str(source), asked)
    path, label = Path(source), () if asked.labels else asked.label
    if path.suffix.lower() == ".npz":
        _refuse(asked, ("ignore",), f"{source} holds arrays, of which features= names one")
    bare = path.is_dir() or path.suffix.lower() == ".npy"
    if bare:
        kind = "is a folder of images" if path.is_dir() else "holds one array"
        if asked.labels is None:
            _refuse(asked, ("truth",), f'{source} {kind}, without columns but those of labels="FILE"')
        if asked.labels is not None and asked.id is not None:
            way_out = f"their column in {asked.labels} is named by item="
            raise InputError(f'{source} {kind}, whose items have no columns; got id="{asked.id}", and {way_out}.')
        _refuse(asked, of_table, f"{source} {kind}, whose items have no columns")
    items, origin = _own_items(path, label, asked)
    if bare and asked.labels is not None and asked.truth is not None:
        items = replace(items, y_true=read_truth(asked, asked.labels, items.ids, folder=path.is_dir()))
    items, called = _with_names(path, items, label, asked.truth)
    asked = replace(asked, classes=asked.classes or called)
    y_true, items = items.y_true, replace(items, y_true=None)
    if asked.labels is not None:
        made = labelling.in_long_rows(items, origin, asked.labels, asked, folder=path.is_dir())
    elif asked.transition is not None:
        return _without_truth(labelling.drawn(items, origin, y_true, asked), asked.features)
    elif asked.n_labels is not None:
        what = f"n_labels={asked.n_labels} is for labels that are drawn or a known set's"
        raise InputError(f"{what}; {source} has its own.")
    elif items.labels is not None:
        made = labelling.in_columns(items, origin, items.labels, label, asked)
    else:
        columns = f" Its columns are {', '.join(header(path)[:20])}." if "columns" in origin else ""
        way_out = f'pass label="COLUMN", or labels="FILE" with long rows.{columns}'
        raise InputError(f"no labels were named for {source}: {way_out}")
    return labelling.with_oracle(_without_truth(made, asked.features), y_true, asked)


def still_meant(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """What a run recorded of how it was read, without what changed nothing and is refused today, as older runs have it.

    The id of a folder's items named their column in the file of labels.
    """
    meant, path = dict(recorded), Path(recorded["source"])
    dropped: set[str] = set()
    if str(recorded["source"]) in datasets.CATALOG:
        dropped |= {"id", "features", "ignore", "truth"} | (set() if "labels" in meant else {"classes"})
    else:
        dropped |= {"data"}
    if path.is_dir() or path.suffix.lower() == ".npy":
        if "labels" in meant and "id" in meant:
            meant.setdefault("item", meant["id"])
        dropped |= {"id", "features", "ignore"}
    if path.suffix.lower() == ".npz":
        dropped |= {"ignore"}
    if "labels" in meant:
        dropped |= {"transition", "n_labels"}
    return {name: value for name, value in meant.items() if name not in dropped}


def _recorded(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked of `read`, where it is not nothing, as JSON holds it: who has it can read the same again."""
    given = {name: value for name, value in asked.items() if value is not None and value != () and value is not False}
    plain = (bool, int, str)
    several = {name: list(map(str, value)) for name, value in given.items() if isinstance(value, list | tuple)}
    return {name: value if isinstance(value, plain) else str(value) for name, value in given.items()} | several


def _without_truth(data: Labelled, features: Names) -> Labelled:
    """The data, after a look that no column of features that was not named as such holds the classes themselves."""
    classes = {name.casefold() for name in data.classes}
    for column in () if data.items.columns is None else data.items.columns.columns:
        levels = column.levels if isinstance(column, Category) else ()
        if len(levels) > 1 and column.name not in features and classes.issuperset(map(str.casefold, levels)):
            what = f"features in column {column.name!r}; got the classes themselves, {few(levels, 3)}"
            way_out = "Name it as id=, label= or truth=, or leave it out with features=."
            raise InputError(f"{data.origin['path']} must hold {what}. {way_out}")
    return data


def known_set(source: Place, data: Place | None = None, *, whole: bool = True) -> Dataset | None:
    """The known set of this name, or the npz file in the data folder's layout; None where it is something else.

    data: the data folder. whole: whether such a file is meant as a whole, and not some of its arrays.
    """
    if source in datasets.CATALOG:
        return datasets.load(str(source), data)
    path = Path(source)
    if not path.exists():
        known = ", ".join(datasets.CATALOG)
        raise InputError(f"{source} is neither a file or folder nor a known set ({known}). See: naysay data list")
    made = [
        name for name, entry in datasets.CATALOG.items() if path.name in (Path(one.file).name for one in entry.sources)
    ]
    if made and path.is_file():
        what = f"{source} has the name of a published file, of which {' or '.join(made)} is made"
        command = f"naysay data import {made[0] if len(made) == 1 else 'NAME'} {source}"
        raise InputError(f"{what}. Import it, and then give the set by its name: {command}")
    if data is not None:
        by_name = path.suffix.lower() == ".npz" and path.stem in datasets.CATALOG
        way_out = f"Leave it out, or give the set by its name: {path.stem}" if by_name else "Leave it out"
        lie = f'data="{data}", where sets lie that are given by name'
        raise InputError(f"{source} is a path, so that {lie}, would change nothing. {way_out}.")
    if not whole or path.suffix.lower() != ".npz" or not path.is_file():
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except store.UNREADABLE:  # which the reader of arrays will say better
        return None
    return store.read(path, path.stem) if names >= {f"{name}.npy" for name in REQUIRED} else None


def _own_items(path: Path, label: Names, asked: Asked) -> tuple[Items, dict[str, Any]]:
    """A user's own items, with labels in the columns `label`, and where they come from."""
    id, features, truth = asked.id, asked.features, asked.truth
    origin: dict[str, Any] = {"name": path.stem, "path": str(path)}
    if path.is_dir():
        return datasets.from_folder(path), origin
    if path.suffix.lower() in (".npy", ".npz"):
        array = only_one("features", features)
        items = datasets.read_arrays(path, id=id, label=only_one("label", label), features=array, truth=truth)
        return items, {**origin, "id": id, "array": array}
    columns = header(path)
    key, named = id, {*label, *features, *asked.ignore, truth}
    if id is None:  # a column that is called so: as a feature it would only do harm
        key = next((name for name in columns if name.strip().lower() == "id" and name not in named), None)
        if key is not None:
            warnings.warn(f"the column {key!r} is taken for the items' ids; pass id= to name another", stacklevel=4)
    picked = _pick_columns(path, columns, features, asked.ignore, taken={key, *label, truth})
    # one column that was named may hold whole embeddings; what all others are the reader finds out by itself
    lists = len(features) > 0 and len(picked) == 1
    spelled = {part for given in features for part in (given, *given.split(","))}
    meant = [name for name in picked if name in spelled]
    items = read_items(path, key, label, truth, picked, meant, lists=lists)
    assert items.columns is not None  # of a table
    if not items.columns.is_plain:
        warnings.warn(items.columns.account(), stacklevel=4)
    inputs = list(items.columns.inputs)
    return items, {**origin, "id": key, "columns": inputs, "lists": lists or items.x.shape[1] != len(inputs)}


def _with_names(path: Path, items: Items, label: Names, truth: str | None) -> tuple[Items, tuple[str, ...] | None]:
    """The items with the names of class numbers, where the file says what they are called, and those of the labels."""
    of_truth, of_labels = names_in(path, [truth]), names_in(path, label)
    if of_truth is not None and items.y_true is not None:
        items = replace(items, y_true=spell(items.y_true, of_truth))
    if of_labels is not None and items.labels is not None:
        items = replace(items, labels=spell(items.labels, of_labels))
    return items, of_labels


def _pick_columns(path: Path, columns: Names, features: Names, ignore: Names, taken: set[str | None]) -> list[str]:
    """The feature columns: `features` (names, several with commas, or patterns), or all not `taken`, less `ignore`."""
    for name in ignore:
        if not fnmatch.filter(columns, name):
            raise InputError(f"ignore={name!r} matches no column of {path}; its columns are {', '.join(columns[:20])}.")
    left_out = taken.union(*(fnmatch.filter(columns, name) for name in ignore))
    if not features:
        return [name for name in columns if name not in left_out]
    there, picked = frozenset(columns), dict[str, None]()  # in order
    for given in features:
        for name in [given] if given in there else given.split(","):
            matching = [column for column in fnmatch.filter(columns, name) if column not in left_out]
            picked |= dict.fromkeys([name] if name in there or not matching else matching)
    return list(picked)
