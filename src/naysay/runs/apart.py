"""What a run's encoders have seen of its images, as their cards tell, and the images that may judge apart from it."""

from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from naysay import holdout
from naysay.errors import InputError
from naysay.features import is_encoder, refuse_table
from naysay.features.encoders import read_card
from naysay.features.unseen import OTHERS, THESE, UNKNOWN, kept_from
from naysay.reading import Labelled
from naysay.runs.settings import Settings

UNSEEN = "unseen"
WAY_OUT = "Make one with naysay pretrain and leave_out=0.1, or leave apart=True out."
FEWEST = 2  # labels that judge, for a standard error


def part_by_encoders(data: Labelled, settings: Settings) -> tuple[str, tuple[Tensor, Tensor] | None]:
    """Which images the encoders were pretrained on, UNSEEN where those that judge were kept from them, "" where there
    is none; and, apart from what they have seen, the rows to train on and to judge by, where that was asked for.
    """
    if not settings.encoders:
        return "", None
    found = {path: _kept_from(path, data.items.x) for path in settings.encoders}
    if not settings.apart:  # of several, by the one that makes the estimate the most doubtful
        return min((saw for saw, _ in found.values()), key=[THESE, UNKNOWN, OTHERS].index), None
    for path, (saw, left) in found.items():
        if not len(left):
            others = "was not pretrained on exactly these images, in this order"
            why = {THESE: "left none of these images out, copies of others aside", OTHERS: others}
            does = why.get(saw, "has a card that does not say which images it was pretrained on")
            raise InputError(f"apart=True judges by images that the encoder left out, and {path} {does}. {WAY_OUT}")
    by_all = reduce(np.intersect1d, (left.numpy() for _, left in found.values()))
    rows, held = holdout.only(data.comp, torch.from_numpy(by_all))
    if len(held) < FEWEST:
        few = f"of the {len(by_all)} images that {Path(settings.encoders[0]).name} left out {len(held)} have labels"
        raise InputError(f"{few}, and apart=True needs {FEWEST} to judge by. Label more of them, or leave it out.")
    if not bool(data.comp[rows].any()):
        none = f"only images that {Path(settings.encoders[0]).name} left out have labels"
        raise InputError(f"{none}, and apart=True trains on the others. Label some of those, or leave it out.")
    return UNSEEN, (rows, held)


def _kept_from(path: str, images: Any) -> tuple[str, Tensor]:
    """What the encoder at `path` was pretrained on, and the numbers of those of the images that it was kept from."""
    if not is_encoder(path) or not Path(path).with_suffix(".json").is_file():  # no card, as of embeddings
        return UNKNOWN, torch.empty(0, dtype=torch.long, device="cpu")  # numpy takes these row numbers
    refuse_table(images)
    return kept_from(read_card(path)[0], images, path)
