"""Claims that hold only where numbers are in range: indices that a program is given, and floats that become integers.

JAX counts a negative index from the end and moves one that is too large to the last element; a table that is split over
ranks gives zeros for both, and PyTorch an error. A float beyond the numbers of an integer type becomes its largest one
in XLA, and in PyTorch nothing that is defined. Where that is all that keeps two programs apart, they are compared once
more under the assumption that there are no such numbers, which the verdict names. What an assumption decides is read
off the analysis of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rewright import ops
from rewright.analysis.values import Setting, Values
from rewright.frontends.aten.pruning import pruned
from rewright.interp.counting import value_classes
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.placement import RankProgram
from rewright.ir.rebuilding import rebuilt
from rewright.ir.types import DType
from rewright.ops.base import integer_limits
from rewright.ops.facts import Facts, between, fits
from rewright.proof.unknowns import Question

Place = tuple[int, int]
"""The number of a program, and a node of it."""


@dataclass
class _Hope:
    """An assumption, and what it says of inputs by name and of nodes."""

    sentence: str
    inputs: dict[str, Facts] = field(default_factory=dict[str, Facts])
    nodes: dict[Place, Facts] = field(default_factory=dict[Place, Facts])


def narrowed(question: Question) -> Question | None:
    """The question where numbers are in range; None where it is that already, or that decides nothing."""
    found = None if question.is_narrow else in_range(question.sequential, question.program)
    if found is None:
        return None
    sequential, program, assumptions = found
    return Question(sequential, program, (*question.assumptions, *assumptions), is_narrow=True)


def in_range(sequential: Graph, program: RankProgram) -> tuple[Graph, RankProgram, tuple[str, ...]] | None:
    """Both programs where numbers are in range, and what that assumes; None where it decides nothing."""
    graphs = (sequential, *program.graphs)
    hopes = [*_indices(sequential), *_conversions(graphs)]
    few = graphs[:2]  # rank programs that are one but for constants are decided alike
    best = _decided(few, hopes)
    if not any(best):
        return None
    needed = [hope for hope in hopes if _decided(few, [other for other in hopes if other is not hope]) != best]
    found = _decided(graphs, needed)
    first, *ranks = (new or old for new, old in zip(found, graphs, strict=True))
    return first, replace(program, graphs=tuple(ranks)), tuple(hope.sentence for hope in needed)


def _indices(graph: Graph) -> Iterator[_Hope]:
    """That inputs which are indices as they are given are in range of the smallest axis that they are indices of.

    None of inputs of which a program tells a negative number apart: labels that do not count are meant to be given.
    """
    classes = value_classes(graph)
    sizes: dict[str, int] = {}
    for node in graph.nodes:
        size = _size(graph, node)
        for source in _sources(graph, node.operands[1]) if size else ():
            op = graph.nodes[source].op
            if isinstance(op, ops.Input):
                sizes[op.label] = min(size or 0, sizes.get(op.label, size or 0))
    for name, size in sizes.items():
        if min(classes.of(graph.inputs[name]).compared, default=0) < 0:
            continue
        sentence = f"the indices in input {name!r} are in range: from 0 to {size - 1}, neither negative nor beyond"
        yield _Hope(sentence, {name: between(0, size - 1, whole=True)})


def _size(graph: Graph, node: Node) -> int | None:
    """The size of the one axis that a gather or scatter takes indices of."""
    axes = node.op.start_index_map if isinstance(node.op, ops.Gather) else None
    if isinstance(node.op, ops.Scatter):
        axes = node.op.scatter_dims_to_operand_dims
    size = graph.nodes[node.operands[0]].type.shape[axes[0]] if axes and len(axes) == 1 else None
    return size if isinstance(size, int) else None


def _conversions(graphs: Sequence[Graph]) -> Iterator[_Hope]:
    """That floats which become integers, where a choice is made of what does not fit, are numbers that fit."""
    found: dict[str, _Hope] = {}
    for number, graph in enumerate(graphs):
        for node in graph.nodes:
            dtype = node.type.dtype
            if not isinstance(node.op, ops.Convert) or not dtype.is_integer:
                continue
            operand = graph.nodes[node.operands[0]]
            sources = set(_sources(graph, node.operands[0])) if isinstance(operand.op, ops.Select) else set[int]()
            if len(sources) == 1 and operand.type.dtype.is_float:
                sentence = f"what becomes {dtype.value} at {node.span} is a number that {dtype.value} holds"
                hope = found.setdefault(sentence, _Hope(sentence))
                hope.nodes[number, sources.pop()] = between(*integer_limits(dtype))
    yield from found.values()


def _sources(graph: Graph, position: int) -> Iterator[int]:
    """The nodes whose elements a node has, moved or chosen, but for constants."""
    stack, seen = [position], set[int]()
    while stack:
        at = stack.pop()
        node = graph.nodes[at]
        if at in seen or isinstance(node.op, ops.Constant):
            continue
        seen.add(at)
        moved = node.op.moves(len(node.operands)) if isinstance(node.op, ops.TensorOperator) else ()
        if isinstance(node.op, ops.Convert) and graph.nodes[node.operands[0]].type.dtype.is_integer:
            moved = (0,)
        if not moved:
            yield at
        stack.extend(node.operands[k] for k in moved)


def _decided(graphs: Sequence[Graph], hopes: Sequence[_Hope]) -> list[Graph | None]:
    given = {name: facts for hope in hopes for name, facts in hope.inputs.items()}
    nodes = {place: facts for hope in hopes for place, facts in hope.nodes.items()}
    return [
        _chosen(graph, given, {p: facts for (own, p), facts in nodes.items() if own == number})
        for number, graph in enumerate(graphs)
    ]


def _chosen(graph: Graph, given: Mapping[str, Facts], nodes: Mapping[int, Facts]) -> Graph | None:
    """The graph with every choice taken whose condition is known; None where none is."""
    known = _values(graph, given, nodes)
    taken: list[int] = []
    places: dict[int, int] = {}
    names = {position: name for name, position in graph.inputs.items()}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        made = decided(builder, position, node, operands)
        if made is None:
            is_input = isinstance(node.op, ops.Input)
            made = builder.input(names[position], node.op) if is_input else builder.add(node.op, *operands)
        places[position] = made
        return made

    def decided(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if isinstance(node.op, ops.Select):
            truth = _truth(known[node.operands[0]])
            if truth is None:
                return None
            taken.append(position)
            return operands[1 if truth else 2]
        source = _through_integers(graph, node, known)
        if source is not None:
            taken.append(position)
            return places[source]
        if node.type.dtype is DType.BOOL and node.operands and not isinstance(node.op, ops.Collective):
            truth = _truth(known[position])
            return None if truth is None else builder.add(ops.Constant(node.type, (truth,)))
        return None

    found = rebuilt(graph, make, whole=True)
    if not taken:
        return None
    once = pruned(found)
    return _chosen(once, given, {}) or once


def _through_integers(graph: Graph, node: Node, known: Mapping[int, Facts]) -> int | None:
    """The float that a float is made of by way of an integer dtype that holds it, an integer that it is already."""
    inner = graph.nodes[node.operands[0]] if isinstance(node.op, ops.Convert) else None
    if inner is None or not isinstance(inner.op, ops.Convert) or not inner.type.dtype.is_integer:
        return None
    (source,) = inner.operands
    if graph.nodes[source].type.dtype is not node.type.dtype or not known[source].whole:
        return None
    return source if known[source].is_finite and fits(known[source], inner.type.dtype) else None


def _values(graph: Graph, given: Mapping[str, Facts], nodes: Mapping[int, Facts]) -> Mapping[int, Facts]:
    """The facts of all nodes, those of some as they are assumed to be."""
    values = Values(graph, Setting({name: facts for name, facts in given.items() if name in graph.inputs}))
    for position in range(len(graph.nodes)):
        own = values.step(position)
        if position in nodes:
            low, high = max(own.low, nodes[position].low), min(own.high, nodes[position].high)
            whole = own.whole or nodes[position].whole
            values.assume(position, between(low, high, whole=whole) if low <= high else nodes[position])
    return values.facts


def _truth(known: Facts) -> bool | None:
    return bool(known.low) if known.low == known.high else None
