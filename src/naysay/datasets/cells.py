"""The cells of an Arrow column, of whatever type, as texts, as numbers or as times; an empty cell is -1 or NaN.

A text is looked at once, however often it occurs: a column is its different texts and the number of each row's text
among them. What is no number, or no time, is NaN and is returned by name, so that it can be told.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from naysay.datasets.dataset import unfinite_row
from naysay.errors import InputError

Floats = NDArray[np.floating[Any]]
Strange = dict[str, int]  # cells that were not understood, and how many there are of each

# what people write into cells that they have no number for
EMPTY = {"?", "-", "--", "---", ".", "..", "na", "n/a", "n.a.", "nan", "nil", "none", "null", "missing", "unknown"}
EMPTY |= {"undefined", "#n/a", "#na", "#null!"}
NUMBERS = {  # how a column writes its numbers, and what is taken away or becomes a point
    "plain": (r"^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf|infinity))$", "", ""),
    "1,234.5": (r"^[+-]?(?:\d+|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?$", ",", ""),
    "1.234,5": (r"^[+-]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d+)?$", ".", ","),
}
CLOCK = r"(?:[T ]\s*(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,]\d+)?)?\s*(?P<p>[AaPp][Mm])?)?"
ZONE = r"\s*(?P<z>Z|[+-]\d{2}:?\d{2})?"
DATES = {  # the first that reads most cells is taken
    "year-month-day": rf"^(?P<y>\d{{4}})[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}}){CLOCK}{ZONE}$",
    "month/day/year": rf"^(?P<m>\d{{1,2}})[-/](?P<d>\d{{1,2}})[-/](?P<y>\d{{4}}){CLOCK}{ZONE}$",
    "day/month/year": rf"^(?P<d>\d{{1,2}})[-/.](?P<m>\d{{1,2}})[-/.](?P<y>\d{{4}}){CLOCK}{ZONE}$",
}
CIRCLES = {"month": 12, "weekday": 7, "hour": 24}
NAMED = 20  # strange cells that are named
LARGEST = 2.0**64  # of whole numbers; about the root of float32's largest, so that the square of more is infinite
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _one_of(*names: str) -> Callable[[Any], bool]:
    """Whether an Arrow type is one of those, by the names of pyarrow's `is_` functions."""

    def found(kind: Any) -> bool:
        from pyarrow import types

        return any(getattr(types, f"is_{name}")(kind) for name in names)

    return found


is_text = _one_of("string", "large_string", "string_view", "dictionary")  # a dictionary may be of any values
is_number = _one_of("integer", "floating", "decimal", "time", "duration")
is_date = _one_of("timestamp", "date")
is_list = _one_of("list", "large_list", "fixed_size_list")


class Unfit(InputError):
    """A column that cannot be used: a sentence that begins with the table, and may end with a row, and a way out."""

    def __init__(
        self, wrong: str, way_out: str, row: int | None = None, joint: str = " in", table: object = "the table"
    ) -> None:
        self.parts = wrong, way_out, row, joint
        super().__init__(f"{table} {wrong}{'' if row is None else f'{joint} row {row + 1}'}. {way_out}")

    def of(self, table: object, start: int = 0) -> Self:
        """The same of a table by its name, and of a part of it that begins with the row `start`."""
        wrong, way_out, row, joint = self.parts
        return type(self)(wrong, way_out, None if row is None else start + row, joint, table)


@dataclass(frozen=True, eq=False)
class Texts:
    """A column as text: its different texts, stripped and none of them empty, and which of them each row has, or -1."""

    texts: Any  # an Arrow array of large strings (m,)
    codes: NDArray[np.int64]  # (n,)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows have each text (m,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))

    @property
    def empty(self) -> int:
        """How many rows have none."""
        return int((self.codes < 0).sum())

    def spread(self, values: NDArray[Any], empty: Any) -> NDArray[Any]:
        """Values (m,) of the texts as values (n,) of the rows; `empty` where a cell is."""
        return np.append(values, np.asarray(empty, values.dtype))[self.codes]  # -1 is the last

    def understood(self, values: Floats) -> tuple[Floats, Strange]:
        """Numbers (m,) of the texts as numbers (n,) of the rows; and what is NaN, but for words such as "n/a"."""
        return self.spread(values, np.nan), self.strange(np.isnan(values) & ~are_empty(self.texts))

    def strange(self, wrong: NDArray[np.bool_]) -> Strange:
        """The texts that are `wrong` (m,), most frequent first, and how often they occur; many stand in the last."""
        places, counts = np.flatnonzero(wrong), self.counts
        places = places[np.argsort(-counts[places], kind="stable")]
        said = {self.texts[int(place)].as_py(): int(counts[place]) for place in places[:NAMED]}
        if len(places) > NAMED:
            said[next(reversed(said))] += int(counts[places[NAMED:]].sum())
        return said


