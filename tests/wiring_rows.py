"""For every option of every command and every parameter of every estimator: what to change, and what must then differ.

`test_wiring.py` makes both calls, and explains the aspects in `Outcome` and `Fit`. An option may have several rows.
"""

from dataclasses import dataclass, replace

from sklearn.linear_model import LogisticRegression

from naysay import transition
from naysay.estimators import ComplementaryClassifier, ComplementaryKNeighbors, LabelAugmenter


@dataclass(frozen=True)
class Change:
    """A call, what is added to it (or the whole call `instead`), and the aspect of the outcome that must differ."""

    added: str
    differs: str
    call: str = ""
    instead: str = ""


def ending(end, rows, call=""):
    """The rows with `end` at the end of every call; those without a call are added to `call`."""
    return {
        name: replace(row, call=f"{row.call or call} {end}", instead=row.instead and f"{row.instead} {end}")
        for name, row in rows.items()
    }


COLUMNS = "--features a --features b --features c --features d"
OWN = f"data.csv --id id --label not_label {COLUMNS}"
BIASED = f"data.csv --id id --label biased {COLUMNS}"
LONG = "items.csv --id id --labels votes.csv --label not"
CODES = "items.csv --id id --labels codes.npy --format snorkel --classes cat,dog,emu"
WEIGHED = "clear.csv --id id --labels two.csv --label not --annotator who"
DRAWN = f"data.csv --id id {COLUMNS} --truth class --transition uniform"
OTHERS = "--ignore key --ignore [a-z]*[a-z]"
CONTRADICTING = f"{OWN} --label also_not --label third --contradictions unlabel"
KNOWN = "mnist --transition uniform --data one"
IMAGES = "images.npz --id ids --label not --features x --held-out 0.2 --encoder encoder.safetensors --model resnet18"
PHOTOS = "images.npy --method simsiam --epochs 2 --batch 6"
SEEN = "images.npz --id ids --label not --features x --budget 0.5 --quiet --model auto"
FIT = "--epochs 1 --scheme dms --quiet --no-refit --assume uniform"
CHEAP = "--budget 0.5 --quiet"
IMPORT = "mnist one/mnist.npz --data three"
SHARDS = "shards --labels shard_labels --engine ray"

