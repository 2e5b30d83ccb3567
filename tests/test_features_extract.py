"""Features from encoders, from files and from rows: computed once, recognised, and never trusted when damaged."""

import copy
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from naysay.errors import InputError
from naysay.features import extract, load_encoder, pca, save_encoder, standardise, whiten, with_readout
from naysay.features.cache import UntoldError, identity
from naysay.features.encoders import network_of
from naysay.features.whiten import Readout
from naysay.learning.views import normalise, to_float
from naysay.models import resnet18_encoder


class Counting(nn.Module):
    """A small encoder that counts the images it has seen."""

    def __init__(self, seed=0, pool="mean"):
        super().__init__()
        torch.manual_seed(seed)
        self.conv, self.norm = nn.Conv2d(3, 7, 3), nn.BatchNorm2d(7)
        self.pool, self.seen = pool, 0

    def forward(self, x):
        self.seen += len(x)
        maps = self.norm(self.conv(x))
        return maps.mean((2, 3)) if self.pool == "mean" else maps.amax((2, 3))


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (11, 8, 8, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def plain(encoder, images):
    with torch.no_grad():
        return copy.deepcopy(encoder).eval()(normalise(to_float(torch.tensor(images)))).numpy()


# --- through a module ---


@pytest.mark.parametrize("batch", [None, 1, 4])
def test_features_are_those_of_the_module_in_eval_mode(images, batch):
    encoder = Counting().train()
    encoder(torch.randn(5, 3, 8, 8))  # statistics that differ from a batch's own
    features = extract(encoder, images, batch=batch, cache=False)
    assert features.dtype == np.float32
    assert np.allclose(features, plain(encoder, images), atol=1e-6)  # float32 sums in another order


def test_every_part_of_the_module_comes_back_in_its_mode_even_after_an_error(images):
    encoder = Counting().train()
    encoder.norm.eval()
    extract(encoder, images, cache=False)
    with pytest.raises(InputError, match="uint8"):
        extract(encoder, images.astype(np.float32), cache=False)
    assert encoder.training
    assert encoder.conv.training
    assert not encoder.norm.training


def test_the_resnet_file_gives_512_numbers_that_half_precision_barely_moves(tmp_path, images):
    encoder = resnet18_encoder(3).eval()
    save_encoder(tmp_path / "net.safetensors", encoder, {"data": "none"})
    again = extract(tmp_path / "net.safetensors", images, cache=tmp_path, device="cpu")
    assert again.shape == (11, 512)
    assert np.array_equal(again, extract(load_encoder(tmp_path / "net.safetensors")[0], images, cache=False))
    difference = np.linalg.norm(again - plain(encoder, images), axis=1) / np.linalg.norm(again, axis=1)
    assert difference.max() < 5e-3  # 2^-11 of each weight, through 18 layers


def test_images_come_in_grey_mirrored_as_tensors_or_from_a_mapped_file(tmp_path, images):
    encoder = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten())
    grey = images[..., 0]
    expected = extract(encoder, grey, cache=False)
    np.save(tmp_path / "grey.npy", grey)
    assert np.array_equal(extract(encoder, np.load(tmp_path / "grey.npy", mmap_mode="r"), cache=False), expected)
    assert np.array_equal(extract(encoder, torch.tensor(grey)[..., None], cache=False), expected)
    assert np.array_equal(extract(encoder, grey[:, ::-1][:, ::-1], cache=False), expected)


def test_bf16_counts_on_a_cpu_too_and_moves_features_by_its_rounding(images):
    encoder = Counting()
    exact = extract(encoder, images, cache=False)
    rounded = extract(encoder, images, cache=False, precision="bf16")
    assert rounded.dtype == np.float32
    assert not np.array_equal(rounded, exact)
    assert np.allclose(rounded, exact, atol=2**-7 * np.abs(exact).max())


def test_a_module_on_a_cpu_gets_few_images_at_a_time():
    sizes = []
    encoder = Counting()
    encoder.register_forward_pre_hook(lambda module, args: sizes.append(len(args[0])))
    extract(encoder, np.zeros((70, 32, 32, 3), np.uint8), cache=False)
    assert sizes == [64, 6]


