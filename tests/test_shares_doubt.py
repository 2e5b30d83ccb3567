"""Stated class shares are doubted where labels are named evenly and imply others, and only there."""

import warnings

import pytest
import torch

from naysay import augment, labels, transition
from naysay.seeds import torch_stream

SHARES = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05], dtype=torch.float64)


def rows_of(shares, n=4000):
    """Well separated classes of these shares: features (n, 5) of length 1, and the classes."""
    generator = torch_stream(0, "unequal classes")
    y = torch.multinomial(shares, n, replacement=True, generator=generator)
    x = torch.eye(5)[y] + 0.15 * torch.randn(n, 5, generator=generator)
    return torch.nn.functional.normalize(x), y


def said_of(shares, T, stated, **settings):
    """What `augment` warns of where classes have `shares`, labels come from T, and other shares are stated."""
    x, y = rows_of(shares)
    comp = labels.from_indices(transition.sample(y, T, seed=1), 5)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        augment(x, comp, n_neighbors=16, gamma="auto", class_shares=stated, **settings)
    return [str(one.message) for one in told if "class_shares" in str(one.message)]


def popular():
    named = torch.tensor([1.6, 1.2, 1.0, 0.8, 0.4], dtype=torch.float64) * (1 - torch.eye(5))
    return named / named.sum(1, keepdim=True)


def test_even_shares_of_unequal_classes_are_warned_of_with_the_shares_that_evenly_named_labels_imply():
    (said,) = said_of(SHARES, transition.uniform(5), "even")
    assert said.startswith(
        "class_shares do not fit the labels, which name wrong classes evenly and so imply shares of "
    )
    assert said.endswith(" Pass those, or None.")
    implied = [float(share) for share in said.split("shares of ")[1].split(". ")[0].split(", ")]
    # 4 standard errors of 4000 labels: 4 (K-1) sqrt(0.2 * 0.8 / 4000)
    assert implied == pytest.approx(SHARES.tolist(), abs=0.1)
    assert sum(implied) == pytest.approx(1, abs=0.003)


def test_wrong_shares_of_equal_classes_are_warned_of_too():
    assert said_of(torch.full((5,), 0.2), transition.uniform(5), SHARES)


@pytest.mark.parametrize(
    ("shares", "T", "stated"),
    [
        pytest.param(SHARES, transition.uniform(5), SHARES, id="true shares"),
        pytest.param(SHARES, transition.uniform(5), None, id="none stated"),
        pytest.param(torch.full((5,), 0.2), transition.uniform(5), "even", id="equal classes"),
        pytest.param(torch.full((5,), 0.2), popular(), "even", id="popularity"),
        pytest.param(SHARES, popular(), SHARES, id="popularity, unequal classes"),
        pytest.param(torch.full((5,), 0.2), transition.biased(5, "strong", seed=0), "even", id="bias"),
    ],
)
def test_shares_that_are_right_or_that_popularity_explains_are_left_alone(shares, T, stated):
    assert said_of(shares, T, stated) == []


def test_labels_that_are_not_shared_or_have_a_T_say_nothing_of_shares():
    assert said_of(SHARES, transition.uniform(5), "even", scheme="none") == []
    assert said_of(SHARES, transition.uniform(5), "even", transition=transition.uniform(5)) == []
