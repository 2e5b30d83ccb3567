"""How places and figures are named where people read them, and how shares are written: percent, a true minus."""

import math
from collections.abc import Iterable, Mapping

from reproduction.values import Value

COMMAND = "python -m reproduction"
FIGURES = {
    "train_accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
    "best_test_accuracy": "test accuracy at the chosen epoch",
    "confidence_seen": "confidence on seen labels",
    "confidence_unseen": "confidence on unseen labels",
    "sharing_efficiency": "sharing efficiency",
    "neighbouring_noise": "neighbouring noise",
    "augmented_accuracy": "least named class is true",
    "wrong_mass": "labels naming the true class",
}
LOWER_IS_BETTER = ("confidence_seen", "confidence_unseen", "neighbouring_noise", "wrong_mass")
MISSING = "missing"


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
        return str(given).upper().replace("-SIMULATED", ", simulated")
    if name in ("loss", "scheme"):
        return "none" if given == "none" else str(given).upper()
    if name in ("n_train", "n_neighbors"):
        return f"{int(given):,} {'images' if name == 'n_train' else 'neighbours'}"
    return str(given)


def figure(name: str) -> str:
    """A figure in words."""
    return FIGURES.get(name, name.replace("_", " "))


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


def count(n: int, what: str) -> str:
    """1 -> "1 seed", 3600 -> "3,600 seeds"."""
    return f"1 {what}" if n == 1 else f"{n:,} {what}s"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, with as many digits as one reads."""
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
