"""What a run may be told: the names of its values by kind of experiment, and what each may be.

A spec writes nothing else, so that a typo is an error before anything runs and not a setting that silently does
nothing. The training values are settings of `naysay.learning.Config`, by the same names.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from naysay.errors import InputError, unknown

Value = str | int | float | bool
Kind = tuple[type | str, ...]  # types, and words that stand for themselves
Kinds = Mapping[str, Kind]

TRAINING: Kinds = MappingProxyType(
    {
        "loss": (str,),
        "eps": (float,),
        "model": (str,),
        "width": (int,),  # of the model, where it has that option
        "epochs": (int,),
        "batch_size": (int,),
        "optimizer": (str,),
        "learning_rate": (float,),
        "weight_decay": (float,),
        "momentum": (float,),
        "schedule": (str,),
        "warmup_epochs": (int,),
        "normalise": (bool,),
        "crop": (int,),
        "padding": (str,),
        "flip": (bool,),
        "precision": (str,),
        "compile": (str,),
        "seed": (int,),
    }
)
AUGMENTATION: Kinds = MappingProxyType(
    {"scheme": (str,), "n_neighbors": (int,), "alpha": (float,), "gamma": (float, "auto"), "rounds": (int,)}
)
CORRECTIONS = ("none", "even", "popularity", "estimated", "oracle")  # `reproduction.correction` says what they mean
LABELS: Kinds = {"n_labels": (int,), "correction": CORRECTIONS}
# a recipe of `naysay.learning.RECIPES` with its own settings, by the same names; class shares are the correction's
RECIPE: Kinds = {
    "recipe": ("consistent", "taught", "pocr", "plain"),
    "renewals": (int,),
    "first": (int,),
    "shared": (float,),
    "own": (float,),
    "noise": (float,),
    "naming": ("popularity", "counted"),
    "reading": ("auto", "neighbours", "linear"),
    "trust": (float,),
    "memory": (float,),
    "weak": (float,),
    "mixup": (float,),
    "consistency": (float,),
    "ramp": (int,),
    "views": (int,),
    "cutout": (float,),
    "scale": (float,),  # the least part of the image's area that a strong view shows
}
_SHARING: Kinds = {"sharing": ("original", "explicit"), "n_train": (int, "all")}
_JUDGED: Kinds = {"inputs": ("images", "features"), "held_out": (float,), "criterion": (str,), "fine_tune": (bool,)}
# full supervision: every wrong class of an image is named, a ceiling for which the truth is needed
_CONSISTENT: Kinds = {
    "inputs": ("images", "features"),
    "correction": ("none", "even"),
    "fine_tune": (bool,),
    "supervision": ("full",),
}
EXPERIMENTS: Mapping[str, Kinds] = MappingProxyType(
    {
        "sharing": {"dataset": (str,), **_SHARING, **TRAINING},
        "classifier": {"dataset": (str,), **AUGMENTATION, **LABELS, **_JUDGED, **TRAINING},
        "consistent": {"dataset": (str,), **_CONSISTENT, **RECIPE, **TRAINING},
        "augmented": {"dataset": (str,), **AUGMENTATION, **LABELS, "held_out": (float,), "seed": (int,)},
        "decoding": {"dataset": (str,), "held_out": (float,), "seed": (int,)},
    }
)
NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sharing": ("dataset", "sharing", "n_train", "seed"),
        "classifier": ("dataset", "scheme", "held_out", "seed"),
        "consistent": ("dataset", "recipe", "correction", "seed"),
        "augmented": ("dataset", "scheme", "n_neighbors", "seed"),
        "decoding": ("dataset", "held_out", "seed"),
    }
)


def checked(experiment: str, name: str, value: Any) -> Any:
    """The value, or each of a list, as its kind has it: a whole number becomes a float where a number is wanted."""
    kinds = EXPERIMENTS[experiment]
    if name not in kinds:
        raise unknown(f"value of a {experiment} run", name, kinds)
    if not isinstance(value, list):
        return _one(name, value, kinds[name])
    if not value:
        raise InputError(f"{name} is an empty list; give at least one value.")
    return [_one(name, one, kinds[name]) for one in value]


def accepts(value: Value, text: str) -> bool:
    """Whether `text`, as typed on a command line, means `value`: 1e-3 is 0.001, true is True."""
    if isinstance(value, bool | str):
        return text == written(value)
    try:
        return float(text) == value
    except ValueError:
        return False


def written(value: Value) -> str:
    """The value as one types it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _one(name: str, value: Any, kind: Kind) -> Value:
    words = [word for word in kind if isinstance(word, str)]
    if isinstance(value, str) and value in words:
        return value
    types = [one for one in kind if not isinstance(one, str)]
    if type(value) is int and float in types:
        return float(value)
    if type(value) in types:
        plain: Value = value
        return plain
    if words and isinstance(value, str):
        raise unknown(name, value, words)
    called = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    wanted = " or ".join([*(called[one] for one in types), *(f'"{word}"' for word in words)])
    raise InputError(f"{name} must be {wanted}; got {value!r}.")
