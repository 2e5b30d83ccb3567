"""What a run's `correction` means: how shared labels are put right (`naysay.shares`), as settings of `naysay.augment`.

none         not at all: the least named class
even         by even class shares alone
popularity   by even class shares and a T that names every wrong class as often as it is named at all
estimated    by even class shares and the T that labels and neighbours show (`transition.estimate`)
oracle       by even class shares and the labels' true T: a ceiling, for which the truth is needed
"""

from typing import Any

from torch import Tensor

from naysay import transition


def settings(kind: str, comp: Tensor, near: Any, y_true: Tensor) -> dict[str, Any]:
    """Settings of `augment` for labels `comp` (n, K); `near` is the graph or the features of their rows."""
    if kind == "none":
        return {}
    T = None
    if kind == "popularity":
        T = transition.popularity(comp)
    elif kind == "estimated":
        T = transition.estimate(comp, near, class_shares="even").T
    elif kind == "oracle":
        T = transition.oracle_empirical(y_true, comp)
    return {"class_shares": "even", "transition": T}
