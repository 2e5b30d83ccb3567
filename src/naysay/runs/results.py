"""What a run found, in words and in JSON: no sentence says more than the held-out labels can show."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from naysay.statistics import MEDIUM
from naysay.runs.fit import Fitted
from naysay.selection import Comparison
from naysay.training import Trained

DOUBT = 2.0  # standard errors below which a difference is not called one


def verdict(fitted: Fitted) -> str:
    """What the comparison says, and what to keep in mind about it."""
    return " ".join([*compared(fitted.chosen.scheme, len(fitted.held), fitted.versus), *caveats(fitted)])


def compared(kept: str, n_held: int, versus: Mapping[str, Comparison]) -> list[str]:
    """What n held-out labels say of the scheme that was kept against the others, in a sentence or two."""
    if not versus:
        return [f"Only {kept} was trained, so there is nothing to compare it with."]
    told = {name: f"{name} ({with_error(v.difference, v.standard_error, '+')} points)" for name, v in versus.items()}
    sure = [told[name] for name, against in versus.items() if against.z >= DOUBT]
    unsure = [told[name] for name, against in versus.items() if against.z < DOUBT]
    if not unsure:
        return [f"{kept} is kept: better than {_and(sure)} on the same {n_held:,} held-out labels."]
    if not sure:
        return [f"{kept} is kept, but {n_held:,} held-out labels show no difference between it and {_and(unsure)}."]
    return [
        f"{kept} is kept: better than {_and(sure)} on the same {n_held:,} held-out labels.",
        f"They show no difference between it and {_and(unsure)}.",
    ]


def with_error(value: float, error: float, sign: str = "") -> str:
    """A share with its standard error, in points of a hundred, with as many digits as the error leaves meaning."""
    digits = 1 if error >= 0.001 else 2
    return f"{100 * value:{sign}.{digits}f} ± {100 * error:.{digits}f}"


def caveats(fitted: Fitted) -> list[str]:
    """What the estimates rest on and the audit denies."""
    near = fitted.audit.neighbourhood
    if fitted.T is not None or near is None or not near.told or near.bias.effect_low <= MEDIUM:
        return []
    return [
        "The estimates assume even naming, and the audit finds the labels biased: try --assume estimated, and see the "
        "audit."
    ]


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def results(fitted: Fitted) -> list[dict[str, Any]]:
    """Each attempt's figures, ready for JSON."""
    return [
        {
            "scheme": attempt.scheme,
            "chosen": attempt is fitted.chosen,
            "estimate": attempt.estimate.value,
            "standard_error": attempt.estimate.standard_error,
            "held_out_rows": len(attempt.estimate.rows),
            "chosen_minus_this": dataclasses.asdict(fitted.versus[attempt.scheme])
            if attempt.scheme in fitted.versus
            else None,
            "sharing": attempt.sharing.as_dict(),
            "truth": {**attempt.oracle, **_oracle_figures(attempt.trained)},
            "seconds": round(attempt.seconds, 3),
        }
        for attempt in fitted.attempts
    ]


ORACLE_FIGURES = ("train_accuracy", "test_accuracy", "sharing_efficiency", "neighbouring_noise", "confidence_unseen")


def _oracle_figures(trained: Trained) -> dict[str, float]:
    last = [name for name in ORACLE_FIGURES if name in trained.last_figures]
    return {name: trained.last_figures[name] for name in last}


def plain(value: Any) -> Any:
    """A tree of dicts, lists and numbers as JSON has it: what is no number becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