# of the commands that read items and labels
READING = {
    "data": Change("", "given", OWN, OWN.replace("data.csv", "other.csv")),
    "id": Change("--id key", "given", OWN),
    "label": Change("--label also_not", "given", OWN),
    "features": Change("--features c", "shared", "data.csv --id id --label not_label --features a --features b"),
    "ignore": Change("--ignore a", "shared", f"data.csv --id id --label not_label {OTHERS}"),
    "truth": Change("--truth second", "given", DRAWN),
    "labels": Change("--labels votes2.csv", "given", LONG),
    "item": Change("--item other_item", "given", LONG),
    "annotator": Change("--annotator who", "given", LONG),
    "options": Change("--options shown", "given", LONG),
    "format": Change("--format signed", "given", CODES),
    "labels_say": Change("--labels-say is", "given", OWN),
    "without": Change("--without w9", "given", f"{LONG} --annotator who"),
    "weigh_annotators": Change("--weigh-annotators", "shared", WEIGHED),
    "classes": Change("--classes cat,dog,emu,fox", "given", OWN),
    "merge_spelling": Change("--merge-spelling", "code", OWN.replace("not_label", "spelt")),
    "transition": Change("--transition biased-strong", "given", DRAWN),
    "n_labels": Change("--n-labels 2", "given", DRAWN),
    "seed": Change("--seed 1", "given", DRAWN),
    "folder": Change("--data two", "given", KNOWN),
    "space": Change("--space raw", "shared", OWN),
    "encoder": Change("--encoder mine.npy", "shared", OWN),
}
# the same numbers compared in another way, for the metric goes with the space; and bias of another strength
ALSO = {
    "space": Change("--space cosine", "shared", f"{OWN} --space raw"),
    "transition": Change("--transition biased-strong", "given", DRAWN.replace("uniform", "biased-weak")),
}
SHARING = {
    "contradictions": Change("--contradictions keep", "given", CONTRADICTING),
    "scheme": Change("--scheme rss", "shared", OWN),
    "neighbors": Change("--neighbors 3", "shared", OWN),
    "alpha": Change("--alpha 0.9", "shared", OWN),
    "gamma": Change("--gamma 0.01", "shared", OWN),
}
TOLD = {"json": Change("--json", "is_json"), "quiet": Change("--quiet", "lines")}
TRAINING = {
    "seed": Change("--seed 1", "model"),
    "scheme": Change("--scheme none", "model"),
    "truth": Change("--truth class", "truth"),
    "loss": Change("--loss pc", "model"),
    "model": Change("--model linear", "model"),
    "learning_rate": Change("--learning-rate 0.1", "model"),
    "epochs": Change("--epochs 2", "model"),
    "class_shares": Change("--class-shares even", "model", BIASED),
    "assume": Change("--assume estimated", "estimates", BIASED),
    "held_out": Change("--held-out 0.3", "held"),
    "config": Change("--config config.toml", "model"),
    "fine_tune": Change("--fine-tune", "model", IMAGES),
    "out": Change("--out fit-elsewhere", "places"),
    "force": Change("--force", "code", f"{OWN} --out old-run"),
    "json": Change("--json", "is_json"),
}
# with --engine ray, what is compared is what reaches `augment_shards`: its own work is `test_cluster_shards.py`'s
RAY = {
    "engine": Change("", "asked", SHARDS, OWN),
    "data": Change("", "asked", SHARDS, SHARDS.replace("shards", "more", 1)),
    "labels": Change("--labels more", "asked"),
    "id": Change("--id key", "asked"),
    "label": Change("--label not", "asked"),
    "features": Change("--features vector", "asked"),
    "classes": Change("--classes a,b,c", "asked"),
    "merge_spelling": Change("--merge-spelling", "asked"),
    "contradictions": Change("--contradictions keep", "asked"),
    "scheme": Change("--scheme rss", "asked"),
    "neighbors": Change("--neighbors 3", "asked"),
    "alpha": Change("--alpha 0.9", "asked"),
    "gamma": Change("--gamma 0.01", "asked"),
    "rounds": Change("--rounds 2", "asked"),
    "class_shares": Change("--class-shares even", "asked"),
    "space": Change("--space raw", "asked"),
    "address": Change("--address host:1", "asked"),
    "workers": Change("--workers 3", "asked"),
    "threads": Change("--threads 3", "asked"),
    "method": Change("--method exact", "asked"),
    "lists": Change("--lists 3", "asked"),
    "probes": Change("--probes 3", "asked"),
    "block_rows": Change("--block-rows 3", "asked"),
    "checkpoint_every": Change("--checkpoint-every 3", "asked"),
    "force": Change("--force", "asked"),
}

# a folder of images, and what `naysay fit` makes of it: models on pixels, on what an encoder makes of them, or one
# network that begins with the encoder. Of each way every option must change something, or be refused.
PHOTOS_READ = "photos --labels photo_votes.csv --label not --quiet"
PIXELS = f"{PHOTOS_READ} --model auto --budget 0.3"
FROZEN = f"{PIXELS} --encoder encoder.safetensors"
BEGUN = f"{PHOTOS_READ} --encoder encoder.safetensors --recipe consistent --epochs 2 --no-refit --held-out 0.2"
ONE = "--epochs 1 --scheme none --no-refit --held-out 0.2"


def of_images(call):
    """What options of reading and writing change of this call on a folder of images."""
    coded = call.replace("photo_votes.csv --label not", "photo_codes.npy --format snorkel --classes cat,dog,emu")
    two = call.replace("photo_votes.csv", "photo_two.csv")
    contradicting = call.replace("--label not", "--label every --contradictions unlabel")
    return {
        "data": Change("", "given", call, call.replace("photos", "photos2", 1)),
        "id": Change("--id item", "refused", call),
        "label": Change("", "given", call, call.replace("--label not", "--label also_not")),
        "features": Change("--features item", "refused", call),
        "ignore": Change("--ignore item", "refused", call),
        "truth": Change("--truth kind", "truth", call),
        "labels": Change("--labels photo_votes2.csv", "estimates", call),
        "item": Change("--item other", "estimates", call),
        "annotator": Change("--annotator who", "given", call),
        "options": Change("--options shown", "given", call),
        "format": Change("--format signed", "given", coded),
        "labels_say": Change("--labels-say is", "given", call),
        "without": Change("--without w2", "given", f"{call} --annotator who"),
        "weigh_annotators": Change("--weigh-annotators", "estimates", f"{two} --annotator who"),
        "classes": Change("--classes cat,dog,emu,fox", "given", call),
        "merge_spelling": Change("--merge-spelling", "code", call.replace("--label not", "--label spelt")),
        "contradictions": Change("--contradictions keep", "estimates", contradicting),
        "transition": Change("--transition uniform", "refused", call),
        "n_labels": Change("--n-labels 2", "refused", call),
        "class_shares": Change("--class-shares shares.csv", "estimates", call),
        "assume": Change("--assume popularity", "estimates", call),
        "seed": Change("--seed 1", "estimates", call),
        "folder": Change("--data two", "refused", call),
        "out": Change(f"--out photos-{len(call)}", "places", call),
        "force": Change("--force", "code", f"{call} --out old-run"),
        "json": Change("--json", "is_json", call),
        "quiet": Change("", "lines", call, call.replace("--quiet", "")),
    }


