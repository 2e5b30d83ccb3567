"""What a run does with its labels, beside the settings of training itself; every default with its reason."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from naysay import losses
from naysay.augmentation import Sharing
from naysay.errors import InputError, unknown
from naysay.features import check_space, is_encoder
from naysay.learning import RECIPES, Config
from naysay.models import MODELS
from naysay.portfolio.candidates import check_budget

AUTO = ("none", "dms")  # what is compared when nothing is said: labels as given, and the paper's best scheme
ASSUMPTIONS = ("auto", "uniform", "popularity", "estimated")
# nats a label that reading neighbours by the estimated T must add for labels to be corrected by it: strong bias adds
# 0.18 on CIFAR-10; 0.015 on 600 digits misled
GAIN = 0.05

# as in the paper, but neighbours by the size of the classes, and gamma by the distances where a table has any scale
SHARING = Sharing(n_neighbors=None, gamma=None)
ALWAYS = ("n_neighbors", "alpha", "gamma")  # what every run.json says of sharing; the rest only where it was set
WRITTEN = (
    *ALWAYS,
    "rounds",
    "method",
    "tol",
    "class_shares",
)  # the schemes and the space, with its metric, are settings of their own

ROW_VISITS = 3_000_000  # a few minutes on two cores for a small network, whatever the number of rows
MOST_EPOCHS, FEWEST_EPOCHS = 100, 5
LARGE, LARGE_BATCH = 100_000, 256  # rows from which a larger batch loses nothing and takes half the time
HELD_OUT = 0.1  # of the labels, where one part of them judges
FOLDS = 5  # where all labels judge: each model sees 80 % of them, and five trainings of a small network take seconds


def epochs_within_budget(n_rows: int) -> int:
    """Epochs when none are asked for: as many as keep epochs x rows at 3,000,000, but at least 5 and at most 100."""
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, ROW_VISITS // max(n_rows, 1)))


def batch_size_for(n_rows: int) -> int:
    """The batch size when none is asked for: 64, and 256 from 100,000 rows on."""
    return LARGE_BATCH if n_rows >= LARGE else Config.batch_size


def recommend(schemes: Sequence[str], told: bool) -> str:
    """The scheme that is kept unless another is better: dms, the paper's best, where neighbours say anything about an
    item's labels (told), else none; where that is not tried, the first named.
    """
    wanted = "dms" if told else "none"
    return wanted if wanted in schemes else schemes[0]


@dataclass(frozen=True)
class Settings:
    """One run. schemes: those that are tried and compared. sharing: how, by each of them, in the metric of the space.

    folds: so many models are trained with each scheme, each without one fold of the labels, which judges it; with 1, a
    share `held_out` of the labels judges a single model. None is 5 where training takes seconds, unless held_out is
    given, else 1. refit: train the kept scheme once more on all labels; if not, the model that was judged is kept.
    assume: how labels are taken to come about by losses and estimates that need to know it: every wrong class alike
    ("uniform"), each as it is popular ("popularity"), as neighbours of the training rows show ("estimated"), or the
    last where they show anything and else the first ("auto"). sharing.class_shares: how common the classes are, where
    it is known: labels are then corrected by it, and are uniform to the loss.
    apart: rows held out have no part in what the judged models take either: what a file's columns become (words of
    texts, levels, fills of empty cells), the space, its scales and components are found by the training rows alone, for
    each fold anew. Otherwise all rows make them, without their labels, and a run says so. The model that is trained
    once more on all labels has columns by all rows. With auto a share `held_out` judges, in a single part, and no label
    of it tells how labels come about unless that is "estimated". Beside an encoder, the rows that judge are the
    labelled ones of those that it was kept from (`naysay.features.pretrain`, leave_out), in a single part.
    auto: try what `naysay.portfolio` holds within the budget, in seconds (None: by the number of rows), instead of one
    network by several schemes; of config, only the seed then counts.
    flips: the model averages its scores of an image and of its mirror image, when it is judged and ever after.
    space, encoder: the features in which neighbours are looked up (see `naysay.features.find_space`). With auto, what a
    trained encoder makes of images is what the models learn, too, and the run keeps the encoder.
    """

    config: Config = field(default_factory=Config)
    schemes: Sequence[str] = AUTO
    sharing: Sharing = SHARING
    held_out: float | None = None
    assume: str = "auto"
    space: str = "auto"
    encoder: str | None = None
    folds: int | None = None
    refit: bool = True
    apart: bool = False
    auto: bool = False
    budget: float | None = None
    flips: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        for scheme in self.schemes:
            self.sharing_by(scheme)
        if not self.schemes or len(set(self.schemes)) != len(self.schemes):
            raise InputError(f"schemes must be one or more different schemes; got {', '.join(self.schemes) or 'none'}.")
        losses.get(self.config.loss)
        if not RECIPES[self.config.recipe].needs_labels:
            raise InputError(f"a run learns a classifier from labels, which the recipe {self.config.recipe} does not.")
        if RECIPES[self.config.recipe].shares and tuple(self.schemes) != ("none",):
            itself = f"the recipe {self.config.recipe} shares labels itself, so that the scheme must be none"
            raise InputError(f"{itself}; got {', '.join(self.schemes)}.")
        if self.config.model not in MODELS:
            raise unknown("model", self.config.model, MODELS)
        check_space(self.space, self.encoder)
        if self.assume not in ASSUMPTIONS:
            raise unknown("assumption", self.assume, ASSUMPTIONS)
        self._check_judging()
        if self.apart and self.encoders:
            self._check_apart()
        elif self.apart and self.auto and (self.folds or 1) > 1:
            raise InputError(f"apart=True judges several models by one part; got folds={self.folds}. Leave it out.")

    def _check_judging(self) -> None:
        if self.budget is not None:
            check_budget(self.budget)
        if self.budget is not None and not self.auto:
            raise InputError(f"budget={self.budget} is for model='auto', which tries several models. Leave it out.")
        if self.held_out is not None and not 0 < self.held_out < 1:
            way_out = "0.1 keeps a tenth of the labels for judging."
            raise InputError(f"held_out must be a share between 0 and 1; got {self.held_out}. {way_out}")
        if self.folds is not None and self.folds < 1:
            raise InputError(f"folds must be 1, for a single part held out, or more; got {self.folds}.")
        if self.folds is not None and self.folds > 1 and self.held_out is not None:
            both = f"got folds={self.folds} and held_out={self.held_out}"
            why = "each of several folds is held out once, so there is no share to hold out"
            raise InputError(f"{why}; {both}. Pass one of them.")
        if self.folds is not None and self.folds > 1 and not self.refit:
            why = f"of folds={self.folds} no model has seen all labels, so none can be kept as it was judged"
            raise InputError(f"{why}. Use folds=1, or train once more on all labels.")

    def _check_apart(self) -> None:
        if self.encoder is not None and not is_encoder(self.encoder):
            name = Path(self.encoder).name
            made = f"apart=True makes the space from training items alone, and that of {name} is made already"
            raise InputError(f"{made}. Leave one of the two out.")
        for name in ("held_out", "folds"):
            if (value := getattr(self, name)) is not None:
                judged = "apart=True beside an encoder judges by the images that the encoder left out"
                raise InputError(f"{judged}, so that {name}={value} would change nothing. Leave it out.")

    def folds_for(self, n_rows: int, n_labelled: int) -> int:
        """The folds for so many rows: those asked for, or 5 where they visit few enough rows more than one part does.

        The measure is the rows that one training of a large set visits; a network that takes images only is no small
        one.
        """
        if self.folds is not None:
            return self.folds
        more = (FOLDS - 1) * len(self.schemes) * n_rows * self.config.epochs
        small = more <= ROW_VISITS and not MODELS[self.config.model].smallest
        alone = self.held_out is not None or not self.refit or n_labelled < 2 * FOLDS
        return FOLDS if small and not alone else 1

    @property
    def embeds(self) -> bool:
        """Whether models learn what an encoder makes of images, and not their pixels."""
        return self.auto and is_encoder(self.encoder)

    @property
    def encoders(self) -> tuple[str, ...]:
        """The files by which images were known before their labels: of the space, and of the weights to begin with."""
        given = (self.encoder, None if self.auto else self.config.encoder)
        return tuple(dict.fromkeys(path for path in given if path is not None))

    @property
    def training(self) -> Config:
        """The settings of training; a recipe that shares labels itself is told the class shares."""
        if not RECIPES[self.config.recipe].shares:
            return self.config
        told = {**self.config.options, "class_shares": self.sharing.class_shares}
        return dataclasses.replace(self.config, options=told)

    def sharing_by(self, scheme: str) -> Sharing:
        """How labels are shared by one of the schemes."""
        return dataclasses.replace(self.sharing, scheme=scheme)

    def as_dict(self) -> dict[str, Any]:
        """The settings by name, ready for JSON; those of sharing stand among the others, as in older files."""
        how = {"class_shares": None, **self.sharing.as_dict()}
        shared = {name: how[name] for name in WRITTEN if name in ALWAYS or how[name] != getattr(SHARING, name)}
        others = {
            name: getattr(self, name)
            for name in ("held_out", "assume", "space", "encoder", "folds", "refit", "apart", "auto", "budget")
        }
        flips = {"flips": True} if self.flips else {}
        return {"config": self.training.as_dict(), "schemes": list(self.schemes), **shared, **others, **flips}
