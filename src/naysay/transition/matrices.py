"""Transition matrices: uniform, biased, noisy, and those that people and machines were seen to have.

`T` is a float64 (K, K) tensor; row y is the distribution of the label named as wrong when the true class is y, so rows
sum to 1. The diagonal is 0 unless labels are noisy. In float64, as some losses invert T, which may be ill-conditioned.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import torch
from torch import Tensor

from naysay import labels
from naysay.errors import InputError, unknown
from naysay.labels import check_n_classes
from naysay.seeds import torch_stream

ROW_SUM_TOLERANCE = 1e-4  # published matrices are printed with four decimals
LARGEST_CONDITION = 1e6  # beyond it, float32 features of the answer are noise

# The share of labels that go to each of three groups of the K-1 wrong classes (Lin & Lin 2023, after Gao & Zhang 2021)
STRENGTHS = {"weak": (0.45, 0.30, 0.25), "strong": (0.75, 0.24, 0.01)}


def uniform(n_classes: int) -> Tensor:
    """Every wrong class is named equally often: 1/(K-1) off the diagonal."""
    check_n_classes(n_classes)
    # no input says where: matrices of this module are made on the CPU, and moved by who uses them
    return (1 - torch.eye(n_classes, dtype=torch.float64, device="cpu")) / (n_classes - 1)


def biased(n_classes: int, strength: str | Sequence[float] = "strong", seed: int = 0) -> Tensor:
    """Each class has wrong classes it prefers to name: "weak", "strong", or the shares of any number of groups.

    For each true class, the wrong classes are dealt at random into groups as equal as can be; a group's share is split
    evenly. Where K-1 is less than the number of groups, the shares of the empty ones go to the others in proportion.
    """
    check_n_classes(n_classes)
    if isinstance(strength, str):
        if strength not in STRENGTHS:
            raise unknown("strength", strength, STRENGTHS)
        strength = STRENGTHS[strength]
    generator = torch_stream(seed, "biased transition")
    device = generator.device
    shares = torch.tensor(list(strength), dtype=torch.float64, device=device)
    if len(shares) == 0 or bool((shares < 0).any()) or not torch.isclose(shares.sum(), shares.new_tensor(1.0)):
        raise InputError(f"the groups' shares must be at least 0 and sum to 1; got {list(strength)}.")
    group = torch.arange(n_classes - 1, device=device)
    if n_classes > len(shares):
        group = group * len(shares) // (n_classes - 1)
    dealt = shares[group] / torch.bincount(group)[group]
    T = torch.zeros(n_classes, n_classes, dtype=torch.float64, device=device)
    classes = torch.arange(n_classes, device=device)
    for y in range(n_classes):
        others = classes[classes != y]
        order = torch.randperm(n_classes - 1, generator=generator, device=device)
        T[y, others[order]] = dealt / dealt.sum()
    return T


def noisy(T: Tensor, rate: float) -> Tensor:
    """A share `rate` of the labels is drawn from all K classes, the true one included: (1 - rate) T + rate / K."""
    T = validate(T)
    if not 0 <= rate <= 1:
        raise InputError(f"the noise rate must be 0 to 1; got {rate}.")
    return (1 - rate) * T + rate / len(T)


def popularity(comp: Any) -> Tensor:
    """Every class is named as often as it is popular, whatever the true one: T[y, k] in proportion to how often the
    labels `comp` (n, K) name k at all, and 0 on the diagonal.

    It is the simplest T of biased labels. A class that is never named is taken to be named half a time in all, so that
    T keeps an inverse.
    """
    given = labels.validate(comp).double()
    named = given.sum(0).clamp_min(0.5)
    T = named.repeat(len(named), 1).fill_diagonal_(0.0)
    return T / T.sum(1, keepdim=True)


@dataclass(frozen=True)
class Published:
    """A transition matrix as somebody published it: what was counted, and where it comes from."""

    name: str
    about: str
    source: str


HUMAN = {
    row.name: row
    for row in (
        Published(
            "clcifar10",
            "three human labels per CIFAR-10 image (read off a published heat map, about +-0.0014)",
            "CLCIFAR10",
        ),
        Published("clcifar10-first", "one human label per CIFAR-10 image, exact counts", "CLCIFAR10"),
        Published("clcifar20", "three human labels per CIFAR-100 image in 20 classes, exact counts", "CLCIFAR20"),
        Published("aclcifar10", "nine labels per CIFAR-10 image by LLaVA, exact counts", "ACLCIFAR10"),
        Published(
            "aclcifar10r",
            "six labels per CIFAR-10 image by LLaVA, options in random order, exact counts",
            "ACLCIFAR10-R",
        ),
        Published("aclcifar20", "three labels per CIFAR-100 image in 20 classes by LLaVA, exact counts", "ACLCIFAR20"),
    )
}


def human(name: str) -> Tensor:
    """A published matrix by name (see `HUMAN`): how annotators chose what to name as wrong."""
    if name not in HUMAN:
        raise unknown("published transition matrix", name, HUMAN)
    counts = torch.tensor(_published()[name], dtype=torch.float64, device="cpu")  # read from a file
    return counts / counts.sum(1, keepdim=True)


@cache
def _published() -> dict[str, list[list[float]]]:
    text = resources.files("naysay.transition").joinpath("published.json").read_text()
    matrices: dict[str, list[list[float]]] = json.loads(text)
    return matrices


def validate(T: Any, n_classes: int | None = None) -> Tensor:
    """`T` as a float64 (K, K) tensor whose rows are known to be distributions."""
    matrix = read(T)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"T must be a (K, K) matrix, a row per true class; got shape {tuple(matrix.shape)}.")
    if n_classes is not None and len(matrix) != n_classes:
        raise InputError(f"T must have a row and a column per class; got {len(matrix)} rows for {n_classes} classes.")
    check_n_classes(len(matrix))
    check_rows(matrix)
    return matrix


def read(T: Any) -> Tensor:
    """What was passed as T as a float64 tensor; refused where it holds no numbers, or rows of different lengths."""
    if isinstance(T, Tensor):
        return T.to(torch.float64)
    try:
        return torch.as_tensor(T).detach().to(torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"T must be a (K, K) matrix of numbers, all rows of one length; got {T!r}.") from None


def check_rows(matrix: Tensor) -> None:
    """Raise InputError unless the rows (m, K) are distributions."""
    if not bool(torch.isfinite(matrix).all()) or bool((matrix < 0).any()):
        raise InputError(
            "T must hold probabilities, T[y, k] = P(k is named as wrong | true class y); "
            "got negative numbers, NaN or infinity."
        )
    sums = matrix.sum(1)
    if bool(((sums - 1).abs() > ROW_SUM_TOLERANCE).any()):
        at = int((sums - 1).abs().argmax())
        turned = bool(((matrix.sum(0) - 1).abs() <= ROW_SUM_TOLERANCE).all())
        way_out = "Its columns do: pass T.T." if turned else "Divide each row by its sum."
        raise InputError(f"rows of T must sum to 1; row {at} sums to {float(sums[at]):.4g}. {way_out}")


def invertible(T: Tensor) -> bool:
    """Whether T (K, K), or each of several (m, K, K), is conditioned well enough to be solved with."""
    return bool((torch.linalg.cond(T.detach().double()) < LARGEST_CONDITION).all())


def solve(T: Tensor, right: Tensor) -> Tensor:
    """X with T X = right. Refused where T is too ill-conditioned: the answer would be rounding error."""
    if not invertible(T):
        condition = float(torch.linalg.cond(T.detach()))
        raise InputError(
            f"T has no usable inverse (condition number {condition:.2g}, at most {LARGEST_CONDITION:.0g} is allowed), "
            "so unbiased risk estimates do not exist for it. "
            "Use a loss that needs no inverse (fwd, scl-nl, cpe-f) or another T."
        )
    solution: Tensor = torch.linalg.solve(T, right)
    return solution
