"""`naysay pretrain`: an encoder from images alone, for the space in which labels are shared."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from naysay import cores
from naysay.cli import options as o
from naysay.cli.output import TABLES, command_line, note, say_json
from naysay.errors import InputError, unknown
from naysay.files import is_unfinished
from naysay.words import count

if TYPE_CHECKING:
    from torch import Tensor, nn

    from naysay.learning import Config
    from naysay.processes import Processes

    Score = Callable[[nn.Module], float]

learning = partial(o.option, None)  # these stand in the first panel of the help
METHOD = "fastsiam, emp, or simsiam; else fastsiam, or emp where there is no GPU."
NETWORK = "resnet18, or small, which has 1/30 of its arithmetic; else small where there is no GPU."
EPOCHS = "Else the method's own (200, 150, 800), or what ten minutes allow where there is no GPU."
MINUTES = "Make a new run as long as they allow, in place of --epochs."
BATCH = "Images in a step; else the method's own (128, 128 and 512), or all where there are fewer."
LEAVE_OUT = "The share of the images to keep out, such as 0.1, for naysay fit --apart to judge by; else none."
SECONDS = "Stop after the epoch in which they run out; call again to go on."
KNN_EVERY = "Epochs between two looks at kNN accuracy, where the truth is known."
EMBEDDINGS = "note: for photographs a CPU is better given embeddings of a large model (docs/EMBEDDINGS.md)"
ON_A_CPU = 10.0  # minutes, unless somebody says how long
KNN = 200  # neighbours of the accuracy on the side, as self-supervised work reports it


def pretrain(
    data: o.Data,
    *,
    out: Annotated[Path, o.output("--out", "FOLDER", "The folder to make, or to continue in.")],
    method: Annotated[str | None, learning("--method", "NAME", METHOD)] = None,
    network: Annotated[str | None, learning("--network", "resnet18|small", NETWORK)] = None,
    epochs: Annotated[int | None, learning("--epochs", None, EPOCHS, min=1)] = None,
    minutes: Annotated[float | None, learning("--minutes", None, MINUTES)] = None,
    batch: Annotated[int | None, learning("--batch", None, BATCH, min=2)] = None,
    leave_out: Annotated[float | None, learning("--leave-out", "SHARE", LEAVE_OUT)] = None,
    seconds: Annotated[float | None, learning("--seconds", None, SECONDS)] = None,
    knn_every: Annotated[int, learning("--knn-every", None, KNN_EVERY, min=1)] = 20,
    save_every: Annotated[int, learning("--save-every", None, "Epochs between two checkpoints.", min=1)] = 20,
    seed: o.Seed = 0,
    folder: o.Folder = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    r"""Train an encoder on images, without any labels; interrupted, the same call
    goes on where it stopped.

    FOLDER gets a checkpoint, records.jsonl with a line per epoch, and at the end
    encoder.safetensors with its card, encoder.json: the network, and a read-out
    of the same images that makes its neighbours better. Where the truth is
    known, kNN accuracy is shown on the side; training never sees it. A GPU is
    used where there is one; without, emp trains a small network for ten minutes,
    and photographs are better compared by embeddings of a model that has seen
    millions (docs/EMBEDDINGS.md). How long it takes is measured and said first.
    Several GPUs share every batch under torchrun. An encoder makes what is learned
    from it look better on the images that it has seen: --leave-out keeps some of
    them for judging.

    [bold]Examples[/bold]

      naysay pretrain cifar10 --out encoders/cifar10
      naysay pretrain photos/ --method simsiam --epochs 100 \
          --out encoders/photos
      naysay fit photos/ --labels votes.csv \
          --encoder encoders/photos/encoder.safetensors --out RUN
      naysay pretrain photos/ --leave-out 0.1 --out encoders/most
      naysay fit photos/ --labels votes.csv --apart \
          --encoder encoders/most/encoder.safetensors --out RUN
      torchrun --standalone --nproc-per-node 4 -m naysay pretrain cifar10 \
          --out encoders/cifar10
    """
    from naysay import features
    from naysay.features.readout import ENOUGH
    from naysay.learning import RECIPES, environment
    from naysay.processes import join, one_voice

    with one_voice() as place:
        here = join()
        on_cpu = here.device.type == "cpu"
        methods = [name for name, row in RECIPES.items() if not row.needs_labels]
        if method is None:
            method = "emp" if on_cpu else "fastsiam"
        if method not in methods:
            raise unknown("method", method, methods)
        _refuse_others(out, methods)
        if seconds is not None and not seconds >= 0:
            raise InputError(f"--seconds must be at least 0; got {seconds:g}.")
        images, score, about = _images(data, folder, seed)
        config, fit = _settings(method, network, epochs, minutes, batch, seed, on_cpu)
        n = len(images) if leave_out is None else len(features.leave_out(len(images), leave_out, seed)[0])
        fewer = n - n % here.size  # every process takes an equal share of a batch
        if batch is None and 2 <= fewer < config.batch_size:
            config = replace(config, batch_size=fewer)
        tell = None if quiet or json else _Teller(here, n)
        trained = features.pretrain(
            images,
            config,
            folder=out,
            leave_out=leave_out,
            oracle=score,
            oracle_every=knn_every,
            save_every=save_every,
            seconds=seconds,
            fit=fit,
            estimate=None if tell is None else tell.before,
            report=None if tell is None else tell.epoch,
            processes=here,
        )
    if not place.first:
        return
    last, spent = trained.curve[-1], round(sum(line["seconds"] for line in trained.curve), 2)
    told = {"folder": str(out), "finished": trained.finished, "epochs": len(trained.curve), **last, "seconds": spent}
    config = trained.config
    end = f"stopped after epoch {len(trained.curve)} of {config.epochs}; the same call goes on"
    if trained.finished:
        made = environment(place.device, place.size)
        ends = trained.encoder is not trained.network
        readout = f"half whitened by the mean and axes of {min(n, ENOUGH)} training images, no labels"
        knn = None if score is None else round(score(trained.encoder), 4)
        if knn is not None:
            told |= {"knn": knn, "knn_network": last["knn"]}
            if tell is not None and ends:
                note(f"with its read-out: kNN accuracy {100 * knn:.1f} % (needs the truth)")
        card = {
            **about,
            **trained.seen,
            "method": method,
            "epochs": config.epochs,
            "knn": knn,
            "knn_network": last.get("knn"),
            "readout": readout if ends else None,
            "seconds": spent,
            "config": config.as_dict(),
            "command": command_line(),
            "hardware": made["hardware"],
            "versions": made["versions"],
            "date": made["started"],
        }
        end = told["encoder"] = str(out / "encoder.safetensors")
        features.save_encoder(out / "encoder.safetensors", trained.encoder, card)
    if json:
        say_json(told)
    else:
        print(end)


def _refuse_others(out: Path, methods: Sequence[str]) -> None:
    """Refuse a place that is neither new nor a folder that pretraining has begun: what is there would be lost."""
    from naysay.learning.folder import is_begun
    from naysay.runs import is_run

    try:
        out.lstat()  # which also says what is wrong with a name that nothing can have
    except FileNotFoundError:
        return
    if out.is_dir() and all(map(is_unfinished, out.iterdir())):
        return
    fitted = is_run(out)
    if fitted or not is_begun(out, methods):
        why = "is a run of naysay fit" if fitted else "was not begun by naysay pretrain"
        raise InputError(f"{out} {why}, so nothing is written there. Choose another folder.")


def _settings(
    method: str,
    network: str | None,
    epochs: int | None,
    minutes: float | None,
    batch: int | None,
    seed: int,
    on_cpu: bool,
) -> "tuple[Config, float | None]":
    """The settings, and the seconds that the run's length is to fit into, None where it is known."""
    from naysay.learning import RECIPES, configure
    from naysay.learning.recipes.multiview import SMALL_NETWORK

    if epochs is not None and minutes is not None:
        raise InputError("a run is as long as --epochs or as --minutes say; got both. Leave one out.")
    if minutes is not None and not 0 < minutes < math.inf:
        raise InputError(f"--minutes must be above 0; got {minutes:g}.")
    asked: dict[str, Any] = {"epochs": epochs, "batch_size": batch, "network": network}
    if network == "small" or (network is None and on_cpu):
        asked |= {name: value for name, value in SMALL_NETWORK.items() if name in RECIPES[method].option_names}
    config = configure(method, seed=seed, **{name: value for name, value in asked.items() if value is not None})
    if minutes is None and epochs is None and on_cpu:
        minutes = ON_A_CPU
    return config, None if minutes is None else 60 * minutes


