"""What a program asks tensors for, beside operations on them, seen while it runs.

``x.data_ptr() % 16`` asks for an address, ``x.grad`` for another tensor, ``x.shape`` for what every call knows anyway.
The same code on the same facts asks the same, so what one run asks for is all that a call depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from rewright.optimize.calls.tensors import is_told

_ACCESSORS = ("__get__", "__set__", "__delete__")
_ASSERTIONS = ("_assert_async",)
"""What gives nothing, and is looked at before kernels run."""


class Asking(TorchFunctionMode):
    """Notes the names of attributes and methods that give no tensor and tell more than ``describe`` does.

    A function of PyTorch that it passes on runs without it: what code of the program does in there is not seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.is_away = False
        """Whether such a function runs now."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.is_away = True
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            self.is_away = False
        name, owner = getattr(func, "__name__", ""), getattr(func, "__self__", None)
        if name in _ACCESSORS:  # an attribute may be another tensor
            name, asks = getattr(owner, "__name__", "an attribute"), True
        else:
            asks = _has_tensors((*args, *(kwargs or {}).values())) and not _has_tensors((result,))
        if asks and not is_told(name) and name not in _ASSERTIONS:
            self.names.add(name)
        return result


def _has_tensors(values: Iterable[Any]) -> bool:
    """Whether some are tensors, or lists of some."""
    return any(
        _has_tensors(cast("Iterable[Any]", v)) if isinstance(v, (tuple, list)) else isinstance(v, torch.Tensor)
        for v in values
    )


__all__ = ["Asking"]
