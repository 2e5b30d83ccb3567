"""scikit-learn's door: estimators that fit on complementary labels, and score without a single ordinary one.

A classifier is a mixture of what a portfolio holds, one model, or neighbours without any training; the augmenter is for
complementary labels what LabelSpreading is for ordinary ones.
"""

from naysay.estimators.augmenter import LabelAugmenter
from naysay.estimators.classifier import ComplementaryClassifier
from naysay.estimators.nearest import ComplementaryKNeighbors

__all__ = ["ComplementaryClassifier", "ComplementaryKNeighbors", "LabelAugmenter"]
