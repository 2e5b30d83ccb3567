"""Views against their scalar definitions: PIL for crop and resize, colorsys and plain loops for colours."""

import colorsys
import math

import numpy as np
import pytest
import torch
from PIL import Image

from naysay.errors import InputError
from naysay.learning.views import DRAWS, GREY, MEAN, STD, TRIES, View, make_views, shift_hue


def scalar_view(image, u, recipe):
    """One view (3, size, size) of one image (H, W, 3), pixel by pixel, the way torchvision words it."""
    height, width = image.shape[:2]
    for i in range(TRIES):
        area = height * width * (recipe.scale[0] + (recipe.scale[1] - recipe.scale[0]) * u[i])
        low, high = map(math.log, recipe.ratio)
        ratio = math.exp(low + (high - low) * u[TRIES + i])
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            top, left = int(u[20] * (height - h + 1)), int(u[21] * (width - w + 1))
            break
    else:
        top, left, h, w = 0, 0, height, width
    planes = []
    for c in range(3):
        plane = Image.fromarray(image[top : top + h, left : left + w, c].astype(np.float32) / 255)
        planes.append(np.asarray(plane.resize((recipe.size, recipe.size), Image.Resampling.BILINEAR)))
    x = np.stack(planes, 2).astype(np.float64)
    if u[22] < recipe.flip:
        x = x[:, ::-1]
    if u[23] < recipe.jitter:
        for op in np.argsort(u[28:32]):
            x = scalar_jitter(x, op, u[24 + op], recipe)
    if u[32] < recipe.grey:
        x = np.repeat((x @ np.array(GREY))[..., None], 3, 2)
    return ((x - np.array(MEAN)) / np.array(STD)).transpose(2, 0, 1)


def scalar_jitter(x, op, u, recipe):
    if op == 3:
        shift, out = recipe.hue * (2 * u - 1), np.empty_like(x)
        for i, j in np.ndindex(x.shape[:2]):
            h, s, v = colorsys.rgb_to_hsv(*x[i, j])
            out[i, j] = colorsys.hsv_to_rgb((h + shift) % 1, s, v)
        return out
    factor = 1 + (recipe.brightness, recipe.contrast, recipe.saturation)[op] * (2 * u - 1)
    grey = (x @ np.array(GREY))[..., None]
    other = (0, grey.mean(), grey)[op]
    return np.clip(factor * x + (1 - factor) * other, 0, 1)


@pytest.mark.parametrize("recipe", [View(), View(size=24), View(size=40, scale=(0.9, 1.0))])
def test_views_match_their_scalar_definition(recipe):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (24, 32, 32, 3), dtype=np.uint8)
    u = rng.random((24, DRAWS), dtype=np.float32)
    views = make_views(torch.from_numpy(images), torch.from_numpy(u), recipe).numpy()
    pairs = zip(images, u.astype(np.float64), strict=True)
    expected = np.stack([scalar_view(image, row, recipe) for image, row in pairs])
    # float32 against float64, through four colour operations; near-grey pixels divide by a small chroma
    assert np.abs(views - expected).max() < 2e-4


def test_the_whole_image_is_taken_when_no_try_fits():
    u = torch.rand(2, DRAWS, generator=torch.Generator().manual_seed(0))
    u[:, :TRIES], u[:, TRIES : 2 * TRIES] = 1.0, 1.0  # the whole area at the widest ratio never fits
    image = torch.randint(0, 256, (2, 16, 16, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    plain = View(size=16, flip=0, jitter=0, grey=0)
    expected = (image.permute(0, 3, 1, 2) / 255 - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    assert torch.allclose(make_views(image, u, plain), expected, atol=1e-5)


def test_each_probability_is_honoured():
    images = torch.randint(0, 256, (4000, 8, 8, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    u = torch.rand(4000, DRAWS, generator=torch.Generator().manual_seed(1))
    views = make_views(images, u, View(size=8))
    back = views * torch.tensor(STD)[:, None, None] + torch.tensor(MEAN)[:, None, None]
    grey = ((back - back[:, :1]).abs().amax((1, 2, 3)) < 1e-4).float().mean()
    assert abs(float(grey) - 0.2) < 0.02  # three standard errors of 4,000 draws


def test_hue_of_a_full_turn_changes_nothing():
    x = torch.rand(3, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(shift_hue(x, torch.ones(3, 1, 1)), x, atol=1e-5)


def test_greyscale_images_get_brightness_and_contrast_only():
    image = torch.randint(0, 256, (6, 12, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    u = torch.rand(6, DRAWS, generator=torch.Generator().manual_seed(1))
    views = make_views(image, u, View(size=12))
    assert views.shape == (6, 1, 12, 12)
    assert views.isfinite().all()
    assert not torch.equal(views, make_views(image, u, View(size=12, jitter=0)))


def test_float_images_are_refused_with_the_way_out():
    with pytest.raises(InputError, match="uint8"):
        make_views(torch.rand(2, 8, 8, 3), torch.rand(2, DRAWS), View())
