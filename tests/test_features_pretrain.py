"""Pretraining on tiny images: the parts against their plain forms, and whole runs of seconds."""

import copy
import dataclasses
import hashlib
import json
import math
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from naysay.errors import InputError
from naysay.features import encoders, extract, oracle_knn_accuracy, pretrain, whiten, with_readout
from naysay.features.encoders import WithReadout, embed, load_encoder, save_encoder
from naysay.learning import Config, Task, configure, recipes
from naysay.learning.recipes.emp import agreement, coding_rate
from naysay.learning.recipes.fastsiam import mean_of_others, views_loss
from naysay.learning.recipes.multiview import (
    SMALL_NETWORK,
    CollapseError,
    check_alive,
    in_company,
    mutual_neighbors,
    relative_spread,
)
from naysay.learning.recipes.simsiam import pair_loss
from naysay.learning.steps import Steps
from naysay.learning.viewnorm import ViewNorm, norm_by_view
from naysay.models import resnet18_encoder, small_resnet_encoder

SETTINGS = {"batch_size": 16, "epochs": 4, "learning_rate": 0.05}
OPTIONS = {"projection": 64, "bottleneck": 16, "width": 16, "view": {"size": 12}}
TINY = configure("fastsiam", **SETTINGS, **OPTIONS)
RATE = {"projection": 32, "hidden": 64, "width": 16, "views": 4}  # of emp
METHODS = [("simsiam", OPTIONS), ("fastsiam", OPTIONS), ("emp", RATE)]
METHODS += [(name, {**OPTIONS, "target_momentum": 0.9}) for name in ("simsiam", "fastsiam")]
METHODS += [("fastsiam", {**OPTIONS, "neighbors": 3, "neighbors_from": 0.25})]


def stripes(n=64, size=12, seed=0):
    """Images of two kinds, upright and level stripes, in random colours."""
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 2, (n,), generator=g)
    wave = 0.5 + 0.4 * torch.sin(torch.arange(size) * 1.3 + 6 * torch.rand(n, 1, generator=g))
    field = torch.where(kind[:, None, None] == 1, wave[:, :, None], wave[:, None, :]).expand(n, size, size)
    return (255 * field[..., None] * (0.3 + 0.7 * torch.rand(n, 1, 1, 3, generator=g))).to(torch.uint8), kind