def test_rows_of_numbers_go_through_a_module_as_they_are():
    rows = np.random.default_rng(0).normal(size=(6, 3))
    assert np.array_equal(extract(nn.Flatten(), rows, cache=False), rows.astype(np.float32))


def test_a_half_precision_module_gives_float32(images):
    features = extract(Counting().half(), images, cache=False)
    assert features.dtype == np.float32
    assert np.allclose(features, extract(Counting(), images, cache=False), atol=0.02)  # half precision's 11 bits


# --- the cache ---


def test_a_second_call_does_not_call_the_encoder(tmp_path, images):
    encoder = Counting()
    first = extract(encoder, images, cache=tmp_path)
    again = extract(encoder, images, cache=tmp_path)
    assert encoder.seen == len(images)
    assert np.array_equal(first, again)
    assert again.flags.writeable
    assert len(list(tmp_path.iterdir())) == 1


def test_the_cache_is_in_the_data_folder_unless_given(tmp_path, images, monkeypatch):
    monkeypatch.setenv("NAYSAY_DATA", str(tmp_path))
    extract(Counting(), images)
    assert len(list((tmp_path / "features").glob("*.npz"))) == 1


def other_weights(encoder):
    with torch.no_grad():
        encoder.conv.weight[0, 0, 0, 0] += 1e-3


def other_statistics(encoder):
    encoder.norm.running_mean[0] += 1e-3


def other_setting(encoder):
    encoder.pool = "max"


def other_layer(encoder):
    encoder.norm.eps = 1.0


def a_hook(encoder):
    encoder.conv.register_forward_hook(lambda module, inputs, output: -output)


@pytest.mark.parametrize("change", [other_weights, other_statistics, other_setting, other_layer, a_hook])
def test_another_encoder_is_not_answered_from_the_cache(tmp_path, images, change):
    encoder = Counting()
    extract(encoder, images, cache=tmp_path)
    change(encoder)
    assert np.allclose(extract(encoder, images, cache=tmp_path), plain(encoder, images), atol=1e-6)


def test_another_forward_is_not_answered_from_the_cache(tmp_path, images):
    def make(sign):
        class Net(nn.Module):
            def forward(self, x):
                return x.mean((2, 3)) if sign > 0 else -x.mean((2, 3))

        return Net()

    assert np.array_equal(extract(make(1), images, cache=tmp_path), -extract(make(-1), images, cache=tmp_path))


def test_other_images_are_not_answered_from_the_cache(tmp_path, images):
    encoder, changed = Counting(), images.copy()
    changed[3, 0, 0, 0] ^= 1
    first = extract(encoder, images, cache=tmp_path)
    other = extract(encoder, changed, cache=tmp_path)
    assert np.array_equal(np.flatnonzero((first != other).any(1)), [3])
    mirrored = extract(encoder, images[::-1], cache=tmp_path)
    assert np.array_equal(mirrored, extract(encoder, images[::-1].copy(), cache=False))


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def alter(path):
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)


def swap(path):
    features = np.load(path)["features"]
    np.savez(path, features=features[::-1], hash=np.load(path)["hash"])


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut, alter, swap, empty])
def test_a_damaged_file_is_told_and_computed_again(tmp_path, images, damage):
    encoder = Counting()
    first = extract(encoder, images, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    damage(path)
    with pytest.warns(UserWarning, match="not what was written"):
        again = extract(encoder, images, cache=tmp_path)
    assert encoder.seen == 2 * len(images)
    assert np.array_equal(first, again)
    assert np.array_equal(extract(encoder, images, cache=tmp_path), first)  # and mended
    assert encoder.seen == 2 * len(images)


def test_another_keys_file_is_not_trusted(tmp_path, images):
    one, two = Counting(0), Counting(1)
    for encoder in (one, two):
        extract(encoder, images, cache=tmp_path)
    a, b = tmp_path.iterdir()
    a.write_bytes(b.read_bytes())
    with pytest.warns(UserWarning, match="not what was written"):
        results = [extract(encoder, images, cache=tmp_path) for encoder in (one, two)]
    assert not np.allclose(*results)


def test_features_that_cannot_be_kept_are_still_given(tmp_path, images):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="cannot be kept in"):
        features = extract(Counting(), images, cache=tmp_path / "file" / "below")
    assert np.allclose(features, plain(Counting(), images), atol=1e-6)


