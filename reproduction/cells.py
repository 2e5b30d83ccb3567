"""Cells: mean ± sd (n) over seeds of what stands for a place, beside the published value; and what they say of it.

The published means are of five runs. The standard error of the difference takes the sd of either side, and where one
has none (a single run of ours, a number of theirs without ±) the other's for both: se = sqrt(sd²/n + sd²/5). A cell is
"on" the paper within two standard errors, or, where neither side has an sd, within one point (below ten percent: within
a tenth of the published value); else "below" or "above" it. Over all cells of a table the paper claims two orders: many
rounds beat one, and one beats none; and weights by distance beat weights by rank. A pair says something of it where its
difference exceeds two standard errors. Of its figures on sharing efficiency it says that accuracy follows it on a line.
"""

import functools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reproduction import words
from reproduction.published import RUNS, Number, published
from reproduction.spec import Spec
from reproduction.standing import Record, Standing, standings
from reproduction.values import Value

ERRORS = 2.0  # standard errors of the difference within which a mean is "on" the paper
# where there is no standard error: one point of a hundred, or a tenth of what is smaller
POINTS, TENTH = 0.01, 0.1
ROUNDED = 0.0005  # of a goal, which is given in tenths of a percent
EXACT = 1e-9  # what float arithmetic may add to a difference that is just within the bound

ACCURACIES = ("test_accuracy", "best_test_accuracy")  # the figures that the order is about
# what the paper says of schemes: each and the one that it should beat
ORDERS = {
    "multi-step over single-step over none": (("rss", "none"), ("rms", "rss"), ("dss", "none"), ("dms", "dss")),
    "by distance over by rank": (("dss", "rss"), ("dms", "rms")),
}

OURS = (
    "Ours is mean ± sd (n seeds), in percent; of a grid, each seed's setting is chosen by complementary labels alone."
)
COMPARED = (
    "The difference is ours less the paper's, in points and in standard errors, se = sqrt(sd²/n + sd²/5) of our sd and "
    "theirs; a single run is taken to spread like the paper's runs, and a published number without ± like ours. "
    f"“on”: within {ERRORS:.0f} se; where neither has an sd, within {POINTS * 100:.0f} point, "
    f"or a tenth of a published value below {POINTS / TENTH * 100:.0f} %."
)

GOALS = "The difference is ours less the goal, in points; it is reached where our mean, to a tenth, is not below it."


@dataclass(frozen=True)
class Cell:
    """A figure of a place: the values of its seeds as shares, the published one, and what stands behind them."""

    standing: Standing
    figure: str
    values: tuple[float, ...]
    paper: Number | None

    @property
    def place(self) -> Mapping[str, Value]:
        """What tells the cell from the others of its table."""
        return self.standing.place

    @property
    def n(self) -> int:
        """How many seeds it has."""
        return len(self.values)

    @functools.cached_property
    def mean(self) -> float | None:
        """The mean over seeds, None where there is no value."""
        return statistics.fmean(self.values) if self.values else None

    @functools.cached_property
    def sd(self) -> float | None:
        """The standard deviation over seeds, None for fewer than two."""
        return statistics.stdev(self.values) if self.n > 1 else None

    @property
    def published(self) -> float | None:
        """The paper's mean."""
        return None if self.paper is None else self.paper.mean

    @property
    def beside(self) -> str:
        """What it is compared with, in a word: the "paper", or a "goal" of ours."""
        return "goal" if self.paper and self.paper.goal else "paper"

    @property
    def spread(self) -> float | None:
        """The standard deviation of a run: ours, else the paper's, None where neither is known."""
        return self.sd if self.sd is not None else self.paper.sd if self.paper else None

    @property
    def difference(self) -> float | None:
        """Ours less the published, as a share."""
        return None if self.mean is None or self.published is None else self.mean - self.published

    @property
    def error(self) -> float | None:
        """The standard error of the difference; of a side without an sd, as if its runs spread like the other's."""
        if self.paper is None or self.paper.goal or not self.n or self.spread is None:
            return None
        theirs = self.spread if self.paper.sd is None else self.paper.sd
        return math.sqrt(self.spread**2 / self.n + theirs**2 / RUNS)

    @property
    def in_errors(self) -> float | None:
        """The difference in units of its standard error."""
        return self.difference / self.error if self.difference is not None and self.error else None

    @property
    def verdict(self) -> str:
        """Where it lands: "below", "on" or "above" the paper; a goal is "reached", or the cell is "short" of it.

        Empty where there is nothing to compare.
        """
        if self.difference is None or self.paper is None:
            return ""
        if self.paper.goal:
            return "reached" if self.difference >= -(ROUNDED + EXACT) else "short"
        bound = min(POINTS, TENTH * (self.published or 0.0)) if self.error is None else ERRORS * self.error
        return "on" if abs(self.difference) <= bound + EXACT else "below" if self.difference < 0 else "above"

    @property
    def simulated(self) -> bool:
        """Whether its labels were drawn from a matrix where the paper has people's."""
        return any(record["data"]["simulated"] for record in self.standing.chosen)


