"""Runs: neighbours, epochs, the split, and sentences that say no more than was seen."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from naysay import labels, neighbors, portfolio, runs, selection, transition
from naysay.augmentation import Sharing, neighbors_for, share
from naysay.datasets import Items
from naysay.datasets.dataset import numbered
from naysay.errors import InputError
from naysay.estimation import estimate_accuracy
from naysay.holdout import prepare, split
from naysay.learning import Config
from naysay.reading import Labelled
from naysay.runs import mixed
from naysay.runs.attempt import attempt, told
from naysay.runs.pictures import picture
from naysay.runs.results import compared, results, verdict
from naysay.runs.settings import batch_size_for, recommend
from naysay.selection import Choice, Comparison
from naysay.statistics import by_gain


def quiet(line):
    """Says nothing."""


def chosen(kept, recommended, **z):
    """A choice in which the kept scheme's loss is lower than that of the others by z standard errors of 0.01."""
    right = Comparison(0.1, 0.05, 2, 0.0)
    gains = {name: {"scel": Comparison(0.01 * by, 0.01, by, 0.0), "ure-accuracy": right} for name, by in z.items()}
    return Choice(kept, recommended, None if kept == recommended else "scel", gains)


def test_a_difference_is_called_one_from_two_standard_errors_on():
    assert compared(chosen("dms", "dms", none=3), 100) == [
        "dms is kept, as recommended: better than none (loss -0.030 ± 0.010, accuracy +10.0 ± 5.0 points) "
        "on the same 100 held-out labels."
    ]
    assert compared(chosen("dms", "dms", none=1), 1000) == [
        "dms is kept, as recommended: 1,000 held-out labels show no clear difference from "
        "none (loss -0.010 ± 0.010, accuracy +10.0 ± 5.0 points)."
    ]
    both = compared(chosen("dms", "dms", none=4, rss=0.5, rms=-1), 100)
    assert both[0].startswith("dms is kept, as recommended: better than none (loss -0.040")
    assert both[1].startswith("They show no clear difference from rss (loss -0.005 ± 0.010")
    assert " and rms (loss +0.010 ± 0.010" in both[1]
    assert "nothing to compare" in compared(chosen("none", "none"), 10)[0]


def test_a_scheme_that_takes_the_place_of_the_recommended_one_is_said_to():
    assert compared(chosen("none", "dms", dms=1.5), 100)[0].startswith(
        "none is kept, instead of the recommended dms: better than dms (loss -0.015 ± 0.010"
    )


def test_small_classes_have_small_neighbourhoods():
    assert neighbors_for("dms", 50_000, 10) == 64  # the paper's
    assert neighbors_for("dms", 1_298, 10) == 11
    assert neighbors_for("dms", 4_000, 10) == 20
    assert neighbors_for("dms", 4_000, 10, shares_known=True) == 32  # more, where labels are put right
    assert neighbors_for("dms", 11_000, 10, shares_known=True) == 63
    assert neighbors_for("dss", 300, 10, shares_known=True) == 15  # a single step meets half a class anyway
    assert neighbors_for("dss", 1_298, 10) == 64
    assert neighbors_for("dss", 300, 10) == 15
    assert neighbors_for("dms", 30, 10) == 8
    assert neighbors_for("dms", 5, 3) == 4  # all other rows
    assert Sharing(n_neighbors=32).within(1_298, 10).n_neighbors == 32


def test_epochs_and_batches_follow_from_the_number_of_rows():
    assert [runs.epochs_within_budget(n) for n in (10, 30_000, 60_000, 1_000_000)] == [100, 100, 50, 5]
    assert [batch_size_for(n) for n in (1_000, 100_000)] == [64, 256]


def test_only_labelled_rows_are_held_out():
    comp = labels.from_indices([0, -1, 1, 2, -1, 0, 1, 2, 0, 1] * 4, 3)
    rows, held = split(comp, 0.25, seed=0)
    assert sorted([*rows.tolist(), *held.tolist()]) == list(range(40))
    assert len(held) == 8
    assert bool((comp[held].sum(1) == 1).all())
    with pytest.raises(InputError, match="no row has a label"):
        split(torch.zeros(5, 3), 0.2, seed=0)


