"""The recipe consistent: its targets obey their formula, it resumes bit for bit, and it beats plain training."""

import dataclasses
import json
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import torch
from recipe_checks import continues, halves_make_the_whole
from safetensors.torch import save_file
from typer.testing import CliRunner

from naysay import datasets, labels, metrics, shares, transition
from naysay.cli import app
from naysay.errors import InputError
from naysay.estimators import ComplementaryClassifier
from naysay.learning import Task, configure, recipes, train
from naysay.learning.patches import patch_space
from naysay.learning.recipes import counting, linear_reading
from naysay.learning.recipes.strong import StrongView
from naysay.learning.recipes.teaching import count_labels, evenness, popularity, strength
from naysay.learning.views import cut_out
from naysay.runs import Run

K, SIDE = 5, 12
SMALL = {
    "model": "lenet",
    "epochs": 6,
    "batch_size": 25,
    "learning_rate": 3e-3,
    "crop": 2,
    "flip": False,
    "warmup_epochs": 0,
    "precision": "32-true",
    "first": 2,
    "renewals": 1,
}


def images(y_true, seed, noise=110.0):
    """Coloured squares that stand anywhere, in much noise: their colours are the class."""
    numbers = torch.Generator().manual_seed(seed)
    colours = torch.randint(0, 256, (K, 3, 3, 3), generator=torch.Generator().manual_seed(5)).float()
    squares = colours[y_true].repeat_interleave(3, 1).repeat_interleave(3, 2)
    x = torch.full((len(y_true), SIDE, SIDE, 3), 128.0)
    for image, square, (down, right) in zip(
        x, squares, torch.randint(0, 4, (len(x), 2), generator=numbers).tolist(), strict=True
    ):
        image[down : down + 9, right : right + 9] = square
    return (x + noise * torch.randn(x.shape, generator=numbers)).clamp(0, 255).to(torch.uint8)


@pytest.fixture(scope="module")
def data():
    y_true = torch.arange(200) % K
    comp = labels.from_indices(transition.sample(y_true.numpy(), transition.uniform(K), 1, seed=0), K)
    return images(y_true, 0), comp, images(y_true, 1), y_true


def build(data, **changes):
    """A learner at its first epoch after the shared labels were learned alone."""
    x, comp, *_ = data
    learner = recipes.build(Task(configure("consistent", **{**SMALL, **changes}), x, comp))
    learner.train()
    for epoch in (0, learner.first):
        learner.before_epoch(epoch)
    return learner


def test_a_target_is_teacher_times_shared_times_own_labels(data):
    learner = build(data, shared=0.5, trust=0.8, noise=0.05)
    teacher, rows = torch.randn(7, K), torch.arange(7)
    got = learner.target(teacher, rows)
    T = popularity(learner.comp, 0.05)
    for i in range(7):
        p, S = teacher[i].softmax(0).double(), learner.shared[i].exp().double()
        named = int(learner.comp[i].argmax())
        wanted = p**0.8 * S**0.5 * T[:, named]
        torch.testing.assert_close(got[i].double(), wanted / wanted.sum(), atol=1e-5, rtol=1e-4)


def test_without_shared_and_own_labels_the_target_is_the_teacher(data):
    learner, teacher = build(data, shared=0.0, own=0.0), torch.randn(7, K)
    torch.testing.assert_close(learner.target(teacher, torch.arange(7)), teacher.softmax(1))


def test_the_first_epochs_learn_the_shared_labels_alone(data):
    x, comp, *_ = data
    learner = recipes.build(Task(configure("consistent", **SMALL), x, comp))
    learner.before_epoch(0)
    got = learner.target(torch.randn(200, K), torch.arange(200))
    torch.testing.assert_close(got, learner.shared.exp(), atol=1e-5, rtol=1e-4)


