"""Grid search by complementary labels alone: all points are trained on the same rows and judged on the same others.

Two choices come out, as the paper reports both: by the criterion at each point's last epoch, and by its best epoch. The
points are independent of each other, so that an engine's workers (see `naysay.engine`) can train several at a time.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from naysay import selection
from naysay.errors import InputError
from naysay.learning.config import Config
from naysay.learning.recipe import Figures
from naysay.learning.train import HeldOut, Trained, train

# the paper's main table (Lin et al. 2023, appendix): AdamW, 200 epochs, five of warm-up, cosine, crops and flips. What
# its text does not give is ours: the batch (256 in its first experiments), the precision, and the 4 pixels of a crop
PAPER = Config(
    model="resnet18",
    epochs=200,
    batch_size=512,
    learning_rate=1e-3,
    warmup_epochs=5,
    crop=4,
    flip=True,
    weight_decay=1e-4,
    precision="bf16-mixed",
)
LEARNING_RATES = (1e-3, 1e-4, 1e-5)
WEIGHT_DECAYS = (1e-4, 1e-5)

Map = Callable[[Callable[[Config], Trained], Iterable[Config]], Iterable[Trained]]


@dataclass(frozen=True)
class Choice:
    """The numbers of the chosen points, and the best epoch (from 1) of the second."""

    last: int
    best: int
    best_epoch: int


@dataclass(frozen=True, eq=False)
class Searched:
    """All points of a grid with their runs, and what was chosen."""

    configs: tuple[Config, ...]
    runs: tuple[Trained, ...]
    choice: Choice

    @property
    def last(self) -> Trained:
        """The run whose last epoch is best; its `predictor` is the last epoch's."""
        return self.runs[self.choice.last]

    @property
    def best(self) -> Trained:
        """The run that has the best epoch of all; its `best` is that epoch's predictor."""
        return self.runs[self.choice.best]


def grid(
    config: Config, learning_rates: Sequence[float] = LEARNING_RATES, weight_decays: Sequence[float] = WEIGHT_DECAYS
) -> tuple[Config, ...]:
    """`config` with every pair of learning rate and weight decay."""
    pairs = itertools.product(learning_rates, weight_decays)
    return tuple(dataclasses.replace(config, learning_rate=rate, weight_decay=decay) for rate, decay in pairs)


def choose(histories: Sequence[Sequence[Figures]], criterion: str = "ure-accuracy") -> Choice:
    """The points to take, from each point's per-epoch figures ("held_out" by `criterion`); the first of equals."""
    if not histories or not all(histories):
        raise InputError(
            "choosing needs at least one run, each with at least one epoch; "
            f"got {[len(history) for history in histories]}."
        )
    sign = -1 if selection.criterion(criterion).higher_is_better else 1
    score = [[sign * figures["held_out"] for figures in history] for history in histories]
    best = min(range(len(score)), key=lambda at: min(score[at]))
    return Choice(min(range(len(score)), key=lambda at: score[at][-1]), best, 1 + score[best].index(min(score[best])))


def search(
    configs: Sequence[Config],
    x: Any,
    comp: Any,
    held_out: HeldOut,
    *,
    folder: str | Path | None = None,
    run: Map = map,
    **options: Any,
) -> Searched:
    """Train every config and choose. `folder` gets one run folder per point; `options` go to `train`.

    run: `map`, or `partial(engine.each, started)` for an engine's workers, to whom the data then goes once, not once
    per point.
    """
    configs = tuple(configs)
    place = None if folder is None else Path(folder).absolute()  # a worker may stand elsewhere
    trained = tuple(run(partial(_point, x=x, comp=comp, held_out=held_out, folder=place, options=options), configs))
    return Searched(configs, trained, choose([one.history for one in trained], held_out.criterion))


def _point(config: Config, *, x: Any, comp: Any, held_out: HeldOut, folder: Path | None, options: Any) -> Trained:
    name = f"lr{config.learning_rate:g}-wd{config.weight_decay:g}-seed{config.seed}"
    return train(config, x, comp, held_out=held_out, folder=None if folder is None else folder / name, **options)
