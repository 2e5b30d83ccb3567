"""Tables as people have them: what each column becomes, that it is told, and that later tables go the same way."""

import copy
import csv
import json
import warnings
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.base import clone
from test_cli import naysay

import naysay as library
from naysay.cli.options import in_flags
from naysay.datasets import read_table
from naysay.datasets.finding import find
from naysay.datasets.recipe import Columns, unlike
from naysay.errors import InputError
from naysay.runs import Run

TOPICS = (("ship", "sail", "wave"), ("bread", "flour", "dough"), ("goal", "ball", "coach"))
CLASSES = ("cat", "dog", "emu")


def write(path, columns):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def mixed(n=300, seed=0):
    """A table with a column of every kind, and classes that most of them tell."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    day = datetime(2024, 1, 1)
    return {
        "uuid": [f"{value:016x}" for value in rng.integers(0, 2**60, n).tolist()],
        "index": list(range(n)),
        "age": ["" if rng.random() < 0.1 else round(float(rng.normal(40 + 20 * k, 8)), 1) for k in y],
        "income": ["n/a" if i == 7 else int(rng.normal(1000 * k, 900)) for i, k in enumerate(y)],
        "colour": [("red", "green", "blue")[k] if rng.random() < 0.7 else f"odd {i}" for i, k in enumerate(y)],
        "member": [("yes", "no")[k] for k in rng.integers(0, 2, n)],
        "when": [(day + timedelta(hours=int(h))).isoformat(sep=" ") for h in rng.integers(0, 9000, n)],
        "country": ["DE"] * n,
        "note": [""] * n,
        "review": [
            " ".join(TOPICS[k][rng.integers(3)] if rng.random() < 0.5 else "the of and to"[j : j + 3] for j in range(8))
            for k in y
        ],
        "time": [1_700_000_000 + int(t) for t in rng.integers(0, 50, n)],
        "not_label": [CLASSES[(k + 1 + rng.integers(2)) % 3] for k in y],
        "truth": [CLASSES[k] for k in y],
    }


def one(cells, **asked):
    """What a column of these cells is, beside its numbers."""
    table = pa.table({"x": pa.array(cells)})
    columns = Columns.find(table, **asked)
    return columns.columns[0], columns.apply(table)


# what columns become


def test_every_column_of_a_mixed_table_becomes_something_and_is_told(tmp_path):
    items = read_table(write(tmp_path / "t.csv", mixed()), label="not_label", truth="truth")
    told = dict(line.split(": ", 1) for line in items.columns.told())
    words = told.pop("review")
    assert told == {
        "uuid": "left out (id-like)",
        "index": "left out (id-like)",
        "age": f"number, {items.columns.columns[2].empty} empty cells filled with 60.6",
        "income": "number, 1 empty cell filled with 1140",
        "colour": "category of 3 levels, 4 columns",
        "member": "boolean, 1 is 'yes'",
        "when": "date (year-month-day), with month and weekday and hour",
        "country": "left out (constant)",
        "note": "left out (empty)",
        "time": "number, less 1.7e+09",
    }
    assert words.startswith("text of ")
    assert items.columns.account() == (
        "columns: 3 numbers (2 with empty cells, 4 columns), 1 boolean, 1 category (4 columns), 1 date (7 columns), "
        f"1 text ({words.split()[-2]} columns); left out: id-like 'uuid', id-like 'index', constant 'country', "
        "empty 'note'"
    )
    assert items.x.shape[1] == len(items.features) == len(items.columns.names)
    assert np.isfinite(items.x).all()
    assert "age is empty" in items.features
    assert "income is empty" not in items.features, "a cell in three hundred says nothing"


def test_csv_parquet_and_columns_in_memory_give_the_same_features(tmp_path):
    made = mixed()
    path = write(tmp_path / "t.csv", made)
    texts = {name: [None if cell == "" else str(cell) for cell in cells] for name, cells in made.items()}
    pq.write_table(pa.table(texts), tmp_path / "t.parquet")
    one, two = (read_table(tmp_path / name, label="not_label", truth="truth") for name in ("t.csv", "t.parquet"))
    assert one.fingerprint == two.fingerprint
    del texts["not_label"], texts["truth"]
    assert np.array_equal(Columns.find(texts).apply(texts), one.x)
    assert np.array_equal(Columns.find(pa.table(texts)).apply(pa.table(texts)), one.x)
    assert path.exists()


def test_a_row_that_cannot_be_used_is_named_by_its_place_in_the_whole_table():
    x = np.zeros(70_000)
    columns = Columns.find({"x": np.arange(3.0)})
    x[69_999] = np.inf
    with pytest.raises(InputError, match=r"finite numbers in column 'x'; got nan or inf in row 70000\."):
        columns.apply({"x": x})


def test_a_table_of_plain_numbers_stays_as_it_is(tmp_path):
    cells = ["0.1", "16777217", "-3e-7", "1e10", "0.30000001192092896", "5"]
    path = write(tmp_path / "t.csv", {"a": cells, "same": ["2"] * 6, "whole": ["3", "1", "2", "6", "5", "4"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        items = read_table(path)
    expected = np.array([cells, ["2"] * 6, ["3", "1", "2", "6", "5", "4"]]).astype(np.float64).astype(np.float32).T
    assert items.x.tobytes() == np.ascontiguousarray(expected).tobytes()
    assert items.columns.is_plain
    assert items.features == ("a", "same", "whole")


@pytest.mark.parametrize(
    ("cells", "filled", "flag"),
    [
        ([1.0, None, 5.0, 3.0], [1, 3, 5, 3], True),
        ([1.0, float("nan"), 5.0, 3.0], [1, 3, 5, 3], True),
        (["1", "?", "5", "3"], [1, 3, 5, 3], True),
        (["1", " N/A ", "5", "3"], [1, 3, 5, 3], True),
        ([*map(str, range(30)), "tall"], [*range(30), 15], True),
        ([*map(str, range(200)), "tall"], [*range(200), 100], False),
    ],
    ids=["nothing", "nan", "a sign", "a word", "a slip", "one slip in many"],
)
def test_empty_cells_among_numbers_get_the_median_and_are_flagged_where_there_are_many(cells, filled, flag):
    column, x = one(cells)
    assert x[:, 0].tolist() == filled
    assert (column.kind, column.flag) == ("number", flag)
    if flag:
        assert x[:, 1].tolist() == [float(cell in (None, "?", " N/A ", "tall") or cell != cell) for cell in cells]
    assert "1 empty cell" in column.told()
    assert ("'tall'" in column.told()) == ("tall" in cells)


@pytest.mark.parametrize(
    ("cells", "form"),
    [(["1,234", "5", "12,345.5"], "1,234.5"), (["1.234", "5", "12.345,5"], "1.234,5"), (["0,5", "-3,25"], "1.234,5")],
)
def test_numbers_with_commas_are_numbers(tmp_path, cells, form):
    column, x = one(cells)
    assert (column.kind, column.form) == ("number", form)
    point = {"1,234.5": (",", ""), "1.234,5": (",", ".")}[form]
    plain = [cell if form == "1,234.5" else cell.replace(".", "") for cell in cells]
    assert x[:, 0].tolist() == [float(cell.replace(*point)) for cell in plain]
    path = tmp_path / "t.csv"
    path.write_text("y;x\n" + "".join(f"{i};{cell}\n" for i, cell in enumerate(cells)))
    items = read_table(path)
    assert items.x[:, 1].tolist() == x[:, 0].tolist()
    assert items.columns.told()[1] == f"x: number, as {form}"


@pytest.mark.parametrize("words", [("yes", "no"), ("TRUE", "False"), ("Y", "n"), ("on", "off"), (True, False)])
def test_two_words_are_one_and_nought(words):
    column, x = one([words[0], words[1], words[1]])
    assert column.kind == "boolean"
    assert x.tolist() == [[1], [0], [0]]


def test_types_of_parquet_are_what_they_say(tmp_path):
    hours = [timedelta(hours=i % 7) for i in range(9)]
    texts = ["a", None, "b"] * 3
    columns = {
        "span": pa.array(hours, pa.duration("us")),
        "clock": pa.array([(datetime(2024, 1, 1) + hour).time() for hour in hours], pa.time32("s")),
        "dictionary": pa.array(texts).dictionary_encode(),
        "view": pa.array(texts, pa.string_view()),
        "zoned": pa.array([datetime(2024, 1, 1) + hour for hour in hours], pa.timestamp("ns", tz="Europe/Berlin")),
        "wide": pa.array([10**15 + i * 7 % 5 for i in range(9)]),
        "nothing": pa.nulls(9),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    items = read_table(tmp_path / "t.parquet")
    assert dict(line.split(": ", 1) for line in items.columns.told()) == {
        "span": "number",
        "clock": "number",
        "dictionary": "category of 2 levels, 3 columns, 3 empty cells",
        "view": "category of 2 levels, 3 columns, 3 empty cells",
        "zoned": "date (year-month-day), with hour",
        "wide": "number, less 1e+15",
        "nothing": "left out (empty)",
    }
    assert items.x[:, :2].tolist() == [[hour.total_seconds()] * 2 for hour in hours]
    assert items.x[:, -1].tolist() == [i * 7 % 5 - 2 for i in range(9)]
    pq.write_table(pa.table({"raw": [b"\xff"]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t\.parquet must hold numbers in column 'raw'; got 'binary'"):
        read_table(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"the table is damaged \(.*UTF8"):
        Columns.find(pa.table({"x": pa.array([b"\xff\xfe", b"a"]).view(pa.string())}))


def test_a_category_has_a_column_for_each_frequent_text_and_one_for_the_rest():
    cells = ["red"] * 5 + ["blue"] * 3 + [" red "] + ["mauve", "teal"] + [None]
    column, x = one(cells)
    assert column.names == ("x=red", "x=blue", "x=other", "x is empty")
    expected = [[cell in ("red", " red "), cell == "blue", cell in ("mauve", "teal"), cell is None] for cell in cells]
    assert x.tolist() == [[float(value) for value in row] for row in expected]


def test_at_most_fifty_texts_of_a_category_have_columns():
    column, x = one([f"level{i % 80}" for i in range(1600)])
    assert (len(column.levels), column.other, len(column.rare)) == (50, True, 30)
    assert (x.sum(1) == 1).all()
    assert column.apply(pa.array(["level7", column.rare[0], "new"]))[1] == {"new": 1}


def test_where_more_others_were_than_can_be_kept_a_new_one_is_not_strange():
    column, _ = one(["red", "blue"] * 1000 + [f"odd{i}" for i in range(1001)])
    assert (column.levels, column.rare) == (("blue", "red"), ())
    x, strange = column.apply(pa.array(["red", "new"]))
    assert (x.tolist(), strange) == ([[0, 1, 0], [0, 0, 1]], {})


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["2024-02-29", "2024-03-01", "2024-03-05"], "year-month-day"),
        (["2024-02-29T00:00:00Z", "2024-03-01 01:00+01:00", "2024-03-04 19:00:00.5 -0500"], "year-month-day"),
        (["29.2.2024", "1.3.2024", "05.03.2024"], "day/month/year"),
        (["02/29/2024", "3/1/2024 12:00 AM", "03/05/2024"], "month/day/year"),
        (["29/02/2024", "1/3/2024", "05/03/2024"], "day/month/year"),
        ([date(2024, 2, 29), date(2024, 3, 1), date(2024, 3, 5)], "year-month-day"),
        ([datetime(2024, 2, 29), datetime(2024, 3, 1), datetime(2024, 3, 5)], "year-month-day"),
    ],
)
def test_dates_become_days_since_the_first_and_points_on_circles(cells, form):
    column, x = one(cells)
    assert (column.kind, column.form) == ("date", form)
    assert x[:, 0].tolist() == [0, 1, 5]
    circles = dict(zip(column.names, x.T, strict=True))
    for name, places, of in (("month", [1, 2, 2], 12), ("weekday", [3, 4, 1], 7)):
        angle = 2 * np.pi * np.array(places) / of
        assert np.allclose(circles[f"x: sine of {name}"], np.sin(angle), atol=1e-6)  # of float32
        assert np.allclose(circles[f"x: cosine of {name}"], np.cos(angle), atol=1e-6)
    assert "x: sine of hour" not in circles


def test_a_day_that_there_is_not_is_an_empty_cell():
    days = [f"2023-01-{d:02d}" for d in range(1, 30)]
    column, x = one([*days, "2023-02-29"])
    assert (column.empty, column.strange) == (1, ("2023-02-29",))
    assert x[-1, [0, 1, 2, -1]].tolist() == [14, 0, 0, 1]


def test_words_tell_sentences_apart():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    texts = [
        " ".join([*rng.choice(TOPICS[k], 3), *rng.choice(["the", "of", "and"], 3), f"no{i}"]) for i, k in enumerate(y)
    ]
    column, x = one(texts)
    assert column.kind == "text"
    assert set(column.known.words) == {word for topic in TOPICS for word in topic} | {"the", "of", "and"}
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    alike = (x / lengths) @ (x / lengths).T
    assert alike[y[:, None] == y].mean() > alike[y[:, None] != y].mean() + 0.2
    assert (np.linalg.norm(column.apply(pa.array(["zebra quagga", None, "ship wave"]))[0], axis=1) > 0).tolist() == [
        False,
        False,
        True,
    ]


def test_a_text_may_begin_with_a_bracket():
    assert one(["[deleted]", "[deleted]", "[removed]", "[removed]"])[0].kind == "category"
    with pytest.raises(InputError, match=r"got '\[1, 2\]'\. If its lists are embeddings, name it with features='x'"):
        one(["[1, 2]", "[3, 4]"])


def test_tf_idf_is_its_definition():
    texts = ["big ship ship", "big wave here", "ship wave ship wave", "one more wave"] * 3
    texts = [f"{text} n{i}" for i, text in enumerate(texts)]
    column, x = one(texts)
    words, rows = column.known.words, []
    for text in texts:
        tf = [text.split().count(word) for word in words]
        df = [sum(word in other.split() for other in texts) for word in words]
        row = [(1 + np.log(t)) * (1 + np.log(13 / (1 + d))) if t else 0 for t, d in zip(tf, df, strict=True)]
        rows.append(np.array(row) / np.linalg.norm(row))
    # all directions are kept here, so inner products are those of the weighed words
    assert np.allclose(x @ x.T, np.array(rows) @ np.array(rows).T, atol=1e-5)


def test_numbers_are_no_ids_merely_because_they_differ():
    assert one(np.arange(50.0))[0].kind == "number"
    assert find("row_id", pa.array(np.arange(50) * 2)).kind == "number"
    assert find("width", pa.array(np.arange(50))).kind == "number"
    for name in ("row_id", "userId", "ID", "index", "Unnamed: 0", "__index_level_0__", "my key"):
        assert find(name, pa.array(np.arange(5, 55))).kind == "left out", name
        assert find(name, pa.array(np.arange(5, 55)), named=True).kind == "number", name


def test_a_column_that_was_named_is_never_left_out_silently(tmp_path):
    path = write(tmp_path / "t.csv", {"index": range(9), "same": ["k"] * 9, "x": [*range(8), ""], "one": [1] * 9})
    said = r"the column 'same' was named in features= and is left out \(constant\)"
    with pytest.warns(UserWarning, match=said) as caught:
        items = read_table(path, features=["index", "same", "x", "one"])
    assert "named in --features and is" in in_flags(str(caught[0].message))
    assert items.features == ("index", "x", "x is empty", "one")
    assert read_table(path).features == ("x", "x is empty")


def test_a_single_named_column_of_texts_needs_no_list(tmp_path):
    made = mixed()
    path = write(tmp_path / "t.csv", {"review": made["review"], "not_label": made["not_label"]})
    with pytest.warns(UserWarning, match=r"columns: 1 text \(\d+ columns\)"):
        data = library.read(path, label="not_label", features="review")
    assert data.items.features[:2] == ("review[0]", "review[1]")
    assert library.features.find_space(data.items.x, columns=data.items.features).metric == "cosine"


def test_an_index_that_pandas_wrote_is_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",x\n" + "".join(f"{i},{i % 3}\n" for i in range(9)))
    assert read_table(path).features == ("x",)


def test_numbers_at_first_and_words_further_down_are_read_again(tmp_path):
    cells = [*range(300), *["many"] * 200]
    path = write(tmp_path / "t.csv", {f"c{j}": cells for j in range(6)} | {"x": range(500)})
    items = read_table(path)
    assert [column.kind for column in items.columns.columns] == ["category"] * 6 + ["number"]
    assert items.x[:, -1].tolist() == list(range(500))


# the classes themselves


def test_the_truth_does_not_become_a_feature_because_nobody_named_it(tmp_path):
    path = write(tmp_path / "t.csv", mixed())
    said = r"features in column 'truth'; got the classes themselves, .*\. Name it as id=, label= or truth="
    with pytest.warns(UserWarning, match="columns: "), pytest.raises(InputError, match=said) as error:
        library.read(path, label="not_label")
    assert "Name it as --id, --label or --truth, or leave it out with --features." in in_flags(str(error.value))
    with pytest.warns(UserWarning, match="columns: "):
        assert "truth=cat" in library.read(path, label="not_label", features=["truth", "age"]).items.features


# later tables


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a mixed table and a run of it."""
    place = tmp_path_factory.mktemp("mixed")
    path = write(place / "t.csv", mixed())
    call = ("fit", path, "--label", "not_label", "--truth", "truth", "--epochs", 2, "--scheme", "none", "--folds", 1)
    with pytest.warns(UserWarning, match="columns: 3 numbers"):
        naysay(*call, "--quiet", "--out", place / "RUN")
    return place


