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

Where more than 1 % of a column's cells are empty, a column of 0 and 1 says which. Numbers so far from 0 that float32
cannot tell them apart lose their middle first. A kind's fields are what it needs for another table: text, numbers and
lists of text, with nothing to run.
"""

import dataclasses
import math
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from naysay.datasets import cells
from naysay.datasets.cells import DATES, Floats, Strange, Unfit, check_finite, not_numbers
from naysay.datasets.wording import Wording
from naysay.errors import InputError
from naysay.words import count, few

Block = NDArray[np.float32]

MANY_EMPTY = 0.01  # of the cells: from here on that a cell is empty may say something itself
NUMBERS = 0.95  # of the cells that are not empty must be numbers (or dates): the others are then slips
WORDS = 3  # a sentence has so many, on average
LEVELS = 50  # columns that a category may become
RECURS = 0.5  # of the rows have a frequent text: the column is a category
SAMPLE = 10_001  # cells that a median is taken of
FIRST = 100  # different texts by which dates are recognised
ROWS = 4096  # looked at together
STEPS = 64  # of float32 that a column must span: 1e8 and 1e8 + 50 are six apart
LARGEST = 3e38  # of float32
TRUTHS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("on", "off"))
CIRCLES = {"month": 12, "weekday": 7, "hour": 24}
NUMBERED = re.compile(r"(?:^|[\W_]|(?<=[a-z])(?=[A-Z]))(?i:id|ids|idx|index|uuid|guid|key|rownum|row|row.?number)$")
PANDAS = re.compile(r"|Unnamed: 0(?:\.\d+)?|__index_level_\d+__")  # how it writes an index


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
        return (self.name,)

    def apply(self, column: Any) -> tuple[Block, Strange]:
        """The numbers (n, width) of an Arrow column like it, and the cells that were not understood."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise InputError where the fields cannot be meant."""

    def told(self) -> str:
        """What it is, in half a sentence."""
        return self.kind

    @property
    def instead(self) -> str:
        """What becomes of a cell that is not understood, in words."""
        return "taken for empty"

    @property
    def is_plain(self) -> bool:
        """Whether it was numbers without an empty cell, which stay as they are."""
        return False

    def as_dict(self) -> dict[str, Any]:
        """The kind and those of its fields that are not at their defaults."""
        fields = {one.name: (getattr(self, one.name), one.default) for one in dataclasses.fields(self) if one.repr}
        told = {name: value for name, (value, default) in fields.items() if value != default}
        return {"kind": self.kind, **{name: list(v) if isinstance(v, tuple) else v for name, v in told.items()}}


