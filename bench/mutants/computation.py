"""Bugs in what one rank computes: operands reversed, terms dropped, axes, slices and scales that are wrong."""

from __future__ import annotations

from collections.abc import Iterator

from bench.mutants.model import Bug, Place
from rewright import ops
from rewright.blame.editing import Editor, Replacement, in_reverse, only_operand, with_attributes
from rewright.ir.dims import Dim
from rewright.ir.graph import Node

STRICTER = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT"}


def reversed_operands(place: Place) -> Iterator[Bug]:
    """The operands of an operator that does not commute, in the opposite order."""
    node = place.node
    commutes = not isinstance(node.op, ops.Binary) or isinstance(node.op, ops.Monoid)
    swaps = not commutes and node.type.dtype.is_float
    if swaps or (isinstance(node.op, ops.Concatenate) and len(node.operands) > 1):
        yield "reversed_operands", f"{node.op.name} reversed", in_reverse
    if isinstance(node.op, ops.DotGeneral):
        op = node.op
        if place.operand(0).type == place.operand(1).type:
            yield "reversed_operands", "dot_general reversed", in_reverse
        elif len(set(place.operand(1).type.shape)) < place.operand(1).type.rank:
            for axis in range(place.operand(1).type.rank):
                if axis not in op.rhs_contracting + op.rhs_batch and len(op.rhs_contracting) == 1:
                    other = with_attributes(rhs_contracting=(axis,))
                    yield "wrong_axis", f"dot_general contracts axis {axis} of its second operand", other


def dropped_term(place: Place) -> Iterator[Bug]:
    """A sum of two tensors of which one is forgotten: a residual, a bias, or an edge of the gradient."""
    node = place.node
    if not isinstance(node.op, ops.Add) or not node.type.dtype.is_float or not node.type.rank:
        return
    if any(_is_constant(place, index) for index in (0, 1)):
        return
    kind = "dropped_gradient_term" if node.span.backward else "dropped_residual"
    for index in (0, 1):
        yield kind, f"{'first' if index else 'second'} term of a sum dropped", only_operand(index)


def wrong_axis(place: Place) -> Iterator[Bug]:
    """A reduction over, or a transposition of, another axis of the same size; a reduction of another kind."""
    op, node = place.node.op, place.node
    if isinstance(op, ops.Reduce) and node.operands:
        shape = place.operand(0).type.shape
        for axis in range(len(shape)):
            if len(op.dimensions) == 1 and axis not in op.dimensions and shape[axis] == shape[op.dimensions[0]]:
                yield "wrong_axis", f"reduce over axis {axis}", with_attributes(dimensions=(axis,))
        if op.kind in ("sum", "maximum") and node.type.dtype.is_float:
            other = "maximum" if op.kind == "sum" else "minimum"
            yield "wrong_reduction", f"reduce of kind {op.kind} made {other}", with_attributes(kind=other)
    if isinstance(op, ops.Transpose) and len(op.permutation) > 1:
        shape = node.type.shape
        for axis in range(len(shape) - 1):
            if shape[axis] == shape[axis + 1] != 1:
                swapped = list(op.permutation)
                swapped[axis : axis + 2] = reversed(swapped[axis : axis + 2])
                yield "wrong_axis", f"axes {axis} and {axis + 1} swapped", with_attributes(permutation=tuple(swapped))


def shifted_slice(place: Place) -> Iterator[Bug]:
    """A slice that starts one element too early or too late."""
    op = place.node.op
    if not isinstance(op, ops.Slice):
        return
    shape = place.operand(0).type.shape
    for axis, (start, limit, size) in enumerate(zip(op.start, op.limit, shape, strict=True)):
        if not (isinstance(start, int) and isinstance(limit, int) and isinstance(size, int)):
            continue
        for shift in (-1, 1):
            if start + shift >= 0 and limit + shift <= size:
                moved = with_attributes(start=_shifted(op.start, axis, shift), limit=_shifted(op.limit, axis, shift))
                yield "shifted_slice", f"slice of axis {axis} moved by {shift}", moved


def wrong_scale(place: Place) -> Iterator[Bug]:
    """A product or quotient by a constant that is too large, or not applied at all."""
    node = place.node
    if not isinstance(node.op, ops.Multiply | ops.Divide) or not node.type.dtype.is_float:
        return
    world = place.program.mesh.size
    for index in (1, 0) if isinstance(node.op, ops.Multiply) else (1,):
        if _is_constant(place, index) and not _is_constant(place, 1 - index):
            yield "wrong_scale", f"constant of {node.op.name} made {world} times larger", _scaled(index, float(world))
            yield "wrong_scale", f"{node.op.name} by a constant left out", only_operand(1 - index)
            return


def shifted_bound(place: Place) -> Iterator[Bug]:
    """An integer constant that is off by one, and a comparison that includes or excludes its bound wrongly."""
    op, node = place.node.op, place.node
    if isinstance(op, ops.Compare) and place.operand(0).type.dtype.is_integer and op.direction in STRICTER:
        other = STRICTER[op.direction]
        yield "shifted_bound", f"comparison {op.direction} made {other}", with_attributes(direction=other)
    if not isinstance(op, ops.Constant) or not node.type.dtype.is_integer or len(op.values) != 1:
        return
    readers = place.readers_behind(ops.BroadcastInDim)
    if not any(isinstance(reader.op, ops.Homogeneous) and len(reader.operands) > 1 for reader in readers):
        return
    for shift in (-1, 1):
        yield "shifted_bound", f"integer constant shifted by {shift}", _moved_constant(shift)


def dropped_mask(place: Place) -> Iterator[Bug]:
    """A select of floats that always takes one branch."""
    if isinstance(place.node.op, ops.Select) and place.node.type.dtype.is_float:
        for index, branch in ((1, "true"), (2, "false")):
            if not _is_constant(place, index):
                yield "dropped_mask", f"select always takes its {branch} branch", only_operand(index)


def shifted_positions(place: Place) -> Iterator[Bug]:
    """Positions that start at one; where only their differences matter this is a true equivalence."""
    node = place.node
    if isinstance(node.op, ops.Iota) and any(
        isinstance(r.op, ops.Convert) and r.op.dtype.is_float for r in place.readers()
    ):
        yield "shifted_positions", "positions start at 1", _add_one


def _is_constant(place: Place, index: int) -> bool:
    return isinstance(place.source(index).op, ops.Constant)


def _shifted(bounds: tuple[Dim, ...], axis: int, shift: int) -> tuple[Dim, ...]:
    return (*bounds[:axis], bounds[axis] + shift, *bounds[axis + 1 :])


def _scaled(index: int, factor: float) -> Replacement:
    def build(editor: Editor, node: Node) -> int:
        constant = editor.add(ops.Constant(node.type, (factor,)))
        operands = list(node.operands)
        operands[index] = editor.add(ops.Multiply(), operands[index], constant)
        return editor.add(node.op, *operands)

    return build


def _moved_constant(shift: int) -> Replacement:
    def build(editor: Editor, node: Node) -> int:
        assert isinstance(node.op, ops.Constant)
        return editor.add(ops.Constant(node.op.tensor, (node.op.values[0] + shift,)))

    return build


def _add_one(editor: Editor, node: Node) -> int:
    return editor.add(ops.Add(), editor.add(node.op), editor.add(ops.Constant(node.type, (1,))))


FAMILIES = (
    reversed_operands,
    dropped_term,
    wrong_axis,
    shifted_slice,
    wrong_scale,
    shifted_bound,
    dropped_mask,
    shifted_positions,
)
