"""`naysay pretrain`: an encoder from images alone, for the space in which labels are shared."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from naysay.cli import options as o
from naysay.cli.output import command_line, note, say_json
from naysay.errors import InputError, unknown
from naysay.files import is_unfinished

if TYPE_CHECKING:
    from torch import Tensor, nn

    Score = Callable[[nn.Module], float]

learning = partial(o.option, None)  # these stand in the first panel of the help
BATCH = "Images in a step; else the method's own (128, 128 and 512)."
SECONDS = "Stop after the epoch in which they run out; call again to go on."
KNN_EVERY = "Epochs between two looks at kNN accuracy, where the truth is known."
KNN = 200  # neighbours of the accuracy on the side, as self-supervised work reports it


def pretrain(
    data: o.Data,
    *,
    out: Annotated[Path, o.output("--out", "FOLDER", "The folder to make, or to continue in.")],
    method: Annotated[str, learning("--method", "NAME", "fastsiam, emp, or simsiam.")] = "fastsiam",
    epochs: Annotated[int | None, learning("--epochs", None, "Else the method's own (200, 150, 800).", min=1)] = None,
    batch: Annotated[int | None, learning("--batch", None, BATCH, min=2)] = None,
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
    encoder.safetensors with its card, encoder.json. Where the truth is known,
    kNN accuracy is shown on the side; training never sees it. A GPU is used
    where there is one, and is needed for photographs: on a CPU this is for
    small images and patience. Several GPUs share every batch under torchrun.

    [bold]Examples[/bold]

      naysay pretrain cifar10 --out encoders/cifar10
      naysay pretrain photos/ --method simsiam --epochs 100 \
          --out encoders/photos
      naysay fit photos/ --labels votes.csv \
          --encoder encoders/photos/encoder.safetensors --out RUN
      torchrun --standalone --nproc-per-node 4 -m naysay pretrain cifar10 \
          --out encoders/cifar10
    """
    from naysay import features
    from naysay.learning import RECIPES, configure, environment
    from naysay.processes import join, one_voice

    with one_voice() as place:
        methods = [name for name, row in RECIPES.items() if not row.needs_labels]
        if method not in methods:
            raise unknown("method", method, methods)
        begun = any((out / name).is_file() for name in ("checkpoint.safetensors", "records.jsonl"))
        if out.exists() and not begun and (not out.is_dir() or not all(map(is_unfinished, out.iterdir()))):
            raise InputError(f"{out} exists and holds no checkpoint to continue. Choose another folder.")
        images, score, about = _images(data, folder, seed)
        asked = {"epochs": epochs, "batch_size": batch}
        config = configure(method, seed=seed, **{name: value for name, value in asked.items() if value is not None})
        trained = features.pretrain(
            images,
            config,
            folder=out,
            oracle=score,
            oracle_every=knn_every,
            save_every=save_every,
            seconds=seconds,
            report=None if quiet or json else _tell(config.epochs),
            processes=join(),
        )
    if not place.first:
        return
    last, spent = trained.curve[-1], round(sum(line["seconds"] for line in trained.curve), 2)
    told = {"folder": str(out), "finished": trained.finished, "epochs": len(trained.curve), **last, "seconds": spent}
    end = f"stopped after epoch {len(trained.curve)} of {config.epochs}; the same call goes on"
    if trained.finished:
        made = environment(place.device, place.size)
        card = {
            **about,
            "method": method,
            "epochs": config.epochs,
            "knn": last.get("knn"),
            "seconds": spent,
            "config": trained.config.as_dict(),
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


def _tell(epochs: int) -> Callable[[dict[str, Any]], None]:
    spent = 0.0

    def tell(line: dict[str, Any]) -> None:
        nonlocal spent
        spent += line["seconds"]
        knn = f", kNN accuracy {100 * line['knn']:.1f} % (needs the truth)" if "knn" in line else ""
        figures = f"loss {line['loss']:.4f}, spread {line['spread']:.3f}, {spent:.0f} s{knn}"
        note(f"epoch {line['epoch']} of {epochs}: {figures}")

    return tell


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
