"""LeNet-5 (LeCun et al. 1998) as it is used today: rectified units and max-pooling.

The original takes 32 x 32; 28 x 28 digits are padded by two pixels a side, so that both give 16 maps of 5 x 5.
"""

import torch
from torch import Tensor, nn


def lenet_encoder(shape: tuple[int, ...]) -> nn.Sequential:
    """The encoder (n, C, H, W) -> (n, 84) for images of `shape` (C, H, W)."""
    maps = nn.Sequential(
        nn.Conv2d(shape[0], 6, 5, padding=2 if min(shape[1:]) < 32 else 0),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
    )
    with torch.no_grad():
        example: Tensor = maps(torch.zeros(1, *shape, device=next(maps.parameters()).device))
    return nn.Sequential(maps, nn.Linear(example.shape[1], 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU())