class _Teller:
    """What is said of a run on standard error: how long it will take, then each epoch."""

    def __init__(self, place: "Processes", images: int) -> None:
        self.on_cpu, self.images, self.epochs, self.spent = place.device.type == "cpu", images, 0, 0.0

    def before(self, seconds: float, config: "Config") -> None:
        self.epochs = config.epochs
        where = count(cores.usable(), "core") if self.on_cpu else "a GPU"
        what = f"{count(config.epochs, 'epoch')} of {count(self.images, 'image')}, {config.options['views']} views each"
        note(f"{duration(seconds)} on this machine ({where}): {what}")
        if self.on_cpu:
            note(EMBEDDINGS)

    def epoch(self, line: dict[str, Any]) -> None:
        self.spent += line["seconds"]
        knn = f", kNN accuracy {100 * line['knn']:.1f} % (needs the truth)" if "knn" in line else ""
        figures = f"loss {line['loss']:.4f}, spread {line['spread']:.3f}, {self.spent:.0f} s{knn}"
        note(f"epoch {line['epoch']} of {self.epochs}: {figures}")


def duration(seconds: float) -> str:
    """About so long, as a sentence has it: seconds, minutes or hours."""
    if seconds < 90:
        return f"about {count(max(1, round(seconds)), 'second')}"
    if seconds < 90 * 60:
        return f"about {count(round(seconds / 60), 'minute')}"
    return f"about {seconds / 3600:.1f} hours"


