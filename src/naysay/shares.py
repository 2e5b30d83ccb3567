"""Class shares: labels that some classes attract, made to speak for the classes as common as these are known to be.

The trouble. People and language models name some classes far more often than others. The least named class of a
neighbourhood is then an unpopular one, not the true one, and every loss that assumes even naming learns it. How common
the classes are (their *shares*, often simply even) is knowledge that takes the popularity out again.

The maths. Labels Z (n, K) after sharing, m (K,) how often each class is named by the labels as they were given:

- evidence `L[i, c] = -10 Z[i, c] / m[c]`: how often c is named here against how often it is named at all. A class that
  is never named here beats one that is named as usual by 10 nats. A class that nobody ever names is named "as usual"
  everywhere. With a T it is the likelihood of 64 labels, `L[i, c] = 64 sum_k Z[i, k] log T[c, k]`.
- posterior `P = softmax(L + b)` with one offset b_c per class, such that the mean of P over the rows with labels is the
  shares. b minimises the convex `mean_i logsumexp(L_i + b) - shares . b` and is unique up to a constant (it is the
  entropic optimal transport of rows to classes); Newton's method finds it to 1e-7 in five to ten passes. A class of
  share 0 has P = 0. With a T and no shares b is 0.
- corrected labels `Z' = (1 - P) / (K - 1)`: what uniform labels would be under that posterior. They are `comp` again,
  rows sum to 1, the least named class is the most likely one, and every loss may take them as uniform.

The constants. 10 was set on CIFAR-10 and CIFAR-20, with labels of LLaVA and of the published human matrices, by the
truth; 5 to 20 differ there by at most 1.7 points. A slope by 1 / m beats an equal one by 5 points on LLaVA's 20
classes. 64 is the paper's number of neighbours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay import transition
from naysay.errors import InputError
from naysay.statistics import fit

SHARPNESS = 10.0  # nats between a class that is never named here and one that is named as often as anywhere
EVIDENCE = 64.0  # labels that a shared row is worth, under a T: the paper's number of neighbours
LEAST = 1e-3  # no entry of a T is taken to be smaller: one label must not rule a class out
BEHIND = {torch.float32: 40.0, torch.float64: 700.0}
EXACT = 1e-7  # how far a class's share may be off: what float32 posteriors of a million rows can tell
PASSES, HALVINGS, FURTHEST = 100, 30, 20.0  # at most; of the offsets in one step, in nats
# when stated shares are doubted: labels so far off by chance, by so much of all instances; the standard errors that are
# left to popularity; the part of the classes that may well be an instance's own; labels expected of a cell that counts
BY_CHANCE, OFF, ERRORS, LIKELY, FEWEST = 1e-4, 0.1, 2.0, 1 / 3, 5.0
BLOCK = 65_536  # rows at a time: they stay in the cache, and a million need little memory

# from offsets b (K,) to the sums over rows of logsumexp(L + b), of P (K,) and of P^T P (K, K), and the rows' number;
# in double precision if the second argument says so
Moments = Callable[[Tensor, bool], tuple[float, Tensor, Tensor, int]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """From shared labels to posteriors: how often each class is named at all (K,), or T; and the offsets b (K,)."""

    named: Tensor
    T: Tensor | None = None
    offsets: Tensor | None = None  # None: no shares are known

    def logits(self, Z: Tensor) -> Tensor:
        """L + b (n, K), of shared labels Z (n, K)."""
        if self.T is not None:
            L = EVIDENCE * Z @ self.T.clamp_min(LEAST).log().to(Z).T
        else:
            named = self.named.to(Z)
            L = -SHARPNESS * torch.where(named > 0, Z / named.clamp_min(torch.finfo(Z.dtype).tiny), 1.0)
        return L if self.offsets is None else L + self.offsets.to(L)

    @property
    def of_a_label(self) -> float:
        """By how many nats a logit differs for one label, where that is all the mass of a row; on average."""
        if self.T is not None:
            return float(-EVIDENCE * self.T.clamp_min(LEAST).log().mean())
        return SHARPNESS * len(self.named)

    def posterior(self, Z: Tensor) -> Tensor:
        """P (n, K)."""
        odds, _ = self.odds(Z)
        return odds / odds.sum(1, keepdim=True)

    def odds(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """The odds (n, K) of the classes against each row's likeliest, and its logit (n, 1).

        In float32 a class 40 nats behind is out of the question: smaller numbers than normal ones would cost much time.
        """
        logits = self.logits(Z)
        top = logits.amax(1, keepdim=True)
        odds = (logits - top).clamp_min_(-BEHIND[Z.dtype]).exp_()
        if self.offsets is not None and bool((absent := self.offsets.isneginf()).any()):
            odds[:, absent.to(odds.device)] = 0.0
        return odds, top

    def correct(self, Z: Tensor) -> Tensor:
        """Z' (n, K), uniform labels that say what the posterior says; rows without labels stay without."""
        corrected = torch.empty_like(Z)
        for start in range(0, len(Z), BLOCK):
            some = Z[start : start + BLOCK]
            even = (1 - self.posterior(some)) / (Z.shape[1] - 1)
            corrected[start : start + BLOCK] = even * (some.sum(1, keepdim=True) > 0)
        return corrected


