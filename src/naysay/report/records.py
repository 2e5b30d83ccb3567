"""What a report holds: frozen records of plain numbers, lists and arrays, which the commands fill and `page` draws.

Every part is optional, and a part that is not there leaves no hole in the page. Classes are numbers, as everywhere;
`Report.classes` gives their names. A value that is None or NaN was not measured and is shown as missing, never as zero.
What can be known only from ordinary labels is marked `needs_truth`, and the page says so beside it: no choice was made
with it. A value with the unit "%" is a share between 0 and 1; the page multiplies by 100.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from naysay.errors import InputError

Array = npt.NDArray[Any]
Numbers = Array | Sequence[float | None]
Drawn = dict[str, Any]  # a part of the page as its template takes it: text, places in percent, SVG paths


@dataclass(frozen=True)
class Value:
    """A figure with its uncertainty; what that is (standard error, sd over seeds) the column or the note says.

    low, high: an interval, in the place of an error; where it alone may be told, the value is None.
    """

    value: float | None
    error: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class KeyFigure:
    """One of the few numbers at the top of the page; the note says what ± means and on how many rows."""

    name: str
    value: Value
    unit: Literal["", "%"] = "%"
    digits: int = 1
    note: str = ""
    needs_truth: bool = False


@dataclass(frozen=True)
class Column:
    """A column of the results: `note` says where the numbers come from and what ± is, `better` which end is good.

    The page groups columns by what they rest on: complementary labels alone, the truth, or neither (`cost`: time).
    """

    name: str
    unit: Literal["", "%"] = "%"
    digits: int = 1
    better: Literal["higher", "lower", ""] = "higher"
    note: str = ""
    needs_truth: bool = False
    cost: bool = False


@dataclass(frozen=True)
class Method:
    """A row of the results: one value for each column; `chosen` marks the one that the complementary labels chose."""

    name: str
    values: Sequence[Value]
    chosen: bool = False
    note: str = ""


@dataclass(frozen=True)
class Results:
    """Methods x figures; the columns in `drawn` are also drawn as dots with whiskers, say an estimate and its truth.

    by: the column by which methods are sorted, the chosen one first; without it they stand as given.
    """

    columns: Sequence[Column]
    methods: Sequence[Method]
    note: str = ""
    drawn: Sequence[str] = ()
    by: str = ""

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        for method in self.methods:
            if len(method.values) != len(names):
                must = f"method {method.name!r} must have one value for each of the {len(names)} columns"
                raise InputError(f"{must}; got {len(method.values)}. Give Value(None) where nothing was measured.")
        for name in (*self.drawn, *([self.by] if self.by else [])):
            if name not in names:
                there = f"the columns are {', '.join(names)}"
                raise InputError(f"drawn must name columns of the results; got {name!r}, and {there}.")


@dataclass(frozen=True)
class Dots:
    """Named rows with a value for each column, drawn as dots with whiskers on one axis."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[tuple[str, Sequence[Value]]]
    note: str = ""


@dataclass(frozen=True)
class Bars:
    """Named rows with a number each, drawn as bars from zero."""

    title: str
    rows: Sequence[tuple[str, float]]
    unit: Literal["", "%"] = ""
    digits: int = 0
    note: str = ""


@dataclass(frozen=True, eq=False)
class Series:
    """A line of a chart: y (n,), and optionally the band `low` to `high` around it."""

    name: str
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    needs_truth: bool = False


@dataclass(frozen=True, eq=False)
class Curves:
    """A line chart of several series over one x (n,), mostly epochs; `note` says what is drawn and what the bands are.

    An x at which nothing was measured is left out; where only some series were, the others have a gap.
    """

    title: str
    x: Numbers
    series: Sequence[Series]
    x_name: str = "epoch"
    unit: Literal["", "%"] = "%"
    note: str = ""

    def __post_init__(self) -> None:
        n = len(self.x)
        for series in self.series:
            for values in (series.y, series.low, series.high):
                if values is not None and len(values) != n:
                    must = f"series {series.name!r} of {self.title!r} must have one value for each of the {n} x values"
                    raise InputError(f"{must}; got {len(values)}. Give None where nothing was measured.")


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Label mass (rows, columns), by class or of a sample of items; the heat maps of a report share one scale."""

    title: str
    values: Array
    row_names: Sequence[str]
    column_names: Sequence[str]
    row_title: str = "class"
    column_title: str = "mass on “not …”"
    note: str = ""
    needs_truth: bool = False

    def __post_init__(self) -> None:
        rows, columns, shape = len(self.row_names), len(self.column_names), np.shape(self.values)
        if shape != (rows, columns):
            has = f"heat map {self.title!r} has {rows} row and {columns} column names"
            raise InputError(f"{has}; got values {shape}.")


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Points (n, 2) of items in a plane, say from `project_2d`, their predicted classes, and what hovering tells."""

    points: Array
    predicted: Sequence[int] | Array
    names: Sequence[str] | None = None
    probability: Numbers | None = None
    labels: Sequence[Sequence[int]] | Array | None = None
    y_true: Sequence[int] | Array | None = None
    note: str = ""

    def __post_init__(self) -> None:
        shape, n = np.shape(self.points), len(self.points)
        if len(shape) != 2 or shape[1] != 2:
            raise InputError(f"points must be (n, 2); got shape {shape}. For features use naysay.report.project_2d.")
        for name in ("predicted", "names", "probability", "labels", "y_true"):
            values = getattr(self, name)
            if values is not None and len(values) != n:
                raise InputError(f"{name} must have one entry for each of the {n} points; got {len(values)}.")


@dataclass(frozen=True, eq=False)
class Item:
    """One instance: its id, the classes it is said not to be, and whatever else is known of it.

    `image` is uint8, (H, W) grey or (H, W, 1 | 3 | 4), channels last; `probabilities` and `augmented` are (K,).
    `predicted` is the class with the highest probability unless given (losses that decode otherwise). Neighbours are
    items too, nearest first. `values` are the item's own, by the names of its columns.
    """

    name: str
    labels: Sequence[int] = ()
    image: Array | None = None
    probabilities: Numbers | None = None
    predicted: int | None = None
    augmented: Numbers | None = None
    neighbors: Sequence["Item"] = ()
    y_true: int | None = None
    note: str = ""
    values: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, eq=False)
class Report:
    """Everything on the page, top to bottom.

    `summary` is the one sentence to remember. `audit` is HTML that its maker has already escaped, its headings from h3
    down; all else is text and is escaped here. `config` may be nested; `facts` are further lines of the last section,
    say hardware.
    """

    title: str
    summary: str = ""
    classes: Sequence[str] = ()
    key_figures: Sequence[KeyFigure] = ()
    results: Results | None = None
    learning: Sequence[Curves] = ()
    sharing: Sequence[Curves] = ()
    heat_maps: Sequence[HeatMap] = ()
    feature_map: FeatureMap | None = None
    examples: Sequence[Item] = ()
    doubtful: Sequence[Item] = ()
    audit: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    data_hash: str = ""
    date: str = ""
    command: str = ""
    predictions: Sequence[Dots | Bars] = ()


def class_name(classes: Sequence[str], number: int) -> str:
    """The name of a class, or its number where there is none."""
    return str(classes[number]) if 0 <= number < len(classes) else str(number)


def floats(values: Numbers) -> Array:
    """The numbers as float64, NaN where one is None."""
    return np.array([np.nan if v is None else v for v in values], float)
