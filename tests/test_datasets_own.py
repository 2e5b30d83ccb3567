"""A user's own data: tables as people have them, folders of images, arrays."""

import contextlib
import csv
import gzip
import os
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from naysay.datasets import from_folder, read, read_arrays, read_columns, read_table
from naysay.errors import InputError

TABLE = "id,x1,not_label,x2\na,1.5,cat,2\nb,-3,,4e1\n"


def csv_file(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def same(texts, expected):
    return texts.tolist() == expected


# tables that are read


def test_all_columns_that_are_not_named_are_features(tmp_path):
    items = read_table(csv_file(tmp_path, TABLE), id="id", label="not_label")
    assert same(items.ids, ["a", "b"])
    assert same(items.labels, [["cat"], [None]])
    assert items.features == ("x1", "x2")
    assert items.x.dtype == np.float32
    assert items.x.tolist() == [[1.5, 2], [-3, 40]]
    assert items.y_true is None


def test_csv_and_parquet_give_the_same_items(tmp_path):
    made = {"id": [3, 1, 2], "x": [0.5, 1.0, 2.0], "n": [1, 2, 3], "not": ["a", None, "b"], "truth": [7, 8, 7]}
    pq.write_table(pa.table(made), tmp_path / "t.parquet")
    rows = "\n".join(
        ",".join("" if cell is None else str(cell) for cell in row) for row in zip(*made.values(), strict=True)
    )
    csv_file(tmp_path, ",".join(made) + "\n" + rows, "t.csv")
    one, two = (read_table(tmp_path / name, id="id", label="not", truth="truth") for name in ("t.csv", "t.parquet"))
    assert one.fingerprint == two.fingerprint
    assert same(two.y_true, ["7", "8", "7"])
    assert same(one.y_true, two.y_true.tolist())
    assert two.features == ("x", "n")


def test_without_an_id_column_rows_are_numbered(tmp_path):
    assert same(read_table(csv_file(tmp_path, "x\n1\n2\n")).ids, ["0", "1"])


def test_several_label_columns_stand_side_by_side(tmp_path):
    items = read_table(csv_file(tmp_path, "x,l1,l2\n1,a,b\n2,,c\n"), label=["l1", "l2"])
    assert same(items.labels, [["a", "b"], [None, "c"]])


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (TABLE.replace(",", ";"), "semicolons.csv"),
        (TABLE.replace(",", "\t"), "tabs.tsv"),
        ("\ufeff" + TABLE, "mark.csv"),
        (TABLE.replace("\n", "\r\n"), "windows.csv"),
        (TABLE.replace("\n", "\r"), "old macintosh.csv"),
        (TABLE.replace("\n", "\r\r\n"), "twice converted.csv"),
        ("\n" + TABLE + "\n\n", "blank lines.csv"),
        # without the time: test names must be the same in every worker
        (gzip.compress(TABLE.encode(), mtime=0), "packed.csv.gz"),
        (TABLE.replace("cat", ' "cat" '.strip()), "quoted.csv"),
        (TABLE.replace("a,1.5", " a , 1.5"), "spaced.CSV"),
    ],
)
def test_csv_as_programs_write_it(tmp_path, content, name):
    items = read_table(csv_file(tmp_path, content, name), id="id", label="not_label")
    assert same(items.ids, ["a", "b"])
    assert items.x.tolist() == [[1.5, 2], [-3, 40]]
    assert same(items.labels, [["cat"], [None]])


def test_text_stays_as_it_is_written(tmp_path):
    path = csv_file(tmp_path, 'id,x,label\n007,1,NA\n7,1,01\n=cmd(),1,<b>\n"a\nb",1,"x, ""y"""\nü,1,null\n')
    items = read_table(path, id="id", label="label")
    assert same(items.ids, ["007", "7", "=cmd()", "a\nb", "ü"])
    assert same(items.labels[:, 0], ["NA", "01", "<b>", 'x, "y"', "null"])