def _images(data: str, folder: Path | None, seed: int) -> "tuple[Tensor, Score | None, dict[str, Any]]":
    """The images, the kNN accuracy of an encoder where the truth is known, and what to say of the data on the card."""
    import numpy as np

    from naysay import datasets, selection
    from naysay.reading import known_set

    known = known_set(data, folder)
    if known is not None:
        about = {"data": known.name, "hash": known.fingerprint, "images": len(known.x_train)}
        images = _stacked(known.x_train)
        return images, _oracle(images, known.y_train, _stacked(known.x_test), known.y_test), about
    if Path(data).suffix.lower() in TABLES:
        raise InputError(f"pretraining is for images; got the table {data}. Pass a folder of images, a .npy or a .npz.")
    items = datasets.from_folder(data) if Path(data).is_dir() else datasets.read_arrays(data)
    about = {"data": data, "hash": items.fingerprint, "images": len(items.x)}
    if items.x.ndim < 3:
        got = f"{data} holds rows of shape {tuple(items.x.shape[1:])}"
        raise InputError(f"pretraining is for images, (n, H, W) or (n, H, W, C); {got}.")
    images = _stacked(items.x)
    if items.y_true is None:
        return images, None, about
    # the names of subfolders are the truth: a tenth of the images asks the others
    y_true = np.unique(items.y_true.astype(np.str_), return_inverse=True)[1]
    rows, held = selection.hold_out(len(y_true), 0.1, seed)
    return images, _oracle(images[rows], y_true[rows.numpy()], images[held], y_true[held.numpy()]), about


def _stacked(x: Any) -> "Tensor":
    """Images as a tensor (n, H, W, C)."""
    import numpy as np
    import torch

    # torch takes no read-only map
    return torch.from_numpy(np.require(x if x.ndim == 4 else x[..., None], requirements=["C", "W"]))


def _oracle(train: "Tensor", y_true: Any, test: "Tensor", y_test: Any) -> "Score":
    import torch

    from naysay.features import embed, oracle_knn_accuracy

    truth, asked = torch.from_numpy(y_true), torch.from_numpy(y_test)

    def score(encoder: "nn.Module") -> float:
        near = embed(encoder, train), truth, embed(encoder, test), asked
        return oracle_knn_accuracy(*near, k=min(KNN, len(train)))

    return score
