"""A trained network as an ONNX file, for whoever predicts without Python: raw rows in, probabilities of classes out.

The input `rows` is (n, d) for tables, float32, or float64 where a column lies far from 0 (`naysay.learning.rows`); for
images uint8 (n, H, W, C), pixels of 0 to 255. The output `probabilities` is float32 (n, K). Normalisation and sharpness
are inside, and any n is taken. What a table's columns were turned into before (`naysay.datasets.recipe`) is not: rows
are numbers already. Classes and columns are in its metadata.
"""

import copy
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from naysay import losses
from naysay.errors import InputError
from naysay.learning.predictor import Predictor
from naysay.losses.table import softmax


class _Whole(nn.Module):
    """From raw rows to probabilities, as one module."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self.model, self.predictor = predictor.model, predictor
        self.register_buffer("mean", predictor.normaliser.mean)
        self.register_buffer("deviation", predictor.normaliser.deviation)

    def forward(self, rows: Tensor) -> Tensor:
        x = rows.float() / 255 if rows.dtype == torch.uint8 else rows
        x = (x - self.mean).float() / self.deviation
        x = x if x.ndim == 2 else x.permute(0, 3, 1, 2)
        return (self.predictor.sharpness * self.predictor.look(x)).softmax(1)  # checked below: so are probabilities


def as_onnx(predictor: Predictor, about: Mapping[str, Any] | None = None) -> bytes:
    """The content of an ONNX file of the network; `about`, by name, becomes its metadata as JSON."""
    try:
        import onnx  # noqa: F401  torch's exporter needs both
        import onnxscript  # noqa: F401
    except ImportError:
        raise InputError('writing ONNX needs the packages onnx and onnxscript: pip install "naysay[onnx]".') from None
    if losses.get(predictor.config.loss).normalise is not softmax:
        raise InputError(
            f"the loss {predictor.config.loss} reads classes off the rows of T, which an ONNX file cannot. "
            "Train with another loss, such as scl-nl."
        )
    channels, *size = predictor.shape
    image = (2, *size, channels)
    dtype = predictor.normaliser.mean.dtype  # float64 where float32 could not tell rows apart
    whole = copy.deepcopy(_Whole(predictor)).cpu().eval()  # a copy: the predictor stays on its device
    device = whole.mean.device
    if size:
        rows = torch.zeros(image, dtype=torch.uint8, device=device)
    else:
        rows = torch.zeros(2, channels, dtype=dtype, device=device)
    with _silence(), torch.no_grad():
        program: Any = torch.onnx.export(
            whole,
            (rows,),
            dynamo=True,
            verbose=False,
            input_names=["rows"],
            output_names=["probabilities"],
            dynamic_shapes=({0: torch.export.Dim("n")},),
        )
    program.model.metadata_props.update({name: json.dumps(value) for name, value in (about or {}).items()})
    content: bytes = program.model_proto.SerializeToString()
    return content


@contextmanager
def _silence() -> Iterator[None]:
    """The exporter warns of its own insides, and logs that torchvision is not there; neither concerns who exports."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
