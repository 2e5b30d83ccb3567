"""The classifier that a portfolio leaves: trained parts with spaces, factors and weights, in one safetensors file.

Every part is plain arrays and numbers, so nothing is ever unpickled; what a changed file claims is checked before it is
used.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from naysay import tensors
from naysay.bases import BaseModel, BoostedModel, ForestModel, LinearModel, NearestModel, NetworkModel, Trees
from naysay.bases.through import LEAST, Floats, softmax
from naysay.errors import InputError, intact
from naysay.learning import Predictor
from naysay.portfolio.spaces import Space

FORMAT, KEY = "naysay-mixture-1", "naysay"
AGAIN = "Fit it again."
KINDS: Mapping[str, type] = {
    "linear": LinearModel,
    "forest": ForestModel,
    "boosting": BoostedModel,
    "nearest": NearestModel,
    "network": NetworkModel,
}


@dataclass(frozen=True, eq=False)
class Part:
    """A candidate's model in its space; its logits are taken times the factor."""

    name: str
    space: Space
    model: BaseModel
    factor: float

    def probabilities(self, x: Any) -> Floats:
        """Calibrated probabilities (n, K) of rows x."""
        return softmax(self.factor * self.model.logits(self.space(x)))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Parts by their weights; `offsets` (K,) are added to the log probabilities of the mixture.

    doubt: the weight of "any class alike" beside the parts; n labels cannot show that less than 1 in n is wrong.
    shape: of the rows it takes, (d,) or that of images. It is used as `naysay.learning.Predictor` is.
    """

    parts: tuple[Part, ...]
    weights: Floats
    offsets: Floats
    shape: tuple[int, ...]
    doubt: float = 0.0

    def logits(self, x: Any) -> Tensor:
        """Log probabilities (n, K), float64, of rows x as they were given for training."""
        if tuple(x.shape[1:]) != self.shape:
            raise InputError(f"the model takes rows of shape {self.shape}; got {tuple(x.shape[1:])}.")
        if isinstance(x, np.ndarray) and x.dtype.kind == "f" and not np.isfinite(x).all():
            raise InputError("x must be finite; got NaN or infinity. Fill or drop the missing values first.")
        mixed = sum(weight * part.probabilities(x) for weight, part in zip(self.weights, self.parts, strict=True))
        doubted = (1 - self.doubt) * np.asarray(mixed) + self.doubt / len(self.offsets)
        return torch.from_numpy(np.log(np.maximum(doubted, LEAST)) + self.offsets).log_softmax(1)

    def scores(self, logits: Tensor) -> Tensor:
        """Scores of the classes (n, K) of what `logits` gave; the largest is the prediction."""
        return logits

    def probabilities(self, scores: Tensor) -> Tensor:
        """Probabilities (n, K) of what `logits` or `scores` gave, or of some of its columns."""
        return scores.softmax(1)

    def decode(self, logits: Tensor) -> Tensor:
        """Class numbers (n,) of what `logits` gave."""
        return logits.argmax(1)

    def description(self) -> dict[str, Any]:
        """What is needed to build it again, beside its arrays, for JSON."""
        parts = [
            {"name": part.name, "factor": part.factor, "space": part.space.kind, **_numbers(part.model)}
            for part in self.parts
        ]
        return {"parts": parts, "shape": list(self.shape), "n_classes": len(self.offsets), "doubt": self.doubt}

    def tensors(self) -> dict[str, Tensor]:
        """All its arrays by name."""
        arrays = {"weights": self.weights, "offsets": self.offsets}
        for at, part in enumerate(self.parts):
            arrays |= {f"{at}.space.{name}": array for name, array in _arrays(part.space).items()}
            arrays |= {f"{at}.model.{name}": array for name, array in _arrays(part.model).items()}
        # copies: parts may share an array, which a file may not
        return {name: torch.as_tensor(array).clone() for name, array in arrays.items()}

    def save(self, path: str | Path) -> None:
        """Write it to one safetensors file, atomically."""
        tensors.save(Path(path), self.tensors(), self.description(), format=FORMAT, key=KEY)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The mixture of a file that `save` wrote, after checking that it can answer."""
        found, about = tensors.load(Path(path), format=FORMAT, key=KEY, what="mixture", way_out=AGAIN)
        with intact(path, AGAIN):
            shape, n_classes = tuple(about["shape"]), about["n_classes"]
            for name, tensor in found.items():
                if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
                    raise ValueError(f"{name} is not finite")
            parts = [_read(found, at, part, path) for at, part in enumerate(about["parts"])]
            whole = cls(tuple(parts), found["weights"].numpy(), found["offsets"].numpy(), shape, float(about["doubt"]))
            if whole.offsets.shape != (n_classes,) or not 0 <= whole.doubt <= 1 or (whole.weights < 0).any():
                raise ValueError("its weights, offsets or doubt are none of a mixture")
            # shapes that do not fit each other show at the first row, and before that trees that never end
            for part in parts:
                if not part.space.fits(math.prod(shape)):
                    raise ValueError(f"the space of {part.name} is of other columns")
                if part.factor < 0 or getattr(part.model, "bias", whole.offsets).shape != (n_classes,):
                    raise ValueError(f"the factor or the bias of {part.name} is none of {n_classes} classes")
                trees = getattr(part.model, "trees", None)
                if trees is not None and not trees.sound(math.prod(shape)):
                    raise ValueError(f"the trees of {part.name} lead nowhere")
            answer = whole.logits(np.zeros((2, *shape)))
            if answer.shape != (2, n_classes) or not bool(answer.isfinite().all()):
                raise ValueError("it has no answer")
        return whole


def _numbers(model: BaseModel) -> dict[str, Any]:
    """A model's kind and the plain numbers among its fields."""
    kind = next(name for name, row in KINDS.items() if isinstance(model, row))
    if isinstance(model, NetworkModel):
        return {"kind": kind, "network": model.predictor.description()}
    values = {field.name: getattr(model, field.name) for field in fields(model)}  # type: ignore[arg-type]  # records
    return {"kind": kind, **{name: value for name, value in values.items() if isinstance(value, int)}}


def _arrays(record: Any) -> dict[str, Any]:
    """The arrays among a record's fields, by name, those of records within it too."""
    if isinstance(record, NetworkModel):
        return dict(record.predictor.tensors())
    arrays: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif isinstance(value, Trees):
            arrays |= {f"{field.name}.{name}": array for name, array in _arrays(value).items()}
    return arrays


def _read(found: Mapping[str, Tensor], at: int, about: Mapping[str, Any], path: str | Path) -> Part:
    """The part number `at` of the arrays found and of what is said about it."""
    own = {name.removeprefix(f"{at}."): tensor for name, tensor in found.items() if name.startswith(f"{at}.")}
    space = {name.removeprefix("space."): t.numpy() for name, t in own.items() if name.startswith("space.")}
    model = {name.removeprefix("model."): t for name, t in own.items() if name.startswith("model.")}
    kind = KINDS[about["kind"]]
    if kind is NetworkModel:
        fitted: BaseModel = NetworkModel(Predictor.of(model, about["network"], path))
    else:
        arrays = {name: tensor.numpy() for name, tensor in model.items()}
        inner = {name.removeprefix("trees."): arrays.pop(name) for name in list(arrays) if name.startswith("trees.")}
        trees = {"trees": Trees(**inner)} if inner else {}
        numbers = {field.name: about[field.name] for field in fields(kind) if field.name in about}
        fitted = kind(**arrays, **trees, **numbers)
    return Part(str(about["name"]), Space(about["space"], **space), fitted, float(about["factor"]))