def test_own_labels_that_are_never_wrong_rule_their_class_out_and_noisy_ones_do_not(data):
    named = data[1].argmax(1)[:7]
    sure, unsure = (
        build(data, noise=noise, shared=0.0).target(torch.zeros(7, K), torch.arange(7)) for noise in (0, 0.2)
    )
    assert sure.gather(1, named[:, None]).max() < 0.005
    # noise of 1 / K says nothing: the label names the true class about as often as any
    assert unsure.gather(1, named[:, None]).min() > 0.1
    assert unsure.max() < 0.3


def test_offsets_bring_targets_to_the_class_shares(data):
    wanted = [0.4, 0.3, 0.1, 0.1, 0.1]
    learner = build(data, class_shares=wanted, shared=0.0, own=0.0)
    teacher = torch.randn(200, K, generator=torch.Generator().manual_seed(0))
    for _ in range(20):
        learner.met.copy_(learner.target(teacher, torch.arange(200)).sum(0))
        learner.learn_from_last_epoch(alone=False)
    torch.testing.assert_close(
        learner.target(teacher, torch.arange(200)).mean(0), torch.tensor(wanted), atol=1e-3, rtol=0
    )


def test_labels_are_shared_again_in_the_teachers_space(data):
    learner = build(data, class_shares="even")
    before = learner.shared.clone()
    learner.before_epoch(3)  # half of 6 epochs, with one renewal
    assert not torch.equal(before, learner.shared)
    space = learner.space(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from naysay import augment

        Z = augment(space, learner.comp, "dms", n_neighbors=None)
    wanted = shares.find(Z, learner.comp, "even").posterior(Z)
    torch.testing.assert_close(learner.shared.exp(), wanted, atol=1e-5, rtol=1e-3)


def test_noise_is_read_off_what_the_teacher_took_labels_for(data):
    learner = build(data)
    learner.named.copy_(torch.tensor([20.0, 200.0]))
    learner.learn_from_last_epoch(alone=False)
    torch.testing.assert_close(learner.likelihood.exp().diagonal(), torch.full((K,), 0.1))


def named_by_class(n=1000):
    """Points around the corners of a square, and labels whose naming depends on the corner: T, counts, truth, space."""
    y_true = torch.arange(n) % 4
    T = torch.tensor([[0.04, 0.6, 0.2, 0.16], [0.2, 0.04, 0.6, 0.16], [0.2, 0.16, 0.04, 0.6], [0.6, 0.16, 0.2, 0.04]])
    comp = labels.from_indices(transition.sample(y_true.numpy(), T, 3, seed=0), 4)
    corners = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    space = corners[y_true] + 0.3 * torch.randn(n, 2, generator=torch.Generator().manual_seed(0))
    return T, count_labels(comp), y_true, torch.nn.functional.normalize(space, dim=1)


def test_a_network_in_the_space_counts_how_labels_come_about():
    T, counts, y_true, space = named_by_class()
    start = popularity(counts / counts.sum(1, keepdim=True), 0.03)
    even = torch.full((4,), 0.25, dtype=torch.float64)
    found, p = counting.count(space, counts, start, even, seed=0, turns=3)
    # corners overlap a little, so that a third of the error is left
    assert float((found - T).abs().sum(1).mean()) < 0.4 * float((start - T).abs().sum(1).mean())
    assert float((p.argmax(1) == y_true).float().mean()) > 0.9
    torch.testing.assert_close(p.mean(0).double(), even, atol=1e-4, rtol=0)
    torch.testing.assert_close(found.sum(1), torch.ones(4))


def test_with_counted_naming_the_networks_posteriors_are_what_is_shared_and_its_T_speaks_for_own_labels(data):
    x, comp, *_ = data
    learner = recipes.build(Task(configure("consistent", **SMALL, naming="counted", class_shares="even"), x, comp))
    learner.train()
    learner.before_epoch(0)
    even = torch.full((K,), 1 / K, dtype=torch.float64)
    T, p = counting.count(learner.space(0), learner.counts, popularity(comp, 0.03), even, seed=0)
    torch.testing.assert_close(learner.likelihood.exp(), T)
    torch.testing.assert_close(learner.shared.exp(), p.clamp_min(1e-6))
    # neither the noise that a teacher finds nor what it has learned changes anything of a T that was counted
    for epoch in range(1, SMALL["epochs"]):
        learner.before_epoch(epoch)
    torch.testing.assert_close(learner.likelihood.exp(), T)
    torch.testing.assert_close(learner.shared.exp(), p.clamp_min(1e-6))


def test_a_linear_reading_minimises_what_it_says():
    numbers = torch.Generator().manual_seed(0)
    space, y_true = torch.randn(300, 4, generator=numbers), torch.arange(300) % K
    space[:, 0] += 2.0 * y_true
    comp = labels.from_indices(transition.sample(y_true.numpy(), transition.uniform(K), 2, seed=0), K)
    T, counts, rows = popularity(comp, 0.05), count_labels(comp), linear_reading.evened(space).double()
    assert rows.square().sum(1).mean() == pytest.approx(4, rel=1e-3)
    rows = torch.cat([rows, torch.ones(300, 1)], 1).numpy()

    def objective(flat):
        logits = rows @ flat.reshape(5, K)
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        w, b = flat.reshape(5, K)[:-1], flat.reshape(5, K)[-1]
        return -(counts.numpy() * np.log(p @ T.numpy())).sum() + (4 * (w**2).sum() + (b**2).sum()) / (2 * 2**2)

    best = scipy.optimize.minimize(objective, np.zeros(5 * K), method="BFGS").x.reshape(5, K)
    wanted = torch.from_numpy(scipy.special.softmax(rows @ best, 1)).float()
    torch.testing.assert_close(linear_reading.read([space], counts, T), wanted, atol=5e-3, rtol=0)


def test_a_linear_reading_neither_sees_units_nor_fails_where_nothing_differs():
    comp = torch.eye(K)[torch.arange(40) % K]
    space = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    one, other = (
        linear_reading.read([part], count_labels(comp), popularity(comp, 0.01)) for part in (space, 1e3 * space + 7)
    )
    torch.testing.assert_close(one, other, atol=5e-3, rtol=0)
    alike = linear_reading.read([torch.ones(40, 3)], count_labels(comp), popularity(comp, 0.01))
    torch.testing.assert_close(alike, torch.full((40, K), 1 / K), atol=1e-3, rtol=0)


def test_known_class_shares_keep_a_linear_reading_of_few_labels_from_losing_classes(data):
    x, comp, _, y_true = data
    even = torch.full((K,), 1 / K, dtype=torch.float64)
    known, unknown = (
        linear_reading.read([patch_space(x, 512)], count_labels(comp), popularity(comp, 1e-3), known)
        for known in (even, None)
    )
    assert unknown.mean(0).min() < 0.02
    rightly = [float(p[range(200), y_true].mean()) for p in (known, counting.aligned(unknown, even))]
    assert rightly[0] > rightly[1], rightly


def test_labels_are_read_by_patches_and_then_in_the_teachers_space_too(data):
    x, comp, *_ = data
    learner = recipes.build(Task(configure("consistent", **SMALL, reading="linear", class_shares="even"), x, comp))
    learner.train()
    even, patches = torch.full((K,), 1 / K, dtype=torch.float64), patch_space(x, 512)
    assert patches.shape[1] > patch_space(x).shape[1]
    for epoch, spaces in ((0, lambda: [patches]), (3, lambda: [patches, learner.space(3)])):
        learner.before_epoch(epoch)
        T = popularity(comp, 1e-3)
        wanted = linear_reading.read(spaces(), learner.counts, T, even)
        torch.testing.assert_close(wanted.mean(0), torch.full((K,), 1 / K))
        torch.testing.assert_close(learner.shared.exp(), wanted.clamp_min(1e-6), atol=1e-3, rtol=0)


def test_beside_a_linear_reading_own_labels_speak_from_the_first_epoch(data):
    x, comp, *_ = data
    learner = recipes.build(Task(configure("consistent", **SMALL, reading="linear", noise=0.05), x, comp))
    learner.before_epoch(0)
    got = learner.target(torch.randn(200, K), torch.arange(200))
    wanted = learner.shared.exp() * popularity(comp, 0.05).float().T[comp.argmax(1)]
    torch.testing.assert_close(got, wanted / wanted.sum(1, keepdim=True), atol=1e-5, rtol=1e-4)
    learner.before_epoch(2)
    torch.testing.assert_close(learner.powers, torch.tensor([1.0, 0.5, 1.0]))


def test_with_an_encoder_labels_are_read_in_its_space_alone(data, tmp_path):
    source = build(data).student.encoder.state_dict()
    save_file({name: tensor.contiguous() for name, tensor in source.items()}, tmp_path / "encoder.safetensors")
    learner = build(data, encoder=str(tmp_path / "encoder.safetensors"), reading="linear")
    learner.before_epoch(3)
    wanted = linear_reading.read([learner.space(3)], learner.counts, learner.likelihood.exp())
    torch.testing.assert_close(learner.shared.exp(), wanted.clamp_min(1e-6), atol=1e-4, rtol=1e-3)


def test_the_less_a_label_tells_the_more_shared_ones_count():
    by_classes = [strength(transition.uniform(k), None) for k in (3, 10, 20, 1000)]
    assert by_classes == sorted(by_classes)
    assert by_classes[1] == pytest.approx(0.2, abs=0.005)
    assert by_classes[2] == pytest.approx(0.287, abs=0.005)
    assert strength(torch.full((4, 4), 0.25), None) == 0.5  # labels that say nothing
    noisy = 0.8 * transition.uniform(4) + 0.2 * torch.eye(4)
    assert strength(noisy, None) > strength(transition.uniform(4), None)
    # of a class that is nearly always the one, labels tell little
    assert strength(transition.uniform(3), torch.tensor([0.98, 0.01, 0.01], dtype=torch.float64)) > by_classes[0]


def test_how_strong_shared_labels_are_follows_from_the_labels_unless_it_is_said(data):
    assert build(data).powers[1] == pytest.approx(strength(build(data).likelihood.exp(), None))
    assert build(data, shared=0.5).powers[1] == 0.5


def test_it_beats_plain_training_on_the_same_labels(data):
    x, comp, x_test, y_true = data
    right = {}
    for recipe, own in (("plain", {}), ("consistent", {"class_shares": "even"})):
        common = {name: value for name, value in SMALL.items() if name not in ("first", "renewals")}
        trained = train(configure(recipe, **{**common, "epochs": 20}, **own), x, comp, progress=False, device="cpu")
        right[recipe] = float((trained.predictor.predict(x_test) == y_true).double().mean())
    assert right["consistent"] > right["plain"] + 0.05, right


@pytest.mark.parametrize("own", [{}, {"naming": "counted"}, {"reading": "linear"}])
def test_a_run_that_is_continued_is_the_run_that_was_not_interrupted(data, tmp_path, own):
    x, comp, x_test, _ = data
    config = configure("consistent", **{**SMALL, "renewals": 5}, class_shares="even", **own)
    continues(config, x, comp, tmp_path, 4, x_test)  # after labels were shared again


def test_the_parts_of_several_processes_make_the_loss_of_one(data):
    halves_make_the_whole(build(data, mixup=0.0), epoch=0)


def test_every_epoch_tells_coverage_agreement_evenness_and_noise(data):
    trained = train(configure("consistent", **SMALL, class_shares="even"), *data[:2], progress=False, device="cpu")
    for epoch in trained.history:
        assert all(0 <= epoch[name] <= 1 for name in ("coverage", "agreement", "evenness", "noise"))


def test_what_it_cannot_learn_from_is_refused_in_a_sentence(data):
    comp = data[1]
    with pytest.raises(InputError, match=r"is for images; got rows of shape \(200, 8\). Use plain or taught"):
        train(configure("consistent", **{**SMALL, "model": "mlp", "crop": 0}), torch.rand(200, 8), comp, device="cpu")
    with pytest.raises(InputError, match=r"compares views of images.*got torch.float32.*Use the recipe plain"):
        train(configure("consistent", **SMALL), torch.rand(200, SIDE, SIDE, 3), comp, device="cpu")
    with pytest.raises(InputError, match="must be as large; got images of 12 x 12 pixels and views of 8"):
        train(configure("consistent", **SMALL, view={"size": 8}), data[0], comp, device="cpu")
    for wrong, text in (
        ({"noise": 1.5}, "noise must be a share of the labels"),
        ({"weak": 2.0}, "weak must be between 0 and 1"),
        ({"memory": 0.0}, "memory must be above 0"),
        ({"own": -1.0}, "own must be at least 0"),
        ({"shared": "car"}, 'shared must be a power of at least 0, or "auto"; got .car.'),
        ({"shared": -0.1}, "shared must be a power of at least 0"),
        ({"naming": "count"}, "unknown naming 'count': did you mean counted"),
        ({"reading": "lines"}, "unknown reading 'lines': did you mean linear"),
        ({"reading": "linear", "naming": "counted"}, "both say what S is. Leave one of them out"),
        ({"view": {"sise": 8}}, "unknown setting of a view 'sise'"),
        ({"loss": "fwd"}, "no use for loss"),
    ):
        with pytest.raises(InputError, match=text):
            configure("consistent", **wrong)


def test_counts_of_labels_follow_from_their_weights():
    comp = torch.tensor([[0, 1.0, 0], [0.5, 0.5, 0], [2 / 3, 1 / 3, 0], [0, 0, 0]])
    torch.testing.assert_close(count_labels(comp), torch.tensor([[0, 1.0, 0], [1, 1, 0], [2, 1, 0], [0, 0, 0]]))


def test_evenness_is_the_part_of_the_classes_that_are_met():
    assert float(evenness(torch.full((4,), 0.25))) == pytest.approx(1)
    assert float(evenness(torch.tensor([0.5, 0.5, 0, 0]))) == pytest.approx(0.5)


def test_a_square_is_cut_out_where_it_is_said():
    x = cut_out(torch.ones(2, 3, 8, 8), torch.tensor([[0.5, 0.5], [0.0, 0.99]]), 4)
    assert not x[0, :, 2:6, 2:6].any()
    assert not x[1, :, :2, 5:].any()
    assert (x == 0).sum((1, 2, 3)).tolist() == [3 * 16, 3 * 2 * 3]  # what lies outside is not there


def test_flips_average_an_image_and_its_mirror_image(data):
    x, comp, x_test, _ = data
    one = train(configure("plain", model="lenet", epochs=1), x, comp, progress=False, device="cpu").predictor
    mirrored = one.logits(x_test.flip(2))
    torch.testing.assert_close(dataclasses.replace(one, flips=True).logits(x_test), (one.logits(x_test) + mirrored) / 2)
    table = train(configure("plain", epochs=1), torch.rand(200, 4), comp, progress=False, device="cpu").predictor
    with pytest.raises(InputError, match="flips are for images"):
        dataclasses.replace(table, flips=True).logits(torch.rand(2, 4))


def test_the_command_learns_by_the_recipe_and_its_report_shows_the_targets(data, tmp_path):
    x, comp, x_test, _ = data
    ids, named = np.arange(200).astype(str), np.array([f"class {k}" for k in comp.argmax(1)])
    np.savez(tmp_path / "images.npz", x=x.numpy(), ids=ids, **{"not": named})
    np.savez(tmp_path / "more.npz", x=x_test.numpy(), ids=ids)
    run = tmp_path / "run"
    asked = f"fit {tmp_path}/images.npz --id ids --features x --label not --recipe consistent --model lenet --epochs 3"
    told = CliRunner().invoke(app, f"{asked} --class-shares even --no-refit --quiet --out {run}".split())
    assert told.exit_code == 0, told.output
    config = json.loads((run / "run.json").read_text())["settings"]["config"]
    assert (config["recipe"], config["options"]["class_shares"]) == ("consistent", "even")
    epochs = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert [line["coverage"] >= 0 for line in epochs if line["kind"] == "epoch"] == [True] * 3
    page = (run / "report.html").read_text()
    assert "Targets of the student" in page
    assert "Labels were read by what neighbours share." in page
    predict = f"predict {run} {tmp_path}/more.npz --flips --out {tmp_path}/p.csv".split()
    assert CliRunner().invoke(app, predict).exit_code == 0
    predictor = dataclasses.replace(Run.load(run).predictor, flips=True)
    first = (tmp_path / "p.csv").read_text().splitlines()[1].split(",")
    wanted = predictor.probabilities(predictor.logits(x_test[:1])).tolist()[0]
    assert [float(p) for p in first[2:]] == pytest.approx(wanted, abs=1e-5)


def test_a_recipe_that_shares_labels_itself_takes_no_scheme(data, tmp_path):
    np.savez(tmp_path / "images.npz", x=data[0].numpy(), ids=np.arange(200).astype(str), **{"not": np.arange(200) % 3})
    asked = f"fit {tmp_path}/images.npz --id ids --features x --label not --recipe consistent --out {tmp_path}/run"
    told = CliRunner().invoke(app, f"{asked} --scheme dms".split())
    assert told.exit_code == 2
    assert "shares labels itself, so that the scheme must be none; got dms" in told.output
    (tmp_path / "config.toml").write_text('recipe = "consistent"\nmodel = "lenet"\nepochs = 1\n[options]\nown = 0.0\n')
    in_file = asked.replace("--recipe consistent", f"--config {tmp_path}/config.toml --no-refit --quiet")
    assert CliRunner().invoke(app, in_file.split()).exit_code == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["config"]["options"]["own"] == 0


def test_the_classifier_learns_by_the_recipe(data):
    x, comp, x_test, y_true = data
    classifier = ComplementaryClassifier(
        recipe="consistent", model="lenet", epochs=6, batch_size=25, class_shares="even"
    )
    classifier.fit(x.numpy(), comp.argmax(1).numpy())
    assert classifier.predictor_.config.recipe == "consistent"
    assert classifier.predictor_.config.learning_rate == 5e-4  # the recipe's, as none was asked for
    assert classifier.predict(x_test.numpy()).shape == y_true.shape
    with pytest.raises(InputError, match="starts from the weights of an encoder's file; got a function"):
        ComplementaryClassifier(recipe="consistent", encoder=lambda X: X).fit(x.numpy(), comp.argmax(1).numpy())


def test_the_student_sees_as_many_images_weakly_as_is_said_and_the_teacher_all(data):
    order = torch.arange(200)
    for part in (0.0, 0.3, 1.0):
        learner = build(data, weak=part)
        draws = learner.draw(1, order)
        weak, seen = learner.see(order, draws)
        torch.testing.assert_close(weak, learner.inputs(order, draws[:, :3].long()))
        same = (weak == seen).flatten(1).all(1)
        assert torch.equal(same, draws[:, -2] < part)


def test_strong_views_have_a_square_cut_out(data):
    learner, order = build(data, weak=0.0, cutout=0.5, view={"scale": (0.9, 1.0)}), torch.arange(50)
    _, seen = learner.see(order, learner.draw(1, order))
    whole = build(data, weak=0.0, cutout=0.0, view={"scale": (0.9, 1.0)})
    _, uncut = whole.see(order, whole.draw(1, order))
    gone = (seen == 0) & (uncut != 0)
    assert bool(gone.flatten(1).any(1).all())
    torch.testing.assert_close(seen[~gone], uncut[~gone])


def test_with_an_encoder_labels_are_first_shared_in_its_space(data, tmp_path):
    source = build(data).student.encoder.state_dict()
    save_file({name: (tensor + 0.1).contiguous() for name, tensor in source.items()}, tmp_path / "encoder.safetensors")
    learner = build(data, encoder=str(tmp_path / "encoder.safetensors"))
    with torch.no_grad():
        wanted = torch.nn.functional.normalize(learner.model.represent(learner.normaliser(learner.x)), dim=1)
    torch.testing.assert_close(learner.space(0), wanted)
    assert build(data).space(0).shape != wanted.shape


def test_without_an_encoder_labels_are_first_shared_by_patches_or_pixels_as_hidden_labels_are_better_foreseen():
    digits = datasets.load("digits")
    x, right = torch.from_numpy(digits.x_train)[..., None], {"patches": 0.0, "pixels": 0.0}
    pixels = torch.nn.functional.normalize(x.flatten(1).float(), dim=1)
    spaces = {"patches": patch_space(x), "pixels": pixels}
    assert spaces["patches"].shape == (len(x), 128)
    assert torch.allclose(spaces["patches"].norm(dim=1), torch.ones(len(x)), atol=1e-5)
    for seed in range(3):
        comp = labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=seed), 10)
        learner = recipes.build(Task(configure("consistent", model="mlp", crop=1, epochs=3), x, comp))
        best = min(spaces.values(), key=lambda space: learner.foresight(space, 1.0)[0].value)
        assert torch.equal(learner.space(0), best)
        for name, vectors in spaces.items():
            learner.renew(vectors)
            right[name] += metrics.oracle_accuracy(learner.shared.argmax(1), digits.y_train) / 3
    assert right["patches"] > right["pixels"] > 0.9


