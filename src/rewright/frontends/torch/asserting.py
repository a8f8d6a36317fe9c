"""What PyTorch's functions assert of the values that they are given, as operators in a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_torch: Any = torch


class AssertingClasses(TorchFunctionMode):
    """``one_hot`` asserts that there are such classes, which it does of tensors with values only."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords = dict(kwargs or {})
        if func is functional.one_hot:
            given = dict(zip(("tensor", "num_classes"), args, strict=False)) | keywords
            x, classes = given.get("tensor"), given.get("num_classes", -1)
            if isinstance(x, torch.Tensor) and isinstance(classes, int) and classes > 0:
                _torch._assert_async(((x >= 0) & (x < classes)).all(), "one_hot: there is no such class")
        return func(*args, **keywords)


__all__ = ["AssertingClasses"]
