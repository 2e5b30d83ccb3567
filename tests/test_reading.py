"""Reading in Python is what the command does: the same items, labels and classes, the truth kept apart, no flags."""

import ast
import csv
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image

import naysay
from naysay import labels, runs, transition
from naysay.cli.options import FLAGS, in_flags
from naysay.errors import InputError
from naysay.learning import Config
from naysay.reading import find_classes

SOURCE = Path(__file__).parent.parent / "src" / "naysay"
KINDS = ("cat", "dog", "emu")


def write(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    x = (4 * np.eye(3)[y] + rng.normal(size=(60, 3))).round(3)
    rows = [[f"i{i}", *x[i].tolist(), KINDS[(y[i] + 1 + i % 2) % 3], KINDS[y[i]]] for i in range(60)]
    rows[3][4] = ""
    return write(tmp_path / "data.csv", [["id", "a", "b", "c", "not", "kind"], *rows])


def test_labels_in_a_column_become_comp_and_the_truth_stays_with_the_oracle(table):
    data = naysay.read(table, id="id", label="not", truth="kind")
    assert data.classes == KINDS
    assert data.items.features == ("a", "b", "c")
    assert data.items.ids[:2].tolist() == ["i0", "i1"]
    assert data.items.y_true is None
    assert data.comp.shape == (60, 3)
    assert torch.equal(data.comp.sum(1), torch.tensor([float(i != 3) for i in range(60)]))
    named = [row["kind"] for row in csv.DictReader(table.open())]
    assert [KINDS[k] for k in data.oracle.y_true] == named
    assert data.table is None
    assert data.origin["columns"] == ["a", "b", "c"]
    assert naysay.read(table, id="id", label="not", ignore="kind").oracle is None


def test_long_rows_are_joined_by_item(table, tmp_path):
    votes = [["item", "wrong", "who", "shown"], ["i1", "cat", "w", "cat|dog"], ["i0", "emu", "v", "emu|dog|cat"]]
    path = write(tmp_path / "votes.csv", votes)
    how = {"labels": path, "label": "wrong", "annotator": "who", "options": "shown", "ignore": ["not", "kind"]}
    data = naysay.read(table, id="id", **how)
    assert data.comp[:3].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]
    assert data.table["annotator"] == ["w", "v"]
    assert data.table["options"][0] == ["cat", "dog"]
    write(path, [*votes, ["i2", "emu", "w", "cat|dog"]])
    with pytest.raises(InputError, match="was not among the options shown"):
        naysay.read(table, id="id", **how)
    assert naysay.read(table, id="id", **how, strict=False).comp[2].tolist() == [0, 0, 1]


def test_labels_are_drawn_from_the_truth_of_a_known_set_or_of_ones_own(table):
    digits = naysay.read("digits", transition="biased-weak", n_labels=2, seed=4)
    drawn = transition.sample(digits.oracle.y_true, transition.biased(10, "weak", 4), 2, 4)
    assert torch.equal(digits.comp, labels.from_indices(drawn, 10))
    assert digits.oracle.tested_on == "355 test items"
    own = naysay.read(table, id="id", truth="kind", ignore="not", transition="uniform")
    assert (own.comp.argmax(1).numpy() != own.oracle.y_true).all()
    assert own.origin["labels"] == "drawn from the truth: uniform, 1 label each, seed 0"


def test_an_id_column_that_was_not_named_is_taken_and_said(table):
    with pytest.warns(
        UserWarning, match="the column 'id' is taken for the items' ids; pass id= to name another"
    ) as said:
        data = naysay.read(table, label="not", ignore="kind")
    assert said[0].filename == __file__
    assert data.items.ids[0] == "i0"


def test_what_was_read_is_fitted_written_and_predicted(table, tmp_path):
    data = naysay.read(table, id="id", label="not", truth="kind")
    fitted = runs.fit(data, runs.Settings(Config(epochs=3)), oracle=data.oracle, progress=False, tell=lambda line: None)
    runs.write(fitted, data, tmp_path / "RUN", oracle=data.oracle)
    numbers, p = runs.Run.load(tmp_path / "RUN").predict(data.items.x)
    assert numbers.shape == (60,)
    assert torch.allclose(p.sum(1), torch.ones(60))
    with np.load(tmp_path / "RUN" / "report.npz") as arrays:
        assert np.array_equal(arrays["map_truth"], data.oracle.y_true[arrays["map_row"]])