def test_a_module_that_cannot_be_told_has_no_identity_but_its_caller_may_name_it(tmp_path, images):
    encoder = Counting()
    encoder.helper = object()
    with pytest.raises(UntoldError):
        identity(encoder)
    with pytest.raises(InputError, match="cache_key="):
        extract(encoder, images, cache=tmp_path)
    for _ in range(2):
        extract(encoder, images, cache=tmp_path, cache_key="mine")
    assert encoder.seen == len(images)
    other_weights(encoder)
    extract(encoder, images, cache=tmp_path, cache_key="mine")
    assert encoder.seen == 2 * len(images)


def test_modules_outside_the_tree_and_things_that_hold_themselves_have_no_identity():
    encoder = Counting()
    encoder.others = [nn.Linear(2, 2)]
    with pytest.raises(UntoldError):
        identity(encoder)
    encoder.others[0] = encoder.others
    with pytest.raises(UntoldError):
        identity(encoder)


# --- through a callable ---


def test_a_callable_is_cached_under_its_name_only(tmp_path, images, monkeypatch):
    monkeypatch.setenv("NAYSAY_DATA", str(tmp_path))
    seen = []

    def encoder(x):
        seen.append(len(x))
        return torch.tensor(x).float().mean((1, 2))

    for _ in range(2):
        features = extract(encoder, images)
    assert np.allclose(features, images.mean((1, 2)), rtol=1e-6)
    for _ in range(2):
        extract(encoder, images, cache_key="means", batch=4)
    extract(encoder, images, cache_key="other means")
    assert seen == [11, 11, 4, 4, 3, 11]


def test_a_callable_may_take_texts(tmp_path):
    def lengths(texts):
        return [[len(text), text.count(" ")] for text in texts]

    for _ in range(2):
        features = extract(lengths, ["not a cat", "dog"], cache=tmp_path, cache_key="lengths")
    assert np.array_equal(features, [[9, 2], [3, 0]])


def test_standardised_pixels_are_an_encoder(images):
    assert np.array_equal(extract(standardise, images), standardise(images))


# --- ready-made embeddings ---


def test_embeddings_come_from_arrays_and_npy_files(tmp_path, images):
    made = np.random.default_rng(0).normal(size=(11, 5))
    np.save(tmp_path / "made.npy", made)
    for source in (made, torch.tensor(made, dtype=torch.bfloat16), tmp_path / "made.npy", str(tmp_path / "made.npy")):
        features = extract(source, images)
        assert features.dtype == np.float32
        assert np.allclose(features, made, rtol=2**-8)  # of bfloat16
    assert np.array_equal(extract(tmp_path / "made.npy"), made.astype(np.float32))


def test_embeddings_come_from_a_column_of_a_table(tmp_path, images):
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = np.random.default_rng(0).normal(size=(11, 5)).astype(np.float32)
    table = pa.table({"id": [f"item {i}" for i in range(11)], "vector": list(made), "short": list(made[:, :2])})
    pq.write_table(table, tmp_path / "made.parquet")
    assert np.array_equal(extract(f"{tmp_path / 'made.parquet'}:vector", images), made)
    assert np.array_equal(extract(tmp_path / "made.parquet", images, features="short"), made[:, :2])
    with pytest.raises(InputError, match=r"unknown column .*vektor.*did you mean vector\?"):
        extract(f"{tmp_path / 'made.parquet'}:vektor", images)
    with pytest.raises(InputError, match="must hold numbers in column 'id'"):
        extract(tmp_path / "made.parquet", images)


