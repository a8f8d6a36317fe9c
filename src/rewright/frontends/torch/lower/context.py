"""What the lowering of one ATen operator can see: the builder, its operands as nodes, its expected results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.fx

from rewright import ops
from rewright.frontends.torch.lower.nodes import example, example_result
from rewright.frontends.torch.lower.sizes import dtype_of, type_of
from rewright.ir.dims import Dim, Shape, SizeExpr
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import building as rb
from rewright.ops.reference.simplifying import SimplifyingBuilder


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor operand: the node that holds it now, and its type."""

    position: int
    type: TensorType

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.type.dtype

    @property
    def rank(self) -> int:
        """Number of axes."""
        return self.type.rank

    def axis(self, axis: int) -> int:
        """An axis counted from the front; a scalar has one axis for this purpose, as in PyTorch."""
        return axis % max(self.rank, 1)


Number = float | int | bool
Operand = Value | Number | SizeExpr
Lowered = int | tuple[int | None, ...]
Function = Callable[..., Lowered]
"""The lowering of an operator that makes new tensors: (context, operands and attributes) -> node positions."""

_Any = TypeVar("_Any", bound=Callable[..., Any])


class Table(dict[str, Callable[..., Any]]):
    """Lowerings by the name of the ATen overload, ``aten.add.Tensor``."""

    def register(self, *names: str) -> Callable[[_Any], _Any]:
        """Enter a function under some names, each of which must be new."""

        def enter(function: _Any) -> _Any:
            for name in names:
                assert name not in self, name
                self[name] = function
            return function

        return enter


class Context:
    """Given to every lowering function; ``node`` is the operator being lowered."""

    def __init__(self, builder: SimplifyingBuilder, groups: dict[str, tuple[int, ...]], rank: int) -> None:
        self.b = builder
        self.groups = groups
        self.rank = rank
        self._node: torch.fx.Node | None = None

    @property
    def node(self) -> torch.fx.Node:
        """The traced node being lowered."""
        assert self._node is not None
        return self._node

    def enter(self, node: torch.fx.Node) -> None:
        """Start lowering a node."""
        self._node = node

    def fake(self, index: int = 0) -> torch.Tensor:
        """The fake tensor that tracing gave for a result."""
        found = example_result(self.node, index)
        if not isinstance(found, torch.Tensor):
            raise UnsupportedOperator("the traced node does not say what tensor it gives; trace with fake tensors")
        return found

    def result(self, index: int = 0) -> TensorType:
        """The type that tracing gave for a result."""
        return type_of(self.fake(index))

    def promoted(self) -> DType:
        """The dtype in which PyTorch compares the first two operands."""
        values = [example(argument) for argument in self.node.args[:2]]
        first, second = (0 if isinstance(value, torch.SymInt) else value for value in values)
        return dtype_of(torch.result_type(first, second))

    def position(self, operand: Operand, dtype: DType) -> int:
        """The node of an operand in a dtype; a number becomes a scalar constant."""
        if isinstance(operand, Value):
            return rb.convert(self.b, operand.position, dtype)
        if isinstance(operand, SizeExpr):
            return rb.size_value(self.b, operand, dtype)
        return rb.splat(self.b, operand, (), dtype)

    def converted(self, operand: Operand, dtype: DType | None = None) -> int:
        """The node of an operand in a dtype, by default that of the result."""
        return self.position(operand, dtype or self.result().dtype)

    def positions(self, *operands: Operand, dtype: DType | None = None) -> list[int]:
        """Operands in one dtype, by default that of the result."""
        wanted = dtype or self.result().dtype
        return [self.position(operand, wanted) for operand in operands]

    def spread(self, position: int, shape: Sequence[Dim] | None = None) -> int:
        """A node broadcast to a shape, by default that of the result."""
        return rb.broadcast(self.b, position, tuple(shape) if shape is not None else self.result().shape)

    def optional(self, value: Value | None, dtype: DType | None = None) -> int | None:
        """The node of an operand that may be absent."""
        if value is None:
            return None
        return rb.convert(self.b, value.position, dtype) if dtype else value.position

    def ranks(self, group: Any) -> tuple[int, ...]:
        """The ranks of a process group, given by name or as an object with a name."""
        name = group if isinstance(group, str) else str(getattr(group, "group_name", group))
        if name not in self.groups:
            raise UnsupportedOperator(
                f"the process group {name!r} was not recorded by the capture; create it in build()"
            )
        return self.groups[name]

    def uninitialized(self) -> int:
        """Memory that nothing was written to: equal to no other tensor."""
        kind = self.result()
        site = (("site", self.node.name), ("rank", self.rank))
        return self.b.add(ops.CustomCall("uninitialized", site, (kind,), 0))
