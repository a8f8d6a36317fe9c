"""Numbers that a program reads of tensors, ``x.sum().item()``, as Python numbers that are recorded.

What ``item`` gives is held by PyTorch's own symbolic number, and what is computed of it is recorded as operators on
tensors without axes. It may be given to an operator or a kernel in the place of a number. What needs its value (a
branch, a size, a text) is refused, but for an ``assert``: behind it what it says holds, and the assumption is noted.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.utils._pytree import tree_any, tree_map

_aten: Any = torch.ops.aten
_READS = _aten._local_scalar_dense.default
_DOUBLE, _LONG, _BOOL = torch.float64, torch.int64, torch.bool


class ReadNumber:
    """What a ``torch.SymInt``, ``SymFloat`` or ``SymBool`` holds: a tensor without axes, of 64 bits or of bool."""

    constant = None

    def __init__(self, tensor: torch.Tensor, note: Callable[[str], None]) -> None:
        self.tensor = tensor
        self.note = note

    def __getattr__(self, name: str) -> Any:
        if name in _BINARY:
            return partial(self._binary, _BINARY[name])
        if name in _UNARY:
            return partial(self._unary, _UNARY[name])
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()

    def _binary(self, function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], other: Any) -> ReadNumber:
        return ReadNumber(function(self.tensor, other.tensor), self.note)

    def _unary(self, function: Callable[[torch.Tensor], torch.Tensor]) -> ReadNumber:
        return ReadNumber(function(self.tensor), self.note)

    def _refuse(self) -> Any:
        raise DataDependentOutputException(_READS)

    def _graph_repr(self) -> str:
        return "a number that was read of a tensor"

    __str__ = __repr__ = _graph_repr

    def guard_bool(self, _file: str, _line: int) -> bool:
        """True where only an ``assert`` asks; raises DataDependentOutputException elsewhere."""
        frame = _program(sys._getframe())  # pyright: ignore[reportPrivateUsage]
        if frame is None or not is_asserted(frame):
            return self._refuse()
        self.note(f"what is asserted at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno} holds")
        return True

    def bool_(self) -> bool:
        """As :meth:`guard_bool`."""
        return self.guard_bool("", 0)

    expect_true = guard_bool

    def guard_int(self, _file: str, _line: int) -> int:
        """Raises DataDependentOutputException: nobody knows it."""
        return self._refuse()

    guard_float = guard_int

    def wrap_int(self, number: int) -> ReadNumber:
        """A number beside which this can be computed with."""
        return self._constant(number, _LONG)

    def wrap_float(self, number: float) -> ReadNumber:
        """As :meth:`wrap_int`."""
        return self._constant(number, _DOUBLE)

    def wrap_bool(self, number: bool) -> ReadNumber:
        """As :meth:`wrap_int`."""
        return self._constant(number, _BOOL)

    def _constant(self, number: float, dtype: torch.dtype) -> ReadNumber:
        return ReadNumber(torch.full((), number, dtype=dtype, device=self.tensor.device), self.note)

    def clone(self) -> ReadNumber:
        """The same."""
        return self

    def is_int(self) -> bool:
        """Whether it is a whole number."""
        return self.tensor.dtype is _LONG

    def is_float(self) -> bool:
        """Whether it is a number with a fraction."""
        return self.tensor.dtype is _DOUBLE

    def is_bool(self) -> bool:
        """Whether it is a truth value."""
        return self.tensor.dtype is _BOOL

    def is_symbolic(self) -> bool:
        """Nobody knows its value."""
        return True

    def _no(self) -> bool:
        return False

    def _none(self) -> None:
        return None

    is_nested_int = is_constant = _no
    maybe_as_int = maybe_as_float = maybe_as_bool = nested_int = _none


def _divided(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.to(_DOUBLE) / b.to(_DOUBLE)


def _floored(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.div(a, b, rounding_mode="floor")


def _double(a: torch.Tensor) -> torch.Tensor:
    return a.to(_DOUBLE)


_BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "mod": torch.remainder,
    "float_truediv": _divided,
    "int_truediv": _divided,
    "int_floordiv": _floored,
    "sym_min": torch.minimum,
    "sym_max": torch.maximum,
    "and_": torch.logical_and,
    "or_": torch.logical_or,
    **{name: getattr(torch, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}
_UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "sym_float": _double,
    "sym_not": torch.logical_not,
}


def number_in(value: Any) -> ReadNumber | None:
    """What a number holds, where it was read of a tensor; None for others."""
    is_symbol = isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)
    held: Any = cast("Any", value).node if is_symbol else None
    return held if isinstance(held, ReadNumber) else None


def read_number(tensor: torch.Tensor, note: Callable[[str], None]) -> Any:
    """The one element of a tensor as a Python number; NotImplemented where it is complex."""
    if tensor.dtype.is_complex:
        return NotImplemented
    value = tensor.reshape(())
    if tensor.dtype is _BOOL:
        return torch.SymBool(cast("Any", ReadNumber(value, note)))
    if tensor.dtype.is_floating_point:
        return torch.SymFloat(cast("Any", ReadNumber(value.to(_DOUBLE), note)))
    return torch.SymInt(cast("Any", ReadNumber(value.to(_LONG), note)))


def has_numbers(args: Any, kwargs: Any) -> bool:
    """Whether an operator is given numbers that were read."""
    return tree_any(lambda x: number_in(x) is not None, (args, kwargs))


def call_with_tensors(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run an operator with tensors in the place of numbers that were read.

    Raises DataDependentOutputException where it takes numbers alone, such as sizes.
    """
    found = _TENSORS.get(func, func)
    kinds = [argument.type for argument in found._schema.arguments]
    given = [x for x in args if isinstance(x, torch.Tensor)]
    for place, value in enumerate(args):
        if tree_any(lambda x: number_in(x) is not None, value) and str(kinds[place]) not in _TENSOR_KINDS:
            raise DataDependentOutputException(_READS)
    if has_numbers((), kwargs):
        raise DataDependentOutputException(_READS)

    def tensor(value: Any) -> Any:
        held = number_in(value)
        return value if held is None else _beside(held.tensor, given)

    return found(*tree_map(tensor, tuple(args)), **kwargs)


