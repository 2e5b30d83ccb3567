"""What a column of a table is, and the numbers it becomes: decided once, on the training table, and kept as plain data.

| kind | what it is | what it becomes |
| --- | --- | --- |
| number | numbers, perhaps with cells that are empty or say so ("n/a", "?") | itself; empty cells get the median |
| boolean | two words such as yes and no | 1 and 0; empty cells get the commoner |
| category | texts that recur | a column of 0 and 1 for each that is frequent, and one for all others |
| date | dates or times | days since the first; month, weekday and hour as points on a circle, where they vary |
| text | sentences that differ | at most 100 directions of its weighed words (`wording`) |
| list | a vector in each cell | itself |
| left out | the same in every row, empty, or different in every row as ids are | nothing |

Which it is, `finding` decides. Where more than 1 % of a column's cells are empty, a column of 0 and 1 says which.
Numbers so far from 0 that float32 cannot tell them apart lose their middle first. A kind's fields are what it needs for
another table: text, numbers and lists of text, with nothing to run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from naysay.datasets import cells
from naysay.datasets.cells import (
    CIRCLES,
    DATES,
    Floats,
    Strange,
    Unfit,
    check_finite,
    check_size,
    not_numbers,
    on_circle,
)
from naysay.datasets.wording import Wording
from naysay.errors import InputError
from naysay.words import count, few

Block = NDArray[np.float32]

ALIKE = "alike in 64 bits"  # texts of numbers that differ in further digits alone
LARGEST = 3e38  # of float32


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table. empty: how many cells of training were; strange: some that were taken for empty ones."""

    kind: ClassVar[str]
    plural: ClassVar[str]
    name: str
    empty: int = 0
    strange: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that it becomes."""
        return ()

    @property
    def n_columns(self) -> int:
        """How many columns it becomes."""
        return len(self.names)

    @property
    def instead(self) -> str:
        """What becomes of a cell that is not understood, in words."""
        return "taken for empty"

    @property
    def is_plain(self) -> bool:
        """Whether it was numbers without an empty cell, which stay as they are."""
        return False

    @property
    def learned(self) -> tuple[str, ...]:
        """What of it was found among the rows of training, and would be another among others, in words."""
        return ()

    def apply(self, column: Any) -> tuple[Block, Strange]:
        """The numbers (n, n_columns) of an Arrow column like it, and the cells that were not understood."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise InputError where the fields cannot be meant."""

    def told(self) -> str:
        """What it is, in half a sentence."""
        raise NotImplementedError

    def as_said(self, *parts: str, filled: str = "") -> str:
        """The parts of what is told, and how many cells are empty, with what becomes of them."""
        return ", ".join([*parts, *[count(self.empty, "empty cell") + filled] * (self.empty > 0)])


@dataclass(frozen=True, eq=False)
class Measured(Column):
    """A number in every cell. fill: what an empty one gets; flag: whether a column of its own tells which are empty."""

    fill: float = 0.0
    flag: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *[f"{self.name} is empty"] * self.flag)

    @property
    def is_plain(self) -> bool:
        return not self.empty

    @property
    def learned(self) -> tuple[str, ...]:
        return ("fills of empty cells",) if self.empty else ()

    def finish(self, values: Floats, strange: Strange, unlike: Callable[[str], Unfit]) -> tuple[Block, Strange]:
        """What `apply` gives, of a number for each cell (n,), NaN where it is empty or strange."""
        empty = np.isnan(values)
        if strange and empty.all():
            raise unlike(next(iter(strange)))
        silent = int(empty.sum()) - sum(strange.values())
        # where training had no empty cell, that one is empty is strange, too
        return self.fill_in(values), strange | {"": silent} if silent and not self.empty else strange

    def fill_in(self, values: Floats, *beside: Floats) -> Block:
        """Numbers (n,) with those that are NaN filled, others `beside` them, and which were filled: (n, n_columns)."""
        empty = np.isnan(values)
        columns = [np.where(empty, np.float32(self.fill), values), *beside, *[empty] * self.flag]
        return np.stack(columns, 1).astype(np.float32, copy=False)

    def filled(self, with_what: str) -> str:
        """How empty cells are told."""
        such = f" (such as {few(map(repr, self.strange), 3)})" if self.strange else ""
        return f"{such} filled with {with_what}"


