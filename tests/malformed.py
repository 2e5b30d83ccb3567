"""Files that are almost right, by seed, for every reader: each must give a result or one sentence.

    python tests/malformed.py [SEEDS]      # so many inputs for each reader, 300 unless told: `make fuzz`

A reader's row writes good files into a folder, spoils them (bytes turned, cut, doubled, put in; numbers, types and
names exchanged for odd ones), and says what to call. `outcome` calls it and tells what went wrong: an error that is no
`InputError`, more than 20 seconds, a gigabyte more memory, an input that was changed. test_malformed.py has the first
seeds of each.
"""

import contextlib
import copy
import faulthandler
import functools
import gzip
import hashlib
import io
import json
import os
import pickle
import random
import resource
import shutil
import signal
import struct
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from naysay import datasets, labels, tensors
from naysay.datasets import formats, store, unpickle
from naysay.datasets.columns import apply_blocks
from naysay.datasets.recipe import Columns
from naysay.errors import InputError
from naysay.features import load_encoder
from naysay.learning import Config, Predictor
from naysay.learning.folder import load, save
from naysay.learning.rows import as_inputs
from naysay.models import build
from naysay.neighbors import Graph
from naysay.reading import read
from naysay.runs import Run
from naysay.runs.report import render

SECONDS, MEGABYTES = 20, 1000
FINE = ("taken", "refused")
BEFORE, EXPORTS = Path(__file__).parent / "before", Path(__file__).parent / "exports"

# spoiling bytes

