"""Classification without training (Lin et al. 2023, baselines): the class that an image's neighbours name least; their
number is chosen by complementary labels (`decoding.choose_k`).
"""

from collections.abc import Mapping

from naysay import metrics
from naysay.decoding import choose_k
from naysay.paper import data, space
from naysay.paper.data import Place
from naysay.paper.result import Result
from naysay.paper.values import Value


def run(values: Mapping[str, Value], place: Place) -> Result:
    """The figures of the chosen number of neighbours."""
    name, seed = str(values["dataset"]), int(values["seed"])
    images, features = data.images(name, place), space.of(name, place)
    comp = data.complementary(name, seed, place).to(features.train.device)
    decoder, estimates = choose_k(features.train, comp, held_out=float(values["held_out"]), seed=seed)
    chosen = estimates[decoder.k]
    return Result(
        {
            "test_accuracy": metrics.oracle_accuracy(decoder.predict(features.test), images.y_test),
            "held_out": chosen.value,
            "held_out_error": chosen.standard_error,
            "n_neighbors": decoder.k,
        },
        encoder=features.encoder,
    )
