"""From stage to stage: what one part found is what the next one works with, told by what comes out at the end."""

import dataclasses
import sys

import numpy as np
import pytest
import torch

import naysay
from naysay import labels, losses, neighbors, runs, selection, shares, transition
from naysay.audit import audit
from naysay.augmentation import Sharing, share
from naysay.datasets import Items
from naysay.decoding import NeighborDecoder, choose_k
from naysay.estimation import estimate_accuracy, estimate_transition
from naysay.estimators import ComplementaryClassifier, ComplementaryKNeighbors, LabelAugmenter
from naysay.holdout import prepare
from naysay.learning import Config, HeldOut, train
from naysay.reading import Oracle
from naysay.runs import Run
from naysay.runs.account import account

K = 4
STRONG = transition.biased(K, "strong", seed=3)


def blobs(n=400, T=None, seed=0, apart=4.0):
    """Rows in K clear groups, their classes, and a label of each by T."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    x = (apart * np.eye(K)[y] + rng.normal(size=(n, K))).astype(np.float32)
    return x, y, labels.from_indices(transition.sample(y, transition.uniform(K) if T is None else T, seed=seed), K)


def fit(x, comp, config, schemes=("none",), **settings):
    data = runs.Labelled(Items(np.arange(len(x)).astype(str).astype(object), x), comp, tuple("abcd"))
    how = runs.Settings(config, schemes, **{"assume": "uniform", "refit": False, **settings})
    return data, runs.fit(data, how, progress=False, tell=lambda line: None)


def accuracy(predictor, x, y):
    return float((predictor.predict(x).cpu().numpy() == y).mean())


@pytest.fixture(scope="module")
def with_T():
    """A run on strongly biased labels that estimates T, with its rows and classes."""
    x, y, comp = blobs(T=STRONG)
    data, fitted = fit(x, comp, Config(loss="fwd", epochs=8, seed=3), assume="estimated")
    return data, fitted, x, y


@pytest.fixture(scope="module", params=[("none", "dms"), ("dms", "none")], ids=["shared last", "shared first"])
def compared(request):
    """A run of two schemes on rows most of which have no label, in classes that overlap: sharing is far better."""
    x, _, comp = blobs(600, apart=2.5)
    comp[np.random.default_rng(1).random(600) < 0.7] = 0
    return *fit(x, comp, Config(epochs=10), request.param, held_out=0.3), x


def test_the_run_keeps_the_scheme_that_held_out_labels_say_is_better(compared, tmp_path):
    data, fitted, x = compared
    by_scheme = {attempt.name: attempt for attempt in fitted.attempts}
    assert by_scheme["dms"].estimate.value > by_scheme["none"].estimate.value + 0.02
    assert by_scheme["dms"].loss.value < by_scheme["none"].loss.value
    assert fitted.chosen.name == "dms"
    assert fitted.choice.gains["none"]["scel"].difference > 0
    runs.write(fitted, data, tmp_path / "RUN")
    numbers, _ = Run.load(tmp_path / "RUN").predict(x)
    assert torch.equal(numbers, by_scheme["dms"].models[0].predictor.predict(x).cpu())
    assert not torch.equal(numbers, by_scheme["none"].models[0].predictor.predict(x).cpu())


def test_what_is_kept_is_trained_once_more_on_all_labels_as_the_same_parts_would():
    x, _, comp = blobs(120)
    _, fitted = fit(x, comp, Config(epochs=2), ("dms",), refit=True, folds=3, space="raw")
    shared = naysay.augment(x, comp, "dms", None, 0.1, "auto")
    trained = train(Config(epochs=2), x, shared)
    assert torch.equal(fitted.kept.predictor.logits(x), trained.predictor.logits(x))
    assert len(fitted.chosen.models) == 3
    _, other = fit(x, comp, Config(epochs=2, seed=1), ("dms",), refit=True, folds=3, space="raw")
    assert not torch.equal(fitted.held, other.held)
    assert sorted(fitted.held.tolist()) == list(range(120))
    assert len(fitted.chosen.estimate.rows) == 120


def test_class_shares_of_a_run_correct_what_is_trained_on():
    x, _, comp = blobs(120, STRONG)
    even = Sharing(n_neighbors=None, gamma=None, class_shares="even")
    _, fitted = fit(x, comp, Config(epochs=1), ("dms",), sharing=even, space="raw")
    rows = fitted.rows
    expected = naysay.augment(x[rows.numpy()], comp[rows], "dms", None, 0.1, "auto", class_shares="even")
    assert torch.allclose(fitted.kept.shared, expected, atol=1e-5)


def test_the_report_shows_the_labels_and_the_doubts_of_the_model_that_is_kept(compared):
    data, fitted, x = compared
    arrays, rows, kept = account(fitted, data), fitted.rows, fitted.kept
    logits = kept.predictor.logits(x[rows.numpy()])
    predicted = kept.predictor.decode(logits)
    assert sorted(arrays["map_row"]) == rows.tolist()
    assert arrays["map_id"].tolist() == [str(row) for row in arrays["map_row"]]
    for k in predicted.unique().tolist():
        assert np.allclose(arrays["heat_shared"][k], kept.shared[predicted == k].mean(0), atol=1e-6)
    lead = kept.predictor.probabilities(logits).topk(2).values.diff(dim=1).abs()[:, 0]
    shown = {int(arrays["item_row"][at]) for at in arrays["doubtful"]}
    assert shown == set(rows[lead.argsort()[: len(shown)]].tolist())


def test_a_run_that_estimates_T_trains_with_it(with_T):
    data, fitted, x, y = with_T
    assert accuracy(fitted.kept.predictor, x, y) > 0.85
    _, uniform = fit(x, data.comp, Config(loss="fwd", epochs=8))
    assert accuracy(uniform.kept.predictor, x, y) < 0.7


def test_a_run_that_estimates_T_judges_by_it(with_T):
    data, fitted, x, _ = with_T
    predicted, held = fitted.kept.predictor.predict(x[fitted.held.numpy()]), data.comp[fitted.held]
    T = fitted.audit.neighborhood.T  # of all labels, the same for every model
    by_T = selection.ure_accuracy(predicted, held, T).value
    assert fitted.chosen.estimate.value == pytest.approx(by_T)
    assert fitted.kept.history[-1]["held_out"] == pytest.approx(by_T)
    assert by_T != pytest.approx(selection.ure_accuracy(predicted, held).value)


def test_what_a_run_estimates_of_T_is_written_and_needed_no_held_out_label(with_T, tmp_path):
    data, fitted, _, _ = with_T
    rows = fitted.rows
    expected = estimate_transition(data.comp[rows], fitted.space.features[rows.numpy()], seed=3).T
    assert torch.equal(fitted.T, expected)
    about = runs.write(fitted, data, tmp_path / "RUN")
    assert torch.allclose(torch.tensor(about["transition"], dtype=torch.float64), expected)


@pytest.mark.parametrize("n_neighbors", [5, None], ids=["as many as asked for", "as many as each scheme wants"])
def test_a_run_shares_among_its_training_rows_as_its_settings_say(n_neighbors):
    x, _, comp = blobs(120)
    how = Sharing(n_neighbors=n_neighbors, alpha=0.4, gamma=0.3)
    _, fitted = fit(x, comp, Config(epochs=1), ("rss", "dms"), sharing=how, space="raw")
    for attempt in fitted.attempts:
        rows = fitted.rows
        expected = naysay.augment(x[rows.numpy()], comp[rows], attempt.name, n_neighbors, 0.4, 0.3)
        assert torch.allclose(attempt.models[0].shared, expected, atol=1e-6)
        assert attempt.models[0].sharing.scheme == attempt.name


def test_a_run_that_compares_by_angle_shares_by_angle():
    x, _, comp = blobs(120)
    x *= np.random.default_rng(1).uniform(0.1, 10, (120, 1)).astype(np.float32)
    _, fitted = fit(x, comp, Config(epochs=1), ("rms",), sharing=Sharing(n_neighbors=5), space="cosine")
    rows = fitted.rows
    expected = naysay.augment(x[rows.numpy()], comp[rows], "rms", 5, metric="cosine")
    assert torch.allclose(fitted.kept.shared, expected, atol=1e-6)


def test_a_run_audits_in_the_space_and_by_the_seed_that_it_works_with():
    x, _, comp = blobs(200)
    x[:, 3] *= 1000  # only standardised columns can be compared
    data, fitted = fit(x, comp, Config(epochs=1, seed=5))
    found = audit(comp, features=fitted.space.features, classes=tuple("abcd"), items=list(data.items.ids), seed=5)
    assert fitted.audit.neighborhood == found.neighborhood


def test_the_confidences_that_a_run_records_are_those_of_its_last_model():
    x, _, comp = blobs(100)
    _, fitted = fit(x, comp, Config(epochs=2), ("dms",))
    given, shared, rows = comp[fitted.rows], fitted.kept.shared, x[fitted.rows.numpy()]
    as_trained = dataclasses.replace(fitted.kept.predictor, sharpness=1.0)
    p = as_trained.probabilities(as_trained.logits(rows)).float()
    last = fitted.kept.history[-1]
    assert last["confidence_seen"] == pytest.approx(float((p * given).sum(1).mean()), rel=1e-4)
    assert last["confidence_augmented"] == pytest.approx(float((p * shared).sum(1).mean()), rel=1e-4)


def test_preparing_passes_every_setting_of_sharing_on():
    x, _, comp = blobs(120)
    ready = prepare(x, comp, features=x, scheme="dss", held_out=0.25, seed=3, n_neighbors=7, alpha=0.3, gamma=0.2)
    rows = ready.rows
    assert torch.allclose(ready.comp, naysay.augment(x[rows.numpy()], comp[rows], "dss", 7, 0.3, 0.2))
    assert torch.equal(ready.given, comp[rows])
    assert torch.equal(torch.as_tensor(ready.held_out.x), torch.as_tensor(x[ready.held_rows.numpy()]))
    assert prepare(x, comp, criterion="scel").held_out.criterion == "scel"


def test_training_learns_by_the_T_it_is_given_and_judges_each_epoch_by_it():
    x, y, comp = blobs(T=STRONG)
    held = HeldOut(x[:80], comp[:80], "scel")
    trained = train(Config(loss="fwd", epochs=8), x[80:], comp[80:], T=STRONG, held_out=held)
    assert accuracy(trained.predictor, x, y) > 0.9
    assert accuracy(train(Config(loss="fwd", epochs=8), x[80:], comp[80:]).predictor, x, y) < 0.7
    judged = selection.scel(trained.predictor.logits(x[:80]), comp[:80], STRONG)
    assert trained.last_figures["held_out"] == pytest.approx(judged.value)
    assert trained.last_figures["held_out_error"] == pytest.approx(judged.standard_error)
    figures = [line["held_out"] for line in trained.history]
    assert trained.best_epoch == 1 + int(np.argmin(figures))  # a loss: the lowest is the best
    best = selection.scel(trained.best.logits(x[:80]), comp[:80], STRONG)
    assert best.value == pytest.approx(min(figures))


def test_a_predictor_decodes_by_the_T_that_it_was_trained_with(tmp_path):
    x, y, comp = blobs(T=STRONG)
    trained = train(Config(loss="cpe-i", epochs=8), x, comp, T=STRONG)
    trained.predictor.save(tmp_path / "model.safetensors")
    loaded = type(trained.predictor).load(tmp_path / "model.safetensors")
    assert accuracy(loaded, x, y) > 0.9
    assert torch.equal(loaded.predict(x), losses.predict("cpe-i", trained.predictor.logits(x), STRONG))
    assert not torch.equal(loaded.predict(x), losses.predict("cpe-i", trained.predictor.logits(x)))
    assert torch.equal(loaded.predict(x), loaded.scores(loaded.logits(x)).argmax(1))


def test_a_run_folder_predicts_as_its_loss_means_the_outputs(tmp_path):
    """cpe-i learns which labels come, so its largest output is the class that the row is least likely to be."""
    x, y, comp = blobs(200)
    data, fitted = fit(x, comp, Config("cpe-i", epochs=8))
    runs.write(fitted, data, tmp_path / "RUN")
    numbers, p = Run.load(tmp_path / "RUN").predict(x)
    assert float((numbers.numpy() == y).mean()) > 0.8
    assert torch.equal(numbers, p.argmax(1))


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_the_diagonal_of_the_T_that_an_audit_finds_is_the_noise_of_the_labels(noise):
    x, _, comp = blobs(1500, transition.noisy(transition.uniform(K), noise))
    near = audit(comp, features=x).neighborhood
    assert np.trace(near.transition) / K == pytest.approx(near.likeliest.value)
    assert np.diag(estimate_transition(comp, x).T).mean() == pytest.approx(near.likeliest.value)
    # where many labels are random it leans low, and its interval is wide
    assert near.likeliest.low <= noise / K <= near.likeliest.high + 0.01
    assert (near.likeliest.value > 0.02) == (noise > 0)


def test_another_seed_asks_other_items_about_T():
    """Items have one to three labels, so that the number of labels heard tells that others were asked."""
    rng = np.random.default_rng(0)
    x, y, _ = blobs(300)
    several = transition.sample(y, transition.uniform(K), 3, replace=False).tolist()
    comp = labels.from_indices([row[: rng.integers(1, 4)] for row in several], K)
    heard = {estimate_transition(comp, x, sample=100, seed=seed).noise_everywhere.of for seed in range(3)}
    assert len(heard) > 1


def test_annotators_are_judged_by_clear_items_alone():
    x, _, comp = blobs(300)
    table = {"item": list(range(300)), "label": comp.argmax(1).tolist(), "annotator": ["a", "b", "c"] * 100}
    found = audit(comp, features=x, table=table, classes=range(K), items=range(300))
    assert sum(row.suspected.of for row in found.annotators.rows) == found.neighborhood.clear < 200


def test_an_estimated_accuracy_counts_the_errors_of_T_in():
    x, y, comp = blobs(2000, transition.biased(K, "weak"))
    found = estimate_transition(comp[:1000], x[:1000])
    told = estimate_accuracy(torch.from_numpy(y[1000:]), comp[1000:], found)
    assert told.value == pytest.approx(1.0, abs=3 * told.standard_error)
    assert told.transition_error > 0
    assert told.standard_error == pytest.approx(np.hypot(told.labels_error, told.transition_error))
    # one row more than was seen is counted as wrong
    seen = selection.ure_accuracy(torch.from_numpy(y[1000:]), comp[1000:], found.T).standard_error
    assert seen < told.labels_error < 1.1 * seen


def test_the_classifier_does_what_its_parts_do():
    """Sharing with its settings, then training with its settings: the same predictions, bit for bit."""
    x, _, comp = blobs(120, STRONG)
    model = ComplementaryClassifier(
        "fwd", "dms", n_neighbors=6, alpha=0.3, gamma=0.2, transition=STRONG, epochs=2, batch_size=30,
        learning_rate=0.01, weight_decay=0.5, random_state=4, encoder=lambda X: X,
    ).fit(x, comp.numpy())  # fmt: skip
    shared = naysay.augment(x, comp, "dms", 6, 0.3, 0.2, metric="cosine")  # what an encoder says, by angle
    config = Config("fwd", epochs=2, batch_size=30, learning_rate=0.01, weight_decay=0.5, seed=4)
    trained = train(config, x, shared, T=STRONG)
    assert np.array_equal(model.decision_function(x), trained.predictor.logits(x).numpy())
    expected = selection.ure_accuracy(trained.predictor.predict(x), comp, STRONG).value
    assert model.score(x, comp.numpy()) == pytest.approx(expected)


def test_the_classifier_corrects_by_class_shares_and_then_trains_as_on_uniform_labels():
    x, _, comp = blobs(120, STRONG)
    model = ComplementaryClassifier("fwd", class_shares="even", epochs=2, encoder=lambda X: X).fit(x, comp.numpy())
    shared, _ = share(
        x, comp, Sharing(n_neighbors=None, gamma=1.0, metric="cosine", class_shares="even").within(120, K)
    )
    trained = train(Config("fwd", epochs=2), x, shared)
    assert np.array_equal(model.decision_function(x), trained.predictor.logits(x).numpy())
    expected = selection.ure_accuracy(trained.predictor.predict(x), comp, transition.popularity(comp)).value
    assert model.score(x, comp.numpy()) == pytest.approx(expected)


def test_labels_corrected_by_class_shares_and_a_given_T_are_uniform_to_the_loss():
    x, _, comp = blobs(120, STRONG)
    settings = {"class_shares": "even", "transition": STRONG}
    model = ComplementaryClassifier("fwd", epochs=2, encoder=lambda X: X, **settings).fit(x, comp.numpy())
    shared, _ = share(x, comp, Sharing(n_neighbors=None, gamma=1.0, metric="cosine", **settings).within(120, K))
    trained = train(Config("fwd", epochs=2), x, shared)
    assert np.array_equal(model.decision_function(x), trained.predictor.logits(x).numpy())


def test_the_classifier_estimates_T_where_it_is_asked_to():
    x, _, comp = blobs(300, STRONG)
    model = ComplementaryClassifier(
        "fwd", "none", transition="estimated", epochs=1, random_state=2, encoder=lambda X: X
    )
    T = estimate_transition(comp, x, seed=2).T
    trained = train(Config("fwd", epochs=1, seed=2), x, comp, T=T)
    assert np.array_equal(model.fit(x, comp.numpy()).decision_function(x), trained.predictor.logits(x).numpy())


def test_neighbours_decode_by_T_and_by_class_shares_as_the_decoder_does():
    x, y, comp = blobs(300, STRONG, apart=3.0)
    for known in ({"T": STRONG}, {"class_shares": "even"}, {}):
        named = {"transition": known.get("T"), "class_shares": known.get("class_shares")}
        model = ComplementaryKNeighbors(12, **named).fit(x, comp.numpy())
        expected = NeighborDecoder(torch.from_numpy(x), comp, 12, **known).predict(x)
        assert torch.equal(torch.from_numpy(model.predict(x)), expected)
    by_T, bare = (ComplementaryKNeighbors(32, transition=T).fit(x, comp.numpy()).predict(x) for T in (STRONG, None))
    assert (by_T == y).mean() > 0.9 > (bare == y).mean()


def test_the_number_of_neighbours_that_is_chosen_hangs_on_what_is_known(monkeypatch):
    x, _, comp = blobs(300, STRONG, seed=2, apart=2.0)
    asked = []
    nearest = sys.modules["naysay.estimators.nearest"]
    monkeypatch.setattr(nearest, "choose_k", lambda *rows, **known: asked.append(known) or choose_k(*rows, **known))
    for known in ({"T": None}, {"T": STRONG}, {"class_shares": "even"}):
        named = {"transition": known.get("T"), "class_shares": known.get("class_shares")}
        model = ComplementaryKNeighbors(**named, random_state=1).fit(x, comp.numpy())
        assert {name: asked[-1][name] for name in known} == known
        assert (asked[-1]["seed"], asked[-1]["usual"]) == (1, 37)  # half a class of 75
        assert model.n_neighbors_ == choose_k(x, comp, seed=1, usual=37, **known)[0].k


@pytest.mark.parametrize("known", [{}, {"T": STRONG}, {"class_shares": "even"}, {"T": STRONG, "class_shares": "even"}])
@pytest.mark.parametrize("k", [4, 32])
def test_the_class_that_neighbours_predict_is_the_likeliest_of_their_probabilities(known, k):
    x, _, comp = blobs(300, STRONG, apart=2.0)
    decoder = NeighborDecoder(torch.from_numpy(x), comp, k, **known)
    posterior, predicted = decoder.posterior(x), decoder.predict(x)
    assert torch.allclose(posterior.sum(1), torch.ones(300, dtype=torch.float64))
    assert torch.equal(posterior.gather(1, predicted[:, None])[:, 0], posterior.amax(1))
    named = {"transition": known.get("T"), "class_shares": known.get("class_shares")}
    model = ComplementaryKNeighbors(k, **named).fit(x, comp.numpy())
    assert np.array_equal(model.predict_proba(x).argmax(1), model.predict(x))
    assert np.array_equal(model.predict(x), predicted.numpy())


def test_the_probabilities_of_neighbours_fall_with_the_distance_from_the_rows_of_T():
    """64 neighbours with exactly the labels of a row of T: two classes differ by how much farther one's row is."""
    counts = (64 * transition.biased(K, "strong")).round()
    T = counts / counts.sum(1, keepdim=True)
    comp = labels.from_indices([k for k in range(K) for _ in range(int(counts[1, k]))], K)
    places = torch.zeros(len(comp), 1)
    posterior = NeighborDecoder(places, comp, len(comp), T).posterior(places[:1])[0]
    apart = torch.cdist(T, T, p=1)
    some = posterior > 0
    expected = posterior[1] - apart[1] * K * (K - 1) / apart.sum()
    assert posterior.argmax() == 1
    assert torch.allclose(posterior[some], expected[some], atol=1e-6)
    assert bool((expected[~some] <= 1e-6).all())