def small_encoder(seed=0):
    torch.manual_seed(seed)
    layers = [nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
    layers += [nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def run(config=TINY, **more):
    return pretrain(stripes()[0], config, encoder=small_encoder(), **more)


def test_view_norm_is_batch_norm_view_after_view():
    torch.manual_seed(0)
    plain = nn.BatchNorm2d(5)
    nn.init.uniform_(plain.weight), nn.init.normal_(plain.bias)
    grouped = ViewNorm(copy.deepcopy(plain), batch=6)
    x = 3 * torch.randn(18, 5, 4, 4) + 1
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    expected, out = torch.cat([plain(view) for view in a.split(6)]), grouped(b)
    direction = torch.randn_like(x)
    (expected * direction).sum().backward(), (out * direction).sum().backward()
    assert torch.allclose(out, expected, atol=1e-5)  # one pass of float32 sums against torch's two passes
    assert torch.allclose(b.grad, a.grad, atol=1e-5)
    assert torch.allclose(grouped.weight.grad, plain.weight.grad, rtol=1e-4)
    for name, value in plain.state_dict().items():
        assert torch.allclose(grouped.state_dict()[name].float(), value.float(), atol=1e-5), name
    assert torch.allclose(grouped.eval()(x), plain.eval()(x), atol=1e-5)


def test_view_norm_keeps_the_state_dict_of_the_encoder():
    encoder = resnet18_encoder(3)
    names = list(encoder.state_dict())
    assert sorted(norm_by_view(encoder, 4).state_dict()) == sorted(names)
    resnet18_encoder(3).load_state_dict(encoder.state_dict())


def test_two_views_of_fastsiam_are_simsiam():
    p, z = torch.randn(2, 7, 5), torch.randn(2, 7, 5)
    assert torch.allclose(views_loss(p, z), pair_loss(p, z))


def test_the_target_is_the_mean_of_the_other_views():
    z = torch.randn(4, 3, 5, dtype=torch.float64)
    for view in range(4):
        others = z[[v for v in range(4) if v != view]].mean(0)
        assert torch.allclose(mean_of_others(z)[view], others)


def test_no_gradient_reaches_the_targets():
    p, z = torch.randn(3, 4, 5, requires_grad=True), torch.randn(3, 4, 5, requires_grad=True)
    views_loss(p, z).backward()
    assert z.grad is None
    assert p.grad.abs().sum() > 0


def plain_rate(z, distortion):
    """The formula of Ma et al. 2007, one matrix (n, d) of rows, by eigenvalues in float64."""
    n, d = z.shape
    values = np.linalg.eigvalsh(np.eye(d) + d / (n * distortion) * z.double().numpy().T @ z.double().numpy())
    return 0.5 * np.log(values).sum()


@pytest.mark.parametrize(("n", "d"), [(6, 9), (9, 6), (5, 5)])
def test_the_coding_rate_is_its_formula(n, d):
    z = nn.functional.normalize(torch.randn(3, n, d, generator=torch.Generator().manual_seed(0)), dim=-1)
    expected = [plain_rate(view, 0.2) for view in z]
    assert coding_rate(z, 0.2).tolist() == pytest.approx(expected, rel=1e-5)  # float32
    assert coding_rate(z.double(), 0.2).tolist() == pytest.approx(expected, rel=1e-12)
    torch.autograd.gradcheck(lambda rows: coding_rate(rows, 0.2), z.double().requires_grad_())


def test_the_coding_rate_is_highest_for_rows_at_right_angles_and_lowest_for_equal_ones():
    n, d, eps = 4, 8, 0.2
    upright = torch.linalg.qr(torch.randn(d, d, dtype=torch.float64))[0][:n]
    equal = upright[:1].expand(n, d)
    highest, lowest = n / 2 * math.log(1 + d / (n * eps)), math.log(1 + d / eps) / 2
    assert float(coding_rate(upright, eps)) == pytest.approx(highest)
    assert float(coding_rate(equal, eps)) == pytest.approx(lowest)
    assert lowest < float(coding_rate(torch.cat([upright[:2], equal[:2]]), eps)) < highest


def test_views_agree_by_their_cosine_with_their_mean():
    z = nn.functional.normalize(torch.randn(4, 7, 5, dtype=torch.float64), dim=-1)
    cosines = [torch.cosine_similarity(view, z.mean(0), dim=1).mean() for view in z]
    assert float(agreement(z)) == pytest.approx(float(sum(cosines)) / 4)


def test_emps_loss_is_the_published_one_over_the_batch():
    built = learner("emp", **RATE)
    rows = torch.arange(16)
    draws = built.draw(0, rows)
    loss, _ = built(rows, draws)
    z = nn.functional.normalize(built.online(built.make_views(rows, draws)), dim=1).detach().view(4, 16, 32)
    alike = sum(float(torch.cosine_similarity(view, z.mean(0), dim=1).mean()) for view in z) / 4
    rate = sum(plain_rate(view, 0.2) for view in z) / 4
    assert 100 * loss.item() == pytest.approx(-200 * alike - 100 / 16 * rate, rel=1e-4)  # the same for 100 images


def test_emps_views_are_three_quarters_of_the_image_unless_told():
    assert learner("emp", **RATE).view.size == 9
    assert learner("emp", **RATE, view={"size": 5}).view.size == 5
    with pytest.raises(InputError, match="distortion must be above 0; got 0"):
        configure("emp", distortion=0)


@pytest.mark.parametrize(("method", "size"), [("fastsiam", 24), ("simsiam", 32)])
def test_fastsiams_views_are_smaller_than_the_image_and_simsiams_are_not_unless_told(method, size):
    images = torch.zeros(8, 40, 32, 3, dtype=torch.uint8)
    for view, side in (({}, size), ({"size": 9}, 9)):
        config = configure(method, batch_size=8, projection=8, bottleneck=8, view=view)
        assert recipes.build(Task(config, images, model=nn.Identity())).view.size == side


def test_mutual_neighbors_match_a_plain_loop():
    unit = nn.functional.normalize(torch.randn(30, 4, generator=torch.Generator().manual_seed(0)), dim=1)
    near = [sorted((j for j in range(30) if j != i), key=lambda j: -float(unit[i] @ unit[j]))[:5] for i in range(30)]
    expected = [[j if i in near[j] else i for j in near[i]] for i in range(30)]
    assert mutual_neighbors(unit, 5).tolist() == expected
    few = mutual_neighbors(unit[:3], 5)  # fewer rows than neighbours are asked for
    assert [sorted(row) for row in few.tolist()] == [[0, 0, 0, 1, 2], [0, 1, 1, 1, 2], [0, 1, 2, 2, 2]]


def test_a_view_is_of_a_neighbour_as_often_as_the_chance_says():
    near = torch.tensor([[1, 2], [0, 2], [0, 1]], dtype=torch.int32)
    rows, u = torch.tensor([0, 0, 0, 1]), torch.tensor([0.1, 0.4, 0.6, 0.49])
    assert in_company(rows, near, torch.tensor(0.5), u).tolist() == [1, 2, 0, 2]
    assert in_company(rows, near, torch.tensor(0.0), u).tolist() == rows.tolist()


def test_neighbors_are_looked_up_from_their_part_of_the_run_on():
    config = configure("fastsiam", **SETTINGS, **OPTIONS, neighbors=3, neighbors_from=0.5, neighbor_chance=0.25)
    learner = recipes.build(Task(config, stripes()[0], model=small_encoder()))
    own = torch.arange(64)[:, None]
    for epoch, chance in ((0, 0.0), (1, 0.0), (2, 0.25)):
        learner.train().before_epoch(epoch)
        assert float(learner.chance) == chance
        assert bool((learner.near == own).all()) == (not chance)
        assert all(module.training for module in learner.modules())
    unit = nn.functional.normalize(embed(learner.product(), learner.x), dim=1)
    assert (learner.near == mutual_neighbors(unit, 3)).all()


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_the_loss_falls(method, options):
    config = configure(method, **{**SETTINGS, **options, "epochs": 10, "learning_rate": 0.1})
    losses = [line["loss"] for line in run(config).curve]
    assert losses[-1] < losses[0] - 0.1


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_resume_equals_no_interruption(tmp_path, method, options):
    config = configure(method, **SETTINGS, **options)
    whole = run(config)
    first = run(config, folder=tmp_path, seconds=0.0)
    assert len(first.curve) == 1
    assert not first.finished
    second = run(config, folder=tmp_path)
    assert second.finished
    assert [line["loss"] for line in second.curve] == [line["loss"] for line in whole.curve]
    for name, tensor in whole.encoder.state_dict().items():
        assert torch.equal(second.encoder.state_dict()[name], tensor), name
    for run_, file in ((whole, "whole"), (second, "second")):
        save_encoder(tmp_path / f"{file}.safetensors", run_.encoder, {})
    assert (tmp_path / "whole.safetensors").read_bytes() == (tmp_path / "second.safetensors").read_bytes()
    lines = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines if line["kind"] == "epoch"] == [1, 2, 3, 4]


def test_a_run_that_is_finished_ends_with_the_readout_of_its_images(tmp_path):
    images = stripes()[0]
    begun = run(folder=tmp_path, seconds=0.0)
    assert begun.encoder is begun.network
    done = run(folder=tmp_path)
    assert isinstance(done.encoder, WithReadout)
    assert not any(module.training for module in done.encoder.modules())
    expected = whiten(extract(done.network, images, cache=False))
    assert np.array_equal(extract(done.encoder, images, cache=False), expected)


def test_a_readout_of_some_images_is_drawn_by_the_runs_seed(monkeypatch):
    monkeypatch.setattr("naysay.features.readout.ENOUGH", 30)
    done = run(dataclasses.replace(TINY, seed=3))
    mean = done.encoder.readout.mean
    assert torch.equal(mean, with_readout(done.network, stripes()[0], seed=3).readout.mean)
    assert not torch.equal(mean, with_readout(done.network, stripes()[0], seed=0).readout.mean)


def test_other_settings_do_not_continue_a_run(tmp_path):
    run(folder=tmp_path, seconds=0.0)
    with pytest.raises(InputError, match=r"belongs to another run: it differs in learning_rate \(0.05, now 0.1\)"):
        run(dataclasses.replace(TINY, learning_rate=0.1), folder=tmp_path)
    with pytest.raises(InputError, match=r"belongs to another run: it differs in the data \("):
        pretrain(stripes(seed=1)[0], TINY, encoder=small_encoder(), folder=tmp_path)


def test_two_pretrainings_do_not_share_a_folder(tmp_path):
    def again(line):
        with pytest.raises(InputError, match=r"another process is training in .*\. Wait for it, or choose another"):
            run(folder=tmp_path)

    run(folder=tmp_path, seconds=0.0, report=again)
    with pytest.raises(InputError, match="images must be uint8"):
        pretrain(torch.zeros(8, 8, 8, 7, dtype=torch.uint8), TINY, folder=tmp_path / "seven")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint.safetensors", "records.jsonl"]


def test_a_view_given_in_tuples_is_known_again(tmp_path):
    config = configure("fastsiam", **{**SETTINGS, **OPTIONS, "view": {"size": 12, "scale": (0.5, 1.0)}})
    run(config, folder=tmp_path, seconds=0.0)
    assert run(config, folder=tmp_path).finished


def test_a_config_says_what_its_recipe_uses_and_comes_back_from_it():
    told = TINY.as_dict()
    assert told["options"]["views"] == 4  # also what was left to the recipe's defaults
    assert not {"loss", "model", "crop"} & told.keys()
    assert Config.from_dict(json.loads(json.dumps(told))) == TINY
    assert configure("simsiam") == configure("simsiam", views=2, constant_predictor=True)


def test_a_setting_that_a_recipe_does_not_have_is_refused_by_name():
    with pytest.raises(InputError, match="unknown recipe 'fastsim': did you mean fastsiam"):
        Config(recipe="fastsim")
    with pytest.raises(InputError, match="unknown setting of the recipe fastsiam 'vews': did you mean views"):
        configure("fastsiam", vews=3)
    with pytest.raises(InputError, match="unknown setting of the recipe plain 'epoch': did you mean epochs"):
        configure("plain", epoch=3)
    with pytest.raises(InputError, match="unknown setting of a view 'sise': did you mean size"):
        configure("fastsiam", view={"sise": 8})
    with pytest.raises(InputError, match="projection must be a number; got 'wide'"):
        configure("fastsiam", projection="wide")
    with pytest.raises(InputError, match="epochs must be a number; got '3'"):
        Config(epochs="3")
    with pytest.raises(InputError, match="the recipe simsiam has no use for crop; got 4"):
        configure("simsiam", crop=4)
    with pytest.raises(InputError, match="simsiam compares 2 views; got views=3"):
        configure("simsiam", views=3)


def test_the_oracle_sees_an_eval_encoder_and_changes_nothing():
    modes = []

    def look(encoder):
        modes.append(encoder.training)
        embed(encoder, stripes()[0])
        return 0.5

    watched = run(oracle=look, oracle_every=2)
    assert modes == [False, False]
    assert [line.get("knn") for line in watched.curve] == [None, 0.5, None, 0.5]
    assert [line["loss"] for line in watched.curve] == [line["loss"] for line in run().curve]


def test_fit_sets_the_number_of_epochs():
    result = run(dataclasses.replace(TINY, epochs=10_000), fit=6.0)
    assert result.finished
    assert 1 <= result.config.epochs < 10_000


def learner(recipe="fastsiam", **options):
    config = configure(recipe, **{**SETTINGS, **({} if recipe == "emp" else OPTIONS), **options})
    return recipes.build(Task(config, stripes()[0], model=small_encoder()))


def test_the_target_moves_a_step_towards_the_network_after_each_of_its_steps_and_is_what_is_kept():
    built = learner(target_momentum=0.9)
    before = [p.clone() for p in built.target.parameters()]
    steps = Steps(built)
    steps.load(0)
    steps.run(0, 1)
    for was, now, online in zip(before, built.target.parameters(), built.online.parameters(), strict=True):
        assert torch.allclose(now, 0.9 * was + 0.1 * online, atol=1e-6)
    assert any(not torch.equal(now, was) for was, now in zip(before, built.target.parameters(), strict=True))
    assert built.product() is built.target[0]
    plain = learner()
    assert plain.product() is plain.online[0]


def test_simsiams_predictor_keeps_its_rate_and_fastsiams_does_not():
    for recipe, kept in (("simsiam", True), ("fastsiam", False)):
        steps = Steps(learner(recipe))
        steps.load(3)
        steps.run(3)
        online, predictor = (group["lr"] for group in steps.optimizer.param_groups)
        assert online == steps.rates[-1] < 0.05
        assert (predictor == 0.05) == kept


def test_views_are_drawn_anew_for_every_epoch_and_the_same_for_the_same_one():
    built, order = learner(), torch.arange(64)
    assert torch.equal(built.draw(1, order), learner().draw(1, order))
    assert not torch.equal(built.draw(1, order), built.draw(2, order))


def test_timing_a_step_leaves_no_trace():
    steps = Steps(learner(target_momentum=0.9))
    before = {name: tensor.clone() for name, tensor in steps.state().items()}
    assert steps.seconds_per_step(2) > 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in steps.state().items())


