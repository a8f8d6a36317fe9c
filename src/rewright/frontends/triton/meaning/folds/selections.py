"""Choices that are something else: extrema that are written as choices, and sums of which a mask leaves some out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rewright import ops
from rewright.frontends.triton.meaning.values import Data
from rewright.frontends.triton.meaning.writer import Writer
from rewright.ir.operator import Operator
from rewright.ops.reference import building as rb


def selected(writer: Writer, condition: Data, yes: Data, no: Data) -> Data:
    """One of two values where a condition holds, else the other."""
    found = (
        _no_number(writer, condition, yes, no)
        or _extremum(writer, condition, yes, no)
        or _left_out(writer, condition, yes, no)
    )
    return writer.select(condition, yes, no) if found is None else found


def _no_number(writer: Writer, condition: Data, yes: Data, no: Data) -> Data | None:
    """``where(a != a or b != b, nan, max(a, b))`` as the larger of both, which is no number where one of them is."""
    value, node = writer.b.uniform(yes.position), writer.b.node(no.position)
    if not (isinstance(value, float) and math.isnan(value)) or condition.axes != no.axes or condition.shape != no.shape:
        return None
    is_extremum = isinstance(node.op, ops.Maximum | ops.Minimum)
    is_fold = isinstance(node.op, ops.Reduce) and node.op.kind in ("maximum", "minimum")
    if not (is_extremum or is_fold):
        return None
    parts = [_tested(writer, part) for part in _parts(writer, condition.position)]
    wanted = {(p, node.op.dimensions if isinstance(node.op, ops.Reduce) else None) for p in node.operands}
    return no if all(part in wanted for part in parts) else None


def _tested(writer: Writer, position: int) -> tuple[int, tuple[int, ...] | None] | None:
    """What a condition holds of where it is no number, or where any along some axes is: ``max(x != x) > 0``."""
    node = writer.b.node(position)
    if _is_no_number(node.op, node.operands):
        return node.operands[0], None
    if isinstance(node.op, ops.Compare) and (node.op.direction, writer.b.uniform(node.operands[1])) in _ANY:
        node = writer.b.node(_unconverted(writer, node.operands[0]))
    if not isinstance(node.op, ops.Reduce) or node.op.kind not in ("maximum", "or"):
        return None
    inner = writer.b.node(_unconverted(writer, node.operands[0]))
    return (inner.operands[0], node.op.dimensions) if _is_no_number(inner.op, inner.operands) else None


_ANY = (("GE", 1), ("GT", 0), ("NE", 0))


def _unconverted(writer: Writer, position: int) -> int:
    """A truth value, or an integer of more bits, before it was made the number that it is."""
    node = writer.b.node(position)
    while isinstance(node.op, ops.Convert) and not writer.b.type(node.operands[0]).dtype.is_float:
        position = node.operands[0]
        node = writer.b.node(position)
    return position


_KINDS = {"GT": ops.Maximum(), "GE": ops.Maximum(), "LT": ops.Minimum(), "LE": ops.Minimum()}


_NEUTRAL: dict[type[Operator], float] = {ops.Add: 0.0, ops.Maximum: -math.inf, ops.Minimum: math.inf}


def _extremum(writer: Writer, condition: Data, yes: Data, no: Data) -> Data | None:
    """``where(a > b or a != a, a, b)`` as the larger of both, and the lesser likewise."""
    axes = writer.union(condition, yes, no)
    if condition.axes != axes or not condition.shape == yes.shape == no.shape:
        return None
    pair = writer.spread(yes, axes), writer.spread(no, axes)
    nodes = [writer.b.node(place) for place in _parts(writer, condition.position)]
    compared = [n for n in nodes if isinstance(n.op, ops.Compare) and n.operands == pair]
    others = [n for n in nodes if n not in compared]
    if len(compared) != 1 or any(not _is_no_number(n.op, n.operands) for n in others):
        return None
    op = compared[0].op
    kind = _KINDS.get(op.direction) if isinstance(op, ops.Compare) else None
    return None if kind is None else writer.apply(kind, yes, no)


def _is_no_number(op: Operator, operands: Sequence[int]) -> bool:
    """Whether a condition holds of what is no number alone: ``a != a``."""
    return isinstance(op, ops.Compare) and op.direction == "NE" and operands[0] == operands[1]


def _parts(writer: Writer, position: int) -> list[int]:
    """The conditions of which one has to hold."""
    node = writer.b.node(position)
    return [p for o in node.operands for p in _parts(writer, o)] if isinstance(node.op, ops.Or) else [position]


def _left_out(writer: Writer, condition: Data, yes: Data, no: Data) -> Data | None:
    """``where(mask, carried + x, carried)`` as ``carried + where(mask, x, 0)``, and extrema likewise."""
    op = writer.b.node(no.position).op
    node = writer.b.node(yes.position)
    is_carried = isinstance(op, ops.CustomCall) and op.target == ops.CustomCall.UNINITIALIZED
    rest = [p for p in node.operands if p != no.position]
    if not is_carried or len(rest) != 1 or yes.axes != no.axes or yes.shape != no.shape:
        return None
    neutral = _NEUTRAL.get(type(node.op))
    dtype = writer.dtype(no)
    if neutral is None or (neutral and not dtype.is_float):
        return None
    nothing = writer.constant(rb.cast(neutral, dtype), no.shape, dtype)
    part = writer.select(condition, Data(rest[0], yes.axes, yes.shape), nothing)
    return writer.apply(node.op, no, part)
