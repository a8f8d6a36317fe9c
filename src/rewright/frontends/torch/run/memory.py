"""Which memory holds values that depend on the program's inputs."""

from __future__ import annotations

import torch


class Memory:
    """Storages by whether what they hold depends on the inputs; storages are held, so that none is used twice."""

    def __init__(self) -> None:
        self._dependent: dict[int, torch.UntypedStorage] = {}

    def depends(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor's memory was ever written with something that depends on the inputs."""
        return storage_key(tensor) in self._dependent

    def mark(self, tensor: torch.Tensor, depends: bool = True) -> None:
        """Note that a tensor's memory depends on the inputs, if it does."""
        if depends:
            self._dependent[storage_key(tensor)] = tensor.untyped_storage()


def storage_key(tensor: torch.Tensor) -> int:
    """The identity of a tensor's memory, as long as somebody holds it."""
    return tensor.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]
