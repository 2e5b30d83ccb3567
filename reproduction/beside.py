"""Beside one another: the paper's best, our best by the paper's methods, the recipe of ours, and full supervision.

The first two are the best of whatever losses and schemes were published or recorded for a set, seen by test accuracy as
the paper's are; the last two are rows of tab-recipe. Worked out from the records; what there is none of is a dash.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reproduction.cells import Cell

SPEC = "tab-recipe"
TITLES = ("labels", "paper's best", "ours by the paper's methods", "ours by the recipe", "the same, full supervision")
PAPER = ("tab-main", "tab-baselines")
METHODS = (*PAPER, "clcifar10-simulated", "clcifar20-simulated")
NONE = "–"


@dataclass(frozen=True)
class Row:
    """A set and its labels: its name in the paper's tables and in ours, and the rows of tab-recipe."""

    words: str
    paper: str
    ours: str
    recipe: str
    full: str = ""


ROWS = (
    Row(
        "CIFAR10, one label, even", "cifar10", "cifar10", "CIFAR10, uniform, 1, 190 epochs", "CIFAR10, full supervision"
    ),
    Row("CIFAR20, one label, even", "cifar20", "cifar20", "CIFAR20, uniform, 1", "CIFAR20, full supervision"),
    Row(
        "CIFAR10, three of people's (paper) or of their matrix (ours)",
        "clcifar10",
        "clcifar10-simulated",
        "human matrix, 3, T counted",
        "CIFAR10, full supervision",
    ),
    Row(
        "CIFAR20, three of people's (paper) or of their matrix (ours)",
        "clcifar20",
        "clcifar20-simulated",
        "human matrix 20, 3, T counted",
        "CIFAR20, full supervision",
    ),
    Row("CIFAR10, three of LLaVA's", "aclcifar10", "aclcifar10", "LLaVA, 3", "CIFAR10, full supervision"),
    Row("CIFAR20, three of LLaVA's", "aclcifar20", "aclcifar20", "LLaVA 20, 3", "CIFAR20, full supervision"),
    Row("MNIST, one label, even, on a CPU", "", "", "MNIST, uniform, 1, small convolutional network"),
    Row("Fashion-MNIST, one label, even, on a CPU", "", "", "Fashion-MNIST, uniform, 1, small convolutional network"),
)


def lines(tables: Mapping[str, Sequence[Cell]]) -> list[list[str]]:
    """The rows of the table, by the cells of specs; one without a record of the recipe is left out."""
    by_label = {str(cell.place["label"]): cell for cell in tables.get(SPEC, ())}

    def best(dataset: str, specs: Sequence[str], value: Callable[[Cell], float | None]) -> str:
        its = [cell for name in specs for cell in tables.get(name, ()) if cell.place.get("dataset") == dataset]
        found = [known for cell in its if cell.figure == "test_accuracy" and (known := value(cell)) is not None]
        return f"{100 * max(found):.2f}" if found else NONE

    def of(label: str) -> str:
        cell = by_label.get(label)
        return NONE if cell is None or cell.mean is None else f"{100 * cell.mean:.2f} ({cell.n})"

    told = [
        [
            row.words,
            best(row.paper, PAPER, lambda cell: cell.published),
            best(row.ours, METHODS, lambda cell: cell.mean),
            of(row.recipe),
            of(row.full),
        ]
        for row in ROWS
    ]
    return [line for line in told if line[3] != NONE]