def test_labels_are_corrected_by_how_often_those_that_were_given_name_each_class():
    """Not by how often the shared ones do, to which rows without labels add what they were told."""
    x, y, comp = blobs(300, STRONG, apart=2.0)
    comp[(y == 0) & (np.arange(300) % 8 > 0)] = 0
    how = Sharing(n_neighbors=6, gamma="auto")
    plain, _ = share(x, comp, how)
    corrected, _ = share(x, comp, Sharing(n_neighbors=6, gamma="auto", class_shares="even"))
    assert torch.allclose(corrected, shares.find(plain, comp, "even").correct(plain), atol=1e-6)
    assert not torch.allclose(corrected, shares.find(plain, plain, "even").correct(plain), atol=1e-2)
    labelled = comp[comp.sum(1) > 0]
    assert torch.allclose(shares.how_often(comp), shares.how_often(labelled))
    assert float(shares.how_often(comp).sum()) == pytest.approx(1.0)


def test_the_number_of_neighbours_is_chosen_by_the_T_that_is_known():
    """Each candidate's estimate is that of its own decoding of the held-out rows, judged by T, or by popularity."""
    x, _, comp = blobs(300, STRONG, apart=2.0)
    rows, held = selection.hold_out(300, 0.1, 1)
    features = torch.from_numpy(x)
    decoder, estimates = choose_k(x, comp, T=STRONG, ks=(4, 64), seed=1)
    for k in (4, 64):
        predicted = NeighborDecoder(features[rows], comp[rows], k, STRONG, seed=1).predict(features[held])
        assert estimates[k].value == pytest.approx(selection.ure_accuracy(predicted, comp[held], STRONG).value)
    assert decoder.k == max(estimates, key=lambda k: estimates[k].value)
    assert (decoder.T is not None, decoder.seed, len(decoder.features)) == (True, 1, 300)
    by_shares, estimates = choose_k(x, comp, class_shares="even", ks=(64,), seed=1)
    near = neighbors.query(features[rows], features[held], 64).indices
    named = naysay.decoding.local_distribution(comp[rows], near)
    decoder = NeighborDecoder(features[rows], comp[rows], 64, None, "even", seed=1)
    decoder.__dict__["evidence"] = shares.find(named, comp[rows], "even")  # with the offsets of the held-out rows
    judged = selection.ure_accuracy(decoder.predict(features[held]), comp[held], transition.popularity(comp))
    assert estimates[64].value == pytest.approx(judged.value)
    assert by_shares.class_shares == "even"


