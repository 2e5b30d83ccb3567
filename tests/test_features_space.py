"""The space in which neighbours are looked up: what counts as near, by kind of data."""

import numpy as np
import pytest

from naysay.errors import InputError
from naysay.features import find_space, pca, standardise

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(90, 5)).astype(np.float32)
SMALL, LARGE = (RNG.integers(0, 256, (90, side, side), dtype=np.uint8) for side in (8, 20))


def test_auto_chooses_by_what_the_rows_are():
    assert find_space(TABLE).about == "standardised columns"
    assert np.array_equal(find_space(TABLE).features, standardise(TABLE))
    embedding = find_space(TABLE, columns=[f"v[{j}]" for j in range(5)])
    assert (embedding.metric, embedding.about) == ("cosine", "columns as they are, by angle")
    assert np.array_equal(embedding.features, TABLE)
    assert find_space(TABLE, columns=["a[0]", "b", "c", "d", "e"]).metric == "euclidean"
    pixels = find_space(SMALL)
    assert (pixels.metric, pixels.about) == ("euclidean", "pixels as they are")
    assert np.array_equal(pixels.features, SMALL.reshape(90, -1))
    many = find_space(LARGE)
    assert many.about == "64 principal components of the pixels"
    assert np.array_equal(many.features, pca(LARGE, 64))


def test_what_is_asked_for_is_given():
    assert find_space(LARGE, "raw").features.shape == (90, 400)
    assert find_space(TABLE, "pca").features.shape == (90, 5)
    assert find_space(SMALL, "standardised").about == "standardised pixels"
    assert find_space(SMALL, "cosine").metric == "cosine"
    with pytest.raises(InputError, match="unknown space 'polar'"):
        find_space(TABLE, "polar")


def test_embeddings_of_ones_own_are_compared_by_angle_and_an_encoder_is_for_images(tmp_path):
    np.save(tmp_path / "mine.npy", TABLE[:, :2])
    own = find_space(TABLE, encoder=tmp_path / "mine.npy")
    assert (own.metric, own.about) == ("cosine", "mine.npy, by angle")
    assert np.array_equal(own.features, TABLE[:, :2])
    with pytest.raises(InputError, match=r'^mine.npy gives the features, .* space="pca" is for items as they are'):
        find_space(TABLE, "pca", tmp_path / "mine.npy")
    with pytest.raises(InputError, match="an encoder turns images into features; got a table"):
        find_space(TABLE, encoder=tmp_path / "encoder.safetensors")