def as_texts(column: Any) -> Texts:
    """An Arrow column of texts, numbers or times as texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    column = pc.cast(column, pa.large_string())
    first = pc.dictionary_encode(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    # stripping makes some texts alike, so they are counted once more
    stripped = pc.utf8_trim_whitespace(first.dictionary)
    again = pc.dictionary_encode(pc.if_else(pc.equal(stripped, ""), None, stripped))
    inner = pc.fill_null(again.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    outer = pc.fill_null(first.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Texts(again.dictionary, np.append(inner, -1)[outer])


def numbers_in(texts: Any, kind: Any, form: str = "plain") -> Floats:
    """The numbers (m,) of type `kind` that texts (m,) are in the form of that row of NUMBERS; NaN where one is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pattern, taken, point = NUMBERS[form]
    right = pc.match_substring_regex(texts, pattern)
    for old, new in ((taken, ""), (point, ".")):
        texts = pc.replace_substring(texts, old, new) if old else texts
    plain = pc.cast(pc.if_else(right, texts, pa.scalar(None, texts.type)), pa.from_numpy_dtype(kind))
    values: Floats = plain.to_numpy(zero_copy_only=False)
    return values


def are_empty(texts: Any) -> NDArray[np.bool_]:
    """Whether each text (m,) stands for an empty cell among numbers, as "n/a" does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pa.array(sorted(EMPTY), texts.type)
    found: NDArray[np.bool_] = pc.is_in(pc.utf8_lower(texts), words).to_numpy(zero_copy_only=False)
    return found


def as_numbers(column: Any, kind: Any = np.float32, form: str = "plain") -> tuple[Floats, Strange]:
    """A column as numbers (n,) of the type `kind`, NaN where a cell is empty or no number, and what the latter are.

    form: the row of NUMBERS by which texts are read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(column.type):
        if pa.types.is_temporal(column.type):  # in seconds, whatever unit a file keeps them in
            ticks = pc.cast(column, pa.int64() if column.type.bit_width == 64 else pa.int32())
            column = pc.divide(pc.cast(ticks, pa.float64(), safe=False), float(PER_SECOND[column.type.unit]))
        return np.asarray(pc.cast(column, pa.from_numpy_dtype(kind), safe=False)), {}
    found = as_texts(column)
    return found.understood(numbers_in(found.texts, kind, form))


def is_long(kind: Any) -> bool:
    """Whether an Arrow type is of whole numbers with more bits than float64 keeps."""
    import pyarrow as pa

    return kind in (pa.int64(), pa.uint64())


def less(column: Any, centre: float) -> Floats:
    """Whole numbers of 64 bits less `centre`, taken away before anything is rounded, as float64 (n,); NaN where empty.

    Near 2^64 float64 has steps of 2048, and numbers that differ would be one.
    """
    import pyarrow.compute as pc

    empty = np.asarray(column.is_null())
    whole = np.asarray(pc.fill_null(column, 0))
    rounded: Floats = whole.astype(np.float64) - centre
    # modulo 2^64, where the difference is right if it is small
    exact = (whole.view(np.uint64) - np.uint64(int(centre) % 2**64)).view(np.int64).astype(np.float64)
    return np.where(empty, np.nan, np.where(np.abs(rounded) < 2.0**60, exact, rounded))


