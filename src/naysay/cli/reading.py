"""What was asked for on the command line about items and labels, and what was read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from naysay.cli.truth import Truth
from naysay.errors import InputError
from naysay.labels import Contradictions
from naysay.runs import Labelled


@dataclass(frozen=True)
class Reading:
    """The options that say where items and labels are; their help is in `naysay.cli.options`."""

    data: str
    id: str | None = None
    label: Sequence[str] = ()
    features: Sequence[str] = ()
    ignore: Sequence[str] = ()
    truth: str | None = None
    labels: Path | None = None
    item: str | None = None
    annotator: str | None = None
    options: str | None = None
    classes: Sequence[str] | None = None
    merge_spelling: bool = False
    contradictions: Contradictions = "raise"
    transition: str | None = None
    n_labels: int | None = None
    seed: int = 0
    folder: Path | None = None

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Self:
        """From a command's arguments by name; those of other names say nothing about reading."""
        given = {field.name: asked[field.name] for field in fields(cls) if asked.get(field.name) is not None}
        if "classes" in given:
            given["classes"] = [name.strip() for name in given["classes"].split(",")]
        return cls(**given)

    def only(self, option: str) -> str | None:
        """The one value of an option that may be repeated elsewhere."""
        values = getattr(self, option)
        if len(values) > 1:
            raise InputError(f"only one --{option} can be named here; got {', '.join(values)}.")
        return values[0] if values else None


@dataclass(frozen=True, eq=False)
class Input:
    """What was read: labelled items, and the truth where it is known."""

    labelled: Labelled
    truth: Truth | None