def test_a_run_predicts_a_table_as_it_was_trained_on_it(place, tmp_path):
    run, items = Run.load(place / "RUN"), read_table(place / "t.csv", label="not_label", truth="truth")
    assert run.columns.names == items.columns.names
    assert run.about["input"]["columns"] == ["age", "income", "colour", "member", "when", "review", "time"]
    done = naysay("predict", place / "RUN", place / "t.csv", "--out", tmp_path / "p.csv")
    rows = list(csv.DictReader((tmp_path / "p.csv").open()))
    _, p = run.predict(items.x)
    assert np.allclose([[float(row[f"p_{name}"]) for name in CLASSES] for row in rows], p.numpy(), atol=1e-6)
    assert "unlike" not in done.stderr


def test_what_is_unlike_training_is_told_and_columns_left_out_may_be_missing(place, tmp_path):
    made = {
        name: cells[:20] for name, cells in mixed(seed=5).items() if name not in ("uuid", "index", "note", "country")
    }
    made["colour"] = ["mauve"] * 3 + ["red"] * 17
    made["income"] = ["lots", *[5] * 19]
    made["time"] = ["", *[1_700_000_000] * 19]
    made["member"] = ["1", "maybe", *["no"] * 18]
    done = naysay("predict", place / "RUN", write(tmp_path / "new.csv", made), "--out", tmp_path / "p.csv")
    assert (
        "unlike the training table: 1 cell such as 'lots' in 'income', taken for empty; "
        "3 cells such as 'mauve' in 'colour', none of its levels and taken for other; "
        "1 cell such as 'maybe' in 'member', taken for empty; 1 cell in 'time', empty"
    ) in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("column", "cells", "said"),
    [
        ("income", ["lots"] * 20, "must hold numbers in column 'income'; got 'lots'"),
        ("when", ["tomorrow"] * 20, "must hold dates as year-month-day in column 'when'; got 'tomorrow'"),
        ("member", ["perhaps"] * 20, "must hold 'yes' or 'no' in column 'member'; got 'perhaps'"),
        ("age", [*[1] * 4, "inf", *[1] * 15], "must hold finite numbers in column 'age'; got nan or inf in row 5"),
    ],
)
def test_a_column_of_another_kind_is_refused(place, tmp_path, column, cells, said):
    made = {name: cells[:20] for name, cells in mixed(seed=5).items()} | {column: cells}
    path = write(tmp_path / "new.csv", made)
    done = naysay("predict", place / "RUN", path, "--out", tmp_path / "p.csv", code=2)
    assert f"naysay: {path} {said}" in done.stderr


