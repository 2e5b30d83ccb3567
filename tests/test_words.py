"""Names and numbers as sentences say them."""

import pytest

from naysay import words


def test_a_share_is_a_percentage_and_its_error_decides_its_digits():
    assert words.percent(0.0424) == "4.2 %"
    assert words.percent(0.0424, 0) == "4 %"
    assert words.with_error(0.8912, 0.0113) == "89.1 ± 1.1"
    assert words.with_error(0.8912, 0.0004, "+") == "+89.12 ± 0.04"
    assert words.with_error(-0.05, 0.01, "+") == "-5.0 ± 1.0"


@pytest.mark.parametrize(("n", "said"), [(0, "0 labels"), (1, "1 label"), (2000, "2,000 labels")])
def test_a_noun_agrees_with_its_number(n, said):
    assert words.count(n, "label") == said


@pytest.mark.parametrize(("names", "said"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")])
def test_names_are_joined_as_people_do(names, said):
    assert words.joined(names) == said


def test_many_names_are_cut_and_counted():
    assert words.few(range(3)) == "0, 1, 2"
    assert words.few("abcde", 3) == "a, b, c and 2 more"
    assert words.few(["x"], 5, total=1200) == "x and 1,199 more"
    assert words.few(iter("ab"), 2, total=2) == "a, b"


def test_long_names_are_cut_to_their_letters():
    assert words.shortened("w" * 40) == "w" * 40
    assert words.quoted("w" * 300) == f"“{'w' * 39}…”"
