"""Labels of which some do not count: ``-100`` among the numbers of classes."""

from __future__ import annotations

from dataclasses import replace

from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType
from rewright.kernel.bounds import MOST, look_ups
from rewright.kernel.counting import PREFIX, counts, source_of
from rewright.ops import BroadcastInDim, Compare, Concatenate, Gather, Input, Not, Select, splat
from rewright.ops.reference import building as rb
from rewright.ops.reference.size_values import size_value


def with_marks(left: Graph, right: Graph) -> tuple[Graph, Graph, Graph, tuple[str, ...]] | None:
    """Both programs with labels told apart: which of them count, and what those are.

    Where a program looks up ``where(label != -100, label, 0)`` of 40 rows, each label is -100 or below 40, and so it is
    ``where(counts, number, -100)`` of numbers from 0 to 39. Gives both programs in these, the facts about the numbers,
    and in words what is known of labels; None where no label is looked up so.
    """
    found: dict[str, tuple[int, Dim, Node]] = {}
    for graph in (left, right):
        for position in list(look_ups(left, graph))[:MOST]:
            node = graph.nodes[position]
            label = _label_of(graph, node)
            if label is not None:
                found.setdefault(label[0], (label[1], label[2], node))
    if not found:
        return None
    facts = GraphBuilder()
    texts: list[str] = []
    for name, (mark, size, node) in found.items():
        kind = left.nodes[left.inputs[name]].type
        number = facts.input(f"{name} counted", Input(f"{name} counted", kind))
        last = facts.add(BroadcastInDim(kind.shape, ()), size_value(facts, size - 1, kind.dtype))
        for one, other in ((number, rb.splat_like(facts, 0, number)), (last, number)):
            facts.output(f"{PREFIX}{len(facts.build().outputs)}", rb.compare(facts, "GE", one, other))
        texts.append(f"the values of {name}, which are looked up at {node.span}, are {mark} or in [0, {size})")
        left, right = (_told_apart(graph, name, mark) for graph in (left, right))
    inputs = dict(facts.build().inputs)
    counted = [text for graph in (left, right) for text in counts(facts, graph, inputs)]
    return left, right, facts.build(), tuple(dict.fromkeys((*texts, *counted)))


def _label_of(graph: Graph, node: Node) -> tuple[str, int, Dim] | None:
    """The input that ``where(x != mark, x, number)`` chooses indices of, its mark, and below what they are."""
    op = node.op
    assert isinstance(op, Gather)
    operand = graph.nodes[node.operands[0]].type.shape
    for position, axis in zip(_components(graph, node.operands[1]), op.start_index_map, strict=False):
        found = _marked(graph, position)
        if found is not None:
            return *found, operand[axis] - op.slice_sizes[axis] + 1
    return None


def _components(graph: Graph, position: int) -> tuple[int, ...]:
    """The components of index vectors, or indices that are no vectors."""
    node = graph.nodes[source_of(graph, position)]
    return node.operands if isinstance(node.op, Concatenate) else (position,)


def _marked(graph: Graph, position: int) -> tuple[str, int] | None:
    """The input and the mark of ``where(x != mark, x, number)``."""
    chosen = graph.nodes[source_of(graph, position)]
    if not isinstance(chosen.op, Select):
        return None
    test, label, number = (graph.nodes[source_of(graph, p)] for p in chosen.operands)
    wanted = "NE"
    if isinstance(test.op, Not):
        test, wanted = graph.nodes[source_of(graph, test.operands[0])], "EQ"
    if not isinstance(test.op, Compare) or test.op.direction != wanted or not isinstance(label.op, Input):
        return None
    sides = [graph.nodes[source_of(graph, p)] for p in test.operands]
    marks = [splat(side.op) for side in sides if side is not label]
    if len(marks) != 1 or not isinstance(marks[0], int) or splat(number.op) is None:
        return None
    return label.op.label, marks[0]


def _told_apart(graph: Graph, name: str, mark: int) -> Graph:
    """A program with an input in two: which of its elements count, and their numbers."""
    b = GraphBuilder(graph.name)
    places: dict[int, int] = {}
    for old, node in enumerate(graph.nodes):
        if isinstance(node.op, Input) and node.op.label == name:
            counts = b.input(f"{name} counts", Input(f"{name} counts", replace(node.type, dtype=DType.BOOL)))
            number = b.input(f"{name} counted", Input(f"{name} counted", node.type))
            places[old] = b.add(Select(), counts, number, rb.splat_like(b, mark, number))
        elif isinstance(node.op, Input):
            places[old] = b.input(node.op.label, node.op)
        else:
            b.span = node.span
            places[old] = b.add(node.op, *(places[p] for p in node.operands))
    for output, position in graph.outputs.items():
        b.output(output, places[position])
    return b.build()
