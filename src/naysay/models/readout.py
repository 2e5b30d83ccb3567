"""Beside the network an encoder's file may hold a read-out (`naysay.features.readout`): which tensors are whose."""

from collections.abc import Mapping

from torch import Tensor

READOUT = "readout."  # how the names of the read-out's tensors begin


def split_readout(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The tensors of the network, and those of the read-out by their own names; none where a file has no read-out."""
    network = {name: tensor for name, tensor in tensors.items() if not name.startswith(READOUT)}
    return network, {name.removeprefix(READOUT): tensors[name] for name in tensors if name not in network}