# --- raw features ---


@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 2**32), st.sampled_from([0.0, 1e6, -3e8]))
@settings(derandomize=True, max_examples=60, deadline=None)
def test_standardise_is_its_definition(n, d, seed, offset):
    x = offset + np.random.default_rng(seed).normal(size=(n, d)).round(2)
    deviation = x.std(0)
    constant = (x == x[0]).all(0)
    expected = np.where(constant, 0, (x - x.mean(0)) / np.where(constant, 1, deviation))
    # at 3e8 float64 holds hundredths to 6e-8, and numpy's own sum loses more
    assert np.allclose(standardise(x), expected, atol=1e-4)


def test_standardise_merges_blocks_exactly(monkeypatch):
    monkeypatch.setattr("naysay.features.raw.BLOCK", 30)
    x = np.random.default_rng(0).gamma(2, size=(1000, 7))
    x[:, 3] = 0.1
    out = standardise(x)
    assert np.allclose(out.mean(0), 0, atol=1e-6)
    assert np.allclose(np.delete(out, 3, 1), ((x - x.mean(0)) / x.std(0))[:, [0, 1, 2, 4, 5, 6]], atol=1e-6)
    assert (out[:, 3] == 0).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32, bool])
def test_standardise_flattens_images_and_leaves_them_alone(images, dtype):
    x = (images > 100 if dtype is bool else images).astype(dtype)
    x.setflags(write=False)
    before = x.copy()
    out = standardise(x)
    flat = before.reshape(11, -1).astype(np.float64)
    assert out.shape == (11, 192)
    assert np.allclose(out, (flat - flat.mean(0)) / np.where(flat.std(0) == 0, 1, flat.std(0)), atol=1e-5)
    assert np.array_equal(x, before)
    assert np.array_equal(standardise(x[..., 0]), out[:, ::3])


def directions(x, k):
    """Principal components by numpy's singular value decomposition, the largest weight of each axis positive."""
    centred = x - x.mean(0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:k]
    axes = axes * np.sign(axes[np.arange(k), np.abs(axes).argmax(1)])[:, None]
    return centred @ axes.T


def spread_out(n, d, seed=0):
    g = np.random.default_rng(seed)
    return g.normal(size=(n, d)) * 0.8 ** np.arange(d) @ np.linalg.qr(g.normal(size=(d, d)))[0] + 5


@pytest.mark.parametrize(("n", "d"), [(200, 20), (15, 40)])
def test_pca_is_the_singular_value_decomposition(n, d, monkeypatch):
    x = spread_out(n, d)
    expected = directions(x, 6)
    assert np.allclose(pca(x, 6), expected, atol=1e-5)
    monkeypatch.setattr("naysay.features.raw.PRODUCT", 7 * d)
    assert np.allclose(pca(x, 6), expected, atol=1e-5)
    monkeypatch.setattr("naysay.features.raw.EXACT", 0)
    monkeypatch.setattr("naysay.features.raw.OVERSAMPLE", 6)
    # the part of axis 13 in axis 6 falls by 0.8^14 a round, six times; and float32
    assert np.allclose(pca(x, 6), expected, atol=1e-3)
    assert np.array_equal(pca(x, 6, seed=3), pca(x, 6, seed=3))


def test_pca_of_images_counts_pixels_in_0_to_1(images):
    assert np.allclose(pca(images, 3), directions(images.reshape(11, -1) / 255, 3), atol=1e-5)


@pytest.mark.parametrize("strength", [0, 0.5, 1])
def test_whitening_evens_out_the_spread_of_directions(strength):
    x = spread_out(400, 12)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    variances = np.linalg.eigvalsh(np.cov(unit.T, bias=True))
    white = whiten(x, strength=strength)
    left = np.linalg.eigvalsh(np.cov(white.T, bias=True))
    assert np.allclose(left, variances / (variances + 0.1 * variances.mean()) ** strength, atol=1e-4)
    assert np.allclose(white.mean(0), 0, atol=1e-4)


