"""Along which axes an operator may be split over parts, and how the parts of its result are put together.

This is the sharding facet of an operator. It is derived from the denotation (:mod:`rewright.terms.roles`): nothing
here knows any operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewright.ir.dims import Dim, symbol
from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import TensorType
from rewright.ops.base import TensorOperator, replace_size
from rewright.terms.roles import Contracted, Follows, Roles, roles


@dataclass(frozen=True, slots=True)
class Split:
    """Cut some operands along one axis each and keep the others whole; then put the results together.

    ``kind`` is ``concatenate`` (along ``result_axis``), or the reduction that combines results of full size.
    ``operand_axes`` has the axis to cut for each operand, None where the operand is used whole by every part.
    """

    kind: str
    result_axis: int | None
    operand_axes: tuple[int | None, ...]


def axis_roles(op: TensorOperator, operands: Sequence[TensorType]) -> Roles | Unsupported:
    """What the operator does with every axis of its operands; raises TypeMismatch where they do not fit."""
    value = op.denote(operands)
    if isinstance(value, Unsupported):
        return value
    return roles(value, [operand.shape for operand in operands], op.infer(operands).shape)


def splits(op: TensorOperator, operands: Sequence[TensorType]) -> tuple[Split, ...] | Unsupported:
    """All splits that the denotation shows to be sound, for any cut into parts of at least one element.

    Parts are computed by :meth:`TensorOperator.resize`. Raises TypeMismatch where the operands do not fit.
    """
    found = axis_roles(op, operands)
    if isinstance(found, Unsupported):
        return found
    along = [Split("concatenate", axis, _axes(found, Follows(axis))) for axis in found.free]
    folds = [Split(fold.kind, None, _axes(found, fold)) for fold in found.folds]
    return tuple(split for split in (*along, *folds) if _fits(op, operands, split))


_PART = symbol("part")


def _fits(op: TensorOperator, operands: Sequence[TensorType], split: Split) -> bool:
    """Whether the type rule accepts parts: it may couple axes whose elements the formula happens not to read."""
    cut = [
        operand if axis is None else operand.with_shape(replace_size(operand.shape, axis, _PART))
        for operand, axis in zip(operands, split.operand_axes, strict=True)
    ]
    whole = op.infer(operands)
    axis = split.result_axis
    expected = whole if axis is None else whole.with_shape(replace_size(whole.shape, axis, _PART))
    try:
        return part(op, operands, split, _PART).infer(cut) == expected
    except TypeMismatch:
        return False


def part(op: TensorOperator, operands: Sequence[TensorType], split: Split, size: Dim) -> TensorOperator:
    """The operator that computes a part of the given size from parts of the operands (whole operands' types)."""
    return op if split.result_axis is None else op.resize(operands, split.result_axis, size)


def _axes(found: Roles, role: Follows | Contracted) -> tuple[int | None, ...]:
    return tuple(operand.index(role) if role in operand else None for operand in found.operands)
