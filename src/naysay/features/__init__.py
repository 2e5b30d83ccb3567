"""Features: the space in which labels are shared. Self-supervised pretraining, extraction, and how good the result is."""

from naysay.features.knn import oracle_knn_accuracy
from naysay.features.pretrain import Pretrained, pretrain
from naysay.features.recipes import METHODS, Config

__all__ = ["METHODS", "Config", "Pretrained", "oracle_knn_accuracy", "pretrain"]
