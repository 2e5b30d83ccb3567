import pytest
import torch

from naysay import models
from naysay.errors import InputError

CASES = [
    ("linear", (64,), 64),
    ("linear", (3, 8, 8), 192),
    ("mlp", (1, 28, 28), 256),
    ("lenet", (1, 28, 28), 84),
    ("lenet", (3, 32, 32), 84),
    ("convnet", (1, 28, 28), 128),
    ("convnet", (3, 33, 20), 128),
    ("pooled-resnet", (1, 28, 28), 64),
    ("pooled-resnet", (3, 33, 20), 64),
    ("resnet18", (3, 32, 32), 512),
    ("resnet18", (3, 64, 64), 512),
    ("small-resnet", (3, 32, 32), 256),
    ("small-resnet", (1, 8, 8), 256),
]


@pytest.mark.parametrize(("name", "shape", "width"), CASES)
def test_logits_are_the_head_of_the_representation(name, shape, width):
    model = models.build(name, shape, 10).eval()
    x = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert model.represent(x).shape == (2, width)
        assert torch.equal(model(x), model.head(model.represent(x)))
        assert model(x).shape == (2, 10)


def test_sizes_are_the_published_ones():
    def size(name, shape):
        return sum(p.numel() for p in models.build(name, shape, 10).parameters())

    assert size("mlp", (784,)) == 784 * 256 + 256 + 256 * 10 + 10
    assert size("lenet", (1, 28, 28)) == 61_706  # LeCun et al. 1998, with full connections
    assert size("resnet18", (3, 32, 32)) == 11_173_962  # He et al. 2016 with the 3 x 3 stem and 10 classes


def test_weights_depend_on_the_seed_and_nothing_else():
    before = torch.random.get_rng_state()
    a, b, c = (models.build("mlp", (16,), 3, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(a.head.weight, b.head.weight)
    assert not torch.equal(a.head.weight, c.head.weight)


def test_hidden_sets_the_width_of_the_mlp():
    assert models.build("mlp", (784,), 10, hidden=500).head.in_features == 500


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: models.build("resnet", (3, 32, 32), 10), "unknown model 'resnet': did you mean resnet18 or lenet"),
        (
            lambda: models.build("lenet", (1, 8, 8), 10),
            "lenet needs images (C, H, W) of at least 12 x 12 pixels; got input_shape (1, 8, 8).",
        ),
        (lambda: models.build("resnet18", (64,), 10), "For tables and tiny images use mlp or linear."),
        (
            lambda: models.build("mlp", (28, 28), 10),
            "input_shape must be (d,) for tables or (C, H, W) for images; got (28, 28).",
        ),
    ],
)
def test_bad_input_is_told_what_is_wrong_and_the_way_out(call, text):
    with pytest.raises(InputError) as error:
        call()
    assert text in str(error.value)
