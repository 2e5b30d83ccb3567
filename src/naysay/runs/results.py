"""What a run found, in words and in JSON: no sentence says more than the held-out labels can show."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from naysay.figures import FIGURES
from naysay.runs.fit import Fitted
from naysay.selection import Comparison
from naysay.statistics import MEDIUM
from naysay.words import joined, with_error

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
    if not sure:
        return [f"{kept} is kept, but {n_held:,} held-out labels show no difference between it and {joined(unsure)}."]
    better = f"{kept} is kept: better than {joined(sure)} on the same {n_held:,} held-out labels."
    return [better, f"They show no difference between it and {joined(unsure)}."] if unsure else [better]


def caveats(fitted: Fitted) -> list[str]:
    """What the estimates rest on and the audit denies."""
    near = fitted.audit.neighborhood
    if fitted.T is not None or near is None or not near.told or near.bias.effect_low <= MEDIUM:
        return []
    denied = "The estimates assume even naming, and the audit finds the labels biased"
    return [f"{denied}: fit again with the setting assume = estimated, and see the audit."]


def results(fitted: Fitted) -> list[dict[str, Any]]:
    """Each attempt's figures, ready for JSON."""
    return [
        {
            "scheme": attempt.scheme,
            "chosen": attempt is fitted.chosen,
            "estimate": attempt.estimate.value,
            "standard_error": attempt.estimate.standard_error,
            "held_out_rows": len(attempt.estimate.rows),
            "chosen_minus_this": None if attempt is fitted.chosen else asdict(fitted.versus[attempt.scheme]),
            "sharing": attempt.sharing.as_dict(),
            "truth": {**attempt.oracle, **_against_the_truth(attempt.trained.last_figures)},
            "seconds": round(attempt.seconds, 3),
        }
        for attempt in fitted.attempts
    ]


def _against_the_truth(figures: Mapping[str, float]) -> dict[str, float]:
    return {row.name: figures[row.name] for row in FIGURES if row.needs_truth and row.name in figures}


def plain(value: Any) -> Any:
    """A tree of dicts, lists and numbers as JSON has it: what is no number becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
