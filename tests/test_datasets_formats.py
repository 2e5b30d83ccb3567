"""The published formats, on small files made here: IDX, CIFAR's archives, the annotators' pickles, and pickles that
mean harm.
"""

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from naysay.datasets import CATALOG, formats, load, unpickle
from naysay.errors import InputError

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def write_idx(path, array, code=8):
    path.write_bytes(
        gzip.compress(struct.pack(f">4B{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.tobytes())
    )
    return path


class Python2Pickler(pickle._Pickler):
    """Writes text and bytes as Python 2's protocol 2 does, and numpy's names as they were then: what CIFAR's batches
    are.
    """

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_string(self, value):
        raw = value.encode() if isinstance(value, str) else value
        self.write(pickle.BINSTRING + struct.pack("<i", len(raw)) + raw)
        self.memoize(value)

    dispatch[bytes] = dispatch[str] = save_string


def python2(value):
    file = io.BytesIO()
    Python2Pickler(file, 2).dump(value)
    return file.getvalue().replace(b"numpy._core.", b"numpy.core.")


def write_archive(path, batches, dump=python2):
    """A tar.gz with one pickled batch per member, in a folder as in the published ones."""
    with tarfile.open(path, "w:gz") as tar:
        for name, batch in batches.items():
            raw = dump(batch)
            member = tarfile.TarInfo(f"cifar-python/{name}")
            member.size = len(raw)
            tar.addfile(member, io.BytesIO(raw))
    return path


def cifar10(n=4):
    rng = np.random.default_rng(0)
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    return {
        name: {
            "data": rng.integers(0, 256, (n, 3072), np.uint8),
            "labels": rng.integers(0, 10, n).tolist(),
            "batch_label": name,
        }
        for name in names
    }


def cifar100(n=100):
    rng = np.random.default_rng(1)
    coarse = rng.integers(0, 20, 100)
    coarse[81] = 19
    batch = {"fine_labels": list(range(100)), "coarse_labels": coarse.tolist()}
    return {name: {"data": rng.integers(0, 256, (n, 3072), np.uint8), **batch} for name in ("train", "test")}


def published(y, noise=0.1, n_labels=3):
    """The dict of an annotators' file for the ordinary labels y, of which the share `noise` of labels name the true
    class.
    """
    rng = np.random.default_rng(2)
    comp = (y[:, None] + rng.integers(1, 10, (len(y), n_labels))) % 10
    wrong = rng.permutation(3 * len(y))[: round(noise * 3 * len(y))]
    comp[wrong // 3, wrong % 3] = y[wrong // 3]
    images = [np.full((32, 32, 3), i % 256, np.uint8) for i in range(len(y))]
    return {
        "names": [f"{i}.png" for i in range(len(y))],
        "images": images,
        "ord_labels": y.tolist(),
        "cl_labels": comp.tolist(),
    }


# IDX


def test_idx_files_become_images_and_labels(tmp_path):
    rng = np.random.default_rng(0)
    made = [rng.integers(0, 256, shape).astype(np.uint8) for shape in ((5, 28, 28), (5,), (3, 28, 28), (3,))]
    decoded = formats.decode_idx(*(write_idx(tmp_path / f"{i}.gz", array) for i, array in enumerate(made)))
    for key, array in zip(("x_train", "y_train", "x_test", "y_test"), made, strict=True):
        assert np.array_equal(decoded[key], array), key
    assert decoded["x_train"].flags.writeable


def test_idx_files_that_are_not_whole_are_refused(tmp_path):
    whole = write_idx(tmp_path / "a.gz", np.zeros((5, 28, 28), np.uint8)).read_bytes()
    raw = gzip.decompress(whole)
    packed = {"cut": whole[: len(whole) // 2], "empty": b"", "text": b"hello"}
    inside = {
        "short": raw[:-1],
        "long": raw + b"x",
        "headless": raw[4:],
        "none": b"",
        "header only": raw[:6],
        "other": b"\0\0\x0d" + raw[3:],
    }
    for name, content in packed.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            InputError, match=rf"{name} (cannot be unpacked \(.*\)|is not a whole IDX file .*)\. Delete it and load"
        ):
            formats.read_idx(tmp_path / name)
    for name, content in inside.items():
        (tmp_path / name).write_bytes(gzip.compress(content))
        with pytest.raises(
            InputError, match=f"{name} is not a whole IDX file of bytes: {len(content)} bytes say shape"
        ):
            formats.read_idx(tmp_path / name)


# CIFAR


@pytest.mark.parametrize("dump", [python2, *(partial(pickle.dumps, protocol=p) for p in range(6))])
def test_cifar10_batches_of_every_protocol_become_images(tmp_path, dump):
    batches = cifar10()
    decoded = formats.decode_cifar10(write_archive(tmp_path / "c.tar.gz", batches, dump))
    assert decoded["x_train"].shape == (20, 32, 32, 3)
    assert decoded["y_train"].tolist() == [y for i in range(1, 6) for y in batches[f"data_batch_{i}"]["labels"]]
    red, green, blue = batches["test_batch"]["data"][3].reshape(3, 32, 32)
    assert np.array_equal(decoded["x_test"][3], np.stack([red, green, blue], -1))


def test_the_two_maps_of_cifar20_differ_in_the_streetcar_alone(tmp_path):
    archive = write_archive(tmp_path / "c.tar.gz", cifar100())
    ours, standard = formats.decode_cifar20(archive), formats.decode_cifar20_standard(archive)
    for key in ("y_train", "y_test"):
        assert np.flatnonzero(ours[key] != standard[key]).tolist() == [81]
        assert (ours[key][81], standard[key][81]) == (18, 19)
    assert np.array_equal(ours["x_train"], standard["x_train"])


@pytest.mark.skipif(
    not (SHARED / "cifar100.pack.npz").exists(), reason=f"{SHARED} is not here: the real class maps are not compared"
)
def test_the_maps_of_cifar20_are_the_real_ones(tmp_path):
    with np.load(SHARED / "cifar100.pack.npz") as pack:
        standard, human, classes = pack["fine_to_coarse_std"], pack["fine_to_cl20"], pack["classes20"]
    batches = cifar100()
    batches["train"]["coarse_labels"] = standard.tolist()
    assert np.array_equal(formats.decode_cifar20(write_archive(tmp_path / "c.tar.gz", batches))["y_train"], human)
    assert list(CATALOG["cifar20"].classes) == classes.tolist()


def test_damaged_cifar_archives_are_refused(tmp_path):
    path = tmp_path / "cifar.tar.gz"
    whole = write_archive(path, cifar10()).read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"hello", gzip.compress(b"hello")):
        path.write_bytes(content)
        with pytest.raises(
            InputError, match=r"cifar.tar.gz (cannot be unpacked|lacks|holds a pickle that) .*Delete it"
        ):
            formats.decode_cifar10(path)
    batches = cifar10()
    del batches["data_batch_3"]
    with pytest.raises(InputError, match=r"cifar.tar.gz lacks data_batch_3\."):
        formats.decode_cifar10(write_archive(path, batches))
    for wrong in ({"labels": [1]}, {"data": np.zeros((4, 3072), np.int64)}, {"data": np.zeros((4, 99), np.uint8)}):
        batches = cifar10()
        batches["data_batch_2"].update(wrong)
        with pytest.raises(
            InputError, match=r"cifar.tar.gz must hold batches of data, labels, data uint8 \(n, 3072\); got"
        ):
            formats.decode_cifar10(write_archive(path, batches))
    batches = cifar10()
    batches["test_batch"]["labels"] = [0.5] * 4
    with pytest.raises(InputError, match=r"must hold batches .* 'labels': 'float64 \(4,\)'"):
        formats.decode_cifar10(write_archive(path, batches))
    with pytest.raises(InputError, match="must hold batches"):
        formats.decode_cifar10(write_archive(path, {key: [1, 2] for key in cifar10()}))


def test_nothing_is_unpacked_to_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    formats.decode_cifar10(write_archive(tmp_path / "c.tar.gz", cifar10()))
    assert [file.name for file in tmp_path.iterdir()] == ["c.tar.gz"]


# CLCIFAR and ACLCIFAR


@pytest.fixture
def archive(tmp_path):
    return write_archive(tmp_path / "cifar.tar.gz", cifar10(n=200))


@pytest.fixture
def y(archive):
    return formats.decode_cifar10(archive)["y_train"]


def decode(path, content, archive, noise=0.1):
    path.write_bytes(pickle.dumps(content))
    return formats.decode_annotated(path, archive, base=formats.decode_cifar10, noise=noise)


@pytest.mark.parametrize("form", ["lists", "arrays", "numpy integers", "flat images", "columns", "nine labels"])
def test_annotated_files_are_read_in_every_form_they_may_have(tmp_path, archive, y, form):
    content = published(y, n_labels=9 if form == "nine labels" else 3)
    labels, images = np.array(content["cl_labels"])[:, :3], np.stack(content["images"])
    if form == "arrays":
        content |= {"images": images, "ord_labels": y, "cl_labels": np.array(content["cl_labels"])}
    elif form == "numpy integers":
        content |= {"ord_labels": list(y), "cl_labels": [list(row) for row in labels]}
    elif form == "flat images":
        content |= {"images": list(images.transpose(0, 3, 1, 2).reshape(-1, 3072))}
    elif form == "columns":
        content |= {"ord_labels": [[k] for k in y.tolist()]}
    decoded = decode(tmp_path / "a.pkl", content, archive)
    assert np.array_equal(decoded["comp_train"], labels)
    assert np.array_equal(decoded["y_train"], y)
    assert np.array_equal(decoded["x_train"], images)
    assert decoded["x_test"].shape == (200, 32, 32, 3)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c.pop("cl_labels"), "must hold a dict with images, ord_labels and cl_labels; it does not"),
        (
            lambda c: c["images"].pop(),
            r"not the published file: images must be uint8 \(1000, 32, 32, 3\); got uint8 \(999,",
        ),
        (lambda c: c["ord_labels"].pop(), r"labels must be class numbers|its classes have"),
        (
            lambda c: c["cl_labels"].pop(),
            r"labels must be class numbers, \(1000,\) and \(1000, 3\); got int64 \(1000,\) and int64 \(999, 3\)",
        ),
        (lambda c: c["cl_labels"].__setitem__(0, [1, 2, 10]), "labels must lie between 0 and 9"),
        (lambda c: c["cl_labels"].__setitem__(0, [1, 2, -1]), "labels must lie between 0 and 9"),
        (
            lambda c: c["cl_labels"].__setitem__(0, [0.5, 2, 1]),
            "labels must be class numbers, .* got int64 .* and float64",
        ),
        (
            lambda c: c["ord_labels"].__setitem__(0, (c["ord_labels"][0] + 1) % 10),
            r"its classes have \[.*\] images, CIFAR's \[",
        ),
        (lambda c: c["cl_labels"].reverse(), r"[0-9.]+% of its labels name the true class, where 10.00% are published"),
    ],
)
def test_an_annotated_file_that_is_not_the_published_one_is_refused(tmp_path, archive, y, change, says):
    content = published(y)
    change(content)
    with pytest.raises(InputError, match=f"clcifar.pkl .*{says}.*put the publisher's clcifar.pkl there"):
        decode(tmp_path / "clcifar.pkl", content, archive)


