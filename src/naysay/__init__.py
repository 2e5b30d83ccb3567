"""naysay: learn what things are from labels that say what they are not.

The folders are the flow: labels, transition, datasets, models, features, neighbors, augmentation, losses, selection and
metrics, learning, decoding, reading, holdout, estimators, runs and the command; below them the engine that runs jobs
anywhere, beside them what needs Ray. Each is imported when it is first used: `naysay --help` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "ComplementaryClassifier",
    "ComplementaryKNeighbors",
    "LabelAugmenter",
    "TableEncoder",
    "audit",
    "augment",
    "augmentation",
    "cluster",
    "datasets",
    "decoding",
    "engine",
    "errors",
    "estimation",
    "estimators",
    "features",
    "holdout",
    "labels",
    "learning",
    "load_run",
    "losses",
    "metrics",
    "models",
    "neighbors",
    "read",
    "reading",
    "report",
    "runs",
    "seeds",
    "selection",
    "shares",
    "transition",
]

if TYPE_CHECKING:
    from naysay import (
        audit,
        augmentation,
        cluster,
        datasets,
        decoding,
        engine,
        errors,
        estimation,
        estimators,
        features,
        holdout,
        labels,
        learning,
        losses,
        metrics,
        models,
        neighbors,
        reading,
        report,
        runs,
        seeds,
        selection,
        shares,
        transition,
    )
    from naysay.augmentation import augment
    from naysay.estimators import ComplementaryClassifier, ComplementaryKNeighbors, LabelAugmenter
    from naysay.estimators.tables import TableEncoder
    from naysay.reading import read
    from naysay.runs import load_run

_HOME = {  # naysay.augment is naysay.augmentation.augment
    "augment": "augmentation",
    "ComplementaryClassifier": "estimators",
    "ComplementaryKNeighbors": "estimators",
    "LabelAugmenter": "estimators",
    "TableEncoder": "estimators.tables",
    "load_run": "runs",
    "read": "reading",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"naysay.{_HOME[name]}"), name)
    if name in __all__:
        return import_module(f"naysay.{name}")
    raise AttributeError(f"module 'naysay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