def test_a_run_that_was_fitted_into_a_time_is_found_again_with_its_length(tmp_path):
    done = run(dataclasses.replace(TINY, epochs=10_000), fit=6.0, folder=tmp_path)
    assert run(done.config, folder=tmp_path).finished
    assert run(dataclasses.replace(TINY, epochs=10_000), fit=6.0, folder=tmp_path).config == done.config


def test_spread_tells_live_from_dead():
    live = torch.randn(500, 64)
    assert float(relative_spread(live)) == pytest.approx(1, abs=0.05)
    assert float(relative_spread(torch.ones(500, 64) + 1e-4 * live)) < 0.01


class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.ones(16))

    def forward(self, x):
        return self.bias.expand(len(x), 16) + 0 * x.mean()


def test_an_encoder_that_gives_all_images_the_same_is_kept_without_a_readout_and_that_is_said():
    with pytest.warns(UserWarning, match="kept without a read-out: rows to whiten must point in different directions"):
        done = pretrain(stripes()[0], dataclasses.replace(TINY, epochs=1), encoder=Constant())
    assert done.finished
    assert isinstance(done.encoder, Constant)


def test_a_dead_run_is_stopped_with_advice():
    with pytest.raises(CollapseError, match=r"in epoch 3 .* Lower the learning rate"):
        pretrain(stripes()[0], TINY, encoder=Constant())