def test_the_augmenter_passes_on_the_labels_it_made_by_the_weights_it_used():
    x, _, comp = blobs(120)
    new = x[:5] + 0.01
    augmenter = LabelAugmenter("dss", n_neighbors=6, gamma=0.4, alpha=0.3).fit(x, comp.numpy())
    near = neighbors.query(x, new, 6)
    weights = torch.softmax(-0.4 * near.distances, 1)
    expected = (weights[:, :, None] * torch.from_numpy(augmenter.labels_)[near.indices.long()]).sum(1)
    assert np.allclose(augmenter.transform(new), expected, atol=1e-6)
    assert np.allclose(augmenter.labels_, naysay.augment(x, comp.numpy(), "dss", 6, 0.3, 0.4))
    by_angle = LabelAugmenter("dss", n_neighbors=6, metric="cosine").fit(x, comp.numpy())
    assert np.allclose(by_angle.transform(100 * new), by_angle.transform(new), atol=1e-4)


SETTINGS = {
    **{"loss": "pc", "eps": 1e-2, "model": "linear", "model_options": {"hidden": 9}, "epochs": 3, "batch_size": 7},
    **{"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 5.0, "schedule": "constant", "warmup_epochs": 1},
    **{"normalise": False, "crop": 2, "flip": True, "precision": "bf16-mixed", "seed": 1},
}
BESIDE = {"momentum": {"optimizer": "sgd"}, "padding": {"crop": 2}}
# where it starts, how fast it is and what is learned: each has its own tests
ELSEWHERE = {"encoder", "compile", "recipe", "options"}


def test_every_setting_of_training_changes_the_weights():
    rng = np.random.default_rng(0)
    x, comp = rng.integers(0, 256, (30, 6, 6), dtype=np.uint8), labels.from_indices(rng.integers(0, K, 30), K)
    every = {**SETTINGS, "momentum": 0.0, "padding": "zero"}
    assert every.keys() | ELSEWHERE == {setting.name for setting in dataclasses.fields(Config)}, "add what is missing"

    def weights(**settings):
        logits = train(Config(**{"epochs": 2, "batch_size": 10, **settings}), x, comp).predictor.logits(x)
        return logits.numpy().tobytes()

    for name, value in every.items():
        beside = BESIDE.get(name, {})
        assert weights(**beside) == weights(**beside)
        assert weights(**beside) != weights(**{**beside, name: value}), name


def test_another_seed_starts_from_other_weights():
    x, _, comp = blobs(60)
    still = {"epochs": 1, "learning_rate": 1e-9, "weight_decay": 0.0}  # so small that the model stays where it began
    one, two = (train(Config(seed=seed, **still), x, comp).predictor.logits(x) for seed in (0, 1))
    assert float((one - two).abs().max()) > 0.1


def test_of_a_known_sets_annotators_as_many_are_taken_as_were_asked_for(tmp_path):
    x, y = np.zeros((20, 4, 4), np.uint8), np.arange(20) % K
    comp = np.stack([(y + 1) % K, (y + 2) % K], 1)
    arrays = {"x_train": x, "y_train": y, "x_test": x, "y_test": y, "classes": np.array(list("abcd"))}
    np.savez(tmp_path / "mine.npz", **arrays, comp_train=comp)
    for m in (1, 2):
        given = naysay.read(tmp_path / "mine.npz", n_labels=m).comp
        assert torch.equal(given, labels.from_indices(comp[:, :m], K))


def test_what_the_truth_says_of_labels_is_counted_on_the_rows_that_were_shared():
    x, y, comp = blobs(120, transition.noisy(transition.uniform(K), 0.5))
    y = np.where(np.arange(120) % 5, y, -1)  # of some items it is not known
    rows = torch.arange(0, 120, 2)
    said = Oracle(x, y).of_labels(rows, comp[rows])
    known = y[rows] >= 0
    own = comp[rows][known].gather(1, torch.from_numpy(y[rows][known])[:, None])
    assert said["mass_on_true"] == pytest.approx(float(own.mean()))


def test_weight_decay_draws_the_weights_towards_zero_and_momentum_is_sgds_and_muons():
    x, _, comp = blobs(120)

    def size(**settings):
        model = train(Config(epochs=3, **settings), x, comp).predictor.model
        return sum(float(parameter.detach().square().sum()) for parameter in model.parameters())

    for optimizer in ("adamw", "sgd", "muon"):
        assert size(optimizer=optimizer, weight_decay=10.0) < 0.97 * size(optimizer=optimizer, weight_decay=0.0)
    for optimizer in ("sgd", "muon"):
        assert size(optimizer=optimizer, momentum=0.9) != size(optimizer=optimizer, momentum=0.0)
