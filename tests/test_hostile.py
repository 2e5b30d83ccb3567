"""Files that mean harm: none starts a program, is waited on for ever, or takes the machine's memory."""

import contextlib
import gzip
import io
import os
import re
import resource
import signal
import struct
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from naysay import datasets, labels, memory, portfolio, reading
from naysay.datasets import Source, images, opening, unpickle
from naysay.datasets.download import fetch
from naysay.errors import InputError
from naysay.features import load_encoder
from naysay.learning import Config, Predictor
from naysay.neighbors import Graph
from naysay.reading import statements


@pytest.fixture(autouse=True)
def no_longer_than_twenty_seconds():
    def late(*_):
        raise TimeoutError("a hostile file was waited on")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# pipes


def pipe(folder, name):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("t.csv", lambda path: reading.read(path, label="not")),
        ("t.parquet", lambda path: reading.read(path, label="not")),
        ("t.npz", lambda path: reading.read(path)),
        ("t.npz", lambda path: datasets.read(path)),
        ("t.npy", lambda path: datasets.read(path)),
        ("digits/a.png", lambda path: datasets.from_folder(path.parent)),
        ("c.toml", Config.from_file),
        ("g.safetensors", Graph.load),
        ("m.safetensors", Predictor.load),
        ("mnist.npz", lambda path: datasets.load("mnist", path.parent)),
        ("originals/f.bin", lambda path: fetch(Source("f.bin", (), None), path.parent.parent, "set")),
    ],
)
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_on(tmp_path, name, call):
    with pytest.raises(InputError, match=r"is not a file|there is no config file|There is no graph file"):
        call(pipe(tmp_path, name))


def test_a_pipe_in_place_of_an_encoder_is_refused(tmp_path):
    (tmp_path / "e.json").write_text('{"sha256": "0"}')
    with pytest.raises(InputError, match=r"an encoder is e.safetensors with its card e.json"):
        load_encoder(pipe(tmp_path, "e.safetensors"))


# programs


def test_an_image_is_opened_in_the_formats_that_are_meant_and_starts_no_program(tmp_path, monkeypatch):
    """Pillow hands an EPS file to Ghostscript, whatever the file is called."""
    program, started = tmp_path / "bin" / "gs", tmp_path / "started"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho yes > {started}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    images = tmp_path / "images"
    images.mkdir()
    eps = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"
    (images / "a.png").write_text(eps)
    with pytest.raises(InputError, match=r"a.png cannot be read as an image"):
        datasets.from_folder(images)
    assert not started.exists()


# memory


@pytest.fixture
def little_memory(monkeypatch):
    """As on a machine that has 200 MB free; a process that was really held to that would be killed where this fails."""
    monkeypatch.setattr(memory, "available", lambda: 200_000_000)


