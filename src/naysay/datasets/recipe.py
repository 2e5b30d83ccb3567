"""A table's columns as features: what each became is decided once and applied to any later table (`kinds`).

    columns = Columns.find(table)                 # an Arrow table, a DataFrame, or columns by name
    columns.apply(table), columns.names           # float32 (n, d), and the names of the d columns
    columns.told()                                # a sentence for each column
    Columns.from_dict(columns.as_dict(), columns.arrays())

A table of plain numbers stays as it is, constant columns included. In any other a constant column is left out, and so
are in every one columns that number the rows, or whose texts are all different.
"""

import dataclasses
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray

from naysay import memory
from naysay.datasets import kinds
from naysay.datasets.cells import Strange
from naysay.datasets.finding import find
from naysay.datasets.kinds import Column, LeftOut, Number, Text
from naysay.datasets.opening import reading
from naysay.datasets.wording import Wording
from naysay.errors import InputError
from naysay.words import count, few

FEWER = "Give fewer rows or columns."
MANY = 65_536  # rows turned into numbers at a time
TYPES: dict[Any, Any] = {str: str, int: int, bool: bool, float: (int, float)}  # of fields, and what JSON has for each
PLURALS = {row.kind: row.plural for row in kinds.KINDS.values()}


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table in their order, those that are left out too."""

    columns: tuple[Column, ...]

    @classmethod
    def find(cls, table: Any, named: Iterable[str] = ()) -> Self:
        """What the columns of a table are; `named`: those that were named as features, which is no accident."""
        table, explicit = as_arrow(table), set(named)
        with reading("the table"):
            found = [find(name, table.column(name), named=name in explicit) for name in table.column_names]
        return cls.settle(tuple(found), explicit)

    @classmethod
    def settle(
        cls, columns: tuple[Column, ...], named: set[str] | frozenset[str] = frozenset(), *, warn: bool = True
    ) -> Self:
        """The columns, less constant ones where not all are plain; `warn` of left out ones that were `named`."""
        if not all(column.is_plain or isinstance(column, LeftOut) for column in columns):
            columns = tuple(
                LeftOut(column.name, column.empty, why="constant")
                if isinstance(column, Number) and column.constant and column.name not in named
                else column
                for column in columns
            )
        for column in columns:
            if warn and isinstance(column, LeftOut) and column.name in named:
                warnings.warn(f"the column {column.name!r} was named in features= and is {column.told()}", stacklevel=4)
        return cls(columns)

    @property
    def used(self) -> tuple[Column, ...]:
        """Those that are not left out."""
        return tuple(column for column in self.columns if not isinstance(column, LeftOut))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        return tuple(column.name for column in self.used)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that come out."""
        return tuple(name for column in self.used for name in column.names)

    @property
    def n_columns(self) -> int:
        """How many columns come out."""
        return sum(column.n_columns for column in self.used)

    @property
    def is_plain(self) -> bool:
        """Whether the table's columns come out as they are, one for one."""
        return all(column.is_plain for column in self.columns)

    @property
    def learned(self) -> tuple[str, ...]:
        """What was found among the rows of training and would be another among others, in words, each once."""
        return tuple(dict.fromkeys(what for column in self.used for what in column.learned))

    def apply(self, table: Any, strange: dict[str, Strange] | None = None) -> NDArray[np.float32]:
        """The features (n, d) of a table like that of training.

        strange: gets, by column, the cells that were not understood: texts that are no level of a category, that are no
        numbers, no dates.
        """
        table = as_arrow(table)
        missing = [name for name in self.inputs if name not in table.column_names]
        if missing:
            lacks = few(map(repr, missing), 5)
            raise InputError(f"the table lacks the columns {lacks}, which the model was trained on. Add them.")
        memory.afford(4 * table.num_rows * self.n_columns, "the table as numbers", FEWER)
        x = np.empty((table.num_rows, self.n_columns), np.float32)
        place = 0
        for column in self.used:
            for start in range(0, table.num_rows, MANY):
                with reading("the table", start):
                    block, odd = column.apply(table.column(column.name).slice(start, MANY).combine_chunks())
                x[start : start + len(block), place : place + block.shape[1]] = block
                if odd and strange is not None:
                    strange[column.name] = dict(Counter(strange.get(column.name, {})) + Counter(odd))
            place += column.n_columns
        return x

    def told(self) -> list[str]:
        """A sentence for each column: what it became."""
        return [f"{column.name}: {column.told()}" for column in self.columns]

    def account(self) -> str:
        """All columns in one line: how many of each kind, and which are left out and why."""
        parts = []
        for kind, plural in PLURALS.items():
            if of := [column for column in self.used if column.kind == kind]:
                width, empty = sum(column.n_columns for column in of), sum(column.empty > 0 for column in of)
                more = [f"{empty} with empty cells"] * (empty > 0) + [count(width, "column")] * (width > len(of))
                parts.append(
                    f"{len(of)} {kind if len(of) == 1 else plural}" + (f" ({', '.join(more)})" if more else "")
                )
        left = [f"{column.why} {column.name!r}" for column in self.columns if isinstance(column, LeftOut)]
        return "columns: " + ", ".join(parts) + (f"; left out: {few(left)}" if left else "")

    def as_dict(self) -> list[dict[str, Any]]:
        """The columns as plain data; what is too long for it is in `arrays`."""
        return list(map(_plain, self.columns))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The words, weights and directions of text columns, by their numbers among the columns."""
        texts = {i: column.known for i, column in enumerate(self.columns) if isinstance(column, Text)}
        return {f"{i}.{name}": array for i, known in texts.items() for name, array in known.arrays().items()}

    @classmethod
    def from_dict(cls, told: Any, arrays: Mapping[str, Any]) -> Self:
        """The columns that `as_dict` and `arrays` told; InputError where they cannot be."""
        if not isinstance(told, list):
            raise InputError("the recipe of a table's columns must be a list.")
        columns = tuple(map(_from_plain, told))
        if len({column.name for column in columns}) != len(columns):
            raise InputError("the recipe of a table's columns names one twice.")
        return cls(tuple(_with_wording(i, column, arrays) for i, column in enumerate(columns)))


def unlike(columns: Columns, strange: Mapping[str, Strange]) -> str:
    """The cells that were not understood, and what they were taken for, as part of a sentence."""
    said = []
    for column in columns.used:
        if odd := strange.get(column.name):
            named = next((text for text in odd if text), None)
            what = count(sum(odd.values()), "cell") + ("" if named is None else f" such as {named[:40]!r}")
            said.append(f"{what} in {column.name!r}, {'empty' if named is None else column.instead}")
    return "; ".join(said)


def _plain(column: Column) -> dict[str, Any]:
    """The kind of a column and those of its fields that are not at their defaults."""
    fields = {one.name: (getattr(column, one.name), one.default) for one in dataclasses.fields(column) if one.repr}
    told = {name: value for name, (value, default) in fields.items() if value != default}
    return {"kind": column.kind, **{name: list(v) if isinstance(v, tuple) else v for name, v in told.items()}}


def _from_plain(given: Any) -> Column:
    """The column that `_plain` told; InputError where it cannot be one."""
    row: Any = kinds.KINDS.get(str(given.get("kind"))) if isinstance(given, dict) else None
    if row is None or not isinstance(given.get("name"), str):
        raise InputError(f"a column must have a name and a kind of {', '.join(kinds.KINDS)}.")
    hints = get_type_hints(row)
    known = {one.name: hints[one.name] for one in dataclasses.fields(row) if one.repr}
    values = {name: value for name, value in given.items() if name != "kind"}
    for name, value in values.items():
        if not _is_of(known.get(name), value):
            raise InputError(f"the column {given['name']!r:.80} cannot have {name!r:.40} as it is.")
    column: Column = row(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})
    column.check()
    return column


def _is_of(hint: Any, value: Any) -> bool:
    """Whether a value out of JSON is what a field of this type may hold."""
    if hint in TYPES:
        return isinstance(value, TYPES[hint]) and isinstance(value, bool) == (hint is bool)
    return hint == tuple[str, ...] and isinstance(value, list) and all(map(_is_text, value))


def _is_text(value: Any) -> bool:
    """Whether a value is text that UTF-8 can write."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value))


