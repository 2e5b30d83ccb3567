"""Features: the space in which labels are shared. Pretraining without labels, extraction, and how good they are."""

from naysay.features.encoders import embed, load_encoder, save_encoder
from naysay.features.extract import extract
from naysay.features.frozen import Frozen, is_encoder
from naysay.features.knn import oracle_knn_accuracy
from naysay.features.pretrain import Pretrained, pretrain
from naysay.features.raw import pca, standardise
from naysay.features.readout import with_readout
from naysay.features.space import SPACES, Space, check_space, find_space, refuse_table
from naysay.features.unseen import leave_out
from naysay.features.whiten import whiten

__all__ = [
    "SPACES",
    "Frozen",
    "Pretrained",
    "Space",
    "check_space",
    "embed",
    "extract",
    "find_space",
    "is_encoder",
    "leave_out",
    "load_encoder",
    "oracle_knn_accuracy",
    "pca",
    "pretrain",
    "refuse_table",
    "save_encoder",
    "standardise",
    "whiten",
    "with_readout",
]