def test_a_run_of_before_has_no_recipe_and_predicts_plain_numbers(tmp_path):
    rng = np.random.default_rng(0)
    made = {name: rng.normal(size=60).round(3).tolist() for name in "ab"} | {"not": [CLASSES[i % 3] for i in range(60)]}
    path = write(tmp_path / "t.csv", made)
    naysay("fit", path, "--label", "not", "--epochs", 1, "--scheme", "none", "--out", tmp_path / "RUN")
    naysay("predict", tmp_path / "RUN", path, "--out", tmp_path / "new.csv")
    about = json.loads((tmp_path / "RUN" / "run.json").read_text())
    del about["input"]["recipe"]
    (tmp_path / "RUN" / "run.json").write_text(json.dumps(about))
    assert Run.load(tmp_path / "RUN").columns is None
    naysay("predict", tmp_path / "RUN", path, "--out", tmp_path / "old.csv")
    assert (tmp_path / "old.csv").read_bytes() == (tmp_path / "new.csv").read_bytes()


def test_a_recipe_comes_back_from_plain_data():
    table = {name: cells for name, cells in mixed().items() if name not in ("not_label", "truth")}
    columns = Columns.find({name: list(map(str, cells)) for name, cells in table.items()})
    again = Columns.from_dict(json.loads(json.dumps(columns.as_dict())), columns.arrays())
    texts = {name: list(map(str, cells)) for name, cells in table.items()}
    assert np.array_equal(again.apply(texts), columns.apply(texts))
    assert again.told() == columns.told()
    assert all(array.dtype in (np.uint8, np.float32) for array in columns.arrays().values())


