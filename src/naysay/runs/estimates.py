"""How right a run is, as its report and the terminal say it: an interval and what it assumes, never a bare percentage.

A row is an entry of run.json's results. `estimate` is null where the audit found bias or noise, and its interval
(`low`, `high`) then stands alone; where all are null nothing can be told, and `why_not` says why. Older runs have a
standard error instead.
"""

from collections.abc import Mapping
from typing import Any

from naysay.report import Value
from naysay.statistics import Z95
from naysay.words import between, few, percent, quoted

Row = Mapping[str, Any]
NOTE = "estimated from held-out complementary labels, with its 95 % interval in [ ]"
NAMED = 8  # classes in one sentence


def estimated(row: Row) -> Value:
    """The estimate with its 95 % interval, of an older run too."""
    value, error = row["estimate"], row["standard_error"]
    if "low" in row or value is None:
        return Value(value, low=row.get("low"), high=row.get("high"))
    return Value(value, low=max(value - Z95 * error, 0.0), high=min(value + Z95 * error, 1.0))


def why_untold(row: Row) -> str:
    """In one clause, why nothing can be told."""
    return row.get("why_not") or "the held-out labels do not say"


def opening(row: Row) -> str:
    """The report's first sentence, of the row that is kept."""
    found = estimated(row)
    if found.low is None or found.high is None:
        return f"How many of the items are classified rightly cannot be told from these labels: {why_untold(row)}."
    interval = between(found.low, found.high)
    right = f"{interval} of the items are classified rightly (95 % interval"
    if found.value is not None:
        right = f"An estimated {percent(found.value)} of the items are classified rightly (95 % interval {interval}"
    return f"{right}, told by complementary labels alone){assumed(row)}."


def assumed(row: Row) -> str:
    """What the interval assumes, to be put behind it."""
    return f", if {row['assumes']}" if row.get("assumes") else ""


def never_predicted(about: Row) -> list[str]:
    """The sentence about classes that none of the training items is predicted to be, if there are such."""
    never = about.get("never_predicted") or []
    return [f"No training item is predicted to be {few(map(quoted, never), NAMED)}."] if never else []
