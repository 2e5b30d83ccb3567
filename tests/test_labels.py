import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naysay import labels
from naysay.errors import InputError

K = 4


def rows(comp):
    return [[round(v, 4) for v in row] for row in comp.tolist()]


def test_one_label_is_one_hot():
    assert rows(labels.from_indices([2, 0], K)) == [[0, 0, 1, 0], [1, 0, 0, 0]]


def test_m_labels_weigh_one_over_m():
    assert rows(labels.from_indices(np.array([[1, 3], [0, 2]]), K)) == [[0, 0.5, 0, 0.5], [0.5, 0, 0.5, 0]]


def test_ragged_lists_weigh_by_their_own_length():
    assert rows(labels.from_indices([[1], [0, 1, 2], []], K)) == [
        [0, 1, 0, 0],
        [0.3333, 0.3333, 0.3333, 0],
        [0, 0, 0, 0],
    ]


def test_a_label_given_twice_weighs_twice():
    assert rows(labels.from_indices([[1, 1, 2]], K)) == [[0, 0.6667, 0.3333, 0]]


def test_minus_one_is_unlabelled_and_pads():
    assert rows(labels.from_indices([[-1, -1], [2, -1]], K)) == [[0, 0, 0, 0], [0, 0, 1, 0]]


def test_numpy_torch_and_lists_agree():
    given_as = [0, 3, 1]
    expected = labels.from_indices(given_as, K)
    assert expected.dtype == torch.float32
    assert torch.equal(labels.from_indices(np.array(given_as, dtype=np.uint8), K), expected)
    assert torch.equal(labels.from_indices(torch.tensor(given_as), K), expected)


def test_no_rows_make_an_empty_matrix():
    assert labels.from_indices([], K).shape == (0, K)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, K - 2), max_size=6), min_size=1, max_size=20))
def test_every_row_sums_to_one_or_zero_and_holds_only_what_was_named(lists):
    comp = labels.from_indices(lists, K)
    for row, named in zip(comp, lists, strict=True):
        assert set(row.nonzero().flatten().tolist()) == set(named)
        assert float(row.sum()) == pytest.approx(1 if named else 0, abs=1e-6)  # float32 sums of up to 6 terms
    labels.validate(comp)


def test_signed_minus_k_is_not_k_counted_from_one():
    assert rows(labels.from_signed([[-2, 0]], K)) == [[0, 1, 0, 0]]


def test_signed_plus_k_is_all_other_classes():
    assert rows(labels.from_signed([3], K)) == [[0.3333, 0.3333, 0, 0.3333]]


def test_signed_zero_abstains():
    assert rows(labels.from_signed([[0, 0], [0, -1]], K)) == [[0, 0, 0, 0], [1, 0, 0, 0]]


def test_signed_votes_add_up():
    assert rows(labels.from_signed([[1, -2]], K)) == [[0, 0.5, 0.25, 0.25]]


def test_table_rows_follow_first_appearance_and_sorted_classes():
    table = {"item": ["b", "a", "b"], "label": ["cat", "dog", "owl"]}
    assert rows(labels.from_table(table)) == [[0.5, 0, 0.5], [0, 1, 0]]


def test_table_follows_the_items_and_classes_it_is_given():
    table = {"photo": [7], "not": ["dog"]}
    comp = labels.from_table(table, ["dog", "cat", "owl"], [5, 7], item="photo", label="not")
    assert rows(comp) == [[0, 0, 0], [1, 0, 0]]


def test_table_counts_an_annotator_once_per_class_and_item():
    table = {"item": [1, 1, 1], "label": ["a", "a", "b"], "who": ["x", "x", "y"]}
    assert rows(labels.from_table(table, "abc", annotator="who")) == [[0.5, 0.5, 0]]
    assert rows(labels.from_table(table, "abc")) == [[0.6667, 0.3333, 0]]


def test_table_takes_options_as_lists_or_joined_by_bars():
    table = {"item": [1, 2], "label": ["a", "b"], "shown": ["a|b", ["b", "c"]]}
    assert rows(labels.from_table(table, options="shown")) == [[1, 0, 0], [0, 1, 0]]


def test_table_reads_pyarrow():
    import pyarrow as pa

    table = pa.table({"item": [1, 1], "label": ["a", None]})
    assert rows(labels.from_table(table, "abc")) == [[1, 0, 0]]


