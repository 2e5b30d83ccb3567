"""Has the network collapsed, giving every image the same output?

Unit vectors that point everywhere have a spread (standard deviation over images, averaged over the d coordinates) of
about 1/sqrt(d); identical ones have 0 (Chen and He 2021, section 4.1). The spread times sqrt(d) is therefore near 1 in
a live run and near 0 in a dead one, whatever the width.
"""

import math
from collections.abc import Mapping, Sequence

import torch.nn.functional as F
from torch import Tensor

DEAD = 0.1  # of what live outputs have; a collapsed run falls far below it
PATIENCE = 3  # epochs: young predictions may be flat for a moment


class CollapseError(RuntimeError):
    """The outputs have collapsed to one point; the message says what to change."""


def relative_spread(outputs: Tensor) -> Tensor:
    """The spread of the normalised outputs (n, d) over 1/sqrt(d): near 1 alive, near 0 collapsed."""
    unit = F.normalize(outputs.detach().float(), dim=-1)
    spread: Tensor = unit.std(0).mean() * math.sqrt(unit.shape[-1])
    return spread


def check_alive(curve: Sequence[Mapping[str, float]]) -> None:
    """Stop a dead run: over the last PATIENCE epochs of the curve the `spread` stayed under DEAD, or the loss is no
    number.
    """
    last = curve[-PATIENCE:]
    if math.isfinite(last[-1]["loss"]) and (len(last) < PATIENCE or any(line["spread"] >= DEAD for line in last)):
        return
    raise CollapseError(
        f"the outputs have collapsed: in epoch {last[-1]['epoch']} their spread is {last[-1]['spread']:.3f} of what "
        "live outputs have "
        f"(loss {last[-1]['loss']:.4f}). Lower the learning rate, lengthen the warm-up, or start the backbone and its "
        "heads afresh "
        "together: a trained backbone under fresh heads collapses at a high rate."
    )
