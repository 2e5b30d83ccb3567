"""One compilation for all runs that can share it.

torch.compile keeps what it compiled with the code, not with the module: a second learner of the same model, loss, batch
and classes finds it (only its CUDA graphs are recorded anew, because its weights lie elsewhere). But it keeps at most 8
forms of one function (`torch._dynamo.config.recompile_limit`) and then quietly compiles no more; it takes a second
shape as a hint that shapes vary, and compiles slower code that allows for that; and it stops recording after 128 sets
of weights. So runs come in groups that share a compilation, and between groups, or after `MANY` runs, everything is
forgotten; Inductor's own cache on disk stays.
"""

from collections.abc import Hashable, Iterable, Mapping

import torch

from reproduction import sets
from reproduction.spec import Wanted
from reproduction.values import Value

MANY = 100

_group: Hashable = None  # of the last run in this process
_runs = 0


def group(experiment: str, values: Mapping[str, Value]) -> tuple[Hashable, ...]:
    """What runs must have in common to share a compilation."""
    entry = sets.row(values["dataset"]).entry
    names = ("recipe", "model", "loss", "batch_size", "precision", "eps")
    return (experiment, entry.shape, len(entry.classes), *(values.get(name) for name in names))


def in_groups(runs: Iterable[Wanted]) -> list[Wanted]:
    """The runs, those of a group one after another; groups, and runs within, in the order in which they were given."""
    found: dict[Hashable, list[Wanted]] = {}
    for run in runs:
        found.setdefault(group(run.experiment, run.values), []).append(run)
    return [run for together in found.values() for run in together]


def forget_others(experiment: str, values: Mapping[str, Value]) -> None:
    """Before a run: forget what was compiled, if this run cannot use it."""
    global _group, _runs  # noqa: PLW0603  # what the compiler holds is the process's state, too
    own = group(experiment, values)
    if torch.cuda.is_available() and _group is not None and (own != _group or _runs >= MANY):
        torch.compiler.reset()
        _runs = 0
    _group, _runs = own, _runs + 1
