"""Features of images or rows: what an encoder makes of them, computed once and then read from a cache.

An encoder may be
- a torch module: uint8 images go in as normalised floats (n, C, H, W), rows as they are, in eval mode, no gradients;
- the path of an encoder file (`encoders.save_encoder`);
- any callable: it gets what it was given, as a whole unless a `batch` size is given;
- ready-made embeddings: an array, or a file of them (.npy, .npz, Parquet, CSV).

Features are kept under a hash of what they come from: the images' content and the module's weights, layers and code. A
callable cannot be recognised again, so its features are kept only under a name of the caller's (`cache_key`).
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from naysay.datasets import store
from naysay.datasets.dataset import Array, content_hash
from naysay.errors import InputError, unknown
from naysay.features.cache import Features, UntoldError, identity, keep, weights
from naysay.features.encoders import embed, load_encoder, weights_of, with_channels
from naysay.features.raw import as_numbers, pca, standardise, to_numpy
from naysay.features.ready import as_features, read_embeddings
from naysay.learning.views import MEAN, STD
from naysay.progress import track

__all__ = ["Encoder", "extract", "pca", "standardise"]

# pixels of images that go through a module at a time, unless `batch` is given: 512 images of 32 x 32 on a GPU, and on a
# CPU 64, whose maps stay near the core: a ResNet-18 then takes three quarters of the time
PIXELS, PIXELS_ON_CPU = 1 << 19, 1 << 16
FORMAT = f"1 {MEAN} {STD}"  # part of every key; the number changes when the same encoder comes to give other features

Encoder = nn.Module | Callable[[Any], Any] | str | PathLike[str] | Array | Tensor
Device = torch.device | str | None
Cache = str | PathLike[str] | Literal[False] | None
Ahead = Callable[[float], None]  # gets seconds


def extract(
    encoder: Encoder,
    images: Any = None,
    *,
    features: str | Sequence[str] | None = None,
    cache: Cache = None,
    cache_key: str | None = None,
    batch: int | None = None,
    device: Device = None,
    precision: str = "float32",
    ahead: Ahead | None = None,
) -> Features:
    """The features (n, d) float32 of `images` (n, H, W) or (n, H, W, C) uint8, or of rows (n, d).

    They are float64 if they come so and float32 would lose what tells them apart (`naysay.rounding`).

    features: of a table (or .npz) of ready-made embeddings, their column; "file.parquet:column" says the same. Of
    embeddings only the number of rows is compared with `images`, which may be left out.
    cache: the folder of kept features, "features" in the data folder unless given; False keeps none.
    cache_key: a name for an encoder that cannot be recognised; give another when the encoder changes.
    device: where a module computes, to come back afterwards. Not given: where it is; an encoder file on a GPU, if any.
    precision: "float32", or "bf16", which is faster on a GPU and on processors with units for it (avx512_bf16, amx).
    ahead: is told, after the first of several batches through a module, about how many seconds the others will take.
    """
    if precision not in ("float32", "bf16"):
        raise unknown("precision", precision, ("float32", "bf16"))
    if batch is not None and batch < 1:
        raise InputError(f"batch must be at least 1; got {batch}.")
    if isinstance(encoder, (str, PathLike)) and Path(encoder).suffix.lower() == ".safetensors":
        encoder, device = load_encoder(Path(encoder))[0], device or ("cuda" if torch.cuda.is_available() else "cpu")
        images = None if images is None else with_channels(as_numbers(images), encoder)
    elif isinstance(encoder, (str, PathLike, np.ndarray, Tensor)):
        asked = {"device": device, "precision": _unusual(precision), "batch": batch, "cache_key": cache_key}
        _refuse({**asked, "cache": cache or None}, "what is computed, and these embeddings are made already")
        rows = None if images is None else len(images)
        return as_features(read_embeddings(encoder, features), rows, "the embeddings")
    if features is not None:
        _refuse({"features": features}, "files of embeddings, which may have several columns")
    if not callable(encoder):
        got = type(encoder).__name__
        raise InputError(f"encoder must be a torch module, a callable, a path or an array; got {got}.")
    if images is None:
        raise InputError("images must be given, (n, H, W[, C]) or rows (n, d); only ready-made embeddings do without.")
    if isinstance(encoder, nn.Module):
        images = as_numbers(images)
        compute = partial(_through_module, encoder, images, batch, device, precision, ahead)
    else:
        whose = f"torch modules, and {_called(encoder)} computes where and how it likes"
        _refuse({"device": device, "precision": _unusual(precision)}, whose)
        compute = partial(_through_callable, encoder, images, batch)
    name = None if cache is False else _name(encoder, cache_key, batch)
    if name is not None:
        content = content_hash({"images": _comparable(images)})
        return keep(_folder(cache), lambda: _key(content, precision, _name(encoder, cache_key, batch) or name), compute)
    if cache:
        raise InputError(
            f"{_called(encoder)} cannot be recognised again, so its features cannot be kept. Give it a cache_key=."
        )
    return compute()


def _unusual(precision: str) -> str | None:
    """The precision where it is another than usual."""
    return None if precision == "float32" else precision


def _refuse(given: Mapping[str, Any], whose: str) -> None:
    """Raise InputError where one of these was given, which would change nothing; whose: what it is for, in words."""
    for name, value in given.items():
        if value is not None:
            said = value if isinstance(value, int) else repr(str(value))
            raise InputError(f"{name} is for {whose}; got {name}={said}. Leave it out.")


def _through_module(
    encoder: nn.Module, images: Array, batch: int | None, device: Device, precision: str, ahead: Ahead | None
) -> Features:
    home = weights_of(encoder).device
    if device is not None:
        encoder.to(device)
    pixels = PIXELS_ON_CPU if weights_of(encoder).device.type == "cpu" else PIXELS
    size = batch or max(1, pixels // math.prod(images.shape[1:3]))
    parts, started = [], time.perf_counter()
    try:
        for start in _starts(len(images), size):
            # a copy: torch takes neither maps of files nor mirrored views
            part = torch.from_numpy(images[start : start + size].copy())
            parts.append(embed(encoder, part, batch=size, precision=precision).cpu().numpy())
            if ahead is not None and start == 0 and len(images) > size:
                ahead((time.perf_counter() - started) * (len(images) / size - 1))
    finally:
        if device is not None:
            encoder.to(home)
    return as_features(np.concatenate(parts), len(images), "the encoder's features")


def _through_callable(encoder: Callable[[Any], Any], images: Any, batch: int | None) -> Features:
    if not len(images):
        raise InputError("images must have at least one row; got none.")
    size = batch or len(images)
    parts = [to_numpy(encoder(images[start : start + size])) for start in _starts(len(images), size)]
    return as_features(np.concatenate(parts), len(images), "the encoder's features")


def _starts(n: int, size: int) -> Iterator[int]:
    return track(range(0, n, size), math.ceil(n / size), "features")


def _name(encoder: Any, cache_key: str | None, batch: int | None) -> str | None:
    """What the encoder is called in the cache; None where it cannot be recognised again."""
    if not isinstance(encoder, nn.Module):
        # what a callable gives may depend on what it gets together
        return None if cache_key is None else f"callable {cache_key} {batch}"
    if cache_key is not None:
        return f"module {cache_key} {weights(encoder)}"
    try:
        return identity(encoder)
    except UntoldError:
        return None


def _key(content: str, precision: str, name: str) -> str:
    return hashlib.sha256(f"{FORMAT}\n{content}\n{precision}\n{name}".encode()).hexdigest()


def _folder(cache: Cache) -> Path:
    folder = Path(cache).expanduser() if cache else store.folder() / "features"
    if folder.exists() and not folder.is_dir():
        raise InputError(f"features are kept in a folder; got the file {folder}. Give another with cache=.")
    return folder


def _comparable(images: Any) -> Array:
    array = to_numpy(images)
    if array.dtype.kind not in "buifU":
        got = f"{type(images).__name__} of {array.dtype}"
        raise InputError(f"only features of numbers or texts can be kept; got {got}. Use cache=False.")
    return array


def _called(encoder: Any) -> str:
    return f"the callable {getattr(encoder, '__name__', type(encoder).__name__)}"
