"""The place of the largest element of a block: a fold of pairs of a value and a place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rewright import ops
from rewright.frontends.triton.meaning.indices import lane
from rewright.frontends.triton.meaning.values import Data, Value, Whole
from rewright.frontends.triton.text import Operation
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.reference import building as rb
from rewright.terms.index import variable

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader


def first_place(reader: Reader, op: Operation, values: tuple[Value, ...]) -> tuple[Value, Value]:
    """The largest or least element along an axis with its place, the first one among equals.

    Raises UnsupportedOperator for other folds of several blocks.
    """
    kind = _kind(op)
    axis = int(op.attributes["axis"])
    if kind is None or len(values) != 2 or not _counts(values[1], axis):
        raise UnsupportedOperator("a fold of several blocks at once is read where it finds the first largest or least")
    writer, data = reader.writer, reader.writer.data(values[0])
    shape = (*data.shape[:axis], *data.shape[axis + 1 :])
    found = Data(rb.reduce(writer.b, kind, data.position, [len(data.axes) + axis]), data.axes, shape)
    return found, Data(_place(reader, data, axis, kind), data.axes, shape)


def _counts(value: Value, axis: int) -> bool:
    """Whether a block counts along an axis from zero."""
    return isinstance(value, Whole) and value.index == variable(lane(axis))


def _place(reader: Reader, data: Data, axis: int, kind: Literal["maximum", "minimum"]) -> int:
    b, place = reader.writer.b, len(data.axes) + axis
    position = _without_filling(reader, data.position, place, kind)
    rank = b.type(position).rank
    if kind == "minimum":
        position = b.add(ops.Negate() if b.type(position).dtype.is_float else ops.Not(), position)
    moved = rb.swap(b, position, place, rank - 1)
    first = rb.swap(b, b.add(ops.TopK(1, "indices"), moved), place, rank - 1)
    sizes = b.type(first).shape
    return rb.convert(b, rb.reshape(b, first, (*sizes[:place], *sizes[place + 1 :])), DType.I32)


def _without_filling(reader: Reader, position: int, axis: int, kind: str) -> int:
    """The block without lanes behind the end, which hold an infinity that no number is behind."""
    b = reader.writer.b
    node = b.node(position)
    if not isinstance(node.op, ops.Pad) or any(node.op.low) or any(node.op.interior):
        return position
    others = [n for k, n in enumerate(node.op.high) if k != axis]
    value = ops.splat(b.node(node.operands[1]).op)
    wanted = float("-inf") if kind == "maximum" else float("inf")
    is_filled = value == wanted and not any(n != 0 for n in others) and node.op.high[axis] != 0
    return node.operands[0] if is_filled else position


def _kind(op: Operation) -> Literal["maximum", "minimum"] | None:
    """What a combiner keeps of two pairs: the larger or lesser value, and of equal ones the earlier place."""
    body = op.regions[0]
    if len(body.arguments) != 4:
        return None
    (value, _), (place, _), (other, _), (behind, _) = body.arguments
    by_name = {name: step for step in body.operations for name in step.results}
    end = body.operations[-1]
    chosen = [by_name.get(name) for name in end.operands]
    if len(chosen) != 2 or any(step is None or step.name != "arith.select" for step in chosen):
        return None
    first, second = (step.operands for step in chosen if step is not None)
    if first[0] != second[0] or first[1:] != (value, other) or second[1:] != (place, behind):
        return None
    either = by_name.get(first[0])
    if either is None or either.name != "arith.ori":
        return None
    parts = [by_name.get(name) for name in either.operands]
    better = [s for s in parts if s is not None and s.name.startswith("arith.cmp") and s.operands == (value, other)]
    ties = [s for s in parts if s is not None and s.name == "arith.andi"]
    if len(better) != 1 or len(ties) != 1:
        return None
    same = [by_name.get(name) for name in ties[0].operands]
    found = {(s.name, s.words[0], s.operands) for s in same if s is not None}
    equal = {("arith.cmpf", "oeq", (value, other)), ("arith.cmpi", "eq", (value, other))}
    if len(found) != 2 or not found & equal or ("arith.cmpi", "slt", (place, behind)) not in found:
        return None
    return {"ogt": "maximum", "sgt": "maximum", "olt": "minimum", "slt": "minimum"}.get(better[0].words[0])  # pyright: ignore[reportReturnType]
