"""The way to Ray: everything here that uses it asks `connect` for it.

A Ray that is started here is for this process alone: quiet, without dashboard and usage statistics, on the address
127.0.0.1.
"""

import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from naysay.engine.placing import cores, environ
from naysay.errors import InputError

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what it will do by itself soon, and warns of until then
}
# on any system: listen on 127.0.0.1 only; read once, when ray is imported
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
PATIENCE = 10.0  # seconds for a cluster to answer


@contextmanager
def connect(
    address: str | None = None, *, workers: int | None = None, variables: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """The module ray, connected: to the cluster at `address` ("auto", "host:port"), or else to one started here with
    `workers` CPUs.

    Only what was started here is shut down at the end; inside another `connect` the same connection serves. What is
    started here has the environment `variables` besides its own.
    """
    with environ(QUIET if address else QUIET | ALONE | dict(variables or {})):
        ray = _ray()
        inside = ray.is_initialized()
        if not inside:
            _join(ray, address) if address else _begin(ray, workers)
    try:
        yield ray
    finally:
        if not inside:
            ray.shutdown()


def _begin(ray: Any, workers: int | None) -> None:
    ray.init(
        "local",
        num_cpus=workers or cores(),
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
        # nobody would read them, and to begin with them takes a second
        _system_config={"enable_metrics_collection": False},
    )


def _join(ray: Any, address: str) -> None:
    try:
        if (host := re.fullmatch(r"(?:ray://)?(.+):(\d+)", address)) is not None:
            # Ray itself would try for minutes
            socket.create_connection((host[1], int(host[2])), timeout=PATIENCE).close()
        ray.init(address, logging_level="ERROR", log_to_driver=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster could be joined at {address!r}: {str(error).strip().splitlines()[0].rstrip('.')}. Start "
            "one with "
            "`ray start --head`, with the same versions of Python and ray, or leave the address out to start one here."
        ) from error


def is_connected() -> bool:
    """Whether this process is connected already."""
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise InputError(
            f"the engine ray needs a package that is not here: {error}. Get it with: pip install 'naysay[ray]'"
        ) from None
