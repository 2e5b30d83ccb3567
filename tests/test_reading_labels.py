"""Labels are read as they are meant: several in a cell, matrices of codes, exports of annotation tools, mixed evidence.

The files in `exports/` are as the tools write them.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_reading import write

import naysay
from naysay.audit import audit
from naysay.errors import InputError
from naysay.reading.cells import split_cells
from naysay.reading.statements import KINDS

EXPORTS = Path(__file__).parent / "exports"
KINDS3 = ("cat", "dog", "emu")


@pytest.fixture
def items(tmp_path):
    return write(tmp_path / "items.csv", [["id", "a", "b"], *([f"i{i}", i, i % 2] for i in range(5))])


def in_cells(path, cells, **how):
    """The labels of items whose cells these are."""
    return naysay.read(write(path / "cells.csv", [["a", "not"], *enumerate(cells)]), label="not", **how)


def rows(data):
    return [[round(number, 3) for number in row] for row in data.comp.tolist()]


def test_several_labels_in_a_cell(tmp_path):
    cells = ["cat|dog", "emu", '["cat", "emu"]', "['dog']", "cat; emu", "dog, cat", ""]
    with pytest.warns(
        UserWarning, match="2 cells such as 'cat; emu' are read as several labels; name all classes with"
    ):
        data = in_cells(tmp_path, cells)
    assert data.classes == KINDS3
    half = 0.5
    expected = [[half, half, 0], [0, 0, 1], [half, 0, half], [0, 1, 0], [half, 0, half], [half, half, 0], [0, 0, 0]]
    assert rows(data) == expected


def test_a_name_with_a_comma_or_a_bar_can_be_one_class(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert in_cells(tmp_path, ["Smith, John", "Smith, Ann", "Lee"]).classes == ("Lee", "Smith, Ann", "Smith, John")
        named = in_cells(tmp_path, ["a|b", "a", "c"], classes=["a|b", "a", "c"])
    assert rows(named)[0] == [1, 0, 0]


def test_lists_that_are_none_stay_names():
    assert split_cells({"[a]": 1, "[[1]]": 1, "[" * 5000 + "]" * 5000: 1, "[1, 2]": 1}, None) == {"[1, 2]": ("1", "2")}


def test_several_labels_in_a_cell_of_long_rows(items, tmp_path):
    votes = write(tmp_path / "votes.csv", [["item", "not"], ["i0", "cat|dog"], ["i1", "emu"]])
    data = naysay.read(items, id="id", labels=votes, label="not")
    assert rows(data)[:2] == [[0.5, 0.5, 0], [0, 0, 1]]
    assert data.table["item"] == ["i0", "i0", "i1"]


def test_a_column_for_each_class_with_marks(tmp_path):
    marks = [["a", "not_cat", "not_dog", "not_emu"], [1, 1, 0, 0], [2, 0, 1, 1], [3, 0, 0, ""]]
    path = write(tmp_path / "marks.csv", marks)
    data = naysay.read(path, label=["not_cat", "not_dog", "not_emu"])
    assert data.classes == KINDS3
    assert rows(data) == [[1, 0, 0], [0, 0.5, 0.5], [0, 0, 0]]
    np.savez(tmp_path / "marks.npz", x=np.ones((2, 2)), labels=np.array([[1, 0, 0], [0, 1, 1]]))
    assert naysay.read(tmp_path / "marks.npz", classes=KINDS3).comp.tolist() == [[1, 0, 0], [0, 0.5, 0.5]]


def test_a_class_of_a_matrix_that_no_file_can_hold_is_refused(tmp_path):
    marked = [[f"i{i}", i, i % 2, 0, 1 - i % 2] for i in range(9)]
    path = write(tmp_path / "d.csv", [["id", "x", "a", "b", "c"], *marked])
    with pytest.raises(InputError, match=r"the class 'c\\udcff' has a name that is not UTF-8 text"):
        naysay.read(path, id="id", label=["a", "b", "c"], classes=["a", "b", "c\udcff"])


def test_signed_votes_in_columns_of_ones_own_table(tmp_path):
    path = write(tmp_path / "votes.csv", [["a", "f", "g"], [1, -2, 0], [2, 3, ""], [3, -1, -3]])
    data = naysay.read(path, label=["f", "g"], format="signed")
    assert data.classes == ("1", "2", "3")
    assert rows(data) == [[0, 1, 0], [0.5, 0.5, 0], [0.5, 0, 0.5]]
    assert naysay.read(path, label=["f", "g"], format="signed", classes=KINDS3).classes == KINDS3
    assert data.sure


def test_negative_numbers_are_asked_about_and_minus_one_alone_is_no_label(tmp_path):
    with pytest.raises(
        InputError, match=r'labels such as -3 are no classes: pass format="signed" .* or format="snorkel"'
    ):
        in_cells(tmp_path, [-1, -3, 2])
    assert in_cells(tmp_path, [-1, 0, 1, 2]).comp[0].tolist() == [0, 0, 0]
    assert in_cells(tmp_path, [-1, -3, 2], classes=["-1", "-3", "2"]).classes == ("-1", "-3", "2")


def test_a_label_matrix_as_snorkel_has_it_with_codes_that_say_not(items, tmp_path):
    """-1 abstains, k is k, -(k + 2) is not k."""
    matrix = np.array([[-1, -1], [-2, -1], [1, -1], [-3, -4], [-4, -4]])
    np.save(tmp_path / "L.npy", matrix)
    data = naysay.read(items, id="id", labels=tmp_path / "L.npy", format="snorkel")
    expected = [[0, 0, 0], [1, 0, 0], [0.5, 0, 0.5], [0, 0.5, 0.5], [0, 0, 1]]
    assert (data.classes, rows(data)) == (("0", "1", "2"), expected)
    turned = [[f"i{i}", *row] for i, row in enumerate(matrix.tolist())][::-1]
    table = write(tmp_path / "L.csv", [["id", "f", "g"], *turned])
    assert rows(naysay.read(items, id="id", labels=table, format="snorkel", classes=KINDS3)) == expected


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"format": "snorkle"}, "unknown format of labels 'snorkle': did you mean snorkel"),
        ({"format": "prodigy"}, 'format="prodigy" is that of a file of labels: pass labels="FILE" too'),
        ({"format": "signed"}, "format=\"signed\" needs whole numbers in not; got 'cat'"),
        ({"format": "dummies"}, r'format="dummies" needs a column for each class|needs 0 and 1 in not'),
        ({"format": "signed", "labels_say": "is"}, 'says itself what labels say; leave labels_say="is" out'),
        ({"without": "eve"}, 'without="eve" is a column of long rows: pass labels="FILE" too'),
    ],
)
def test_what_does_not_fit_together_is_said(tmp_path, how, said):
    with pytest.raises(InputError, match=said):
        in_cells(tmp_path, ["cat"], **how)


def test_a_prediction_that_a_person_changed_in_label_studio_says_not(items):
    path = EXPORTS / "label_studio.json"
    data = naysay.read(items, id="id", labels=path)
    assert data.classes == KINDS3
    # changed to cat; emu removed; skipped; cat rejected by a reviewer; dog confirmed
    assert rows(data) == [[0, 0.5, 0.5], [0, 0, 1], [0, 0, 0], [1, 0, 0], [0.5, 0, 0.5]]
    assert sorted(set(data.table["annotator"])) == ["3", "5", "eve@example.com"]
    refused = naysay.read(items, id="id", labels=path, format="label-studio", labels_say="not")
    assert rows(refused) == [[0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert data.sure


def test_tasks_are_named_by_a_key_of_their_data_or_by_their_own_id(items, tmp_path):
    tasks = json.loads((EXPORTS / "label_studio.json").read_text())
    for i, task in enumerate(tasks):
        task["data"] = {"key": f"i{i}"}
    (tmp_path / "t.json").write_text(json.dumps(tasks))
    assert rows(naysay.read(items, id="id", labels=tmp_path / "t.json", item="key"))[1] == [0, 0, 1]
    with pytest.raises(InputError, match="labels item '101', which is not among"):
        naysay.read(items, id="id", labels=tmp_path / "t.json")


def test_answers_of_prodigy_say_is_not_or_nothing(items):
    data = naysay.read(items, id="id", labels=EXPORTS / "prodigy.jsonl")
    # not dog; is dog; ignored; one of emu and dog; not cat
    assert rows(data) == [[0, 1, 0], [0.5, 0, 0.5], [0, 0, 0], [1, 0, 0], [1, 0, 0]]
    assert data.sure
    without = naysay.read(items, id="id", labels=EXPORTS / "prodigy.jsonl", without="kinds-eve")
    assert rows(without)[3:] == [[0, 0, 0], [0, 0, 0]]


def exported(tool, choices):
    """An export of a few tasks, whose choices are those texts of JSON in turn."""
    if tool == "prodigy":
        rows = (f'{{"id": "i{i}", "label": {choice}, "answer": "reject"}}\n' for i, choice in enumerate(choices))
        return "".join(rows)
    chosen = '[{"type": "choices", "from_name": "c", "value": {"choices": [%s]}}]'
    given = '{"id": %d, "data": {"id": "i%d"}, "annotations": [{"result": %s}]}'
    return f"[{','.join(given % (i, i, chosen % choice) for i, choice in enumerate(choices))}]"


@pytest.mark.parametrize("tool", ["prodigy", "label-studio"])
def test_a_choice_that_is_not_a_number_is_no_label_and_an_infinite_one_is_refused(items, tmp_path, tool):
    path = tmp_path / "votes.jsonl" if tool == "prodigy" else tmp_path / "votes.json"
    path.write_text(exported(tool, ['"cat"', '"dog"', '"emu"', "NaN"]))
    data = naysay.read(items, id="id", labels=path, format=tool)
    assert data.classes == ("cat", "dog", "emu")
    assert not data.comp[3].any()
    path.write_text(exported(tool, ['"cat"', '"dog"', '"emu"', "1e999"]))
    with pytest.raises(InputError, match=r"an export names something by the number infinity\. Write a name"):
        naysay.read(items, id="id", labels=path, format=tool)


@pytest.mark.parametrize("tool", ["prodigy", "label-studio"])
def test_a_class_that_no_file_can_hold_is_refused_where_it_is_read(items, tmp_path, tool):
    path = tmp_path / "votes.jsonl" if tool == "prodigy" else tmp_path / "votes.json"
    path.write_text(exported(tool, ['"cat"', '"dog"', '"emu\\ud800"']))
    with pytest.raises(InputError, match=r"the class 'emu\\ud800' has a name that is not UTF-8 text\. Rename it\."):
        naysay.read(items, id="id", labels=path, format=tool)
    with pytest.raises(InputError, match="is not UTF-8 text"):
        naysay.read(items, id="id", labels=path, format=tool, classes=["cat", "dog", "emu\ud800"])


def test_responses_in_argilla_against_its_suggestions(items, tmp_path):
    records = {
        "id": ["i0", "i1", "i2", "i3"],
        "text": list("abcd"),
        "kind.responses": [["cat"], ["dog", "dog"], ["emu"], None],
        "kind.responses.users": [["u1"], ["u1", "u2"], ["u1"], None],
        "kind.responses.status": [["submitted"], ["submitted", "discarded"], ["draft"], None],
        "kind.suggestion": ["dog", "dog", "cat", "emu"],
        "kind.suggestion.score": [0.9, 0.8, 0.7, 0.6],
    }
    path = tmp_path / "argilla.parquet"
    pq.write_table(pa.table(records), path)
    data = naysay.read(items, id="id", labels=path)
    assert data.classes == KINDS3  # drafts and suggestions name classes too
    # changed from dog to cat; dog confirmed, and a discarded response; a draft; none
    assert rows(data)[:4] == [[0, 0.5, 0.5], [0.5, 0, 0.5], [0, 0, 0], [0, 0, 0]]
    refused = naysay.read(items, id="id", labels=path, labels_say="not")
    assert rows(refused)[:4] == [[0, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    records["kind.suggestion"] = [1, 1, 0, 2]
    named = {"kind.suggestion": {"names": list(KINDS3), "_type": "ClassLabel"}}
    meta = {"huggingface": json.dumps({"info": {"features": named}})}
    pq.write_table(pa.table(records).replace_schema_metadata(meta), path)
    assert rows(naysay.read(items, id="id", labels=path, labels_say="not")) == rows(refused)


def test_argilla_before_version_two(items, tmp_path):
    answers = [[{"user_id": "u1", "value": "cat", "status": "submitted"}], [], []]
    path = tmp_path / "old.parquet"
    pq.write_table(
        pa.table({"id": ["i0", "i1", "i2"], "kind": answers, "kind-suggestion": ["dog", "emu", "cat"]}), path
    )
    data = naysay.read(items, id="id", labels=path, classes=KINDS3)
    assert rows(data)[:2] == [[0, 0.5, 0.5], [0, 0, 0]]


def test_class_numbers_of_hugging_face_have_names(tmp_path):
    features = {"not": {"names": ["cat", "dog", "emu", "fox"], "_type": "ClassLabel"}, "a": {"dtype": "float64"}}
    meta = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({"a": [0.1, 0.2, 0.3, 0.4], "not": [2, 0, 1, -1]}).replace_schema_metadata(meta)
    pq.write_table(table, tmp_path / "hf.parquet")
    data = naysay.read(tmp_path / "hf.parquet", label="not")
    assert data.classes == ("cat", "dog", "emu", "fox")
    assert data.comp.argmax(1).tolist()[:3] == [2, 0, 1]
    assert data.comp[3].tolist() == [0, 0, 0, 0]


def test_what_was_shown_and_not_chosen_is_ruled_out_if_labels_are_choices(items):
    how = {"labels": EXPORTS / "crowd_kit.csv", "label": "label", "annotator": "worker", "options": "shown"}
    data = naysay.read(items, id="id", **how, labels_say="chosen")
    assert data.classes == ("cat", "dog", "emu", "fox")
    third = 0.333
    assert rows(data)[:4] == [[0, 1, 0, 0], [0, 0, 0.5, 0.5], [1, 0, 0, 0], [third, third, third, 0]]
    named = naysay.read(items, id="id", **how)
    assert rows(named)[0] == [1, 0, 0, 0]


def test_mixed_evidence_in_one_file(items):
    how = {"labels": EXPORTS / "mixed.csv", "annotator": "who", "labels_say": "says"}
    data = naysay.read(items, id="id", **how)
    assert rows(data) == [[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0.5, 0, 0.5]]
    found = audit(data.comp, table=data.table, classes=data.classes, items=data.items.ids.tolist())
    assert found.together == 3
    assert any("right or wrong together" in advice.text for advice in found.advice)


def test_every_kind_of_statement_rules_out_what_logic_does():
    every = range(4)
    for said in ([0], [1, 3]):
        for truth in every:
            holds = {"not": truth not in said, "is": truth in said, "one-of": truth in said}
            for name, true in holds.items():
                assert true == (truth not in KINDS[name](said, [], every))
    assert KINDS["chosen"]([1], [0, 1, 2], every) == [0, 2]


def test_annotators_can_be_left_out(items, tmp_path):
    votes = write(
        tmp_path / "v.csv", [["item", "not", "who"], ["i0", "cat", "ann"], ["i0", "dog", "eve"], ["i1", "emu", ""]]
    )
    how = {"labels": votes, "label": "not", "annotator": "who", "classes": KINDS3}
    assert rows(naysay.read(items, id="id", **how, without="eve"))[:2] == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(InputError, match="unknown annotator 'evee': did you mean eve"):
        naysay.read(items, id="id", **how, without=["evee"])
    with pytest.raises(InputError, match='needs to know who said what: pass annotator="COLUMN" too'):
        naysay.read(items, id="id", labels=votes, label="not", without="eve")


def test_annotators_are_weighed_by_what_neighbours_say(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    x = (8 * np.eye(3)[y] + rng.normal(size=(300, 3))).round(3)
    path = write(tmp_path / "x.csv", [["id", *"abc"], *([f"i{i}", *row] for i, row in enumerate(x.tolist()))])
    good = [[f"i{i}", KINDS3[(y[i] + rng.integers(1, 3)) % 3], "good"] for i in range(300)]
    poor = [[f"i{i}", KINDS3[rng.integers(3)], "poor"] for i in range(0, 300, 2)]
    votes = write(tmp_path / "v.csv", [["item", "not", "who"], *good, *poor])
    how = {"id": "id", "labels": votes, "label": "not", "annotator": "who"}
    plain, weighed = naysay.read(path, **how), naysay.read(path, **how, weigh_annotators=True)
    reliable = weighed.origin["reliability"]
    assert reliable["good"] > 0.8
    assert reliable["poor"] < 0.5
    on_truth = [float(data.comp[np.arange(300), y].sum()) for data in (plain, weighed)]
    assert on_truth[1] < 0.6 * on_truth[0]
    assert all(abs(total - 1) < 1e-6 for total in weighed.comp.sum(1).tolist())
    assert audit(weighed.comp, features=x, table=weighed.table, classes=KINDS3, items=weighed.items.ids.tolist())
    with pytest.raises(InputError, match="weigh_annotators=True needs to know who said what"):
        naysay.read(path, id="id", labels=votes, label="not", weigh_annotators=True)