def refused(call, *added):
    """Rows of options that this call has no use for."""
    return {one.split()[0].removeprefix("--").replace("-", "_"): Change(one, "refused", call) for one in added}


SCHEMES = ("--scheme rms", "--neighbors 3", "--alpha 0.9", "--gamma 0.01")
OF_ONE = ("--learning-rate 0.1", "--epochs 2", "--held-out 0.3", "--folds 3", "--no-refit", "--apart", "--flips")
BESIDE = ("--loss pc", "--as-published", "--fine-tune", "--config config.toml")
IMAGE_WAYS = {
    "pixels": {
        **of_images(PIXELS),
        **refused(PIXELS, *SCHEMES, *OF_ONE, *BESIDE, "--recipe consistent"),
        "space": Change("--space pca", "space", PIXELS),
        "encoder": Change("--encoder encoder.safetensors", "places_in", PIXELS),
        "model": Change("", "places_in", PIXELS, f"{PHOTOS_READ} --model linear {ONE}"),
        "budget": Change("--budget 1", "tried", PIXELS),
        "apart": Change("--apart", "held", PIXELS),  # judged by one part, with --model auto too
    },
    "frozen": {
        **of_images(FROZEN),
        **refused(FROZEN, *SCHEMES, *OF_ONE, *BESIDE, "--recipe consistent", "--space pca"),
        "encoder": Change("--encoder encoder2.safetensors", "encoder", FROZEN),
        "model": Change("", "places_in", FROZEN, f"{PHOTOS_READ} --encoder encoder.safetensors --model linear {ONE}"),
        "budget": Change("--budget 1", "tried", FROZEN),
    },
    "begun": {
        **of_images(BEGUN),
        **refused(BEGUN, *SCHEMES, *BESIDE, "--folds 3", "--apart", "--space pca", "--budget 1", "--model lenet"),
        "encoder": Change("--encoder encoder2.safetensors", "model", BEGUN),
        "recipe": Change("--recipe pocr", "model", BEGUN),
        "learning_rate": Change("--learning-rate 0.1", "model", BEGUN),
        "epochs": Change("--epochs 3", "model", BEGUN),
        "held_out": Change("--held-out 0.4", "held", BEGUN),
        "no_refit": Change("", "model", BEGUN, BEGUN.replace("--no-refit", "")),
        "flips": Change("--flips", "estimates", BEGUN),
    },
}

