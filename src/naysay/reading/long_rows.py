"""Labels in a file of their own: a row for each label, the export of an annotation tool, or a matrix of codes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from naysay import datasets, labels, memory
from naysay.datasets.arrays import read_npy
from naysay.datasets.dataset import Texts
from naysay.datasets.images import whole_names
from naysay.datasets.opening import header
from naysay.errors import InputError, unknown
from naysay.reading import class_names
from naysay.reading.asked import Asked, only_one, refuse_shared
from naysay.reading.classes import Names
from naysay.reading.exports import EXPORTS, Export
from naysay.reading.statements import KINDS, Statement, find_kind

CELL_BYTES = 120  # about what a cell of a matrix takes as text


def read_statements(asked: Asked, path: Path) -> tuple[list[Statement], bool]:
    """What each row says, or of an export, what people and their refusals of suggestions do; and if it is one."""
    opened = _export(asked.format, path)
    if opened is None:
        return _of_table(asked, path), False
    tool, content = opened
    for name, column in (("annotator", asked.annotator), ("options", asked.options)):
        if column is not None:
            raise InputError(f'{name}="{column}" is a column of long rows; {path} is an export of {tool.name}.')
    if asked.labels_say is not None and asked.labels_say not in KINDS:
        raise unknown("way to say something of an item", asked.labels_say, KINDS)
    return list(tool.read(content, path, asked.item, only_one("label", asked.label))), True


def heard(asked: Asked, statements: list[Statement]) -> list[Statement]:
    """Those that count: without some annotators, and of an export, perhaps of one kind alone."""
    who = {one.who for one in statements if one.who is not None}
    if asked.without and not who:
        raise InputError(f'without="{asked.without[0]}" needs to know who said what: pass annotator="COLUMN" too.')
    for name in asked.without:
        if name not in who:
            raise unknown("annotator", name, who)
    kinds = {asked.labels_say} if asked.labels_say in KINDS else KINDS.keys()
    return [one for one in statements if one.says in kinds and one.who not in asked.without]


def _export(format: str | None, path: Path) -> tuple[Export, Any] | None:
    """The tool whose export the file is, as was said or as its content shows, and the content."""
    if format in EXPORTS:
        return EXPORTS[format], EXPORTS[format].open(path)
    for tool in EXPORTS.values():
        if path.suffix.lower() in tool.endings and path.is_file() and tool.recognises(content := tool.open(path)):
            return tool, content
    return None


def _of_table(asked: Asked, path: Path) -> list[Statement]:
    columns, kind = header(path), "not" if asked.labels_say is None else asked.labels_say
    parts = {"item": _item(asked, columns), "label": only_one("label", asked.label) or "label"}
    parts |= {part: name for part in ("annotator", "options") if (name := getattr(asked, part)) is not None}
    if kind not in KINDS:
        parts["says"] = kind
    refuse_shared(**{"labels_say" if part == "says" else part: name for part, name in parts.items()})
    read = datasets.read_columns(path, list(parts.values()))
    names = class_names.names_in(path, [parts["label"]])
    if names is not None:
        read[parts["label"]] = class_names.spell(read[parts["label"]], names)
    table = {part: read[name].tolist() for part, name in parts.items()}
    for part in ("item", "annotator", "says"):
        if any(isinstance(cell, list) for cell in table.get(part, ())):
            lists = f"{path} holds lists in its column {parts[part]!r}"
            raise InputError(f"{lists}, where a row must have one {part}. Write a row for each.")
    nothing = [None] * len(table["item"])
    says = [find_kind(cell) for cell in table["says"]] if "says" in table else [kind] * len(nothing)
    shown = [labels.listed(cell) for cell in table["options"]] if "options" in table else nothing
    said = [() if cell is None else tuple(cell) if isinstance(cell, list) else (cell,) for cell in table["label"]]
    return list(map(Statement, table["item"], says, said, table.get("annotator", nothing), shown))


def read_truth(asked: Asked, path: Path, ids: Texts, *, folder: bool) -> Texts:
    """The true classes (n,) of items that have no table of their own, from the column `truth` of the labels' file."""
    if asked.format is not None:
        raise InputError(f'truth="{asked.truth}" is a column of long rows, and format="{asked.format}" has none.')
    item, truth = _item(asked, header(path)), str(asked.truth)
    refuse_shared(item=item, label=asked.label or "label", truth=truth)
    read, names = datasets.read_columns(path, [item, truth]), class_names.names_in(path, [truth])
    said = read[truth] if names is None else class_names.spell(read[truth], names)
    whole, found = whole_names(ids) if folder else {}, dict.fromkeys(ids.tolist())
    for name, text in zip(read[item].tolist(), said.tolist(), strict=True):
        if not isinstance(name, str):  # which is told where labels are read
            continue
        at = whole.get(name, name)
        if found.get(at) not in (None, text) and text is not None:
            both = f"{found[at]!r} and {text!r} in its column {truth!r}"
            raise InputError(f"{path} calls item {name!r} {both}, where an item must have one true class.")
        if text is not None:
            found[at] = text
    made = np.empty(len(ids), object)
    made[:] = [found[name] for name in ids.tolist()]  # not np.array: a list in a cell is told by who counts classes
    return made


def _item(asked: Asked, columns: Sequence[str]) -> str:
    """The column of items; crowd-kit calls it task."""
    usual = ("item", *([] if asked.id is None else [asked.id]), "id", "task")
    return asked.item or next((name for name in usual if name in columns), "item")


def read_matrix(asked: Asked, path: Path, ids: Names) -> tuple[Texts, list[str]]:
    """The cells (n, m) of a label matrix, a row for each of the items, and what its columns are called."""
    if path.suffix.lower() == ".npy":
        array = read_npy(path)
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2 or len(array) != len(ids) or array.dtype.kind not in "iub":
            got = f"{array.dtype} of shape {array.shape}"
            raise InputError(f"{path} must hold whole numbers, a row for each of {len(ids)} items; got {got}.")
        memory.afford(CELL_BYTES * array.size, str(path), "Give fewer rows or columns.")
        return array.astype(np.int64).astype(np.str_).astype(object), [str(j) for j in range(array.shape[1])]
    columns = header(path)
    item = _item(asked, columns)
    named = list(asked.label) or [name for name in columns if name != item]
    refuse_shared(item=item, label=named)
    read = datasets.read_columns(path, [item, *named])
    place, texts = {name: i for i, name in enumerate(ids)}, np.full((len(ids), len(named)), None, object)
    seen: set[Any] = set()
    for at, name in enumerate(read[item].tolist()):
        if name not in place or name in seen:
            why = "a second time" if name in seen else "which is not among the items"
            raise InputError(f"row {at} of {path} labels item {name!r}, {why}. Give each item one row.")
        seen.add(name)
        texts[place[name]] = [read[column][at] for column in named]
    return texts, named
