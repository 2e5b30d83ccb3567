"""One training on Ray workers: plain actors that meet as torchrun's processes would, and take the steps of one process.

The workers are placed all at once or not at all, so that none waits for a place that another holds.
"""

import dataclasses
import os
import socket
from contextlib import suppress
from typing import Any, cast

import torch

from naysay.cluster.connection import connect
from naysay.engine import ATTEMPTS
from naysay.errors import InputError
from naysay.learning import Config, Predictor, Trained, train
from naysay.processes import join

GRACE = 5.0  # seconds in which Ray notices that a worker died
PATIENCE = 60.0  # seconds for Ray to find room for all workers at once


def train_on_ray(
    config: Config,
    x: Any,
    comp: Any,
    *,
    workers: int,
    address: str | None = None,
    attempts: int = ATTEMPTS,
    **options: Any,
) -> Trained:
    """`train(config, x, comp, **options)` on so many Ray workers, each with a GPU where there are enough, else a core.

    address: of a running Ray; without it one is started here. The data goes to the object store once. When a worker
    dies, all begin again, `attempts` in all, and continue from `folder` where it is given (as one that every machine
    sees). What `options` holds is sent.
    """
    if workers < 1 or attempts < 1:
        raise InputError(f"workers and attempts must be at least 1; got {workers} and {attempts}.")
    with connect(address, workers=workers) as ray:
        sent = ray.put({"config": config, "x": x, "comp": comp, **options})
        while True:
            try:
                return _gang(ray, workers, sent)
            except ray.exceptions.RayActorError:
                attempts -= 1
                if not attempts:
                    raise


def _gang(ray: Any, workers: int, sent: Any) -> Trained:
    """Train once; when one worker fails the others, which wait for it, are ended."""
    from ray.util import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    gpus = int(ray.cluster_resources().get("GPU", 0) >= workers)
    room = placement_group([{"CPU": 1, "GPU": gpus} if gpus else {"CPU": 1}] * workers)
    members: list[Any] = []
    try:
        if not room.wait(PATIENCE):
            free = ray.available_resources().get("GPU" if gpus else "CPU", 0)
            need = f"{workers} workers need {'a GPU' if gpus else 'a CPU core'} each at the same time"
            way_out = "Ask for fewer, or wait for other work to end."
            raise InputError(f"{need}; the cluster has {free:g} free. {way_out}")
        place = PlacementGroupSchedulingStrategy(room)
        member = ray.remote(num_cpus=1, num_gpus=gpus, scheduling_strategy=place)(_Member)
        members = [member.remote(rank, workers) for rank in range(workers)]
        meeting = ray.get(members[0].meeting.remote())
        waiting = [one.train.remote(meeting, sent) for one in members]
        first = waiting[0]
        while waiting:
            done, waiting = ray.wait(waiting)
            try:
                ray.get(done)
            except ray.exceptions.RayTaskError as error:  # the others wait for this one in vain
                if not isinstance(error.cause, InputError):
                    _raise_death(ray, waiting)
                raise error.cause from None
        return cast(Trained, ray.get(first))
    finally:
        for one in members:
            ray.kill(one)
        remove_placement_group(room)


def _raise_death(ray: Any, waiting: list[Any]) -> None:
    """Raise that a worker died, if one did: another may have lost its connection to it, and be heard of first."""
    for one in waiting:
        with suppress(ray.exceptions.RayTaskError, ray.exceptions.GetTimeoutError):  # it failed, or it waits: it lives
            ray.get(one, timeout=GRACE)


class _Member:
    """A worker of a training. Ray shows each its own GPU alone, so each is a machine of one process to torch."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, local = rank, {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        os.environ |= {"RANK": str(rank), "GROUP_RANK": str(rank), "WORLD_SIZE": str(size), **local}

    def meeting(self) -> tuple[str, int]:
        """The address and a free port of this worker's machine, where all will meet."""
        from ray.util import get_node_ip_address

        with socket.socket() as found:
            found.bind(("", 0))
            return get_node_ip_address(), found.getsockname()[1]  # type: ignore[no-untyped-call]

    def train(self, meeting: tuple[str, int], sent: dict[str, Any]) -> Trained | None:
        """The result, from the first worker alone."""
        os.environ |= {"MASTER_ADDR": meeting[0], "MASTER_PORT": str(meeting[1])}
        trained = train(**sent, processes=join(), progress=False)
        if self.rank:
            return None
        best = None if trained.best is None else _on_cpu(trained.best)
        return dataclasses.replace(trained, predictor=_on_cpu(trained.predictor), best=best)


def _on_cpu(predictor: Predictor) -> Predictor:
    # the one who asked may have no GPU
    T, normaliser = predictor.T, predictor.normaliser.to(torch.device("cpu"))
    T = None if T is None else T.cpu()
    return dataclasses.replace(predictor, model=predictor.model.cpu(), normaliser=normaliser, T=T)
