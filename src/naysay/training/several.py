"""One training on several processes: each takes its share of every batch, and they take the steps of one process.

The processes are started by torchrun, by whatever sets torchrun's variables (see `naysay.processes`), or as Ray workers
by `naysay.cluster.train_on_ray`. Their process group is lightning-fabric's, nccl between GPUs and gloo between CPUs.
"""

from typing import TYPE_CHECKING

from naysay.processes import here
from naysay.training.config import Config
from naysay.training.run import one_device, quieten

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def spread(config: Config) -> "Fabric":
    """The Fabric for `train`, over all processes that torchrun started; one device where this process is alone.

    So `train(config, x, comp, fabric=spread(config))` is right on a laptop and on every process of a cluster.
    """
    place = here()
    if place.size == 1:
        return one_device(config)
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

    quieten()
    fabric = Fabric(
        accelerator=place.device.type,
        devices=place.local_size,
        num_nodes=place.size // place.local_size,
        strategy="ddp",
        precision=config.precision,  # type: ignore[arg-type]  # checked by Config
        plugins=[TorchElasticEnvironment()],
    )
    fabric.launch()
    return fabric
