"""Small convolutional networks, for images on a CPU: three 3 x 3 convolutions, each twice as wide as the one before,
with batch normalisation and pooling between. The maps are averaged at the end, so that images of any size do.

On 28 x 28 `convnet` takes 7 million multiplications, a sixtieth of what ResNet-18 takes and 18 times what LeNet does.
`pooled-resnet` takes less than half as many: its maps are pooled before they are normalised, which leaves a quarter of
the numbers to normalise and to rectify, and after the second and third convolution another one of the same width is
added to what came in (as in Jordan's networks for fast training on CIFAR-10, 2024).
"""

from torch import Tensor, nn


def convnet_encoder(in_channels: int, width: int) -> nn.Sequential:
    """The encoder (n, in_channels, H, W) -> (n, 4 width)."""

    def layer(maps_in: int, maps_out: int) -> list[nn.Module]:
        convolution = nn.Conv2d(maps_in, maps_out, 3, padding=1, bias=False)
        return [convolution, nn.BatchNorm2d(maps_out), nn.ReLU()]

    first, second = [*layer(in_channels, width), nn.MaxPool2d(2)], [*layer(width, 2 * width), nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, *layer(2 * width, 4 * width), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Added(nn.Module):
    """What comes in, with what the layers make of it added."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = x + self.layers(x)
        return total


def pooled_resnet_encoder(in_channels: int, width: int) -> nn.Sequential:
    """The encoder (n, in_channels, H, W) -> (n, 4 width)."""

    def layer(maps_in: int, maps_out: int, *pooling: nn.Module) -> list[nn.Module]:
        convolution = nn.Conv2d(maps_in, maps_out, 3, padding=1, bias=False)
        return [convolution, *pooling, nn.BatchNorm2d(maps_out), nn.ReLU()]

    layers = layer(in_channels, width, nn.MaxPool2d(2))
    for maps in (2 * width, 4 * width):
        layers += [*layer(maps // 2, maps, nn.MaxPool2d(2)), Added(*layer(maps, maps))]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
