"""The recipe taught, for rows: where labels are shared first, what is seen, and that it learns more than plainly."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from recipe_checks import continues, halves_make_the_whole
from typer.testing import CliRunner

from naysay import ComplementaryClassifier, augment, labels, neighbors, selection, shares, transition
from naysay.augmentation.weights import auto_gamma
from naysay.bases import Network
from naysay.bases.network import TAUGHT
from naysay.cli import app
from naysay.cli.fit import training_config
from naysay.errors import InputError
from naysay.learning import RECIPES, Task, configure, recipes, train
from naysay.learning.recipes import linear_reading
from naysay.learning.recipes.teaching import count_labels
from naysay.models import Classifier
from naysay.portfolio import trial
from naysay.portfolio.candidates import CANDIDATES
from naysay.runs.report import _teaching as teaching_chart

K = 5
SMALL = {"epochs": 12, "batch_size": 50, "learning_rate": 3e-3, "model_options": {"hidden": 32}}


def directions(n, seed, spread=0.8):
    """Rows (n, 12) that point where their class does, each of its own length, and the classes (n,)."""
    y_true = torch.arange(n) % K
    centres = torch.nn.functional.normalize(torch.randn(K, 12, generator=torch.Generator().manual_seed(3)), dim=1)
    numbers = torch.Generator().manual_seed(seed)
    rows = centres[y_true] + spread * torch.randn(n, 12, generator=numbers) / 12**0.5
    return rows * (0.2 + 3 * torch.rand(n, 1, generator=numbers)), y_true


def rings(n, seed):
    """Points (n, 2) around the middle, whose distance from it tells the class, and the classes (n,)."""
    y_true = torch.arange(n) % 3
    numbers = torch.Generator().manual_seed(seed)
    angle = 6.283 * torch.rand(n, generator=numbers)
    radius = 1.0 + y_true + 0.1 * torch.randn(n, generator=numbers)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), y_true


def named(y_true, T, n_labels=1, seed=0):
    return labels.from_indices(transition.sample(y_true.numpy(), T, n_labels, seed=seed), len(T))


def build(x, comp, T=None, **changes):
    learner = recipes.build(Task(configure("taught", **{**SMALL, **changes}), x, comp, T))
    learner.train()
    return learner


def right(config, x, comp, x_test, y_test):
    found = train(config, x, comp, progress=False, device="cpu").predictor.predict(x_test)
    return float((found == y_test).double().mean())


def test_it_beats_plain_training_on_the_same_labels():
    (x, y_true), (x_test, y_test) = directions(400, 0), directions(1000, 1)
    comp = named(y_true, transition.uniform(K))
    plain = right(configure("plain", **{**SMALL, "epochs": 30}), x, comp, x_test, y_test)
    taught = right(configure("taught", **{**SMALL, "epochs": 30}, class_shares="even"), x, comp, x_test, y_test)
    assert taught > plain + 0.03, (taught, plain)


def test_labels_that_favour_some_classes_are_read_by_class_shares():
    (x, y_true), (x_test, y_test) = directions(400, 0), directions(1000, 1)
    popular = torch.tensor([12.0, 5, 1, 1, 1], dtype=torch.float64).repeat(K, 1).fill_diagonal_(0)
    comp = named(y_true, popular / popular.sum(1, keepdim=True))
    known = right(configure("taught", **SMALL, class_shares="even"), x, comp, x_test, y_test)
    unknown = right(configure("taught", **SMALL), x, comp, x_test, y_test)
    assert known > unknown + 0.05, (known, unknown)


def test_rows_that_mean_directions_share_by_angle_and_those_that_mean_places_by_distance():
    for make, by_angle in ((directions, True), (rings, False)):
        x, y_true = make(600, 0)
        space = build(x, named(y_true, transition.uniform(int(y_true.max()) + 1)), class_shares="even").first_space()
        lengths = space.norm(dim=1)
        assert bool(lengths.std() < 1e-4 * lengths.mean()) == by_angle


def test_the_first_space_is_scaled_so_that_gamma_1_weighs_neighbours_almost_alike():
    x, y_true = directions(600, 0)
    comp = named(y_true, transition.uniform(K))
    space = build(x, comp).first_space()
    k = 10  # the square root of a class of 120, in whole neighbours
    assert auto_gamma(neighbors.build(space, k).distances) == pytest.approx(4, rel=1e-3)


def test_where_labels_are_too_few_to_hide_any_rows_are_compared_as_they_are():
    x, y_true = directions(40, 0)
    learner = build(x, named(y_true, transition.uniform(K)))
    assert learner.foresight(learner.x, "auto")[0] is None
    torch.testing.assert_close(learner.first_space() / learner.first_space()[0, 0], learner.x / learner.x[0, 0])


def test_a_given_T_reads_what_neighbours_share():
    x, y_true = directions(300, 0)
    T = transition.biased(K, "strong", seed=0)
    learner = build(x, named(y_true, T), T)
    learner.before_epoch(0)
    Z = augment(learner.first_space(), learner.comp, "dms", n_neighbors=None)
    torch.testing.assert_close(learner.shared.exp(), shares.find(Z, learner.comp, None, T).posterior(Z).clamp_min(1e-6))
    torch.testing.assert_close(learner.likelihood.exp(), T.clamp_min(1e-3).float())


def test_a_linear_reading_is_of_the_rows_and_then_of_the_teachers_space_too():
    x, y_true = directions(300, 0)
    learner = build(x, named(y_true, transition.uniform(K)), reading="linear", renewals=1)
    for epoch in (0, 6):
        learner.before_epoch(epoch)
        spaces = [learner.x, learner.space(6)][: 1 + (epoch > 0)]
        wanted = linear_reading.read(spaces, learner.counts, learner.likelihood.exp())
        torch.testing.assert_close(learner.shared.exp(), wanted.clamp_min(1e-6), atol=1e-4, rtol=1e-3)


def shifts(n, seed):
    """Rows (n, 30) of which each class has one column that is a little higher, and the classes (n,)."""
    y_true = torch.arange(n) % K
    x = torch.randn(n, 30, generator=torch.Generator().manual_seed(seed))
    x[torch.arange(n), y_true] += 2.0
    return x, y_true


@pytest.mark.parametrize(
    ("make", "own", "linear"),
    [
        (shifts, {"class_shares": "even"}, True),  # neighbours in 30 columns know little of one
        (rings, {"class_shares": "even"}, False),  # no line tells rings apart
        (directions, {"class_shares": "even"}, False),  # both know as much: neighbours stay
        (shifts, {}, False),  # shares unknown: labels that favour some classes would mislead it
        (shifts, {"class_shares": "even", "naming": "counted"}, False),  # the counted T says what S is
        (shifts, {"class_shares": "even", "reading": "neighbours"}, False),
    ],
)
def test_labels_are_read_linearly_where_shares_are_known_and_hidden_labels_are_better_foreseen_so(make, own, linear):
    x, y_true = make(1500, 0)
    learner = build(x, named(y_true, transition.uniform(int(y_true.max()) + 1), 2), **own)
    learner.before_epoch(0)
    assert bool(learner.linear) == linear
    if own.get("naming") == "counted":
        return
    if linear:
        wanted = linear_reading.read([learner.x], learner.counts, learner.likelihood.exp(), learner.class_shares)
    else:
        Z = augment(learner.first_space(), learner.comp, "dms", n_neighbors=None)
        wanted = shares.find(Z, learner.comp, own.get("class_shares")).posterior(Z)
    torch.testing.assert_close(learner.shared.exp(), wanted.clamp_min(1e-6), atol=1e-4, rtol=1e-3)


def test_the_linear_model_that_was_compared_is_the_one_that_is_used(monkeypatch):
    fits, read = [], linear_reading.read
    monkeypatch.setattr(linear_reading, "read", lambda *given: fits.append(given[1]) or read(*given))
    x, y_true = shifts(1500, 0)
    learner = build(x, named(y_true, transition.uniform(K), 2), class_shares="even")
    learner.before_epoch(0)
    assert bool(learner.linear)
    assert sum(counts is learner.counts for counts in fits) == 1  # the others hide some labels
    known = learner.likelihood.exp(), learner.class_shares
    assert torch.equal(learner.shared, read([learner.x], learner.counts, *known).clamp_min(1e-6).log())


def test_every_epoch_tells_how_labels_are_read_and_the_report_says_so():
    x, y_true = shifts(1500, 0)
    config = configure("taught", **{**SMALL, "epochs": 2}, class_shares="even")
    history = train(config, x, named(y_true, transition.uniform(K), 2), progress=False).history
    assert [epoch["linear"] for epoch in history] == [1.0, 1.0]
    assert "Labels were read by a linear model fitted to all of them." in teaching_chart(history).note
    assert "Labels were read by" not in teaching_chart([{"epoch": 1, "coverage": 0.5}]).note  # of an older run


@pytest.mark.parametrize("seed", [0, 1])
def test_a_line_that_foresees_how_items_are_named_and_not_what_they_are_is_not_taken(seed):
    numbers, n, d, classes = np.random.default_rng(seed), 3000, 40, 10
    y_true = np.arange(n) % classes
    x = 0.7 * numbers.normal(size=(classes, d))[y_true] + numbers.normal(size=(n, d))
    liking = 0.3 * x @ numbers.normal(size=(d, classes)) + numbers.gumbel(size=(n, classes))  # another for each item
    liking[np.arange(n), y_true] = -np.inf
    comp = labels.from_indices(liking.argmax(1), classes)
    learner = build(torch.tensor(x, dtype=torch.float32), comp, class_shares="even", seed=seed)
    learner.before_epoch(0)
    neighbours, _ = learner.foresight(learner.first_space(), 1.0, judges=linear_reading.JUDGES)
    line = linear_reading.foresight(
        [learner.x], comp, learner.counts, learner.likelihood.exp(), learner.class_shares, seed=seed
    )
    assert selection.gain(line, neighbours).z > 2  # hidden labels alone would take it
    assert not learner.linear
    right = [float((p.argmax(1).numpy() == y_true).mean()) for p in (learner.shared, learner.read_linearly(0))]
    assert right[0] > right[1] + 0.2, right


def test_both_readings_are_judged_by_the_same_hidden_labels(monkeypatch):
    asked = {}

    def foresight(*given, stated, seed):
        asked["seed"] = seed

    monkeypatch.setattr(linear_reading, "foresight", foresight)
    x, y_true = shifts(300, 0)
    learner = build(x, named(y_true, transition.uniform(K)), class_shares="even", seed=7)
    learner.before_epoch(0)
    assert asked == {"seed": 7}


def test_labels_too_few_to_hide_any_are_read_by_neighbours():
    x, y_true = shifts(40, 0)
    learner = build(x, named(y_true, transition.uniform(K)), class_shares="even")
    learner.before_epoch(0)
    assert not learner.linear


def test_a_linear_reading_is_judged_by_labels_that_it_has_not_seen():
    numbers = torch.Generator().manual_seed(0)
    x, y_true = (
        torch.eye(400),
        torch.randint(0, K, (400,), generator=numbers),
    )  # whatever is seen can be learned by heart
    T = transition.uniform(K)
    comp = named(y_true, T, 3)
    told = linear_reading.foresight([x], comp, count_labels(comp), T.clamp_min(1e-3), None)
    assert told.value == pytest.approx(float(np.log(K)), abs=0.02)
    assert len(told.rows) == 400


def test_a_stated_T_judges_hidden_labels():
    x, y_true = shifts(1000, 0)
    T = transition.biased(K, "strong", seed=0)
    comp = named(y_true, T, 2)
    known, unknown = (
        linear_reading.foresight([x], comp, count_labels(comp), T.clamp_min(1e-3), None, stated=t) for t in (T, None)
    )
    assert known.value < unknown.value - 0.05


@pytest.mark.filterwarnings("ignore:gamma=1 does not suit")
def test_labels_are_shared_again_in_the_teachers_space():
    x, y_true = directions(300, 0)
    learner = build(x, named(y_true, transition.uniform(K)), renewals=1)
    learner.before_epoch(0)
    first = learner.shared.clone()
    learner.before_epoch(1)
    assert torch.equal(first, learner.shared)
    learner.before_epoch(6)
    Z = augment(learner.space(6), learner.comp, "dms", n_neighbors=None)
    wanted = shares.find(Z, learner.comp, None).posterior(Z).clamp_min(1e-6)
    torch.testing.assert_close(learner.shared.exp(), wanted, atol=1e-5, rtol=1e-3)
    assert not torch.equal(first, learner.shared)


def test_the_teacher_sees_a_row_as_it_is_and_the_student_mixed_with_another():
    x, y_true = directions(300, 0)
    learner, rows = build(x, named(y_true, transition.uniform(K))), torch.arange(6)
    learner.before_epoch(0)
    seen = {}
    for name in ("model", "student"):
        getattr(learner, name).register_forward_hook(lambda _, given, __, name=name: seen.update({name: given[0]}))
    draws = learner.draw(0, rows)
    assert not torch.equal(draws, learner.draw(1, rows))
    learner(rows, draws)
    torch.testing.assert_close(seen["model"], learner.x[:6])
    share = 1 - draws / 2
    torch.testing.assert_close(seen["student"], share * learner.x[:6] + (1 - share) * learner.x[:6].roll(1, 0))


@pytest.mark.parametrize(("make", "own"), [(directions, {}), (shifts, {"class_shares": "even", "renewals": 5})])
def test_a_run_that_is_continued_is_the_run_that_was_not_interrupted(tmp_path, make, own):
    x, y_true = make(1500, 0)
    comp = named(y_true, transition.uniform(K), 2)
    config = configure("taught", **{**SMALL, "epochs": 6, "renewals": 1, **own})
    continues(config, x, comp, tmp_path, 4, x)  # after labels were shared again


def test_the_parts_of_several_processes_make_the_loss_of_one():
    x, y_true = directions(100, 0)
    learner = build(x, named(y_true, transition.uniform(K)), mixup=0.0)
    learner.before_epoch(0)
    halves_make_the_whole(learner, epoch=0)


def test_what_it_is_not_for_is_refused_in_a_sentence():
    x, y_true = directions(100, 0)
    comp = named(y_true, transition.uniform(K))
    with pytest.raises(
        InputError, match=r"taught is for rows; got images of shape \(100, 8, 8, 1\). Use plain or cons"
    ):
        train(configure("taught"), torch.zeros(100, 8, 8, dtype=torch.uint8), comp, device="cpu")
    for setting in ({"crop": 2}, {"flip": True}, {"encoder": "e.safetensors"}, {"loss": "fwd"}):
        with pytest.raises(InputError, match=f"taught has no use for {next(iter(setting))}"):
            configure("taught", **setting)
    with pytest.raises(InputError, match="unknown setting of the recipe taught 'weak'"):
        configure("taught", weak=0.5)
    with pytest.raises(InputError, match=r"learns rows as they are\. Pass the encoder's features as X instead"):
        ComplementaryClassifier(recipe="taught", encoder=lambda X: X).fit(x.numpy(), comp.argmax(1).numpy())


def test_the_classifier_and_the_command_learn_by_it(tmp_path):
    x, y_true = directions(150, 0)
    comp = named(y_true, transition.uniform(K)).argmax(1)
    classifier = ComplementaryClassifier(recipe="taught", epochs=3, class_shares="even").fit(x.numpy(), comp.numpy())
    config = classifier.predictor_.config
    assert (config.recipe, config.options["class_shares"], config.learning_rate) == ("taught", "even", 5e-3)
    np.savez(tmp_path / "rows.npz", x=x.numpy(), ids=np.arange(150).astype(str), **{"not": comp.numpy()})
    asked = f"fit {tmp_path}/rows.npz --id ids --features x --label not --recipe taught --class-shares even"
    told = CliRunner().invoke(app, f"{asked} --epochs 3 --folds 1 --quiet --out {tmp_path}/run".split())
    assert told.exit_code == 0, told.output
    about = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["config"]
    assert (about["recipe"], about["epochs"], about["options"]["class_shares"]) == ("taught", 3, "even")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Targets of the student" in page
    assert "Only the recipe taught was trained" in page
    assert "Class shares were taken to be even: the recipe taught reads labels by them." in page
    wrong = CliRunner().invoke(app, f"{asked.replace('taught', 'consistent')} --out {tmp_path}/other".split())
    assert wrong.exit_code == 2
    assert "the recipe consistent is for images; got rows of shape (150, 12). Use plain or taught." in wrong.output


def test_the_command_trains_as_long_as_the_rows_ask_for_it():
    settings = "loss", "model", "epochs", "learning_rate", "seed", "fine_tune", "encoder", "config", "as_published"
    asked = dict.fromkeys(settings)
    sized = [training_config({**asked, "recipe": "taught"}, n) for n in (1000, 50_000, 200_000)]
    assert [(config.epochs, config.batch_size) for config in sized] == [(100, 64), (60, 64), (15, 256)]
    # of images the recipe itself says how long
    assert training_config({**asked, "recipe": "consistent"}, 1000).epochs == RECIPES["consistent"].published["epochs"]


def test_in_the_portfolio_it_is_told_class_shares_and_then_needs_no_T():
    candidate = next(row for row in CANDIDATES if row.settings == (Network(TAUGHT),))
    known = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    (told,) = candidate.knowing(known, T_is_stated=False).settings
    assert told.config.options["class_shares"] == known.tolist()
    (plain,) = next(row for row in CANDIDATES if row.name == "network").knowing(known, T_is_stated=False).settings
    assert plain == Network()
    x, y_true = directions(100, 0)
    comp = named(y_true, transition.uniform(K)).double().numpy()
    T, other = transition.uniform(K).numpy(), transition.biased(K, "strong", seed=0).numpy()
    few = Network(configure("taught", **{**SMALL, "epochs": 3}))
    by_T = [few.fit(x.numpy(), comp, each).logits(x.numpy()) for each in (T, other)]
    by_shares, by_both = (
        [few.knowing(known, stated).fit(x.numpy(), comp, each).logits(x.numpy()) for each in (T, other)]
        for stated in (False, True)
    )
    assert not np.allclose(*by_T)
    assert np.array_equal(*by_shares)  # an estimated T is left aside
    assert not np.allclose(*by_both)  # one that the user states counts beside the shares
    assert not np.allclose(by_both[0], by_T[0])


def test_a_portfolio_is_told_whether_T_was_stated(monkeypatch):
    seen = []
    few = Network(configure("taught", **{**SMALL, "epochs": 3}))
    row = replace(next(row for row in CANDIDATES if row.settings == (Network(TAUGHT),)), settings=(few,), quick=True)
    monkeypatch.setattr(Network, "fit", lambda self, *args, _fit=Network.fit: seen.append(self) or _fit(self, *args))
    monkeypatch.setattr(trial, "affordable", lambda *args: ([row], []))
    x, y_true = directions(600, 0, spread=0.3)
    comp, T = named(y_true, transition.uniform(K)), transition.uniform(K)
    for given, expected in ((None, False), ("estimated", False), ("popularity", False), (T, True)):
        seen.clear()
        ComplementaryClassifier(transition=given, class_shares="even").fit(x.numpy(), comp)
        assert {network.T_is_stated for network in seen} == {expected}


def test_labels_are_counted_by_their_weights_and_a_soft_row_is_one_label():
    exact = [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [2 / 3, 1 / 3, 0, 0], [0.4, 0.6, 0, 0], [0, 0, 0, 0]]
    soft = [[0.85, 0.05, 0.05, 0.05], [0.9134, 0.0866, 0, 0]]  # smoothed, which names every class; of probabilities
    rows = torch.tensor([*exact, *soft])
    counted = [[0, 1, 0, 0], [1, 0, 1, 0], [2, 1, 0, 0], [2, 3, 0, 0], [0, 0, 0, 0], *soft]
    torch.testing.assert_close(count_labels(rows), torch.tensor(counted))


def test_the_units_of_columns_change_nothing():
    x, y_true = directions(100, 0)
    comp, config = named(y_true, transition.uniform(K)), configure("taught", **{**SMALL, "epochs": 3})
    usual, tiny = (
        train(config, rows, comp, progress=False, device="cpu").predictor.logits(rows) for rows in (x, x * 2.0**-70)
    )
    torch.testing.assert_close(usual, tiny)


def test_a_module_of_ones_own_must_say_its_space_and_stays_trainable():
    x, y_true = directions(100, 0)
    comp, config = named(y_true, transition.uniform(K)), configure("taught", **{**SMALL, "epochs": 3})
    own = torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, K))
    with pytest.raises(InputError, match=r"got a Sequential, which has no \.represent"):
        train(config, x, comp, model=own, device="cpu")
    model = Classifier(own[:2], 8, K)
    train(config, x, comp, model=model, progress=False, device="cpu")
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_settings_that_would_change_nothing_are_refused(tmp_path):
    x, y_true = directions(60, 0)
    comp = named(y_true, transition.uniform(K)).argmax(1).numpy()
    for beside in ({}, {"scheme": "none"}):
        with pytest.raises(
            InputError, match=r"alpha=0.3 is for schemes, and the recipe taught shares labels in its own"
        ):
            ComplementaryClassifier(recipe="taught", alpha=0.3, **beside).fit(x.numpy(), comp)
    np.savez(tmp_path / "rows.npz", x=x.numpy(), ids=np.arange(60).astype(str), **{"not": comp})
    asked = f"fit {tmp_path}/rows.npz --id ids --features x --label not --recipe taught --gamma 5 --out {tmp_path}/run"
    told = CliRunner().invoke(app, asked.split())
    assert told.exit_code == 2
    assert "--gamma is for schemes, and the recipe taught shares labels in its own way" in told.output
    for wrong, text in (
        ({"noise": 0.1, "naming": "counted"}, r"noise=0.1 is a part of the T"),
        ({"memory": float("nan")}, "memory must be above 0; got nan"),
        ({"trust": float("nan")}, "trust must be at least 0; got nan"),
    ):
        with pytest.raises(InputError, match=text):
            configure("taught", **wrong)