def test_a_loss_that_is_no_number_stops_at_once():
    with pytest.raises(CollapseError):
        check_alive([{"epoch": 1, "loss": float("nan"), "spread": 1.0}])


def test_knn_accuracy_matches_a_plain_loop():
    g = torch.Generator().manual_seed(0)
    train, test = torch.randn(60, 5, generator=g), torch.randn(20, 5, generator=g)
    y, t = torch.randint(0, 3, (60,), generator=g), torch.randint(0, 3, (20,), generator=g)
    hits = 0
    for row, label in zip(test, t, strict=True):
        sims = sorted(
            ((float(torch.cosine_similarity(row, other, dim=0)), int(c)) for other, c in zip(train, y, strict=True)),
            reverse=True,
        )
        votes = [0.0, 0.0, 0.0]
        for s, c in sims[:7]:
            votes[c] += torch.exp(torch.tensor(s / 0.1)).item()
        hits += votes.index(max(votes)) == int(label)
    assert oracle_knn_accuracy(train, y, test, t, k=7, chunk=6) == hits / 20


def test_knn_accuracy_tells_directions_apart_that_hardly_differ():
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 5, 600)
    rows = torch.from_numpy(rng.normal(size=(5, 8))[kind] + 0.1 * rng.normal(size=(600, 8)))
    y = torch.from_numpy(kind)
    for offset in (1e6, 1e8):
        far = rows + offset
        assert oracle_knn_accuracy(far[:500], y[:500], far[500:], y[500:], k=20) == 1


