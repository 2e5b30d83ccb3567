"""Instances with complementary labels: what every command starts from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from naysay.datasets import Items


@dataclass(frozen=True, eq=False)
class Labelled:
    """n items, their labels `comp` (n, K) and the names of the K classes.

    table: the long rows the labels came from, columns item, label and perhaps annotator and options; None where they
    came otherwise.
    origin: where all this comes from, for the record (JSON).
    """

    items: Items
    comp: Tensor
    classes: tuple[str, ...]
    table: Mapping[str, Any] | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