def packed_zeros(path, name, n):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "|u1", "fortran_order": False, "shape": (n // 100, 100)})
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(f"{name}.npy", "w") as file,
    ):
        file.write(head.getvalue())
        for _ in range(n // 1_000_000):
            file.write(bytes(1_000_000))
    return path


def test_an_npz_that_unpacks_to_more_than_there_is_is_refused_before(tmp_path, little_memory):
    path = packed_zeros(tmp_path / "t.npz", "x", 210_000_000)
    assert path.stat().st_size < 4_000_000
    with pytest.raises(InputError, match=r"t.npz needs 5.9 GB of memory and 0.\d GB are free. Give fewer rows"):
        datasets.read(path)


def test_an_npz_whose_arrays_have_different_rows_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    np.savez(tmp_path / "t.npz", x=np.zeros((90, 3)), comp=np.zeros(60, int))
    monkeypatch.setattr(np, "load", None)
    with pytest.raises(InputError, match=r"got 'comp' of shape .60,. beside 'x' of 90 rows. Give arrays of one length"):
        datasets.read(tmp_path / "t.npz", label="comp")


def test_what_is_made_of_an_npz_counts_and_not_its_features_alone(tmp_path, little_memory):
    path = packed_zeros(tmp_path / "t.npz", "x", 10_000_000)  # 40 MB of float32
    with pytest.raises(InputError, match=r"t.npz needs 0.3 GB of memory and 0.2 GB are free"):
        datasets.read(path)


def test_the_columns_of_a_wide_table_are_looked_up_and_not_looked_through(tmp_path):
    class Name(str):
        asked = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.asked += 1
            return str.__eq__(self, other)

    names = [Name(f"x{i}") for i in range(300)]
    opening.require(tmp_path / "t.csv", names, [f"x{i}" for i in range(300)])
    assert Name.asked <= 900  # and not half of 300 x 300


def test_a_packed_table_that_unpacks_to_more_than_there_is_is_refused_before(tmp_path, little_memory):
    with gzip.open(tmp_path / "t.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"x\n")
        for _ in range(210):
            file.write(b"1\n" * 500_000)
    with pytest.raises(InputError, match=r"t.csv.gz needs 0.\d GB of memory"):
        datasets.read(tmp_path / "t.csv.gz")


def test_more_classes_than_memory_can_hold_are_refused_before_they_are_counted(little_memory):
    with pytest.raises(
        InputError, match=r"a matrix of labels of 30,000 items in 10,000 classes needs 6.0 GB of memory"
    ):
        labels.from_indices(np.arange(30_000) % 10_000, 10_000)
    table = {"item": [str(i) for i in range(30_000)], "label": [str(i % 10_000) for i in range(30_000)]}
    with pytest.raises(InputError, match="Are these classes, or is it another column"):
        labels.from_table(table)


def test_a_portfolio_of_more_classes_than_memory_can_hold_is_refused_before_it_is_tried(little_memory):
    with pytest.raises(InputError, match=r"trying several models on 900 rows with 2,000 classes needs 0.\d GB"):
        portfolio.fit(np.zeros((900, 2), np.float32), labels.from_indices(np.arange(900), 2000), budget=1)


def test_a_portfolio_of_ten_thousand_classes_is_refused_however_much_memory_there_is(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 10**15)
    with pytest.raises(
        InputError, match=r"5,000 classes are the most that it takes. Are these classes, or is it anoth"
    ):
        portfolio.fit(np.zeros((90, 2), np.float32), labels.from_indices(np.arange(90), 10_000), budget=1)
    portfolio.check_classes(2000, 5000)


def test_few_labels_of_many_classes_touch_no_more_than_they_name(monkeypatch):
    counted = []
    monkeypatch.setattr(
        np, "bincount", lambda x, minlength=0, of=np.bincount: counted.append(minlength) or of(x, minlength=minlength)
    )
    labels.from_indices(np.arange(50), 1000)
    assert max(counted) == 50  # rows, and not rows times classes


def test_what_is_ruled_out_of_many_classes_is_looked_up_once_each():
    class Said(list):
        def __contains__(self, k):
            raise AssertionError("looked through, once for each class")

    assert statements.KINDS["is"](Said([1, 2]), (), range(4)) == [0, 3]
    assert statements.KINDS["chosen"](Said([1]), (0, 1), range(4)) == [0]


def wide_image(path, width, height):
    """A PNG whose header says this size, with its checksum right."""
    Image.new("L", (4, 4)).save(path)
    whole = bytearray(path.read_bytes())
    whole[16:24] = struct.pack(">II", width, height)
    whole[29:33] = struct.pack(">I", zlib.crc32(whole[12:29]))
    path.write_bytes(whole)


def test_images_larger_than_memory_are_refused_by_their_headers(tmp_path, little_memory):
    for i in range(8):
        wide_image(tmp_path / f"{i}.png", 8_000, 11_000)
    with pytest.warns(UserWarning, match=r"704 megapixels"), pytest.raises(InputError, match=r"needs 1.1 GB of memory"):
        datasets.from_folder(tmp_path)


def test_one_image_that_no_camera_makes_is_refused_by_its_header_and_without_pillows_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "_pixels", None)
    for i in range(2):
        Image.new("L", (4, 4)).save(tmp_path / f"{i}.png")
    wide_image(tmp_path / "2.png", 12_000, 14_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=r"2.png is too large: .* 89 megapixels; got 12,000"):
            datasets.from_folder(tmp_path)


def test_what_photographs_take_is_told_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(images.cores, "usable", lambda: 2)
    monkeypatch.setattr(images, "_pixels", lambda file, size, mode: 0)
    for i in range(10):
        wide_image(tmp_path / f"{i}.png", 9_504, 6_336)  # 60 megapixels
    with pytest.warns(UserWarning, match=r"reading 10 images of 602 megapixels in all takes about 15 s"):
        assert datasets.from_folder(tmp_path).x.shape == (10, 64, 64)


def test_what_is_small_is_never_refused(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 0)
    memory.afford(memory.SMALL, "it", "")
    with pytest.raises(InputError, match=r"it needs 0.1 GB of memory and 0.0 GB are free. Go."):
        memory.afford(memory.SMALL + 1, "it", "Go.")


def test_the_memory_that_is_left_is_what_the_process_is_held_to():
    free, before = memory.available(), resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + 200_000_000, before[1]))
    try:
        held = memory.available()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert 100_000_000 < held <= 200_000_000 < free


