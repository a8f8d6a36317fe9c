"""Results of operators on fake tensors, remembered: equal operands give equal shapes, strides and aliases.

A model has the same layer many times, and PyTorch finds the result of each call anew, which takes a third of a trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from rewright.frontends.torch.alike.results import run_for_all
from rewright.frontends.torch.run.memory import storage_key

Key = tuple[Any, ...]
_LAST = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.inplace_view)
_PLAIN = frozenset(
    {int, float, complex, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}
)
_C: Any = torch._C  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True)
class Result:
    """One result: its shape, strides, dtype and device, and the operand whose memory it has, if it has one's."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    offset: int = 0
    operand: int | None = None

    def make(self, mode: FakeTensorMode, operands: Sequence[torch.Tensor]) -> torch.Tensor:
        """Another tensor like it, of these operands."""
        guard = _C._DisableTorchDispatch()
        try:
            if self.operand is None:
                made = torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device="meta")
            else:
                made: Any = torch.empty(0, dtype=self.dtype, device="meta")
                made.set_(operands[self.operand].untyped_storage(), self.offset, self.shape, self.stride)
        finally:
            del guard
        return FakeTensor(mode, made, self.device)


@dataclass(frozen=True)
class Results:
    """What an operator gave: a tensor, or several."""

    parts: tuple[Result | None, ...]
    kind: type[Any] | None = None

    def make(self, mode: FakeTensorMode, operands: Sequence[torch.Tensor]) -> Any:
        """The same of these operands."""
        made = [None if part is None else part.make(mode, operands) for part in self.parts]
        return made[0] if self.kind is None else self.kind(made)


class KnownResults:
    """Runs operators on fake tensors of one mode, whose sizes are numbers."""

    def __init__(self, mode: FakeTensorMode) -> None:
        self.mode = mode
        self._known: dict[Key, Results | None] = {}

    def run(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of an operator."""
        operands: list[torch.Tensor] = []
        key = self._key(func, args, kwargs, operands)
        if key is None:
            return run_for_all(func, args, kwargs, self.run)
        known = self._known.get(key)
        if known is not None:
            return known.make(self.mode, operands)
        result = func(*args, **kwargs)
        if key not in self._known:
            self._known[key] = self._results(result, operands)
        return result

    def _key(
        self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], operands: list[torch.Tensor]
    ) -> Key | None:
        """What the result depends on, or None where that is more; ``operands`` are filled in."""
        if not _is_function(func):
            return None
        found: list[Any] = [func, torch.get_default_dtype(), torch.is_inference_mode_enabled()]
        if self._describe(args, found, operands) and self._describe(tuple(kwargs.items()), found, operands):
            return tuple(found) if operands else None
        return None

    def _describe(self, values: Sequence[Any], found: list[Any], operands: list[torch.Tensor]) -> bool:
        """Add what matters of some arguments; whether that can be told."""
        found.append(len(values))
        for value in values:
            if isinstance(value, FakeTensor):
                if value.fake_mode is not self.mode or value.constant is not None or value.layout != torch.strided:
                    return False
                operands.append(value)
                found.append(_described(value))
            elif isinstance(value, (list, tuple)):
                if not self._describe(cast("Sequence[Any]", value), found, operands):
                    return False
            elif type(value) in _PLAIN:
                found += (type(value), value)  # 1 is not 1.0
            else:
                return False
        return True

    def _results(self, result: Any, operands: Sequence[torch.Tensor]) -> Results | None:
        """What to remember of a result; None for what cannot be made again."""
        several = type(cast("object", result)) in (tuple, list)
        leaves: Sequence[Any] = result if several else (result,)
        owners = {storage_key(x): place for place, x in reversed(list(enumerate(operands)))}
        parts: list[Result | None] = []
        for leaf in leaves:
            part = self._result(leaf, owners, operands) if leaf is not None else None
            if part is None and leaf is not None:
                return None
            if isinstance(leaf, torch.Tensor):
                owners.setdefault(storage_key(leaf), -1)  # a later part that has it too is not made again
            parts.append(part)
        return Results(tuple(parts), type(cast("object", result)) if several else None)

    def _result(self, leaf: Any, owners: Mapping[int, int], operands: Sequence[torch.Tensor]) -> Result | None:
        if not isinstance(leaf, FakeTensor) or leaf.fake_mode is not self.mode or leaf.constant is not None:
            return None
        operand = owners.get(storage_key(leaf))
        is_odd = leaf.requires_grad or leaf.is_conj() or leaf.is_neg() or leaf.layout != torch.strided
        if is_odd or operand == -1 or any(leaf is x for x in operands):
            return None
        offset = int(leaf.storage_offset())
        made = Result(tuple(leaf.shape), tuple(leaf.stride()), leaf.dtype, leaf.fake_device, offset, operand)
        return made if operand is not None or _fills(leaf) else None


@cache
def _is_function(func: Any) -> bool:
    """Whether what an operator of ATen gives depends on what is known of its operands alone."""
    if not isinstance(func, OpOverload) or func.namespace != "aten":
        return False
    schema: Any = func._schema  # pyright: ignore[reportPrivateUsage]
    return not schema.is_mutable and not any(tag in func.tags for tag in _LAST)


def _described(value: FakeTensor) -> Key:
    """What results may depend on of an operand."""
    size = value.untyped_storage().nbytes()
    known = (value.dtype, value.shape, value.stride(), value.storage_offset(), size, value.fake_device)
    return (*known, value.requires_grad, value.is_conj(), value.is_neg(), value.is_inference())


def _fills(value: torch.Tensor) -> bool:
    """Whether a tensor is all that its memory holds, as one is that is made with its strides."""
    last = sum((n - 1) * step for n, step in zip(value.shape, value.stride(), strict=True))
    length = (last + 1) * value.element_size() if value.numel() else 0
    return value.storage_offset() == 0 and value.untyped_storage().nbytes() == length
