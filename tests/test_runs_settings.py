"""The settings of a run, as they are checked and as run.json has them."""

import json

import pytest

from naysay import runs
from naysay.augmentation import Sharing
from naysay.cli.options import in_flags
from naysay.errors import InputError
from naysay.learning import Config


def test_settings_are_written_as_older_files_have_them():
    written = json.loads(json.dumps(runs.Settings().as_dict()))
    assert list(written) == [
        "config",
        "schemes",
        "n_neighbors",
        "alpha",
        "gamma",
        "held_out",
        "assume",
        "space",
        "encoder",
        "folds",  # newer
        "refit",
        "apart",
        "auto",
        "budget",
    ]
    assert (written["n_neighbors"], written["alpha"], written["gamma"]) == (None, 0.1, None)
    assert written["schemes"] == ["none", "dms"]


def test_what_else_was_set_of_sharing_is_written_too():
    written = runs.Settings(sharing=Sharing(n_neighbors=5, rounds=7)).as_dict()
    assert (written["n_neighbors"], written["rounds"], written["gamma"]) == (5, 7, 1.0)
    assert not {"tol", "method", "metric", "scheme"} & set(written)


def test_each_scheme_shares_by_the_same_settings():
    settings = runs.Settings(schemes=("rss", "dms"), sharing=Sharing(alpha=0.3))
    assert [settings.sharing_by(scheme) for scheme in settings.schemes] == [
        Sharing("rss", alpha=0.3),
        Sharing("dms", alpha=0.3),
    ]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"schemes": ("none", "dmss")}, "unknown scheme 'dmss'"),
        ({"schemes": ("dms", "dms")}, "schemes must be one or more different schemes; got dms, dms"),
        ({"schemes": ()}, "schemes must be one or more different schemes; got none"),
        ({"space": "pca3"}, "unknown space 'pca3'"),
        (
            {"space": "pca", "encoder": "a/e.safetensors"},
            r'^e.safetensors gives the features, .* space="pca" is for it',
        ),
        (
            {"apart": True, "encoder": "a/mine.npy"},
            "^apart=True makes the space from .* mine.npy is made already. Leave one of the two out",
        ),
        (
            {"apart": True, "encoder": "a/e.safetensors", "held_out": 0.2},
            "the encoder left out, so that held_out=0.2 would change nothing",
        ),
        (
            {"apart": True, "config": Config(encoder="a/e.safetensors"), "folds": 1},
            "the encoder left out, so that folds=1 would change nothing",
        ),
        ({"assume": "biased"}, "unknown assumption 'biased'"),
        ({"held_out": 1.0}, "held_out must be a share between 0 and 1; got 1.0"),
        ({"folds": 0}, "folds must be 1, for a single part held out, or more; got 0"),
        ({"folds": 5, "held_out": 0.2}, "no share to hold out; got folds=5 and held_out=0.2"),
        ({"folds": 5, "refit": False}, "of folds=5 no model has seen all labels.*Use folds=1"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(options, error):
    with pytest.raises(InputError, match=error):
        runs.Settings(**options)


def test_a_budget_for_one_network_is_refused_in_the_words_of_the_command():
    with pytest.raises(InputError) as caught:
        runs.Settings(budget=3.0)
    assert in_flags(str(caught.value)).startswith("--budget 3.0 is for --model 'auto'")
