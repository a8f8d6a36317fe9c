"""Contractions and reductions of values, also where these are in pieces along what is summed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rewright import ops
from rewright.ir.dims import product
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.lifting.arithmetic.reduction import among_numbers, dot_general, reduce
from rewright.lifting.recognition.equal_steps import of_sequential
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.value import NotAView, Pieces, Value


def _dot(algebra: Algebra, op: ops.DotGeneral, values: Sequence[Value], *_: object) -> Value:
    return dot_general(algebra, op, values[0], values[1])


def _reduce(
    algebra: Algebra, op: ops.Reduce, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    if product(types[0].shape[a] for a in op.dimensions) == 0:
        if op.kind != "sum":
            raise NotAView("an empty reduction")
        return algebra.zero(tuple((n,) for n in result.shape))
    found = reduce(algebra, among_numbers(op.kind, types[0].dtype), values[0], op.dimensions)
    in_parts = isinstance(values[0], Pieces) and values[0].axis in op.dimensions
    return of_sequential(algebra, found) if in_parts and op.kind == "sum" else found


LAWS: Mapping[type[Operator], Callable[..., Value]] = {ops.DotGeneral: _dot, ops.Reduce: _reduce}