@dataclass(frozen=True, eq=False)
class Number(Measured):
    """centre: what is taken away, from `fill` too. constant: whether all cells were alike. form: of texts' numbers."""

    kind, plural = "number", "numbers"
    centre: float = 0.0
    constant: bool = False
    form: str = "plain"

    @property
    def is_plain(self) -> bool:
        return not (self.empty or self.centre)

    @property
    def learned(self) -> tuple[str, ...]:
        return (*["middles of numbers"] * (self.centre != 0), *super().learned)

    def check(self) -> None:
        _check_float32(self, self.fill, self.centre)
        if self.form not in cells.NUMBERS:
            raise InputError(f"the column {self.name!r} must have a known form of numbers.")

    def apply(self, column: Any) -> tuple[Block, Strange]:
        if self.centre and cells.is_long(column.type):
            near = replace(self, centre=0.0)  # what is filled in is near 0 already
            return near.finish(cells.less(column, self.centre), {}, partial(not_numbers, self.name))
        values, strange = cells.as_numbers(column, np.float64 if self.centre else np.float32, self.form)
        return self.finish(values, strange, partial(not_numbers, self.name))

    def fill_in(self, values: Floats, *beside: Floats) -> Block:
        check_finite(self.name, values, empty=True)
        with np.errstate(over="ignore"):
            near = (values - self.centre if self.centre else values).astype(np.float32, copy=False)
        block = super().fill_in(near, *beside)
        check_finite(self.name, block)
        check_size(self.name, block)
        return block

    def told(self) -> str:
        special = [f"as {self.form}"] * (self.form != "plain") + [f"less {self.centre:g}"] * (self.centre != 0)
        return self.as_said("number", *special, filled=self.filled(f"{self.fill + self.centre:g}"))