def _with_wording(place: int, column: Column, arrays: Mapping[str, Any]) -> Column:
    if not isinstance(column, Text):
        return column
    names = [f"{place}.{name}" for name in ("words", "idf", "components")]
    if not set(names) <= arrays.keys():
        raise InputError(f"the words of the column {column.name!r} are not there.")
    return replace(column, wording=Wording.from_arrays(*(arrays[name] for name in names)))


def as_arrow(table: Any) -> Any:
    """An Arrow table of one, of a DataFrame (pandas, polars), of columns by name, or of an array (n, d)."""
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return table
    if isinstance(table, np.ndarray) and table.ndim == 2:
        table = {f"x{j}": column for j, column in enumerate(table.T)}
    if hasattr(table, "keys"):
        columns = {str(name): _as_array(name, table[name]) for name in list(table.keys())}
        lengths = {len(column) for column in columns.values()}
        if len(lengths) == 1:
            return pa.table(columns)
    elif hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    must = "a table must be a DataFrame, or columns of one length by name"
    raise InputError(f"{must}; got {type(table).__name__}. Columns are texts, numbers, times or lists.")


def _as_array(name: Any, cells: Any) -> Any:
    """A column's cells as an Arrow array; those of several types become texts."""
    import pyarrow as pa

    if isinstance(cells, pa.Array | pa.ChunkedArray):
        return cells
    values = cells if isinstance(cells, list | tuple) else np.asarray(cells)
    try:
        return pa.array(values, from_pandas=True)
    except pa.ArrowException as error:
        if np.ndim(values) != 1:
            raise InputError(f"the column {name!r} must hold a cell for each row ({error}).") from error
        texts = [None if cell is None or (isinstance(cell, float) and np.isnan(cell)) else str(cell) for cell in values]
        return pa.array(texts, pa.string())
