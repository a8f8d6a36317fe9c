"""Claims that hold only where numbers are in range: indices that a program is given, and floats that become integers.

JAX counts a negative index from the end and moves one that is too large to the last element; a table that is split over
ranks gives zeros for both, and PyTorch an error. A float beyond the numbers of an integer type becomes its largest one
in XLA, and in PyTorch nothing that is defined. Where that is all that keeps two programs apart, they are compared once
more under the assumption that there are no such numbers, which the verdict names. What an assumption decides is read
off the analysis of values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from rewright import ops
from rewright.analysis.moving import moved_operands
from rewright.interp.counting import ValueClasses
from rewright.ir.errors import Refused
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.placement import RankProgram
from rewright.ir.rebuilding import kept_places
from rewright.ir.types import DType
from rewright.ops.facts import Facts, fits
from rewright.proof.rewriting.replay import Transition, stage_assumptions
from rewright.proof.rewriting.splices import NOWHERE, Within
from rewright.proof.rewriting.within import facts_within, fitting, sentences
from rewright.proof.unknowns import Question
from rewright.refine.rewriting.drafts import Draft, graphs_of

_FEW = 2
"""Rank programs that are one but for constants are decided alike: the first of them is looked at."""


@dataclass
class _Hope:
    """An assumption: a bound of an input, or what casts of programs, by number and position, are of."""

    inputs: tuple[tuple[str, int, int], ...] = ()
    casts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


@dataclass(frozen=True)
class Restated:
    """A question in another form, and how its programs came about, the sequential one first."""

    question: Question
    drafts: tuple[Draft, ...]


def narrow_question(question: Question, held: Collection[str]) -> Restated | None:
    """The question where numbers are in range; None where that decides nothing, or rests on what no input meets.

    ``held`` are the inputs of which ranks have numbers that the sequential program has, and no addends of these.
    """
    drafts = in_range(question.sequential, question.program, held)
    if drafts is None:
        return None
    first, *ranks = graphs_of(drafts)
    program = replace(question.program, graphs=tuple(ranks))
    try:
        assumptions = (*question.assumptions, *_assumptions(drafts))
    except Refused:
        return None
    return Restated(Question(first, program, tuple(dict.fromkeys(assumptions))), drafts)


def in_range(sequential: Graph, program: RankProgram, held: Collection[str]) -> tuple[Draft, ...] | None:
    """Both programs where numbers are in range, the sequential one first; None where that decides nothing."""
    graphs = (sequential, *program.graphs)
    hopes = [*_indices(sequential), *_conversions(graphs)]
    few = graphs[:_FEW]
    best = graphs_of(_decide(few, hopes, held))
    if best == list(few):
        return None
    needed = [hope for hope in hopes if graphs_of(_decide(few, [o for o in hopes if o is not hope], held)) != best]
    return tuple(_decide(graphs, needed, held))


def _assumptions(drafts: Sequence[Draft]) -> tuple[str, ...]:
    """What the drafts take for granted, in words, as the checker says it."""
    steps: list[Transition] = []
    for number in range(max(len(draft.changes) for draft in drafts)):
        within = tuple(d.changes[number].within if number < len(d.changes) else NOWHERE for d in drafts)
        before, after = (tuple(_at(d, n) for d in drafts) for n in (number, number + 1))
        steps.append(Transition(before, within, after))
    return stage_assumptions(steps)


def _at(draft: Draft, number: int) -> Graph:
    """The program after a number of changes."""
    return draft.changes[number].before if number < len(draft.changes) else draft.graph


def _indices(graph: Graph) -> Iterator[_Hope]:
    """That inputs which are indices as they are given are in range of the smallest axis that they are indices of.

    None of inputs whose negative numbers a program treats specially: labels that do not count are meant to be given.
    """
    classes = ValueClasses(graph)
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
        yield _Hope(((name, 0, size - 1),))


def _size(graph: Graph, node: Node) -> int | None:
    """The size of the one axis that a gather or scatter takes indices of."""
    axes = node.op.start_index_map if isinstance(node.op, ops.Gather) else None
    if isinstance(node.op, ops.Scatter):
        axes = node.op.scatter_dims_to_operand_dims
    size = graph.nodes[node.operands[0]].type.shape[axes[0]] if axes and len(axes) == 1 else None
    return size if isinstance(size, int) else None


def _conversions(graphs: Sequence[Graph]) -> Iterator[_Hope]:
    """That floats which become integers, where a choice is made of what does not fit, are numbers that fit."""
    found: dict[tuple[str, ...], _Hope] = {}
    for number, graph in enumerate(graphs):
        for position in range(len(graph.nodes)):
            if fitting(graph, position) is not None:
                said = sentences(graph, Within(casts=(position,)))
                found.setdefault(said, _Hope()).casts.append((number, position))
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
        sources = moved_operands(node)
        if isinstance(node.op, ops.Convert) and graph.nodes[node.operands[0]].type.dtype.is_integer:
            sources = node.operands
        if not sources:
            yield at
        stack.extend(sources)


def _decide(graphs: Sequence[Graph], hopes: Sequence[_Hope], held: Collection[str]) -> list[Draft]:
    """The programs with what the hopes decide, the sequential one first."""
    drafts: list[Draft] = []
    for number, graph in enumerate(graphs):
        names = [one for hope in hopes for one in hope.inputs if one[0] in graph.inputs]
        own = tuple(one for one in names if not number or one[0] in held)
        casts = tuple(position for hope in hopes for program, position in hope.casts if program == number)
        drafts.append(_choose(Draft(graph), Within(own, casts)))
    return drafts


def _choose(draft: Draft, within: Within) -> Draft:
    """The program with every choice taken whose condition is known; as it is where none is."""
    graph, facts = draft.graph, facts_within(draft.graph, within)
    taken: list[int] = []
    places: dict[int, int] = {}
    names = {position: name for name, position in graph.inputs.items()}
    live = kept_places(graph)

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        made = decide(builder, position, node, operands) if position in live else None
        if made is None:
            is_input = isinstance(node.op, ops.Input)
            made = builder.input(names[position], node.op) if is_input else builder.add(node.op, *operands)
        places[position] = made
        return made

    def decide(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if isinstance(node.op, ops.Select):
            truth = _truth(facts[node.operands[0]])
            if truth is None:
                return None
            taken.append(position)
            return operands[1 if truth else 2]
        source = _through_integers(graph, node, facts)
        if source is not None:
            taken.append(position)
            return places[source]
        if node.type.dtype is DType.BOOL and node.operands and not isinstance(node.op, ops.Collective):
            truth = _truth(facts[position])
            return None if truth is None else builder.add(ops.Constant(node.type, (truth,)))
        return None

    found = draft.rebuild(make, within=within)
    return _choose(found, Within(within.inputs)) if taken and found is not draft else draft


def _through_integers(graph: Graph, node: Node, known: Sequence[Facts]) -> int | None:
    """The float that a float is made of by way of an integer dtype that holds it, an integer that it is already."""
    inner = graph.nodes[node.operands[0]] if isinstance(node.op, ops.Convert) else None
    if inner is None or not isinstance(inner.op, ops.Convert) or not inner.type.dtype.is_integer:
        return None
    (source,) = inner.operands
    if graph.nodes[source].type.dtype is not node.type.dtype or not known[source].whole:
        return None
    return source if known[source].is_finite and fits(known[source], inner.type.dtype) else None


def _truth(known: Facts) -> bool | None:
    return bool(known.low) if known.low == known.high else None
