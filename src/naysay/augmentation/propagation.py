"""Algorithm 1: labels travel over the neighbour graph, round by round (arXiv 2305.08344).

Z starts as Y, the given labels; in each round every row keeps alpha of its own Y and takes the rest from what its
neighbours had the round before, Z = alpha * Y + (1 - alpha) * W Z; at the end each row is divided by its sum.

A row without labels (all zero in Y) only receives in the first round, and from then on passes on what it received. Its
mass, and that of rows near it, stays below 1 between rounds, so little-informed rows count for little; the division at
the end makes every reached row sum to 1. A row that no label reaches within the rounds stays all zero.

One round is one product with a matrix of k entries in every row. Three backends do it, equal to rounding (below 1e-6
against double precision), chosen by where the labels are and how much there is to do:

| backend | chosen for | what |
| --- | --- | --- |
| triton | CUDA devices, where triton is installed (as with torch for Linux) | `kernel_gpu`, captured and replayed |
| numba | long work on a CPU (`LONG_ROUNDS`, `LONG_WORK`), where it is installed | `kernel_cpu`, vectors on all cores |
| torch | everything else | `torch.nn.functional.embedding_bag` |
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import torch
from torch import Tensor

from naysay.errors import InputError, unknown
from naysay.progress import track

# step(shared, out) writes one round, out = own + weights @ shared, between two (n, K) buffers
Step = Callable[[Tensor, Tensor], None]
# the labels after the last round and after the one before it, and how many rounds there were
Rounds = tuple[Tensor, Tensor, int]

# numba's import and the ordering of the rows cost about ten rounds; below 1e9 multiply-adds embedding_bag ends sooner
LONG_ROUNDS, LONG_WORK = 10, 10**9


@dataclass(frozen=True, eq=False)
class Propagation:
    """Labels after sharing: `labels` (n, K) float32, rows summing to 1, or to 0 where no label reaches.

    rounds: those that `backend` ran. change: the largest change of any entry in the last of them, before the division.
    """

    labels: Tensor
    rounds: int
    change: float
    backend: str


def propagate(
    indices: Tensor,
    weights: Tensor,
    comp: Tensor,
    *,
    alpha: float = 0.1,
    rounds: int = 100,
    tol: float | None = None,
    backend: str = "auto",
) -> Propagation:
    """Labels `comp` (n, K) after `rounds` of sharing along `indices` (n, k), weighed by `weights` (n, k).

    The rows of `weights` sum to 1. alpha is the weight of a row's own labels, above 0 and at most 1. With `tol` the
    rounds end early, after the first in which no entry changed by more than tol; no entry is then further than
    tol * (1 - alpha) / alpha from where endless rounds would lead.
    """
    check_settings(alpha, rounds, tol)
    _check_shapes(indices, weights, comp)
    name = _choose(comp.device, rounds, rounds * indices.numel() * comp.shape[1]) if backend == "auto" else backend
    if name not in BACKENDS:
        raise unknown("backend", name, [*BACKENDS, "auto"])
    given = comp.to(torch.float32).contiguous()
    damped = (weights.to(torch.float32) * (1 - alpha)).contiguous()
    columns = indices.to(torch.int32).contiguous()
    last, before, done = BACKENDS[name](columns, damped, given, alpha=alpha, rounds=int(rounds), tol=tol)
    change = float((last - before).abs().max()) if done else 0.0
    return Propagation(divide_rows(last), done, change, name)


def divide_rows(labels: Tensor) -> Tensor:
    """Rows (n, K) divided by their sums; rows of zeros stay."""
    sums = labels.sum(1, keepdim=True)
    return labels / sums.where(sums > 0, 1.0)


def iterate(step: Step, shared: Tensor, spare: Tensor, rounds: int, tol: float | None) -> Rounds:
    """Run the rounds back and forth between two buffers, of which `shared` holds the given labels."""
    for done in track(range(1, rounds + 1), rounds, "sharing labels"):
        step(shared, spare)
        shared, spare = spare, shared
        if tol is not None and float((shared - spare).abs().max()) <= tol:
            return shared, spare, done
    return shared, spare, rounds


def _torch(indices: Tensor, weights: Tensor, given: Tensor, *, alpha: float, rounds: int, tol: float | None) -> Rounds:
    own, bag = alpha * given, torch.nn.functional.embedding_bag

    def step(shared: Tensor, out: Tensor) -> None:
        torch.add(own, bag(indices, shared, per_sample_weights=weights, mode="sum"), out=out)

    return iterate(step, given.clone(), torch.empty_like(given), rounds, tol)


def _numba(indices: Tensor, weights: Tensor, given: Tensor, *, alpha: float, rounds: int, tol: float | None) -> Rounds:
    from naysay.augmentation import kernel_cpu

    return kernel_cpu.run(indices, weights, given, alpha, partial(iterate, rounds=rounds, tol=tol))


def _triton(indices: Tensor, weights: Tensor, given: Tensor, *, alpha: float, rounds: int, tol: float | None) -> Rounds:
    from naysay.augmentation import kernel_gpu

    step, shared, spare = kernel_gpu.step_of(indices, weights, alpha * given), given.clone(), torch.empty_like(given)
    # a tolerance is looked at after every round, and triton's interpreter on a CPU has nothing to capture
    replayed = given.is_cuda and tol is None
    return kernel_gpu.replay(step, shared, spare, rounds) if replayed else iterate(step, shared, spare, rounds, tol)


BACKENDS = {"torch": _torch, "numba": _numba, "triton": _triton}


def _choose(device: torch.device, rounds: int, multiply_adds: int) -> str:
    if device.type == "cuda" and find_spec("triton") is not None:
        return "triton"
    if device.type == "cpu" and rounds >= LONG_ROUNDS and multiply_adds >= LONG_WORK and find_spec("numba") is not None:
        return "numba"
    return "torch"


def check_settings(alpha: float | str, rounds: int | None, tol: float | None) -> None:
    """Raise InputError unless the settings of the propagation can be used."""
    if not isinstance(alpha, str) and not 0 < alpha <= 1:  # a word is checked where it is taken
        must = "alpha, the weight of a row's own labels, must be above 0 and at most 1"
        raise InputError(f"{must}; got {alpha}. The paper uses 0.1.")
    if rounds is not None and (rounds % 1 != 0 or rounds < 0):
        must = f"rounds must be a whole number of at least 0; got {rounds}"
        raise InputError(f"{must}. Leave it out to use the scheme's own.")
    if tol is not None and not (math.isfinite(tol) and tol >= 0):
        raise InputError(f"tol must be a number of at least 0, or None to run every round; got {tol}.")


def _check_shapes(indices: Tensor, weights: Tensor, comp: Tensor) -> None:
    matrices = indices.ndim == comp.ndim == 2 and indices.shape == weights.shape
    if not matrices or len(comp) != len(indices) or indices.numel() == 0:
        need = "indices and weights (n, k) and labels (n, K) with the same n, and at least one neighbour"
        got = f"{tuple(indices.shape)}, {tuple(weights.shape)} and {tuple(comp.shape)}"
        raise InputError(f"propagation needs {need}; got shapes {got}.")
    # the kernels read memory at these numbers, so a wrong one must not get that far
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= len(comp):
        raise InputError(f"indices must be row numbers from 0 to {len(comp) - 1}; got {low} to {high}.")
