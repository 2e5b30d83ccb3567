"""scikit-learn's door: estimators that fit on complementary labels, and score without a single ordinary one."""

from naysay.estimators.augmenter import LabelAugmenter
from naysay.estimators.classifier import ComplementaryClassifier, ComplementaryKNeighbors

__all__ = ["ComplementaryClassifier", "ComplementaryKNeighbors", "LabelAugmenter"]
