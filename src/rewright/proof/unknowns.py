"""Unknown tensors of captured graphs: which of one side are those of the other, and what has to be assumed of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import Placement, RankProgram
from rewright.ir.types import TensorType
from rewright.ir.unknowns import DRAWN, RANDOM, UNKNOWN, unknowns, what_and_place
from rewright.proof.microbatches import with_wholes

_MOST_SHOWN = 8


@dataclass(frozen=True)
class Question:
    """Both programs with their unknowns matched, and what that assumes."""

    sequential: Graph
    program: RankProgram
    assumptions: tuple[str, ...] = ()


def questions(sequential: Graph, program: RankProgram) -> Iterator[Question]:
    """The question under every guess at its unknowns, the likeliest first; just the question where there are none.

    An unknown of the ranks is the one of the sequential program at the same place of the source. One that only the
    ranks have is one tensor for all of them. Constants with one element are first taken to be zero, which is what
    masked entries are filled with, and then left open.
    """
    if not any(map(unknowns, (sequential, *program.graphs))):
        yield Question(sequential, program)
        return
    shared = _match(sequential, program)
    scalars = [name for name, what in unknowns(shared.sequential).items() if _is_scalar(shared, name, what)]
    if scalars:
        yield _zero(shared, scalars)
    yield shared
    yield from (found for found in (_match(sequential, program, apart=True),) if found != shared)
    for whole, ranks in with_wholes(sequential, program):
        yield _match(whole, ranks)


def unknown_assumptions(sequential: Graph, placements: Mapping[str, Placement]) -> tuple[str, ...]:
    """What is assumed of the unknowns that stay unknown, in one sentence for each kind of them."""
    found: dict[str, list[str]] = {}
    for name, what in unknowns(sequential).items():
        kind, _, place = what.partition(" at ")
        kind = kind if kind in _WORDS else kind.split(" ")[0]
        if name in placements:
            found.setdefault(kind, []).append(f"at {place} as {placements[name]}")
    lines: list[str] = []
    for kind, places in found.items():
        more = f" and {len(places) - _MOST_SHOWN} more" if len(places) > _MOST_SHOWN else ""
        shown = ", ".join(places[:_MOST_SHOWN])
        words = (
            _RANDOM
            if kind.startswith(RANDOM) and kind not in _WORDS
            else f"{_WORDS.get(kind, kind)} equal on both sides"
        )
        lines.append(f"{words}, place by place: {shown}{more}")
    return tuple(lines)


_RANDOM = "random numbers of the ranks are those of the sequential program"
_WORDS = {
    "constant": "constants whose values were not captured are",
    "memory": "tensors whose values were not captured are",
    "random:dropout": "dropout masks are drawn alike and",
}


def _is_scalar(question: Question, name: str, what: str) -> bool:
    graph = question.sequential
    return what.startswith("constant") and graph.nodes[graph.inputs[name]].type.size() == 1


def _zero(question: Question, names: Sequence[str]) -> Question:
    program = question.program
    graphs = tuple(_fix(graph, names) for graph in program.graphs)
    known = unknowns(question.sequential)
    places = list(dict.fromkeys(_place_text(known[name]) for name in names))
    assumption = f"constants whose values were not captured are zero: {', '.join(places)}"
    fixed = replace(program, graphs=graphs)
    return Question(_fix(question.sequential, names), fixed, (*question.assumptions, assumption))


def _place_text(what: str) -> str:
    """The place of an unknown without its number."""
    return "the one " + what.partition(" ")[2].rpartition(" #")[0]


def _fix(graph: Graph, names: Sequence[str]) -> Graph:
    """The graph with some inputs replaced by zeros."""
    nodes = list(graph.nodes)
    for name in names:
        if name in graph.inputs:
            kind = nodes[graph.inputs[name]].type
            value = 0.0 if kind.dtype.is_float else 0 if kind.dtype.is_integer else False
            nodes[graph.inputs[name]] = replace(nodes[graph.inputs[name]], op=ops.Constant(kind, (value,)))
    inputs = {name: position for name, position in graph.inputs.items() if name not in names}
    return replace(graph, nodes=tuple(nodes), inputs=inputs)


def _match(sequential: Graph, program: RankProgram, *, apart: bool = False) -> Question:
    """All programs with one name for every unknown.

    With ``apart`` random numbers of several ranks that are not the same are unknowns of their own but for the first.
    """
    names = {what: name for name, what in unknowns(sequential).items()}
    only: dict[str, tuple[TensorType, str]] = {}
    graphs: list[Graph] = []
    first: dict[str, str] = {}
    for graph in program.graphs:
        own = unknowns(graph)
        found = counterparts(unknowns(sequential), own)
        table: dict[str, str] = {}
        for name, what in own.items():
            table[name] = found.get(name) or names.get(what) or f"ranks:{name}"
            if apart and what.startswith(RANDOM) and first.setdefault(table[name], name) != name:
                table[name] = f"ranks:{name}"
                only.setdefault(table[name], (graph.nodes[graph.inputs[name]].type, what))
            if name not in found and table[name] not in only:
                names[what] = table[name]
                only[table[name]] = graph.nodes[graph.inputs[name]].type, what
        graphs.append(_rename(graph, table))
    every: dict[str, tuple[TensorType, str]] = {}
    for graph in graphs:
        for name, what in unknowns(graph).items():
            every.setdefault(name, (graph.nodes[graph.inputs[name]].type, what))
    alike = tuple(_with_inputs(graph, every) for graph in graphs)
    whole = _with_inputs(_rename(sequential, {name: name for name in unknowns(sequential)}), only)
    return Question(whole, replace(program, graphs=alike))


def counterparts(sequential: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """For a rank's unknowns those of the sequential program, first at the same line, then in the same function.

    The two sides may run different lines of one function: with dropout inside a fork of the random state, say.
    """
    found: dict[str, str] = {}
    for level in range(4):
        free = [(name, _level(what, level)) for name, what in sequential.items() if name not in found.values()]
        for name, what in own.items():
            if name not in found:
                place = _level(what, level)
                match = next((other for other, known in free if known == place), None)
                if match is not None:
                    found[name] = match
                    free = [entry for entry in free if entry[0] != match]
    return found


_LINE = re.compile(r":[0-9]+ ")


def _level(what: str, level: int) -> str:
    """The place of an unknown, more and more roughly: without its line, its number and function, its file."""
    if level == 0:
        return what
    if level == 1:
        return _LINE.sub(" ", what)
    kind, place = what_and_place(what)
    if level == 3:
        return kind if kind.startswith(RANDOM) else what
    file, _, rest = place.partition(":")
    return f"{kind} {file} {rest.partition(' in ')[2]}"


def _rename(graph: Graph, table: Mapping[str, str]) -> Graph:
    """The graph with its unknowns under other names."""
    nodes = list(graph.nodes)
    for old, new in table.items():
        node = nodes[graph.inputs[old]]
        nodes[graph.inputs[old]] = replace(node, op=ops.Input(new, node.type))
    inputs = {table.get(name, name): position for name, position in graph.inputs.items()}
    places = {f"{UNKNOWN}{table[name]}": what for name, what in unknowns(graph).items()}
    numbers = {f"{DRAWN}{new}": old for old, new in table.items() if graph.metadata[UNKNOWN + old].startswith(RANDOM)}
    rest = {key: text for key, text in graph.metadata.items() if not key.startswith(UNKNOWN)}
    return replace(graph, nodes=tuple(nodes), inputs=inputs, metadata=rest | places | numbers)


def _with_inputs(graph: Graph, inputs: Mapping[str, tuple[TensorType, str]]) -> Graph:
    """The graph with further inputs, which nothing reads."""
    missing = {name: entry for name, entry in inputs.items() if name not in graph.inputs}
    if not missing:
        return graph
    count = len(graph.nodes)
    nodes = (*graph.nodes, *(Node(ops.Input(name, kind), (), kind) for name, (kind, _) in missing.items()))
    positions = {name: count + place for place, name in enumerate(missing)}
    notes = {f"{UNKNOWN}{name}": what for name, (_, what) in missing.items()}
    return replace(graph, nodes=nodes, inputs=graph.inputs | positions, metadata=graph.metadata | notes)