def test_an_embedding_column_becomes_features(tmp_path):
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    for kind in (
        pa.list_(pa.float32()),
        pa.list_(pa.float64()),
        pa.large_list(pa.float32()),
        pa.list_(pa.float32(), 3),
    ):
        pq.write_table(pa.table({"id": list("abcde"), "e": pa.array(x.tolist(), kind)}), tmp_path / "e.parquet")
        items = read_table(tmp_path / "e.parquet", id="id")
        assert np.array_equal(items.x, x), kind
        assert items.features == ("e[0]", "e[1]", "e[2]")
    for form in (
        str,
        lambda row: str(row).replace(",", " "),
        lambda row: "[ " + str(row)[1:-1].replace(",", "\n") + "]",
    ):
        with (tmp_path / "e.csv").open("w", newline="") as file:
            csv.writer(file).writerows(
                [["id", "e"], *([name, form(row)] for name, row in zip("abcde", x.tolist(), strict=True))]
            )
        assert np.array_equal(read_table(tmp_path / "e.csv", id="id", features="e").x, x)


def test_parquet_columns_of_every_number_become_float32(tmp_path):
    from decimal import Decimal

    columns = {
        "bool": pa.array([True, False]),
        "int": pa.array([1, -2], pa.int64()),
        "half": pa.array([0.5, 2.0], pa.float16()),
        "decimal": pa.array([Decimal("1.5"), Decimal("-1")]),
        "text": pa.array(["1", "2.5"]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").x.T.tolist() == [[1, 0], [1, -2], [0.5, 2], [1.5, -1], [1, 2.5]]


def test_parquet_labels_of_every_kind_become_text(tmp_path):
    kinds = {
        "int": (pa.array([3, None, 1]), [["3"], [None], ["1"]]),
        "float": (pa.array([3.0, None, float("nan")]), [["3"], [None], [None]]),
        "category": (pa.array(["a", None, "b"]).dictionary_encode(), [["a"], [None], ["b"]]),
        "bool": (pa.array([True, None, False]), [["true"], [None], ["false"]]),
        "lists": (pa.array([["a", "b"], None, ["c", None]]), [["a", "b"], [None, None], ["c", None]]),
        "numbers": (pa.array([[1], [2, 3], []]), [["1", None], ["2", "3"], [None, None]]),
    }
    for name, (column, expected) in kinds.items():
        pq.write_table(pa.table({"x": [1, 2, 3], name: column}), tmp_path / "t.parquet")
        assert same(read_table(tmp_path / "t.parquet", label=name).labels, expected), name


def test_long_labels_are_read_as_columns(tmp_path):
    path = csv_file(tmp_path, "item,worker,not\na,w1,cat\na,w2,dog\nb,,cat\n")
    columns = read_columns(path, ["item", "not", "worker"])
    assert {name: column.tolist() for name, column in columns.items()} == {
        "item": ["a", "a", "b"],
        "not": ["cat", "dog", "cat"],
        "worker": ["w1", "w2", None],
    }


def test_a_table_of_many_blocks_is_put_together_in_order(tmp_path):
    n = 150_000  # more than two blocks of rows
    made = pa.table(
        {"id": pa.array(np.arange(n)), "x": pa.array(np.arange(n, dtype=np.float64)), "l": pa.array(np.arange(n) % 3)}
    )
    pq.write_table(made, tmp_path / "t.parquet", row_group_size=40_000)
    items = read_table(tmp_path / "t.parquet", id="id", label="l")
    assert np.array_equal(items.x[:, 0], np.arange(n))
    assert items.ids[[0, 70_000, n - 1]].tolist() == ["0", "70000", "149999"]
    assert items.labels[[70_000, n - 1], 0].tolist() == ["1", "2"]


# tables that are refused


@pytest.mark.parametrize(
    ("content", "asked", "says"),
    [
        (b"", {}, r"data.csv is empty\. Give a file with a header"),
        (b"\n\n", {}, r"data.csv is empty\. Give a file with a header"),
        (b"id,x\n", {}, r"data.csv has a header but no rows\. Give one row per item\."),
        (
            b"id,x\na,1\na,2\n",
            {"id": "id"},
            r"data.csv has 'a' more than once in its id column 'id'\. Give every item its own id",
        ),
        (b"id,x\na,1\n,2\n", {"id": "id"}, r"data.csv has an empty cell in its id column 'id'\."),
        (
            b'id,e\na,"[1, 2]"\nb,\n',
            {"id": "id", "features": "e"},
            r"data.csv must hold lists of one length in column 'e'; got 1 to 2 numbers",
        ),
        (
            b"id,x\na,1\nb,inf\n",
            {"id": "id"},
            r"data.csv must hold finite numbers in column 'x'; got nan or inf in row 2\.",
        ),
        (
            b"id,x\na,1\nb,1e999\n",
            {"id": "id"},
            r"data.csv must hold finite numbers in column 'x'; got nan or inf in row 2\.",
        ),
        (
            b"id,x,y\na,tall,k\nb,small,k\n",
            {"id": "id"},
            r"data.csv has no column left for features: x: left out \(id-like\), y: left out \(constant\)\. Add",
        ),
        (
            b'id,e\na,"[1, 2]"\n',
            {"id": "id"},
            r"must hold numbers in column 'e'; got '\[1, 2\]'\. If its lists are embeddings, name it wi",
        ),
        (
            b'id,e\na,"[1, 2]"\nb,[1]\n',
            {"id": "id", "features": "e"},
            r"lists of one length in column 'e'; got 1 to 2 numbers\.",
        ),
        (b'id,e\na,"[1, x]"\n', {"id": "id", "features": "e"}, r"data.csv must hold numbers in column 'e'; got 'x'\."),
        (
            b"id,x\na,1\nb,1,2\n",
            {"id": "id"},
            r"data.csv has a row of 3 cells under a header of 2: 'b,1,2'\. Give every row as many",
        ),
        (b"id,x,y\na,1,2\nb,1\n", {"id": "id"}, r"data.csv has a row of 2 cells under a header of 3: 'b,1'\."),
        (
            b"id,x\n\xe9,1\n",
            {"id": "id"},
            r"data.csv is not UTF-8 text \('utf-8' codec can't decode byte 0xe9.*\)\. Save it as UTF-8\.",
        ),
        ("id,x\na,1\n".encode("utf-16"), {"id": "id"}, r"data.csv is not UTF-8 text"),
        (b"id,x,x\na,1,2\n", {}, r"data.csv has more than one column named 'x'\. Give each its own name\."),
        (b",x\n0,1\n", {}, r"data.csv has a column without a name \(pandas writes its index so\)\."),
        (b"id\na\n", {"id": "id"}, r"data.csv has no column left for features: id are all named otherwise\."),
        (b"id,x10\na,1\n", {"features": ["x10", "x11"]}, r"unknown column of .*data.csv 'x11': did you mean x10\?"),
        (
            b"id,x\na,1\n",
            {"label": "not_label"},
            r"unknown column of .*data.csv 'not_label': .*The known ones are id, x\.",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_one_sentence(tmp_path, content, asked, says):
    with pytest.raises(InputError, match=says) as error:
        read_table(csv_file(tmp_path, content), **asked)
    assert "\n" not in str(error.value)


def test_text_that_is_not_utf8_is_noticed_far_down_too(tmp_path):
    path = csv_file(tmp_path, b"id,x\n" + b"".join(b"%d,1\n" % i for i in range(1_500_000)) + b"\xe9,1\n")
    with pytest.raises(InputError, match=r"data.csv is not UTF-8 text in column 'id'\. Save it as UTF-8\."):
        read_columns(path, ["id"])


def test_files_that_are_no_tables_are_refused(tmp_path):
    pq.write_table(
        pa.table({"x": pa.array(np.arange(1000.0)), "s": pa.array([{"a": 1}] * 1000)}), tmp_path / "whole.parquet"
    )
    whole = (tmp_path / "whole.parquet").read_bytes()
    csv_file(tmp_path, whole[: len(whole) // 2], "cut.parquet")
    with pytest.raises(InputError, match=r"cut.parquet cannot be read as Parquet \(.*\)\. Write it again"):
        read_table(tmp_path / "cut.parquet")
    csv_file(tmp_path, bytes(b ^ 255 if 100 < i < 200 else b for i, b in enumerate(whole)), "altered.parquet")
    with pytest.raises(InputError, match=r"altered.parquet is damaged \(.*\)\. Write it again\."):
        read_table(tmp_path / "altered.parquet", features="x")
    with pytest.raises(InputError, match=r"whole.parquet must hold numbers in column 's'; got 'struct<a: int64>'"):
        read_table(tmp_path / "whole.parquet")
    with pytest.raises(InputError, match=r"whole.parquet must hold text, numbers or lists in column 's'; got struct"):
        read_table(tmp_path / "whole.parquet", label="s")
    csv_file(tmp_path, gzip.compress(TABLE.encode())[:20], "cut.csv.gz")
    with pytest.raises(InputError, match=r"cut.csv.gz cannot be unpacked"):
        read_table(tmp_path / "cut.csv.gz")
    csv_file(tmp_path, b"PK", "book.xlsx")
    with pytest.raises(
        InputError, match=r"book.xlsx must be a table; got the ending '.xlsx'\. The known ones are .csv"
    ):
        read(tmp_path / "book.xlsx")
    with pytest.raises(InputError, match=r"gone.csv does not exist\. Give a folder of images, or a .npy"):
        read(tmp_path / "gone.csv")
    with pytest.raises(InputError, match=r"gone.csv is not a file\."):
        read_table(tmp_path / "gone.csv")


def test_embeddings_that_change_length_between_blocks_are_refused(tmp_path):
    rows = [[1.0, 2.0]] * 65_536 + [[1.0]]  # each block on its own is even
    pq.write_table(pa.table({"e": rows}), tmp_path / "t.parquet", row_group_size=65_536)
    with pytest.raises(InputError, match="must hold lists of one length in e; they differ"):
        read_table(tmp_path / "t.parquet")


cells = st.one_of(
    st.text(max_size=6), st.sampled_from(["", "1", "-2.5", "nan", "inf", '"', ",", "\n", "[1, 2]", "\x00", "é", "0"])
)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    st.lists(st.lists(cells, max_size=4), max_size=5),
    st.booleans(),
    st.sampled_from([None, "id", ""]),
    st.sampled_from([None, "x"]),
)
def test_any_csv_is_read_or_refused(tmp_path_factory, rows, quoted, id, features):
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        if quoted:
            csv.writer(file).writerows([["id", "x"], *rows])
        else:
            file.write("id,x\n" + "\n".join(",".join(row) for row in rows))
    try:
        items = read_table(path, id=id, features=features)
    except InputError:
        return
    assert len(items.ids) == len(items.x) == len(set(items.ids))
    assert np.isfinite(items.x).all()


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(["fuzz.csv", "fuzz.csv.gz", "fuzz.parquet", "fuzz.npy", "fuzz.npz"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, name):
    path = csv_file(tmp_path_factory.getbasetemp(), content, name)
    try:
        items = read(path)
    except InputError:
        return
    assert np.isfinite(items.x).all()


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8), min_size=1, max_size=5))
def test_labels_come_back_as_they_were_written(tmp_path_factory, labels):
    path = tmp_path_factory.getbasetemp() / "labels.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(
            [["x", "label"], *([i, label] for i, label in enumerate(labels))]
        )
    got = read_table(path, label="label").labels[:, 0].tolist()
    # carriage returns inside a cell are the one thing that line readers may turn into newlines
    assert [text and text.split() for text in got] == [label.split() or None for label in labels]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (TABLE.replace("cat", "c\rt"), r"has a row of 3 cells under a header of 4: 'a,1.5,c'"),
        (TABLE.encode("utf-16-le"), r"is not UTF-8 text \(it holds zero bytes, as UTF-16 does\)\. Save it as UTF-8\."),
        (TABLE.encode("utf-16-be"), r"is not UTF-8 text \(it holds zero bytes, as UTF-16 does\)"),
        (TABLE.encode("utf-16"), r"is not UTF-8 text"),
        (TABLE.replace("x1", "x" * 140_000), r"cannot be read as CSV \(field larger than field limit"),
    ],
    ids=["a stray carriage return", "utf-16-le", "utf-16-be", "utf-16", "a long name"],
)
def test_csv_that_cannot_be_read_is_one_sentence(tmp_path, content, says):
    with pytest.raises(InputError, match=f"data.csv {says}"):
        read_table(csv_file(tmp_path, content), id="id", label="not_label")


# images


def image(folder, name, size=(8, 6), mode="RGB", value=100):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode in ("L", "I;16", "1", "F", "I") else (value,) * len(mode)).save(path)
    return path