def test_load_makes_an_annotated_set_from_files_put_by_hand(tmp_path, archive, y, monkeypatch):
    (tmp_path / "originals").mkdir()
    (tmp_path / "originals" / "clcifar10.pkl").write_bytes(pickle.dumps(published(y)))
    archive.rename(tmp_path / "originals" / "cifar-10-python.tar.gz")
    total = hashlib.sha256((tmp_path / "originals" / "cifar-10-python.tar.gz").read_bytes()).hexdigest()
    entry = CATALOG["clcifar10"]
    sources = (entry.sources[0], replace(entry.sources[1], sha256=total))
    decode = partial(entry.decode, noise=0.1)
    monkeypatch.setitem(CATALOG, "clcifar10", replace(entry, sources=sources, decode=decode))
    data = load("clcifar10", tmp_path)
    assert data.comp_train.shape == (1000, 3)
    assert data.comp_train.dtype == np.int64
    assert data.classes[0] == "airplane"
    assert (tmp_path / "clcifar10.npz").exists()


# pickles


class Harm:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_would_create_a_file_is_refused_by_name(tmp_path, protocol):
    path = tmp_path / "harm.pkl"
    for harm, name in (
        (Harm(os.system, f"touch {tmp_path}/harm"), "posix.system"),
        (Harm(eval, f"open('{tmp_path}/harm', 'w')"), "(builtins|__builtin__).eval"),
        (Harm(open, f"{tmp_path}/harm", "w"), "_?io.open"),
        (Harm(np.save, f"{tmp_path}/harm", [1]), "numpy.save"),
        (getattr, "(builtins|__builtin__).getattr"),
    ):
        path.write_bytes(pickle.dumps({"images": [harm]}, protocol))
        with (
            path.open("rb") as file,
            pytest.raises(InputError, match=rf"harm.pkl holds a pickle .* \(it asks for {name}, which data"),
        ):
            unpickle.load(file, path)
    assert [file.name for file in tmp_path.iterdir()] == ["harm.pkl"]