TOKENS = (
    *(b"\0", b"\r", b"\n", b"\r\r\n", b'"', b",", b";", b"\t", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"'"),
    *(b"nan", b"inf", b"-1", b"1e999", b"-0", b"9" * 400, b"[", b"]", b"{", b"}", b"(", b"[" * 3000, b"null", b"true"),
    *(b"x" * 140_000, b"\x80\x05\x95", b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0" * 8, b"\xf0\x9f\x98\x80", b"=1+1", b"|"),
)


def spoil(content, rng):
    """The bytes after one to four changes."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        content = rng.choice((turn, cut, drop, put, double, blank, exchange, put, turn))(content, rng)
    return content


def turn(content, rng):
    made = bytearray(content)
    for _ in range(min(len(made), rng.choice((1, 2, 8)))):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def some(content, rng):
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.choice((1, 2, 8, 64, 1000)))


def cut(content, rng):
    return content[: rng.randrange(len(content) + 1)]


def drop(content, rng):
    start, end = some(content, rng)
    return content[:start] + content[end:]


def put(content, rng):
    start = rng.randrange(len(content) + 1)
    return content[:start] + rng.choice(TOKENS) + content[start:]


def double(content, rng):
    start, end = some(content, rng)
    return content[:end] + content[start:end] * rng.choice((1, 3, 50)) + content[end:]


def blank(content, rng):
    start, end = some(content, rng)
    return content[:start] + rng.choice((b"\0", b"\xff", b" ", b"9")) * (end - start) + content[end:]


def exchange(content, rng):
    old, new = rng.choice(TOKENS[:12]), rng.choice(TOKENS)
    return content.replace(old, new, 3) if old in content else put(content, rng)


def recoded(text, rng):
    """Text as bytes, now and then in another encoding or with other ends of lines."""
    text = text.replace("\n", rng.choice(("\n",) * 6 + ("\r", "\r\n", "\n\r")))
    return text.encode(rng.choice(("utf-8",) * 8 + ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig")))


# spoiling values

ODD = (
    *(None, True, False, -1, 0, 1, 3, 0.5, -0.0, 1e308, float("nan"), float("inf"), 10**30, -(10**30), 2**31, 2**63),
    *("", "x", "x" * 1000, "\ud800", "\0", "nan", "1", "cat", "ü", "naysay-run-1", [], {}, [0], [[1.5]], {"a": 1}),
)


def odd(rng):
    value = copy.deepcopy(rng.choice(ODD))
    if rng.random() < 0.1:
        for _ in range(rng.choice((3, 90, 400))):
            value = [value]
    return value


def spoil_tree(tree, rng):
    """The JSON tree after one to three changes somewhere in it: an odd value, or an entry gone, doubled or renamed."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 3))):
        at = tree
        while True:
            places = list(at) if isinstance(at, dict) else range(len(at))
            place = rng.choice(places) if len(places) else None
            inside = None if place is None else at[place]
            if not (isinstance(inside, dict | list) and inside and rng.random() < 0.8):
                break
            at = inside
        if place is None or rng.random() < 0.1:
            at.update(extra=odd(rng)) if isinstance(at, dict) else at.append(odd(rng))
        elif rng.random() < 0.25:
            del at[place]
        else:
            at[place] = odd(rng)
    return tree


def odd_array(rng, n=6):
    """An array of any type and shape, also of those that no reader means."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    kind = rng.choice(("<f4", ">f4", ">f8", "<f2", "g", "<i8", ">i4", "u1", "?", "c16", "S3", "U2", "M8[s]", "V4", "s"))
    shape = rng.choice(((n, 4, 4), (n, 4, 4, 3), (0,), (0, 2), (n, 0), (), (n - 1, 2), (1,) * 9))
    shape = rng.choice(((n,), (n, 2), (n, 2), shape))
    size = int(np.prod(shape))
    if kind == "s":
        return np.zeros(shape, [("a", "<f4"), ("b", "<i4")])
    if kind[0] in "SU":
        letters = rng.choice((["cat", "dog", "emu"], ["", "a", "b"], ["ü", "\xff", "\x01"], ["\ud800", "b", "c"]))
        made = np.array([letters[i % 3] for i in range(size)] or [""], "U3")[:size].reshape(shape)
        if kind == "S3":
            return np.full(shape, b"\xff\xfe") if rng.random() < 0.5 else np.char.encode(made, "utf-8", "replace")
        if rng.random() < 0.1 and size:
            made = made.copy()
            made.view(np.uint32).reshape(-1)[0] = 0x110000  # beyond the last letter there is
        return made
    made = numbers.integers(0, 4, shape) if rng.random() < 0.5 else numbers.normal(size=shape)
    if rng.random() < 0.2 and size and made.dtype.kind == "f":
        made.reshape(-1)[0] = rng.choice((np.nan, np.inf, 1e308))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.astype(np.int64).astype(kind) if kind[0] in "MV" else made.astype(kind)


# good files

ROWS = 12
NAMES = ("cat", "dog", "emu")


def table_text(rng):
    mark = rng.choice(",,,;\t")
    rows = [["id", "a", "b", "not_label", "truth"]]
    rows += [[f"i{i}", f"{i / 3:.3f}", str(i), NAMES[i % 3], NAMES[(i + 1) % 3]] for i in range(ROWS)]
    return "\n".join(mark.join(row) for row in rows) + "\n"


def votes_text(rng):
    rows = [f"i{i % ROWS},{NAMES[i % 3]},w{i % 4},cat|dog|emu" for i in range(2 * ROWS)]
    return "item,label,worker,shown\n" + "\n".join(rows) + "\n"


def write_parquet(path, rng):
    columns = {
        "id": [f"i{i}" for i in range(ROWS)],
        "e": [[i / 3, 1.0, -i] for i in range(ROWS)],
        "a": [float(i) for i in range(ROWS)],
        "not_label": [NAMES[i % 3] for i in range(ROWS)],
    }
    odd_columns = (
        pa.array([None] * ROWS, pa.null()),
        pa.array([b"\xff\xfe"] * ROWS, pa.binary()),
        pa.array([[[1.0]]] * ROWS, pa.list_(pa.list_(pa.float32()))),
        pa.array(list(range(ROWS)), pa.decimal128(38, 2)),
        pa.array(list(range(ROWS)), pa.timestamp("ns")),
        pa.array([[1.0] * (i % 3) for i in range(ROWS)]),
        pa.array([[None, 1.0]] * ROWS),
        pa.array([{"x": 1}] * ROWS),
        pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
        pa.array([10**15] * ROWS, pa.uint64()),
        pa.array([float("nan")] * ROWS),
        pa.array([1.0] * ROWS, pa.float16()) if hasattr(pa, "float16") else pa.array([1.0] * ROWS),
    )
    if rng.random() < 0.5:
        columns[rng.choice(list(columns))] = rng.choice(odd_columns)
    pq.write_table(pa.table(columns), path, compression=rng.choice(("snappy", "none", "gzip", "zstd")))


def png_bytes():
    from PIL import Image

    made = io.BytesIO()
    Image.new("L", (4, 4)).save(made, "PNG")
    return made.getvalue()


def image_bytes(rng):
    from PIL import Image

    if rng.random() < 0.05:
        return tall_png(rng), "PNG"
    if rng.random() < 0.05:
        return b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n", "PNG"
    kind, mode = rng.choice(("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM", "TIFF")), rng.choice(("L", "RGB"))
    if kind in ("PNG", "TIFF") and rng.random() < 0.5:
        mode = rng.choice(
            ("1", "P", "RGBA", "LA", "I;16", "I", "F") if kind == "TIFF" else ("1", "P", "RGBA", "LA", "I;16")
        )
    made = io.BytesIO()
    image, more = Image.new(mode, (rng.randrange(1, 9), rng.randrange(1, 9))), {}
    if kind in ("PNG", "JPEG", "WEBP") and rng.random() < 0.5:
        more["exif"] = image.getexif()
        more["exif"].update({0x0112: rng.randrange(1, 10), 0x010E: "text", 0x8769: {0x9286: b"note"}})
    image.save(made, kind, **more)
    return made.getvalue(), kind


def tall_png(rng):
    """A PNG whose header says more than its data hold, with the checksum right."""
    whole = bytearray(png_bytes())
    whole[16:24] = struct.pack(">II", rng.choice((1, 9000, 2**31 - 1, 0)), rng.choice((1, 12_000, 2**31 - 1)))
    whole[29:33] = struct.pack(">I", zlib.crc32(whole[12:29]))
    return bytes(whole)


def npy_bytes(array):
    made = io.BytesIO()
    np.lib.format.write_array(made, array, allow_pickle=False)
    return made.getvalue()


def write_npz(path, arrays, rng):
    """An npz of the arrays, now and then spoilt inside, where the checksums are right again."""
    with zipfile.ZipFile(path, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, array in arrays.items():
            content = npy_bytes(array)
            archive.writestr(f"{name}.npy", spoil(content, rng) if rng.random() < 0.03 else content)


def spoil_file(path, rng, often=0.5):
    if rng.random() < often:
        path.write_bytes(spoil(path.read_bytes(), rng))


# the readers


def use(data):
    """What every command does with what was read, before any work."""
    as_inputs(data.items.x[:3])
    labels.validate(data.comp)
    json.dumps([dict(data.origin), data.items.fingerprint], allow_nan=False)
    "".join([*data.items.ids.tolist(), *data.classes]).encode()


def csv(folder, rng):
    name = rng.choice(("t.csv", "t.csv", "t.tsv", "t.csv.gz"))
    content = recoded(table_text(rng), rng)
    content = spoil(content, rng) if rng.random() < 0.8 else content
    (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    if name.endswith("gz"):
        spoil_file(folder / name, rng, 0.3)
    how = rng.choice(
        ({}, {"id": "id"}, {"truth": "truth"}, {"features": "a"}, {"features": "a,b"}, {"ignore": "truth"})
    )
    return lambda: use(read(folder / name, label="not_label", contradictions="keep", **how))


def parquet(folder, rng):
    write_parquet(folder / "t.parquet", rng)
    spoil_file(folder / "t.parquet", rng)
    how = rng.choice(({}, {"features": "e"}, {"features": "a"}, {"id": "id"}, {"features": ["a", "e"]}))
    return lambda: use(read(folder / "t.parquet", label="not_label", contradictions="keep", **how))


def npz(folder, rng):
    path = folder / "t.npz"
    arrays = {
        "x": np.arange(12.0).reshape(6, 2),
        "ids": np.array([f"i{i}" for i in range(6)]),
        "labels": np.arange(6) % 3,
    }
    for name in list(arrays):
        if rng.random() < 0.3:
            arrays[name] = odd_array(rng)
        elif rng.random() < 0.05:
            del arrays[name]
    write_npz(path, arrays, rng)
    spoil_file(path, rng, 0.3)
    return lambda: use(read(path, contradictions="keep"))


def npy(folder, rng):
    path, votes = folder / "t.npy", folder / "votes.csv"
    path.write_bytes(npy_bytes(odd_array(rng, 12) if rng.random() < 0.5 else np.arange(24.0).reshape(12, 2)))
    spoil_file(path, rng)
    votes.write_text(votes_text(rng).replace("\ni", "\n"))
    return lambda: use(read(path, labels=votes, label="label", contradictions="keep"))


def known(folder, rng):
    path = folder / "digits.npz"
    arrays = {
        "x_train": np.zeros((6, 4, 4), np.uint8),
        "y_train": np.arange(6) % 3,
        "x_test": np.zeros((6, 4, 4), np.uint8),
        "y_test": np.arange(6) % 3,
        "classes": np.array(NAMES),
        "comp_train": np.arange(6).reshape(6, 1) % 3,
    }
    if rng.random() < 0.7:
        arrays[rng.choice(list(arrays))] = odd_array(rng)
    write_npz(path, arrays, rng)
    spoil_file(path, rng, 0.3)
    return lambda: (store.read(path, "digits").fingerprint, use(read(path, contradictions="keep")))


def images(folder, rng):
    for i in range(3):
        content, kind = image_bytes(rng)
        ending = {"JPEG": "jpg", "TIFF": "tif"}.get(kind, kind.lower()) if rng.random() < 0.8 else "png"
        place = folder / rng.choice(("cat", "dog", "cat", ".hidden"))
        place.mkdir(exist_ok=True)
        path = place / f"{i}.{ending}"
        path.write_bytes(spoil(content, rng) if rng.random() < 0.6 else content)
        if rng.random() < 0.05:
            path.unlink()
            os.mkfifo(path)
    return lambda: datasets.from_folder(folder)


def labelled_images(folder, rng):
    for i in range(3):
        place = folder / "images"
        place.mkdir(exist_ok=True)
        (place / f"i{i}.png").write_bytes(png_bytes())
    text = "id,label\n" + "".join(f"i{i % 3},{NAMES[i % 3]}\n" for i in range(6))
    (folder / "labels.csv").write_bytes(spoil(recoded(text, rng), rng))
    return lambda: datasets.from_folder(folder / "images", labels=folder / "labels.csv")


def votes(folder, rng):
    write_items(folder)
    (folder / "votes.csv").write_bytes(spoil(recoded(votes_text(rng), rng), rng))
    how = rng.choice(({}, {"annotator": "worker"}, {"options": "shown"}, {"annotator": "worker", "options": "shown"}))
    how |= {"id": "id", "labels": folder / "votes.csv", "label": "label", "contradictions": "keep"}
    return lambda: use(read(folder / "t.csv", **how))


def exports(folder, rng):
    """What annotation tools write, as text or as a tree; items that nobody labels are no fault of theirs."""
    write_items(folder)
    name = rng.choice(("label_studio.json", "prodigy.jsonl", "mixed.csv", "crowd_kit.csv"))
    path, content = folder / name, (EXPORTS / name).read_bytes()
    if rng.random() < 0.6 and name.endswith(("json", "jsonl")):
        lines = name.endswith("jsonl")
        tree = [json.loads(line) for line in content.splitlines()] if lines else json.loads(content)
        tree = spoil_tree(tree, rng)
        each = map(json.dumps, tree if isinstance(tree, list) else [tree])
        content = ("\n".join(each) if lines else json.dumps(tree)).encode()
    elif rng.random() < 0.9:
        content = spoil(recoded(content.decode(), rng), rng)
    path.write_bytes(content)
    how = {"labels_say": "says"} if name == "mixed.csv" else {"classes": NAMES} if rng.random() < 0.3 else {}
    return lambda: use(read(folder / "t.csv", id="id", labels=path, contradictions="keep", **how))


def argilla(folder, rng):
    write_items(folder)
    records = {
        "id": [f"i{i}" for i in range(3)],
        "kind.responses": [["cat"], ["dog", "emu"], []],
        "kind.responses.status": [["submitted"], ["submitted", "draft"], []],
        "kind.suggestion": ["dog", "dog", "cat"],
    }
    if rng.random() < 0.5:
        records[rng.choice(list(records))] = rng.choice(
            ([1, 2, 3], [[[1]], [[2]], [[3]]], [None] * 3, [{"a": 1}] * 3, [0.5] * 3)
        )
    names = {"info": {"features": {"kind.suggestion": {"names": list(NAMES), "_type": "ClassLabel"}}}}
    meta = json.dumps(spoil_tree(names, rng) if rng.random() < 0.5 else names)
    pq.write_table(pa.table(records).replace_schema_metadata({"huggingface": meta}), folder / "a.parquet")
    spoil_file(folder / "a.parquet", rng, 0.3)
    return lambda: use(read(folder / "t.csv", id="id", labels=folder / "a.parquet", contradictions="keep"))


def codes(folder, rng):
    write_items(folder)
    matrix = odd_array(rng, ROWS) if rng.random() < 0.5 else np.arange(2 * ROWS).reshape(ROWS, 2) % 5 - 3
    (folder / "L.npy").write_bytes(npy_bytes(matrix))
    spoil_file(folder / "L.npy", rng, 0.3)
    how = {"format": rng.choice(("signed", "snorkel", "snorkel", "dummies")), "contradictions": "keep"}
    return lambda: use(read(folder / "t.csv", id="id", labels=folder / "L.npy", **how))


def write_items(folder):
    (folder / "t.csv").write_text("id,a\n" + "".join(f"i{i},{i}\n" for i in range(ROWS)))


def annotated(n):
    numbers = np.random.default_rng(0)
    return {
        "names": [f"{i}.png" for i in range(n)],
        "images": [numbers.integers(0, 256, (2, 2, 3), np.uint8) for _ in range(n)],
        "ord_labels": list(numbers.integers(0, 10, n)),
        "cl_labels": numbers.integers(0, 10, (n, 3)).tolist(),
        "all": numbers.normal(size=(n, 2)),
    }


# pieces of pickles: values, containers, the memo, names and calls, in any order
PIECES = (
    *(b"]", b"}", b")", b"(", b"N", b"K\1", b"K\3", b"X\1\0\0\0a", b"C\1a", b"\x88", b"J\xff\xff\xff\x7f", b"\x8f"),
    *(b"a", b"e", b"s", b"u", b"t", b"l", b"d", b"\x85", b"\x86", b"\x87", b"R", b"b", b"0", b"1", b"2", b"\x81", b"o"),
    *(b"q\0", b"h\0", b"q\1", b"h\1", b"\x94", b"r\xff\xff\xff\x7f", b"j\xff\xff\xff\x7f", b"p999999999\n", b"\x90"),
    *(b"cnumpy\ndtype\n", b"cnumpy\nndarray\n", b"cnumpy.core.multiarray\n_reconstruct\n", b"c_codecs\nencode\n"),
    *(b"cnumpy.core.multiarray\nscalar\n", b"cos\nsystem\n", b"ccopyreg\n_reconstructor\n", b"G" + b"\x7f" * 8),
    *(b"X\2\0\0\0f8", b"X\2\0\0\0u1", b"(K\1K\2t", b"P1\n", b"\x82\1", b"\x8b\xff\xff\xff\x7f"),
    *(b"\x8e\xff\xff\xff\xff\0\0\0\0", b"\x96\xff\xff\xff\xff\xff\0\0\0", b"I" + b"9" * 5000 + b"\n"),
)


def bomb(rng):
    """A pickle that would multiply: lists of lists of lists, or a list in itself, or a text said again and again."""
    wide, deep = rng.choice(((2, 60), (200, 4), (3, 6), (1, 250))), b"\x80\x02]q\0"
    kind = rng.randrange(3)
    if kind == 0:
        return deep + b"h\0a."
    if kind == 1:
        text = b"X\x10'\0\0" + b"a" * 10_000
        return b"\x80\x02(c_codecs\nencode\nq\0" + text + b"q\1" + b"h\0h\1\x85R" * 2000 + b"l."
    for i in range(wide[1]):
        deep += b"](" + (b"h" + bytes([i])) * wide[0] + b"eq" + bytes([i + 1])
    return deep + b"."


def pickles(folder, rng):
    path = folder / "p.pkl"
    if rng.random() < 0.1:
        path.write_bytes(bomb(rng))
    elif rng.random() < 0.5:
        path.write_bytes(spoil(pickle.dumps(annotated(4), rng.randrange(6)), rng))
    else:
        path.write_bytes(b"\x80\x04" + b"".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 40))) + b".")

    def call():
        with path.open("rb") as file:
            content = unpickle.load(file, path)
        for value in content.values() if isinstance(content, dict) else [content]:
            with contextlib.suppress(InputError):
                unpickle.array(value, path)

    return call


def archives(folder, rng):
    path = folder / "cifar.tar.gz"
    kind = rng.choice(("cifar", "idx", "annotated"))
    if kind == "idx":
        head = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 3])
        content = head + bytes(18)
        path.write_bytes(gzip.compress(spoil(content, rng) if rng.random() < 0.7 else content))
        spoil_file(path, rng, 0.4)
        return lambda: formats.read_idx(path)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
            batch = pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [0, 1]}, 2)
            batch = spoil(batch, rng) if rng.random() < 0.2 else batch
            member = tarfile.TarInfo(f"c/{name}")
            member.size = len(batch)
            tar.addfile(member, io.BytesIO(batch))
    content = made.getvalue()
    path.write_bytes(gzip.compress(spoil(content, rng) if rng.random() < 0.4 else content, 1))
    spoil_file(path, rng, 0.3)
    if kind == "annotated":
        (folder / "a.pkl").write_bytes(spoil(pickle.dumps(annotated(10), 4), rng))
        return lambda: formats.decode_annotated(folder / "a.pkl", path, base=formats.decode_cifar10, noise=0.1)
    return lambda: formats.decode_cifar10(path)


SETTINGS = {
    **{"loss": "scl-nl", "eps": 0.0, "model": "mlp", "epochs": 3, "batch_size": 4, "optimizer": "adamw", "seed": 1},
    **{"learning_rate": 0.01, "weight_decay": 0.1, "momentum": 0.9, "schedule": "cosine", "warmup_epochs": 0},
    **{"normalise": True, "crop": 0, "padding": "reflect", "flip": False, "precision": "32-true", "compile": "no"},
    **{"model_options": {"hidden": 8}, "recipe": "plain", "options": {}},
}
SIAMESE = {
    "recipe": "fastsiam",
    "epochs": 2,
    "options": {"views": 2, "projection": 8, "view": {"size": 16, "hue": 0.1}},
}


def as_toml(settings):
    """The settings as TOML where it can say them, else None."""
    lines, tables = [], []
    for name, value in settings.items():
        if isinstance(value, dict):
            tables.append(f"[{name}]\n" + "".join(f"{key} = {json.dumps(part)}\n" for key, part in value.items()))
        elif value is not None:
            lines.append(f"{name} = {json.dumps(value)}\n".replace("NaN", "nan").replace("Infinity", "inf"))
    return "".join(lines + tables)


def configs(folder, rng):
    ending = rng.choice((".toml", ".json"))
    settings = rng.choice((SETTINGS, SETTINGS, SIAMESE))
    if rng.random() < 0.8:
        settings = spoil_tree(settings, rng)
    if rng.random() < 0.2:
        units = rng.choice((8, 8, -8, 0, 10**12, 10**30, 0.5, True, "8", odd(rng)))
        settings = {**SETTINGS, "model_options": {rng.choice(("hiden", "hidden", "hidden", "")): units}}
    elif rng.random() < 0.3:
        numbers = [name for name, value in SETTINGS.items() if isinstance(value, float | int)]
        settings = {
            **SETTINGS,
            rng.choice(numbers): rng.choice((-1, -0.5, 0, 2.5, 1e300, float("nan"), 10**30, 10**400)),
        }
    text = as_toml(settings) if ending == ".toml" else json.dumps(settings)
    path = folder / f"c{ending}"
    path.write_bytes(text.encode("utf-8", "surrogatepass") if rng.random() < 0.7 else spoil(recoded(text, rng), rng))

    def call():
        config = Config.from_file(path)
        json.dumps(config.as_dict(), allow_nan=False)
        if config.recipe == "plain" and config.model in ("linear", "mlp"):
            build(config.model, (4,), 3, config.seed, **config.model_options)

    return call


def graphs(folder, rng):
    path = folder / "g.safetensors"
    arrays = {
        "indices": torch.tensor([[1, 2], [0, 2], [0, 1]], dtype=torch.int32),
        "distances": torch.tensor([[0.1, 0.2]] * 3),
    }
    about = {"metric": "euclidean", "method": "given", "recall": None, "columns": None}
    if rng.random() < 0.5:
        name = rng.choice(list(arrays))
        arrays[name] = rng.choice(
            (
                arrays[name].double(),
                arrays[name][0],
                arrays[name] * -1,
                arrays[name] + 9,
                arrays[name][:0],
                arrays[name].bool(),
            )
        )
    if rng.random() < 0.5:
        about = spoil_tree(about, rng)
    about = json.loads(json.dumps(about).replace("NaN", "1e999").replace("Infinity", "1e999").replace("1e999", "8"))
    tensors.save(path, arrays, about, format="naysay-graph-1", key="graph")
    spoil_file(path, rng, 0.3)
    return lambda: Graph.load(path)


def models(folder, rng):
    path = folder / "m.safetensors"
    shutil.copyfile(BEFORE / "run" / "model.safetensors", path)
    if rng.random() < 0.6:
        found, about = load(path)
        about = json.loads(json.dumps(spoil_tree(about, rng)).replace("NaN", "8").replace("Infinity", "8"))
        if rng.random() < 0.3:
            name = rng.choice(list(found))
            found[name] = rng.choice((found[name].double(), found[name].reshape(-1)[:1], found[name] * float("nan")))
        save(path, found, about)
    else:
        spoil_file(path, rng, 1)
    return lambda: Predictor.load(path)


def cards(folder, rng):
    path = folder / "e.safetensors"
    path.write_bytes(spoil((BEFORE / "graph.safetensors").read_bytes(), rng))
    card = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "epochs": 3, "data": "x"}
    (folder / "e.json").write_text(json.dumps(spoil_tree(card, rng) if rng.random() < 0.7 else card))
    spoil_file(folder / "e.json", rng, 0.4)
    return lambda: load_encoder(path)


def runs(folder, rng):
    copied = folder / "run"
    shutil.copytree(BEFORE / "run", copied)
    name = rng.choice(("run.json", "run.json", "audit.json", "records.jsonl", "report.npz"))
    path = copied / name
    if name.endswith(".json") and rng.random() < 0.8:
        path.write_text(json.dumps(spoil_tree(json.loads(path.read_text()), rng)))
    elif name == "records.jsonl" and rng.random() < 0.7:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        at = rng.randrange(len(lines))
        lines[at] = spoil_tree(lines[at], rng)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        spoil_file(path, rng, 1)
    if rng.random() < 0.5:
        return lambda: Run.load(copied).predict(np.zeros((2, 8, 8), np.uint8))
    return lambda: render(copied, folder / "new.html")


CELLS = ("", "n/a", "tall", "1,5", "inf", "nan", "1e999", "2024-02-30", "31.12.9999", "0001-01-01T25:00Z", "[1]", "yes")
CELLS += ("2024-01-01T00:00:00+99:99", "\u0660\u0661", "\u2028", "x" * 70_000, "a b c " * 3000, "'", "{}", "-", "=1+1")


def mixed_columns(rng):
    """Columns of every kind, some of their cells odd."""
    n = rng.choice((3, 40, 40, 200))
    columns = {
        "age": [str(20 + i % 50) for i in range(n)],
        "colour": [("red", "green", "blue")[i % 3] for i in range(n)],
        "member": [("yes", "no")[i % 2] for i in range(n)],
        "when": [f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(n)],
        "review": [f"the {('ship', 'bread', 'ball')[i % 3]} of word{i} and more" for i in range(n)],
        "not_label": [NAMES[i % 3] for i in range(n)],
    }
    for _ in range(rng.choice((0, 1, 5, 40))):
        columns[rng.choice(list(columns)[:5])][rng.randrange(n)] = rng.choice(CELLS)
    return columns


def mixed(folder, rng):
    import csv

    import pyarrow as pa
    import pyarrow.parquet as pq

    columns, path = mixed_columns(rng), folder / rng.choice(("t.csv", "t.csv", "t.parquet"))
    if path.suffix == ".csv":
        made = io.StringIO()
        csv.writer(made).writerows([columns, *zip(*columns.values(), strict=True)])
        path.write_bytes(recoded(made.getvalue(), rng))
    else:
        pq.write_table(pa.table(columns), path)
    spoil_file(path, rng, 0.3)

    def call():
        data = read(path, label="not_label", contradictions="keep")
        use(data)
        recipe = data.items.columns
        again = Columns.from_dict(json.loads(json.dumps(recipe.as_dict(), allow_nan=False)), recipe.arrays())
        made = np.concatenate([x for _, x in apply_blocks(path, [], again, {})])
        assert np.array_equal(made, data.items.x), "applied again the recipe gives other features"

    return call


@functools.cache
def good_recipe():
    return Columns.find(mixed_columns(random.Random(1)))


def recipes(folder, rng):
    found = good_recipe()
    told, new = spoil_tree(found.as_dict(), rng), mixed_columns(rng)

    def call():
        Columns.from_dict(told, found.arrays()).apply(new)

    return call


READERS = {
    row.__name__: row
    for row in (
        *(csv, parquet, npz, npy, known, images, labelled_images, votes, pickles, archives, configs, graphs, models),
        *(cards, runs, mixed, recipes, exports, argilla, codes),
    )
}


# calling them


def state(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def late(*_):
    raise TimeoutError(f"it took more than {SECONDS} seconds")


def outcome(reader, seed, folder):
    """What becomes of the input of this seed, written into `folder`: "taken", "refused", or what went wrong."""
    call = READERS[reader](folder, random.Random(f"{reader}/{seed}"))
    before, taken, said = state(folder), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "taken"
    ringing = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except InputError as error:
        said = "refused" if str(error).strip() else "an error that says nothing"
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        at = next((frame for frame in reversed(frames) if "/naysay/" in frame.filename), frames[-1])
        said = f"{type(error).__name__}: {str(error)[:200]} at {Path(at.filename).name}:{at.lineno} {at.name}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, ringing)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - taken) / 1000
    if grown > MEGABYTES:
        return f"it took {grown:.0f} MB"
    after = state(folder)
    return said if all(after.get(path) == total for path, total in before.items()) else "it changed its input"


def main(seeds=300, only=None):
    begun, faults = time.monotonic(), 0
    names = [only] if only else list(READERS)
    for reader in names:
        outcomes = Counter()
        for seed in range(seeds):
            faulthandler.dump_traceback_later(3 * SECONDS, exit=True)  # for what no signal reaches
            with tempfile.TemporaryDirectory() as folder:
                said = outcome(reader, seed, Path(folder))
            outcomes[said] += 1
            if said not in FINE:
                print(f"{reader} {seed}: {said}", flush=True)
        faults += outcomes.total() - sum(outcomes[said] for said in FINE)
        print(f"{reader}: {outcomes['taken']} taken, {outcomes['refused']} refused of {seeds}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{seeds * len(names):,} inputs, {faults} faults, {time.monotonic() - begun:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*(int(word) if word.isdigit() else word for word in sys.argv[1:])))
