"""Every recipe trains on the GPU, resumes there, and its encoders and estimators work there."""

import math
from pathlib import Path

import pytest
import torch

from naysay import features, labels, transition
from naysay.estimators import ComplementaryClassifier
from naysay.learning import RECIPES, configure, train

WEIGHTS = Path(__file__).parents[2] / "weights"
N, K = 240, 4
TINY = {"epochs": 4, "batch_size": 48}
IMAGES = {"model": "lenet", "crop": 2, "flip": True}
LABELLED = [name for name, row in RECIPES.items() if row.needs_labels]
UNLABELLED = [name for name, row in RECIPES.items() if not row.needs_labels]


def images(n=N, side=16):
    """Noise around one colour for each class."""
    numbers = torch.Generator().manual_seed(0)
    colours = torch.randint(0, 256, (K, 1, 1, 3), generator=numbers).float()
    noise = 40 * torch.randn(n, side, side, 3, generator=numbers)
    return (colours[torch.arange(n) % K] + noise).clamp(0, 255).to(torch.uint8)


def rows(n=N):
    return images(n, 4).flatten(1).float() / 255


def comp(n_classes=K, n_labels=1, n=N):
    named = transition.sample(torch.arange(n) % n_classes, transition.uniform(n_classes), n_labels)
    return labels.from_indices(named, n_classes)


def settings(recipe, takes, **changes):
    published = RECIPES[recipe].published
    known = {"warmup_epochs": 0} if "warmup_epochs" in published else {}
    return configure(recipe, **TINY, **known, **(IMAGES if takes == "images" else {}), compile="no", **changes)


def check_trained(trained, x, device):
    parameters = list(trained.predictor.model.parameters())
    assert {parameter.device.type for parameter in parameters} == {device.type}
    assert all(math.isfinite(epoch["loss"]) for epoch in trained.history)
    assert trained.predictor.predict(x).shape == (len(x),)


CASES = [(recipe, takes) for recipe in LABELLED for takes in ("images", "rows") if RECIPES[recipe].takes in ("", takes)]


@pytest.mark.parametrize("n_labels", [1, 3])
@pytest.mark.parametrize(("recipe", "takes"), CASES)
def test_recipe_trains_on_labels(recipe, takes, n_labels, device):
    x = images() if takes == "images" else rows()
    trained = train(settings(recipe, takes), x, comp(n_labels=n_labels), device=device, progress=False)
    check_trained(trained, x, device)


@pytest.mark.parametrize("n_classes", [3, 10, 100])
@pytest.mark.parametrize("recipe", ["consistent", "taught"])
def test_teaching_takes_any_number_of_classes(recipe, n_classes, device):
    x = images() if recipe == "consistent" else rows()
    config = settings(recipe, RECIPES[recipe].takes, class_shares="even")
    check_trained(train(config, x, comp(n_classes), device=device, progress=False), x, device)


@pytest.mark.parametrize(
    "options",
    [{"reading": "linear"}, {"reading": "neighbours"}, {"naming": "counted"}, {"noise": 0.1}],
)
@pytest.mark.parametrize("recipe", ["consistent", "taught"])
def test_teaching_works_with_every_reading(recipe, options, device):
    x = images() if recipe == "consistent" else rows()
    config = settings(recipe, RECIPES[recipe].takes, class_shares="even", **options)
    check_trained(train(config, x, comp(), device=device, progress=False), x, device)


def test_stated_transition_is_used(device):
    T = transition.biased(K, "strong", seed=0)
    trained = train(settings("taught", "rows"), rows(), comp(), T=T, device=device, progress=False)
    check_trained(trained, rows(), device)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon"])
def test_every_optimizer_takes_steps(optimizer, device):
    config = settings("plain", "images", optimizer=optimizer, learning_rate=1e-3)
    check_trained(train(config, images(), comp(), device=device, progress=False), images(), device)


@pytest.mark.parametrize("recipe", UNLABELLED)
def test_recipe_pretrains_an_encoder(recipe, device):
    config = configure(recipe, epochs=2, batch_size=32, network="small", width=256, compile="no")
    made = features.pretrain(images(64), config, device=device)
    assert made.finished
    assert next(made.encoder.parameters()).device.type == device.type
    assert features.extract(made.encoder, images(64).numpy(), cache=False).shape[0] == 64


class Interrupted(Exception):
    """Raised by an observer in the middle of a run."""


def test_compiled_consistent_resumes_bit_for_bit(device, compiling, tmp_path):
    """The step is compiled and captured once a process; what it replays does not depend on an interruption."""
    if device.type == "cpu":
        pytest.skip("a step is captured on a GPU alone")
    torch.backends.cudnn.deterministic = True
    config = configure("consistent", **TINY, model="resnet18", warmup_epochs=0, class_shares="even", compile="yes")
    x, z = images(side=32), comp()

    def stop(snapshot):
        if snapshot.epoch == 2:
            raise Interrupted
        return {}

    with compiling():
        whole = train(config, x, z, device=device, progress=False)
    with pytest.raises(Interrupted):
        train(config, x, z, device=device, folder=tmp_path, observers=[stop], progress=False)
    again = train(config, x, z, device=device, folder=tmp_path, progress=False)
    torch.backends.cudnn.deterministic = False
    assert [epoch["loss"] for epoch in again.history] == [epoch["loss"] for epoch in whole.history]
    assert torch.equal(again.predictor.logits(x), whole.predictor.logits(x))


def encoder_file():
    """Any encoder of weights/: the others may have stayed where they are, as 64 MiB travel to a lent machine."""
    for name in ("cifar10", "cifar20", "cifar10-simsiam"):
        if (path := WEIGHTS / f"{name}.safetensors").exists():
            return path
    pytest.skip("no encoder in weights/")


def test_estimator_trains_consistent_from_an_encoder(device):
    x = images(side=32)
    model = ComplementaryClassifier(
        recipe="consistent", encoder=encoder_file(), class_shares="even", epochs=4, batch_size=48
    )
    model.fit(x.numpy(), comp().argmax(1).numpy())
    assert model.predict(x.numpy()).shape == (N,)
    assert next(model.predictor_.model.parameters()).device.type == device.type


def test_extraction_equals_the_cpu(device):
    encoder = features.load_encoder(encoder_file())[0]
    x = images(32, 32).numpy()
    theirs = features.extract(encoder, x, cache=False)
    ours = features.extract(encoder.to(device), x, cache=False)
    torch.testing.assert_close(torch.as_tensor(ours), torch.as_tensor(theirs), rtol=1e-2, atol=1e-2)
    rounded = features.extract(encoder, x, cache=False, precision="bf16")
    cosine = torch.nn.functional.cosine_similarity(torch.as_tensor(rounded), torch.as_tensor(theirs))
    assert cosine.min() > 0.99