def cells(spec: Spec, records: Iterable[Record]) -> list[Cell]:
    """Every cell of the spec: place by place in the spec's order, and for each place its figures."""
    theirs = published(spec.name)
    return [
        Cell(standing, figure, _values(standing, figure), theirs.at(standing.place, figure))
        for standing in standings(spec, records)
        for figure in figures(spec)
    ]


def figures(spec: Spec) -> list[str]:
    """The figures shown: those of the spec, an x that is one of them, and others that the paper gives a number for."""
    x = [spec.show["x"]] if spec.kind == "figure" and spec.show["x"] in words.FIGURES else []
    return list(dict.fromkeys([*x, *spec.show["figures"], *published(spec.name).figures]))


@dataclass(frozen=True)
class Pair:
    """Two recorded cells that the paper orders: the one that should be higher, and the one that it should beat."""

    row: str
    better: Cell
    worse: Cell

    @property
    def holds(self) -> bool | None:
        """Whether ours are in the paper's order; None where the difference is within its error, or none is known."""
        spreads = self.better.spread, self.worse.spread
        if spreads[0] is None or spreads[1] is None:
            return None
        error = math.hypot(spreads[0] / math.sqrt(self.better.n), spreads[1] / math.sqrt(self.worse.n))
        difference = (self.better.mean or 0.0) - (self.worse.mean or 0.0)
        return None if abs(difference) <= ERRORS * error else difference > 0

    def __str__(self) -> str:
        higher, lower = (
            f"{words.value('scheme', cell.place['scheme'])} {words.percent(cell.mean)}"
            for cell in (self.better, self.worse)
        )
        kinds = [cell.standing.kind for cell in (self.better, self.worse)]
        mixed = f" ({kinds[0]} against {kinds[1]} runs)" if kinds[0] != kinds[1] else ""
        return f"{self.row}: {higher} is not over {lower}{mixed}"


def pairs(cells: Sequence[Cell], order: str) -> tuple[list[Pair], int]:
    """Every pair of recorded cells alike but for the scheme that is in one of ORDERS, and how many lack a record."""
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        if "scheme" in cell.place and cell.figure in ACCURACIES:
            row = words.place(cell.place, [name for name in cell.place if name != "scheme"])
            rows.setdefault(row, {})[str(cell.place["scheme"])] = cell
    found = [
        Pair(row, schemes[better], schemes[worse])
        for row, schemes in rows.items()
        for better, worse in ORDERS[order]
        if better in schemes and worse in schemes
    ]
    known = [pair for pair in found if pair.better.n and pair.worse.n]
    return known, len(found) - len(known)


def correlations(cells: Sequence[Cell], x: str) -> dict[tuple[str, str], tuple[float, int]]:
    """Of each loss and other figure of the cells Pearson's correlation with the figure x, run by run, and of how many.

    Of less than three runs, or of runs that are all alike, there is none.
    """
    runs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for cell in cells:
        for record in cell.standing.chosen if cell.figure != x else ():
            both = [record["figures"].get(name) for name in (x, cell.figure)]
            if None not in both:
                runs.setdefault((str(record["values"]["loss"]), cell.figure), []).append((both[0], both[1]))
    return {
        of: (statistics.correlation(*zip(*points, strict=True)), len(points))
        for of, points in runs.items()
        if len(points) > 2 and all(len(set(side)) > 1 for side in zip(*points, strict=True))
    }


def landed(cells: Sequence[Cell]) -> str:
    """In words how many cells are below, on and above the paper, and how many published values have no record yet."""
    counted = Counter(cell.verdict for cell in cells if cell.verdict)
    compared = [cell for cell in cells if cell.published is not None]
    missing = sum(not cell.n for cell in compared)
    if any(cell.paper and cell.paper.goal for cell in compared):
        reached = f"{counted['reached']} of {len(compared)} goals reached"
        return f"{reached}, {counted['short']} short, {missing} without a record"
    parts = [f"{counted[verdict]} {verdict}" for verdict in ("below", "on", "above")]
    return f"{', '.join(parts)} the paper, {missing} of {len(compared)} without a record"


def _values(standing: Standing, figure: str) -> tuple[float, ...]:
    """The seeds' values; a run that could not measure the figure (null) has none."""
    found = [record["figures"].get(figure) for record in standing.chosen]
    return tuple(float(value) for value in found if value is not None)
