"""What a kernel looks up has to be in bounds, which is a condition on its inputs, as it is one of a reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType, TensorType
from rewright.kernel.counting import PREFIX, counts, read_into, source_of
from rewright.ops import (
    BroadcastInDim,
    Concatenate,
    Constant,
    Convert,
    CustomCall,
    Gather,
    Input,
    Maximum,
    Pad,
    Select,
    View,
)
from rewright.ops.facts import fits, of_dtype
from rewright.ops.reference import building as rb
from rewright.ops.reference.size_values import size_value

MOST = 64
BOUNDS = "in bounds:"


def with_look_ups(left: Graph, right: Graph) -> tuple[Graph, Graph] | None:
    """Both programs with all look-ups of the right one as outputs, out of tensors of zeros.

    So the left program is defined only where these look-ups are in bounds. None where the right program has none that
    are computed from inputs of both.
    """
    found = list(look_ups(left, right))[:MOST]
    if not found:
        return None
    for number, position in enumerate(found):
        node = right.nodes[position]
        operand = right.nodes[node.operands[0]].type
        left, indices = _copied(left, right, node.operands[1])
        left = _look_up(left, f"{BOUNDS}{number}", node, operand, indices)
        right = _look_up(right, f"{BOUNDS}{number}", node, operand, node.operands[1])
    return left, right


def facts_of(left: Graph, right: Graph, *, tables: bool = False) -> tuple[Graph | None, tuple[str, ...]]:
    """That all look-ups of both programs are in bounds, as booleans that are true, and in words.

    With ``tables`` that is said of all elements of an input which holds places, and not of those alone that are read.
    """
    builder = GraphBuilder()
    names: dict[str, int] = {}
    texts: dict[str, None] = {}
    for graph, what in ((left, "reference"), (right, "kernel")):
        for position in list(look_ups(left, graph))[:MOST]:
            node = graph.nodes[position]
            assert isinstance(node.op, Gather)
            indices = read_into(builder, graph, node.operands[1], names)
            sizes = graph.nodes[node.operands[0]].type.shape
            _bound(builder, node.op, indices, sizes)
            texts[f"what the {what} looks up at {node.span} is in bounds"] = None
            for label, axis in _tables(graph, position) if tables else ():
                table = read_into(builder, graph, graph.inputs[label], names)
                _between(builder, table, sizes[axis] - node.op.slice_sizes[axis])
                texts[f"all elements of {label} are places of what the {what} looks up at {node.span}"] = None
        texts |= counts(builder, graph, names)
    facts = builder.build()
    return (facts if facts.outputs else None), tuple(texts)


def _bound(b: GraphBuilder, op: Gather, indices: int, sizes: Sequence[Dim]) -> None:
    """Facts that each component of index vectors lies between zero and the last place of a slice."""
    shape = b.type(indices).shape
    is_vector = op.index_vector_dim < len(shape)
    for number, axis in enumerate(op.start_index_map):
        one = rb.slice_axis(b, indices, op.index_vector_dim, number, number + 1) if is_vector else indices
        own = tuple(size for size in b.type(one).shape if size != 1)  # an axis of one element tells nothing apart
        one = rb.reshape(b, one, own)
        _between(b, one, sizes[axis] - op.slice_sizes[axis])


def _between(b: GraphBuilder, numbers: int, most: Dim) -> None:
    """Facts that integers are not negative, and at most a size; so is each number of which one is the larger."""
    graph = b.build()
    node = graph.nodes[source_of(graph, numbers)]
    while isinstance(node.op, Convert) and fits(of_dtype(graph.nodes[node.operands[0]].type.dtype), node.op.dtype):
        node = graph.nodes[source_of(graph, node.operands[0])]
    for part in node.operands if isinstance(node.op, Maximum) else ():
        last = b.add(BroadcastInDim(b.type(part).shape, ()), size_value(b, most, b.type(part).dtype))
        b.output(f"{PREFIX}{len(b.build().outputs)}", rb.compare(b, "GE", last, part))
    shape, kind = b.type(numbers).shape, b.type(numbers).dtype
    last = b.add(BroadcastInDim(shape, ()), size_value(b, most, kind))
    zero = rb.splat(b, 0, shape, kind)
    for left, right in ((numbers, zero), (last, numbers)):
        b.output(f"{PREFIX}{len(b.build().outputs)}", rb.compare(b, "GE", left, right))


def _tables(graph: Graph, position: int) -> Iterator[tuple[str, int]]:
    """Inputs whose elements are places along an axis of what a look-up reads, as they are."""
    node = graph.nodes[position]
    assert isinstance(node.op, Gather)
    vectors = graph.nodes[node.operands[1]]
    several = isinstance(vectors.op, Concatenate) and vectors.op.dimension == node.op.index_vector_dim
    parts = vectors.operands if several else (node.operands[1],)
    if len(parts) == len(node.op.start_index_map):
        for part, axis in zip(parts, node.op.start_index_map, strict=True):
            yield from dict.fromkeys((label, axis) for label in _held(graph, part))


def _held(graph: Graph, position: int) -> Iterator[str]:
    """Inputs whose elements a node holds as they are; not where a program asks itself which of them are places."""
    node = graph.nodes[position]
    if isinstance(node.op, Input) and node.type.dtype.is_integer:
        yield node.op.label
    if isinstance(node.op, Select):
        asked = {graph.nodes[p].op for p in graph.ancestors([node.operands[0]])}
        labels = {op.label for op in asked if isinstance(op, Input)}
        yield from (label for k in (1, 2) for label in _held(graph, node.operands[k]) if label not in labels)
        return
    held = {View: (0,), Convert: (0,), Gather: (0,), Pad: (0,)}
    for kind, operands in held.items():
        if isinstance(node.op, kind):
            for number in operands:
                yield from _held(graph, node.operands[number])


def look_ups(left: Graph, right: Graph) -> Iterator[int]:
    seen: set[object] = set()
    live = right.live()
    for position, node in enumerate(right.nodes):
        if position not in live or not isinstance(node.op, Gather):
            continue
        key = (node.op, node.operands[1], right.nodes[node.operands[0]].type.shape)
        above = [right.nodes[p].op for p in right.ancestors([node.operands[1]])]
        names = {op.label for op in above if isinstance(op, Input)}
        if key in seen or not names or not names <= set(left.inputs) or any(isinstance(op, CustomCall) for op in above):
            continue
        seen.add(key)
        yield position


def _copied(graph: Graph, source: Graph, position: int) -> tuple[Graph, int]:
    """A graph with a node of another one, and what that is made of; inputs of one name are one."""
    nodes = list(graph.nodes)
    places: dict[int, int] = {}
    for old in sorted(source.ancestors([position])):
        node = source.nodes[old]
        if isinstance(node.op, Input):
            places[old] = graph.inputs[node.op.label]
            continue
        nodes.append(replace(node, operands=tuple(places[p] for p in node.operands)))
        places[old] = len(nodes) - 1
    return replace(graph, nodes=tuple(nodes)), places[position]


def _look_up(graph: Graph, name: str, like: Node, operand: TensorType, indices: int) -> Graph:
    count = len(graph.nodes)
    scalar, whole = TensorType((), DType.I32), TensorType(operand.shape, DType.I32)
    zero = Node(Constant(scalar, (0,)), (), scalar, like.span)
    zeros = Node(BroadcastInDim(operand.shape, ()), (count,), whole, like.span)
    found = Node(like.op, (count + 1, indices), TensorType(like.type.shape, DType.I32), like.span)
    outputs = {**graph.outputs, name: count + 2}
    return replace(graph, nodes=(*graph.nodes, zero, zeros, found), outputs=outputs)
