"""The small graphs that steps are about: one operator, one collective on all its members, one relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from rewright import ops
from rewright.ir.dims import Dim, divide
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator, Unsupported
from rewright.ir.placement import AxisRuns
from rewright.ir.types import TensorType

_JOINS: dict[str, type[Operator]] = {
    "sum": ops.Add,
    "max": ops.Maximum,
    "min": ops.Minimum,
    "maximum": ops.Maximum,
    "minimum": ops.Minimum,
    "product": ops.Multiply,
    "and": ops.And,
    "or": ops.Or,
}


class NoMeaning(Exception):
    """A step that has no meaning as a small graph; the message says why."""


@dataclass(frozen=True, slots=True)
class Applied:
    """One operator."""

    op: Operator
    types: tuple[TensorType, ...]

    def graph(self) -> Graph:
        """The operator on inputs of these types."""
        builder, inputs = _start(self.types)
        builder.output("result", builder.add(self.op, *inputs))
        return builder.build()


@dataclass(frozen=True, slots=True)
class Collective:
    """What one member of a group holds after a collective, from the operands of all members in group order."""

    operators: tuple[Operator, ...]
    types: tuple[TensorType, ...]
    member: int

    def graph(self) -> Graph:
        """The same in operators of one device. Raises NoMeaning for operators that do not fit together."""
        builder, inputs = _start(self.types)
        op, shapes = self.operators[0], [kind.shape for kind in self.types]
        if not isinstance(op, ops.Collective):
            raise NoMeaning(f"{op.name} is no collective that the checker knows")
        got = op.received(self.operators, shapes, range(len(shapes)), self.member)
        if isinstance(got, Unsupported):
            raise NoMeaning(got.why)
        sources = inputs if got.reduction is None else [_join(builder, got.reduction, inputs)]
        parts = [
            sources[piece.member]
            if got.cut is None or piece.length is None
            else _cut(builder, sources[piece.member], got.cut, piece.start, piece.length)
            for piece in got.pieces
        ]
        result = parts[0] if got.joined is None else builder.add(ops.Concatenate(got.joined), *parts)
        builder.output("result", result)
        return builder.build()


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What all members of an all-to-all in equal parts hold, one after the other along the axis that is split."""

    types: tuple[TensorType, ...]
    split: int
    concat: int

    def graph(self) -> Graph:
        """A concatenation. Raises NoMeaning for operands of different types, which are not cut alike."""
        builder, inputs = _start(self.types)
        kind, count = self.types[0], len(inputs)
        size = divide(kind.shape[self.split], count)
        if size is None or any(other != kind for other in self.types):
            raise NoMeaning(f"an all_to_all of {kind} that is not in {count} equal parts")
        if self.split != self.concat:
            # Who cuts one axis and joins another keeps a part of what all of them have.
            builder.output("result", builder.add(ops.Concatenate(self.concat), *inputs))
            return builder.build()
        before, after = kind.shape[: self.split], kind.shape[self.split + 1 :]
        rows = ops.Reshape((*before, count, 1, size, *after))
        joined = builder.add(ops.Concatenate(self.split + 1), *(builder.add(rows, x) for x in inputs))
        builder.output("result", builder.add(ops.Reshape(self.whole.shape), joined))
        return builder.build()

    @property
    def whole(self) -> TensorType:
        """The type of it."""
        shape, axis = self.types[0].shape, self.concat
        return self.types[0].with_shape((*shape[:axis], shape[axis] * len(self.types), *shape[axis + 1 :]))


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one member of a group keeps of a tensor that is cut in equal parts."""

    type: TensorType
    axis: int
    count: int
    member: int

    def graph(self) -> Graph:
        """One slice. Raises NoMeaning where there are no equal parts."""
        builder, (whole,) = _start((self.type,))
        builder.output("result", _chunk(builder, whole, self.axis, self.count, self.member))
        return builder.build()


@dataclass(frozen=True, slots=True)
class Window:
    """What a rank holds of a global tensor: along every axis some runs of it."""

    type: TensorType
    runs: tuple[AxisRuns, ...]

    def graph(self) -> Graph:
        """Slices and concatenations of the global tensor."""
        builder, (whole,) = _start((self.type,))
        builder.output("result", _window(builder, whole, self.runs))
        return builder.build()


@dataclass(frozen=True, slots=True)
class OwnAddend:
    """What a rank holds of a tensor of addends: a window of one of them."""

    type: TensorType
    runs: tuple[AxisRuns, ...]
    count: int
    own: int

    def graph(self) -> Graph:
        """One row of the tensor of addends, and of that its window."""
        builder, (addends,) = _start((_stack(self.type, self.count),))
        rest = self.type.shape
        row = ops.Slice((self.own, *(0 for _ in rest)), (self.own + 1, *rest), (1,) * (len(rest) + 1))
        one = builder.add(ops.Reshape(rest), builder.add(row, addends))
        builder.output("result", _window(builder, one, self.runs))
        return builder.build()


@dataclass(frozen=True, slots=True)
class AllAddends:
    """The sum of a tensor of addends."""

    type: TensorType
    count: int

    def graph(self) -> Graph:
        """A sum over the first axis."""
        builder, (addends,) = _start((_stack(self.type, self.count),))
        builder.output("result", builder.add(ops.Reduce("sum", (0,)), addends))
        return builder.build()


@dataclass(frozen=True, slots=True)
class Reduced:
    """A window of a global tensor equals the reduction of what a group holds."""

    type: TensorType
    runs: tuple[AxisRuns, ...]
    held: tuple[TensorType, ...]
    reduction: str

    def graph(self) -> Graph:
        """Both sides as two outputs."""
        builder, (whole, *held) = _start((self.type, *self.held))
        builder.output("result", _window(builder, whole, self.runs))
        builder.output("reduced", _join(builder, self.reduction, held))
        return builder.build()


@dataclass(frozen=True, slots=True)
class SameBlock:
    """A window of a global tensor equals a box of what a rank holds, its axes in another order."""

    type: TensorType
    window: tuple[tuple[int, int], ...]
    held: TensorType
    box: tuple[tuple[int, int], ...]
    order: tuple[int, ...]

    def graph(self) -> Graph:
        """Both sides as two outputs. Raises NoMeaning for a block that does not fit the tensors."""
        builder, (whole, held) = _start((self.type, self.held))
        for axis, (start, length) in enumerate(self.window):
            whole = _cut(builder, whole, axis, start, length)
        for axis, (start, length) in enumerate(self.box):
            held = _cut(builder, held, axis, start, length)
        builder.output("result", whole)
        builder.output("held", builder.add(ops.Transpose(self.order), held))
        if builder.type(whole) != builder.type(builder.build().outputs["held"]):
            raise NoMeaning(f"a block of shape {self.box} that is claimed to be a window of shape {self.window}")
        return builder.build()


Subject = Union[Applied, Collective, Exchanged, Chunk, Window, OwnAddend, AllAddends, Reduced, SameBlock]
"""What a statement is about, as a graph whose inputs are claimed tensors."""


def _stack(kind: TensorType, count: int) -> TensorType:
    return TensorType((count, *kind.shape), kind.dtype)


def _start(types: Sequence[TensorType]) -> tuple[GraphBuilder, list[int]]:
    builder = GraphBuilder()
    return builder, [builder.input(f"x{k}", ops.Input(f"x{k}", kind)) for k, kind in enumerate(types)]


def _join(builder: GraphBuilder, kind: str, positions: Sequence[int]) -> int:
    """A tree of binary operators, as deep as the logarithm of their number."""
    row = list(positions)
    while len(row) > 1:
        joined = [builder.add(_JOINS[kind](), left, right) for left, right in zip(row[::2], row[1::2], strict=False)]
        row = [*joined, *row[len(joined) * 2 :]]
    return row[0]


def _cut(builder: GraphBuilder, position: int, axis: int, start: Dim, length: Dim) -> int:
    shape = builder.type(position).shape
    if start == 0 and length == shape[axis]:
        return position
    low = tuple(start if a == axis else 0 for a in range(len(shape)))
    high = tuple(start + length if a == axis else n for a, n in enumerate(shape))
    return builder.add(ops.Slice(low, high, (1,) * len(shape)), position)


def _chunk(builder: GraphBuilder, position: int, axis: int, parts: int, number: int) -> int:
    size = divide(builder.type(position).shape[axis], parts)
    if size is None:
        raise NoMeaning(f"axis {axis} of {builder.type(position)} has no {parts} equal parts")
    return _cut(builder, position, axis, size * number, size)


def _window(builder: GraphBuilder, position: int, by_axis: Sequence[AxisRuns]) -> int:
    for axis, runs in enumerate(by_axis):
        parts = [_cut(builder, position, axis, start, length) for start, length in runs]
        if not parts:
            parts = [_cut(builder, position, axis, 0, 0)]
        position = parts[0] if len(parts) == 1 else builder.add(ops.Concatenate(axis), *parts)
    return position
