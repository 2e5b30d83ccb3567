"""All that needs Ray (`pip install 'naysay[ray]'`): label sharing over shards, one training, jobs (docs/CLUSTER.md).

    account = cluster.augment_shards("embeddings/", "shared/", Sharing(metric="cosine"), labels="labels/")
    trained = cluster.train_on_ray(config, x, comp, workers=16, address="auto")
    with engine.start("ray", address="auto") as started: ...   # independent jobs; `remote` is that engine

Each part is imported when it is first used: a worker that only runs jobs does not wait for torch. All go through
`connection`. Sharing over shards is `flow`: its files (`folders`), each shard read once (`prepare`), the neighbours of
all rows (`search`), and the rounds of sharing (`rounds`). `train` is one training, `remote` the engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from naysay.cluster.connection import connect
    from naysay.cluster.flow import Account, augment_shards
    from naysay.cluster.train import train_on_ray

__all__ = ["Account", "augment_shards", "connect", "train_on_ray"]

_HOME = {"Account": "flow", "augment_shards": "flow", "connect": "connection", "train_on_ray": "train"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"naysay.cluster.{_HOME[name]}"), name)
    raise AttributeError(f"module 'naysay.cluster' has no attribute {name!r}")
