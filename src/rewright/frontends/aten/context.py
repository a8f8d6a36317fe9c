"""What the lowering of one ATen operator can see: the builder, its operands as nodes, its expected results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rewright import ops
from rewright.frontends.aten.call import Call, promote_dtypes
from rewright.frontends.aten.ties import Promise
from rewright.ir.dims import Dim, Shape, SizeExpr
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import building as rb
from rewright.ops.reference.simplifying import SimplifyingBuilder
from rewright.ops.reference.size_values import size_value


class NotCovered(UnsupportedOperator):
    """An operator whose lowering does not cover its attributes; PyTorch may have a decomposition that does."""


@dataclass(frozen=True, slots=True)
class Communicator:
    """A process group: its ranks, and which of the groups of these ranks it is, in the order they were made."""

    ranks: tuple[int, ...]
    number: int = 0


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
Unknown = Callable[[str, str, TensorType], int]
"""Makes a tensor that is known by type alone: (what it is, name of the node, type) -> position."""

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
    """Given to every lowering function; ``call`` is the operator being lowered."""

    def __init__(
        self,
        builder: SimplifyingBuilder,
        groups: Mapping[str, Communicator],
        rank: int,
        unknown: Unknown | None = None,
        *,
        trusts_indices: bool = False,
        guards_queries: bool = False,
    ) -> None:
        self.b = builder
        self.groups = groups
        self.rank = rank
        self.trusts_indices = trusts_indices
        """Whether indices that are inputs of the program are assumed not to be negative."""
        self.guards_queries = guards_queries
        """Whether attention gives zero to a query that a mask keeps all keys from, as PyTorch's kernels do.

        Otherwise that is left open, as by ``softmax`` written out, which has no number there. So it is with the
        logarithm of a sum of exponentials, of which one may be infinite.
        """
        self.assumptions: dict[str, None] = {}
        """What the lowering took for granted, in words, in order."""
        self.ties: dict[int, Promise] = {}
        """Nodes that give places of elements, where equal ones may come in any order, or in one not promised."""
        self._unknown = unknown
        self._call: Call | None = None
        self._sites: Counter[str] = Counter()

    def assume(self, sentence: str) -> None:
        """Note what is taken for granted of the program."""
        self.assumptions[sentence] = None

    @property
    def call(self) -> Call:
        """The call being lowered."""
        assert self._call is not None
        return self._call

    def enter(self, call: Call) -> Call | None:
        """Start lowering a call; returns the one before."""
        before, self._call = self._call, call
        return before

    def leave(self, before: Call | None) -> None:
        """Go back to the call that was being lowered before."""
        self._call = before

    def result(self, index: int = 0) -> TensorType:
        """The type that the capture gave for a result."""
        found = self.call.result(index)
        if found is None:
            raise UnsupportedOperator("the captured node does not say what tensor it gives; capture with fake tensors")
        return found

    def promote(self, *operands: Operand) -> DType:
        """The dtype in which PyTorch compares two operands."""
        first, second = (x.type if isinstance(x, Value) else 0 if isinstance(x, SizeExpr) else x for x in operands)
        return promote_dtypes(first, second)

    def position(self, operand: Operand, dtype: DType) -> int:
        """The node of an operand in a dtype; a number becomes a scalar constant."""
        if isinstance(operand, Value):
            return rb.convert(self.b, operand.position, dtype)
        if isinstance(operand, SizeExpr):
            return size_value(self.b, operand, dtype)
        if dtype.is_unsigned and isinstance(operand, int) and operand < 0:
            operand %= 1 << int(dtype.value.lstrip("ui"))  # counted from the other end, as PyTorch does
        return rb.splat(self.b, operand, (), dtype)

    def convert(self, operand: Operand, dtype: DType | None = None) -> int:
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

    def communicator(self, group: Any) -> Communicator:
        """A process group, given by name or as an object with a name."""
        name = group if isinstance(group, str) else str(getattr(group, "group_name", group))
        if name not in self.groups:
            raise UnsupportedOperator(
                f"the process group {name!r} was not recorded by the capture; create it in build()"
            )
        return self.groups[name]

    def drawn(self, name: str, kind: TensorType) -> int:
        """Random numbers of this name: one input of the program for all draws that give them."""
        known = self.b.known_input(name)
        return self.b.input(name, ops.Input(name, kind)) if known is None else rb.convert(self.b, known, kind.dtype)

    def random(self, what: str, kind: TensorType) -> int | None:
        """Random values as an unknown of the program; None where a door has no unknowns."""
        return self._unknown(f"random:{what}", self.call.site, kind) if self._unknown else None

    def new_memory(self) -> int:
        """Memory that nothing was written to: an unknown of the program, or equal to no other tensor."""
        kind = self.result()
        if 0 in kind.shape:  # there is no element to be unknown
            return rb.splat(self.b, 0, kind.shape, kind.dtype)
        if self._unknown is not None:
            return self._unknown("memory", self.call.site, kind)
        return self.b.add(ops.CustomCall(ops.CustomCall.UNINITIALIZED, self.site(), (kind,), 0))

    def site(self) -> tuple[tuple[str, object], ...]:
        """Attributes that no other call of this program has; graphs inside of it may have calls of equal names."""
        name = self.call.site
        self._sites[name] += 1
        return ("site", name if self._sites[name] == 1 else f"{name} {self._sites[name]}"), ("rank", self.rank)
