"""The labels of items: in columns of their own table, in long rows of another, by annotators, or drawn from truth."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from naysay import datasets, labels, memory, transition
from naysay.datasets import Dataset, Items
from naysay.datasets.arrays import read_npy
from naysay.datasets.dataset import Texts, numbered
from naysay.datasets.images import whole_names
from naysay.datasets.opening import header
from naysay.errors import InputError, unknown
from naysay.labels import Contradictions
from naysay.reading import class_names, matrices
from naysay.reading.cells import split_cells
from naysay.reading.classes import Classes, Names, find_classes
from naysay.reading.exports import EXPORTS, Export
from naysay.reading.oracle import Oracle
from naysay.reading.statements import KINDS, Statement, as_rows, find_kind
from naysay.reading.weighing import weigh
from naysay.transition import HUMAN

BIASED = {"biased-weak": "weak", "biased-strong": "strong"}
MATRICES = ("dummies", "signed", "snorkel")
FORMATS = (*MATRICES, *EXPORTS)
CELL_BYTES = 120  # about what a cell of a matrix takes as text
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
    sure: whether it was said, or follows from their format, that labels say what items are not.
    """

    items: Items
    comp: Tensor
    classes: tuple[str, ...]
    table: Mapping[str, Any] | None = None
    origin: Origin = field(default_factory=dict)
    oracle: Oracle | None = None
    sure: bool = False


