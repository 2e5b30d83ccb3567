"""Hold out, then share: rows are put aside FIRST, then labels are shared among the training rows only.

The order is the point. A held-out row that took part in the sharing would judge models by labels that its own label had
shaped. Unlabelled rows only receive; they cannot judge, so `split` and `folds` draw the held-out rows from the others.

With few labels a held-out tenth decides little. `folds` holds every labelled row out once: as many models are trained,
each label judges the one that did not see it, and all labels take part in a comparison (cross-fitting).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from naysay import labels, selection
from naysay.augmentation import augment
from naysay.errors import InputError
from naysay.learning import HeldOut
from naysay.seeds import stream


@dataclass(frozen=True, eq=False)
class Parted:
    """Numbers, in the full set, of the training and held-out rows, the labels given to the former, and the latter."""

    rows: Tensor
    held_rows: Tensor
    given: Tensor
    held_out: HeldOut | None  # None where none were asked for


@dataclass(frozen=True, eq=False)
class Prepared(Parted):
    """What training takes: the training rows `x`, and the labels `comp` that sharing made of those given."""

    x: Any
    comp: Tensor


def split(comp: Tensor, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Numbers of the rows to train on and to hold out, which are a `share` of the labelled rows."""
    labelled = _labelled(comp)
    held = labelled[selection.hold_out(len(labelled), share, seed)[1]]
    return _others(comp, held), held


def only(comp: Tensor, among: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of the rows to train on and to hold out, which are the labelled ones `among` these."""
    held = among[comp[among].sum(1) > 0]
    return _others(comp, held), held


def folds(comp: Tensor, n_folds: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """For each fold the rows to train on and to hold out: each labelled row is held out once, at random."""
    labelled = _labelled(comp)
    if not 4 <= 2 * n_folds <= len(labelled):
        must = "there must be at least 2 folds, with at least 2 labelled rows each"
        raise InputError(f"{must}; got folds={n_folds} for {len(labelled)} labelled rows. Use fewer folds, or folds=1.")
    order = labelled[torch.from_numpy(stream(seed, "folds").permutation(len(labelled)))]
    parts = [order[at::n_folds].sort().values for at in range(n_folds)]
    return [(_others(comp, held), held) for held in parts]


def _labelled(comp: Tensor) -> Tensor:
    labelled = comp.sum(1).nonzero()[:, 0]
    if not len(labelled):
        raise InputError(
            f"no row has a label; got {len(comp)} rows without any. Check that the label column was read at all."
        )
    return labelled


def _others(comp: Tensor, held: Tensor) -> Tensor:
    keep = torch.ones(len(comp), dtype=torch.bool, device=comp.device)
    keep[held] = False
    return keep.nonzero()[:, 0]


def part(x: Any, comp: Tensor, rows: Tensor, held_rows: Tensor, criterion: str = "ure-accuracy") -> Parted:
    """Rows `x` with labels `comp` (n, K) in two parts, by row numbers."""
    held = HeldOut(take(x, held_rows), comp[held_rows], criterion) if len(held_rows) else None
    return Parted(rows, held_rows, comp[rows], held)


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
    """Hold a random share of rows `x` with labels `comp` (n, K) out, and share labels among the others by `scheme`.

    features: (n, d), in which neighbours are looked up. `augmentation` is passed to `naysay.augment` (n_neighbors,
    alpha, gamma, ...). The share is one of all rows, so that the split depends on their number and the seed alone.
    """
    comp = labels.validate(comp)
    if len(x) != len(comp) or (features is not None and len(features) != len(comp)):
        got = "none" if features is None else len(features)
        raise InputError(f"x, features and comp must have the same rows; got {len(x)}, {got}, {len(comp)}.")
    if features is None and scheme != "none":
        raise InputError(
            f"scheme {scheme!r} shares labels between neighbours and needs features (n, d); pass features=..., or "
            'scheme="none".'
        )
    rows = torch.arange(len(comp), device=comp.device)
    held_rows = rows[:0]
    if held_out:
        rows, held_rows = (part.to(comp.device) for part in selection.hold_out(len(comp), held_out, seed))
    parted = part(x, comp, rows, held_rows, criterion)
    shared = parted.given
    if scheme != "none":
        shared = torch.as_tensor(augment(take(features, rows), shared, scheme=scheme, **augmentation))
    return Prepared(**vars(parted), x=take(x, rows), comp=shared)


def take(array: Any, rows: Tensor) -> Any:
    """These rows of an array, or of a tensor on any device."""
    return array[rows.to(array.device)] if isinstance(array, Tensor) else array[rows.numpy(force=True)]
