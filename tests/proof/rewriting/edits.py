"""Programs with one node that is another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType

INF = float("inf")
_UNARY = (ops.Exponential, ops.Log, ops.Abs, ops.Negate, ops.Tanh, ops.Sqrt, ops.Rsqrt, ops.Floor, ops.Ceil,
          ops.Logistic, ops.RoundNearestEven, ops.Sine)  # fmt: skip
_BINARY = (ops.Add, ops.Subtract, ops.Multiply, ops.Divide, ops.Maximum, ops.Minimum, ops.Remainder)
_KINDS = ("sum", "maximum", "minimum", "product")
_ORDERS = ("LT", "LE", "GT", "GE", "EQ", "NE")


def edited(graph: Graph, random: Random) -> Graph | None:
    """A program with another node at one position, all others being where they were; None where that is no program."""
    position = random.choice(sorted(graph.live() - frozenset(graph.inputs.values())))
    node = graph.nodes[position]
    op = _other(node, random)
    operands = _operands(graph, position, random) if op is None or random.random() < 0.15 else node.operands
    return with_node(graph, position, node.op if op is None else op, operands)


def with_node(graph: Graph, position: int, op: Operator, operands: Sequence[int]) -> Graph | None:
    """The program with another operator at a position; None where nothing changes or it does not fit."""
    old = graph.nodes[position]
    if repr(op) == repr(old.op) and tuple(operands) == old.operands:
        return None
    builder, names = GraphBuilder(graph.name), {p: name for name, p in graph.inputs.items()}
    try:
        for p, node in enumerate(graph.nodes):
            builder.span = node.span
            if p in names:
                builder.input(names[p], node.op)
            elif p == position:
                builder.add(op, *operands)
            else:
                builder.add(node.op, *node.operands)
            if builder.type(p) != graph.nodes[p].type:
                return None
    except RewrightError:
        return None
    for name, p in graph.outputs.items():
        builder.output(name, p)
    return replace(builder.build(), metadata=graph.metadata)


def _operands(graph: Graph, position: int, random: Random) -> tuple[int, ...]:
    node = graph.nodes[position]
    if len(node.operands) > 1 and random.random() < 0.4:
        return node.operands[::-1]
    if not node.operands:
        return ()
    place = random.randrange(len(node.operands))
    kind = graph.nodes[node.operands[place]].type
    other = random.choice([p for p in range(position) if graph.nodes[p].type == kind])
    return (*node.operands[:place], other, *node.operands[place + 1 :])


def _other(node: Node, random: Random) -> Operator | None:
    """Another operator for a node; None where there is none."""
    op = node.op
    for group in (_UNARY, _BINARY):
        if isinstance(op, group) and (node.type.dtype.is_float or group is _BINARY):
            return random.choice([kind for kind in group if kind is not type(op)])()
    if isinstance(op, ops.Constant):
        return replace(op, values=_values(op, random))
    if isinstance(op, ops.Compare):
        return replace(op, direction=random.choice(_ORDERS))
    if isinstance(op, ops.Reduce):
        return replace(op, kind=random.choice(_KINDS))
    if isinstance(op, ops.Scatter):
        return replace(op, kind=random.choice(("sum", "replace", "maximum", "minimum")))
    if isinstance(op, ops.TopK):
        return replace(op, k=random.choice((1, 2, 3)), result=random.choice(("values", "indices")))
    if isinstance(op, ops.Iota):
        return replace(op, dimension=random.randrange(max(op.tensor.rank, 1)))
    if isinstance(op, ops.Slice):
        move = random.choice((-1, 1))
        return replace(op, start=(op.start[0] + move, *op.start[1:]), limit=(op.limit[0] + move, *op.limit[1:]))
    if isinstance(op, ops.Transpose):
        return replace(op, permutation=tuple(random.sample(op.permutation, len(op.permutation))))
    if isinstance(op, ops.BroadcastInDim) and len(op.dimensions) > 1:
        return replace(op, dimensions=op.dimensions[::-1])
    return None


def _values(op: ops.Constant, random: Random) -> tuple[float | int | bool, ...]:
    place, kind = random.randrange(len(op.values)), op.tensor.dtype
    value = op.values[place]
    other: float | int | bool
    if kind is DType.BOOL:
        other = not value
    elif kind.is_float:
        number = float(value)
        other = random.choice((number + 1, -number, number * 2, number * 1.05, 0.0, -5.0, INF, -INF, -1e9))
    else:
        other = int(value) + random.choice((-1, 1, 2, 8))
    return (*op.values[:place], other, *op.values[place + 1 :])
