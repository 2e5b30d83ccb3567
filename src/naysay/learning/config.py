"""What a run of learning is: one frozen record of settings, from keywords or from a TOML or JSON file.

Everything here decides the weights (with the data, the labels and T); where the run happens (devices, folder) is no
part of it. The first settings are the loop's and every recipe's; those of the model and of what is fed are for recipes
that learn a classifier; `options` are the recipe's own (see `naysay.learning.recipes`). The defaults train a table or
small images in seconds; `PAPER` holds what Lin et al. 2023 use for images, as far as they say.
"""

import dataclasses
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import torch

from naysay.errors import InputError, unknown
from naysay.learning.recipe import refuse_non_numbers
from naysay.models import MODELS

CHOICES = MappingProxyType(
    {
        "optimizer": ("adamw", "sgd", "muon"),
        "schedule": ("constant", "cosine"),
        "padding": ("reflect", "zero"),
        "precision": ("32-true", "bf16-mixed", "auto"),
        "compile": ("auto", "yes", "no"),
    }
)


@dataclass(frozen=True)
class Config:
    """Settings of one run; the values are checked when it is made."""

    loss: str = "scl-nl"
    eps: float = 0.0  # the floor inside logarithms that published code has (1e-6); 0 works in log space
    model: str = "mlp"
    model_options: Mapping[str, int] = field(default_factory=dict)
    encoder: str | None = None  # a safetensors file: start from this encoder's weights (fine-tuning)
    epochs: int = 30
    batch_size: int = 64
    optimizer: str = "adamw"
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    momentum: float = 0.9  # sgd's and muon's
    schedule: str = "cosine"  # to 0 over the whole run; or "constant"
    warmup_epochs: int = 0  # the learning rate rises linearly from 0
    normalise: bool = True  # by the training rows' own mean and deviation; else images in [0, 1], tables as they are
    crop: int = 0  # random crop after padding by so many pixels a side
    padding: str = "reflect"
    flip: bool = False  # left to right, every second image at random
    precision: str = "32-true"  # or "bf16-mixed"; "auto" is bf16-mixed on a GPU and 32-true elsewhere
    compile: str = "auto"
    seed: int = 0
    recipe: str = "plain"
    options: Mapping[str, Any] = field(default_factory=dict)  # the recipe's own settings by name

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        from naysay.learning import recipes  # the table's rows are made of configs

        refuse_non_numbers(self)
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)
        for name in ("warmup_epochs", "crop"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0; got {getattr(self, name)}.")
        for name in ("eps", "momentum"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 0 and below 1; got {getattr(self, name)}.")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InputError(
                f"learning_rate must be above 0; got {self.learning_rate}. "
                "1e-3 is a good start for adamw, 1e-1 for sgd."
            )
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise InputError(f"weight_decay must be at least 0; got {self.weight_decay}.")
        if self.warmup_epochs >= self.epochs:
            raise InputError(
                f"warmup_epochs must be below epochs; got {self.warmup_epochs} of {self.epochs}. Take more."
            )
        if self.model in MODELS:  # a model of the caller's own has options of its own
            MODELS[self.model].check_options(self.model_options)
        row = recipes.get(self.recipe)
        row.refuse_unused(self)
        # with the defaults of what was left out, so that two configs of the same settings are equal
        object.__setattr__(self, "options", row.all_options(self))

    def mixed(self, device: torch.device) -> bool:
        """Whether products are rounded to bfloat16 on `device`."""
        return self.precision == "bf16-mixed" or (self.precision == "auto" and device.type == "cuda")

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """The config of a mapping such as a parsed file holds; types are checked and converted by pydantic."""
        from pydantic import TypeAdapter, ValidationError

        names = [f.name for f in dataclasses.fields(cls)]
        for name in settings:
            if name not in names:
                raise unknown("setting", name, names)
        try:
            return TypeAdapter(cls).validate_python(dict(settings))
        except ValidationError as error:
            first = error.errors()[0]
            if isinstance(cause := first.get("ctx", {}).get("error"), InputError):
                raise cause from None
            where, why = ".".join(str(part) for part in first["loc"]), first["msg"]
            raise InputError(f"setting {where} cannot be {first['input']!r:.80}: {why[0].lower()}{why[1:]}.") from None

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """The config of a .toml or .json file; settings it leaves out keep their defaults."""
        path = Path(path)
        readers = {".toml": tomllib.loads, ".json": json.loads}
        if path.suffix not in readers:
            raise InputError(f"a config is a .toml or .json file; got {path.name}.")
        if not path.is_file():
            raise InputError(f"there is no config file {path}.")
        try:
            settings = readers[path.suffix](path.read_text(encoding="utf-8"))
            if not isinstance(settings, dict):
                raise InputError(f"{path} must hold settings by name; got a {type(settings).__name__}.")
            return cls.from_dict(settings)
        except InputError:  # which is a ValueError, as what the readers raise
            raise
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is not valid {path.suffix[1:].upper()}: {error}.") from None
        except RecursionError:
            raise InputError(f"{path} is nested too deeply. A config holds settings by name.") from None

    def as_dict(self) -> dict[str, Any]:
        """The settings by name, ready for JSON: those that the recipe has a use for."""
        from naysay.learning import recipes

        named = {**dataclasses.asdict(self), "model_options": dict(self.model_options)}
        unused = recipes.get(self.recipe).unused if self.recipe != "plain" else ("recipe", "options")
        return {name: value for name, value in named.items() if name not in unused}