def test_subfolders_are_the_ordinary_labels(tmp_path):
    for name in ("cat/2.png", "cat/1.jpg", "dog/deep/3.bmp", "dog/.hidden.png", "dog/notes.txt"):
        if name.endswith("txt"):
            (tmp_path / name).write_text("no image")
        else:
            image(tmp_path, name)
    items = from_folder(tmp_path)
    assert same(items.ids, ["cat/1.jpg", "cat/2.png", "dog/deep/3.bmp"])
    assert same(items.y_true, ["cat", "cat", "dog"])
    assert items.labels is None
    assert items.x.shape == (3, 6, 8, 3)
    assert items.x.dtype == np.uint8
    assert (items.x[1] == 100).all()


def test_images_side_by_side_take_their_labels_from_a_table(tmp_path):
    for name in ("a.png", "b.png", "c.png"):
        image(tmp_path / "images", name)
    labels = csv_file(tmp_path, "item,not\nb.png,cat\na,dog\nb,dog\nb.png,\n", "labels.csv")
    items = from_folder(tmp_path / "images", labels=labels, id="item", label="not")
    assert same(items.ids, ["a.png", "b.png", "c.png"])
    assert same(items.labels, [["dog", None], ["cat", "dog"], [None, None]])
    assert items.y_true is None
    wide = csv_file(tmp_path, "id,l1,l2\nc,cat,dog\n", "wide.csv")
    assert same(
        read(tmp_path / "images", labels=wide, label=["l1", "l2"]).labels, [[None, None], [None, None], ["cat", "dog"]]
    )


