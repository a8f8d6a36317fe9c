"""Tensors of unfinished collectives that a program writes to: what is sent or received then depends on timing."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils._pytree import tree_leaves

from rewright.frontends.torch.messages import calling_line
from rewright.frontends.torch.recorder import is_operator
from rewright.frontends.torch.run.memory import storage_key
from rewright.ir.errors import CaptureError

_DEVICE: Any = torch.ops.prim.device.default  # pyright: ignore[reportUnknownMemberType]
SEND = "send"
"""The name of a collective that gives its rank no result: nothing could say later that it was disturbed."""
_MOST_ELEMENTS = 1 << 20
"""Of larger tensors that both have gaps the first and the last place are compared, and not every one."""


@dataclass(eq=False)
class Unfinished:
    """A collective that was begun, with the tensors that it reads and writes."""

    name: str
    where: str
    tensors: Sequence[torch.Tensor]
    overwritten: str = ""
    """The first line that writes to one of them."""
    finish: Callable[[], object] = bool
    """What waiting for it does."""

    @staticmethod
    def of(name: str, arguments: object) -> Unfinished:
        """What was called just now with these arguments."""
        tensors = _tensors(arguments)
        return Unfinished(name, calling_line(inspect.currentframe()) or "an unknown line", tensors)

    def shares(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether it reads or writes an element of these tensors."""
        return any(_overlap(one, other) for one in tensors for other in self.tensors)


class _Running(threading.local):
    """The unfinished collectives of the rank that this thread traces or runs."""

    def __init__(self) -> None:
        self.every: list[Unfinished] = []
        self.is_own = False
        """Whether the process group itself writes what arrived."""


running = _Running()


def finish_all() -> None:
    """Wait for everything that was begun, as a device does that is synchronised."""
    for unfinished in list(running.every):
        unfinished.finish()


class NotingOverwriting(TorchDispatchMode):
    """Notes where an operator writes to what an unfinished collective reads or writes; of a send that is an error."""

    supports_higher_order_operators = True

    def __enter__(self) -> Any:
        running.every.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _DEVICE and isinstance(args[0], FakeTensor) and not args[0].fake_mode.in_kernel_invocation:
            return args[0].fake_device  # programs ask often
        if running.every and not running.is_own and is_operator(func) and func._schema.is_mutable:
            names = (argument.name for argument in func._schema.arguments)
            given: dict[str, Any] = dict(zip(names, args, strict=False)) | (kwargs or {})
            for argument in func._schema.arguments:
                if argument.alias_info is not None and argument.alias_info.is_write:
                    note_write(str(func._schema.name).partition("::")[2], given.get(argument.name))
        return func(*args, **(kwargs or {}))


def note_write(operator: str, tensors: object) -> None:
    """Note that an operator writes to tensors; raises CaptureError where one of them is still being sent."""
    for unfinished in running.every:
        if unfinished.overwritten or not unfinished.shares(_tensors(tensors)):
            continue
        unfinished.overwritten = calling_line(inspect.currentframe()) or "an unknown line"
        if unfinished.name == SEND:
            raise CaptureError(
                f"{operator} at {unfinished.overwritten} overwrites what is sent at {unfinished.where}, and nothing "
                "has waited for that; wait for its handle before"
            )


def _tensors(value: object) -> list[torch.Tensor]:
    return [x for x in tree_leaves(value) if isinstance(x, torch.Tensor) and not is_traceable_wrapper_subclass(x)]


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors share an element; False where sizes are symbols."""
    if storage_key(one) != storage_key(other) or not (_has_numbers(one) and _has_numbers(other)):
        return False
    if not (one.numel() and other.numel()):
        return False
    (low, high), (start, end) = _ends(one), _ends(other)
    if high <= start or end <= low:
        return False
    if one.element_size() != other.element_size():
        return True
    for whole, part in ((one, other), (other, one)):
        if whole.is_contiguous():
            first = int(whole.storage_offset())
            return _reaches(int(part.storage_offset()), _axes(part), first, first + whole.numel())
    if max(one.numel(), other.numel()) > _MOST_ELEMENTS:
        return True
    return bool(np.isin(_places(one), _places(other)).any())


def _axes(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Step and length of the axes along which elements lie apart, the longest step first."""
    pairs = [(int(step), int(n)) for n, step in zip(tensor.shape, tensor.stride(), strict=True)]
    return sorted((pair for pair in pairs if pair[0] and pair[1] > 1), reverse=True)


def _reaches(first: int, axes: Sequence[tuple[int, int]], low: int, high: int) -> bool:
    """Whether an element lies in an interval; ``first`` is the place of the first one."""
    last = first + sum((n - 1) * step for step, n in axes)
    if last < low or first >= high:
        return False
    if first >= low or last < high:
        return True
    (step, n), inner = axes[0], axes[1:]
    width = sum((k - 1) * by for by, k in inner)
    least, most = max(0, -((first + width - low) // step)), min(n - 1, (high - 1 - first) // step)
    return any(_reaches(first + i * step, inner, low, high) for i in range(least, most + 1))


def _has_numbers(tensor: torch.Tensor) -> bool:
    return all(isinstance(n, int) for n in (*tensor.shape, *tensor.stride(), tensor.storage_offset()))


def _ends(tensor: torch.Tensor) -> tuple[int, int]:
    """The first byte of a tensor in its memory, and the one behind the last."""
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    size, first = tensor.element_size(), int(tensor.storage_offset())
    return first * size, (first + int(last) + 1) * size


def _places(tensor: torch.Tensor) -> NDArray[np.int64]:
    """Where the elements of a tensor lie in its memory."""
    found = np.array([tensor.storage_offset()])
    for n, step in zip(tensor.shape, tensor.stride(), strict=True):
        found = (found[:, None] + np.arange(n) * step).reshape(-1)
    return found