@dataclass(frozen=True, eq=False)
class Number(Column):
    """fill: what an empty cell gets, less the centre. centre: what is taken away. flag: tell which cells are empty."""

    kind, plural = "number", "numbers"
    fill: float = 0.0
    centre: float = 0.0
    flag: bool = False
    constant: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Itself, and which cells are empty."""
        return (self.name, f"{self.name} is empty") if self.flag else (self.name,)

    @property
    def is_plain(self) -> bool:
        """Whether there was no empty cell, and nothing is taken away."""
        return not (self.empty or self.centre)

    def check(self) -> None:
        """Both numbers must be such as float32 holds."""
        _finite(self, self.fill, self.centre)

    def apply(self, column: Any) -> tuple[Block, Strange]:
        """The numbers; a column without any is refused."""
        values, strange = cells.as_numbers(column, np.float64 if self.centre else np.float32)
        if strange and np.isnan(values).all():
            raise not_numbers(self.name, next(iter(strange)))
        return self.fill_in(values), _with_empty(self, strange, values)

    def fill_in(self, values: Floats) -> Block:
        """Numbers (n,) less the centre, empty cells filled, and which those are."""
        check_finite(self.name, values, empty=True)
        with np.errstate(over="ignore"):
            near = (values - self.centre if self.centre else values).astype(np.float32, copy=False)
        out = _with_flag(near, self.fill, self.flag)
        check_finite(self.name, out)
        return out

    def told(self) -> str:
        """Number, and what is special about it."""
        special = [f"less {self.centre:g}"] if self.centre else []
        return ", ".join(["number", *special, *_emptiness(self, f"{self.fill + self.centre:g}")])


@dataclass(frozen=True, eq=False)
class Boolean(Column):
    """words: those for 1 and for 0, in lower case."""

    kind, plural = "boolean", "booleans"
    words: tuple[str, ...] = ()
    fill: float = 0.0
    flag: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Itself, and which cells are empty."""
        return (self.name, f"{self.name} is empty") if self.flag else (self.name,)

    @property
    def is_plain(self) -> bool:
        """Whether there was no empty cell."""
        return not self.empty

    def check(self) -> None:
        """Two words, and 0 or 1."""
        if len(self.words) != 2 or self.fill not in (0, 1):
            raise InputError(f"the column {self.name!r} must have two words and be filled with 0 or 1.")

    def apply(self, column: Any) -> tuple[Block, Strange]:
        """1 and 0; numbers 1 and 0 are such, too."""
        found = cells.as_texts(column)
        meaning = {self.words[0]: 1.0, self.words[1]: 0.0, "true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
        values = np.array([meaning.get(text.lower(), np.nan) for text in found.texts.to_pylist()], np.float32)
        strange = found.strange(np.isnan(values) & ~cells.are_empty(found.texts))
        if strange and np.isnan(values).all():
            wanted = f"must hold {' or '.join(map(repr, self.words))} in column {self.name!r}"
            raise Unfit(f"{wanted}; got {next(iter(strange))[:40]!r}", "Write it as the training table does.")
        spread = found.spread(values, np.nan)
        return _with_flag(spread, self.fill, self.flag), _with_empty(self, strange, spread)

    def told(self) -> str:
        """Its words, and how many cells are empty."""
        return ", ".join([f"boolean, 1 is {self.words[0]!r}", *_emptiness(self, str(int(self.fill)))])


@dataclass(frozen=True, eq=False)
class Category(Column):
    """levels: the frequent texts. other: whether there were others. flag: whether a column says which are empty."""

    kind, plural = "category", "categories"
    levels: tuple[str, ...] = ()
    other: bool = False
    flag: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """A column for each level, and perhaps for others and for empty cells."""
        names = [f"{self.name}={level}" for level in self.levels]
        return (*names, *[f"{self.name}=other"] * self.other, *[f"{self.name} is empty"] * self.flag)

    @property
    def instead(self) -> str:
        """A text that is no level is one of the others."""
        return f"none of its levels and {'taken for other' if self.other else 'left at 0'}"

    def check(self) -> None:
        """Levels that differ."""
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
        return out, found.strange(place == len(levels))

    def told(self) -> str:
        """How many levels it has."""
        return f"category of {count(len(self.levels), 'level')}, {count(len(self.names), 'column')}"


@dataclass(frozen=True, eq=False)
class Date(Column):
    """form: the row of DATES. first: seconds of the first. fill: days that an empty cell gets. circles: of CIRCLES."""

    kind, plural = "date", "dates"
    form: str = "year-month-day"
    first: float = 0.0
    fill: float = 0.0
    circles: tuple[str, ...] = ()
    flag: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Days, two columns for each circle, and which cells are empty."""
        circles = [f"{self.name}: {part} of {circle}" for circle in self.circles for part in ("sine", "cosine")]
        return (self.name, *circles, *[f"{self.name} is empty"] * self.flag)

    def check(self) -> None:
        """A form and circles that there are."""
        _finite(self, self.first, self.fill)
        if self.form not in DATES or not {*self.circles} <= CIRCLES.keys():
            raise InputError(f"the column {self.name!r} must have a known form of dates.")

    def apply(self, column: Any) -> tuple[Block, Strange]:
        """Days since the first, and points on circles, (0, 0) for an empty cell."""
        seconds, strange = cells.as_seconds(column, self.form)
        if strange and np.isnan(seconds).all():
            wanted = f"must hold dates as {self.form} in column {self.name!r}"
            raise Unfit(f"{wanted}; got {next(iter(strange))[:40]!r}", "Write it as the training table does.")
        days = ((seconds - self.first) / 86400).astype(np.float32)
        columns = [np.where(np.isnan(days), np.float32(self.fill), days)]
        for circle in self.circles:
            angle = 2 * np.pi * on_circle(seconds, circle) / CIRCLES[circle]
            columns += [np.nan_to_num(np.sin(angle)), np.nan_to_num(np.cos(angle))]
        columns += [np.isnan(days)] * self.flag
        return np.stack(columns, 1).astype(np.float32), _with_empty(self, strange, seconds)

    def told(self) -> str:
        """How it was read, and its circles."""
        circles = [f"with {' and '.join(self.circles)}"] if self.circles else []
        return ", ".join([f"date ({self.form})", *circles, *_emptiness(self, f"day {self.fill:.0f}")])


@dataclass(frozen=True, eq=False)
class Text(Column):
    """Sentences; wording: their words, which are kept as arrays."""

    kind, plural = "text", "texts"
    wording: Wording | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Directions by number, as those of an embedding."""
        return tuple(f"{self.name}[{j}]" for j in range(len(self.known.components)))

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
        """How many words are known."""
        return f"text of {len(self.known.words):,} words, {count(len(self.names), 'column')}"


@dataclass(frozen=True, eq=False)
class Lists(Column):
    """Vectors of one width, as they are."""

    kind, plural = "list", "lists"
    width: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Its places by number."""
        return tuple(f"{self.name}[{j}]" for j in range(self.width))

    @property
    def is_plain(self) -> bool:
        """It always is."""
        return True

    def check(self) -> None:
        """A width that some table can have."""
        if not 1 <= self.width < 2**31:
            raise InputError(f"the column {self.name!r} must hold lists of at least one number.")

    def apply(self, column: Any) -> tuple[Block, Strange]:
        """The vectors; those of another width are refused."""
        vectors = cells.as_vectors(self.name, column)
        if vectors.shape[1] != self.width:
            got = f"got {vectors.shape[1]}"
            raise Unfit(f"must hold lists of {self.width} numbers in column {self.name!r}; {got}", "Even them out.")
        return vectors, {}

    def told(self) -> str:
        """Its width."""
        return f"list, {count(self.width, 'column')}"


@dataclass(frozen=True, eq=False)
class LeftOut(Column):
    """why: "constant", "empty" or "id-like"."""

    kind, plural = "left out", "left out"
    why: str = "constant"

    @property
    def names(self) -> tuple[str, ...]:
        """None."""
        return ()

    def told(self) -> str:
        """Why."""
        return f"left out ({self.why})"


KINDS = {row.kind: row for row in (Number, Boolean, Category, Date, Text, Lists, LeftOut)}
TYPES: dict[Any, Any] = {str: str, int: int, bool: bool, float: (int, float)}


def from_dict(given: Any) -> Column:
    """The column that `as_dict` told; InputError where it cannot be one."""
    row: Any = KINDS.get(str(given.get("kind"))) if isinstance(given, dict) else None
    if row is None or not isinstance(given.get("name"), str):
        raise InputError(f"a column must have a name and a kind of {', '.join(KINDS)}.")
    hints, values = get_type_hints(row), {}
    for name, value in given.items():
        if name == "kind":
            continue
        hint = hints.get(name) if name in {one.name for one in dataclasses.fields(row) if one.repr} else None
        if hint in TYPES:
            right = isinstance(value, TYPES[hint]) and isinstance(value, bool) == (hint is bool)
        else:
            right = hint == tuple[str, ...] and isinstance(value, list) and all(isinstance(one, str) for one in value)
        if not right:
            raise InputError(f"the column {given['name']!r:.80} cannot have {name!r:.40} as it is.")
        values[name] = tuple(value) if isinstance(value, list) else value
    column: Column = row(**values)
    column.check()
    return column


# finding


def find(name: str, column: Any, *, named: bool = False) -> Column:
    """What an Arrow column is; numbers in one that was `named` as a feature are no ids, whatever they look like."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return LeftOut(name, len(column), why="empty")
    if cells.is_list(kind):
        return Lists(name, width=cells.as_vectors(name, column).shape[1])
    if cells.is_number(kind):
        return find_number(name, cells.as_numbers(column, np.float64)[0], named=named)
    if cells.is_date(kind):
        return find_date(name, cells.as_seconds(column, "year-month-day")[0], "year-month-day", {})
    if not (cells.is_text(kind) or pa.types.is_boolean(kind)):
        raise not_numbers(name, str(kind))
    if cells.is_text(kind):
        column.validate(full=True)  # a file may hold bytes that are no text
    return _of_texts(name, column, cells.as_texts(column), named)


def _of_texts(name: str, column: Any, found: cells.Texts, named: bool) -> Column:
    n, counts = len(found.codes), found.counts
    filled = int(counts.sum())
    if not filled:
        return LeftOut(name, n, why="empty")
    if (first := found.texts[int(found.codes[found.codes >= 0][0])].as_py()).startswith("["):
        raise not_numbers(name, first)
    no_word = ~cells.are_empty(found.texts)
    said = int(counts[no_word].sum())
    numbers = cells.numbers_in(found.texts, np.float32)
    if said and counts[~np.isnan(numbers)].sum() >= NUMBERS * said:
        values, strange = cells.as_numbers(column)
        if is_far(values):
            values, strange = cells.as_numbers(column, np.float64)
        return find_number(name, values, strange, named=named)
    lower = {text.lower() for text in found.texts.to_pylist()} if len(found.texts) <= 8 else set()
    for words in TRUTHS:
        # one of the words alone says something by where it is missing
        if lower == set(words) or (lower and lower <= set(words) and filled < n):
            return find_boolean(name, found, words)
    dates = {form: cells.seconds_in(found.texts.slice(0, FIRST), form) for form in DATES}
    if any(2 * np.isfinite(some).sum() >= len(some) for some in dates.values()):  # else all need not be looked at
        form = max(DATES, key=lambda form: counts[np.isfinite(cells.seconds_in(found.texts, form))].sum())
        seconds, strange = cells.as_seconds(column, form)
        if np.isfinite(seconds).sum() >= NUMBERS * said:
            return find_date(name, seconds, form, strange)
    return find_wording(name, found)


def find_number(name: str, values: Floats, strange: Strange | None = None, *, named: bool = False) -> Column:
    """Numbers (n,), NaN where cells are empty."""
    check_finite(name, values, empty=True)
    empty = int(np.isnan(values).sum())
    if empty == len(values):
        return LeftOut(name, empty, why="empty")
    if not (empty or named) and _counts_rows(name, values):
        return LeftOut(name, why="id-like")
    centre = median(values) if is_far(values) else 0.0
    fill = 0.0 if centre else median(values)
    flag = empty > MANY_EMPTY * len(values)
    constant = bool(np.nanmin(values) == np.nanmax(values)) and not flag
    return Number(name, empty, tuple(list(strange or ())[:3]), fill, centre, flag, constant)


def find_numbers(names: Sequence[str], x: Block, named: Container[str] = ()) -> list[Column]:
    """What the columns of a matrix (n, d) are: as `find_number`, for all at once where nothing is special."""
    low, high, empty = _extremes(x)
    middle = np.sort(x[:: max(1, -(-len(x) // SAMPLE))], 0)
    middle = middle[len(middle) // 2]
    plain = (empty == 0) & np.isfinite(low) & np.isfinite(high) & ~far(low, high)
    return [
        Number(name, fill=float(middle[j]), constant=bool(low[j] == high[j]))
        if plain[j] and not _is_numbered(name)
        else find_number(name, x[:, j], named=name in named)
        for j, name in enumerate(names)
    ]


def _extremes(x: Block) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """The least and the largest number of each column, and how many are NaN (d,)."""
    low, high = np.full(x.shape[1], np.nan, np.float32), np.full(x.shape[1], np.nan, np.float32)
    empty = np.zeros(x.shape[1], np.int64)
    for start in range(0, len(x), ROWS):
        part = x[start : start + ROWS]
        low, high = np.fmin(low, np.fmin.reduce(part, 0)), np.fmax(high, np.fmax.reduce(part, 0))
        empty += np.isnan(part).sum(0)
    return low, high, empty


def find_boolean(name: str, found: cells.Texts, words: tuple[str, str]) -> Column:
    """Texts that are one of two words, or empty."""
    yes = np.array([text.lower() == words[0] for text in found.texts.to_pylist()])
    counts, n = found.counts, len(found.codes)
    empty = n - int(counts.sum())
    return Boolean(name, empty, (), words, float(counts[yes].sum() > counts[~yes].sum()), empty > MANY_EMPTY * n)


def find_date(name: str, seconds: Floats, form: str, strange: Strange) -> Column:
    """Seconds (n,), NaN where cells are empty."""
    empty = int(np.isnan(seconds).sum())
    if empty == len(seconds):
        return LeftOut(name, empty, why="empty")
    first, flag = float(np.nanmin(seconds)), empty > MANY_EMPTY * len(seconds)
    if first == np.nanmax(seconds) and not flag:
        return LeftOut(name, empty, why="constant")
    there = seconds[~np.isnan(seconds)]
    varying = tuple(circle for circle in CIRCLES if len(np.unique(on_circle(there, circle))) > 1)
    fill = (median(seconds) - first) / 86400
    return Date(name, empty, tuple(list(strange)[:3]), form, first, fill, varying, flag)


def find_wording(name: str, found: cells.Texts) -> Column:
    """Texts that recur, are sentences, or differ in every row."""
    import pyarrow.compute as pc

    n, counts = len(found.codes), found.counts
    filled = int(counts.sum())
    empty = n - filled
    flag = empty > MANY_EMPTY * n
    if len(counts) == 1 and not flag:
        return LeftOut(name, empty, why="constant")
    texts = np.array(found.texts.to_pylist(), object)
    often = min(max(2, n // 200), 20)
    frequent = [int(i) for i in np.lexsort((texts, -counts))[:LEVELS] if counts[i] >= often]
    recurring = int(counts[frequent].sum())
    spaces = pc.count_substring_regex(found.texts, r"\S+").to_numpy(zero_copy_only=False)
    if recurring < RECURS * filled and (spaces * counts).sum() >= WORDS * filled:
        wording = Wording.find(found.texts, counts)
        if wording is not None:
            return Text(name, empty, wording=wording)
    if not frequent:
        return LeftOut(name, empty, why="id-like")
    levels = tuple(texts[frequent].tolist())
    return Category(name, empty, (), levels, recurring < filled, flag)


def median(values: Floats) -> float:
    """The middle of the numbers (n,) that are there, of an even sample of many."""
    there = values[~np.isnan(values)]
    there = np.sort(there[:: max(1, -(-len(there) // SAMPLE))])
    return float(there[len(there) // 2])  # one of them, so that whole numbers stay whole


def is_far(values: Floats) -> bool:
    """Whether numbers (n,) lie so far from 0 that they hardly differ in float32, as times do."""
    there = values[~np.isnan(values)]
    return len(there) > 0 and bool(far(there.min()[None], there.max()[None])[0])


def far(low: Floats, high: Floats) -> NDArray[np.bool_]:
    """Whether numbers between these (d,) hardly differ in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        furthest = np.maximum(np.abs(low), np.abs(high)).astype(np.float32)
        narrow = high - low < STEPS * np.spacing(furthest).astype(np.float64)
    found: NDArray[np.bool_] = narrow & ((high > low) | (furthest >= 2**24))
    return found


def on_circle(seconds: Floats, circle: str) -> Floats:
    """Where times (n,) are in the year, the week or the day, in months, days or hours; NaN for NaN."""
    if circle == "hour":
        return seconds % 86400 / 3600
    days = np.floor(seconds / 86400)
    if circle == "weekday":
        return (days + 3) % 7  # 1970 began on a Thursday
    there = ~np.isnan(days)
    months = np.full(len(days), np.nan)
    months[there] = days[there].astype(np.int64).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    return months


def _counts_rows(name: str, values: Floats) -> bool:
    """Whether the numbers (n,) rise one by one under a name that ids have."""
    rising = len(values) > 2 and bool((np.diff(values) == 1).all()) and float(values[0]) % 1 == 0
    return rising and _is_numbered(name)


def _is_numbered(name: str) -> bool:
    return bool(NUMBERED.search(name.strip()) or PANDAS.fullmatch(name.strip()))


def _with_flag(values: Floats, fill: float, flag: bool) -> Block:
    """Numbers (n, 1), empty cells filled; with a flag (n, 2), 1 where a cell was empty."""
    empty = np.isnan(values)
    filled = np.where(empty, np.float32(fill), values).astype(np.float32, copy=False)
    return np.stack([filled, empty], 1).astype(np.float32, copy=False) if flag else filled[:, None]


def _with_empty(column: Column, strange: Strange, values: Floats) -> Strange:
    """What is strange: where training had no empty cell, that these are empty, too."""
    empty = int(np.isnan(values).sum()) - sum(strange.values())
    return strange | {"": empty} if empty and not column.empty else strange


def _finite(column: Column, *numbers: float) -> None:
    if not all(math.isfinite(number) and abs(number) < LARGEST for number in numbers):
        raise InputError(f"the column {column.name!r} must have numbers such as float32 holds.")


def _emptiness(column: Column, filled: str) -> Iterable[str]:
    if column.empty:
        such = f" (such as {few(map(repr, column.strange), 3)})" if column.strange else ""
        yield f"{count(column.empty, 'empty cell')}{such} filled with {filled}"