def test_labels_for_images_that_are_not_there_are_refused(tmp_path):
    image(tmp_path / "images", "a.png")
    image(tmp_path / "images", "a.jpg")
    for name in ("z.png", "a"):  # the second names two images
        labels = csv_file(tmp_path, f"id,label\n{name},cat\n", "labels.csv")
        with pytest.raises(InputError, match=f"labels.csv labels '{name}', which is not one image of the folder"):
            from_folder(tmp_path / "images", labels=labels)


def test_images_come_out_in_one_size_and_mode(tmp_path):
    image(tmp_path, "a.png", (8, 6), "L")
    image(tmp_path, "b.png", (8, 6), "L", 50)
    assert from_folder(tmp_path).x.shape == (2, 6, 8)
    image(tmp_path, "c.png", (10, 20), "RGBA")
    assert from_folder(tmp_path).x.shape == (3, 64, 64, 3)
    items = from_folder(tmp_path, size=(5, 7))
    assert items.x.shape == (3, 5, 7, 3)
    assert (items.x[0] == 100).all()
    large = image(tmp_path / "large", "a.png", (200, 200)).parent
    assert from_folder(large).x.shape == (1, 64, 64, 3)


@pytest.mark.parametrize("largest", [65535, 1000])
@pytest.mark.parametrize("kind", ["P5", "P2"])
def test_16_bits_of_a_pgm_are_read_as_those_of_a_png(tmp_path, kind, largest):
    values = np.linspace(0, largest, 16).astype(">u2")
    head = f"{kind}\n4 4\n{largest}\n".encode()
    (tmp_path / "a.pgm").write_bytes(head + (values.tobytes() if kind == "P5" else " ".join(map(str, values)).encode()))
    (x,) = from_folder(tmp_path).x
    assert x.shape == (4, 4)
    assert np.abs(x.ravel() - 255 * (values / largest)).max() <= 1  # the lower byte is cut off