def test_the_encoder_file_round_trips(tmp_path):
    encoder = resnet18_encoder(3)
    with torch.no_grad():
        encoder[1].running_mean.uniform_()
    save_encoder(tmp_path / "small.safetensors", encoder, {"data": "none"})
    again, card = load_encoder(tmp_path / "small.safetensors")
    assert card["data"] == "none"
    for name, tensor in encoder.state_dict().items():
        kept = again.state_dict()[name]
        assert torch.equal(kept, tensor.half().float() if tensor.is_floating_point() else tensor), name
    assert (tmp_path / "small.safetensors").stat().st_size < 23e6


def test_the_small_network_is_trained_kept_and_found_again(tmp_path):
    heads = {**SMALL_NETWORK, "projection": 16, "bottleneck": 8}
    del heads["hidden"]
    trained = pretrain(stripes()[0], configure("fastsiam", **{**SETTINGS, "epochs": 1}, **heads))
    assert trained.config.options["network"] == "small"
    save_encoder(tmp_path / "small.safetensors", trained.encoder, {})
    again, _ = load_encoder(tmp_path / "small.safetensors")
    assert [*again.network.state_dict()] == [*small_resnet_encoder().state_dict()]
    x = stripes()[0]
    assert torch.allclose(embed(again.network, x), embed(trained.network, x), atol=0.01)  # half precision
    read = embed(trained.encoder, x)
    assert torch.cosine_similarity(embed(again, x), read).min() > 0.999
    with pytest.raises(InputError, match=r"unknown network 'tiny': .*small"):
        configure("emp", network="tiny")


