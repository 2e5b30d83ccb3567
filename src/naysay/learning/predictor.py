"""A trained model ready for use: raw rows in, logits, probabilities, representations or classes out, in batches.

It carries what a model alone does not know: how its inputs were normalised, and how its loss's outputs become classes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from naysay import losses, models
from naysay.errors import InputError, intact
from naysay.learning import folder
from naysay.learning.config import Config
from naysay.learning.rows import Normaliser, as_inputs, input_shape

BATCH = 2048


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model with its normaliser, config, the shape it takes, and T (the trained one for cpe-t; None is uniform).

    sharpness: what its scores are multiplied by before they become probabilities; 1 for a model as it was trained.
    flips: average the logits of an image and of its mirror image, left to right: twice the time, and right more often
    where mirror images are of the same class.
    """

    model: nn.Module
    normaliser: Normaliser
    config: Config
    shape: tuple[int, ...]
    T: Tensor | None = None
    sharpness: float = 1.0
    flips: bool = False

    def logits(self, x: Any) -> Tensor:
        """Logits (n, K) of rows `x` as given for training: tables (n, d), images (n, H, W) or (n, H, W, C)."""
        if self.flips and len(self.shape) != 3:
            raise InputError("flips are for images (n, H, W) or (n, H, W, C); the model takes a table.")
        return torch.cat([self.look(part) for part in self._inputs(x)])

    def look(self, part: Tensor) -> Tensor:
        """Logits (B, K) of rows that are normalised."""
        logits: Tensor = self.model(part).float()
        return (logits + self.model(part.flip(3)).float()) / 2 if self.flips else logits

    def represent(self, x: Any) -> Tensor:
        """The representation (n, d) before the last layer."""
        if not hasattr(self.model, "represent"):
            raise InputError(
                f"{type(self.model).__name__} has no method represent(x) -> (n, d); "
                "give it one, or use a model of naysay.models."
            )
        return torch.cat([self.model.represent(part).float() for part in self._inputs(x)])  # type: ignore[operator]  # checked above

    def predict(self, x: Any) -> Tensor:
        """Class numbers (n,)."""
        return self.decode(self.logits(x))

    def decode(self, logits: Tensor) -> Tensor:
        """Class numbers (n,) of logits (n, K), as the loss asks: the largest, or for cpe-* the nearest row of T."""
        return losses.predict(self.config.loss, logits, self.T)

    def scores(self, logits: Tensor) -> Tensor:
        """Scores of the classes (n, K) of logits (n, K), as the loss means them; the largest is the prediction."""
        return losses.scores(self.config.loss, logits, self.T)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities of the classes (n, K) of logits (n, K), in float64; the largest is the prediction."""
        return losses.probabilities(self.config.loss, self.sharpness * self.scores(logits))

    def _inputs(self, x: Any) -> Iterator[Tensor]:
        x = as_inputs(x, exact=self.normaliser.mean.dtype == torch.float64)
        if input_shape(x) != self.shape:
            raise InputError(
                f"the model takes rows of shape {self.shape} (images as channels, height, width); got {input_shape(x)}."
            )
        device = self.normaliser.mean.device
        self.model.eval()
        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=self.config.mixed(device)):
            for part in x.split(BATCH):
                yield self.normaliser(part.to(device))

    def tensors(self) -> dict[str, Tensor]:
        """All its numbers by name, for a safetensors file."""
        state = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        state |= {"normaliser.mean": self.normaliser.mean, "normaliser.deviation": self.normaliser.deviation}
        return state if self.T is None else state | {"T": self.T}

    def description(self) -> dict[str, Any]:
        """What is needed to build it again, for JSON."""
        about = {"config": self.config.as_dict(), "input_shape": list(self.shape), "n_classes": self._n_classes()}
        unusual = {"sharpness": self.sharpness} if self.sharpness != 1 else {}
        return about | unusual | ({"flips": True} if self.flips else {})

    def _n_classes(self) -> int | None:
        head = getattr(self.model, "head", None)
        return head.out_features if isinstance(head, nn.Linear) else None

    def save(self, path: str | Path) -> None:
        """Write it to one safetensors file, atomically."""
        folder.save(Path(path), self.tensors(), self.description())

    @classmethod
    def load(cls, path: str | Path, model: nn.Module | None = None, device: torch.device | str = "cpu") -> Self:
        """The predictor of a file that `save` wrote.

        A run folder's checkpoint.safetensors (last epoch) and best.safetensors are such files too. A model that is not
        of naysay.models must be given as `model`, to take the weights.
        """
        return cls.of(*folder.load(Path(path)), path, model, device)

    @classmethod
    def of(
        cls,
        tensors: Mapping[str, Tensor],
        meta: Mapping[str, Any],
        path: str | Path,
        model: nn.Module | None = None,
        device: torch.device | str = "cpu",
    ) -> Self:
        """The predictor of `tensors()` and `description()`, which were read from `path`."""
        with intact(path, "Train the model again."):
            config, shape = Config.from_dict(meta["config"]), tuple(meta["input_shape"])
            if model is None:
                model = models.build(config.model, shape, meta["n_classes"], config.seed, **config.model_options)
            state = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
            normaliser = Normaliser(tensors["normaliser.mean"], tensors["normaliser.deviation"])
            sharpness = float(meta.get("sharpness", 1.0))
            if not 0 < sharpness < float("inf"):
                raise ValueError(f"its sharpness is {sharpness}")
            odd = [name for name, t in tensors.items() if t.is_floating_point() and not bool(t.isfinite().all())]
            if odd or normaliser.mean.shape != normaliser.deviation.shape or len(normaliser.mean) != shape[0]:
                raise ValueError(f"{odd[0]} is not finite" if odd else "the normaliser is of another shape")
        if {n: t.shape for n, t in state.items()} != {n: t.shape for n, t in model.state_dict().items()}:
            raise InputError(
                f"{path} holds the weights of another model than {type(model).__name__}; "
                "pass the model it was trained with."
            )
        model.load_state_dict(state)
        placed = model.to(device).eval(), normaliser.to(torch.device(device))
        return cls(*placed, config, shape, tensors.get("T"), sharpness, meta.get("flips") is True)