@pytest.mark.parametrize("protocol", range(6))
def test_what_data_needs_is_read(protocol):
    content = {
        "text": ["a", b"b", "ü"],
        "numbers": (1, 2.5, True, None, 10**20),
        "bytes": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big endian": np.arange(3, dtype=">i4"),
        "names": np.array(["a", "bc"]),
        "scalar": np.int64(7),
        "empty": np.empty((0, 3)),
    }
    read = unpickle.load(io.BytesIO(pickle.dumps(content, protocol)), Path("p"))
    assert read["text"] == content["text"]
    assert read["numbers"] == content["numbers"]
    assert read["scalar"] == 7
    for key in ("bytes", "fortran", "big endian", "names", "empty"):
        got = unpickle.array(read[key], Path("p"))
        assert np.array_equal(got, content[key]), key
        assert got.dtype == content[key].dtype, key


def test_arrays_of_objects_are_refused():
    with pytest.raises(
        InputError, match=r"p holds a pickle .*it has an array of type 'O8', which is neither numbers nor text"
    ):
        unpickle.load(io.BytesIO(pickle.dumps(np.array([print, 1], object), 2)), Path("p"))


def test_an_array_cannot_claim_more_than_it_brings():
    raw = pickle.dumps(np.arange(4, dtype=np.uint8), 2)
    assert raw.count(b"K\x04\x85") == 1  # the shape (4,)
    with pytest.raises(
        InputError, match=r"p holds a pickle that cannot be read \(cannot reshape array of size 4 into shape \(9,\)\)"
    ):
        unpickle.load(io.BytesIO(raw.replace(b"K\x04\x85", b"K\x09\x85")), Path("p"))


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="p holds lists of different lengths where it should not"):
        unpickle.array([[1, 2], [3]], Path("p"))


def test_a_pickle_cut_anywhere_is_refused():
    raw = pickle.dumps({"images": [np.arange(3)], "labels": [1, 2]}, 4)
    for end in range(len(raw)):
        with pytest.raises(InputError, match="p holds a pickle that cannot be read"):
            unpickle.load(io.BytesIO(raw[:end]), Path("p"))
