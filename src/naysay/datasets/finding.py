"""Which kind a column of a table is (`kinds`): by its type in Parquet, and of texts by what most of them look like.

Texts are tried as numbers, as two words, as dates, then as sentences and as categories. One cell in twenty may be a
slip, which counts as empty. A column that numbers the rows, and one of texts that differ in every row, is left out.
"""

import re
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay.datasets import cells
from naysay.datasets.cells import CIRCLES, DATES, Floats, Strange, check_finite, check_size, not_numbers, on_circle
from naysay.datasets.kinds import ALIKE, Block, Boolean, Category, Column, Date, LeftOut, Lists, Number, Text
from naysay.datasets.wording import Wording

MANY_EMPTY = 0.01  # of the cells: from here on that a cell is empty may say something itself
MOST = 0.95  # of the cells that are not empty must be numbers (or dates): the others are then slips
WORDS = 3  # a sentence has so many, on average
LEVELS = 50  # columns that a category may become
RARE = 1000  # texts without a column of their own that are remembered
RECURS = 0.5  # of the rows have a frequent text: the column is a category
SAMPLE = 10_001  # cells that a median is taken of
FIRST = 100  # different texts by which dates are recognised
ROWS = 4096  # looked at together
STEPS = 64  # of float32 that a column must span: 1e8 and 1e8 + 50 are six apart
TRUTHS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("on", "off"))
NUMBERED = re.compile(r"(?:^|[\W_]|(?<=[a-z])(?=[A-Z]))(?i:id|ids|idx|index|uuid|guid|key|rownum|row|row.?number)$")
PANDAS = re.compile(r"|Unnamed: 0(?:\.\d+)?|__index_level_\d+__")  # how it writes an index
VECTOR = re.compile(r"\[[\d\s.,eE+-]+\]")


