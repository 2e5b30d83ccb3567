"""How places and figures are named where people read them, and how shares are written: percent, a true minus."""

import math
from collections.abc import Iterable, Mapping

from naysay.figures import find_figure
from naysay.words import count
from reproduction.values import Value

__all__ = ["COMMAND", "MISSING", "count", "decimals", "duration", "figure", "minus", "percent", "place", "value"]

COMMAND = "python -m reproduction"
# the figures that tables and pictures of the paper show, by their keys in the records
FIGURES = (
    "train_accuracy",
    "test_accuracy",
    "best_test_accuracy",
    "confidence_seen",
    "confidence_augmented",
    "confidence_unseen",
    "sharing_efficiency",
    "neighbouring_noise",
    "augmented_accuracy",
    "wrong_mass",
    "held_out",
)
LOWER_IS_BETTER = tuple(name for name in FIGURES if find_figure(name).better == "lower")
MISSING = "missing"
CORRECTIONS = {
    "none": "least named class",
    "even": "even shares",
    "popularity": "popularity T + even shares",
    "estimated": "estimated T + even shares",
    "oracle": "true T + even shares, which needs the truth",
}


def place(values: Mapping[str, Value], names: Iterable[str]) -> str:
    """A place in words, by those of its values: "SCL-NL + DMS", "MNIST, MLP, original", "DMS, 64 neighbours"."""
    parts = {name: value(name, values[name]) for name in names if name in values}
    if "loss" in parts and "scheme" in parts:
        scheme = parts.pop("scheme")
        parts["loss"] += "" if scheme == "none" else f" + {scheme}"
    return ", ".join(parts.values())


def value(name: str, given: Value) -> str:
    """One value in words."""
    if name == "dataset":
        return str(given).upper().replace("-SIMULATED", ", simulated").replace("-SIMSIAM", ", SimSiam")
    if name == "correction":
        return CORRECTIONS[str(given)]
    if name in ("loss", "scheme"):
        return "none" if given == "none" else str(given).upper()
    if name in ("n_train", "n_neighbors"):
        number = given if isinstance(given, str) else f"{int(given):,}"
        return f"{number} {'images' if name == 'n_train' else 'neighbours'}"
    return f"gamma {given}" if name == "gamma" else str(given)


def figure(name: str) -> str:
    """A figure in words."""
    return "accuracy as held-out labels estimate it" if name == "held_out" else find_figure(name).words


def percent(share: float | None, like: float | None = None, sign: bool = False) -> str:
    """A share in percent with its `decimals`, or with as many as another share has (`like`)."""
    if share is None:
        return MISSING
    digits = decimals(share if like is None else like)
    return minus(f"{share * 100:{'+' if sign else ''}.{digits}f}")


def decimals(share: float) -> int:
    """The decimals of a share in percent: two, or as many as give two digits where it is tiny."""
    size = abs(share) * 100
    return 2 if size >= 0.1 or size < 1e-6 else 1 - math.floor(math.log10(size))


def minus(text: str) -> str:
    """The text with a true minus sign."""
    return text.replace("-", "\N{MINUS SIGN}")


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, with as many digits as one reads."""
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
