"""How long runs will take: from records of their like on the same hardware, else from a short probe here.

The work of a run is the images it trains on times its epochs. Of records the median of seconds over work counts, so
that one that had to compile or to read data does not; a probe trains (or searches) for a moment on noise of the right
shape, and leaves out reading, augmenting and compiling.
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

from naysay import engine, neighbors
from naysay.learning import Config, Predictor, environment, train
from naysay.seeds import torch_stream
from reproduction import sets
from reproduction.experiments import config
from reproduction.spec import Wanted
from reproduction.values import Value

LONG_ENOUGH = 0.2  # seconds of an epoch on noise, for its rate to mean something
MOST, SEARCHED = 32_768, 4_096  # rows of noise, to train on and to search
ENCODED = 512  # numbers that an encoder makes of an image


@dataclass(frozen=True)
class Estimate:
    """Seconds of one process, for all runs together, and what they are estimated from."""

    seconds: float
    source: str


def estimate(runs: Iterable[Wanted], recorded: Iterable[Mapping[str, Any]], threads: int | None = None) -> Estimate:
    """What the runs will take, given records of others; a run will have `threads` (None: what this process has)."""
    hardware = environment(sets.device(), 1)["hardware"]["name"]
    rates: dict[Hashable, list[float]] = {}
    for record in recorded:
        if "failed" not in record and record["environment"]["hardware"]["name"] == hardware:
            values = record["values"]
            rates.setdefault(_like(record["experiment"], values), []).append(record["seconds"] / _work(values))
    total, known, probed, graphs = 0.0, 0, 0, set()
    for run in runs:
        rate = rates.get(_like(run.experiment, run.values))
        known, probed = known + (rate is not None), probed + (rate is None)
        if rate:
            total += statistics.median(rate) * _work(run.values)
        elif run.experiment == "augmented":
            graphs.add((run.values["dataset"], run.values["n_neighbors"]))
        else:
            total += _probed(run.experiment, run.values, threads)
    total += sum(_graph(str(name)) for name, _ in graphs)  # runs share them, and take little longer
    sources = [
        f"records on {hardware} for {known}" if known else "",
        f"a probe of a few steps here for {probed}" if probed else "",
    ]
    return Estimate(total, " and ".join(filter(None, sources)))


def _like(experiment: str, values: Mapping[str, Value]) -> Hashable:
    return experiment, values.get("recipe"), values.get("model"), values.get("precision"), _shape(values)


def _shape(values: Mapping[str, Value]) -> tuple[int, ...]:
    """Of what is trained on: an image, or what an encoder makes of one."""
    name = str(values["dataset"])
    return (_width(name),) if values.get("inputs") == "features" else sets.row(name).entry.shape


def _rows(values: Mapping[str, Value]) -> int:
    given = values.get("n_train", "all")
    n = sets.row(values["dataset"]).entry.n_train if isinstance(given, str) else int(given)
    return round(n * (1 - float(values.get("held_out", 0))))


def _work(values: Mapping[str, Value]) -> float:
    return float(_rows(values) * int(values.get("epochs", 1)))


def _probed(experiment: str, values: Mapping[str, Value], threads: int | None) -> float:
    """Seconds of a run, training and looking at it after each epoch."""
    name = str(values["dataset"])
    entry = sets.row(name).entry
    if experiment == "decoding":
        asking = entry.n_train * float(values["held_out"]) + entry.n_test
        return _pair(_width(name), graph=False) * asking * entry.n_train
    its = config(values)
    with engine.start("local", workers=0, threads=threads):
        step, look = _probe(its.model, its.batch_size, its.precision, _shape(values), len(entry.classes))
    looked_at = (
        _rows(values) + entry.n_test if experiment == "sharing" else entry.n_train * float(values.get("held_out", 0))
    )
    views = 1 + int(its.options.get("views", 0))  # the probe's images are seen once
    return its.epochs * (_rows(values) * step * views + looked_at * look)


@functools.cache
def _probe(model: str, batch_size: int, precision: str, shape: tuple[int, ...], n_classes: int) -> tuple[float, float]:
    """Seconds an image of training, and of prediction: on noise, more of it until an epoch is long enough to time."""
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


def _looking(predictor: Predictor, x: Tensor) -> float:
    started = time.perf_counter()
    predictor.predict(x).cpu()
    return time.perf_counter() - started


def _graph(name: str) -> float:
    """Seconds to find the neighbours of all training images of a set."""
    return _pair(_width(name), graph=True) * sets.row(name).entry.n_train ** 2


def _width(name: str) -> int:
    """Of the space in which a set has neighbours."""
    return ENCODED if sets.row(name).encoder else math.prod(sets.row(name).entry.shape)


@functools.cache
def _pair(width: int, graph: bool) -> float:
    """Seconds a pair of rows of `width` numbers, to find the neighbours of all rows (`graph`) or of others."""
    rows = torch.rand(SEARCHED, width, generator=torch_stream(0, "probe")).to(sets.device())
    asked = rows if graph else rows[: SEARCHED // 8]

    def search() -> float:
        started = time.perf_counter()
        found = neighbors.build(rows, 64) if graph else neighbors.query(rows, asked, 64)
        found.indices.cpu()
        return time.perf_counter() - started

    return min(search() for _ in range(2)) / (SEARCHED * len(asked))
