"""ResNet-18 (He et al. 2016) with the stem used for CIFAR: a 3 x 3 convolution of stride 1 and no pooling.

The maps are averaged at the end, so that 32 x 32 and 64 x 64 images both give 512 numbers.
"""

from torch import Tensor, nn


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
    stem = [_conv(in_channels, 64, 3, 1), nn.BatchNorm2d(64), nn.ReLU()]
    blocks = [
        Block(channels_in, channels_out, stride)
        for channels_in, channels_out, first_stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
        for channels_in, stride in ((channels_in, first_stride), (channels_out, 1))
    ]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