ODD = (None, True, -1, 10**400, 1e308, "", "x", "\ud800", [], {}, [[1]], ["a", "a"], {"kind": "list"}, 2**62)


def test_a_recipe_that_was_tampered_with_gives_one_sentence(place):
    about = Run.load(place / "RUN")
    told, arrays = about.columns.as_dict(), about.columns.arrays()
    table = {name: list(map(str, cells[:5])) for name, cells in mixed(5).items()}
    spoilt = 0
    for at, column in enumerate(told):
        for key in column:
            for value in ODD:
                changed = copy.deepcopy(told)
                changed[at][key] = value
                try:
                    found = Columns.from_dict(changed, arrays)
                    if set(found.inputs) <= table.keys():
                        found.apply(table)
                except InputError:  # any other error fails
                    spoilt += 1
    assert spoilt > 100
    for odd in (
        None,
        3,
        "x",
        {},
        [3],
        [[]],
        [{}],
        [{"kind": "number"}],
        [{"name": "a", "kind": "lambda"}],
        told + told,
    ):
        with pytest.raises(InputError):
            Columns.from_dict(odd, arrays)
    for name in arrays:
        with pytest.raises(InputError, match="column"):
            Columns.from_dict(told, {key: value for key, value in arrays.items() if key != name})
    words, idf, components = (
        next(key for key in arrays if key.endswith(part)) for part in ("words", "idf", "components")
    )
    for changed in (
        {words: np.frombuffer(b"\xff\xfe\na", np.uint8)},
        {words: arrays[words].astype(np.float32)},
        {idf: arrays[idf][:-1]},
        {idf: np.full_like(arrays[idf], np.nan)},
        {components: arrays[components][:, :-1]},
        {components: arrays[components][0]},
        {components: arrays[components].astype(np.float64)},
    ):
        with pytest.raises(InputError, match="text column do not fit"):
            Columns.from_dict(told, arrays | changed)


