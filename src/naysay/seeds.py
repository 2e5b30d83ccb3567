"""Randomness is an argument: one integer seed, from which each use draws its own named stream.

Because the streams are named, changing how many numbers the model's initialisation draws does not change the labels.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def stream(seed: int, name: str) -> np.random.Generator:
    """The numpy generator of the stream `name` under the integer `seed`; one pair always gives the same numbers."""
    return np.random.default_rng(_entropy(seed, name))


def torch_stream(seed: int, name: str, device: torch.device | str = "cpu") -> torch.Generator:
    """The torch generator of the stream `name` under the integer `seed`, on `device`."""
    return torch.Generator(device).manual_seed(_entropy(seed, name))


@contextmanager
def lent(seed: int, name: str, device: torch.device | str = "cpu") -> Iterator[None]:
    """Inside, torch's global generators draw the stream `name`, for modules that take no other; after it as before.

    Those of the CPU and of `device`: no other GPU is asked for its state.
    """
    device = torch.device(device)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(_entropy(seed, name))
        yield


def _entropy(seed: int, name: str) -> int:
    # 63 bits: torch takes a signed 64-bit seed
    return int.from_bytes(hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest(), "little") >> 1
