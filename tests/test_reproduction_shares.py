"""The laboratory's runs with corrected labels, and tables whose numbers are goals."""

import pytest
import torch

from naysay import augment, labels, metrics, neighbors, transition
from reproduction import correction, sets
from reproduction.cells import Cell, cells, landed
from reproduction.experiments import EXPERIMENTS
from reproduction.published import Number, published
from reproduction.sets import Place
from reproduction.spec import get, wanted
from reproduction.standing import Standing
from reproduction.table import head, sections, told
from reproduction.values import CORRECTIONS

VALUES = {"dataset": "digits", "scheme": "dms", "n_neighbors": 16, "gamma": "auto", "seed": 0}


def test_a_run_is_corrected_as_its_values_say():
    place = Place()
    read, comp = sets.images("digits", place), sets.complementary("digits", 0, place)
    graph = neighbors.build(sets.space("digits", place).train, 16)
    T = {
        "popularity": transition.popularity(comp),
        "estimated": transition.estimate(comp, graph, class_shares="even").T,
        "oracle": transition.oracle_empirical(read.y_true, comp),
    }
    for kind in CORRECTIONS:
        found = EXPERIMENTS["augmented"]({**VALUES, "correction": kind}, place).figures["augmented_accuracy"]
        shares = {} if kind == "none" else {"class_shares": "even", "transition": T.get(kind)}
        Z = augment(graph, comp, n_neighbors=16, gamma="auto", **shares)
        assert found == metrics.oracle_argmin_accuracy(torch.as_tensor(Z), read.y_true), kind


def test_a_T_that_trains_has_not_seen_the_labels_that_judge(monkeypatch):
    asked, find = [], correction.settings
    monkeypatch.setattr(correction, "settings", lambda *about: asked.append(about) or find(*about))
    training = {"inputs": "features", "model": "mlp", "epochs": 1, "loss": "scl-nl", "held_out": 0.1}
    EXPERIMENTS["classifier"]({**VALUES, **training, "correction": "estimated", "seed": 5}, Place())
    ((_, comp, _, _),) = asked
    assert int((comp.sum(1) == 0).sum()) == round(0.1 * len(comp))


def test_a_run_may_have_more_labels_than_its_set():
    comp = sets.complementary("digits", 0, Place(), 2)
    assert torch.equal((2 * comp).round().sum(1), torch.full((len(comp),), 2.0))
    drawn = transition.sample(sets.images("digits", Place()).y_true, transition.uniform(10), 2, seed=0)
    assert torch.equal(comp, labels.from_indices(drawn, 10))


@pytest.mark.parametrize(("mean", "verdict"), [(0.8795, "reached"), (0.8794, "short"), (0.95, "reached")])
def test_a_goal_is_reached_to_a_tenth_of_a_percent(mean, verdict):
    cell = Cell(Standing({}, "full"), "augmented_accuracy", (mean - 0.01, mean + 0.01), Number(0.88, goal=True))
    assert cell.verdict == verdict
    assert cell.in_errors is None  # a goal has no runs of its own


def test_the_table_of_class_shares_has_a_goal_in_every_cell_and_says_so():
    spec = get("tab-shares")
    its = cells(spec, [])
    assert len(its) == len(published("tab-shares").values) == 40
    assert all(cell.paper.goal for cell in its)
    assert [section.title for section in sections(spec, its)][1] == "even shares"
    assert head(sections(spec, its)[0])[2] == "goal, %"
    assert any(line.startswith("Goals: issue 13") for line in told(spec, its))
    assert landed(its) == "0 of 40 goals reached, 0 short, 40 without a record"
    only_even = [run for run in wanted(get("check-shares")) if run.values["correction"] == "even"]
    assert len(only_even) == 15
