"""What a pretraining run is made of: one frozen record, and a literal table of the methods with their published
settings.

| method | source | views x batch | rate | epochs | CIFAR-10 200-NN accuracy, public figure |
| --- | --- | --- | --- | --- | --- |
| simsiam | Chen and He 2021 | 2 x 512 | 0.03 * batch/256, predictor's constant | 800 | 90.4 % |
| fastsiam | Pototzky et al. 2022 | 4 x 128 | 0.06 | 200 | 90.6 % |

Both public figures are those of the lightly project's CIFAR-10 benchmark, whose settings for fastsiam are taken here.
"""

from dataclasses import dataclass

from naysay.errors import InputError, unknown
from naysay.features.views import Recipe

VIEW = Recipe()


@dataclass(frozen=True)
class Config:
    """Everything that decides a pretraining run's result, except the images."""

    method: str = "fastsiam"
    views: int = 4
    batch: int = 128  # images in a step; the network sees views * batch
    epochs: int = 200  # length of the cosine schedule
    rate: float = 0.06  # learning rate at its peak
    warmup: float = 0.0  # epochs of linear rise to the peak
    constant_predictor: bool = False  # keep the predictor's rate at its peak
    momentum: float = 0.9
    weight_decay: float = 5e-4
    target_momentum: float = 0.0  # 0: targets come from the network itself; 0.99: from its moving average
    projection: int = 2048  # width of the projections
    bottleneck: int = 512  # hidden units of the predictor
    view: Recipe = VIEW
    precision: str = "bf16"  # bf16 (on a GPU) or float32
    seed: int = 0

    def __post_init__(self) -> None:
        if self.views < 2 or (self.method == "simsiam" and self.views != 2):
            raise InputError(
                f"{self.method} compares {'2' if self.method == 'simsiam' else 'at least 2'} views; got "
                f"views={self.views}."
            )
        if self.batch < 2 or self.epochs < 1:
            raise InputError(
                f"batch must be at least 2 and epochs at least 1; got batch={self.batch}, epochs={self.epochs}."
            )
        if self.precision not in ("bf16", "float32"):
            raise unknown("precision", self.precision, ("bf16", "float32"))
        if not 0 <= self.target_momentum < 1:
            raise InputError(f"target_momentum must be in [0, 1), 0 for no moving average; got {self.target_momentum}.")


METHODS = {
    "simsiam": Config("simsiam", views=2, batch=512, epochs=800, rate=0.03 * 512 / 256, constant_predictor=True),
    "fastsiam": Config("fastsiam", views=4, batch=128, epochs=200, rate=0.06),
}