def test_a_row_that_names_every_class_can_be_unlabelled_or_kept():
    everything = [[0, 1, 2, 3, 3]]
    assert rows(labels.from_indices(everything, K, contradictions="unlabel")) == [[0, 0, 0, 0]]
    assert rows(labels.from_indices(everything, K, contradictions="keep")) == [[0.2, 0.2, 0.2, 0.4]]


def test_validate_returns_what_it_was_given():
    comp = labels.from_indices([1, -1], K)
    assert labels.validate(comp, K) is comp
    assert labels.validate(comp.double()).dtype == torch.float64
    assert labels.validate(comp.numpy()).dtype == torch.float32


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: labels.from_indices([4], K),
            "class numbers must be 0 to 3 (or -1 for unlabelled); got 4 in row 0. If the classes",
        ),
        (lambda: labels.from_indices([[0], [-2]], K), "got -2 in row 1"),
        (lambda: labels.from_indices([0.5], K), "y must hold whole class numbers; got fractions or NaN"),
        (lambda: labels.from_indices(["cat"], K), "For class names use naysay.labels.from_table"),
        (lambda: labels.from_indices([0], 2), "ordinary labels in disguise"),
        (lambda: labels.from_indices([0], 1), "at least 3 classes; got 1."),
        (
            lambda: labels.from_indices([[0, 1, 2, 3]], K),
            "row 0 names every class as wrong, which cannot be (1 such rows); drop its labels, or pass",
        ),
        (lambda: labels.from_indices(np.zeros((2, 2, 2), dtype=int), K), "got shape (2, 2, 2)"),
        (
            lambda: labels.from_indices([0], K, contradictions="drop"),
            'contradictions must be "raise", "unlabel" or "keep"; got \'drop\'.',
        ),
        (
            lambda: labels.from_signed([[5]], K),
            "votes must be -4 to 4 (0 abstains, classes are counted from 1); got 5.",
        ),
        (
            lambda: labels.from_table(5, "abc"),
            "table must have columns by name (a dict of lists, a DataFrame, a pyarrow Table); got int.",
        ),
        (lambda: labels.from_table({"item": [1]}, "abc"), "the table has no column 'label'; its columns are item."),
        (
            lambda: labels.from_table({"item": [1], "label": ["z"]}, "abc"),
            "row 0 names class 'z', which is not among the classes a, b, c",
        ),
        (
            lambda: labels.from_table({"item": [1], "label": ["a"]}, "abc", [2]),
            "row 0 labels item 1, which is not among the 1 items",
        ),
        (
            lambda: labels.from_table({"item": [1], "label": ["a"], "o": ["b|c"]}, "abc", options="o"),
            "row 0 names class 'a', which was not among the options shown",
        ),
        (
            lambda: labels.from_table({"item": [1], "label": ["a"]}, "aab"),
            "classes must be distinct; got 'a' more than once.",
        ),
        (lambda: labels.from_table({"item": [1] * 3, "label": list("abc")}, "abc"), "item 1 names every class"),
        (
            lambda: labels.validate(np.zeros(128)),
            "comp must be an (n, K) matrix, one column per class; got shape (128,). "
            "For class numbers use naysay.labels.from_indices(y, n_classes).",
        ),
        (
            lambda: labels.validate(np.zeros((3, 4), dtype=int)),
            "comp must be a float matrix whose rows sum to 1; got int64 values.",
        ),
        (
            lambda: labels.validate(torch.full((2, K), 0.5)),
            "rows of comp must sum to 1 (or to 0 where unlabelled); row 0 sums to 2.",
        ),
        (lambda: labels.validate(torch.full((2, K), float("nan"))), "comp must hold finite numbers of at least 0"),
        (
            lambda: labels.validate(torch.tensor([[1.5, -0.5, 0, 0]])),
            "comp must hold finite numbers of at least 0; got [1.5, -0.5, 0.0, 0.0] in row 0.",
        ),
        (lambda: labels.validate(torch.zeros(2, 3), 4), "got 3 columns for 4 classes"),
    ],
)
def test_bad_labels_are_told_what_is_wrong_and_the_way_out(call, text):
    with pytest.raises(InputError) as error:
        call()
    assert text in str(error.value)
