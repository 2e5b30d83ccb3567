"""Label matrices: a row per item, a column per class or per labelling function, whose cells are codes.

| format | cells |
| --- | --- |
| dummies | a column per class: 1 says "not this class", 0 nothing |
| signed | -k: not the k-th class; k: is the k-th class; 0 abstains (`naysay.labels.from_signed`) |
| snorkel | as snorkel has it, -1 abstains and k is the class k, counted from 0; and -(k + 2) says "not k" |

Snorkel's own label model has no "not k" (snorkel issue 1064); the code is the next free one below its -1. A cell plus 1
is then the signed vote.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from naysay import labels
from naysay.datasets.dataset import Texts
from naysay.errors import InputError
from naysay.reading.classes import Names, refuse_unwritable

MARKS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
CODE = re.compile(r"([+-]?[0-9]{1,9})(\.0*)?")  # a whole number, also as a column with gaps writes it
MOST_CLASSES = 10_000  # that codes alone may tell of: a number far beyond is no class
SHIFT = {"signed": 0, "snorkel": 1}  # what makes a code of the format a signed vote


def is_dummies(texts: Texts, wanted: Names | None) -> bool:
    """Whether texts (n, m) are 0 and 1 in a column for each class, of which there are at least three."""
    several = texts.shape[1] >= 3 and (wanted is None or len(wanted) == texts.shape[1])
    cells = set(texts.reshape(-1).tolist()) if several else set()
    marks = {cell.lower() for cell in cells if isinstance(cell, str)}
    return len(marks) == 2 and marks <= MARKS.keys() and all(cell is None or isinstance(cell, str) for cell in cells)


def refuse_codes(texts: Any, wanted: Names | None) -> None:
    """Raise InputError where distinct texts are whole numbers, some below -1: these may be codes, and are no names."""
    codes = [CODE.fullmatch(text) for text in texts]
    if wanted is not None or not codes or not all(codes):
        return
    least = min(int(code[1]) for code in codes if code)
    if least < labels.UNLABELLED:
        signed = 'format="signed" (-k is not the k-th class, 0 abstains)'
        ways = f'{signed} or format="snorkel" (-1 abstains, -(k + 2) is not k)'
        raise InputError(f"labels such as {least} are no classes: pass {ways}, or name the classes with classes=.")


def read_matrix(
    texts: Texts, columns: Sequence[str], format: str, wanted: Names | None, contradictions: labels.Contradictions
) -> tuple[Tensor, tuple[str, ...]]:
    """The labels `comp` (n, K) of a matrix of texts (n, m), None where empty, and the classes' names."""
    refuse_unwritable([*columns, *(wanted or ())])
    if format == "dummies":
        names = tuple(wanted or labels.dummy_classes(list(columns)))
        if len(names) != texts.shape[1] or len(set(names)) != len(names):
            got = f"{texts.shape[1]} columns for {len(set(names))} classes"
            raise InputError(
                f'format="dummies" needs a column for each class; got {got}. Name the columns with label=.'
            )
        return labels.from_dummies(_coded(texts, format, columns), contradictions=contradictions), names
    votes = _coded(texts, format, columns) + SHIFT[format]
    most = int(np.abs(votes).max(initial=0))
    if wanted is None and most > MOST_CLASSES:
        got = f"a code of the class {most - SHIFT[format]:,}"
        raise InputError(f'format="{format}" has {got}: if there are so many classes, name them with classes=.')
    names = tuple(wanted or map(str, range(1 - SHIFT[format], most + 1 - SHIFT[format])))
    return labels.from_signed(votes, len(names), contradictions=contradictions), names


def _coded(texts: Texts, format: str, columns: Sequence[str]) -> NDArray[np.int64]:
    nothing = -SHIFT.get(format, 0)
    number: dict[Any, int] = {None: nothing}
    for text in {cell for cell in texts.reshape(-1).tolist() if cell is not None}:
        code = CODE.fullmatch(text) if format in SHIFT else None
        value = int(code[1]) if code else None if format in SHIFT else MARKS.get(text.lower())
        if value is None:
            wants = "whole numbers" if format in SHIFT else "0 and 1"
            raise InputError(f'format="{format}" needs {wants} in {", ".join(columns)[:80]}; got {text[:40]!r}.')
        number[text] = value
    return np.array([number[cell] for cell in texts.reshape(-1).tolist()], np.int64).reshape(texts.shape)
