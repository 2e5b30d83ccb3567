"""What the records say of the paper's claims: where our cells land, and whether many rounds beat one and one beats
none.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from naysay.paper import words
from naysay.paper.cells import Cell

ACCURACIES = ("test_accuracy", "best_test_accuracy")  # the figures that the order is about
# each scheme and the one that it should beat
ORDER = (("rss", "none"), ("rms", "rss"), ("dss", "none"), ("dms", "dss"))


@dataclass(frozen=True)
class Compared:
    """A pair that the paper orders: the cell that should be higher, and the one that it should beat."""

    row: str
    better: Cell
    worse: Cell

    @property
    def holds(self) -> bool:
        """Whether ours are in the paper's order."""
        return (self.better.mean or 0.0) > (self.worse.mean or 0.0)

    def __str__(self) -> str:
        higher, lower = (words.value("scheme", cell.place["scheme"]) for cell in (self.better, self.worse))
        kinds = {self.better.standing.kind, self.worse.standing.kind}
        mixed = f" ({self.better.standing.kind} against {self.worse.standing.kind} runs)" if len(kinds) > 1 else ""
        return f"{self.row}: {higher} {words.percent(self.better.mean)} is not over {lower} {words.percent(self.worse.mean)}{mixed}"


def orders(cells: Sequence[Cell]) -> tuple[list[Compared], int]:
    """Every pair of recorded cells that differ in the scheme alone and that the paper orders, and how many pairs lack a
    record.
    """
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        if "scheme" in cell.place and cell.figure in ACCURACIES:
            row = words.place(cell.place, [name for name in cell.place if name != "scheme"])
            rows.setdefault(row, {})[str(cell.place["scheme"])] = cell
    pairs = [
        Compared(row, schemes[better], schemes[worse])
        for row, schemes in rows.items()
        for better, worse in ORDER
        if better in schemes and worse in schemes
    ]
    known = [pair for pair in pairs if pair.better.n and pair.worse.n]
    return known, len(pairs) - len(known)


def landed(cells: Sequence[Cell]) -> str:
    """In words how many cells are below, on and above the paper, and how many of the published values have no record
    yet.
    """
    counted = Counter(cell.verdict for cell in cells if cell.verdict)
    missing = sum(cell.published is not None and not cell.n for cell in cells)
    parts = [f"{counted[verdict]} {verdict}" for verdict in ("below", "on", "above")]
    return f"{', '.join(parts)} the paper, {missing} of {sum(cell.published is not None for cell in cells)} without a record"