def test_an_estimate_of_the_time_comes_before_the_first_epoch_and_leaves_no_trace():
    told = []
    run(estimate=lambda seconds, config: told.append((seconds, config.epochs)), report=told.append)
    (seconds, epochs), first = told[:2]
    assert (epochs, first["epoch"], len(told)) == (TINY.epochs, 1, 5)
    spent = sum(line["seconds"] for line in told[1:])
    assert 0.2 * spent < seconds < 5 * spent  # a busy machine
    assert [line["loss"] for line in told[1:]] == [line["loss"] for line in run().curve]


def test_the_estimate_is_of_the_steps_of_all_epochs_that_are_left(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["naysay.features.pretrain"], "_seconds_per_step", lambda run: 1.0)
    told = []
    run(folder=tmp_path, seconds=0)  # the first epoch
    run(folder=tmp_path, estimate=lambda seconds, config: told.append(seconds))
    run(estimate=lambda seconds, config: told.append(seconds))
    assert told[0] == told[1] * (TINY.epochs - 1) / TINY.epochs > 0


def test_a_file_that_is_not_its_cards_is_refused(tmp_path):
    path = tmp_path / "small.safetensors"
    save_encoder(path, resnet18_encoder(3), {})
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(InputError, match="hashes differ"):
        load_encoder(path)