def read(class_shares: Any, n_classes: int) -> Tensor | None:
    """The shares (K,) in float64: None where they are not known, even ones, or those given, checked."""
    if class_shares is None:
        return None
    if isinstance(class_shares, str):
        if class_shares != "even":
            can = 'None, "even", or a share for each class'
            raise InputError(f"class_shares must be {can}; got {class_shares!r}.")
        # K numbers for the solver, which works on the CPU
        return torch.full((n_classes,), 1 / n_classes, dtype=torch.float64, device="cpu")
    try:
        numbers = as_floats(class_shares)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    shares = torch.from_numpy(numbers)
    if shares.shape != (n_classes,):
        got = f"shape {tuple(shares.shape)}" if shares.ndim and len(shares) else repr(class_shares)
        raise InputError(f"class_shares must be {n_classes} numbers, one for each class; got {got}.")
    if not bool(torch.isfinite(shares).all()) or bool((shares < 0).any()) or abs(float(shares.sum()) - 1) > 1e-4:
        got = f"{[round(share, 4) for share in shares.tolist()]}, which sum to {float(shares.sum()):.4g}"
        raise InputError(f"class_shares must be at least 0 and sum to 1; got {got}. Divide counts by their sum.")
    return shares / shares.sum()


def as_floats(numbers: Any) -> Any:
    """An array of anybody's numbers in float64; a list keeps all its digits, which torch would not."""
    return np.array(numbers.tolist() if isinstance(numbers, Tensor) else numbers, dtype=np.float64)


def find(Z: Tensor, given: Tensor, class_shares: Any = None, T: Any = None) -> Evidence:
    """How posteriors follow from labels Z (n, K) that were shared from `given` (n, K); see the module's maths."""
    n_classes = Z.shape[1]
    shares = read(class_shares, n_classes)
    known = None if T is None else transition.validate(T, n_classes)
    evidence = Evidence(how_often(given), known)
    if shares is None:
        return evidence

    def look(offsets: Tensor, double: bool) -> tuple[float, Tensor, Tensor, int]:
        return moments(Evidence(evidence.named, known, offsets), Z, double)

    return with_offsets(evidence, shares, look)


def contradicted(given: Tensor, others: Tensor, class_shares: Any) -> Tensor | None:
    """The shares (K,) that labels `given` (n, K) imply, where they contradict those stated; None where they do not.

    Even naming names class k with m_k = (1 - share_k) / (K - 1): labels then tell the shares, and stated ones may be
    far off. But popularity moves m as well, and then m says nothing about the shares. The two are told apart by the
    instances that are hardly of class k, as the labels of `others` (n, K), their neighbours, say: there even naming
    names no class above 1 / (K - 1), while popularity names some as much more often as it does on the whole.
    """
    shares = read(class_shares, given.shape[1])
    if shares is None:
        return None
    reached = (given.sum(1) > 0) & (others.sum(1) > 0)
    own, n_classes, n = given[reached], len(shares), int(reached.sum())
    named, expected = how_often(own).cpu(), (1 - shares) / (n_classes - 1)
    implied = 1 - (n_classes - 1) * named
    test = fit(n * named.numpy(), n * expected.numpy(), n_classes - 1)
    if test.p_value > BY_CHANCE or float((implied - shares).abs().sum()) / 2 < OFF:
        return None
    may_be = others[reached].topk(max(1, round(LIKELY * n_classes)), dim=1, largest=False).indices
    hardly = torch.ones_like(own).scatter_(1, may_be, 0.0)
    by_class = torch.zeros_like(own).scatter_(1, may_be[:, :1], 1.0).T  # (K, n), by the class least named around
    met, most = ((by_class @ cells).double().cpu() for cells in (own * hardly, hardly / (n_classes - 1)))
    there = most > FEWEST
    above = ((met - most)[there] / most[there].sqrt()).clamp_min(0.0).square()
    # of a normal deviate, the square where it is positive has mean 1/2 and variance 5/4
    if float(above.sum()) > 0.5 * len(above) + ERRORS * (1.25 * len(above)) ** 0.5:
        return None
    more = implied < shares  # named more often than the stated shares allow, if naming is even
    count = float(met[:, more].sum())
    here, popular = count / max(float(most[:, more].sum()), 1.0), float(named[more].sum() / expected[more].sum())
    if here + ERRORS * here / max(count, 1.0) ** 0.5 > (1 + popular) / 2:
        return None
    return implied.clamp_min(0.0) / implied.clamp_min(0.0).sum()


