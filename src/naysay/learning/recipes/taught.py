"""Taught: rows of numbers are taught by a teacher, neighbours and own labels (`recipes.teaching`), without views.

For tables, and for embeddings of any model. A row has no views: teacher and student see it as it is, and mixing it with
another is what keeps the student from learning targets by heart. Before anything is learned, labels are shared between
neighbours of the standardised rows, by angle or by distance: as hidden labels are better foreseen
(`naysay.augmentation.choice`). Embeddings mean directions, a table of few columns places.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from naysay.learning.recipe import Recipe, Task
from naysay.learning.recipes import teaching
from naysay.seeds import torch_stream

EVENER = 1 / 4  # of the gamma that distances call for: many rounds travel far, and want near neighbours weighed alike


class Taught(teaching.Teaching):
    """Rows (n, d), standardised."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, teaching.Options(**task.config.options))

    def draw(self, epoch: int, order: Tensor) -> Tensor:
        """How much of each row is mixed with another."""
        generator = torch_stream(self.config.seed, f"mixes/{epoch}")
        numbers = torch.rand(len(self.x), 1, generator=generator, device=generator.device)
        return numbers.to(order.device).index_select(0, order)

    def see(self, rows: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        """The rows themselves, twice."""
        seen = self.inputs(rows, None)
        return seen, seen

    def first_space(self) -> Tensor:
        """The rows, by angle or as they are, scaled for weights of gamma 1: as neighbours better foresee labels."""
        best, gamma = self.best_foreseen([self.x, F.normalize(self.x, dim=1)], "auto", EVENER)
        return best * math.sqrt(gamma)

    def staying_space(self) -> Tensor:
        """The rows, standardised."""
        return self.x


ROW = Recipe(
    "taught",
    Taught,
    "naysay",
    "rows, as of a table or of embeddings: a teacher, neighbours and own labels, shared again in its space",
    options=teaching.Options,
    published={"batch_size": 128, "epochs": 40, "learning_rate": 5e-3, "weight_decay": 0.05},
    unused=("loss", "eps", "encoder", "crop", "padding", "flip"),
    as_given=True,
    shares=True,
    takes="rows",
)
