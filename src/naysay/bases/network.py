"""A network as a base: trained by the learning core (`naysay.learning`) on the loss through T, quietly."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from naysay.bases.through import Floats
from naysay.learning import Config, Predictor, train

# a network of the size of a table: what it has seen twice it knows by heart, so decay is strong and epochs are few
SMALL = Config(loss="fwd", model="mlp", epochs=30, learning_rate=3e-3, weight_decay=0.1)


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """The predictor of the last epoch."""

    predictor: Predictor

    def logits(self, x: Any) -> Floats:
        """Logits (n, K) of rows x as they were given for training."""
        return self.predictor.logits(x).cpu().double().numpy()


@dataclass(frozen=True)
class Network:
    """config: its loss must take a T, as `fwd` does."""

    config: Config = field(default_factory=lambda: SMALL)

    def fit(self, x: Any, comp: Floats, T: Floats, seed: int = 0) -> NetworkModel:
        """Train on rows x, a table or images, with labels `comp` (n, K)."""
        labelled = comp.sum(1) > 0  # a row that no label reaches would only cost time
        config = replace(self.config, seed=seed)
        given = torch.from_numpy(comp[labelled]).float()
        trained = train(config, x[np.flatnonzero(labelled)], given, T=torch.from_numpy(T), progress=False)
        return NetworkModel(trained.predictor)