def test_sixteen_bits_are_scaled_and_turned_photographs_set_upright(tmp_path):
    image(tmp_path / "deep", "a.png", (4, 4), "I;16", 0x8040)
    assert (from_folder(tmp_path / "deep").x == 0x80).all()
    turned = Image.new("RGB", (8, 6))
    exif = turned.getexif()
    exif[0x0112] = 6  # lies on its side
    (tmp_path / "turned").mkdir()
    turned.save(tmp_path / "turned" / "a.jpg", exif=exif)
    assert from_folder(tmp_path / "turned").x.shape == (1, 8, 6, 3)


def sixteen_bit_tiff(path, order, value):
    """A grey TIFF of 4 x 6 pixels in this byte order, "<" or ">"."""
    pixels = np.full((4, 6), value, f"{order}u2").tobytes()
    tags = {256: 6, 257: 4, 258: 16, 259: 1, 262: 1, 273: 8, 277: 1, 278: 4, 279: len(pixels)}
    entries = b"".join(struct.pack(f"{order}HHII", tag, 4, 1, number) for tag, number in tags.items())
    head = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, 8 + len(pixels))
    path.write_bytes(head + pixels + struct.pack(f"{order}H", len(tags)) + entries + bytes(4))


@pytest.mark.parametrize("order", ["<", ">"])
def test_sixteen_bits_are_scaled_in_either_byte_order(tmp_path, order):
    sixteen_bit_tiff(tmp_path / "a.tif", order, 0x4080)
    items = from_folder(tmp_path)
    assert items.x.shape == (1, 4, 6)
    assert (items.x == 0x40).all()


