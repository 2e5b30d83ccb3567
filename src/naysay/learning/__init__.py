"""Learning: one loop, recipes as rows. `train(Config(...), x, comp)` makes a classifier; see docs/TRAINING.md."""

from naysay.learning.config import Config
from naysay.learning.export import as_onnx
from naysay.learning.grid import LEARNING_RATES, PAPER, WEIGHT_DECAYS, Choice, Searched, choose, grid, search
from naysay.learning.loop import Observer, Run, Snapshot
from naysay.learning.predictor import Predictor
from naysay.learning.recipe import Diverged, Figures, Learner, Recipe, Task
from naysay.learning.recipes import RECIPES, configure
from naysay.learning.recipes.plain import load_encoder, model_of
from naysay.learning.records import environment
from naysay.learning.train import HeldOut, Trained, train

__all__ = [
    "LEARNING_RATES",
    "PAPER",
    "RECIPES",
    "WEIGHT_DECAYS",
    "Choice",
    "Config",
    "Diverged",
    "Figures",
    "HeldOut",
    "Learner",
    "Observer",
    "Predictor",
    "Recipe",
    "Run",
    "Searched",
    "Snapshot",
    "Task",
    "Trained",
    "as_onnx",
    "choose",
    "configure",
    "environment",
    "grid",
    "load_encoder",
    "model_of",
    "search",
    "train",
]