def test_pixels_are_taken_where_patches_say_less():
    numbers = torch.Generator().manual_seed(0)
    y_true = torch.arange(400) % 5
    # one noisy texture, brighter or darker in one of five bands: what patches have in common says nothing
    x = torch.randint(90, 130, (400, 15, 15, 1), generator=numbers).to(torch.uint8)
    for band in range(5):
        x[y_true == band, 3 * band : 3 * band + 3] += 60
    comp = labels.from_indices(transition.sample(y_true.numpy(), transition.uniform(5), seed=0), 5)
    learner = recipes.build(Task(configure("consistent", **SMALL, class_shares="even"), x, comp))
    told = {}
    for name, space in {"patches": patch_space(x), "pixels": learner.x.flatten(1).float()}.items():
        unit = torch.nn.functional.normalize(space, dim=1)
        told[name] = learner.foresight(unit, 1.0)[0].value, unit
    better = min(told, key=lambda name: told[name][0])
    assert better == "pixels"
    assert torch.equal(learner.space(0), told["pixels"][1])


def test_images_that_are_all_alike_or_smaller_than_a_patch_have_a_space_too():
    alike = patch_space(torch.full((5, 2, 2, 1), 7, dtype=torch.uint8))
    assert torch.equal(alike, torch.zeros_like(alike))


def test_on_a_cpu_strong_views_are_made_of_those_alone_that_are_seen_strongly_and_are_the_same(data, monkeypatch):
    learner, rows, asked = build(data), torch.arange(30), []
    draws = learner.draw(0, rows)
    weakly, every = draws[:, -2] < 0.5, learner.strong(learner, rows, draws[:, 3:-2])
    make = StrongView.__call__

    def count(self, learner, rows, numbers):
        asked.append(len(rows))
        return make(self, learner, rows, numbers)

    monkeypatch.setattr(StrongView, "__call__", count)
    weak, seen = learner.see(rows, draws)
    assert torch.equal(seen, torch.where(weakly[:, None, None, None], weak, every))
    assert asked == [int((~weakly).sum())]