def test_where_every_row_is_labelled_both_ways_of_holding_out_hold_out_the_same():
    comp = labels.from_indices(np.arange(40) % 3, 3)
    rows, held = split(comp, 0.25, seed=7)
    ready = prepare(np.zeros((40, 2), np.float32), comp, held_out=0.25, seed=7)
    assert torch.equal(ready.rows, rows)
    assert torch.equal(ready.held_rows, held)
    assert torch.equal(ready.held_out.comp, comp[held])


def grouped(n=90, seed=0):
    """Items of three clear groups with one uniform label each, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x = (3 * np.eye(3)[y] + rng.normal(size=(n, 3))).astype(np.float32)
    comp = labels.from_indices(transition.sample(y, transition.uniform(3)), 3)
    return runs.Labelled(Items(np.arange(n).astype(str).astype(object), x), comp, ("a", "b", "c")), y


def turned(data, rows):
    """The data with the labels of these rows changed."""
    comp = data.comp.clone()
    comp[rows] = comp[rows].roll(1, dims=1)
    return replace(data, comp=comp)


@pytest.mark.parametrize("folds", [1, 3])
def test_held_out_labels_take_no_part_in_sharing(folds):
    """Changing the labels of the rows held out from a model changes the estimate and not a single training label."""
    data, _ = grouped()
    settings = runs.Settings(Config(epochs=1), ("dms",), folds=folds)
    first = runs.fit(data, settings, tell=quiet)
    held = first.chosen.models[-1].ground.part.held_rows
    second = runs.fit(turned(data, held), settings, tell=quiet)
    assert torch.equal(first.chosen.models[-1].shared, second.chosen.models[-1].shared)
    assert first.chosen.estimate.value != second.chosen.estimate.value
    assert first.chosen.loss.value != second.chosen.loss.value


def test_every_labelled_row_judges_a_model_that_did_not_see_its_label():
    data, _ = grouped()
    data = replace(data, comp=data.comp * (torch.arange(90) % 3 > 0)[:, None])
    fitted = runs.fit(data, runs.Settings(Config(epochs=1), folds=4), tell=quiet)
    labelled = (data.comp.sum(1) > 0).nonzero()[:, 0]
    assert torch.equal(fitted.held.sort().values, labelled)
    for one in fitted.attempts:
        assert len(one.models) == 4
        assert len(one.loss.rows) == len(one.estimate.rows) == 60
        # in the order of `held`, for all schemes alike, so that differences are of the same rows
        logits = [model.predictor.logits(data.items.x[model.ground.part.held_rows]) for model in one.models]
        again = selection.scel(
            one.sharpness * torch.cat(logits), data.comp[fitted.held], one.models[0].ground.judged_by
        )
        assert torch.allclose(one.loss.rows, again.rows)
        for model in one.models:
            part = model.ground.part
            assert sorted([*part.rows.tolist(), *part.held_rows.tolist()]) == list(range(90))


def test_what_is_kept_is_trained_on_all_labels_and_the_estimate_stays_that_of_the_judged():
    data, y = grouped()
    oracle = runs.Oracle(data.items.x, y, data.items.x[:30], y[:30])
    settings = runs.Settings(Config(epochs=2), ("dms",), folds=3)
    fitted = runs.fit(data, settings, oracle=oracle, tell=quiet)
    assert torch.equal(fitted.rows, torch.arange(90))
    comp = labels.from_indices(data.comp.argmax(1), 3)
    k = settings.sharing_by("dms").within(90, 3).n_neighbors
    graph = neighbors.build(fitted.space.features, k, metric=fitted.space.metric)
    assert torch.equal(fitted.kept.shared, share(graph, comp, settings.sharing_by("dms"))[0])
    assert fitted.seen == pytest.approx(2 / 3)
    row = next(row for row in results(fitted) if row["chosen"])
    right = (fitted.kept.predictor.predict(data.items.x[:30]).numpy() == y[:30]).mean()
    assert row["truth"]["test_accuracy"] == pytest.approx(right)
    assert (row["held_out_rows"], row["estimate"]) == (90, fitted.chosen.accuracy.value)
    assert "The models judged saw 67 % of the labels, the one that is kept all of them." in verdict(fitted)


def test_without_training_again_the_model_that_was_judged_is_kept():
    data, _ = grouped()
    fitted = runs.fit(data, runs.Settings(Config(epochs=2), refit=False), tell=quiet)
    judged = fitted.chosen.models[0]
    assert (fitted.kept.predictor.model, fitted.kept.ground) == (judged.predictor.model, judged.ground)
    assert fitted.kept.predictor.sharpness == fitted.chosen.sharpness
    assert (len(fitted.rows), len(fitted.held)) == (81, 9)
    assert "all of them" not in verdict(fitted)
    assert fitted.chosen.history == [pytest.approx(epoch) for epoch in fitted.kept.history]


def test_a_model_that_estimates_labels_is_judged_by_what_it_estimates():
    data, _ = grouped()
    fitted = runs.fit(data, runs.Settings(Config(epochs=2, loss="cpe-i"), ("none",), folds=1), tell=quiet)
    logits = fitted.chosen.models[0].predictor.logits(data.items.x[fitted.held])
    estimated = -(fitted.chosen.sharpness * logits.double()).log_softmax(1)
    assert torch.allclose(fitted.chosen.loss.rows, (estimated * data.comp[fitted.held]).sum(1))


def test_an_epoch_of_several_folds_is_told_by_all_rows_held_out():
    data, _ = grouped(31)
    fitted = runs.fit(data, runs.Settings(Config(epochs=2), ("none",), folds=3), tell=quiet)
    last, only = fitted.chosen.history[-1], fitted.chosen.estimate
    assert (last["epoch"], last["held_out"]) == (2, pytest.approx(only.value))
    # folds differ in their means, by which the error of all rows together is a little larger
    assert last["held_out_error"] == pytest.approx(only.standard_error, rel=0.2)


def test_sharing_is_recommended_where_neighbours_say_anything_of_labels():
    assert [recommend(("none", "rss", "dms"), told) for told in (True, False)] == ["dms", "none"]
    assert [recommend(("rms", "dss"), told) for told in (True, False)] == ["rms", "rms"]
    data, _ = grouped(240)
    noise = np.random.default_rng(1).normal(size=(240, 3)).astype(np.float32)
    told, untold = (
        runs.fit(replace(data, items=Items(data.items.ids, x)), runs.Settings(Config(epochs=1), folds=2), tell=quiet)
        for x in (data.items.x, noise)
    )
    assert (told.choice.recommended, untold.choice.recommended) == ("dms", "none")


def test_every_label_judges_where_training_takes_seconds():
    def folds(n_rows, n_labelled=1000, epochs=100, **options):
        model = options.pop("model", "mlp")
        return runs.Settings(Config(epochs=epochs, model=model), **options).folds_for(n_rows, n_labelled)

    assert (folds(1442), folds(3750), folds(3751), folds(3751, epochs=50)) == (5, 5, 1, 5)
    assert folds(3750, schemes=("none", "rss", "dms")) == 1
    assert folds(1442, model="resnet18") == 1
    assert folds(1442, refit=False) == folds(1442, held_out=0.3) == folds(1442, n_labelled=9) == 1
    assert folds(1_000_000, folds=3) == 3


def test_what_will_be_trained_is_told_before_it_is():
    told = []
    runs.fit(grouped()[0], runs.Settings(Config(epochs=1), folds=2), tell=told.append)
    assert told[1] == (
        "5 trainings of 1 epoch: none and dms with each of 2 folds of the labels held out, "
        "then the one that is kept on all labels"
    )
    assert sum(line.startswith("training with") for line in told) == 5
    assert sum(line.endswith(" to go") for line in told) == 1


def test_unlabelled_rows_receive_and_are_trained_on():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)).astype(np.float32)
    comp = labels.from_indices([i % 3 if i % 2 else -1 for i in range(60)], 3)
    items = Items(np.arange(60).astype(str).astype(object), x)
    settings = runs.Settings(Config(epochs=1), folds=1)
    fitted = runs.fit(runs.Labelled(items, comp, ("a", "b", "c")), settings, tell=quiet)
    none, dms = (attempt.models[0] for attempt in fitted.attempts)
    assert int((none.shared.sum(1) > 0).sum()) == 27
    assert int((dms.shared.sum(1) > 0).sum()) == 57  # all training rows: 60 less a tenth of the 30 labelled


def test_an_estimated_transition_owes_nothing_to_the_labels_that_judge():
    draw = np.random.default_rng(0)
    y = draw.integers(0, 3, 300)
    x = (np.eye(4)[y] * 6 + draw.normal(size=(300, 4))).astype(np.float32)
    comp = labels.from_indices((y + draw.choice([1, 2], 300, p=[0.8, 0.2])) % 3, 3)
    _, held = split(comp, 0.1, 0)
    other = comp.clone()
    other[held] = other[held].roll(1, dims=1)
    settings = runs.Settings(Config(epochs=1), ("none",), assume="estimated", refit=False)
    ids = np.arange(300).astype(object)
    one, two = (
        runs.fit(runs.Labelled(Items(ids, x), given, ("a", "b", "c")), settings, progress=False, tell=quiet)
        for given in (comp, other)
    )
    assert torch.equal(one.held, held)
    assert torch.equal(one.T, two.T)
    assert one.chosen.estimate.value != two.chosen.estimate.value
    # not uniform: the class after the true one is named four times as often as the one before it
    assert all(one.T[k, (k + 1) % 3] > 0.65 for k in range(3))


def test_the_confidence_that_a_run_shows_is_in_classes_also_where_a_loss_estimates_labels():
    """A model of cpe-i that has learned is least confident of what it was told the row is not."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 120)
    x = (4 * np.eye(4)[y] + rng.normal(size=(120, 4))).astype(np.float32)
    comp = labels.from_indices(transition.sample(y, transition.uniform(4)), 4)
    data = runs.Labelled(Items(np.arange(120).astype(str).astype(object), x), comp, tuple("abcd"))
    settings = runs.Settings(Config(loss="cpe-i", epochs=15), ("dms",))
    fitted = runs.fit(data, settings, progress=False, tell=lambda line: None)
    assert fitted.chosen.history[-1]["confidence_seen"] < 0.2


