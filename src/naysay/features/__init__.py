"""Features: the space in which labels are shared. Self-supervised pretraining, extraction, and how good the result is."""

from naysay.features.embed import embed
from naysay.features.encoders import load_encoder, save_encoder
from naysay.features.extract import extract
from naysay.features.knn import oracle_knn_accuracy
from naysay.features.pretrain import Pretrained, pretrain
from naysay.features.raw import pca, standardise
from naysay.features.recipes import METHODS, Config
from naysay.features.space import SPACES, Space, find_space

__all__ = [
    "METHODS",
    "SPACES",
    "Config",
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
]