def test_a_card_that_is_nested_without_end_is_refused(tmp_path):
    save_encoder(tmp_path / "small.safetensors", small_resnet_encoder(3), {})
    (tmp_path / "small.json").write_text('{"sha256": ' + "[" * 100_000)
    with pytest.raises(InputError, match=r"small.json is no encoder's card \(RecursionError.*Fetch it again"):
        load_encoder(tmp_path / "small.safetensors")


@pytest.mark.parametrize(
    "shape", [(64, 3_000_000, 0, 0), (32, 3_000_000, 3, 0), (64, 3), (64, 3, 7, 7), (64, 0, 3, 3), ()]
)
def test_a_first_weight_that_no_encoder_has_is_refused_before_a_network_is_built(tmp_path, monkeypatch, shape):
    monkeypatch.setattr(encoders, "resnet18_encoder", lambda channels: pytest.fail(f"built, of {channels} channels"))
    monkeypatch.setattr(encoders, "small_resnet_encoder", encoders.resnet18_encoder)
    path = tmp_path / "small.safetensors"
    save_file({"0.weight": torch.zeros(shape)}, path)
    path.with_suffix(".json").write_text(json.dumps({"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}))
    with pytest.raises(InputError, match=r"does not hold a ResNet-18 encoder \(its first weight must be of shape \("):
        load_encoder(path)


@pytest.fixture(scope="module")
def with_its_readout():
    return with_readout(small_resnet_encoder(), stripes()[0])


def test_the_file_of_an_encoder_with_a_readout_round_trips(tmp_path, with_its_readout):
    path = tmp_path / "read.safetensors"
    save_encoder(path, with_its_readout, {"data": "none"})
    again, _ = load_encoder(path)
    assert not again.training
    assert [*again.state_dict()] == [*with_its_readout.state_dict()]
    for name, tensor in with_its_readout.network.state_dict().items():
        kept = again.network.state_dict()[name]
        assert torch.equal(kept, tensor.half().float() if tensor.is_floating_point() else tensor), name
    for name, tensor in with_its_readout.readout.state_dict().items():
        assert torch.equal(again.readout.state_dict()[name], tensor), name  # as exact as it was
    assert {"0.weight", "readout.mean", "readout.axes"} <= load_file(path).keys()  # the network's names are its own
    alone, card = load_encoder(path, readout=False)
    assert card["data"] == "none"
    assert [*alone.state_dict()] == [*small_resnet_encoder().state_dict()]
    assert torch.equal(embed(alone, stripes()[0]), embed(again.network, stripes()[0]))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda state: state.pop("readout.mean"), r"its read-out must be of shapes .*; got \{'axes': \(256, 256\)\}"),
        (lambda state: state.update({"readout.more": torch.ones(2)}), r"got .*'more': \(2,\)"),
        (lambda state: state.update({"readout.mean": torch.ones(512)}), r"got .*'mean': \(512,\)"),
        (lambda state: state.update({"readout.axes": torch.ones(256, 2)}), r"got \{'axes': \(256, 2\)"),
        (lambda state: state["readout.axes"].fill_(math.nan), "its read-out must hold finite floats"),
        (lambda state: state["readout.mean"].fill_(math.inf), "its read-out must hold finite floats"),
        (lambda state: state.update({"readout.mean": torch.ones(256, dtype=torch.int64)}), "must hold finite floats"),
    ],
)
@pytest.mark.parametrize("readout", [True, False])
def test_a_readout_that_is_none_is_refused(tmp_path, with_its_readout, spoil, message, readout):
    path = tmp_path / "read.safetensors"
    save_encoder(path, with_its_readout, {})
    state = load_file(path)
    spoil(state)
    save_file(state, path)
    path.with_suffix(".json").write_text(json.dumps({"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}))
    with pytest.raises(InputError, match=rf"does not hold a ResNet-18 encoder \(.*{message}.*\)\. Fetch it again"):
        load_encoder(path, readout=readout)