def test_new_rows_are_whitened_like_those_they_are_compared_with():
    x = spread_out(400, 12)
    assert np.allclose(whiten(3 * x[:7], like=torch.from_numpy(x)), whiten(x)[:7], atol=1e-4)  # lengths do not count


def test_whitened_rows_stay_in_their_columns():
    x = spread_out(400, 12)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert np.allclose(whiten(x, strength=0), unit - unit.mean(0), atol=1e-6)  # only centred
    moved = Readout.fit(np.asarray(x, np.float32)).axes
    assert torch.allclose(moved, moved.T, atol=1e-4 * float(moved.abs().max()))
    order = np.random.default_rng(0).permutation(12)
    assert np.allclose(whiten(x[:, order]), whiten(x)[:, order], atol=1e-3)


def test_classes_that_differ_in_narrow_directions_are_found_after_whitening():
    g = np.random.default_rng(0)
    kind = g.integers(0, 10, 600)
    x = g.normal(size=(600, 24)) * np.where(np.arange(24) < 4, 10, 1)
    x[:, 4:] += 1.5 * g.normal(size=(10, 20))[kind]  # the broad directions say nothing

    def found(rows):
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        near = rows @ rows.T - 2 * np.eye(600)
        return (kind[near.argmax(1)] == kind).mean()

    assert found(x) < 0.75  # 0.60 to 0.71 over four seeds
    assert found(whiten(x)) > 0.8  # 0.85 to 0.90
    assert found(whiten(x, strength=1)) > 0.9  # 0.92 to 0.97


def nearest_by_angle(rows, asked, k=10):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.argsort(-(unit[:asked] @ unit.T) + 9 * np.eye(asked, len(rows)), axis=1)[:, :k]


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e9])
def test_directions_that_hardly_differ_are_whitened_before_they_are_rounded(offset):
    x = np.random.default_rng(6).normal(size=(500, 12)) + offset
    unit = x.astype(np.longdouble)
    unit /= np.sqrt((unit**2).sum(1, keepdims=True))
    centred = (unit - unit.mean(0)).astype(np.float64)
    centred /= centred.std()
    variances, axes = np.linalg.eigh(centred.T @ centred / 500)
    shrunk = variances.clip(0) + 0.1 * variances.mean()
    expected = nearest_by_angle(centred @ (axes * shrunk**-0.25) @ axes.T, 200)
    found = whiten(x)
    assert found.dtype == np.float32
    kept = [len(set(a) & set(b)) for a, b in zip(expected, nearest_by_angle(found.astype(float), 200), strict=True)]
    assert np.mean(kept) > 9.9  # of 10
    scale = np.abs(found).max()
    assert np.allclose(whiten(x[:1], like=x), found[:1], rtol=1e-4, atol=1e-4 * scale)  # one row cannot tell


def test_features_that_float32_would_lose_stay_as_they_came(images):
    near = np.random.default_rng(7).normal(size=(11, 5))
    for far in (near + 1e8, (1 + near[:, :1] ** 2) * (1e5 + 1e-2 * near)):  # the same places, the same directions
        for encoder in (far, lambda _, far=far: far, lambda _, far=far: torch.from_numpy(far)):
            cache = {} if isinstance(encoder, np.ndarray) else {"cache": False}
            found = extract(encoder, images, **cache)
            assert found.dtype == np.float64
            assert np.array_equal(found, far)
    assert extract(near, images).dtype == np.float32
    assert extract(near + 100, images).dtype == np.float32
    whole = extract((64 * near + 1e9).astype(np.int64), images)
    assert np.array_equal(whole, (64 * near + 1e9).astype(np.int64))


def test_kept_features_keep_their_bits(images, tmp_path):
    far = np.random.default_rng(7).normal(size=(11, 5)) + 1e8
    first = extract(lambda _: far, images, cache=tmp_path, cache_key="far")
    assert np.array_equal(first, far)
    assert np.array_equal(extract(lambda _: 0 * far, images, cache=tmp_path, cache_key="far"), far)