@dataclass(frozen=True)
class Naming:
    """How texts become labels: all classes in order, if they were named, what is done about doubtful texts, how the
    labels are written and what they say (None: by their looks, and "not").
    """

    classes: Names | None
    merge_spelling: bool
    contradictions: Contradictions
    format: str | None = None
    says: str | None = None

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
    """A table with a row for each label, the columns that its parts are in, and whether options shown must hold; or the
    export of an annotation tool. says: what labels say, or the column that says it. without: annotators to leave out.
    weigh: whether the others are weighed, by neighbours that are drawn with the seed.
    """

    path: Path
    id: str | None
    item: str | None
    label: Names
    annotator: str | None
    options: str | None
    strict: bool
    format: str | None = None
    says: str | None = None
    without: Names = ()
    weigh: bool = False
    seed: int = 0

    def statements(self) -> tuple[list[Statement], bool]:
        """What each row says, or of an export, what people and their refusals of suggestions do; and if it is one."""
        exported = self._exported()
        return (self._of_table(), False) if exported is None else (exported, True)

    def heard(self, statements: list[Statement]) -> list[Statement]:
        """Those that count: without some annotators, and of an export, perhaps of one kind alone."""
        who = {one.who for one in statements if one.who is not None}
        if self.without and not who:
            raise InputError(f'without="{self.without[0]}" needs to know who said what: pass annotator="COLUMN" too.')
        for name in self.without:
            if name not in who:
                raise unknown("annotator", name, who)
        kinds = {self.says} if self.says in KINDS else KINDS.keys()
        return [one for one in statements if one.says in kinds and one.who not in self.without]

    def _exported(self) -> list[Statement] | None:
        """The statements of an export in the format that was named, or in one that knows it by its content."""
        if self.format in EXPORTS:
            opened = (EXPORTS[str(self.format)], EXPORTS[str(self.format)].open(self.path))
        else:
            found = self._recognised()
            if found is None:
                return None
            opened = found
        tool, content = opened
        for name, column in (("annotator", self.annotator), ("options", self.options)):
            if column is not None:
                raise InputError(
                    f'{name}="{column}" is a column of long rows; {self.path} is an export of {tool.name}.'
                )
        if self.says is not None and self.says not in KINDS:
            raise unknown("way to say something of an item", self.says, KINDS)
        return list(tool.read(content, self.path, self.item, only_one("label", self.label)))

    def _recognised(self) -> tuple[Export, Any] | None:
        for tool in EXPORTS.values():
            if self.path.suffix.lower() in tool.endings and self.path.is_file():
                content = tool.open(self.path)
                if tool.recognises(content):
                    return tool, content
        return None

    def _of_table(self) -> list[Statement]:
        columns = header(self.path)
        parts = {"item": self._item(columns), "label": only_one("label", self.label) or "label"}
        parts |= {part: name for part in ("annotator", "options") if (name := getattr(self, part)) is not None}
        if self.says is not None and self.says not in KINDS:
            parts["says"] = self.says
        read = datasets.read_columns(self.path, list(dict.fromkeys(parts.values())))
        names = class_names.names_in(self.path, [parts["label"]])
        if names is not None:
            read[parts["label"]] = class_names.spell(read[parts["label"]], names)
        table = {part: read[name].tolist() for part, name in parts.items()}
        for part in ("item", "annotator", "says"):
            if any(isinstance(cell, list) for cell in table.get(part, ())):
                lists = f"{self.path} holds lists in its column {parts[part]!r}"
                raise InputError(f"{lists}, where a row must have one {part}. Write a row for each.")
        n, kind = len(table["item"]), self.says if self.says in KINDS else "not"
        says = [find_kind(cell) for cell in table["says"]] if "says" in table else [kind] * n
        shown = [labels.listed(cell) for cell in table["options"]] if "options" in table else [None] * n
        said = [() if cell is None else tuple(cell) if isinstance(cell, list) else (cell,) for cell in table["label"]]
        return list(map(Statement, table["item"], says, said, table.get("annotator", [None] * n), shown))

    def _item(self, columns: Names) -> str:
        """The column of items; crowd-kit calls it task."""
        usual = ("item", *([] if self.id is None else [self.id]), "id", "task")
        return self.item or next((name for name in usual if name in columns), "item")

    def matrix(self, ids: Names) -> tuple[Texts, list[str]]:
        """The cells (n, m) of a label matrix, a row for each of the items, and what its columns are called."""
        if self.path.suffix.lower() == ".npy":
            array = read_npy(self.path)
            array = array[:, None] if array.ndim == 1 else array
            if array.ndim != 2 or len(array) != len(ids) or array.dtype.kind not in "iub":
                got = f"{array.dtype} of shape {array.shape}"
                raise InputError(f"{self.path} must hold whole numbers, a row for each of {len(ids)} items; got {got}.")
            memory.afford(CELL_BYTES * array.size, str(self.path), "Give fewer rows or columns.")
            return array.astype(np.int64).astype(np.str_).astype(object), [str(j) for j in range(array.shape[1])]
        columns = header(self.path)
        item = self._item(columns)
        named = list(self.label) or [name for name in columns if name != item]
        read = datasets.read_columns(self.path, [item, *named])
        place, texts = {name: i for i, name in enumerate(ids)}, np.full((len(ids), len(named)), None, object)
        seen: set[Any] = set()
        for at, name in enumerate(read[item].tolist()):
            if name not in place or name in seen:
                why = "a second time" if name in seen else "which is not among the items"
                raise InputError(f"row {at} of {self.path} labels item {name!r}, {why}. Give each item one row.")
            seen.add(name)
            texts[place[name]] = [read[column][at] for column in named]
        return texts, named


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
    return Labelled(items, comp, names, origin={**origin, "labels": how}, oracle=oracle, sure=True)


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
    return Labelled(items, comp, classes.names, None, said, oracle, sure=True)