_TENSOR_KINDS = ("Tensor", "Optional[Tensor]")


def _beside(number: torch.Tensor, given: Sequence[torch.Tensor]) -> torch.Tensor:
    """The number in the type that a Python number has beside these tensors."""
    if not given or number.dtype is _BOOL:
        return number
    like = 1.0 if number.dtype is _DOUBLE else 1
    kinds = [torch.result_type(x, like) for x in given]
    found = kinds[0]
    for kind in kinds[1:]:
        found = torch.promote_types(found, kind)
    return number.to(found)


_TENSORS: dict[Any, Any] = {
    _aten.add.Scalar: _aten.add.Tensor,
    _aten.sub.Scalar: _aten.sub.Tensor,
    _aten.mul.Scalar: _aten.mul.Tensor,
    _aten.div.Scalar: _aten.div.Tensor,
    _aten.pow.Tensor_Scalar: _aten.pow.Tensor_Tensor,
    _aten.remainder.Scalar: _aten.remainder.Tensor,
    _aten.masked_fill.Scalar: _aten.masked_fill.Tensor,
    _aten.where.ScalarOther: _aten.where.self,
    _aten.where.ScalarSelf: _aten.where.self,
    **{getattr(_aten, name).Scalar: getattr(_aten, name).Tensor for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}
"""The operator that takes a tensor where one takes a number."""


def is_asserted(frame: FrameType) -> bool:
    """Whether a frame stands at a test after which only an ``assert`` raises."""
    code = [op for op in dis.get_instructions(frame.f_code) if op.opname not in _SKIPPED]
    place = next((n for n, op in enumerate(code) if op.offset >= frame.f_lasti), len(code))
    if place + 1 >= len(code):
        return False
    jump, following = code[place : place + 2]
    if "IF_TRUE" in jump.opname:
        return _raises(following)
    target = next((op for op in code if op.offset == jump.argval), None)
    return "IF_FALSE" in jump.opname and target is not None and _raises(target)


_SKIPPED = frozenset({"CACHE", "EXTENDED_ARG", "TO_BOOL", "NOT_TAKEN"})


def _raises(op: dis.Instruction) -> bool:
    return op.opname == "LOAD_ASSERTION_ERROR" or (
        op.opname == "LOAD_COMMON_CONSTANT" and op.argrepr == "AssertionError"
    )


def _program(frame: FrameType | None) -> FrameType | None:
    """The frame of the program that asks, above those of PyTorch and of this package's own recorders."""
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def _is_ours(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name == __name__ or name.partition(".")[0] == "torch" or name.startswith("rewright.frontends.")
