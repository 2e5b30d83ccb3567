"""What sharing makes of the labels, before anything is trained: how often they tell the class, and how much of them is
wrong.
"""

import functools
from collections.abc import Mapping

from naysay import metrics, neighbors
from naysay.augmentation import augment
from naysay.neighbors import Graph
from naysay.paper import data, space
from naysay.paper.data import Place
from naysay.paper.result import Result
from naysay.paper.values import AUGMENTATION, Value


def run(values: Mapping[str, Value], place: Place) -> Result:
    """The figures of the labels of all training images."""
    name = str(values["dataset"])
    comp, y_true = data.complementary(name, int(values["seed"]), place), data.images(name, place).y_true
    settings = {key: values[key] for key in AUGMENTATION if key in values}
    Z = augment(_graph(name, int(values["n_neighbors"]), place), comp, **settings)  # type: ignore[arg-type]
    figures = {
        "augmented_accuracy": metrics.oracle_argmin_accuracy(Z, y_true),
        "wrong_mass": metrics.oracle_mass(Z, y_true),
    }
    return Result(figures, encoder=space.of(name, place).encoder)


@functools.lru_cache(maxsize=4)  # schemes and seeds share it; of 50,000 rows with 256 neighbours it takes 150 MB
def _graph(name: str, n_neighbors: int, place: Place) -> Graph:
    return neighbors.build(space.of(name, place).train, n_neighbors)
