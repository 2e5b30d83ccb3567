"""Which images an encoder has seen, and which of its data it was kept from, so that these can judge what it leads to.

An estimate by images that the encoder was pretrained on is too high, though it saw none of their labels. So its card
says what it has seen: `pixels` is the fingerprint of all images of the data, and `left_out`, where some of them took no
part, the share and the seed that draw these again, how many they are, and their own fingerprint.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from naysay.errors import InputError, intact
from naysay.learning.rows import as_inputs
from naysay.seeds import stream
from naysay.tensors import fingerprint

THESE, OTHERS, UNKNOWN = "these", "others", "unknown"  # images that an encoder was pretrained on


def leave_out(n: int, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Numbers (rising) of the images to pretrain on, and of those left out: a random `share` of n."""
    if not 0 < share < 1:
        raise InputError(f"leave_out= must be a share between 0 and 1; got {share}. leave_out=0.1 is a tenth.")
    left = round(n * share)
    if not 1 <= left <= n - 2:
        got = f"leave_out={share} of {n} images would leave {left} out and {n - left} to pretrain on"
        raise InputError(f"{got}, where at least 1 and 2 are needed. Give another share, or more images.")
    order = torch.from_numpy(stream(seed, "left out of pretraining").permutation(n))
    return order[left:].sort().values, order[:left].sort().values


def account(images: Tensor, share: float | None, seed: int) -> dict[str, Any]:
    """What a card says of images (n, H, W, C), of which a `share` was left out (None: none was)."""
    told = None
    if share is not None:
        left = images[leave_out(len(images), share, seed)[1]]
        told = {"share": share, "seed": seed, "images": len(left), "pixels": fingerprint(left)}
    return {"pixels": fingerprint(images), "left_out": told}


def kept_from(card: Mapping[str, Any], images: Any, name: str) -> tuple[str, Tensor]:
    """What the encoder of this card, in the file `name`, was pretrained on beside these images (n, H, W[, C]): THESE,
    OTHERS, or UNKNOWN, as of older cards; and the numbers of those of them that were left out and that it has not seen
    in a copy either.
    """
    nothing = torch.empty(0, dtype=torch.long, device="cpu")  # numpy draws row numbers, on the CPU
    if "pixels" not in card:
        return UNKNOWN, nothing
    if card["pixels"] != fingerprint(images := as_inputs(images)):
        return OTHERS, nothing
    told, again = card.get("left_out"), "Pretrain it again."
    if told is None:
        return THESE, nothing
    with intact(f"the card of {name}", again):
        left, expected = leave_out(len(images), told["share"], told["seed"])[1], told["pixels"]
    if fingerprint(images[left]) != expected:
        raise InputError(f"the images that {name} was kept from are not those that its card draws. {again}")
    return THESE, _without_copies(images, left)


def _without_copies(images: Tensor, left: Tensor) -> Tensor:
    """The numbers `left` less those of images that are among the others, too, pixel for pixel."""
    out = set(left.tolist())
    seen = {_digest(images[i]) for i in range(len(images)) if i not in out}
    kept = [i for i in left.tolist() if _digest(images[i]) not in seen]
    return torch.tensor(kept, dtype=torch.long, device=left.device)


def _digest(image: Tensor) -> bytes:
    return hashlib.blake2b(image.numpy(force=True).tobytes(), digest_size=16).digest()
