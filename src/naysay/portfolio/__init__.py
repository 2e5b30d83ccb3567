"""A portfolio of classifiers for tables and small images: judged, calibrated and mixed by complementary labels."""

from naysay.portfolio.candidates import CANDIDATES, Candidate, check_classes
from naysay.portfolio.mixture import Mixture, Part
from naysay.portfolio.trial import Found, Tried, budget_for, fit, judge_apart

__all__ = [
    "CANDIDATES",
    "Candidate",
    "Found",
    "Mixture",
    "Part",
    "Tried",
    "budget_for",
    "check_classes",
    "fit",
    "judge_apart",
]
