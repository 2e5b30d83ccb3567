"""How long runs will take: from records of their like on the same hardware, else from a short probe here.

The work of a run is the images it trains on times its epochs. Of records the median of seconds over work counts, so that one that had to
compile or to read data does not; a probe trains (or searches) for a moment on noise of the right shape, and leaves out reading,
augmenting and compiling.
"""

import functools
import math
import statistics
import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from naysay import neighbors
from naysay.datasets import CATALOG
from naysay.paper import data
from naysay.paper.result import config
from naysay.paper.spec import Wanted
from naysay.paper.values import Value
from naysay.seeds import torch_stream
from naysay.training import Config, Predictor, records, train

LONG_ENOUGH = 0.2  # seconds of an epoch on noise, for its rate to mean something
MOST, SEARCHED = 32_768, 4_096  # rows of noise, to train on and to search
ENCODED = 512  # numbers that an encoder makes of an image


@dataclass(frozen=True)
class Estimate:
    """Seconds of one process, for all runs together, and what they are estimated from."""

    seconds: float
    source: str


def estimate(runs: Iterable[Wanted], recorded: Iterable[Mapping[str, Any]], threads: int | None = None) -> Estimate:
    """What the runs will take, given records of others; `threads` is what a run will have (None: what this process has)."""
    hardware = records.environment(data.device(), 1)["hardware"]["name"]
    rates: dict[Hashable, list[float]] = {}
    for record in recorded:
        if "failed" not in record and record["environment"]["hardware"]["name"] == hardware:
            rates.setdefault(_like(record["experiment"], record["values"]), []).append(record["seconds"] / _work(record["values"]))
    total, known, probed = 0.0, 0, 0
    for run in runs:
        rate = rates.get(_like(run.experiment, run.values))
        known, probed = known + (rate is not None), probed + (rate is None)
        total += statistics.median(rate) * _work(run.values) if rate else _probed(run.experiment, run.values, threads)
    sources = [f"records on {hardware} for {known}" if known else "", f"a probe of a few steps here for {probed}" if probed else ""]
    return Estimate(total, " and ".join(filter(None, sources)))


def _like(experiment: str, values: Mapping[str, Value]) -> Hashable:
    return experiment, values.get("model"), values.get("precision"), CATALOG[data.row(values["dataset"]).images].shape


def _rows(values: Mapping[str, Value]) -> int:
    given = values.get("n_train", "all")
    n = CATALOG[data.row(values["dataset"]).images].n_train if isinstance(given, str) else int(given)
    return round(n * (1 - float(values.get("held_out", 0))))


def _work(values: Mapping[str, Value]) -> float:
    return float(_rows(values) * int(values.get("epochs", 1)))


def _probed(experiment: str, values: Mapping[str, Value], threads: int | None) -> float:
    """Seconds of a run, training and looking at it after each epoch."""
    images = CATALOG[data.row(values["dataset"]).images]
    if experiment == "decoding":
        asking = images.n_train * float(values["held_out"]) + images.n_test
        return _search(ENCODED if data.row(values["dataset"]).encoder else math.prod(images.shape)) * asking * images.n_train
    settings = config(values)
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        step, look = _probe(settings.model, settings.batch_size, settings.precision, images.shape, len(images.classes))
    finally:
        torch.set_num_threads(before)
    looked_at = _rows(values) + images.n_test if experiment == "sharing" else images.n_train * float(values["held_out"])
    return settings.epochs * (_rows(values) * step + looked_at * look)


@functools.cache
def _probe(model: str, batch_size: int, precision: str, shape: tuple[int, ...], n_classes: int) -> tuple[float, float]:
    """Seconds an image of training, and of prediction: on noise, more of it until an epoch takes long enough to be timed."""
    n = 2 * min(batch_size, 32)
    while True:
        x = torch.randint(0, 256, (n, *shape), dtype=torch.uint8, generator=torch_stream(0, "probe"))
        comp = torch.eye(n_classes)[torch.arange(n) % n_classes]
        settings = Config(model=model, batch_size=min(batch_size, n // 2), precision=precision, epochs=4, compile="no")
        trained = train(settings, x, comp, progress=False)
        seconds = min(epoch["seconds"] for epoch in trained.history)  # the first one warms up, and any may be disturbed
        if seconds >= LONG_ENOUGH or n >= MOST:
            break
        n = min(MOST, n * max(2, min(8, round(LONG_ENOUGH / max(seconds, 1e-3)))))
    return seconds / n, min(_looking(trained.predictor, x) for _ in range(3)) / n


@functools.cache
def _search(width: int) -> float:
    """Seconds a pair of rows of `width` numbers, to find the nearest."""
    rows = torch.rand(SEARCHED, width, generator=torch_stream(0, "probe")).to(data.device())

    def search() -> float:
        started = time.perf_counter()
        neighbors.query(rows, rows[: SEARCHED // 8], 64).indices.cpu()
        return time.perf_counter() - started

    return min(search() for _ in range(2)) / (SEARCHED * (SEARCHED // 8))


def _looking(predictor: Predictor, x: Tensor) -> float:
    started = time.perf_counter()
    predictor.predict(x).cpu()
    return time.perf_counter() - started
