"""A builder that computes what modules compute of constants: which part of a tensor a device takes, above all.

The SPMD partitioner writes offsets as look-ups of the device's number in small tables. Written out for one device they
are numbers, and a dynamic slice at numbers is a slice.
"""

from __future__ import annotations

from rewright import ops
from rewright.ir.operator import Operator
from rewright.ir.types import SourceSpan
from rewright.ops.base import TensorOperator
from rewright.ops.reference.simplifying import SimplifyingBuilder

_MOST_ELEMENTS = 4096


class FoldingBuilder(SimplifyingBuilder):
    """Folds operators on small integer and boolean constants; integers wrap around, as HLO says."""

    def add(self, op: Operator, *operands: int, span: SourceSpan | None = None) -> int:
        position = super().add(op, *operands, span=span)
        node = self.node(position)
        if node.operands and isinstance(node.op, TensorOperator) and not isinstance(node.op, ops.Constant):
            return self._fold(position)
        return position

    def _fold(self, position: int) -> int:
        node = self.node(position)
        constants = [self.node(operand).op for operand in node.operands]
        kinds = [node.type, *(self.type(operand) for operand in node.operands)]
        if node.type.dtype.is_float or not all(kind.is_static() for kind in kinds):
            return position
        if any(not isinstance(op, ops.Constant) for op in constants):
            return position
        if any(kind.dtype.is_float or int(str(kind.size())) > _MOST_ELEMENTS for kind in kinds):
            return position
        if isinstance(node.op, (ops.Gather, ops.Scatter)):
            return position
        values = [op.execute([]) for op in constants if isinstance(op, ops.Constant)]
        found = tuple(node.op.execute(values).reshape(-1).tolist()) if isinstance(node.op, TensorOperator) else ()
        if not found:
            return position
        return self.add_plain(ops.Constant(node.type, found[:1] if len(set(found)) == 1 else found))