# pickles

LIST = b"\x80\x02]q\0"


def multiplied(times, deep):
    """A list of so many times a list of so many times a list ..."""
    steps = (b"](" + (b"h" + bytes([i])) * times + b"eq" + bytes([i + 1]) for i in range(deep))
    return LIST + b"".join(steps) + b"."


def repeated(text, times):
    head = b"\x80\x02(c_codecs\nencode\nq\0X" + struct.pack("<I", len(text)) + text + b"q\1"
    return head + b"h\0h\1\x85R" * times + b"l."


HARMFUL = {
    "is stored under a huge number": b"]r\xff\xff\xff\x1f.",
    "holds itself": LIST + b"h\0a.",
    "doubles itself sixty times": multiplied(2, 60),
    "is two hundred times itself, four times": multiplied(200, 4),
    "says it has 4 GB of bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 32) + b"a.",
    "says it has a terabyte to fill": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b".",
    "is a frame without an end": b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"].",
    "has a key of a hundred thousand tuples": b"\x80\x02})" + b"\x85" * 100_000 + b"K\1s.",
    "has a number of a hundred thousand digits": b"I" + b"9" * 100_000 + b"\n.",
    "says one text a thousand times": repeated(b"a" * 1_000_000, 1000),
}


@pytest.mark.parametrize("what", HARMFUL)
def test_a_pickle_takes_no_more_than_it_brings(what):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with contextlib.suppress(InputError):  # where nothing is left of the harm, it is read
        unpickle.array(unpickle.load(io.BytesIO(HARMFUL[what]), Path("p")), Path("p"))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "kilobytes"


@pytest.mark.parametrize(
    "name", [b"_codecs\nencode", b"numpy\nndarray", b"numpy\ndtype", b"numpy.core.multiarray\nscalar"]
)
def test_a_pickle_cannot_change_a_function_it_names(name):
    function = unpickle.ALLOWED[tuple(name.decode().split("\n"))]
    before = dict(vars(function))
    with pytest.raises(InputError, match="it changes a _Name"):
        unpickle.load(io.BytesIO(b"c" + name + b"\n}X\6\0\0\0valuesK\1sb."), Path("p"))
    assert dict(vars(function)) == before


# what is installed


def test_every_requirement_but_torch_is_installed_by_its_sum():
    root = Path(__file__).parent.parent
    text = (root / "requirements.txt").read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines[0] == "torch==2.13.0", "the Makefile looks for it by its name"
    for line in lines[1:]:
        assert re.fullmatch(r"[\w.-]+==[\w.]+( +--hash=sha256:[0-9a-f]{64})+", line), line
    assert "--require-hashes" in (root / "Makefile").read_text()
