"""Views of an image as like as can be, while images code at a high rate: the loss of EMP-SSL (Tong et al. 2023).

The projections z of an image's views are unit vectors. Two terms: they agree with their mean, and over the images of a
batch those of one view fill the space, by the total coding rate R(Z) = 1/2 log det(I + d / (n eps) Z^T Z) of n rows of
d numbers (Ma et al. 2007). No predictor, no stopped gradient, no moving average: R keeps the outputs from collapsing.

The loss is that of the public code over its batch of 100: -invariance * agreement - R / n, with 200 / 100 = 2 for the
invariance, so that both terms keep their proportion in batches of other sizes. Batch statistics are those of all views
together. The source's 20 patches of a quarter of the area gave way to 8 random crops of 0.2 to 1 of it, which were
better at equal time (docs/FEATURES.md); `views` and `view` bring them back. SGD stands for LARS, which was not tried,
and there is no blur and no solarisation. The views are three quarters of the image's side: 9/16 of the arithmetic, and
as a random crop enlarges what is in it by about as much, the network sees whole images at the scale it was trained on.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from naysay.errors import InputError
from naysay.learning.recipe import Recipe, Task
from naysay.learning.recipes import multiview
from naysay.learning.recipes.multiview import SETTINGS, SHARE, UNUSED, MultiView, relative_spread
from naysay.learning.viewnorm import norm_by_view
from naysay.seeds import lent


@dataclass(frozen=True)
class Options(multiview.Options):
    """What the recipe is told beside what all recipes of several views are."""

    views: int = 8
    invariance: float = 2.0  # the weight of the agreement of views against the coding rate of an image
    distortion: float = 0.2  # eps, up to which rows are coded
    hidden: int = 4096  # units of the projector's two hidden layers
    projection: int = 1024  # width of the projections

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.distortion <= 0:
            raise InputError(f"distortion must be above 0; got {self.distortion}.")


def coding_rate(z: Tensor, distortion: float) -> Tensor:
    """The total coding rate (...,) in nats of rows `z` (..., n, d)."""
    n, d = z.shape[-2:]
    products = z @ z.mT if n <= d else z.mT @ z  # I + Z Z^T and I + Z^T Z have the same determinant
    inner = torch.eye(min(n, d), dtype=z.dtype, device=z.device) + d / (n * distortion) * products
    # half of log det is the sum of logs of the factor's diagonal; not checked, as that would wait for the device
    factor: Tensor = torch.linalg.cholesky_ex(inner)[0]
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def agreement(z: Tensor) -> Tensor:
    """The mean cosine between the views `z` (views, n, d), unit vectors, and their mean: the length of that mean."""
    length: Tensor = torch.linalg.vector_norm(z.mean(0), dim=-1)
    return length.mean()


class Emp(MultiView):
    """Encoder and projector; the terms are the batch's loss."""

    options: Options

    def __init__(self, task: Task) -> None:
        options: Options = ROW.read_options(task.config)
        config, processes = task.config, task.processes
        super().__init__(task, options, SHARE)
        encoder = self.make_encoder(task)
        with lent(config.seed, "pretrain/heads"):
            projector = make_projector(options.width, options.hidden, options.projection)
        self.online = nn.Sequential(encoder, projector)
        norm_by_view(self, options.views * config.batch_size // processes.size, processes)  # all views are one

    def forward(self, rows: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The loss, whose rate is that of the rows of all processes, and the relative spread of the projections."""
        outputs = self.online(self.make_views(rows, draws)).float()
        # a determinant needs all 24 bits
        with torch.autocast(rows.device.type, enabled=False):
            z = F.normalize(outputs, dim=1).reshape(self.options.views, -1, outputs.shape[1])
            every = self._of_all(z)
            rate = coding_rate(every, self.options.distortion).mean() / len(rows)
            return -self.options.invariance * agreement(z) - rate, relative_spread(every[0])[None]

    def _of_all(self, z: Tensor) -> Tensor:
        """The rows (views, n, d) of all processes; gradients go back to each of them."""
        place = self.processes
        if place.size == 1:
            return z
        parts = [z if rank == place.rank else torch.zeros_like(z) for rank in range(place.size)]
        return place.mean(torch.cat(parts, 1)) * place.size


def make_projector(width: int, hidden: int, size: int) -> nn.Sequential:
    """The projector (n, width) -> (n, size) of three layers."""
    layers = [nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU()]
    layers += [nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden, size))


ROW = Recipe(
    "emp",
    Emp,
    "Tong et al. 2023",
    "an encoder from images alone, by the coding rate of many small views",
    False,
    Options,
    {**SETTINGS, "batch_size": 128, "epochs": 150, "learning_rate": 0.2},
    UNUSED,
)
