"""Consistent: what a moving average of the network, neighbours and an image's own labels say of it together is taught
to the network on stronger views; neighbours are looked up again, in the learned space, as learning goes on.

With p the teacher's prediction on a weak view, S the posterior of the labels that neighbours share (`naysay.shares`),
c the counts of the image's own labels and T how labels come about, the target of an image is

    q  ~  p^a * S^b * prod_k T[., k]^c_k * offsets

with one offset per class such that targets have the class shares, where these are known (distribution alignment,
Berthelot et al. 2020). The student learns cross entropy to q on a view that is strong (resized crop, colours, cutout)
for some images and weak for the others, mixed with another image's (Zhang et al. 2018), and beside it the likelihood
of its own labels, -log (p T)_k. The teacher is the student's moving average (Tarvainen and Valpola 2017), and what is
kept. The first epochs learn the shared labels alone: q = S.

T is the caller's, or popularity with one rate of noise: the one that is stated, or how much of the own labels the
teacher of the epoch before took for the true class. With `naming="counted"` it is counted by a small network in the
space, once, and its posteriors take the place of S (`recipes.counting`); that is for labels whose naming depends on the
class alone, and differs much from class to class. Own labels speak again in every epoch, as the teacher has learned
from them; where they are often wrong that adds up, and they are better left out (`own=0`). Weak and strong views and a
teacher are FixMatch's (Sohn et al. 2020); that labels say what an image is not, that they are shared, and shared again
in the teacher's space, is ours.
"""

import copy
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from naysay import shares, transition
from naysay.errors import InputError, unknown
from naysay.learning.patches import patch_space
from naysay.learning.recipe import Recipe, Task, refuse_non_numbers
from naysay.learning.recipes import counting
from naysay.learning.recipes.plain import Plain
from naysay.learning.views import DRAWS, View, checked_view, cut_out, distort, draw_moves
from naysay.seeds import torch_stream

BLOCK = 2048  # images at a time, where the teacher looks at all of them
SURE = 0.95  # what a target's largest entry must be for it to count as covered
LEAST = 1e-6  # no posterior is taken to be smaller: neighbours do not rule a class out
USUAL_NOISE = 0.03  # of labels whose T is counted, before any is
LEAST_NOISE, MOST_NOISE = 1e-3, 0.3  # no label rules a class out, and labels as found to say at least something
UNIT, STRONGEST = 0.065, 0.5  # of shared labels where one own label tells 1 nat, and where it tells nothing
NAMINGS = ("popularity", "counted")
LABELS = 32  # an image's own labels count for at most so many


@dataclass(frozen=True)
class Options:
    """The recipe's own settings."""

    class_shares: Any = None  # how common classes are, "even" or K numbers; None: targets are not aligned
    renewals: int = 4  # times that labels are shared again, in the teacher's space, evenly over the run
    first: int = 3  # epochs that learn shared labels before the teacher has a say; at most a third of the run
    trust: float = 1.0  # a, the power of the teacher's prediction
    shared: Any = "auto"  # b, the power of the shared labels' posterior beside the teacher; "auto": see `strength`
    own: float = 1.0  # the weight of the likelihood of own labels; 0 leaves them out of the targets too
    noise: float | None = None  # how many own labels name the true class; None: as the teacher finds; 0: none at all
    naming: str = "popularity"  # T where none is given: "popularity" with noise, or "counted" by a network in the space
    memory: float = 1.5  # epochs over which the teacher averages
    weak: float = 0.5  # the part of images that the student sees weakly
    mixup: float = 1.0  # how far an image may be mixed with another: at 1 by up to a half
    cutout: float = 0.25  # the side of the square that is cut out of a strong view, as a part of the image's
    view: Mapping[str, Any] = field(default_factory=dict)  # settings of the strong view, as those of `views.View`

    def __post_init__(self) -> None:
        refuse_non_numbers(self)
        object.__setattr__(self, "view", checked_view(self.view))
        if self.class_shares is not None and not isinstance(self.class_shares, str):
            # as JSON gives them back, so that a run's settings are known again
            object.__setattr__(self, "class_shares", shares.as_floats(self.class_shares).tolist())
        if self.noise is not None and not (isinstance(self.noise, Real) and 0 <= self.noise < 1):
            raise InputError(
                f"noise must be a share of the labels, at least 0 and below 1, or None; got {self.noise!r}."
            )
        if self.shared != "auto" and not (isinstance(self.shared, int | float) and 0 <= self.shared < math.inf):
            raise InputError(f'shared must be a power of at least 0, or "auto"; got {self.shared!r}.')
        if self.naming not in NAMINGS:
            raise unknown("naming", self.naming, NAMINGS)
        for name in ("weak", "mixup", "cutout"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} must be between 0 and 1; got {getattr(self, name)}.")
        for name in ("trust", "own", "memory"):
            if getattr(self, name) < 0 or (name == "memory" and self.memory == 0):
                above = "above" if name == "memory" else "at least"
                raise InputError(f"{name} must be {above} 0; got {getattr(self, name)}.")


