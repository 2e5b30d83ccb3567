"""Images through an encoder, batch by batch, in eval mode."""

import contextlib
from collections.abc import Iterator
from itertools import chain

import torch
from torch import Tensor, nn

from naysay.errors import InputError
from naysay.learning.views import normalise, to_float


def embed(encoder: nn.Module, images: Tensor, *, batch: int = 2500, precision: str = "bf16") -> Tensor:
    """The representations (n, d) float32 of uint8 images (n, H, W, C), computed and left where the encoder is.

    Images are normalised as in pretraining; rows of numbers (n, d) go in as they are. The encoder comes back in the
    mode it was in. `precision` bf16 counts on a GPU only.
    """
    weights = next(chain(encoder.parameters(), encoder.buffers()), torch.empty(0))
    dtype = weights.dtype if weights.is_floating_point() else torch.float32
    out = []
    mixed = precision == "bf16" and weights.device.type == "cuda"
    with (
        _eval_mode(encoder),
        torch.no_grad(),
        torch.autocast("cuda", torch.bfloat16) if mixed else contextlib.nullcontext(),
    ):
        for start in range(0, len(images), batch):
            x = images[start : start + batch].to(weights.device)
            if x.ndim > 2:
                x = normalise(to_float(x)).contiguous(memory_format=torch.channels_last)
            y = encoder(x.to(dtype))
            if not isinstance(y, Tensor) or y.shape[:-1] != (len(x),):
                got = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
                raise InputError(
                    f"an encoder must return (n, d), a row of features for each of {len(x)} images; got {got}. Pool "
                    "and flatten."
                )
            out.append(y.float())
    return torch.cat(out)


@contextlib.contextmanager
def _eval_mode(encoder: nn.Module) -> Iterator[None]:
    # a frozen part may be in another mode than the whole
    modes = [(module, module.training) for module in encoder.modules()]
    encoder.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
