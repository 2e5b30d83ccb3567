"""The figures of a run, one row each: what tables and charts call them, their unit, and which end is the good one.

`name` is the key in records and run.json, `also` are keys that other records have for the same figure.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """A figure: its key, its words, which end is better, whether it needs the truth, its unit, and its other keys."""

    name: str
    words: str
    better: Literal["higher", "lower"] = "higher"
    needs_truth: bool = True
    unit: Literal["", "%"] = "%"
    also: tuple[str, ...] = ()


FIGURES = (
    Figure("test_accuracy", "test accuracy"),
    Figure("best_test_accuracy", "test accuracy at the chosen epoch"),
    Figure("train_accuracy", "training accuracy"),
    Figure("argmin_accuracy", "least named class is true", also=("augmented_accuracy",)),
    Figure("mass_on_true", "labels naming the true class", "lower", also=("wrong_mass",)),
    Figure("sharing_efficiency", "sharing efficiency"),
    Figure("neighbouring_noise", "neighbouring noise", "lower"),
    Figure("confidence_seen", "confidence on seen labels", "lower", needs_truth=False),
    Figure("confidence_augmented", "confidence on shared labels", "lower", needs_truth=False),
    Figure("confidence_unseen", "confidence on unseen labels", "lower"),
    Figure("coverage", "items whose target is sure", needs_truth=False),
    Figure("agreement", "images that the student takes for their target", needs_truth=False),
    Figure("evenness", "evenness of the targets' classes", needs_truth=False),
    Figure("linear", "labels read by a linear model", needs_truth=False),
    Figure("noise", "own labels that the teacher takes for the class", "lower", needs_truth=False),
)


def find_figure(name: str) -> Figure:
    """The row of a key; a key that is not in the table, as an older or a newer record may have it, in its own words."""
    own_words = Figure(name, name.replace("_", " "))
    return next((figure for figure in FIGURES if name in (figure.name, *figure.also)), own_words)