def popular_digits(n=600, seed=0):
    """Digits whose labels name some classes far more often than others."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    weights = np.tile(np.array([20, 1, 1, 8, 1, 4, 1, 1, 2, 1.0]), (10, 1)) * (1 - np.eye(10))
    y = bunch.target[:n]
    comp = labels.from_indices(transition.sample(y, weights / weights.sum(1, keepdims=True), 1, seed), 10)
    items = Items(np.arange(n).astype(str).astype(object), bunch.data[:n].astype(np.float32))
    return runs.Labelled(items, comp, tuple(map(str, range(10)))), y


def test_stated_class_shares_correct_what_is_trained_on_and_are_told(tmp_path):
    data, y = popular_digits()
    settings = runs.Settings(Config(epochs=2), ("dms",), folds=1)
    settings = replace(settings, sharing=replace(settings.sharing, n_neighbors=8))  # else known shares ask more
    plain = runs.fit(data, settings, tell=quiet)
    stated = runs.fit(data, replace(settings, sharing=replace(settings.sharing, class_shares="even")), tell=quiet)
    right = [float((fitted.kept.shared.argmin(1).numpy() == y).mean()) for fitted in (plain, stated)]
    assert right[1] > right[0] + 0.1
    # corrected labels are uniform ones on average, whatever was named
    assert torch.allclose(stated.kept.shared.mean(0), torch.full((10,), 0.1), atol=1e-5)
    assert stated.kept.turned == pytest.approx(plain.kept.turned)
    turned = f"{100 * plain.kept.turned:.1f} %"
    asks = "The labels favour some classes, and how common the classes are was not stated; if they are even, "
    assert f"{asks}{turned} of the items should be read otherwise: state it with class_shares=." in verdict(plain)
    took = "Class shares were taken to be even: that gave "
    assert f"{took}{turned} of the items another least named class." in verdict(stated)
    about = runs.write(stated, data, tmp_path / "RUN", command="test")
    assert about["settings"]["class_shares"] == "even"


def test_a_run_that_tries_one_candidate_says_so_and_what_class_shares_did_to_it():
    data, _ = popular_digits()
    settings = runs.Settings(auto=True, budget=0.01, assume="uniform")
    plain = runs.fit(data, settings, tell=quiet)
    assert verdict(plain).startswith("Only neighbours on components was tried, judged by the labels of 600 items")
    stated = runs.fit(data, replace(settings, sharing=replace(settings.sharing, class_shares="even")), tell=quiet)
    changed = f"{100 * stated.kept.turned:.1f} %"
    assert stated.kept.turned > 0.1
    assert f"Class shares were taken to be even: that gave {changed} of the items another class." in verdict(stated)
    assert stated.chosen.loss.value != plain.chosen.loss.value, "judged as it is kept"


def test_a_mixture_whose_loss_class_shares_raised_is_not_said_to_have_a_lower_one():
    fitted = runs.fit(popular_digits()[0], runs.Settings(auto=True, budget=0.01, assume="uniform"), tell=quiet)
    part = replace(fitted.attempts[0], name="part", weight=0.6)
    parts = (part, replace(part, name="other", weight=0.4), replace(part, name="mixture", weight=None))
    said = verdict(replace(fitted, attempts=parts, choice=chosen("mixture", "mixture", part=-2, other=-2)))
    assert "Its loss is higher than that of the best of them alone, part, by 0.020 ± 0.010." in said


def test_an_accuracy_that_labels_cannot_tell_is_told_nowhere(tmp_path):
    data, _ = popular_digits()
    fitted = runs.fit(data, runs.Settings(Config(epochs=2), folds=1), tell=quiet)
    assert fitted.chosen.accuracy.value is None
    about = runs.write(fitted, data, tmp_path / "RUN", command="test")
    assert "The accuracy cannot be told: " in about["verdict"]
    assert "points" not in about["verdict"]
    assert [row["estimate"] for row in about["results"]] == [None, None]
    assert all(row["why_not"] and row["chosen_minus_this"] is None for row in about["results"])
    page = (tmp_path / "RUN" / "report.html").read_text()
    assert "How many of the items are classified rightly cannot be told from these labels: " in page
    assert "Estimated accuracy on the held-out rows" not in page


def test_labels_that_follow_no_uniform_naming_are_not_judged_by_it():
    data, _ = popular_digits()
    fitted = runs.fit(data, runs.Settings(Config(epochs=2), ("dms",), folds=1, assume="uniform"), tell=quiet)
    assert fitted.chosen.accuracy.value is None
    assert fitted.chosen.accuracy.why_not == "the labels do not follow the T that the estimate assumes"
    assert fitted.T is None
    popular = runs.fit(data, runs.Settings(Config(epochs=1), ("none",), folds=1, assume="popularity"), tell=quiet)
    assert torch.equal(popular.T, transition.popularity(data.comp))
    # no number by even naming where popularity is assumed, and no test of the one in the name of the other
    assert popular.chosen.accuracy.why_not.startswith("labels are assumed to name classes by their popularity")


def test_held_out_rows_may_be_kept_out_of_the_space_too():
    data, _ = grouped()
    data.items.x[:, 0] *= np.where(np.arange(90) % 7 == 0, 50, 1)  # rows that stretch a column for all
    settings = runs.Settings(Config(epochs=1), ("dms",), folds=1, held_out=0.3, refit=False)
    shared = {}
    for apart in (False, True):
        fitted = runs.fit(data, replace(settings, apart=apart), tell=quiet)
        rows = fitted.rows.numpy()
        x = data.items.x if not apart else data.items.x[rows]
        columns = ((x - x.mean(0)) / x.std(0)).astype(np.float32)[slice(None) if apart else rows]
        again = share(columns, data.comp[rows], settings.sharing_by("dms").within(len(rows), 3))[0]
        assert torch.allclose(fitted.kept.shared, torch.as_tensor(again), atol=1e-4)
        shared[apart] = fitted.kept.shared
        assert ("The held-out items had a part in making the space" in verdict(fitted)) == (
            not apart and fitted.chosen.accuracy.value is not None
        )
    assert not torch.equal(shared[False], shared[True])


def noisy_groups(n=400):
    """As `grouped`, but every third label names the true class."""
    data, y = grouped(n)
    T = transition.noisy(transition.uniform(3), 0.3)
    return runs.Labelled(data.items, labels.from_indices(transition.sample(y, T, 1, 3), 3), data.classes), y


def test_a_percentage_stands_with_its_interval_and_what_it_assumes(tmp_path):
    data, _ = grouped(300)
    fitted = runs.fit(data, runs.Settings(Config(epochs=3), ("dms",), folds=1, held_out=0.5), tell=quiet)
    about = runs.write(fitted, data, tmp_path / "RUN")
    row, page = about["results"][0], (tmp_path / "RUN" / "report.html").read_text()
    assert 0 <= row["low"] <= row["estimate"] <= row["high"] <= 1
    right, ends = f"{100 * row['estimate']:.1f} %", [f"{100 * row[end]:.1f}" for end in ("low", "high")]
    said = f"An estimated {right} of the items are classified rightly (95 % interval {ends[0]} to {ends[1]} %, "
    assert said in page
    assert f"told by complementary labels alone), if {row['assumes']}." in page
    assert f"[{ends[0]}, {ends[1]}]" in page
    assert "bands are 95 % intervals" in page


def test_where_labels_are_noisy_no_percentage_stands_without_its_interval(tmp_path):
    data, _ = noisy_groups()
    fitted = runs.fit(data, runs.Settings(Config(epochs=3), ("none", "dms"), folds=1, held_out=0.5), tell=quiet)
    assert fitted.chosen.accuracy.value is not None
    about = runs.write(fitted, data, tmp_path / "RUN")
    page = (tmp_path / "RUN" / "report.html").read_text()
    assert [row["estimate"] for row in about["results"]] == [None, None]
    assert all(0 <= row["low"] < row["high"] <= 1 for row in about["results"])
    kept = next(row for row in about["results"] if row["chosen"])
    interval = f"{100 * kept['low']:.1f} to {100 * kept['high']:.1f} %"
    assert f"{interval} of the items are classified rightly (95 % interval, told by complementary labels alone)" in page
    assert f"{100 * fitted.chosen.accuracy.value:.1f} %" not in page.split("<nav")[0]
    assert "Estimated accuracy on the held-out rows" not in page


def test_classes_that_are_never_predicted_are_named(tmp_path):
    data, _ = grouped(120)
    comp = torch.cat([data.comp, torch.ones(120, 1)], 1) / 2  # every item is said not to be of the fourth class
    data = runs.Labelled(data.items, comp, ("a", "b", "c", "<d>"))
    fitted = runs.fit(data, runs.Settings(Config(epochs=3), ("dms",), folds=1), tell=quiet)
    about = runs.write(fitted, data, tmp_path / "RUN")
    assert about["never_predicted"] == ["<d>"]
    assert "No training item is predicted to be “&lt;d&gt;”." in (tmp_path / "RUN" / "report.html").read_text()


def test_a_run_of_the_command_says_flags_where_python_says_arguments(tmp_path):
    from naysay.cli.options import in_flags

    data, _ = popular_digits()
    fitted = runs.fit(data, runs.Settings(Config(epochs=1), ("dms",), folds=1), tell=quiet)
    for words, said, other in ((in_flags, "--class-shares", "class_shares="), (str, "class_shares=", "--class-shares")):
        about = runs.write(fitted, data, tmp_path / said.strip("-="), words=words)
        page = (tmp_path / said.strip("-=") / "report.html").read_text()
        assert f"state it with {said}" in about["verdict"]
        assert f"state it with {said}" in page
        assert other not in page


def page_of(data, folder, **settings):
    """The report of a short run, and its run.json."""
    fitted = runs.fit(data, runs.Settings(Config(epochs=2), folds=1, **settings), tell=quiet)
    about = runs.write(fitted, data, folder)
    return (folder / "report.html").read_text(), about, fitted


def test_where_nothing_is_shared_the_report_shows_nothing_of_sharing(tmp_path):
    data, _ = grouped()
    shown, _, _ = page_of(data, tmp_path / "dms", schemes=("dms",))
    assert "Label mass after sharing" in shown
    assert 'id="sharing"' in shown
    none, _, _ = page_of(data, tmp_path / "none", schemes=("none",))
    assert "after sharing" not in none
    assert 'id="sharing"' not in none


def test_the_report_draws_predicted_shares_beside_those_that_labels_imply_or_that_were_stated(tmp_path):
    data, _ = grouped(300)
    implied, _, _ = page_of(data, tmp_path / "implied", schemes=("dms",))
    assert "Class shares: predicted and implied by the labels" in implied
    stated, _, _ = page_of(data, tmp_path / "stated", schemes=("dms",), sharing=Sharing(class_shares="even"))
    assert "Class shares: predicted and stated" in stated
    biased, _, _ = page_of(popular_digits()[0], tmp_path / "biased", schemes=("dms",))
    assert "Class shares of the predictions" in biased
    assert "cannot be told from these labels, so nothing stands beside it" in biased


def test_confidence_and_hard_pairs_are_counted_over_all_training_items(tmp_path):
    data, _ = grouped(90)
    _, _, fitted = page_of(data, tmp_path / "RUN", schemes=("dms",))
    p = fitted.kept.predictor.probabilities(fitted.kept.predictor.logits(data.items.x)).double()
    predicted = fitted.kept.predictor.decode(fitted.kept.predictor.logits(data.items.x))
    with np.load(tmp_path / "RUN" / "report.npz", allow_pickle=False) as arrays:
        sure, pairs, mass = arrays["confidence_counts"], arrays["pairs"], arrays["pairs_mass"]
    assert sure.sum() == 90
    assert sure[9] == int((p.max(1).values >= 0.9).sum())
    for (a, b), items in zip(pairs, mass, strict=True):
        assert items == pytest.approx(float(p[predicted == a, b].sum() + p[predicted == b, a].sum()), rel=1e-4)


def test_doubtful_items_show_the_columns_that_tell_their_two_classes_apart(tmp_path):
    from naysay.runs.pictures import picture

    x = np.array([[0.0, 5.0, 1.0], [0.0, 9.0, 1.1], [7.0, 5.0, 1.0], [0.0, 7.0, 1.05]])
    p = torch.tensor([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.1, 0.9], [0.51, 0.49, 0.0]])
    arrays = picture(p, p.argmax(1), x, ("width", "height", "age"), torch.tensor([3]))
    assert arrays["doubtful_columns"][0, 0] == "height"
    assert arrays["doubtful_values"][0, 0] == 7.0
    assert picture(p, p.argmax(1), x, (), torch.tensor([3]))["doubtful_columns"][0, 0] == "column 1"


def test_columns_of_huge_numbers_still_tell_doubtful_items_apart():
    rng = np.random.default_rng(0)
    predicted = torch.arange(90) % 3
    x = np.stack([rng.normal(size=90), 1e30 * (predicted.numpy() + rng.normal(0, 0.1, 90))], 1).astype(np.float32)
    p = torch.full((90, 3), 0.1).scatter_(1, predicted[:, None], 0.8)
    with np.errstate(over="raise"):
        arrays = picture(p, predicted, x, ("small", "huge"), torch.arange(5))
    assert arrays["doubtful_columns"][:, 0].tolist() == ["huge"] * 5


def test_labels_that_favour_one_wrong_class_of_each_prediction_leave_the_accuracy_untold():
    y = torch.arange(1200) % 4
    named = labels.from_indices((y + 1 + (torch.arange(1200) % 10 == 0).long()) % 4, 4)
    even = labels.from_indices((y + 1 + torch.arange(1200) // 4 % 3) % 4, 4)
    assert "do not follow the T" in told(y, named, None, None).why_not  # no neighbours were asked: predictions tell it
    assert told(y, even, None, None).value == 1


def test_what_models_say_of_even_naming_is_a_test_of_it():
    y = torch.arange(1200) % 4
    even = labels.from_indices((y + 1 + torch.arange(1200) // 4 % 3) % 4, 4)
    against = by_gain(1200 * 0.3**2 / 2, 1200, 3)
    assert told(y, even, None, None, even=against).why_not == "the labels do not follow the T that the estimate assumes"
    assert told(y, even, None, None, even=by_gain(1.0, 1200, 3)).value == 1
    T = transition.uniform(4) * 0.9 + 0.025
    assert "nothing else shows" in told(y, even, T, None, mixed.BY_MODELS, even=against).why_not  # of another T


def test_labels_that_are_popular_rather_than_even_flatter_nobody():
    """Nothing is learned, and the class that is named least looks right most often: as if it were the commonest one."""
    rng = np.random.default_rng(0)
    popular = torch.tensor([[3.0, 2.5, 2.0, 1.5]]).repeat(4, 1).fill_diagonal_(0.0).double()
    y = torch.from_numpy(rng.integers(4, size=4000))
    comp = labels.from_indices(transition.sample(y, popular / popular.sum(1, keepdim=True), 1, 3), 4)
    accuracy = told(torch.full((4000,), 3), comp, None, None)
    assert estimate_accuracy(torch.full((4000,), 3), comp, None).low > 0.4
    assert accuracy.low < 0.25 < accuracy.high
    assert accuracy.assumes.startswith("every wrong class is named alike, or as it is popular, and the true one never")


@pytest.mark.parametrize("refit", [True, False])
def test_networks_judged_on_a_part_of_the_labels_may_err_less_with_all_of_them(refit):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    x = (np.eye(3)[y] + rng.normal(0, 0.4, (400, 3))).astype(np.float32)
    data = Labelled(Items(numbered(400), x), labels.from_indices((y + rng.integers(1, 3, 400)) % 3, 3), tuple("abc"))
    settings = runs.Settings(Config(epochs=3), ("none",), refit=refit, held_out=None if refit else 0.5)
    fitted = runs.fit(data, settings, progress=False, tell=quiet)
    plain = attempt("none", fitted.chosen.models, fitted.audit.neighborhood).accuracy
    assert plain.high < 1
    gains = fitted.seen if refit else 1.0  # what is kept as it was judged has nothing to gain
    assert 1 - fitted.chosen.accuracy.high == pytest.approx((1 - plain.high) * gains)
    assert fitted.chosen.accuracy.low == plain.low


def test_a_mixture_judged_on_a_part_of_the_labels_may_err_less_by_that_part():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=150)
    x = np.eye(3)[y] + rng.normal(0, 0.5, (150, 3))
    comp = labels.from_indices((y + rng.integers(1, 3, 150)) % 3, 3)
    found = portfolio.fit(x, comp, assume="uniform", budget=0.1)
    predicted = torch.from_numpy(found.p.argmax(1))
    noise = mixed.noise_of(found.p, comp)
    plain = told(predicted, comp, None, None, noise=noise)
    kept = mixed.attempts(found, comp, None, None)[-1].accuracy
    doubted = replace(found, naming=replace(found.naming, even=by_gain(150 * 0.5**2 / 2, 150, 2)))
    assert "do not follow" in mixed.attempts(doubted, comp, None, None)[-1].accuracy.why_not
    assert plain.high < 1
    assert 1 - kept.high == pytest.approx((1 - plain.high) * mixed.seen(found, comp))


def test_noise_that_only_models_can_see_widens_what_is_told_upwards():
    rng = np.random.default_rng(1)
    y = rng.integers(4, size=600)
    x = np.concatenate([4.0 * np.eye(4)[y] + rng.normal(size=(600, 4)), rng.normal(size=(600, 6))], 1)
    own = rng.random(600) < 0.1
    comp = labels.from_indices(np.where(own, y, (y + rng.integers(1, 4, 600)) % 4), 4)
    found = portfolio.fit(x, comp, assume="uniform", budget=0.5)
    right = float((found.p.argmax(1) == y).mean())
    plain = told(torch.from_numpy(found.p.argmax(1)), comp, None, None)
    kept = mixed.attempts(found, comp, None, None)[-1].accuracy
    assert plain.high < right  # one label in ten names the true class, and counts as a mistake
    assert kept.low == plain.low
    assert kept.high > right