def test_a_run_whose_recipe_does_not_fit_its_model_is_refused(place, tmp_path):
    for changed in ([], [{"kind": "number", "name": "a"}], {"a": 1}, [{"kind": "list", "name": "a", "width": 10**9}]):
        folder = tmp_path / "RUN"
        folder.mkdir(exist_ok=True)
        for file in (place / "RUN").iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        about = json.loads((folder / "run.json").read_text())
        about["input"]["recipe"] = changed
        (folder / "run.json").write_text(json.dumps(about))
        with pytest.raises(InputError, match=r"run\.json: .*"):
            Run.load(folder)
    (folder / "run.json").write_bytes((place / "RUN" / "run.json").read_bytes())
    (folder / "columns.safetensors").write_bytes(b"no words")
    with pytest.raises(InputError, match=r"columns\.safetensors is not a whole columns file"):
        Run.load(folder)
    (folder / "columns.safetensors").unlink()
    with pytest.raises(InputError, match="the words of the column 'review' are not there"):
        Run.load(folder)


def test_unlike_says_nothing_where_nothing_is_strange():
    columns = Columns.find({"a": [1.0, 2.0]})
    strange = {}
    columns.apply({"a": [3.0, 4.0], "others": ["may", "be"]}, strange)
    assert unlike(columns, strange) == ""
    with pytest.raises(
        InputError, match=r"the table lacks the columns 'a', which the model was trained on\. Add them\."
    ):
        columns.apply({"b": [1.0]})