OPTIONS = {
    "demo": [
        {
            "out": Change("--out demo-elsewhere", "places"),
            "seed": Change("--seed 1", "model"),
            "force": Change("--force", "code", "--out old-run"),
            **TOLD,
        },
        {"seed": Change("--seed 1", "training_seed")},  # beside that of the labels
    ],
    "audit": [
        ending("--json", READING),
        ending("--json", ALSO),
        {
            "seed": Change("--seed 1", "shared", f"{OWN} --json"),
            "class_shares": Change("--class-shares shares.csv", "shared", f"{BIASED} --json"),
            "html": Change("--html audit.html", "places", OWN),
            "force": Change("--force", "code", f"{OWN} --html old.html"),
            "json": Change("--json", "is_json", OWN),
        },
    ],
    "fit": [
        ending(FIT, READING | SHARING),
        ending(FIT, ALSO),
        ending(FIT, TRAINING, OWN),
        {
            "assume": Change("--assume estimated", "model", f"{BIASED} --loss fwd {FIT}"),
            "folds": Change("--folds 3", "held", f"{OWN} --epochs 1 --scheme none --quiet --folds 1"),
            "apart": Change("--apart", "model", f"{OWN} --held-out 0.4 {FIT}"),
            "no_refit": Change("--no-refit", "model", f"{OWN} --epochs 1 --scheme none --quiet --folds 1"),
            "quiet": Change("--quiet", "lines", f"{OWN} --epochs 1 --scheme none --no-refit"),
            "recipe": Change("--recipe consistent", "model", f"{IMAGES} --epochs 2 --scheme none --quiet --no-refit"),
            "flips": Change("--flips", "estimates", f"{IMAGES} --epochs 1 --scheme none --quiet --no-refit"),
        },
        {
            "assume": Change("--assume popularity", "model", f"{BIASED} --loss fwd {FIT}"),
            "class_shares": Change("--class-shares shares.csv", "model", f"{BIASED} --class-shares even {FIT}"),
        },
        {  # what an encoder makes of images is learned, and kept
            "encoder": Change("--encoder encoder.safetensors", "places_in", SEEN),
            "model": Change("", "places_in", f"{SEEN} --encoder encoder.safetensors", f"{IMAGES} --epochs 1 --folds 1"),
        },
        {  # where no network is named
            "budget": Change("", "tried", f"{OWN} --budget 0.5 --quiet", f"{OWN} --budget 0.1 --quiet"),
            "seed": Change("--seed 1", "model", f"{OWN} {CHEAP}"),
            "assume": Change("--assume popularity", "model", f"{BIASED} {CHEAP} --assume uniform"),
            "class_shares": Change("--class-shares shares.csv", "model", f"{BIASED} {CHEAP}"),
            "as_published": Change("", "tried", f"{OWN} {CHEAP}", f"{OWN} --as-published --epochs 1 --folds 1 --quiet"),
        },
    ],
    "ask": [
        {
            "run": Change("", "predicted", "run data.csv", "run2 data.csv"),
            "data": Change("other.csv", "predicted", "run"),
            "n": Change("--n 3", "predicted", "run"),
            "id": Change("--id key", "predicted", "run data.csv"),
            "folder": Change("--data two", "predicted", "run3 mnist --data one"),
            "out": Change("--out ask-elsewhere.csv", "places", "run"),
            "force": Change("--force", "code", "run --out old.csv"),
            "json": Change("--json", "is_json", "run"),
            "quiet": Change("--quiet", "stdout", "run"),
        }
    ],
    "predict": [
        {
            "run": Change("", "predicted", "run data.csv", "run2 data.csv"),
            "data": Change("", "predicted", "run data.csv", "run other.csv"),
            "id": Change("--id key", "predicted", "run data.csv"),
            "at_least": Change("--at-least 1", "predicted", "run data.csv"),
            "folder": Change("--data two", "predicted", "run3 mnist --data one"),
            "flips": Change("--flips", "predicted", "run3 mnist --data one"),
            "out": Change("--out predict-elsewhere.csv", "places", "run data.csv"),
            "force": Change("--force", "code", "run data.csv --out old.csv"),
            **ending("", TOLD, "run data.csv"),
        }
    ],
    "report": [
        {
            "run": Change("", "page", "run", "run2"),
            "out": Change("--out report-elsewhere.html", "places", "run"),
            "force": Change("--force", "code", "run --out old.html"),
        }
    ],
    "export": [
        {
            "run": Change("", "exported", "run", "run2"),
            "out": Change("--out export-elsewhere.onnx", "places", "run"),
            "force": Change("--force", "code", "run --out old.onnx"),
        }
    ],
    "augment": [
        READING | SHARING,
        ALSO,
        {
            "rounds": Change("--rounds 2", "shared", OWN),
            "class_shares": Change("--class-shares even", "shared", BIASED),
            "whiten": Change("--whiten 1", "shared", OWN),
            "out": Change("--out augment-elsewhere.npz", "places", OWN),
            "force": Change("--force", "code", f"{OWN} --out old.npz"),
            **ending("", TOLD, OWN),
        },
        ending("", RAY, SHARDS),
    ],
    "pretrain": [
        {
            "data": Change("", "encoder", PHOTOS, PHOTOS.replace("images", "images2")),
            "out": Change("--out pretrain-elsewhere", "places", PHOTOS),
            "method": Change("--method fastsiam", "encoder", PHOTOS),
            "network": Change("--network resnet18", "encoder", PHOTOS),
            "epochs": Change("--epochs 3", "encoder", PHOTOS),
            "minutes": Change("", "length", PHOTOS, PHOTOS.replace("--epochs 2", "--minutes 0.01")),
            "batch": Change("--batch 3", "encoder", PHOTOS),
            "leave_out": Change("--leave-out 0.3", "encoder", PHOTOS),
            "seconds": Change("--seconds 0", "places_in", PHOTOS),
            "knn_every": Change("--knn-every 1", "looks", PHOTOS.replace("images.npy", "mnist --data one")),
            "save_every": Change("--save-every 1", "kept", PHOTOS),
            "seed": Change("--seed 1", "encoder", PHOTOS),
            "folder": Change("--data two", "encoder", PHOTOS.replace("images.npy", "mnist --data one")),
            **ending("", TOLD, PHOTOS),
        }
    ],
    "data list": [{"folder": Change("--data one", "stdout", "--data nowhere"), "json": Change("--json", "is_json")}],
    "data get": [
        {
            "name": Change("", "stdout", "digits --data one", "mnist --data one"),
            "folder": Change("--data two", "stdout", "mnist --data one"),
            "json": Change("--json", "is_json", "digits"),
        }
    ],
    "data import": [
        {
            "name": Change("", "imported", IMPORT, IMPORT.replace("mnist ", "kmnist ", 1)),
            "files": Change("", "imported", IMPORT, IMPORT.replace("one", "two")),
            "folder": Change("--data four", "imported", IMPORT),
            "force": Change("--force", "code", "mnist two/mnist.npz --data one"),
        }
    ],
}

