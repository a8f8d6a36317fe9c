"""Equations between functions of one byte, element by element, decided by all numbers that a byte may be.

    >>> by_value(Lemma("", left=lowest_four_bits, right=remainder_of_sixteen, evidence="bytes"))
    True

A program is such a function where every operator on the way computes each element from those at the same place: no
element knows where it is, so that one number for each that the input may hold says what the program computes.
"""

from __future__ import annotations

import numpy as np

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, array_dtype, integer_limits
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.numbers.bounded import compute, exact

_CODES = frozenset({DType.I8, DType.U8, DType.BOOL})
_FINEST, _LARGEST = 1 << 8, 1 << 12
"""Floats that are multiples of the inverse of the one and no larger than the other are computed with exactly."""


def by_value(lemma: Lemma) -> bool:
    """Whether both sides are functions of one byte, and one function, without any rounding."""
    graphs = lemma.left, lemma.right
    inputs = {(name, graph.nodes[p].type) for graph in graphs for name, p in graph.inputs.items()}
    if len(inputs) != 1 or not all(len(graph.outputs) == 1 for graph in graphs):
        return False
    ((_, kind),) = inputs
    roots = [graph.nodes[next(iter(graph.outputs.values()))].type for graph in graphs]
    if kind.dtype not in _CODES or roots[0] != roots[1] or roots[0].shape != kind.shape:
        return False
    found = [_table(graph, kind) for graph in graphs]
    left, right = found
    return left is not None and right is not None and left.dtype == right.dtype and np.array_equal(left, right)


def _table(graph: Graph, kind: TensorType) -> Array | None:
    """What a program gives for every number of a type; None where it is no function of elements, or rounds."""
    (root,) = graph.outputs.values()
    tables: dict[int, Array] = {}
    read: set[int] = set()
    try:
        for position in sorted(graph.ancestors([root])):
            node = graph.nodes[position]
            is_other = isinstance(node.op, ops.Input) and position not in graph.inputs.values()
            if is_other or node.op.infer([graph.nodes[p].type for p in node.operands]) != node.type:
                return None
            found = _values(graph, node, kind, tables, read)
            if found is None or (found.dtype.kind == "f" and not np.isfinite(found).all()):
                return None
            tables[position] = found
            if isinstance(node.op, ops.Input) or not read.isdisjoint(node.operands):
                read.add(position)
    except (RewrightError, ArithmeticError, ValueError, NotImplementedError):
        return None
    low, high = integer_limits(kind.dtype)
    return np.broadcast_to(tables[root], (high - low + 1,))


def _values(graph: Graph, node: Node, kind: TensorType, tables: dict[int, Array], read: set[int]) -> Array | None:
    """What a node gives for every number; one number where it reads none."""
    op = node.op
    if isinstance(op, ops.Input):
        low, high = integer_limits(kind.dtype)
        return np.arange(low, high + 1).astype(array_dtype(kind.dtype))
    if isinstance(op, ops.Constant):
        own = ops.Constant(TensorType((len(op.values),), node.type.dtype), op.values)
        return own.execute([], np.float64)
    if isinstance(op, ops.Gather):
        return _looked_up(graph, op, node, tables, read)
    numbers = [tables[p] for p in node.operands]
    if not all(p in read or len(tables[p]) == 1 for p in node.operands):
        return None  # a table of several numbers, which are at places
    if isinstance(op, ops.View):
        is_kept = isinstance(op, ops.Reshape) and graph.nodes[node.operands[0]].type == node.type
        return numbers[0] if is_kept or node.operands[0] not in read else None
    return compute_for_numbers(graph, op, node, numbers) if isinstance(op, ops.Elementwise) else None


def _looked_up(graph: Graph, op: ops.Gather, node: Node, tables: dict[int, Array], read: set[int]) -> Array | None:
    """What a table of numbers holds at places that the input says, one number for each."""
    table, places = (graph.nodes[p] for p in node.operands)
    is_table = isinstance(table.op, ops.Constant) and table.type.shape == (len(table.op.values),)
    plain = ops.Gather((), (0,), (), (), (0,), places.type.rank, (1,))
    if not is_table or op != plain or places.type.shape != node.type.shape or node.operands[1] not in read:
        return None
    values, indices = (tables[p] for p in node.operands)
    if indices.dtype.kind not in "iu" or indices.min() < 0 or indices.max() >= len(values):
        return None
    return values[indices]


def compute_for_numbers(graph: Graph, op: ops.Elementwise, node: Node, numbers: list[Array]) -> Array | None:
    """What an operator gives for every number; None where rounding or a machine may decide that."""
    count = max(len(one) for one in numbers)
    operands = [exact(np.broadcast_to(one, (count,))) for one in numbers]
    types = [graph.nodes[p].type.with_shape((count,)) for p in node.operands]
    found = compute(op, operands, types, node.type.with_shape((count,)))
    if not found.is_exact:
        return None
    is_moved = bool(op.moves(len(operands))) or not node.type.dtype.is_float
    return found.value if is_moved or _is_fine(found.value) else None


def _is_fine(values: Array) -> bool:
    with np.errstate(all="ignore"):
        return bool((np.abs(values) <= _LARGEST).all() and (values * _FINEST == np.round(values * _FINEST)).all())
