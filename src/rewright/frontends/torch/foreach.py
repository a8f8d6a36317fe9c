"""Operators on lists of tensors, which optimizers and sharding libraries use: the same operator on each of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

Function = Callable[..., torch.Tensor]

_METHODS = (
    *("add", "sub", "mul", "div", "pow", "lerp", "clamp_min", "clamp_max"),
    *("neg", "abs", "sign", "sqrt", "rsqrt", "reciprocal", "exp", "log", "tanh", "sigmoid"),
)


def foreach_decompositions() -> dict[Any, Callable[..., Any]]:
    """For every overload of ``aten._foreach_*`` that is known here, what it does to its lists."""
    tensor: Any = torch.Tensor
    methods = {name: name for name in _METHODS} | {"maximum": "clamp_min", "minimum": "clamp_max"}
    functions: dict[str, Function] = {"norm": _norm, "copy_": tensor.copy_, "zero_": tensor.zero_}
    for suffix in ("", "_"):
        functions |= {name + suffix: getattr(tensor, method + suffix) for name, method in methods.items()}
        add = getattr(tensor, "add" + suffix)
        functions |= {"addcmul" + suffix: _add(add, tensor.mul), "addcdiv" + suffix: _add(add, tensor.div)}
    powers: Any = torch.ops.aten._foreach_pow.ScalarAndTensor
    found: dict[Any, Callable[..., Any]] = {powers: _powers}
    for name, function in functions.items():
        for overload in _overloads(name):
            found[overload] = _each(function, in_place=name.endswith("_"))
    return found


@contextmanager
def placed_one_by_one() -> Generator[None]:
    """Inside, operators on lists of DTensors that DTensor cannot place are applied to one after the other.

    Adam scales by a vector of numbers, one for each parameter, where the count of steps is a tensor; DTensor takes that
    vector for another tensor to shard.
    """
    from torch.distributed.tensor import DTensor

    untyped: Any = DTensor
    handlers = untyped._op_dispatcher._custom_op_handlers
    with mock.patch.dict(handlers, {torch.ops.aten._foreach_addcdiv_.Tensor: _add_quotients}):
        yield


def _add_quotients(operator: object, args: Sequence[Any], kwargs: object) -> None:
    for x, left, right, scale in zip(*args, strict=True):
        x.add_(left / right * scale)


def _powers(base: float, exponents: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.pow(base, exponent) for exponent in exponents]


def _norm(x: torch.Tensor, order: float = 2, dtype: torch.dtype | None = None) -> torch.Tensor:
    return torch.ops.aten.linalg_vector_norm.default(x, order, dtype=dtype)


def _add(add: Any, combine: Any) -> Function:
    def function(x: torch.Tensor, left: torch.Tensor, right: torch.Tensor, scale: Any = 1) -> torch.Tensor:
        return add(x, combine(left, right) * scale)

    return function


def _overloads(name: str) -> list[Any]:
    packet: Any = getattr(torch.ops.aten, f"_foreach_{name}", None)
    names: list[str] = packet.overloads() if packet is not None else []
    return [getattr(packet, name) for name in names if not name.endswith("out") and name != "ScalarAndTensor"]


def _each(function: Function, *, in_place: bool) -> Callable[..., Any]:
    def apply(tensors: Sequence[torch.Tensor], *rest: Any, **keywords: Any) -> list[torch.Tensor] | None:
        results: list[torch.Tensor] = []
        for position, tensor in enumerate(tensors):
            results.append(function(tensor, *(_own(value, position) for value in rest), **keywords))
        if not in_place:
            return results
        torch.autograd.graph.increment_version(tensors)  # operators on lists forget to under fake tensors
        return None

    return apply


def _own(value: Any, position: int) -> Any:
    """What an operand means for one tensor: its entry of a list or of a vector of scalars, else all of it."""
    several = value.dim() == 1 if isinstance(value, torch.Tensor) else isinstance(value, (list, tuple))
    found: Any = value
    return found[position] if several else found