# scikit-learn's door


def test_the_encoder_takes_tables_into_a_pipeline():
    from sklearn.pipeline import make_pipeline

    made = mixed()
    y, frame = made["not_label"], {name: np.array(cells, object) for name, cells in made.items() if "t" not in name[:1]}
    del frame["not_label"]
    model = make_pipeline(library.TableEncoder(), library.ComplementaryKNeighbors())
    truth = np.array(made["truth"])
    assert (model.fit(frame, y).predict(frame) == truth).mean() > 0.5  # chance is a third
    encoder = model[0]
    assert encoder.get_feature_names_out().tolist() == list(encoder.columns_.names)
    assert encoder.transform(frame).shape == (300, len(encoder.columns_.names))
    assert not hasattr(clone(encoder), "columns_")
    assert torch.is_tensor(
        torch.from_numpy(encoder.transform(pa.table({k: list(map(str, v)) for k, v in frame.items()})))
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (3, r"a table must be a DataFrame, or columns of one length by name; got int\."),
        ({"a": [1, 2], "b": [1]}, "columns of one length by name; got dict"),
        ({"s": [{"a": 1}, {"a": 2}]}, r"the table must hold numbers in column 's'; got 'struct<a: int64>'"),
        ({"m": np.zeros((3, 2))}, "the column 'm' must hold a cell for each row"),
        ({"same": ["k", "k"]}, r"no column can be a feature: same: left out \(constant\)"),
    ],
)
def test_what_is_no_table_is_refused(table, said):
    with pytest.raises(InputError, match=said):
        library.TableEncoder().fit(table)


