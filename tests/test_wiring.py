"""No option is for show: every option of every command, and every parameter of every estimator, changes what comes out.

The options are asked of typer and of `get_params`; `wiring_rows.py` says for each what to change and what must differ
then: the labels, the weights, the estimates, and not merely the settings that are written down. What is compared must
be the same when the same call is made twice, so that no clock proves anything.
"""

import functools
import hashlib
import json
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from safetensors.torch import load_file
from test_cli import NAMES, write_csv
from torch import nn
from typer.testing import CliRunner
from wiring_rows import IMAGE_WAYS, OPTIONS, PARAMETERS

from naysay import estimators, features, transition
from naysay.cli import app
from naysay.errors import InputError
from naysay.learning import configure

N = 60
SUFFIX = {"export": ".onnx", "ask": ".csv", "predict": ".csv", "augment": ".npz"}  # of what each command writes
WITHOUT_OUT = ("audit", "report", "data list", "data get", "data import")
SMALL = {"projection": 8, "bottleneck": 4}


def commands(group=None, *names):
    """The commands of the app by their words, and the names of their options."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *names, name)
        else:
            yield " ".join([*names, name]), [parameter.name for parameter in command.params]


def rows(table):
    """Every row of a table of this house: whose, of which option, and which of several."""
    return [
        pytest.param(whose, name, row, id=f"{getattr(whose, '__name__', whose)}-{name}-{row.differs}")
        for whose, several in table.items()
        for part in several
        for name, row in part.items()
    ]


@pytest.mark.parametrize(("command", "names"), list(commands()))
def test_every_option_has_a_row_that_says_what_it_changes(command, names):
    held = {name for part in OPTIONS.get(command, ()) for name in part}
    missing, gone = set(names) - held, held - set(names)
    assert not missing, f"naysay {command}: add rows for {missing} to OPTIONS in wiring_rows.py, which say what changes"
    assert not gone, f"naysay {command} has no option {gone}: take the rows out of wiring_rows.py"


@pytest.mark.parametrize("way", IMAGE_WAYS)
def test_every_option_of_fit_has_a_row_for_each_way_of_a_folder_of_images(way):
    missing = set(dict(commands())["fit"]) ^ IMAGE_WAYS[way].keys()
    assert not missing, f"add or take out rows for {missing} in IMAGE_WAYS[{way!r}] of wiring_rows.py"


@pytest.mark.parametrize("name", estimators.__all__)
def test_every_parameter_has_a_row_that_says_what_it_changes(name):
    estimator = getattr(estimators, name)
    held = {name for part in PARAMETERS.get(estimator, ()) for name in part}
    missing, gone = set(estimator().get_params()) - held, held - set(estimator().get_params())
    assert not missing, f"{name}: add rows for {missing} to PARAMETERS in wiring_rows.py, which say what changes"
    assert not gone, f"{name} has no parameter {gone}: take the rows out of wiring_rows.py"


@pytest.mark.parametrize(("way", "option", "row"), rows({way: [of] for way, of in IMAGE_WAYS.items()}))
def test_an_option_beside_a_folder_of_images_changes_something_or_is_refused(way, option, row, calls):
    test_an_option_changes_what_comes_out("fit", option, row, calls)


@pytest.mark.parametrize(("command", "option", "row"), rows(OPTIONS))
def test_an_option_changes_what_comes_out(command, option, row, calls):
    before, again = calls(command, row.call), calls(command, row.call, 2)
    after = calls(command, row.instead or f"{row.call} {row.added}")
    if row.differs == "refused":
        assert after.code == 2, after.said
    elif row.differs != "code":
        assert (before.code, after.code) == (0, 0), (before.said, after.said)
    assert before.find(row.differs) == again.find(row.differs), "the same call gives the same"
    assert before.find(row.differs) != after.find(row.differs), f"--{option} changes nothing of {row.differs}"


@pytest.mark.parametrize(("estimator", "name", "row"), rows(PARAMETERS))
def test_a_parameter_changes_what_comes_out(estimator, name, row):
    beside, other = row.beside, tuple({**dict(row.beside), name: row.value}.items())
    models = fitted(estimator, beside), fitted(estimator, beside, 2), fitted(estimator, other)
    before, again, after = (aspect(model, row.differs) for model in models)
    assert before == again, "the same settings give the same"
    assert before != after, f"{name}= changes nothing of {row.differs}"


class Outcome:
    """What a call left behind and said; each aspect of it is a method, or an attribute."""

    def __init__(self, command, call, place, done, news, asked, kept):
        self.command, self.call, self.place, self.code = command, call, place, done.exit_code
        self.said = f"{call}: {done.output} {done.exception}"
        self.stdout, self.stderr = done.stdout.replace(str(place), "OUT"), done.stderr.replace(str(place), "OUT")
        self.places, self.asked, self.kept = news, asked, kept
        stored = (path for path in news if path.suffix == ".npz")
        self.imported = {path: path.read_bytes() for path in stored} if command == "data import" else {}

    def find(self, aspect):
        found = getattr(self, aspect)
        return found() if callable(found) else found

    def refused(self):
        return self.code == 2

    def space(self):
        return self._run()["space"]

    def lines(self):
        return len(self.stderr.splitlines())

    def is_json(self):
        return self.stdout.startswith("{")

    def given(self):
        """What a command has read: labels, names of classes and items."""
        if self.command == "augment":
            with np.load(self.place) as arrays:
                return digest(arrays)
        audit = self._audit()
        told = {name: audit[name] for name in ("coverage", "marginals", "annotators", "shown", "duplicates")}
        return told if self.command == "audit" else (told, self._run()["data"]["hash"])

    def shared(self):
        """What neighbours make of the labels."""
        if self.command == "augment":
            with np.load(self.place) as arrays:
                return digest({"labels": arrays["labels"]})
        if self.command == "audit":
            return self._audit()["neighborhood"]
        return [result["sharing"]["labels"] for result in self._run()["results"]]

    def model(self):
        mixed = self.place / "mixture.safetensors"
        return digest(load_file(mixed if mixed.exists() else self.place / "model.safetensors"))

    def encoder(self):
        return digest(load_file(self.place / "encoder.safetensors"))

    def estimates(self):
        """What held-out labels say."""
        names = ("estimate", "standard_error", "held_out_loss")
        return [[result[name] for name in names] for result in self._run()["results"]]

    def tried(self):
        return [result["scheme"] for result in self._run()["results"]]

    def training_seed(self):
        return self._run()["settings"]["config"]["seed"]

    def held(self):
        return [result["held_out_rows"] for result in self._run()["results"]]

    def truth(self):
        return [result["truth"] for result in self._run()["results"]]

    def predicted(self):
        return self.place.read_text()

    def exported(self):
        return self.place.read_bytes()

    def page(self):
        return (Path(self.call.split()[0]) / "report.html").read_text()

    def places_in(self):
        return sorted(path.name for path in self.place.iterdir())

    def length(self):
        """The epochs that the run is meant to have."""
        return json.loads((self.place / "records.jsonl").read_text().splitlines()[0])["config"]["epochs"]

    def looks(self):
        """The epochs after which kNN accuracy was looked at."""
        lines = map(json.loads, (self.place / "records.jsonl").read_text().splitlines())
        return [line["epoch"] for line in lines if "knn" in line and "epoch" in line]

    def _run(self):
        return json.loads((self.place / "run.json").read_text())

    def _audit(self):
        return json.loads(self.stdout if self.command == "audit" else (self.place / "audit.json").read_text())


def digest(arrays):
    return {name: hashlib.sha256(np.ascontiguousarray(arrays[name]).tobytes()).hexdigest() for name in arrays}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """A function from a command and its arguments to the outcome; the same call is made once, or as often as asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("wiring"))
        patch.setenv("NAYSAY_DATA", "cache")
        write_everything()
        # small enough to end at once: what is tested is what reaches them
        patch.setattr("naysay.estimation.matrix.SHRINKAGES", (1.0,))
        patch.setattr("naysay.runs.settings.FOLDS", 1)
        patch.setattr("naysay.cli.demo.EPOCHS", 1)
        patch.setattr("naysay.cli.demo.SCHEMES", ("none",))
        for user in ("models", "features.encoders", "learning.recipes.multiview"):
            patch.setattr(f"naysay.{user}.resnet18_encoder", small_encoder)
        patch.setattr("naysay.learning.configure", functools.partial(configure, **SMALL))
        number = iter(range(10_000))

        @functools.cache
        def call(command, arguments, time=1):
            return make_call(command, arguments, f"out{next(number)}{SUFFIX.get(command, '')}", patch)

        for run, of in (("run", "data.csv --seed 0"), ("run2", "data.csv --seed 1")):
            made = call(
                "fit",
                f"{of} --id id --label not_label --features [abcd] --epochs 1 --scheme none --no-refit --out {run}",
            )
            assert made.code == 0, made.said
        assert call("fit", "mnist --data one --epochs 1 --scheme none --no-refit --out run3").code == 0
        shutil.copytree("run", "old-run")
        yield call