def as_seconds(column: Any, form: str) -> tuple[Floats, Strange]:
    """A column as seconds (n,) since 1970 in UTC, read as the row `form` of DATES says; NaN where it cannot be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_date(column.type):
        if pa.types.is_date(column.type):
            column = pc.cast(column, pa.timestamp("s"))
        ticks: Floats = np.asarray(pc.cast(pc.cast(column, pa.int64()), pa.float64(), safe=False))
        return ticks / PER_SECOND[column.type.unit], {}
    found = as_texts(column)
    return found.understood(seconds_in(found.texts, form))


def seconds_in(texts: Any, form: str) -> Floats:
    """The seconds (m,) since 1970 that texts (m,) name in the form of that row of DATES; NaN where one names none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.extract_regex(texts, DATES[form])
    parts = {field.name: pc.struct_field(found, [i]) for i, field in enumerate(found.type)}

    def number(name: str) -> NDArray[np.int64]:
        digits = pc.if_else(pc.equal(parts[name], ""), "0", parts[name])
        whole: NDArray[np.int64] = pc.fill_null(pc.cast(digits, pa.int64()), -1).to_numpy(zero_copy_only=False)
        return whole

    def text(name: str) -> Any:
        return pc.fill_null(pc.utf8_lower(parts[name]), "")

    year, month, day, hour, minute, second = map(number, "ymdHMS")
    half = text("p").to_numpy(zero_copy_only=False).astype(str)
    twelve = (half != "") & (hour >= 1) & (hour <= 12)
    hour = np.where(twelve, hour % 12 + 12 * (half == "pm"), np.where(half == "", hour, 99))
    right = (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second <= 60)
    months = (np.where(right, year, 1970) - 1970) * 12 + np.where(right, month, 1) - 1
    first = months.astype("datetime64[M]").astype("datetime64[D]")
    length = ((months + 1).astype("datetime64[M]").astype("datetime64[D]") - first).astype(np.int64)
    days = first.astype(np.int64) + day - 1
    zone = pc.replace_substring(text("z"), "z", "").to_numpy(zero_copy_only=False).astype(str)
    signs, digits = np.where(np.char.startswith(zone, "-"), -1, 1), np.char.replace(np.char.lstrip(zone, "+-"), ":", "")
    clock = np.where(digits == "", "0", digits).astype(np.int64)
    offset = signs * (clock // 100 * 3600 + clock % 100 * 60)
    seconds: Floats = (days * 86400 + hour * 3600 + minute * 60 + second - offset).astype(np.float64)
    return np.where(right & (day <= length), seconds, np.nan)


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


def as_vectors(name: str, column: Any, *, exact: bool = False) -> Floats:
    """A column as finite float32 (n, 1), or (n, d) if it holds lists, which in texts are [0.1, 0.2, ...].

    exact: as float64, where its numbers have more bits than float32.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        wrong, way_out = f"has an empty cell in column {name!r}", "Fill it in, or leave the column out with features=."
        raise Unfit(wrong, way_out, column.is_null().index(True).as_py(), ",")
    if is_text(column.type):
        column = pc.split_pattern_regex(pc.utf8_trim(column, " []\r\n\t"), r"[,\s]+")
    width = 1
    if is_list(column.type):
        least, width = pc.min_max(pc.list_value_length(column)).as_py().values()
        if least != width or not width:
            got = f"got {least} to {width} numbers"
            raise Unfit(f"must hold lists of one length in column {name!r}; {got}", "Even them out.")
        column = pc.list_flatten(column)
    try:
        wide = exact and column.type in (pa.float64(), pa.int64(), pa.uint64(), pa.int32(), pa.uint32())
        flat = pc.cast(column, pa.float64() if wide else pa.float32(), safe=False)
    except pa.ArrowException as error:
        quoted = re.search(r"Failed to parse string: '(.*)' as", str(error), re.DOTALL)
        raise not_numbers(name, quoted[1] if quoted else str(column.type)) from error
    values: Floats = np.asarray(flat).reshape(-1, width)
    check_finite(name, values)
    check_size(name, values)
    return values


def check_finite(name: str, values: NDArray[Any], *, empty: bool = False) -> None:
    """Raise InputError where numbers (n,) or (n, d) are infinite, or NaN unless that is an `empty` cell."""
    row = unfinite_row(np.where(np.isnan(values), 0, values) if empty else values)
    if row is not None:
        wrong = f"must hold finite numbers in column {name!r}; got nan or inf"
        raise Unfit(wrong, "Mend it, or leave it out.", row)


def check_size(name: str, values: NDArray[Any]) -> None:
    """Raise InputError where one of the numbers (n,) or (n, d) is so large that its square is beyond float32."""
    large = np.abs(values) > LARGEST  # which NaN is not
    if large.any():
        row = int(np.argmax(large.reshape(len(values), -1).any(1)))
        wrong = f"must hold numbers up to {LARGEST:.2g} in column {name!r}; got {float(values[large][0]):.3g}"
        raise Unfit(wrong, "Mend it, or divide the column by a power of ten.", row)


def not_numbers(column: str, got: str) -> Unfit:
    """The error of a column that cannot be a feature."""
    way_out = "Name it as id=, label= or truth=, or leave it out with features=."
    if got.startswith("["):
        way_out = f"If its lists are embeddings, name it with features={column!r}."
    return Unfit(f"must hold numbers in column {column!r}; got {got[:40]!r}", way_out)
