"""Nodes for what a kernel computes: operators on data of different instances and iterations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

from rewright import ops
from rewright.frontends.triton.meaning.addresses.indices import DATA, lanes, variables
from rewright.frontends.triton.meaning.values import Choice, Data, Least, Shape, Truth, Value, Whole
from rewright.ir.dims import Dim
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.functions.record import Direction
from rewright.ops.reference import building as rb
from rewright.ops.reference.simplifying import SimplifyingBuilder
from rewright.ops.reference.size_values import size_value
from rewright.terms.index import Index, Quotient, Remainder, Variable, variable


class Writer:
    """Adds nodes to a builder; ``axes`` are the sizes of instances and iterations by name, outermost first."""

    def __init__(self, builder: SimplifyingBuilder) -> None:
        self.b = builder
        self.axes: dict[str, Dim] = {}
        self._unspecified = 0
        self._read: dict[str, Data] = {}
        self.choices: dict[str, Choice] = {}
        """What is known of variables that stand for one of two indices."""

    def sizes(self, axes: Sequence[str]) -> tuple[Dim, ...]:
        """The sizes of some axes."""
        return tuple(self.axes[name] for name in axes)

    def union(self, *values: Data) -> tuple[str, ...]:
        """The axes on which any of the values depends."""
        return tuple(name for name in self.axes if any(name in value.axes for value in values))

    def spread(self, value: Data, axes: Sequence[str], shape: Shape | None = None) -> int:
        """The node laid out along more axes, and one element over a block."""
        shape = value.shape if shape is None else shape
        block = len(axes) + len(shape) - len(value.shape)
        places = (*(axes.index(name) for name in value.axes), *range(block, block + len(value.shape)))
        full = (*self.sizes(axes), *shape)
        if places == tuple(range(len(full))):
            return value.position
        return self.b.add(ops.BroadcastInDim(full, places), value.position)

    def narrowed(self, value: Data) -> Data:
        """The value without axes that a broadcast along them gave it."""
        node = self.b.node(value.position)
        if not isinstance(node.op, ops.BroadcastInDim):
            return value
        outer, kept = len(value.axes), node.op.dimensions
        inner = self.b.type(node.operands[0]).shape
        has_block = kept[len(kept) - len(value.shape) :] == tuple(range(outer, outer + len(value.shape)))
        if not has_block or inner != tuple(node.type.shape[axis] for axis in kept):
            return value
        axes = tuple(value.axes[axis] for axis in kept if axis < outer)
        return self.narrowed(Data(node.operands[0], axes, value.shape))

    def apply(self, op: Operator, *values: Data) -> Data:
        """An elementwise operator."""
        axes = self.union(*values)
        shape = max((v.shape for v in values), key=len)
        return Data(self.b.add(op, *(self.spread(v, axes) for v in values)), axes, shape)

    def constant(self, value: float | int | bool, shape: Shape, dtype: DType) -> Data:
        """One number in all places of a block."""
        return Data(rb.splat(self.b, value, shape, dtype), (), shape)

    def dtype(self, value: Data) -> DType:
        """The element type of data."""
        return self.b.type(value.position).dtype

    def unspecified(self, axes: Sequence[str], shape: Shape, dtype: DType) -> Data:
        """A value that nothing says anything of, and that equals no other."""
        self._unspecified += 1
        kind = TensorType((*self.sizes(axes), *shape), dtype)
        site = (("site", f"{self.b.span.file}:{self.b.span.line} {_LOAD}{self._unspecified}"),)
        call = ops.CustomCall(ops.CustomCall.UNINITIALIZED, site, (kind,), 0)
        return Data(self.b.add(call), tuple(axes), shape)

    def read(self, name: str) -> Data:
        """The integers that a variable stands for."""
        return self._read[name]

    def named(self, value: Data) -> Index:
        """Integers that were read, or computed of what was read, as a variable: one for each value."""
        name = next((name for name, known in self._read.items() if known == value), f"{DATA}{len(self._read)}")
        self._read[name] = value
        return variable(name)

    def chosen(self, value: Data, choice: Choice) -> Index:
        """Integers as a variable of which it is known among which two indices it chooses."""
        found = self.named(value)
        self.choices[next(variables(found))] = choice
        return found

    def convert(self, value: Data, dtype: DType) -> Data:
        """The same numbers in another dtype."""
        return Data(rb.convert(self.b, value.position, dtype), value.axes, value.shape)

    def data(self, value: Value) -> Data:
        """Any value but a pointer as data."""
        if isinstance(value, Data):
            return value
        if isinstance(value, Whole):
            return self.number(value.index, value.shape, value.dtype)
        if isinstance(value, Least):
            numbers = [self.number(part, value.shape, value.dtype) for part in value.parts]
            least = reduce(partial(self.apply, ops.Minimum()), numbers)
            return self.apply(ops.Negate(), least) if value.is_negated else least
        if isinstance(value, Truth):
            return self.truth(value)
        raise UnsupportedOperator("a pointer is used as a number")

    def number(self, index: Index, shape: Shape, dtype: DType) -> Data:
        """An index expression as integers."""
        total = self._size(index.constant, shape, dtype)
        for atom, coefficient in index.terms:
            part = self._atom(atom, shape, dtype)
            if coefficient != 1:
                part = self.apply(ops.Multiply(), part, self._size(coefficient, shape, dtype))
            total = self.apply(ops.Add(), total, part)
        return total

    def truth(self, value: Truth) -> Data:
        """A condition as booleans."""
        total = value.data or self.constant(True, value.shape, DType.BOOL)
        opposites = {part * -1 for part in value.parts}
        for part in dict.fromkeys(value.parts):
            if part in opposites and part.terms and part * -1 in value.parts[: value.parts.index(part)]:
                continue  # the other half of an equation
            compared = self._compared(part, value.shape, "EQ" if part in opposites else "GE")
            total = self.apply(ops.And(), total, compared)
        return total

    def _compared(self, part: Index, shape: Shape, direction: Direction) -> Data:
        """``left >= right``, or ``left = right``, with the terms on the side where they are not subtracted."""
        sides = (Index(0), Index(0))
        for atom, coefficient in part.terms:
            negative = isinstance(coefficient, int) and coefficient < 0
            one = Index(0, ((atom, coefficient),))
            sides = (sides[0], sides[1] - one) if negative else (sides[0] + one, sides[1])
        left, right = sides[0] + part.constant, sides[1]
        is_number = not sides[1].terms and direction == "EQ"  # x = -100, not x + 100 = 0
        if isinstance(part.constant, int) and (part.constant < 0 or is_number):
            left, right = sides[0], sides[1] - part.constant
        numbers = [self.number(side, shape, DType.I64) for side in (left, right)]
        return self.apply(ops.Compare(direction), *numbers)

    def _size(self, size: Dim, shape: Shape, dtype: DType) -> Data:
        position = size_value(self.b, size, dtype)
        return Data(self.b.add(ops.BroadcastInDim(shape, ()), position) if shape else position, (), shape)

    def _atom(self, atom: object, shape: Shape, dtype: DType) -> Data:
        if isinstance(atom, Variable):
            return self._variable(atom.name, shape, dtype)
        if isinstance(atom, Quotient | Remainder):  # of what is not negative, so that all roundings are one
            numerator = self.number(atom.numerator, shape, dtype)
            op = ops.Divide() if isinstance(atom, Quotient) else ops.Remainder()
            return self.apply(op, numerator, self._size(atom.divisor, shape, dtype))
        raise UnsupportedOperator("an index of a kernel reads data")

    def _variable(self, name: str, shape: Shape, dtype: DType) -> Data:
        if name in self._read:
            data = self.convert(self._read[name], dtype)
            return Data(self.spread(data, data.axes, shape), data.axes, shape)
        block = lanes(len(shape))
        if name in block:
            return Data(rb.iota(self.b, shape, block.index(name), dtype), (), shape)
        along = Data(rb.iota(self.b, (self.axes[name],), 0, dtype), (name,), ())
        return Data(self.spread(along, (name,), shape), (name,), shape)

    def fold(self, kind: str, value: Data, axis: str) -> Data:
        """A reduction over instances or iterations."""
        place = value.axes.index(axis)
        position = rb.reduce(self.b, kind, value.position, [place])  # pyright: ignore[reportArgumentType]
        return Data(position, tuple(a for a in value.axes if a != axis), value.shape)

    def select(self, condition: Data, yes: Data, no: Data) -> Data:
        """An elementwise choice."""
        return self.apply(ops.Select(), condition, yes, no)


_LOAD = "#"
"""What comes in the site of a value of which nothing is said before its number."""


def is_of_load(call: ops.CustomCall) -> bool:
    """Whether a call is a value that a load of a kernel leaves open, and not memory that a program made."""
    site = str(dict(call.attributes).get("site", ""))
    return call.target == ops.CustomCall.UNINITIALIZED and f" {_LOAD}" in site
