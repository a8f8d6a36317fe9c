"""Programs whose inputs and outputs are of other float or integer types: one in bf16, say, beside one in fp32.

They are compared over the reals, where casts keep values: the right program takes what the left one takes, casts it
to its own type, and casts what it computes to the type of the left program.
"""

from __future__ import annotations

from dataclasses import replace

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.placement import RankProgram
from rewright.ir.rebuilding import rebuild
from rewright.ir.types import DType
from rewright.proof.rewriting.parts import convert_node


def of_one_kind(left: Graph, right: RankProgram) -> RankProgram:
    """The right program with the element types of the left one's inputs and outputs; the same where they are these."""
    return replace(right, graphs=tuple(_retype(left, graph) for graph in right.graphs))


def is_alike(one: DType, other: DType) -> bool:
    """Whether values of both types can be equal: both are floats, or both integers, or both truth values."""
    return one is other or (one.is_float and other.is_float) or (one.is_integer and other.is_integer)


def _retype(left: Graph, graph: Graph) -> Graph:
    takes = {p: left.nodes[left.inputs[n]].type.dtype for n, p in graph.inputs.items() if n in left.inputs}
    gives = {p: left.nodes[left.outputs[n]].type.dtype for n, p in graph.outputs.items() if n in left.outputs}
    differ = {p: dtype for p, dtype in takes.items() if _casts(graph.nodes[p], dtype)}
    if not differ and not any(_casts(graph.nodes[p], dtype) for p, dtype in gives.items()):
        return graph

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if position not in differ or not isinstance(node.op, ops.Input):
            return None
        kind = replace(node.type, dtype=differ[position])
        given = builder.input(node.op.label, replace(node.op, tensor=kind))
        if not node.span.file and not node.span.module_path:
            builder.span = replace(node.span, module_path=f"input {node.op.label!r}")
        return convert_node(builder, given, node.type)

    return _with_outputs(left, rebuild(graph, make))


def _with_outputs(left: Graph, graph: Graph) -> Graph:
    builder, places = GraphBuilder(graph.name), dict[int, int]()
    names = {position: name for name, position in graph.inputs.items()}
    for position, node in enumerate(graph.nodes):
        builder.span = node.span
        operands = [places[p] for p in node.operands]
        is_input = position in names
        places[position] = builder.input(names[position], node.op) if is_input else builder.add(node.op, *operands)
    for name, position in graph.outputs.items():
        place = places[position]
        if name in left.outputs:
            wanted = left.nodes[left.outputs[name]].type.dtype
            if _casts(graph.nodes[position], wanted):
                builder.span = graph.nodes[position].span
                place = convert_node(builder, place, replace(graph.nodes[position].type, dtype=wanted))
        builder.output(name, place)
    return replace(builder.build(), metadata=graph.metadata)


def _casts(node: Node, wanted: DType) -> bool:
    return node.type.dtype is not wanted and is_alike(node.type.dtype, wanted)
