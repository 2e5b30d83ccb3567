"""Features: the space in which labels are shared. Pretraining without labels, extraction, and how good they are."""

from naysay.features.encoders import embed, load_encoder, save_encoder
from naysay.features.extract import extract
from naysay.features.knn import oracle_knn_accuracy
from naysay.features.pretrain import Pretrained, pretrain
from naysay.features.raw import pca, standardise
from naysay.features.space import SPACES, Space, find_space
from naysay.features.whiten import whiten

__all__ = [
    "SPACES",
    "Pretrained",
    "Space",
    "embed",
    "extract",
    "find_space",
    "load_encoder",
    "oracle_knn_accuracy",
    "pca",
    "pretrain",
    "save_encoder",
    "standardise",
    "whiten",
]