def test_a_run_predicts_in_python_from_arrays_tables_and_files(table, tmp_path):
    data = naysay.read(table, id="id", label="not", truth="kind")
    settings = runs.Settings(Config(epochs=1), ("none",), folds=1, refit=False)
    runs.write(runs.fit(data, settings, progress=False, tell=lambda line: None), data, tmp_path / "RUN")
    run = naysay.load_run(tmp_path / "RUN")
    expected = run.run.predict(data.items.x)[1].numpy()
    columns = {name: data.items.x[:, j].tolist() for j, name in enumerate("abc")}
    for X in (
        data.items.x,
        {"other": [1] * 60, **dict(reversed(columns.items()))},
        pa.table(columns),
        table,
        str(table),
    ):
        assert np.allclose(run.predict_proba(X), expected, atol=1e-6)
        assert run.predict(X).tolist() == [KINDS[k] for k in expected.argmax(1)]
    assert run.classes == KINDS
    assert run.about["data"]["reading"] == {
        **{"source": str(table), "id": "id", "label": "not", "truth": "kind", "contradictions": "raise"},
        **{"seed": 0, "strict": True},
    }
    assert run.ids(table)[:2] == ["i0", "i1"]
    with pytest.raises(InputError, match=r"X must hold rows of shape \(3,\).*got shape \(2, 4\)"):
        run.predict(np.zeros((2, 4)))
    with pytest.raises(InputError, match="X lacks the columns 'b', 'c'"):
        run.predict({"a": [1]})


def test_classes_stand_in_order_and_minus_one_says_nothing_among_numbers():
    assert find_classes({"10": 1, "9": 1, "-1": 5}).names == ("9", "10")
    assert find_classes({"b": 1, "a": 1, "-1": 5}).names == ("-1", "a", "b")
    assert find_classes({"2": 1, "0": 1}, ["0", "1", "2"]).number["2"] == 2


def test_merged_spellings_are_written_as_most_are():
    classes = find_classes({"Cat": 1, "cat": 3, "CAT": 2, "dog": 1}, merge_spelling=True)
    assert classes.names == ("cat", "dog")
    assert {text: classes.number[text] for text in ("Cat", "cat", "CAT")} == {"Cat": 0, "cat": 0, "CAT": 0}
    with pytest.raises(InputError, match="'Cat' and 'cat'"):
        find_classes({"Cat": 1, "cat": 3, "dog": 1})
    with pytest.raises(InputError, match="different names, none of them empty; got 'a' twice"):
        find_classes({"a": 1}, ["a", "b", "a"])


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            {"ignore": ["kind", "not"]},
            r'no labels were named for .*: pass label="COLUMN", or labels="FILE" with long',
        ),
        ({"label": "not", "ignore": "x*"}, r"ignore='x\*' matches no column"),
        (
            {"transition": "uniform", "ignore": ["not", "kind"]},
            r'transition="uniform" draws .*: pass truth="COLUMN", or',
        ),
        (
            {"label": "not"},
            r"column 'kind'; got .*\. Name it as id=, label= or truth=, or leave it out with features=\.",
        ),
        (
            {"label": "not", "ignore": "kind", "classes": ["cat", "dog", "emy"]},
            "Correct it, or name all classes with classes=",
        ),
        (
            {"label": "not", "ignore": "kind", "classes": ["Cat", "dog", "emu"]},
            "take it for 'Cat' with merge_spelling=True",
        ),
    ],
)
def test_the_library_speaks_of_arguments_and_the_command_of_flags(table, how, said):
    with pytest.raises(InputError, match=said) as caught:
        naysay.read(table, id="id", **how)
    assert "--" not in str(caught.value)
    assert re.search(
        r" --(label|labels|ignore|transition|id|classes|merge-spelling)\b", f" {in_flags(str(caught.value))}"
    )


@pytest.mark.parametrize(
    ("sentence", "flags"),
    [
        ('pass label="COLUMN", or labels="FILE" too.', "pass --label COLUMN, or --labels FILE too."),
        ("take it with merge_spelling=True, or name classes=.", "take it with --merge-spelling, or name --classes."),
        ("ignore='x*' matches none", "--ignore 'x*' matches none"),
        ("gamma=0.5 is too much; got n_labels=4.", "--gamma 0.5 is too much; got --n-labels 4."),
        ("n_neighbors=3 is few", "--neighbors 3 is few"),
        ("items' ids; pass id= to name another", "items' ids; pass --id to name another"),
        # what a user wrote stays: cells, paths, and words that only end so
        ("got 'label=cat' in \"id=3\"", "got 'label=cat' in \"id=3\""),
        ("/tmp/label=3/data.csv is empty", "/tmp/label=3/data.csv is empty"),
        ("give cache_key=, not_label=3", "give cache_key=, not_label=3"),
        ("Give another folder with cache=.", "Give another folder with $NAYSAY_DATA."),
    ],
)
def test_arguments_are_translated_and_a_users_own_text_is_not(sentence, flags):
    assert in_flags(sentence) == flags


def test_every_flag_of_the_translation_exists():
    from typer.main import get_command

    from naysay.cli import app

    given = {flag for command in get_command(app).commands.values() for param in command.params for flag in param.opts}
    assert set(FLAGS.values()) <= given


FLAGS_LEFT = {"runs/results.py", "cluster/connection.py"}  # the latter speaks of Ray's own command


def test_messages_of_the_library_name_no_flags_of_the_command():
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(("cli/", "__init__", "audit/page")) or name in FLAGS_LEFT:
            continue
        texts = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
        found = [text for text in texts if isinstance(text, str) and re.search(r"(?<![\w-])--[a-z]", text)]
        assert not found, f"{name}: {found}"