class Consistent(Plain):
    """`model` is the teacher, which is what a run keeps; `student` is trained."""

    figures = ("coverage", "agreement", "evenness", "noise")
    shared: Tensor  # (n, K) log posteriors of the labels that neighbours share
    likelihood: Tensor  # (K, K) log T, by which an image's own labels speak
    offsets: Tensor  # (K,) what is added to the logits of targets for the class shares
    met: Tensor  # (K,) the sum of this epoch's targets
    named: Tensor  # (2,) of this epoch's own labels: the teacher's belief in the classes that they name, and their sum
    powers: Tensor  # (3,) of the teacher, of shared labels, and of own ones, in this epoch's targets
    strengths: Tensor  # (3,) own, weak and mixup
    counts: Tensor  # (n, K) how often an image's own labels name each class

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        if self.x.ndim != 4 or self.x.dtype != torch.uint8 or self.x.shape[3] not in (1, 3):
            raise InputError(
                "the recipe consistent compares views of images, uint8 (n, H, W) or (n, H, W, 1 or 3); got "
                f"{self.x.dtype} of shape {tuple(self.x.shape)}. Use the recipe plain."
            )
        options: Options = ROW.read_options(task.config)
        self.settings = options
        self.first = min(options.first, self.config.epochs // 3)
        self.student = copy.deepcopy(self.model)
        self.model.requires_grad_(False)
        n_classes, n, device = self.comp.shape[1], len(self.x), self.x.device
        self.class_shares = shares.read(options.class_shares, n_classes)
        usual = {"flip": 0.5 if self.config.flip else 0.0, "size": self.x.shape[1]}
        self.view = View(**{**usual, **options.view})
        if self.view.size != usual["size"] or self.x.shape[1] != self.x.shape[2]:
            got = f"images of {self.x.shape[1]} x {self.x.shape[2]} pixels and views of {self.view.size}"
            raise InputError(f"the recipe consistent mixes weak and strong views, which must be as large; got {got}.")
        self.side = round(options.cutout * self.x.shape[1])
        self.step = min(1.0, 1 / (options.memory * max(1, n // self.config.batch_size)))
        sizes = {"shared": (n, n_classes), "likelihood": (n_classes, n_classes), "offsets": (n_classes,)}
        for name, shape in {**sizes, "met": (n_classes,), "named": (2,), "powers": (3,)}.items():
            self.register_buffer(name, torch.zeros(shape, device=device))
        self.register_buffer("counts", count_labels(self.comp), persistent=False)
        # numbers in a tensor, not in the code of a compiled step, which then serves all of them
        strengths = torch.tensor([options.own, options.weak, options.mixup], device=device)
        self.register_buffer("strengths", strengths, persistent=False)

    def train(self, mode: bool = True) -> Self:
        """The teacher never takes batch statistics."""
        super().train(mode)
        self.model.eval()
        return self

    def before_epoch(self, epoch: int) -> None:
        """Share labels again where it is time; put the targets' powers, offsets and T in place."""
        options = self.settings
        if epoch == 0 or epoch in self.renewed_at():
            self.renew(self.space(epoch))
        if epoch == self.first:
            self.move_teacher(1.0)
        alone = epoch < self.first
        self.learn_from_last_epoch(alone)
        own = float(options.own > 0)
        shared = strength(self.likelihood.exp(), self.class_shares) if options.shared == "auto" else options.shared
        self.powers.copy_(torch.tensor([0.0, 1.0, 0.0] if alone else [options.trust, shared, own]))
        self.met.zero_(), self.named.zero_()

    def learn_from_last_epoch(self, alone: bool) -> None:
        """Align the targets, and read the noise of own labels off what the teacher took them for."""
        met, named = self.processes.mean(self.met), self.processes.mean(self.named)
        if self.settings.naming != "counted":
            # before the teacher has learned anything it has nothing to say of the noise
            found = 0.0 if alone else min(float(named[0] / named[1].clamp_min(1.0)), MOST_NOISE)
            self.likelihood.copy_(self.log_T(found))
        if self.class_shares is not None and not alone and float(met.sum()):
            self.offsets.add_(torch.log(self.class_shares.to(met) / (met / met.sum()).clamp_min(LEAST)))

    def log_T(self, found: float) -> Tensor:
        """log T (K, K): the caller's, or popularity with the noise that is stated, else with that which was found."""
        stated = self.settings.noise
        if self.T is None and stated == 0:  # labels that are never wrong rule classes out, but for rounding
            return popularity(self.comp, 0.0).clamp_min(LEAST).log()
        T = popularity(self.comp, max(found if stated is None else stated, LEAST_NOISE)) if self.T is None else self.T
        return T.clamp_min(LEAST_NOISE).log()

    def renewed_at(self) -> set[int]:
        """The epochs before which labels are shared again; a T is counted once.

        Counted again in the teacher's space it gained a tenth of a point in one run of four, lost some in two, and in
        one took two classes for one another.
        """
        if self.settings.naming == "counted":
            return set()
        times = self.settings.renewals + 1
        return {round(self.config.epochs * time / times) for time in range(1, times)} - {0}

    def space(self, epoch: int) -> Tensor:
        """Unit vectors (n, d) of all images: the teacher's representation; at first, without an encoder, of patches."""
        if epoch == 0 and self.config.encoder is None:
            return patch_space(self.x)
        represent: Any = self.model.represent
        return F.normalize(torch.cat([represent(part).float() for part in self.looks()]), dim=1)

    def looks(self) -> Iterator[Tensor]:
        """All images as the teacher takes them, in blocks."""
        device = self.x.device
        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=self.config.mixed(device)):
            for part in torch.split(self.x, BLOCK):
                yield self.normaliser(part)

    def renew(self, space: Tensor) -> None:
        """Share the own labels among neighbours in the space; or learn and count them there."""
        if self.settings.naming == "counted":
            start = popularity(self.comp, USUAL_NOISE) if self.T is None else self.T
            T, posterior = counting.count(space, self.counts, start, self.class_shares, self.config.seed)
            self.likelihood.copy_(T.log())
            self.shared.copy_(posterior.clamp_min(LEAST).log())
            self.processes.copy_first_([self.likelihood, self.shared])
            return
        import naysay  # sharing is a later stage, which this recipe calls when it runs

        with warnings.catch_warnings():
            # gamma is 1, the paper's setting for unit vectors: that it weighs neighbours almost alike is wanted here
            warnings.filterwarnings("ignore", message="gamma=1 does not suit")
            Z = naysay.augment(space, self.comp, "dms", n_neighbors=None).to(self.x.device)
        posterior = shares.find(Z, self.comp, self.class_shares, self.T).posterior(Z)
        self.shared.copy_(posterior.clamp_min(LEAST).log())
        self.processes.copy_first_([self.shared])

    def draw(self, epoch: int, order: Tensor) -> Tensor:
        """How each image is moved in its weak view, the numbers of its strong one, the cut's place, view and mix."""
        moves = draw_moves(len(self.x), self.config.crop, self.config.flip, self.config.seed, epoch)
        numbers = torch_stream(self.config.seed, f"strong views/{epoch}")
        strong = torch.rand(len(self.x), DRAWS + 4, generator=numbers)
        return torch.cat([moves, strong], 1).to(order.device).index_select(0, order)

    def forward(self, rows: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Cross entropy to the targets and the likelihood of own labels, over this process's rows."""
        assert draws is not None
        mine = self.processes.part(rows)
        own, weakly, mixup = self.strengths.unbind()
        share = 1 - mixup * draws[:, -1:] / 2  # of the image itself in what is seen
        with torch.no_grad():
            weak = self.inputs(mine, draws[:, :3].long())
            believed = self.model(weak)
            seen = self.seen(weak, mine, draws, draws[:, -2] < weakly)
            seen = torch.lerp(seen.roll(1, 0), seen, share[:, :, None, None])
            seen = seen.contiguous(memory_format=torch.channels_last)
        logits = self.student(seen)
        # mixed precision is for the model's products; log space needs all 24 bits
        with torch.autocast(rows.device.type, enabled=False):
            with torch.no_grad():
                target = self.target(believed.float(), mine)
                self.met.add_(target.sum(0))
                comp = self.comp.index_select(0, mine)
                named = torch.stack([(comp * believed.float().softmax(1)).sum(), comp.sum()])
                self.named.add_(named)
            logs = logits.float().log_softmax(1)
            mixed = torch.lerp(target.roll(1, 0), target, share)
            said = torch.logsumexp(logs[:, :, None] + self.likelihood, 1)  # log (p T), (b, K)
            # of a mixed image the own labels say less, of one that is half another's nothing
            likely = (2 * share - 1) * self.counts.index_select(0, mine) * said
            terms = -(mixed * logs).sum(1) - own * likely.sum(1)
            told = (
                (target.amax(1) > SURE).float().mean(),
                (target.argmax(1) == logs.argmax(1)).float().mean(),
                evenness(target.mean(0)),
                named[0] / named[1].clamp_min(1.0),
            )
            return terms.sum() * (self.processes.size / len(rows)), torch.stack(told)

    def seen(self, weak: Tensor, rows: Tensor, draws: Tensor, weakly: Tensor) -> Tensor:
        """Images (b, C, H, W) as the student sees them: the weak view where `weakly` (b,) says so, else the strong one.

        A compiled or captured step has one shape and makes strong views of all; elsewhere only of those that are seen.
        """
        if rows.is_cuda or torch.compiler.is_compiling():
            return torch.where(weakly[:, None, None, None], weak, self.strong_view(rows, draws))
        strongly = (~weakly).nonzero()[:, 0]
        return weak.index_copy(0, strongly, self.strong_view(rows[strongly], draws[strongly]))

    def strong_view(self, rows: Tensor, draws: Tensor) -> Tensor:
        """Images (b, C, H, W), normalised: cropped, coloured, and a square cut out of them."""
        pixels = distort(self.x[rows], draws[:, 3:-4], self.view).permute(0, 2, 3, 1)
        normal = (pixels - self.normaliser.mean) / self.normaliser.deviation
        return cut_out(normal.permute(0, 3, 1, 2), draws[:, -4:-2], self.side)

    def target(self, teacher: Tensor, rows: Tensor) -> Tensor:
        """The targets (b, K) of rows, by the teacher's logits (b, K)."""
        trust, shared, own = self.powers.unbind()
        said = self.counts.index_select(0, rows) @ self.likelihood.T
        logits = trust * teacher.log_softmax(1) + shared * self.shared.index_select(0, rows) + own * said
        return (logits + self.offsets).softmax(1)

    def combine(self, mean: Tensor) -> Tensor:
        """The mean itself."""
        return mean

    def after_step(self) -> None:
        """Move the teacher a step towards the student."""
        self.move_teacher(self.step)

    def move_teacher(self, step: float) -> None:
        """Move the teacher's numbers that part of the way to the student's, batch statistics as well."""
        pairs = zip(self.model.state_dict().values(), self.student.state_dict().values(), strict=True)
        both = [(mine, theirs) for mine, theirs in pairs if mine.is_floating_point()]
        with torch.no_grad():
            torch._foreach_lerp_([mine for mine, _ in both], [theirs for _, theirs in both], step)


def count_labels(comp: Tensor) -> Tensor:
    """How often each class is named (n, K), of labels (n, K) whose rows sum to 1: their smallest entry is one label."""
    one = torch.where(comp > 0, comp, torch.inf).amin(1, keepdim=True).clamp_min(1 / LABELS)
    return comp / one


def popularity(comp: Tensor, noise: float) -> Tensor:
    """T (K, K) of labels that name wrong classes as they are popular, and the true one at the rate of noise."""
    T = transition.popularity(comp)
    return (1 - noise) * T + noise * torch.eye(len(T), device=T.device, dtype=T.dtype)


def strength(T: Tensor, class_shares: Tensor | None) -> float:
    """The power of shared labels beside the teacher, by how much one own label tells: 0.065 / sqrt(nats), at most 1/2.

    nats: what a label tells of the class, their mutual information under T (K, K) and the class shares (else even):
    log K - log (K - 1) where every wrong class is named alike, less where labels favour some or are wrong, 0 where they
    say nothing. One of ten even classes gives 0.2 and one of twenty 0.29: what runs on CIFAR-10 and CIFAR-20 had found.
    """
    T = T.double().cpu() / T.double().cpu().sum(1, keepdim=True)
    q = torch.full((len(T),), 1 / len(T), dtype=torch.float64) if class_shares is None else class_shares.cpu()
    nats = float(torch.special.entr(q @ T).sum() - q @ torch.special.entr(T).sum(1))
    return min(STRONGEST, UNIT / math.sqrt(max(nats, UNIT**2)))


def evenness(q: Tensor) -> Tensor:
    """Of class shares q (K,): the number of equally common classes that are as uncertain, over K."""
    return torch.exp(torch.special.entr(q).sum()) / len(q)


ROW = Recipe(
    "consistent",
    Consistent,
    "naysay",
    "images: a teacher, neighbours and own labels, taught on stronger views",
    options=Options,
    published={
        "model": "resnet18",
        "batch_size": 512,
        "epochs": 100,
        "learning_rate": 5e-4,
        "weight_decay": 0.05,
        "warmup_epochs": 1,
        "crop": 4,
        "flip": True,
        "precision": "auto",
    },
    unused=("loss", "eps"),
    shares=True,
)