def find(name: str, column: Any, *, named: bool = False) -> Column:
    """What an Arrow column is; numbers in one that was `named` as a feature are no ids, whatever they look like."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return LeftOut(name, len(column), why="empty")
    if cells.is_list(kind):
        return Lists(name, width=cells.as_vectors(name, column).shape[1])
    if cells.is_number(kind):
        return _of_numbers(name, column, named)
    if cells.is_date(kind):
        return find_date(name, *cells.as_seconds(column, "year-month-day"), "year-month-day")
    if not (cells.is_text(kind) or pa.types.is_boolean(kind)):
        raise not_numbers(name, str(kind))
    if cells.is_text(kind):
        column.validate(full=True)  # a file may hold bytes that are no text
    return _of_texts(name, column, cells.as_texts(column), named)


def _of_numbers(name: str, column: Any, named: bool) -> Column:
    found = find_number(name, cells.as_numbers(column, np.float64)[0], named=named)
    if not (cells.is_long(column.type) and isinstance(found, Number) and found.centre):
        return found
    near = cells.less(column, found.centre)
    if not (found.empty or named) and _counts_rows(name, near):
        return LeftOut(name, why="id-like")
    return replace(found, constant=bool(np.nanmin(near) == np.nanmax(near)) and not found.flag)


def _of_texts(name: str, column: Any, found: cells.Texts, named: bool) -> Column:
    counts = found.counts
    if not counts.any():
        return LeftOut(name, found.empty, why="empty")
    if VECTOR.fullmatch(first := found.texts[int(found.codes[found.codes >= 0][0])].as_py()):
        raise not_numbers(name, first)
    said = int(counts[~cells.are_empty(found.texts)].sum())
    for form in cells.NUMBERS:
        numbers = cells.numbers_in(found.texts, np.float32, form)
        if said and counts[~np.isnan(numbers)].sum() >= MOST * said:
            exact = np.float64 if is_far(numbers) else np.float32
            number = find_number(name, *cells.as_numbers(column, exact, form), form, named=named)
            if isinstance(number, Number) and number.centre and number.constant and len(found.texts) > 1:
                return LeftOut(name, number.empty, why=ALIKE)  # which are not known to be the same number
            return number
    lower = {text.lower() for text in found.texts.to_pylist()} if len(found.texts) <= 8 else set()
    for words in TRUTHS:
        # one of the words alone says something by where it is missing
        if lower == set(words) or (lower and lower <= set(words) and found.empty):
            return find_boolean(name, found, words)
    dates = {form: cells.seconds_in(found.texts.slice(0, FIRST), form) for form in DATES}
    if any(2 * np.isfinite(some).sum() >= len(some) for some in dates.values()):  # else all need not be looked at
        form = max(DATES, key=lambda form: counts[np.isfinite(cells.seconds_in(found.texts, form))].sum())
        seconds, strange = cells.as_seconds(column, form)
        if np.isfinite(seconds).sum() >= MOST * said:
            return find_date(name, seconds, strange, form)
    return find_wording(name, found)


def find_number(
    name: str, values: Floats, strange: Strange | None = None, form: str = "plain", *, named: bool = False
) -> Column:
    """Numbers (n,), NaN where cells are empty, which texts write in that form."""
    check_finite(name, values, empty=True)
    empty = int(np.isnan(values).sum())
    if empty == len(values):
        return LeftOut(name, empty, why="empty")
    if not (empty or named) and _counts_rows(name, values):
        return LeftOut(name, why="id-like")
    centre = median(values) if is_far(values) else 0.0
    if not centre:
        check_size(name, values)
    fill = 0.0 if centre else median(values)
    flag = empty > MANY_EMPTY * len(values)
    constant = bool(np.nanmin(values) == np.nanmax(values)) and not flag
    return Number(name, empty, tuple(strange or ())[:3], fill, flag, centre, constant, form)


def find_numbers(names: Sequence[str], x: Block, named: Container[str] = ()) -> list[Column]:
    """What the columns of a matrix (n, d) are: as `find_number`, for all at once where nothing is special."""
    low, high, empty = _extremes(x)
    middle = np.sort(x[:: max(1, -(-len(x) // SAMPLE))], 0)
    middle = middle[len(middle) // 2]
    usable = (low >= -cells.LARGEST) & (high <= cells.LARGEST)
    plain = (empty == 0) & usable & ~far(low, high)
    return [
        Number(name, fill=float(middle[j]), constant=bool(low[j] == high[j]))
        if plain[j] and not _is_numbered(name)
        else find_number(name, x[:, j], named=name in named)
        for j, name in enumerate(names)
    ]


def _extremes(x: Block) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """The least and the largest number of each column, and how many are NaN (d,)."""
    low, high = np.full((2, x.shape[1]), np.nan, np.float32)
    empty = np.zeros(x.shape[1], np.int64)
    for start in range(0, len(x), ROWS):
        part = x[start : start + ROWS]
        low, high = np.fmin(low, np.fmin.reduce(part, 0)), np.fmax(high, np.fmax.reduce(part, 0))
        empty += np.isnan(part).sum(0)
    return low, high, empty


def find_boolean(name: str, found: cells.Texts, words: tuple[str, str]) -> Column:
    """Texts that are one of two words, or empty."""
    yes = np.array([text.lower() == words[0] for text in found.texts.to_pylist()])
    commoner = float(found.counts[yes].sum() > found.counts[~yes].sum())
    return Boolean(name, found.empty, (), commoner, found.empty > MANY_EMPTY * len(found.codes), words)


def find_date(name: str, seconds: Floats, strange: Strange, form: str) -> Column:
    """Seconds (n,), NaN where cells are empty."""
    there = seconds[~np.isnan(seconds)]
    empty = len(seconds) - len(there)
    if not len(there):
        return LeftOut(name, empty, why="empty")
    first, flag = float(there.min()), empty > MANY_EMPTY * len(seconds)
    if first == there.max() and not flag:
        return LeftOut(name, empty, why="constant")
    varying = tuple(circle for circle in CIRCLES if len(np.unique(on_circle(there, circle))) > 1)
    fill = (median(there) - first) / 86400
    return Date(name, empty, tuple(strange)[:3], fill, flag, form, first, varying)


def find_wording(name: str, found: cells.Texts) -> Column:
    """Texts that recur, are sentences, or differ in every row."""
    import pyarrow.compute as pc

    n, counts, empty = len(found.codes), found.counts, found.empty
    flag = empty > MANY_EMPTY * n
    if len(counts) == 1 and not flag:
        return LeftOut(name, empty, why="constant")
    texts = np.array(found.texts.to_pylist(), object)
    often = min(max(2, n // 200), 20)
    frequent = [int(i) for i in np.lexsort((texts, -counts))[:LEVELS] if counts[i] >= often]
    spaces = pc.count_substring_regex(found.texts, r"\S+").to_numpy(zero_copy_only=False)
    sentences = (spaces * counts).sum() >= WORDS * (n - empty)
    if sentences and counts[frequent].sum() < RECURS * (n - empty):
        wording = Wording.find(found.texts, counts)
        if wording is not None:
            return Text(name, empty, wording=wording)
    if not frequent:
        return LeftOut(name, empty, why="id-like")
    rare = np.delete(texts, frequent)
    named = tuple(rare.tolist()) if len(rare) <= RARE else ()
    return Category(name, empty, (), tuple(texts[frequent].tolist()), len(rare) > 0, flag, named)


def median(values: Floats) -> float:
    """The middle of the numbers (n,) that are there, of an even sample of many."""
    there = values[~np.isnan(values)]
    there = np.sort(there[:: max(1, -(-len(there) // SAMPLE))])
    return float(there[len(there) // 2])  # one of them, so that whole numbers stay whole


def is_far(values: Floats) -> bool:
    """Whether numbers (n,) lie so far from 0 that they hardly differ in float32, as times do."""
    there = values[~np.isnan(values)]
    return len(there) > 0 and bool(far(there.min(), there.max()))


def far(low: Any, high: Any) -> Any:
    """Whether numbers between these (d,) hardly differ in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        furthest = np.maximum(np.abs(low), np.abs(high)).astype(np.float32)
        narrow = high - low < STEPS * np.spacing(furthest).astype(np.float64)
    return narrow & ((high > low) | (furthest >= 2**24))


def _counts_rows(name: str, values: Floats) -> bool:
    """Whether the numbers (n,) rise one by one under a name that ids have."""
    rising = len(values) > 2 and bool((np.diff(values) == 1).all()) and float(values[0]) % 1 == 0
    return rising and _is_numbered(name)


def _is_numbered(name: str) -> bool:
    return bool(NUMBERED.search(name.strip()) or PANDAS.fullmatch(name.strip()))
