"""Each rank's part of a tensor that all of them split, as one node of a trace."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack  # pyright: ignore[reportPrivateUsage]

from rewright.frontends.torch.alike.numbers import bare
from rewright.frontends.torch.recorder import Recorder
from rewright.frontends.torch.remembering import Result


def recorder() -> Recorder | None:
    """What records operators now."""
    stack: list[Any] = _get_current_dispatch_mode_stack()
    return next((mode for mode in reversed(stack) if isinstance(mode, Recorder)), None)


def chosen(parts: Sequence[torch.Tensor], index: Any) -> torch.Tensor:
    """The part that is each rank's, of parts of one layout: ``index`` is a number that ranks differ in."""
    found, first = recorder(), parts[0]
    if found is None or not isinstance(first, FakeTensor):
        return first.detach()
    layout = tuple(first.shape), tuple(first.stride()), first.dtype, first.fake_device, int(first.storage_offset())
    made = Result(*layout, operand=0).make(first.fake_mode, [first])
    nodes = tuple(found.node(part) for part in parts)
    found.note(made, found.create_node("call_function", operator.getitem, (nodes, bare(index)), {}))
    return made
