"""naysay: learn what things are from labels that say what they are not.

The folders are the flow: labels, transition, datasets, models, features, neighbors, augmentation, losses, selection and metrics,
training, estimators, and the command. Each is imported when it is first used, so that `naysay --help` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

STAGES = (
    "errors",
    "seeds",
    "labels",
    "transition",
    "datasets",
    "models",
    "features",
    "neighbors",
    "augmentation",
    "losses",
    "selection",
    "metrics",
    "training",
    "estimators",
    "report",
    "audit",
)
_SHORTCUTS = {  # naysay.augment is naysay.augmentation.augment
    "augment": "augmentation",
    "ComplementaryClassifier": "estimators",
    "ComplementaryKNeighbors": "estimators",
    "LabelAugmenter": "estimators",
}

__all__ = ["STAGES", "__version__", *STAGES, *_SHORTCUTS]

if TYPE_CHECKING:
    from naysay import (
        audit,
        augmentation,
        datasets,
        errors,
        estimators,
        features,
        labels,
        losses,
        metrics,
        models,
        neighbors,
        report,
        seeds,
        selection,
        training,
        transition,
    )
    from naysay.augmentation import augment
    from naysay.estimators import ComplementaryClassifier, ComplementaryKNeighbors, LabelAugmenter


def __getattr__(name: str) -> Any:
    if name in STAGES:
        return import_module(f"naysay.{name}")
    if name in _SHORTCUTS:
        return getattr(import_module(f"naysay.{_SHORTCUTS[name]}"), name)
    raise AttributeError(f"module 'naysay' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
