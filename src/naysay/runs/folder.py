"""The run folder: what `fit` leaves and `predict` and `report` need, and nothing else.

| file | what |
| --- | --- |
| model.safetensors | the trained model with its normalisation; or mixture.safetensors, several of them |
| run.json | classes, input columns and what each became, or image size, settings, results, versions, hashes |
| columns.safetensors | the words of text columns, where a table has some |
| encoder.safetensors, encoder.json | the encoder that makes rows of images, where the models learned those |
| records.jsonl | a line per epoch of every scheme that was tried (the mean of its folds), and of the last training |
| audit.json | the audit of the labels |
| report.npz, report.html | what the report shows, and the report |
"""

import datetime
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from naysay import models, tensors
from naysay import report as page
from naysay.datasets.recipe import Columns
from naysay.errors import InputError, intact
from naysay.features import Frozen
from naysay.learning import Predictor, as_onnx, environment, recipes
from naysay.learning.rows import as_inputs, input_shape
from naysay.portfolio import Mixture
from naysay.reading import Labelled, Oracle
from naysay.runs.account import DOUBTFUL, EXAMPLES, NEIGHBORS, POINTS, account
from naysay.runs.fit import Fitted
from naysay.runs.report import AGAIN, build, read_json
from naysay.runs.results import judging, plain, results, verdict
from naysay.runs.settings import Settings
from naysay.words import writable

FORMAT = "naysay-run-1"
WORDS, IN_WORDS = "columns.safetensors", {"format": "naysay-columns-1", "key": "columns"}
BLOCK = 65_536  # rows predicted at a time
MODEL, MIXTURE, ENCODER = "model.safetensors", "mixture.safetensors", "encoder.safetensors"
MIXED = 16 << 20  # bytes that a mixture takes at most, beside the rows that neighbours are asked among
ENCODED = 24 << 20  # bytes of an encoder: a ResNet-18 in half precision, with its card


