"""Named sets: what load gives, the data folder, files that are not what they should be, and the fingerprint."""

import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay.datasets import CATALOG, NAMES, data_folder, load, store
from naysay.datasets.dataset import faults, from_arrays
from naysay.datasets.formats import NOISE_TOLERANCE
from naysay.errors import InputError

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
needs_shared = pytest.mark.skipif(
    not (SHARED / "unpack.py").exists(), reason=f"{SHARED} is not here: real files are not tested"
)


def arrays(n=12, shape=(28, 28), n_classes=10, annotators=0, dtype=np.uint8):
    rng = np.random.default_rng(0)
    made = {
        "x_train": rng.integers(0, 256, (n, *shape)).astype(dtype),
        "y_train": rng.integers(0, n_classes, n),
        "x_test": rng.integers(0, 256, (n // 2, *shape)).astype(dtype),
        "y_test": rng.integers(0, n_classes, n // 2),
        "classes": np.array([f"class {k}" for k in range(n_classes)]),
    }
    return made | ({"comp_train": rng.integers(0, n_classes, (n, annotators))} if annotators else {})


def put(folder, name, **changes):
    """The path of <folder>/<name>.npz with good arrays, but for `changes`; a change to None leaves the array out."""
    made = arrays() | changes
    path = folder / f"{name}.npz"
    np.savez(path, **{key: value for key, value in made.items() if value is not None})
    return path


def test_digits_are_embedded_and_the_default():
    digits = load()
    assert digits.name == "digits"
    assert digits.x_train.shape == (1442, 8, 8)
    assert digits.x_test.shape == (355, 8, 8)
    assert digits.x_train.dtype == np.uint8
    assert digits.x_train.max() == 255
    assert digits.y_train.dtype == np.int64
    assert digits.classes.tolist() == list("0123456789")
    assert repr(digits) == "<Dataset digits: 1442 + 355 of 8x8, 10 classes>"


def test_the_digits_split_is_stratified_and_fixed():
    digits = load("digits")
    train, test = np.bincount(digits.y_train), np.bincount(digits.y_test)
    assert (test == (train + test) // 5).all()
    assert digits.fingerprint == "205bca245a558769745571079ed7d316b4581bef23d9dd32a2dc899db5bad65e"


def test_stretching_the_digits_loses_nothing():
    from sklearn.datasets import load_digits

    digits = load("digits")
    both = np.sort(np.concatenate([digits.x_train, digits.x_test]).reshape(-1, 64).astype(float) * 16 / 255, axis=0)
    assert np.array_equal(np.rint(both), np.sort(load_digits().data, axis=0))


def test_a_dataset_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        load("digits").name = "other"


def test_every_name_says_what_it_is_and_where_it_comes_from():
    assert set(NAMES) == {
        "digits", "mnist", "fashion-mnist", "kmnist", "kmnist-partial", "cifar10", "cifar20", "cifar20-standard",
        "clcifar10", "clcifar20", "aclcifar10", "aclcifar20",
    }  # fmt: skip
    for name, entry in CATALOG.items():
        assert all((entry.title, entry.licence, entry.citation)), name
        assert len(set(entry.classes)) == len(entry.classes), name
        for source in entry.sources:
            assert source.urls, name
            assert all(url.startswith("https://") for url in source.urls), name
            assert source.sha256 is None or len(source.sha256) == 64, name
        unchecked = {source.file for source in entry.sources if source.sha256 is None}
        assert unchecked == ({f"{name}.pkl"} if "clcifar" in name else set()), name
    assert {len(CATALOG[name].classes) for name in ("cifar20", "cifar20-standard", "clcifar20", "aclcifar20")} == {20}


def test_an_unknown_name_gets_the_nearest_ones():
    with pytest.raises(InputError, match=r"unknown dataset 'cifar-10': did you mean cifar10"):
        load("cifar-10")


def test_the_folder_is_the_argument_or_the_variable_or_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NAYSAY_DATA", str(tmp_path / "variable"))
    assert data_folder(tmp_path / "argument") == tmp_path / "argument"
    assert data_folder() == tmp_path / "variable"
    monkeypatch.delenv("NAYSAY_DATA")
    assert data_folder().name == "naysay"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder("~/sets") == tmp_path / "sets"


def test_a_file_as_data_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"the data folder must be a folder; got the file .* Give another with data="):
        load("mnist", tmp_path / "file")


def test_a_set_is_read_from_its_npz_file(tmp_path, monkeypatch):
    made = arrays(shape=(32, 32, 3), annotators=3)
    np.savez(tmp_path / "aclcifar10.npz", **{**made, "y_train": made["y_train"].astype(np.uint8)}, extra=np.arange(3))
    monkeypatch.setenv("NAYSAY_DATA", str(tmp_path))
    data = load("aclcifar10")
    for key, value in made.items():
        assert np.array_equal(getattr(data, key), value), key
    assert data.y_train.dtype == data.comp_train.dtype == np.int64
    assert data.n_classes == 10
    assert repr(data).endswith("12 + 6 of 32x32x3, 10 classes, 3 complementary labels each>")


def test_kmnist_partial_is_only_read_from_the_folder(tmp_path):
    with pytest.raises(InputError, match=r"'kmnist-partial' is not published .* Put kmnist-partial.npz in "):
        load("kmnist-partial", tmp_path)
    put(tmp_path, "kmnist-partial")
    assert len(load("kmnist-partial", tmp_path).x_train) == 12


@needs_shared
def test_the_files_that_unpack_writes_load_as_they_are(tmp_path):
    subprocess.run(
        [sys.executable, SHARED / "unpack.py", tmp_path, "mnist", "kmnist-partial"], check=True, capture_output=True
    )
    for name in ("mnist", "kmnist-partial"):
        data, entry = load(name, tmp_path), CATALOG[name]
        assert (len(data.x_train), len(data.x_test), data.x_train.shape[1:]) == (
            entry.n_train,
            entry.n_test,
            entry.shape,
        )
        assert data.y_train.dtype == np.int64
        assert data.x_train.dtype == np.uint8
        assert data.classes.tolist() == list("0123456789")


@needs_shared
def test_real_annotations_have_the_noise_that_the_table_expects():
    for pack, truth, name in (("cifar10", "train_labels", "aclcifar10"), ("cifar100", "y20_train", "aclcifar20")):
        with np.load(SHARED / f"{pack}.pack.npz") as file:
            share = (file["acl_labels"][:, :3] == file[truth][:, None]).mean()
        assert abs(share - CATALOG[name].decode.keywords["noise"]) < NOISE_TOLERANCE, name


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"classes": None, "y_test": None}, "it lacks y_test, classes"),
        ({"x_train": np.zeros((12, 32, 32), np.uint8)}, r"x_train must be \(n, 28, 28\); got shape \(12, 32, 32\)"),
        ({"x_test": np.zeros((6, 28, 28, 1), np.uint8)}, r"x_test must be \(n, 28, 28\); got shape \(6, 28, 28, 1\)"),
        (
            {"x_test": np.zeros((0, 28, 28), np.uint8), "y_test": np.zeros(0, int)},
            r"x_test must be .* got shape \(0, 28, 28\)",
        ),
        ({"x_train": np.zeros((12, 28, 28), np.int32)}, "x_train must be uint8 images or floats; got int32"),
        ({"x_train": np.full((12, 28, 28), np.nan)}, "x_train must be finite; row 0 holds NaN or inf"),
        (
            {"y_train": np.zeros(11, int)},
            r"y_train must be \(n,\) class numbers, one row per row of x; got int64 of shape \(11,\)",
        ),
        ({"y_train": np.zeros(12)}, r"y_train must be \(n,\) class numbers, .* got float64"),
        ({"y_train": np.full(12, 10)}, "y_train must lie between 0 and 9; got 10"),
        ({"y_test": np.full(6, -1)}, "y_test must lie between 0 and 9; got -1"),
        (
            {"comp_train": np.zeros(12, int)},
            r"comp_train must be \(n, m\) class numbers, .* got int64 of shape \(12,\)",
        ),
        ({"comp_train": np.full((12, 3), 10)}, "comp_train must lie between -1 and 9; got 10"),
        (
            {"comp_train": np.full((12, 0), 1)},
            r"comp_train must be \(n, m\) class numbers, .* got int64 of shape \(12, 0\)",
        ),
        ({"classes": np.array(["a"] * 10)}, "classes must be two or more different names; got"),
        ({"classes": np.array("abc")}, "classes must be two or more different names; got 'abc'"),
        ({"x_train": np.array(1)}, r"x_train must be \(n, 28, 28\); got shape \(\)"),
    ],
)
def test_a_file_with_wrong_arrays_is_named_with_the_way_out(tmp_path, changes, says):
    path = put(tmp_path, "mnist", **changes)
    before = path.read_bytes()
    with pytest.raises(
        InputError, match=f"mnist.npz does not hold 'mnist': {says}.*Delete it and load 'mnist' again"
    ) as error:
        load("mnist", tmp_path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before


def test_a_file_that_is_no_npz_is_named_with_the_way_out(tmp_path):
    whole = put(tmp_path, "mnist").read_bytes()
    np.save(tmp_path / "one.npy", np.zeros(3))
    for content in (b"", b"hello", whole[: len(whole) // 2], whole[1000:], (tmp_path / "one.npy").read_bytes()):
        (tmp_path / "mnist.npz").write_bytes(content)
        with pytest.raises(
            InputError, match=r"mnist.npz cannot be read as .npz \(.*\). Delete it and load 'mnist' again"
        ):
            load("mnist", tmp_path)
        assert (tmp_path / "mnist.npz").read_bytes() == content


def test_objects_in_a_file_are_never_unpickled(tmp_path):
    put(tmp_path, "mnist", classes=np.array([print] * 10, object))
    with pytest.raises(InputError, match=r"mnist.npz cannot be read as .npz \(Object arrays cannot be loaded"):
        load("mnist", tmp_path)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.data())
def test_one_altered_byte_is_noticed_or_changes_nothing(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "altered"
    folder.mkdir(exist_ok=True)
    small = {
        "x_train": np.ones((2, 1)),
        "y_train": np.array([0, 1]),
        "x_test": np.ones((2, 1)),
        "y_test": np.array([0, 1]),
    }
    path = folder / "own.npz"
    np.savez(path, **small, classes=np.array(["a", "b"]))
    whole, right = bytearray(path.read_bytes()), store.read(path, "own").fingerprint
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    try:
        got = store.read(path, "own").fingerprint
    except InputError:
        return
    assert got == right


def test_writing_is_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "mnist.npz"
    store.write(path, arrays())
    before = path.read_bytes()
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):  # fails in the middle of writing
        store.write(path, arrays() | {"y_test": np.array([None, 1], object)})
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["mnist.npz"]


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"mnist.npz cannot be written .* Choose another data folder"):
        store.write(tmp_path / "file" / "mnist.npz", arrays())


def test_the_fingerprint_is_of_the_content():
    made = arrays(annotators=2)
    print_ = from_arrays("a", made).fingerprint
    same = made | {
        "x_train": np.asfortranarray(made["x_train"]),
        "y_train": made["y_train"].astype(">i4"),
        "classes": made["classes"].astype("U40"),
    }
    assert from_arrays("b", same).fingerprint == print_
    for key, value in made.items():
        other = value.copy()
        other[-1] = "other" if key == "classes" else 9 - other[-1]
        assert from_arrays("a", made | {key: other}).fingerprint != print_, key
    assert from_arrays("a", {key: value for key, value in made.items() if key != "comp_train"}).fingerprint != print_


def test_good_arrays_have_no_faults():
    assert not list(faults(arrays(annotators=3), (28, 28)))
    assert not list(faults(arrays(shape=(5,), dtype=np.float32) | {"comp_train": np.full((12, 1), -1)}))