T = transition.biased(4, "strong", seed=3)
UNEVEN = (0.4, 0.3, 0.2, 0.1)
FIVE = tuple("abcde")


@dataclass(frozen=True)
class Setting:
    """A parameter's other value, the aspect of the fitted estimator that must differ, and what is set beside it."""

    value: object
    differs: str
    beside: tuple[tuple[str, object], ...] = ()


PARAMETERS = {
    ComplementaryClassifier: [
        {
            "loss": Setting("pc", "probabilities"),
            "scheme": Setting("none", "probabilities"),
            "encoder": Setting(lambda X: X[:, :1], "probabilities"),
            "model": Setting("linear", "probabilities"),
            "n_neighbors": Setting(3, "probabilities"),
            "alpha": Setting(0.9, "probabilities"),
            "gamma": Setting(0.01, "probabilities"),
            "transition": Setting(T, "probabilities", (("loss", "fwd"),)),
            "class_shares": Setting(UNEVEN, "probabilities"),
            "classes": Setting(FIVE, "classes"),
            "recipe": Setting("consistent", "refused"),  # it is for images, and these are rows
            "epochs": Setting(2, "probabilities"),
            "batch_size": Setting(16, "probabilities"),
            "learning_rate": Setting(0.1, "probabilities"),
            "weight_decay": Setting(10.0, "probabilities"),
            "random_state": Setting(1, "probabilities"),
        },
        {
            "transition": Setting(T, "score"),
            "class_shares": Setting("even", "score", (("scheme", "none"), ("loss", "scl-nl"), ("learning_rate", 1e-4))),
        },
        {
            "budget": Setting(0.1, "probabilities", (("budget", 0.5),)),
            "transition": Setting(T, "probabilities", (("budget", 0.1),)),
            "class_shares": Setting(UNEVEN, "probabilities", (("budget", 0.1),)),
            "model": Setting("mlp", "probabilities", (("model", LogisticRegression()), ("epochs", None))),
            "random_state": Setting(1, "probabilities", (("budget", 0.5),)),
        },
        {"recipe": Setting("taught", "probabilities", (("class_shares", "even"),))},
        {"transition": Setting("popularity", "probabilities", (("loss", "fwd"),))},
        {"transition": Setting("estimated", "probabilities", (("loss", "fwd"),))},
    ],
    ComplementaryKNeighbors: [
        {
            "n_neighbors": Setting(5, "probabilities"),
            "transition": Setting(T, "probabilities"),
            "class_shares": Setting(UNEVEN, "probabilities"),
            "classes": Setting(FIVE, "classes"),
            "random_state": Setting(1, "predictions", (("n_neighbors", 1),)),
        },
        {"transition": Setting(T, "score"), "class_shares": Setting("even", "score")},
        {"transition": Setting(T, "predictions"), "class_shares": Setting(UNEVEN, "predictions")},
    ],
    LabelAugmenter: [
        {
            "scheme": Setting("rss", "labels"),
            "n_neighbors": Setting(3, "labels"),
            "alpha": Setting(0.9, "labels"),
            "gamma": Setting(0.01, "labels"),
            "rounds": Setting(2, "labels"),
            "metric": Setting("cosine", "labels"),
            "class_shares": Setting(UNEVEN, "labels"),
            "whiten": Setting(1.0, "labels"),
            "classes": Setting(FIVE, "classes"),
        },
        {
            "n_neighbors": Setting(3, "passed_on"),
            "whiten": Setting(1.0, "passed_on"),
            "gamma": Setting(0.01, "passed_on"),
            "metric": Setting("cosine", "passed_on"),
        },
    ],
}