def test_a_module_that_computes_in_float64_loses_nothing():
    x = np.random.default_rng(7).normal(size=(40, 5)) + 1e8
    module = torch.nn.Linear(5, 5, bias=False).double()
    torch.nn.init.eye_(module.weight)
    assert np.array_equal(extract(module, x, cache=False), x)


# --- an encoder with its read-out ---


def other_images():
    return np.random.default_rng(1).integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)


def test_an_encoder_with_its_readout_gives_what_whiten_makes_of_the_networks_rows(images):
    encoder = Counting()
    base, new = (extract(encoder, x, cache=False) for x in (images, other_images()))
    found = extract(with_readout(encoder, images), other_images(), cache=False)
    assert np.array_equal(found, whiten(new, like=base))
    assert not np.allclose(found, whiten(new, like=base, strength=1), atol=0.1)


def test_a_row_of_zeros_is_as_harmless_in_a_readout_as_in_whiten():
    base = spread_out(40, 6).astype(np.float32)
    rows = np.stack([np.zeros(6, np.float32), base[0], 1e-14 * base[0]])
    found = Readout.fit(base)(torch.from_numpy(rows))
    assert np.array_equal(found.numpy(), whiten(rows, like=base))
    assert found.isfinite().all()
    assert torch.allclose(found[1], found[2], atol=1e-4)  # lengths do not count


def test_a_readout_computes_in_float32_where_all_around_it_is_rounded():
    base = spread_out(40, 6).astype(np.float32) + 30  # rows that share a direction
    readout, rows = Readout.fit(base), torch.from_numpy(base)
    exact = readout(rows)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(readout(rows), exact)
    assert readout.half()(rows).dtype == torch.float32


def test_of_more_images_than_enough_a_readout_takes_those_that_the_seed_draws(images, monkeypatch):
    monkeypatch.setattr("naysay.features.readout.ENOUGH", 7)
    first, again, other = (with_readout(Counting(), images, seed=seed).readout for seed in (0, 0, 1))
    assert torch.equal(first.axes, again.axes)
    assert not torch.allclose(first.mean, other.mean)
    some = [with_readout(Counting(), torch.from_numpy(images), seed=0).readout.mean, first.mean]
    assert torch.equal(*some)
    assert not torch.allclose(first.mean, with_readout(Counting(), images[:7]).readout.mean)


def test_the_cache_keeps_an_encoder_and_its_network_apart(tmp_path, images):
    network = resnet18_encoder(3).eval()
    for name, saved in (("plain", network), ("read", with_readout(network, images))):
        save_encoder(tmp_path / f"{name}.safetensors", saved, {})
    plain, alone, read = (
        load_encoder(tmp_path / f"{name}.safetensors", readout=readout)[0]
        for name, readout in (("plain", True), ("read", False), ("read", True))
    )
    assert identity(plain) == identity(alone) != identity(read)  # what was kept before read-outs is found again
    before = extract(tmp_path / "plain.safetensors", images, cache=tmp_path / "kept", device="cpu")
    after = extract(tmp_path / "read.safetensors", images, cache=tmp_path / "kept", device="cpu")
    assert len(list((tmp_path / "kept").iterdir())) == 2
    assert np.array_equal(extract(alone, images, cache=tmp_path / "kept"), before)
    assert np.array_equal(extract(read, images, cache=tmp_path / "kept"), after)
    assert len(list((tmp_path / "kept").iterdir())) == 2
    assert np.allclose(after, whiten(before), rtol=0.02, atol=0.02 * np.abs(after).max())  # half precision


def test_a_new_readout_takes_the_place_of_an_old_one(images):
    encoder = Counting()
    again = with_readout(with_readout(encoder, other_images()), images)
    assert again.network is network_of(again) is network_of(encoder) is encoder
    assert torch.equal(again.readout.axes, with_readout(encoder, images).readout.axes)


