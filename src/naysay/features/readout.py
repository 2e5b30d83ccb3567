"""An encoder with its read-out: what the network gives, half whitened by the mean and the axes of its own images.

Neighbours are better so, at no training (docs/FEATURES.md, Read-outs). No labels are needed, only images like those to
come; mean and axes are a mean over them, so 50,000 are enough.
"""

import torch
from torch import Tensor, nn

from naysay.datasets.dataset import Array
from naysay.features.encoders import WithReadout, network_of, weights_of
from naysay.features.extract import Cache, extract
from naysay.features.whiten import Readout
from naysay.seeds import torch_stream

ENOUGH = 50_000  # images


def with_readout(encoder: nn.Module, images: Array | Tensor, *, seed: int = 0, cache: Cache = False) -> WithReadout:
    """The encoder's network with a read-out of `images` (n, H, W[, C]) uint8, in place of one that it may have.

    Of more than 50,000 images so many are drawn by `seed`. cache: where the network's features are kept, as in
    `extract`. Images to which the network gives one direction, or fewer than two, are refused (InputError).
    """
    network = network_of(encoder)
    return WithReadout(network, fit_readout(network, images, seed, cache).to(weights_of(network).device))


def fit_readout(network: nn.Module, images: Array | Tensor, seed: int, cache: Cache = False) -> Readout:
    """The read-out itself, on the CPU; the network computes where it is."""
    if len(images) > ENOUGH:
        generator = torch_stream(seed, "readout")
        drawn = torch.randperm(len(images), generator=generator, device=generator.device)[:ENOUGH].sort().values
        images = images[drawn.to(images.device) if isinstance(images, Tensor) else drawn.numpy()]
    return Readout.fit(extract(network, images, cache=cache))
