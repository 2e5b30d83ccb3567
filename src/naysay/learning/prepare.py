"""From all rows to what training takes: rows are held out FIRST, then labels are shared among the training rows only.

The order is the point. A held-out row that took part in the sharing would judge models by labels that its own label had
shaped.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from naysay import labels, selection
from naysay.errors import InputError
from naysay.learning.train import HeldOut


@dataclass(frozen=True, eq=False)
class Prepared:
    """Training rows with the labels to train on, the labels they were given, and the held-out rows (None where none
    were asked for).
    """

    x: Any
    comp: Tensor
    given: Tensor
    held_out: HeldOut | None
    rows: Tensor  # numbers, in the full set, of the training rows
    held_rows: Tensor


def prepare(
    x: Any,
    comp: Any,
    *,
    features: Any = None,
    scheme: str = "none",
    held_out: float = 0.1,
    criterion: str = "ure-accuracy",
    seed: int = 0,
    **augmentation: Any,
) -> Prepared:
    """Split a random `held_out` share off rows `x` with labels `comp` (n, K), then augment the rest by `scheme` in
    `features` (n, d).

    `augmentation` is passed to `naysay.augment` (n_neighbors, alpha, gamma, ...). Nothing of the held-out rows reaches
    it.
    """
    from naysay.augmentation import augment

    comp = labels.validate(comp)
    if len(x) != len(comp) or (features is not None and len(features) != len(comp)):
        raise InputError(
            f"x, features and comp must have the same rows; got {len(x)}, "
            f"{'none' if features is None else len(features)}, {len(comp)}."
        )
    if features is None and scheme != "none":
        raise InputError(
            f"scheme {scheme!r} shares labels between neighbours and needs features (n, d); pass features=..., or "
            'scheme="none".'
        )
    rows, held_rows = (
        selection.hold_out(len(comp), held_out, seed)
        if held_out
        else (torch.arange(len(comp)), torch.empty(0, dtype=torch.long))
    )
    given = comp[rows]
    shared = (
        given
        if scheme == "none"
        else torch.as_tensor(augment(_take(features, rows), given, scheme=scheme, **augmentation))
    )
    held = HeldOut(_take(x, held_rows), comp[held_rows], criterion) if held_out else None
    return Prepared(_take(x, rows), shared, given, held, rows, held_rows)


def _take(array: Any, rows: Tensor) -> Any:
    return array[rows.to(array.device)] if isinstance(array, Tensor) else array[rows.numpy()]
