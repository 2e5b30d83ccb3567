"""What a run of any kind gives: its figures, and what the record says of where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from naysay.paper.values import TRAINING, Value
from naysay.learning import Config


@dataclass(frozen=True)
class Result:
    """Figures by name; each epoch's, where the experiment is about epochs; the encoder, where one took part."""

    figures: Mapping[str, float | int | None]
    history: list[dict[str, Any]] | None = None
    encoder: dict[str, Any] | None = None


def config(values: Mapping[str, Value], encoder: str | None = None) -> Config:
    """The training settings among a run's values."""
    settings: dict[str, Any] = {name: values[name] for name in TRAINING if name in values}
    return Config(**settings, encoder=encoder)