# --- what goes wrong ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: extract(Counting(), x[:0]), r"at least one row and column; got shape \(0, 8, 8, 3\)"),
        (lambda x: extract(Counting(), None), "images must be given"),
        (lambda x: extract(Counting(), x, batch=0), "batch must be at least 1; got 0"),
        (lambda x: extract(Counting(), x, precision="fp8"), "unknown precision 'fp8'"),
        (
            lambda x: extract(nn.Conv2d(3, 4, 3), x),
            r"must return \(n, d\).* got shape \(11, 4, 6, 6\). Pool and flatten",
        ),
        (lambda x: extract(lambda y: y[:5].mean((1, 2)), x), "a row for each of the 11 images; got 5 rows"),
        (lambda x: extract(lambda y: np.full((11, 2), np.nan), x), "finite float32 numbers; got nan or inf in row 0"),
        (lambda x: extract(lambda y: np.full((11, 2), 1e300), x), "finite float32 numbers"),
        (lambda x: extract(lambda y: ["a"] * 11, x), r"must be numbers \(n, d\).* got <U1 of shape \(11,\)"),
        (lambda x: extract(standardise, x, device="cpu"), "device is for torch modules.* got device='cpu'. Leave it o"),
        (lambda x: extract(standardise, x, precision="bf16"), "precision is for torch modules, and the callable stand"),
        (lambda x: extract(np.ones((11, 3)), x, precision="bf16"), "precision is for what is computed, and these emb"),
        (lambda x: extract(np.ones((11, 3)), x, device="cpu"), "device is for what is computed"),
        (lambda x: extract(np.ones((11, 3)), x, batch=3), "batch is for what is computed.* got batch=3"),
        (lambda x: extract(np.ones((11, 3)), x, cache_key="mine"), "cache_key is for what is computed"),
        (lambda x: extract(torch.ones(11, 3), x, cache="here"), "cache is for what is computed"),
        (lambda x: extract(Counting(), x, features="v"), "features is for files of embeddings"),
        (lambda x: extract(3, x), "encoder must be a torch module, a callable, a path or an array; got int"),
        (lambda x: extract("net.pt", x), "got the ending '.pt'. A torch module can be given as it is"),
        (lambda x: extract("nowhere.npy", x), "nowhere.npy does not exist"),
        (lambda x: extract("nowhere.safetensors", x), "nowhere.json; not both are in"),
        (
            lambda x: extract(np.ones((10, 3)), x),
            "the embeddings must have a row for each of the 11 images; got 10 rows",
        ),
        (lambda x: extract(np.ones(11), x), r"the embeddings must be numbers \(n, d\)"),
        (lambda x: standardise([["a", "b"]]), "x must hold numbers; got <U1"),
        (lambda x: standardise(np.ones(4)), r"got shape \(4,\)"),
        (lambda x: standardise([[1.0], [np.nan]]), "x must be finite; got nan or inf in row 1"),
        (lambda x: standardise([[1.0], [-np.inf]]), "x must be finite; got nan or inf in row 1"),
        (lambda x: standardise([[1e200], [-1e200]]), "below 1e150, where squares overflow; got 1e[+]200"),
        (lambda x: whiten(np.eye(4), like=np.eye(3)), "like must have the 4 columns of x; got 3"),
        (lambda x: whiten(np.eye(4), strength=2), "strength must be between 0 and 1; got 2"),
        (lambda x: with_readout(Counting(), x[:1]), "must point in different directions; got 1 that do not"),
        (lambda x: with_readout(Counting(), 0 * x), "must point in different directions; got 11 that do not"),
        (lambda x: whiten(np.ones((5, 2))), "must point in different directions; got 5 that do not"),
        (lambda x: whiten([[1.0, np.nan]]), "x must be finite float32 numbers; got nan or inf in row 0"),
        (lambda x: pca(np.eye(4), 5), "n_components must be between 1 and 4, the smaller of rows and columns; got 5"),
    ],
)
def test_errors_say_what_was_got(images, monkeypatch, tmp_path, call, message):
    monkeypatch.setenv("NAYSAY_DATA", str(tmp_path))
    with pytest.raises(InputError, match=message):
        call(images)
