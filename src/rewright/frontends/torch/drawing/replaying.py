"""A program run by PyTorch with given numbers in the place of those that it draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rewright.frontends.torch.drawing.generators import Generators
from rewright.frontends.torch.drawing.operators import DEFINED, drawn


class Replaying(TorchDispatchMode):
    """Draws what is given by name, and what PyTorch draws where nothing is given: nobody reads that."""

    def __init__(self, generators: Generators, numbers: Mapping[str, torch.Tensor]) -> None:
        TorchDispatchMode.__init__(self)  # pyright: ignore[reportUnknownMemberType]
        self._generators, self._numbers = generators, numbers

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        what = drawn(func, args, kwargs)
        if what is not None:
            result, draw = self._generators.draw(what.kind, what.generator, what.device, lambda: func(*args, **kwargs))
            given = self._numbers.get(draw.name)
            return result if given is None else given.to(result)
        if func in DEFINED:
            with self:
                result = DEFINED[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)