def how_often(given: Tensor) -> Tensor:
    """How often each class is named (K,), of the labels of all rows that have some; float64."""
    labelled = (given.sum(1) > 0).sum().clamp_min(1)
    return given.sum(0, dtype=torch.float64) / labelled


def with_offsets(evidence: Evidence, shares: Tensor, moments: Moments) -> Evidence:
    """The evidence with offsets for which the mean posterior is the shares; `moments` looks at all rows."""
    offsets, off = solve(lambda b: moments(b, False), shares)
    if off > EXACT:  # evidence so hard that float32 has no number for what the offsets must lift
        offsets, _ = solve(lambda b: moments(b, True), shares)
    return Evidence(evidence.named, evidence.T, offsets)


def moments(evidence: Evidence, Z: Tensor, double: bool = False) -> tuple[float, Tensor, Tensor, int]:
    """What `solve` needs to know of rows Z (n, K) under one vector of offsets; rows without labels are left out."""
    n_classes, value, rows = Z.shape[1], 0.0, 0
    mass = torch.zeros(n_classes, dtype=torch.float64, device=Z.device)
    square = torch.zeros(n_classes, n_classes, dtype=torch.float64, device=Z.device)
    for start in range(0, len(Z), BLOCK):
        some = Z[start : start + BLOCK].to(torch.float64 if double else Z.dtype)
        reached = some.sum(1) > 0
        odds, top = evidence.odds(some if bool(reached.all()) else some[reached])
        total = odds.sum(1, keepdim=True)
        P = odds / total
        value += float((total.log() + top).sum(dtype=torch.float64))
        mass += P.sum(0, dtype=torch.float64)
        square += (P.T @ P).double()
        rows += len(P)
    return value, mass.cpu(), square.cpu(), rows


def solve(moments: Callable[[Tensor], tuple[float, Tensor, Tensor, int]], shares: Tensor) -> tuple[Tensor, float]:
    """Offsets b (K,), float64, for which the mean posterior over all rows is the shares, and how far it is still off.

    The offset of a share of 0 is -inf.
    """
    present = shares > 0
    offsets = torch.where(present, shares.clamp_min(torch.finfo(torch.float64).tiny).log(), -torch.inf)
    wanted = shares[present]

    def look(b: Tensor) -> tuple[float, Tensor, Tensor]:
        value, mass, square, rows = moments(torch.full_like(offsets, -torch.inf).masked_scatter(present, b))
        mean = mass[present] / max(rows, 1)
        bend = torch.diag(mean) - square[present][:, present] / max(rows, 1)
        return value / max(rows, 1) - float(wanted @ b), mean - wanted, bend

    b = offsets[present]
    if len(b) == 1:
        return offsets, 0.0
    value, off, bend = look(b)
    for _ in range(PASSES):
        if float(off.abs().max()) < EXACT:
            break
        # the constant direction changes nothing: the ones fill it, and a trace of the diagonal keeps rows of hard
        # posteriors, where the bend vanishes, from dividing by 0
        filled = bend + 1 / len(b) ** 2 + 1e-9 * torch.eye(len(b), dtype=b.dtype, device=b.device)
        step = -torch.linalg.solve(filled, off)
        descent, reach = float(off @ step), min(1.0, FURTHEST / float(step.abs().max()))
        for _ in range(HALVINGS):
            new = look(b + reach * step)
            # near the end the value changes by less than its rounding, and only the gradient can tell
            if new[0] <= value + 1e-4 * reach * descent or float(new[1].abs().max()) <= 0.5 * float(off.abs().max()):
                break
            reach /= 2
        else:
            break
        b, (value, off, bend) = b + reach * step, new
    return offsets.masked_scatter(present, b - b.mean()), float(off.abs().max())
