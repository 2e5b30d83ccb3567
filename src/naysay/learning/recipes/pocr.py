"""POCR: the loss of the labels, and outputs that stay alike from view to view on the classes that nobody named.

Wang, Feng and Zhang 2021, "Learning from Complementary Labels via Partial-Output Consistency Regularization". With p
the network's prediction on a weak view, p' that on each of two strong ones, and Y the classes that an image is not,

    loss  =  - sum_{k in Y} log(1 - p_k)  +  lambda(epoch) * sum_{p'} KL(q || p'),      q_k = p_k / sum_{j not in Y} p_j

q, the partial output, is 0 on Y and taken as given: no gradient goes through it. As it says nothing of Y, the distance
is that of the partial outputs plus - log(1 - p'(Y)), so that strong views learn the labels too. lambda rises evenly
from 0 in the first epoch to its largest after a hundred, and that is no detail: a network that gives every image the
same output has little distance to pay, and ends there if lambda is large before it has learned from the labels.

The abstract and the authors' public code are the source; the paper's text was not at hand. Theirs: the loss above, 1
for the largest lambda, 100 of 200 epochs for its rise, SGD at 0.1 with batches of 64, weak views shifted by 4 and
flipped, strong ones with a square of half the side cut out, each view through the network by itself. Ours: crops and
colours in the place of AutoAugment, a rate that falls as a cosine and not in two steps, ResNet-18 for its pre-activated
form, log space, and labels that are soft. Of these a class is masked by m_k = comp_k / max_j comp_j, its naming as a
part of the most named one's: 1 or 0 for a set of labels, in between for shared labels or repeated ones. q is then
p_k (1 - m_k), normalised, and the loss weighs -log(1 - p_k) by m_k. An image without labels, or with all of them, has
nothing masked, q = p; the first has no loss of labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from naysay.errors import InputError
from naysay.learning.recipe import SURE, Recipe, Task, refuse_non_numbers
from naysay.learning.recipes.plain import Plain
from naysay.learning.recipes.strong import STRONG_DRAWS, StrongView
from naysay.learning.views import checked_view, draw_moves
from naysay.losses.logspace import log_not
from naysay.seeds import torch_stream

MASKED = -1e4  # to the logit of a class that is masked whole: 0 in float32, and finite where all are


@dataclass(frozen=True)
class Options:
    """The recipe's own settings."""

    consistency: float = 1.0  # the largest lambda
    ramp: int = 100  # epochs over which lambda rises to it, from 0 in the first
    views: int = 2  # strong ones
    cutout: float = 0.5  # the side of the square that is cut out of a strong view, as a part of the image's
    view: Mapping[str, Any] = field(default_factory=dict)  # settings of the strong views, as those of `views.View`

    def __post_init__(self) -> None:
        refuse_non_numbers(self)
        object.__setattr__(self, "view", checked_view(self.view))
        if not 0 <= self.cutout <= 1:
            raise InputError(f"cutout must be between 0 and 1; got {self.cutout}.")
        if not self.consistency >= 0:
            raise InputError(f"consistency must be at least 0; got {self.consistency}.")


def masks(comp: Tensor) -> Tensor:
    """How far each class is masked (b, K), from 0 to 1, by labels `comp` (b, K)."""
    most = comp.amax(1, keepdim=True)
    return comp / torch.where(most > 0, most, 1.0)


def partial_output(logits: Tensor, masked: Tensor) -> Tensor:
    """The prediction of logits (b, K) on what is not `masked` (b, K), normalised; all of it where everything is."""
    return (logits + torch.log1p(-masked).clamp_min(MASKED)).softmax(1)


class Pocr(Plain):
    """One model, which sees each image once weakly and a few times strongly."""

    figures = ("coverage", "agreement")
    weight: Tensor  # lambda in this epoch

    def __init__(self, task: Task) -> None:
        options: Options = ROW.read_options(task.config)
        super().__init__(task)
        self.settings, self.strong = options, StrongView.of(self, options.cutout, options.view)
        self.register_buffer("weight", torch.zeros((), device=self.x.device), persistent=False)

    def before_epoch(self, epoch: int) -> None:
        """Labels renewed, where the caller does so, and lambda."""
        super().before_epoch(epoch)
        self.weight.fill_(self.settings.consistency * min(1.0, epoch / self.settings.ramp))

    def draw(self, epoch: int, order: Tensor) -> Tensor:
        """How each image is moved in its weak view, and the numbers of its strong ones."""
        moves = draw_moves(len(self.x), self.config.crop, self.config.flip, self.config.seed, epoch)
        numbers = torch_stream(self.config.seed, f"strong views/{epoch}")
        strong = torch.rand(len(self.x), self.settings.views * STRONG_DRAWS, generator=numbers, device=numbers.device)
        return torch.cat([moves, strong], 1).to(order.device).index_select(0, order)

    def forward(self, rows: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The loss of labels on weak views and lambda times the distance of strong ones, over this process's rows."""
        assert draws is not None
        mine = self.processes.part(rows)
        with torch.no_grad():
            seen = [self.strong(self, mine, numbers) for numbers in draws[:, 3:].chunk(self.settings.views, 1)]
            seen = [view.contiguous(memory_format=torch.channels_last) for view in seen]
            weakly = self.inputs(mine, draws[:, :3].long())
        weak, *strong = (self.model(view) for view in (weakly, *seen))
        # mixed precision is for the model's products; log space needs all 24 bits
        with torch.autocast(rows.device.type, enabled=False):
            masked = masks(self.comp.index_select(0, mine))
            target = partial_output(weak.detach().float(), masked)
            logs = torch.stack([logits.float().log_softmax(1) for logits in strong])  # (views, b, K)
            apart = -(target * logs).sum(2).sum(0) - len(strong) * torch.special.entr(target).sum(1)
            terms = -(masked * log_not(weak.float())).sum(1) + self.weight * apart
            agreement = (logs.argmax(2) == target.argmax(1)).float().mean()
            told = torch.stack([(target.amax(1) > SURE).float().mean(), agreement])
            return terms.sum() * (self.processes.size / len(rows)), told

    def combine(self, mean: Tensor) -> Tensor:
        """The mean itself."""
        return mean

    @property
    def images_in_all(self) -> int:
        """Every view counts."""
        return super().images_in_all * (1 + self.settings.views)


ROW = Recipe(
    "pocr",
    Pocr,
    "Wang et al. 2021",
    "images: the loss of the labels, and outputs alike from view to view on classes that nobody named",
    options=Options,
    published={
        "model": "resnet18",
        "epochs": 200,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "weight_decay": 1e-4,
        "crop": 4,
        "flip": True,
        "precision": "auto",
    },
    unused=("loss", "eps"),
    as_given=True,
    takes="images",
)