def in_columns(items: Items, origin: Origin, texts: Texts, columns: Names, naming: Naming) -> Labelled:
    """Labels in columns of the data itself: classes, several in a cell or in a column each, or a matrix of codes."""
    said = {**origin, "labels": f"in {', '.join(columns) or 'the array labels'}"}
    if naming.format is not None or matrices.is_dummies(texts, naming.classes):
        named = columns if len(columns) == texts.shape[1] else [str(j) for j in range(texts.shape[1])]
        return in_matrix(items, said, texts, named, replace(naming, format=naming.format or "dummies"))
    counts = _counted(texts.reshape(-1))
    matrices.refuse_codes(counts, naming.classes)
    parts = split_cells(counts, naming.classes)
    classes = naming.find(_spread(counts, parts))
    sure = naming.says is not None
    if not parts and naming.says in (None, "not"):
        comp = labels.from_indices(_numbers(classes, texts), len(classes.names), contradictions=naming.contradictions)
        return Labelled(items, comp, classes.names, origin=said, sure=sure)
    kind, every = KINDS[naming.says or "not"], range(len(classes.names))
    number = {None: ()} | {
        text: tuple(dict.fromkeys(classes.number[part] for part in parts.get(text, (text,)) if part in classes.number))
        for text in counts
    }
    memory.afford(8 * len(every) * texts.size, "labels that name many classes", "Give fewer rows or classes.")
    ruled_out = {text: kind.rule_out(k, (), every) if k else [] for text, k in number.items()}
    rows = [[k for text in row for k in ruled_out[text]] for row in texts.tolist()]
    comp = labels.from_indices(rows, len(classes.names), contradictions=naming.contradictions)
    return Labelled(items, comp, classes.names, origin=said, sure=sure)


def in_matrix(items: Items, origin: Origin, texts: Texts, columns: Names, naming: Naming) -> Labelled:
    """Labels in a matrix of codes, (n, m) texts."""
    if naming.format not in MATRICES:
        raise InputError(f'format="{naming.format}" is that of a file of labels: pass labels="FILE" too.')
    if naming.says not in (None, "not"):
        raise InputError(f'format="{naming.format}" says itself what labels say; leave labels_say="{naming.says}" out.')
    comp, names = matrices.read_matrix(texts, columns, naming.format, naming.classes, naming.contradictions)
    sure = naming.says is not None or naming.format != "dummies"
    return Labelled(items, comp, names, origin={**origin, "format": naming.format}, sure=sure)


def in_long_rows(items: Items, origin: Origin, rows: LongRows, naming: Naming, *, folder: bool) -> Labelled:
    """Labels in long rows of a file of their own; images of a `folder` may be named without their endings."""
    if rows.format in MATRICES:
        texts, columns = rows.matrix(items.ids.tolist())
        said = {**origin, "labels_file": str(rows.path), "labels": f"the matrix {rows.path.name}"}
        return in_matrix(items, said, texts, columns, naming)
    called = class_names.names_in(rows.path, [only_one("label", rows.label) or "label"])
    naming = naming if naming.classes or called is None else replace(naming, classes=called)
    statements, exported = rows.statements()
    if folder:
        whole = whole_names(items.ids)
        statements = [one._replace(item=whole.get(one.item, one.item)) for one in statements]
    counts = dict.fromkeys((name for one in statements for name in one.shown or ()), 0)
    counts |= _counted(text for one in statements for text in one.classes)
    matrices.refuse_codes(counts, naming.classes)
    parts = split_cells(counts, naming.classes)
    classes = naming.find(_spread(counts, parts))
    if parts:
        spread = (tuple(part for text in one.classes for part in parts.get(text, (text,))) for one in statements)
        statements = [one._replace(classes=several) for one, several in zip(statements, spread, strict=True)]
    statements = rows.heard(statements)  # of those that do not count, the names still are classes
    table = as_rows(statements, classes.names, classes.number, rows.strict)
    who, ids = "annotator" if "annotator" in table else None, items.ids.tolist()
    comp = labels.from_table(table, classes.names, ids, annotator=who, contradictions=naming.contradictions)
    said = {"labels_file": str(rows.path), "labels": f"{len(statements):,} rows of {rows.path.name}"}
    sure = exported or rows.says is not None
    data = Labelled(items, comp, classes.names, table, {**origin, **said}, sure=sure)
    return weigh(data, naming.contradictions, rows.seed) if rows.weigh else data


def with_oracle(data: Labelled, y_true: Any, column: str | None, naming: Naming) -> Labelled:
    """The labelled items with the truth that came with them, in the classes of the labels."""
    if y_true is None or all(text is None for text in y_true):
        return data
    classes = naming.find_true(y_true, data.origin, column, data.classes)
    oracle = Oracle(data.items.x, _numbers(classes, y_true))
    return replace(data, origin={**data.origin, "truth": column, "tested_on": oracle.tested_on}, oracle=oracle)


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