def make_call(command, arguments, out, patch):
    for folder in ("three", "four"):
        shutil.rmtree(folder, ignore_errors=True)
    given = shlex.split(arguments)
    given = given if command in WITHOUT_OUT else ["--out", out, *given]
    place = Path(given[len(given) - 1 - given[::-1].index("--out") + 1]) if "--out" in given else None
    asked, kept, before = [], [], everything()

    def ask(*arguments, **settings):
        names = settings.pop("name_texts").keywords
        asked.append(repr((arguments[0], arguments[2:], names, settings)))
        raise typer.Exit

    def look(text):
        kept.append((place / "checkpoint.safetensors").exists())
        print(text, file=sys.stderr)

    patch.setattr("naysay.cluster.augment_shards", ask)
    patch.setattr("naysay.cli.pretrain.note", look)
    done = CliRunner().invoke(app, [*command.split(), *given])
    news = {path if str(path) != out else Path("OUT") for path in everything() - before}
    return Outcome(command, arguments, place, done, news, asked, kept)


def everything():
    """What lies here, and in the folders that sets are imported to."""
    return {*Path().iterdir(), *(path for folder in ("three", "four") for path in Path(folder).glob("*.npz"))}


def small_encoder(in_channels=3):
    """One layer, as wide as the last of a ResNet-18."""
    return nn.Sequential(nn.Conv2d(in_channels, 512, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def write_everything():
    """The files that the calls name, in the folder where we are."""
    rng = np.random.default_rng(0)
    for name in ("data.csv", "other.csv"):
        write_table(Path(name), rng)
    data = [line.split(",") for line in Path("data.csv").read_text().splitlines()]
    ids, wrong = [row[0] for row in data[1:]], [row[6] for row in data[1:]]
    write_csv(Path("items.csv"), [[row[0], *row[2:6]] for row in data])
    for name, turn in (("votes.csv", 0), ("votes2.csv", 1)):
        votes = [[ids[i], ids[i - 1], wrong[i - turn], f"w{i % 3}", "cat|dog|emu|fox"] for i in range(N)]
        # the first ten say it twice, and somebody else says another thing
        again = [[*votes[i][:2], NAMES[NAMES.index(votes[i][2]) - 1], "w9", votes[i][4]] for i in range(10)]
        write_csv(Path(name), [["item", "other_item", "not", "who", "shown"], *votes, *votes[:10], *again])
    clear = rng.permutation(2 * N) % 3  # of each of whom one annotator knows something, and another nothing
    numbers = (9 * np.eye(3)[clear] + rng.normal(size=(2 * N, 3))).round(3)
    write_csv(Path("clear.csv"), [["id", *"abc"], *([f"i{i}", *row] for i, row in enumerate(numbers))])
    said = [[f"i{i}", NAMES[(y + 1 + i // 3 % 2) % 3], "knows"] for i, y in enumerate(clear)]
    guessed = [[f"i{i}", NAMES[rng.integers(3)], "guesses"] for i in range(0, 2 * N, 3)]
    write_csv(Path("two.csv"), [["item", "not", "who"], *said, *guessed])
    np.save("codes.npy", rng.integers(-3, 3, (N, 1)))
    np.save("mine.npy", rng.normal(size=(N, 3)).astype(np.float32))
    write_csv(Path("shares.csv"), [["class", "share"], ["cat", 0.5], ["dog", 0.4], ["emu", 0.1]])
    Path("config.toml").write_text('loss = "pc"\n')
    for folder in ("one", "two"):
        Path(folder).mkdir()
        x, y = rng.integers(0, 255, (N, 28, 28), dtype=np.uint8), rng.permutation(N) % 10
        sets = {"x_train": x, "y_train": y, "x_test": x[:10], "y_test": y[:10], "classes": np.array(list("0123456789"))}
        np.savez(Path(folder) / "mnist.npz", **sets)
    photos = rng.integers(0, 255, (12, 8, 8, 3), dtype=np.uint8)
    np.savez("images.npz", x=photos, ids=np.arange(12).astype(str), **{"not": np.arange(12) % 3})
    np.save("images.npy", photos), np.save("images2.npy", photos[::-1].copy() // 2)
    for name in ("encoder.safetensors", "encoder2.safetensors"):
        features.save_encoder(Path(name), small_encoder(), {})
    write_photos(rng), Path("cache").mkdir()
    for name in ("old.csv", "old.html", "old.npz", "old.onnx"):
        Path(name).write_text("old")


def write_photos(rng):
    """Two folders of images of three colours, and votes that also say who voted, what was shown and what is true."""
    y = rng.permutation(72) % 3
    x = (rng.integers(0, 140, (72, 8, 8, 3)) + 100 * np.eye(3, dtype=int)[y][:, None, None]).astype(np.uint8)
    for folder, images in (("photos", x), ("photos2", x // 2)):
        Path(folder).mkdir()
        for i, pixels in enumerate(images):
            Image.fromarray(pixels).save(Path(folder) / f"{i:02}.png")
    votes = []
    for i in range(72):
        named = [NAMES[(y[i] + 1 + (i + j) % 2) % 3] for j in range(2)]
        spelt, every = named[0].title() if i % 2 else named[0], "cat|dog|emu" if i < 3 else named[0]
        votes.append([f"{i:02}", f"{71 - i:02}", *named, spelt, every, f"w{i % 4}", "cat|dog|emu|fox", NAMES[y[i]]])
    columns = ["item", "other", "not", "also_not", "spelt", "every", "who", "shown", "kind"]
    for name, turn in (("photo_votes.csv", 0), ("photo_votes2.csv", 1)):
        write_csv(Path(name), [columns, *([row[0], *votes[i - turn][1:]] for i, row in enumerate(votes))])
    guessed = [[f"{i:02}", *["cat"] * 5, "guesses", "", "cat"] for i in range(0, 72, 3)]
    write_csv(Path("photo_two.csv"), [columns, *([*row[:6], "knows", *row[7:]] for row in votes), *guessed])
    np.save("photo_codes.npy", np.array([[-3 + i % 3 + i % 2] for i in range(72)]))


def write_table(path, rng):
    """Items in three groups, two of them alike, with columns of labels, truths and ids of several kinds."""
    y = rng.integers(0, 3, N)
    x = (3 * np.eye(3, 4)[y] + rng.normal(size=(N, 4))).round(3)
    x[1] = x[0]
    off, biased = rng.integers(1, 3, N), np.where(rng.random(N) < 0.9, 1, 2)
    named = [[NAMES[(y[i] + by) % 3] for by in (off[i], 3 - off[i], biased[i])] for i in range(N)]
    columns = ["id", "key", *"abcd", "not_label", "also_not", "third", "biased", "spelt", "class", "second"]
    table = []
    for i, (one, other, third) in enumerate(named):
        every = NAMES[y[i]] if i < 5 else other  # of the first five, the three columns together name every class
        spelt = one.title() if i % 2 else one
        truth = NAMES[y[i]], NAMES[y[i - 1]]
        table.append([f"i{i}", f"k{i}", *x[i], one, other, every, third, spelt, *truth])
    write_csv(path, [columns, *table])


@functools.cache
def fitted(estimator, settings, time=1):
    """The estimator fitted with these settings to labels of people who like some classes more than others."""
    trained = "epochs" in estimator().get_params() and "budget" not in dict(settings)
    quick = {"epochs": 1} if trained else {}
    model = estimator(**{**quick, **dict(settings)})
    try:
        return model.fit(*data()[:2])
    except InputError as error:
        return str(error)


@functools.cache
def data():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 150)
    x = (3 * np.eye(4)[y] + rng.normal(size=(150, 4))).astype(np.float32)
    wrong = transition.sample(y, transition.biased(4, "strong", seed=3), seed=1)[:, 0]
    named = np.array(list("abcd"))[wrong]
    return x[:120], named[:120], x[120:], named[120:]


def aspect(model, name):
    _, _, x, y = data()
    found = {
        "refused": lambda: isinstance(model, str),
        "probabilities": lambda: model.predict_proba(x).tolist(),
        "predictions": lambda: model.predict(x).tolist(),
        "score": lambda: model.score(x, y),
        "classes": lambda: model.classes_.tolist(),
        "labels": lambda: model.labels_.tolist(),
        "passed_on": lambda: model.transform(x).tolist(),
    }
    return found[name]()