@dataclass(frozen=True, eq=False)
class Boolean(Measured):
    """words: those for 1 and for 0, in lower case."""

    kind, plural = "boolean", "booleans"
    words: tuple[str, ...] = ()

    def check(self) -> None:
        if len(self.words) != 2 or self.fill not in (0, 1):
            raise InputError(f"the column {self.name!r} must have two words and be filled with 0 or 1.")

    def apply(self, column: Any) -> tuple[Block, Strange]:
        """1 and 0; numbers 1 and 0 are such, too."""
        found = cells.as_texts(column)
        meaning = {self.words[0]: 1.0, self.words[1]: 0.0, "true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
        values = np.array([meaning.get(text.lower(), np.nan) for text in found.texts.to_pylist()], np.float32)
        return self.finish(*found.understood(values), partial(_unlike, self, " or ".join(map(repr, self.words))))

    def told(self) -> str:
        return self.as_said(f"boolean, 1 is {self.words[0]!r}", filled=self.filled(f"{self.fill:.0f}"))


@dataclass(frozen=True, eq=False)
class Date(Measured):
    """form: the row of DATES. first: seconds of the first, from which days are counted. circles: of CIRCLES."""

    kind, plural = "date", "dates"
    form: str = "year-month-day"
    first: float = 0.0
    circles: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        days, *flag = super().names
        parts = [f"{self.name}: {part} of {circle}" for circle in self.circles for part in ("sine", "cosine")]
        return (days, *parts, *flag)

    @property
    def is_plain(self) -> bool:
        return False

    @property
    def learned(self) -> tuple[str, ...]:
        return ("first days of dates", *super().learned)

    def check(self) -> None:
        _check_float32(self, self.first, self.fill)
        if self.form not in DATES or not {*self.circles} <= CIRCLES.keys():
            raise InputError(f"the column {self.name!r} must have a known form of dates.")

    def apply(self, column: Any) -> tuple[Block, Strange]:
        return self.finish(*cells.as_seconds(column, self.form), partial(_unlike, self, f"dates as {self.form}"))

    def fill_in(self, values: Floats, *beside: Floats) -> Block:
        """Days since the first, and points on circles, (0, 0) for an empty cell."""
        angles = [2 * np.pi * on_circle(values, circle) / CIRCLES[circle] for circle in self.circles]
        points = [np.nan_to_num(part(angle)) for angle in angles for part in (np.sin, np.cos)]
        return super().fill_in(((values - self.first) / 86400).astype(np.float32), *points, *beside)

    def told(self) -> str:
        circles = [f"with {' and '.join(self.circles)}"] if self.circles else []
        return self.as_said(f"date ({self.form})", *circles, filled=self.filled(f"day {self.fill:.0f}"))


@dataclass(frozen=True, eq=False)
class Category(Column):
    """levels: the frequent texts. other: whether there were others. flag: whether a column says which are empty.

    rare: the others of training, which are not strange in another table; none where they were too many to keep, and
    no other is strange then.
    """

    kind, plural = "category", "categories"
    levels: tuple[str, ...] = ()
    other: bool = False
    flag: bool = False
    rare: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        names = [f"{self.name}={level}" for level in self.levels]
        return (*names, *[f"{self.name}=other"] * self.other, *[f"{self.name} is empty"] * self.flag)

    @property
    def learned(self) -> tuple[str, ...]:
        return ("levels of categories",)

    @property
    def instead(self) -> str:
        return f"none of its levels and {'taken for other' if self.other else 'left at 0'}"

    def check(self) -> None:
        if not self.levels or len(set(self.levels)) != len(self.levels):
            raise InputError(f"the column {self.name!r} must have different levels.")

    def apply(self, column: Any) -> tuple[Block, Strange]:
        """1 in the column of the level, of others, or of empty cells; a text that is no level is strange."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = cells.as_texts(column)
        levels = pa.array(self.levels, found.texts.type)
        place = pc.fill_null(pc.index_in(found.texts, levels), len(levels)).to_numpy(zero_copy_only=False)
        nowhere = len(levels) + self.other + self.flag
        others = len(levels) if self.other else nowhere
        spread = found.spread(np.where(place < len(levels), place, others), nowhere - 1 if self.flag else nowhere)
        out = np.zeros((len(spread), nowhere), np.float32)
        there = np.flatnonzero(spread < nowhere)
        out[there, spread[there]] = 1
        if self.other and not self.rare:
            return out, {}
        known = pc.is_in(found.texts, pa.array(self.rare, found.texts.type)).to_numpy(zero_copy_only=False)
        return out, found.strange((place == len(levels)) & ~known)

    def told(self) -> str:
        return self.as_said(f"category of {count(len(self.levels), 'level')}", count(self.n_columns, "column"))


@dataclass(frozen=True, eq=False)
class Text(Column):
    """Sentences; wording: their words, which are kept as arrays."""

    kind, plural = "text", "texts"
    wording: Wording | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}[{j}]" for j in range(len(self.known.components)))

    @property
    def learned(self) -> tuple[str, ...]:
        return ("words of texts",)

    @property
    def known(self) -> Wording:
        """The wording, which a column that is used has."""
        if self.wording is None:
            raise InputError(f"the words of the column {self.name!r} are not there.")
        return self.wording

    def apply(self, column: Any) -> tuple[Block, Strange]:
        """The directions of each text; 0 where it has no known word."""
        found = cells.as_texts(column)
        made = np.vstack([self.known.apply(found.texts), np.zeros((1, len(self.known.components)), np.float32)])
        return made[found.codes], {}  # the last row is that of empty cells

    def told(self) -> str:
        return self.as_said(f"text of {len(self.known.words):,} words", count(self.n_columns, "column"))


@dataclass(frozen=True, eq=False)
class Lists(Column):
    """Vectors of one width, as they are."""

    kind, plural = "list", "lists"
    width: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}[{j}]" for j in range(self.width))

    @property
    def n_columns(self) -> int:
        return self.width  # which a file that was changed can say is anything: no names are made of it

    @property
    def is_plain(self) -> bool:
        return True

    def check(self) -> None:
        if not 1 <= self.width < 2**31:
            raise InputError(f"the column {self.name!r} must hold lists of at least one number.")

    def apply(self, column: Any) -> tuple[Block, Strange]:
        vectors = cells.as_vectors(self.name, column)
        if vectors.shape[1] != self.width:
            got = f"got {vectors.shape[1]}"
            raise Unfit(f"must hold lists of {self.width} numbers in column {self.name!r}; {got}", "Even them out.")
        return vectors, {}

    def told(self) -> str:
        return f"list, {count(self.width, 'column')}"


@dataclass(frozen=True, eq=False)
class LeftOut(Column):
    """why: "constant", "empty", "id-like", or ALIKE."""

    kind, plural = "left out", "left out"
    why: str = "constant"

    def told(self) -> str:
        return f"left out ({self.why})"


KINDS = {row.kind: row for row in (Number, Boolean, Category, Date, Text, Lists, LeftOut)}


def _unlike(column: Column, wanted: str, got: str) -> Unfit:
    """The error of a column in which no cell is understood."""
    wrong = f"must hold {wanted} in column {column.name!r}; got {got[:40]!r}"
    return Unfit(wrong, "Write it as the training table does.")


def _check_float32(column: Column, *numbers: float) -> None:
    if not all(-LARGEST < number < LARGEST for number in numbers):
        raise InputError(f"the column {column.name!r} must have numbers such as float32 holds.")
