"""Training: labels become a classifier. `train(Config(...), x, comp)` is the whole of it; see docs/TRAINING.md."""

from naysay.training.config import PAPER, Config
from naysay.training.grid import LEARNING_RATES, WEIGHT_DECAYS, Choice, Searched, choose, grid, search
from naysay.training.learner import load_encoder
from naysay.training.loop import train
from naysay.training.predictor import Predictor
from naysay.training.run import Diverged, HeldOut, Observer, Snapshot, Trained, one_device
from naysay.training.several import spread, train_on_ray

__all__ = [
    "LEARNING_RATES",
    "PAPER",
    "WEIGHT_DECAYS",
    "Choice",
    "Config",
    "Diverged",
    "HeldOut",
    "Observer",
    "Predictor",
    "Searched",
    "Snapshot",
    "Trained",
    "choose",
    "grid",
    "load_encoder",
    "one_device",
    "search",
    "spread",
    "train",
    "train_on_ray",
]