def test_a_hidden_folder_is_no_class(tmp_path):
    for name in ("cat/a.png", ".thumbnails/a.png", "dog/.cache/a.png", "dog/b.png"):
        image(tmp_path, name)
    assert same(from_folder(tmp_path).ids, ["cat/a.png", "dog/b.png"])


@contextlib.contextmanager
def nobody():
    """The rights of a user who has none, where the tests are run by root, who may read everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_class_folder_that_cannot_be_read_is_not_skipped():
    with tempfile.TemporaryDirectory() as name:  # tmp_path itself is for its owner alone
        folder = Path(name)
        folder.chmod(0o755)
        image(folder, "cat/a.png")
        image(folder, "dog/b.png").parent.chmod(0)
        with (
            nobody(),
            pytest.raises(InputError, match=r"the folder .*dog cannot be read \(Permission denied\)\. Make it"),
        ):
            from_folder(folder)
        (folder / "dog").chmod(0o755)


def test_a_linked_class_folder_is_read_and_a_link_back_is_refused(tmp_path):
    image(tmp_path / "elsewhere", "a.png")
    image(tmp_path / "images", "cat/b.png")
    (tmp_path / "images" / "dog").symlink_to(tmp_path / "elsewhere")
    assert same(from_folder(tmp_path / "images").ids, ["cat/b.png", "dog/a.png"])
    (tmp_path / "images" / "cat" / "up").symlink_to(tmp_path / "images")
    with pytest.raises(InputError, match=r"the folder .*up is a link to one that is read already\. Take it out\."):
        from_folder(tmp_path / "images")


def test_an_image_whose_name_is_not_utf_8_is_told_before_the_work(tmp_path):
    image(tmp_path, "a.png").rename(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png"))
    with pytest.raises(InputError, match=r"holds a name that is not UTF-8 .*\. Write it in UTF-8\."):
        from_folder(tmp_path)


def test_folders_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"is not a folder\. Give a folder of images\."):
        from_folder(tmp_path / "gone")
    with pytest.raises(InputError, match=r"holds no images\. The endings looked for are .png, "):
        from_folder(tmp_path)
    image(tmp_path, "cat/a.png")
    image(tmp_path, "b.png")
    with pytest.raises(InputError, match="holds images both beside and inside its subfolders"):
        from_folder(tmp_path)
    whole = image(tmp_path / "bad", "a.png", (60, 60)).read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"hello"):
        csv_file(tmp_path / "bad", content, "a.png")
        with pytest.raises(
            InputError, match=r"a.png cannot be read as an image \(.*\)\. Mend it or take it out of the folder\."
        ):
            from_folder(tmp_path / "bad")
    (tmp_path / "bad" / "a.png").unlink()
    image(tmp_path / "bad", "f.tif", mode="F")
    with pytest.raises(InputError, match=r"f.tif cannot be read as an image \(it has 32 bits per pixel\)"):
        from_folder(tmp_path / "bad")


# arrays


def test_a_npy_file_is_mapped_not_read(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    items = read(tmp_path / "x.npy")
    assert isinstance(items.x, np.memmap)
    assert same(items.ids, ["0", "1", "2"])
    assert items.labels is None


def test_a_npz_file_names_its_parts(tmp_path):
    x = np.arange(6).reshape(3, 2)
    np.savez(tmp_path / "a.npz", x=x, ids=np.array(["a", "b", "c"]), labels=np.array([[0, 1], [2, -1], [-1, -1]]))
    items = read(tmp_path / "a.npz")
    assert items.x.dtype == np.float32
    assert same(items.ids, ["a", "b", "c"])
    assert same(items.labels, [["0", "1"], ["2", None], [None, None]])
    np.savez(
        tmp_path / "b.npz",
        e=x,
        key=np.array([7, 8, 9]),
        wrong=np.array(["cat", "", "dog"]),
        right=np.array(["a", "b", "c"]),
    )
    items = read_arrays(tmp_path / "b.npz", features="e", id="key", label="wrong", truth="right")
    assert same(items.ids, ["7", "8", "9"])
    assert same(items.labels, [["cat"], [None], ["dog"]])
    assert same(items.y_true, ["a", "b", "c"])
    images = np.zeros((3, 4, 4, 3), np.uint8)
    np.savez(tmp_path / "c.npz", x_train=images, comp_train=np.array([1, 2, 0]))
    assert same(read(tmp_path / "c.npz").labels, [["1"], ["2"], ["0"]])


@pytest.mark.parametrize(
    ("arrays", "asked", "says"),
    [
        ({"z": np.zeros((3, 2))}, {}, r"must hold an array x; got z\. Name the instances with features=\."),
        ({"x": np.zeros((3, 2))}, {"label": "y"}, r"unknown array of .*own.npz 'y': .*The known ones are x\."),
        (
            {"x": np.zeros(3)},
            {},
            r"must hold numbers \(n, d\) or images \(n, H, W\[, C\]\); got float64 of shape \(3,\)\.",
        ),
        ({"x": np.array([["a"]])}, {}, r"must hold numbers \(n, d\) or images .*; got <U1 of shape \(1, 1\)\."),
        ({"x": np.zeros((3, 4, 4))}, {}, r"must hold images as uint8, 0 to 255; got float64 of shape \(3, 4, 4\)\."),
        ({"x": np.array([[1.0], [np.nan]])}, {}, r"must hold finite numbers; got nan or inf in row 1\."),
        (
            {"x": np.zeros((3, 2)), "ids": np.array([1, 1, 2])},
            {},
            r"must hold one id per row, all different; got 2 for 3 rows\.",
        ),
        (
            {"x": np.zeros((3, 2)), "labels": np.zeros((2, 1), int)},
            {},
            r"must hold labels as class numbers or names, one row per row of x",
        ),
        (
            {"x": np.zeros((3, 2)), "labels": np.zeros((3, 4))},
            {},
            r"must hold labels as class numbers or names, .* got float64 \(3, 4\)\.",
        ),
    ],
)
def test_arrays_that_cannot_be_used_are_refused(tmp_path, arrays, asked, says):
    np.savez(tmp_path / "own.npz", **arrays)
    with pytest.raises(InputError, match=f"own.npz {says}" if not says.startswith("unknown") else says):
        read_arrays(tmp_path / "own.npz", **asked)


def test_arrays_of_other_machines_are_read_as_this_one_has_them(tmp_path):
    x = np.arange(6.0).reshape(3, 2)
    for kind in (">f4", ">f8", np.longdouble, "<f4"):
        np.savez(tmp_path / "a.npz", x=x.astype(kind), ids=np.array(["a", "b", "c"]).astype(">U1"))
        items = read(tmp_path / "a.npz")
        assert items.x.tolist() == x.tolist()
        assert items.x.dtype in (np.float32, np.float64)
        assert items.x.dtype.isnative
        assert same(items.ids, ["a", "b", "c"])
        np.save(tmp_path / "a.npy", x.astype(kind))
        assert torch.from_numpy(np.array(read(tmp_path / "a.npy").x)).tolist() == x.tolist()


def test_names_in_bytes_are_utf_8(tmp_path):
    names = np.array(["ä".encode(), b"b", b""])
    np.savez(tmp_path / "a.npz", x=np.zeros((3, 2)), labels=names)
    assert same(read(tmp_path / "a.npz").labels, [["ä"], ["b"], [None]])


BEYOND = np.array(["a", "b", "c"])
BEYOND.view(np.uint32)[0] = 0x110000  # no letter: Unicode ends before it


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"labels": np.array([b"\xff", b"b", b"c"])}, "holds a name that is not UTF-8"),
        ({"ids": np.array([b"\xff", b"b", b"c"])}, "holds a name that is not UTF-8"),
        ({"labels": np.array(["\ud800", "b", "c"])}, "holds a name that is not UTF-8 .*surrogates not allowed"),
        ({"ids": BEYOND}, "holds a name that is not UTF-8 .*0x110000 for a letter"),
        (
            {"ids": np.zeros(3, [("a", "f4")])},
            r"must hold names or numbers where items are named; got \[\('a', '<f4'\)",
        ),
        ({"x": np.full((3, 2), 10, np.longdouble) ** 400}, "must hold finite numbers; got nan or inf in row 0"),
        ({"x": np.zeros((3, 2), [("a", "f4")])}, "must hold numbers"),
    ],
)
def test_arrays_that_mean_nothing_here_are_one_sentence(tmp_path, changed, says):
    np.savez(tmp_path / "own.npz", **{"x": np.zeros((3, 2)), **changed})
    with pytest.raises(InputError, match=f"own.npz {says}"):
        read(tmp_path / "own.npz")


def test_a_part_of_an_npz_that_is_no_array_is_refused(tmp_path):
    np.savez(tmp_path / "own.npz", x=np.zeros((3, 2)))
    with zipfile.ZipFile(tmp_path / "own.npz", "a") as archive:
        archive.writestr("ids.npy", b"no array")
    with pytest.raises(InputError, match=r"own.npz cannot be read as .npz \(it holds something else than arrays\)"):
        read(tmp_path / "own.npz")


def test_npy_files_that_are_not_whole_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((50, 2)))
    whole = (tmp_path / "x.npy").read_bytes()
    np.save(tmp_path / "o.npy", np.array([print], object))
    np.savez(tmp_path / "several.npz", x=np.zeros((2, 2)))
    contents = (whole[:200], b"", b"hello", (tmp_path / "o.npy").read_bytes(), (tmp_path / "several.npz").read_bytes())
    for content in contents:
        csv_file(tmp_path, content, "own.npy")
        with pytest.raises(
            InputError, match=r"own.npy (cannot be read as .npy \(.*\)\. Write it again|holds several arrays)"
        ):
            read(tmp_path / "own.npy")


def test_an_id_column_of_lists_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [["a"], ["b"]], "x": [1.0, 2.0]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="holds lists in its id column 'id'"):
        read_table(tmp_path / "t.parquet", id="id")


def test_numbers_that_float32_cannot_tell_apart_lose_their_middle_first(tmp_path):
    file = tmp_path / "times.csv"
    for values in ([100000000, 100000050, 100000020], [1e10, 1e10 + 1, 1e10 + 2]):
        file.write_text("a,time\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
        assert read_table(file).x[:, 1].tolist() == [value - sorted(values)[1] for value in values]
        pq.write_table(pa.table({"a": [0, 1, 2], "time": values}), tmp_path / "times.parquet")
        assert np.array_equal(read_table(tmp_path / "times.parquet").x, read_table(file).x)
    # large numbers that differ, and a column of one small number, are what they are
    file.write_text("a,time,one\n" + "".join(f"{i},{1.7e9 + 1e5 * i},3\n" for i in range(3)))
    assert read_table(file).x.tolist() == [[i, np.float32(1.7e9 + 1e5 * i), 3] for i in range(3)]
    pq.write_table(pa.table({"e": [[1e10], [1e10 + 1]]}), tmp_path / "e.parquet")
    with pytest.raises(InputError, match=r"column 'e\[0\]' around 1e\+10, which differ by few steps of float32"):
        read_table(tmp_path / "e.parquet")


def test_a_parquet_file_whose_names_are_no_text_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"abcdwxyz": [1.0, 2.0]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"abcdwxyz", b"ab\xff\xfewxyz"))
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_table(path)
