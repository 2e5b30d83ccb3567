"""ResNet-18 (He et al. 2016) with the stem used for CIFAR: a 3 x 3 convolution of stride 1 and no pooling.

The maps are averaged at the end, so that 32 x 32 and 64 x 64 images both give 512 numbers. The small one, for a CPU,
has half the channels, one block a stage in place of two and a stem of stride 2: 1/30 of the arithmetic.
"""

from torch import Tensor, nn

SMALL = 256  # numbers that the small encoder gives


def _conv(channels_in: int, channels_out: int, size: int, stride: int) -> nn.Conv2d:
    conv = nn.Conv2d(channels_in, channels_out, size, stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return conv


class Block(nn.Module):
    """Two 3 x 3 convolutions, added to what came in."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = _conv(channels_in, channels_out, 3, stride), nn.BatchNorm2d(channels_out)
        self.conv2, self.norm2 = _conv(channels_out, channels_out, 3, 1), nn.BatchNorm2d(channels_out)
        same = stride == 1 and channels_in == channels_out
        self.shortcut = (
            nn.Identity()
            if same
            else nn.Sequential(_conv(channels_in, channels_out, 1, stride), nn.BatchNorm2d(channels_out))
        )

    def forward(self, x: Tensor) -> Tensor:
        out = self.norm1(self.conv1(x)).relu()
        total: Tensor = self.norm2(self.conv2(out)) + self.shortcut(x)
        return total.relu()


def resnet18_encoder(in_channels: int = 3) -> nn.Sequential:
    """The encoder (n, in_channels, H, W) -> (n, 512)."""
    return _encoder(in_channels, width=64, blocks=2, stride=1)


def small_resnet_encoder(in_channels: int = 3) -> nn.Sequential:
    """The encoder (n, in_channels, H, W) -> (n, SMALL)."""
    return _encoder(in_channels, width=SMALL // 8, blocks=1, stride=2)


def _encoder(in_channels: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    """Four stages of so many blocks; each stage has twice the channels of the one before, on maps of half the side."""
    layers: list[nn.Module] = [_conv(in_channels, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU()]
    channels = width
    for stage in range(4):
        for block in range(blocks):
            layers.append(Block(channels, width << stage, 2 if stage and not block else 1))
            channels = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
