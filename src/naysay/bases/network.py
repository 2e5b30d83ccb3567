"""A network as a base: trained by the learning core (`naysay.learning`) on labels through T, quietly."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch

from naysay.bases.through import Floats
from naysay.learning import RECIPES, Config, Predictor, train
from naysay.learning.recipes import configure

# a network of the size of a table: what it has seen twice it knows by heart, so decay is strong and epochs are few
SMALL = Config(loss="fwd", model="mlp", epochs=30, learning_rate=3e-3, weight_decay=0.1)
TAUGHT = configure("taught", reading="neighbours")  # linear models are candidates of their own


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """The predictor of the last epoch."""

    predictor: Predictor

    def logits(self, x: Any) -> Floats:
        """Logits (n, K) of rows x as they were given for training."""
        return self.predictor.logits(x).cpu().double().numpy()


@dataclass(frozen=True)
class Network:
    """config: its loss must take a T, as `fwd` does, or its recipe share labels itself.

    T_is_stated: whether T was stated, and not estimated; only then it counts beside class shares.
    """

    config: Config = field(default_factory=lambda: SMALL)
    T_is_stated: bool = False

    def knowing(self, class_shares: Floats, T_is_stated: bool) -> Self:
        """The same, told how common classes are (K,), where its recipe has a use for it."""
        if not RECIPES[self.config.recipe].shares:
            return self
        told = {**self.config.options, "class_shares": class_shares.tolist()}
        return replace(self, config=replace(self.config, options=told), T_is_stated=T_is_stated)

    def fit(self, x: Any, comp: Floats, T: Floats, seed: int = 0) -> NetworkModel:
        """Train on rows x, a table or images, with labels `comp` (n, K)."""
        labelled = comp.sum(1) > 0  # a row that no label reaches would only cost time
        config = replace(self.config, seed=seed)
        given = torch.from_numpy(comp[labelled]).float()
        # what class shares do to labels that favour some, a T that was estimated would undo (`naysay.shares`)
        by_shares = config.options.get("class_shares") is not None and not self.T_is_stated
        known = None if by_shares else torch.from_numpy(T)
        trained = train(config, x[np.flatnonzero(labelled)], given, T=known, progress=False)
        return NetworkModel(trained.predictor)