def write(
    fitted: Fitted,
    data: Labelled,
    folder: str | Path,
    *,
    oracle: Oracle | None = None,
    command: str = "",
    words: Callable[[str], str] = str,
) -> dict[str, Any]:
    """Write a run into the (new, empty) folder; the content of run.json is returned.

    oracle: what the truth says, where it is known, to be shown beside the predictions in the report. words: turns
    what is said to whoever wrote Python, such as class_shares=, into what the command calls it.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    about, arrays = describe(fitted, data, command), account(fitted, data)
    about["verdict"] = words(about["verdict"])
    about["never_predicted"] = [data.classes[at] for at in np.flatnonzero(arrays["class_counts"] == 0)]
    if oracle is not None:
        arrays |= {f"{part}_truth": oracle.of_rows(arrays[f"{part}_row"]) for part in ("map", "item")}
    fitted.kept.predictor.save(folder / (MIXTURE if fitted.settings.auto else MODEL))
    _write_json(folder / "run.json", about)
    if (columns := fitted.taken(data).items.columns) is not None and (vocabulary := columns.arrays()):
        held = {name: torch.from_numpy(array) for name, array in vocabulary.items()}
        tensors.save(folder / WORDS, held, {}, **IN_WORDS)
    if fitted.encoder is not None:
        fitted.encoder.save(folder / ENCODER)
    _write_json(folder / "audit.json", fitted.audit.said(words).as_dict())
    lines = "".join(json.dumps(line) + "\n" for line in _records(fitted, about))
    (folder / "records.jsonl").write_text(lines, encoding="utf-8")
    with (folder / "report.npz").open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    page.write(build(folder), folder / "report.html")
    return about


def room(data: Labelled, settings: Settings) -> int:
    """About how many bytes `write` will need, so that a full disk can be told before the work."""
    x, config = as_inputs(data.items.x[:1]), settings.config
    recipes.refuse_unfit(config, data.items.x)
    if settings.auto:
        weights = MIXED + 8 * len(data.items.x) * (math.prod(x.shape[1:]) + len(data.classes))
        weights += ENCODED if settings.embeds else 0
    else:
        model = models.build(config.model, input_shape(x), len(data.classes), config.seed, **config.model_options)
        weights = sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())
    shown = POINTS * 4 * max(map(len, data.items.ids)) + 4 * (EXAMPLES * (1 + NEIGHBORS) + DOUBTFUL) * x.nbytes
    words = sum(array.nbytes for array in data.items.columns.arrays().values()) if data.items.columns is not None else 0
    return int(weights + shown + words) + 2000 * config.epochs * len(settings.schemes) + (1 << 21)  # and the page


def describe(fitted: Fitted, data: Labelled, command: str) -> dict[str, Any]:
    """What run.json holds."""
    items = fitted.taken(data).items
    inputs = data.origin.get("columns") if items.columns is None else list(items.columns.inputs)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    about = {
        "format": FORMAT,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "classes": list(data.classes),
        "input": {
            "kind": "images" if items.x.ndim > 2 else "table",
            "shape": list(items.x.shape[1:]),
            **{name: data.origin.get(name) for name in ("id", "lists", "array")},
            "columns": inputs,
            "recipe": None if items.columns is None else items.columns.as_dict(),
            "encoder": None if fitted.encoder is None else fitted.encoder.hash,
        },
        "data": {**data.origin, "rows": len(items.x), "hash": data.items.fingerprint},
        "labels": fitted.audit.as_dict()["coverage"],
        "space": fitted.space.about,
        "settings": fitted.settings.as_dict(),
        "transition": None if fitted.T is None else fitted.T.tolist(),
        "training_rows": len(fitted.rows),
        "judging": judging(fitted),
        "chosen": fitted.chosen.name,
        "verdict": verdict(fitted),
        "results": results(fitted),
        "seconds": round(fitted.seconds, 3),
        **environment(device, fitted.processes),
    }
    clean: dict[str, Any] = plain(about)
    return clean


def _records(fitted: Fitted, about: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield {"kind": "run", **about}
    for attempt in fitted.attempts:
        for figures in attempt.history:
            yield {"kind": "epoch", "scheme": attempt.name, **figures}
    for figures in fitted.kept.history if fitted.settings.refit and not fitted.settings.auto else ():
        yield {"kind": "epoch on all labels", "scheme": about["chosen"], **figures}
    yield {"kind": "result", "chosen": about["chosen"], "results": about["results"]}


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    path.write_bytes(text.encode("utf-8", "backslashreplace"))  # names that are no text: as JSON escapes them


def is_run(folder: str | Path) -> bool:
    """Whether a folder is one that `write` made."""
    path = Path(folder) / "run.json"
    try:
        return path.is_file() and read_json(path).get("format") == FORMAT
    except (OSError, InputError):  # it is not ours, whatever it is
        return False


@dataclass(frozen=True, eq=False)
class Run:
    """A run read back, ready to predict: `about` is its run.json."""

    folder: Path
    about: dict[str, Any]
    predictor: Predictor | Mixture
    columns: Columns | None = None  # what the columns of its table became; None of images, arrays and old runs
    encoder: Frozen | None = None  # that makes of images the rows which its mixture takes

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The run in `folder`, on the GPU where there is one."""
        folder = Path(folder)
        if not is_run(folder):
            why = "it has no readable run.json of this version" if folder.is_dir() else "there is no such folder"
            way_out = "Make one with the command naysay fit, or naysay.runs.write."
            raise InputError(f"{folder} is not a run folder: {why}. {way_out}")
        about = read_json(folder / "run.json")
        device = "cuda" if torch.cuda.is_available() else "cpu"
        mixed = folder / MIXTURE
        predictor = Mixture.load(mixed) if mixed.exists() else Predictor.load(folder / MODEL, device=device)
        encoder = _encoder(folder, about)
        described = predictor.description()["n_classes"]
        for name in _unwritable(about):
            raise InputError(f"{folder / 'run.json'} is damaged: the class {name!r} is not UTF-8 text. {AGAIN}")
        if not _belongs(about, predictor.shape, described, encoder):
            model = f"the model beside it ({described} classes)"
            raise InputError(f"{folder / 'run.json'} does not belong to {model}. Fit it again.")
        return cls(folder, about, predictor, _columns(folder, about["input"]), encoder)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        return tuple(self.about["classes"])

    def rows(self, x: Any) -> Any:
        """Rows `x` as its model takes them: of images, where it has an encoder, what that makes of them."""
        return x if self.encoder is None else self.encoder(x)

    def predict(self, x: Any, ids: Sequence[str] = ()) -> tuple[Tensor, Tensor]:
        """Class numbers (n,) and probabilities (n, K) of rows `x` as they were given for training.

        ids: what the rows are called in the sentence about one that the model has no answer to.
        """
        parts = (self.rows(x[start : start + BLOCK]) for start in range(0, len(x), BLOCK))
        return self._decode(torch.cat([self.predictor.logits(part).cpu() for part in parts]), ids)

    def predict_rows(self, rows: Any, ids: Sequence[str] = ()) -> tuple[Tensor, Tensor]:
        """What `predict` gives, of what `rows` made of them: who needs both has the encoder look once."""
        parts = (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
        return self._decode(torch.cat([self.predictor.logits(part).cpu() for part in parts]), ids)

    def _decode(self, logits: Tensor, ids: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Class numbers (n,) and probabilities (n, K) of logits (n, K)."""
        for row in (~logits.isfinite().all(1)).nonzero()[:1].flatten().tolist():
            odd = f"item {ids[row]!r}" if len(ids) else f"row {row}"
            why = "has values so far from those of training that the model's answer is not a number"
            raise InputError(f"{odd} {why}. Mend it or leave it out.")
        return self.predictor.decode(logits), self.predictor.probabilities(logits).float()

    def as_onnx(self) -> bytes:
        """The content of an ONNX file of its network, with classes and input columns; a mixture has no such form."""
        if not isinstance(self.predictor, Predictor):
            raise InputError(
                f"{self.folder} holds a mixture of models, of which trees and neighbours are no networks: ONNX is "
                'written of one network. Fit one, with model="mlp" or another.'
            )
        names = {"classes": list(self.classes)}
        return as_onnx(self.predictor, names if self.columns is None else names | {"columns": list(self.columns.names)})


def _columns(folder: Path, input: Mapping[str, Any]) -> Columns | None:
    """What the columns became, from run.json and the words beside it; of an old run, None."""
    if input.get("recipe") is None:
        return None
    words = folder / WORDS
    arrays = tensors.load(words, what="columns", way_out=AGAIN, **IN_WORDS)[0] if words.exists() else {}
    with intact(folder / "run.json", AGAIN):
        columns = Columns.from_dict(input["recipe"], {name: array.numpy() for name, array in arrays.items()})
        if [columns.n_columns] != input["shape"]:
            raise InputError(f"its columns become {columns.n_columns}, and the model was trained on others. {AGAIN}")
    return columns


def _encoder(folder: Path, about: Mapping[str, Any]) -> Frozen | None:
    """The encoder of a run whose models learned what it makes of images, the very one; of any other run, None."""
    input = about.get("input")
    wanted = input.get("encoder") if isinstance(input, dict) else None
    if wanted is None:
        return None
    encoder = Frozen.load(folder / ENCODER, AGAIN)
    if encoder.hash != wanted:
        other = "is another encoder than the run was made with: the hashes differ"
        raise InputError(f"{folder / ENCODER} {other}. {AGAIN}")
    return encoder


INPUT: Mapping[str, tuple[type, ...]] = {  # what `predict` goes by, and its types
    "kind": (str,),
    "shape": (list,),
    "id": (str, NoneType),
    "columns": (list, NoneType),
    "lists": (bool, NoneType),
    "array": (str, NoneType),
}


def _unwritable(about: Mapping[str, Any]) -> list[str]:
    """The names of classes that no file of predictions could hold."""
    names = about.get("classes")
    return [name for name in names if isinstance(name, str) and not writable(name)] if isinstance(names, list) else []


def _belongs(about: Mapping[str, Any], shape: Sequence[int], n_classes: int | None, encoder: Frozen | None) -> bool:
    """Whether a run.json says what `predict` needs, of rows of the model's shape and of its classes."""
    names, input = about.get("classes"), about.get("input")
    if not isinstance(names, list) or not isinstance(input, dict) or not INPUT.keys() <= input.keys():
        return False
    typed = all(isinstance(input[name], types) for name, types in INPUT.items())
    if not typed or not all(isinstance(text, str) for text in [*names, *(input["columns"] or [])]):
        return False
    sides = input["shape"]
    rows = sides if len(sides) == 1 else [*(sides[2:] or [1]), *sides[:2]]  # images have their channels last here
    if encoder is not None:  # of images of any size it makes rows of its own width
        fits = len(sides) in (2, 3) and list(shape) == [encoder.width]
    else:
        fits = list(shape) in (rows, sides)
    return len({*names}) == len(names) == n_classes and fits