def test_arguments_that_would_change_nothing_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("id,a,not\nx,1,p\ny,2,q\nz,3,r\n")
    with pytest.raises(InputError, match=r'annotator="who" is a column of long rows: pass labels="FILE" too'):
        naysay.read(tmp_path / "t.csv", id="id", label="not", annotator="who")
    with pytest.raises(InputError, match="n_labels=2 is for labels that are drawn or a known set's"):
        naysay.read(tmp_path / "t.csv", id="id", label="not", n_labels=2)
    assert naysay.read(tmp_path / "t.csv", id="id", label="not").comp.shape == (3, 3)


@pytest.fixture
def photos(tmp_path):
    """A folder of images side by side, and votes about them that also say what each is."""
    (tmp_path / "photos").mkdir()
    rng = np.random.default_rng(0)
    rows = []
    for i in range(12):
        Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(tmp_path / "photos" / f"{i:02}.png")
        rows += [[f"{i:02}", KINDS[(i + 1) % 3], KINDS[i % 3]], [f"{i:02}.png", KINDS[(i + 2) % 3], ""]]
    write(tmp_path / "votes.csv", [["item", "label", "kind"], *rows])
    return tmp_path


def test_the_truth_of_images_in_a_folder_is_a_column_of_their_labels(photos):
    data = naysay.read(photos / "photos", labels=photos / "votes.csv", truth="kind")
    assert data.oracle.y_true.tolist() == [i % 3 for i in range(12)]
    assert data.origin["truth"] == "kind"
    assert naysay.read(photos / "photos", labels=photos / "votes.csv").oracle is None
    np.save(photos / "x.npy", np.eye(12, dtype=np.float32))
    rows = [["item", "label", "kind"], *([i, KINDS[(i + 1) % 3], KINDS[i % 3]] for i in range(12))]
    of_array = naysay.read(photos / "x.npy", labels=write(photos / "numbered.csv", rows), truth="kind")
    assert of_array.oracle.y_true.tolist() == [i % 3 for i in range(12)]
    write(photos / "two.csv", [["item", "label", "kind"], ["00", "cat", "dog"], ["00.png", "cat", "emu"]])
    with pytest.raises(InputError, match=r"calls item '00.png' 'dog' and 'emu' in its column 'kind', where an item mu"):
        naysay.read(photos / "photos", labels=photos / "two.csv", truth="kind")
    with pytest.raises(InputError, match="'kin': did you mean kind"):
        naysay.read(photos / "photos", labels=photos / "votes.csv", truth="kin")


def test_a_named_truth_counts_more_than_the_names_of_subfolders(photos):
    for i in range(12):
        place = photos / "years" / f"{2020 + i % 4}"
        place.mkdir(parents=True, exist_ok=True)
        (photos / "photos" / f"{i:02}.png").rename(place / f"{i:02}.png")
    rows = [[f"{2020 + i % 4}/{i:02}.png", KINDS[(i + 1) % 3], KINDS[i % 3]] for i in range(12)]
    votes = write(photos / "votes.csv", [["item", "label", "kind"], *rows])
    data = naysay.read(photos / "years", labels=votes, truth="kind")
    assert [KINDS[k] for k in data.oracle.y_true] == [{r[0]: r[2] for r in rows}[name] for name in data.items.ids]


@pytest.mark.parametrize(
    ("source", "how", "said"),
    [
        ("photos", {"truth": "kind", "transition": "uniform"}, r'photos is a folder of .* truth="kind" would change'),
        ("photos", {"id": "name"}, r'photos is a folder of images, .* id="name" would change nothing'),
        ("photos", {"labels": "votes.csv", "features": ["a"]}, 'features="a" would change nothing'),
        ("photos", {"labels": "votes.csv", "ignore": ["a"]}, 'ignore="a" would change nothing'),
        ("photos", {"label": ["kind"]}, 'label="kind" would change nothing'),
        ("photos", {"labels": "votes.csv", "transition": "uniform"}, 'labels are those of .*transition="uniform"'),
        ("photos", {"labels": "votes.csv", "n_labels": 2}, "labels are those of .*n_labels=2 would change nothing"),
        (
            "x.npy",
            {"labels": "votes.csv", "id": "name"},
            'x.npy holds one array, .* id="name", and their column in .*votes.csv is named by item=',
        ),
        ("x.npz", {"ignore": ["y"]}, 'x.npz holds arrays, .* ignore="y" would change nothing'),
        ("digits", {"truth": "kind"}, 'digits is a known set, .* truth="kind" would change nothing'),
        ("digits", {"classes": KINDS}, 'classes="cat" would change nothing'),
        ("digits", {"transition": "uniform", "labels_say": "is"}, 'draws labels, so that labels_say="is" would'),
    ],
)
def test_what_a_source_has_no_use_for_is_refused(photos, source, how, said):
    np.save(photos / "x.npy", np.eye(12, dtype=np.float32))
    np.savez(photos / "x.npz", x=np.eye(12, dtype=np.float32), y=np.zeros(12))
    place = source if source == "digits" else photos / source
    with pytest.raises(InputError, match=said):
        naysay.read(place, **{**how, **({"labels": photos / "votes.csv"} if "labels" in how else {})})