def test_a_vector_of_zeros_among_embeddings_is_no_error(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    x = (3 * np.eye(3, 6)[y] + rng.normal(size=(150, 6))).astype(np.float32)
    x[::3] = 0
    made = {"e": list(x), "not": [CLASSES[(k + 1 + i % 2) % 3] for i, k in enumerate(y)]}
    pq.write_table(pa.table(made), tmp_path / "t.parquet")
    call = ("fit", tmp_path / "t.parquet", "--label", "not", "--epochs", 1, "--scheme", "dms", "--folds", 1)
    said = naysay(*call, "--out", tmp_path / "RUN").stderr
    assert "by angle" in said
    naysay("predict", tmp_path / "RUN", tmp_path / "t.parquet", "--out", tmp_path / "p.csv")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 151
    with np.load(tmp_path / "RUN" / "report.npz") as shown:
        examples = shown["item_row"][shown["examples"]]  # an item, and the neighbours that the report shows of it
    assert x[examples].any(2).all(), "no neighbour is shown that is none"


@pytest.mark.parametrize(("kind", "last"), [(pa.uint64(), 2**64 - 1), (pa.int64(), 2**63 - 1), (pa.int64(), 2 - 2**63)])
def test_whole_numbers_that_differ_near_the_end_of_64_bits_are_kept_apart(kind, last):
    step = -1 if last > 0 else 1
    column = pa.chunked_array([pa.array([last + step * i * i for i in range(20)] + [None], kind)])
    recipe = Columns((find("size", column),))
    found = recipe.apply(pa.table({"size": column}))[:20, 0]
    assert not recipe.columns[0].constant
    np.testing.assert_array_equal(np.diff(found), step * np.diff(np.arange(20) ** 2))
    assert find("size", pa.chunked_array([pa.array([last] * 20, kind)])).constant
    later = recipe.apply(pa.table({"size": pa.array([last + step * 10**17], kind)}))
    assert float(later[0, 0]) == pytest.approx(step * 1e17)


def test_texts_of_numbers_that_64_bits_do_not_tell_apart_are_not_called_constant():
    column = pa.chunked_array([[str(2**64 - i) for i in range(1, 21)]])
    assert find("size", column).told() == "left out (alike in 64 bits)"


@pytest.mark.parametrize("empty", [False, True])
def test_a_number_whose_square_is_beyond_float32_is_named_by_column_and_row(tmp_path, empty):
    cells = ["" if empty and i == 3 else "3e38" if i == 7 else f"0.{i}" for i in range(10)]
    write(
        tmp_path / "t.csv", {"id": [str(i) for i in range(10)], "size": cells, "y": [f"0.{9 - i}" for i in range(10)]}
    )
    wanted = r"t.csv must hold numbers up to 1.8e\+19 in column 'size'; got 3e\+38 in row 8. Mend it, or divide"
    with pytest.raises(InputError, match=wanted):
        read_table(tmp_path / "t.csv", id="id")


def test_a_later_table_with_too_large_a_number_gets_the_same_sentence():
    recipe = Columns.find({"size": np.arange(10.0) / 3})
    with pytest.raises(InputError, match=r"up to 1.8e\+19 in column 'size'; got -3e\+20 in row 2"):
        recipe.apply({"size": np.array([1, -3e20])})
