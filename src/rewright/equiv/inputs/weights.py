"""The weight map: which tensors of one program are made of which of the other, and both programs over shared tensors.

An equation defines an input of one program by an expression over inputs of the other. What no equation defines is
shared under its own name. The map is put in front of the programs as operators, so that it is a part of what is proved.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np

from rewright import ops
from rewright.equiv.inputs.expressions import build, build_expression, names_in
from rewright.ir.digest import digest
from rewright.ir.dims import Shape
from rewright.ir.errors import ContradictoryRelations, RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.placement import RankProgram
from rewright.ir.rebuilding import rebuild, remove_dead_nodes
from rewright.ir.types import SourceSpan
from rewright.proof.rewriting.parts import run_part

Side = Literal["left", "right"]
_MOST_ELEMENTS = 1 << 22
"""Larger tensors are not checked element by element for being used as a whole."""
MAP_SPAN = SourceSpan(scope="weight map")


@dataclass(frozen=True)
class Definition:
    """``name = text``: an input of one side (of one rank or of all) over inputs of the other side."""

    side: Side
    name: str
    text: str
    rank: int | None = None

    def __str__(self) -> str:
        other = "left" if self.side == "right" else "right"
        rank = "" if self.rank is None else f"@{self.rank}"
        return f"{self.side} {self.name}{rank} = {self.text}  (of {other})"


@dataclass(frozen=True)
class WeightMap:
    """All definitions, and the relations of other kinds that were given: placements over ranks."""

    definitions: tuple[Definition, ...] = ()
    placements: dict[str, str | Sequence[str]] = field(default_factory=dict[str, "str | Sequence[str]"])
    guessed: tuple[str, ...] = ()
    """How definitions that nobody gave were found, in words."""
    found: Mapping[Definition, str] = field(default_factory=dict[Definition, str])
    """What definitions that nobody gave were found by."""

    def equations(self) -> tuple[str, ...]:
        """All definitions as equations, those that nobody gave with what they were found by."""
        return tuple(f"{d}, found by {self.found[d]}" if d in self.found else str(d) for d in self.definitions)

    def of(self, side: Side) -> list[Definition]:
        """The definitions of one side."""
        return [d for d in self.definitions if d.side == side]


def read_map(given: Mapping[str, str | Sequence[str]] | None, left: Graph, right: RankProgram) -> WeightMap:
    """The map that a caller gave: names or patterns to expressions or placements.

    A name that both programs have is one of the right program, unless it is written ``left:name``. In the expression
    of a pattern every ``*`` stands for what the one in the pattern stood for.

    Raises RewrightError for a pattern that matches nothing, ContradictoryRelations for two meanings of one tensor.
    """
    definitions: dict[tuple[Side, str, int | None], Definition] = {}
    placements: dict[str, str | Sequence[str]] = {}
    for key, what in (given or {}).items():
        if not isinstance(what, str) or _is_placement(what) or (re.search(r"@\d", what) and "@" not in key):
            placements[key] = what
            continue
        for definition in _match(key, what, left, right):
            place = definition.side, definition.name, definition.rank
            before = definitions.setdefault(place, definition)
            if before.text != definition.text:
                raise ContradictoryRelations(
                    f"{definition.side} {definition.name!r} is given two meanings, {before.text!r} and "
                    f"{definition.text!r}; keep the true one"
                )
    return WeightMap(tuple(definitions.values()), placements)


def _is_placement(text: str) -> bool:
    return text.partition("(")[0].strip() in ("Replicate", "Shard", "Partial", "R", "S", "P")


def _match(key: str, text: str, left: Graph, right: RankProgram) -> Iterator[Definition]:
    side, _, rest = key.partition(":") if key.startswith(("left:", "right:")) else ("", "", key)
    pattern, _, number = rest.partition("@")
    rank = int(number) if number.isdigit() else None
    if number and (rank is None or rank >= len(right.graphs)):
        raise RewrightError(f"relation {key!r} names rank {number} of {len(right.graphs)}")
    for own, names in (("right", right.graphs[rank or 0].inputs), ("left", left.inputs)):
        if side not in ("", own):
            continue
        matching = [n for n in names if n == pattern or fnmatchcase(n, pattern)]
        for name in matching:
            yield Definition("right" if own == "right" else "left", name, _put_stars(pattern, name, text), rank)
        if matching:
            return
    raise RewrightError(f"relation {key!r} matches no input of either program; see their inputs")


def _put_stars(pattern: str, name: str, text: str) -> str:
    """The expression with its stars replaced by what the stars of the pattern matched.

    With one star in the pattern every star between dots is that one; else they are taken in order.
    """
    if "*" not in pattern:
        return text
    found = re.fullmatch("(.*?)".join(re.escape(part) for part in pattern.split("*")), name)
    stars = [str(star) for star in found.groups()] if found else []
    if len(stars) == 1:
        return re.sub(r"(?<=[.])[*](?=[.])", lambda _: stars[0], text)
    parts = text.split("*")
    if len(stars) != len(parts) - 1:
        raise RewrightError(f"{pattern!r} has {len(stars)} stars and {text!r} has {len(parts) - 1}; give as many")
    return "".join(part + star for part, star in zip(parts, [*stars, ""], strict=True))


@dataclass(frozen=True)
class Shared:
    """Both programs over the same inputs."""

    left: Graph
    right: RankProgram
    unread: tuple[tuple[Side, str], ...] = ()
    """Inputs that only that side has, while the other side has none that is left over."""
    unchecked: tuple[str, ...] = ()


def rename_output(left: Graph, right: RankProgram) -> RankProgram:
    """The right program with its only output called as the only output of the left program."""
    if len(left.outputs) != 1 or any(len(graph.outputs) != 1 for graph in right.graphs):
        return right
    (name,) = left.outputs
    return (
        replace(
            right,
            graphs=tuple(replace(g, outputs={name: next(iter(g.outputs.values()))}) for g in right.graphs),
            outputs={},
        )
        if any(name not in graph.outputs for graph in right.graphs)
        else right
    )


def share_inputs(left: Graph, right: RankProgram, weights: WeightMap) -> Shared:
    """Both programs with the map in front of them.

    Raises RewrightError for a partial map: an input of either side that nothing is known about, and tensors of which
    the map leaves out a part; ContradictoryRelations where shapes or meanings do not fit.
    """
    _check_free(left, right, weights)
    _check_equal(left, right, weights)
    new_left = _compose(left, {d.name: d.text for d in weights.of("left")}, right.graphs[0])
    graphs: list[Graph] = []
    for rank, graph in enumerate(right.graphs):
        texts = {d.name: d.text for d in weights.of("right") if d.rank in (None, rank)}
        graphs.append(_compose(_without_dead(graph, {*left.inputs, *texts}), texts, left))
    unread = _unread(new_left, graphs, weights)
    if unread:
        new_left, graphs = _with_inputs(new_left, graphs)
    unchecked = _check_coverage(left, right, weights)
    defined = {d.name for d in weights.of("right")}
    inputs = {n: p for n, p in right.inputs.items() if n not in defined}
    return Shared(new_left, replace(right, graphs=tuple(graphs), inputs=inputs), unread, unchecked)


def _without_dead(graph: Graph, kept: Collection[str]) -> Graph:
    """The program without inputs that it never reads and that nothing relates: tables that it replaces, say."""
    read = inputs_read(graph)
    dead = {position for name, position in graph.inputs.items() if name not in read and name not in kept}
    if not dead:
        return graph
    places: dict[int, int] = {}
    for position in range(len(graph.nodes)):
        if position not in dead:
            places[position] = len(places)
    live = graph.live()
    used = [p for p in places if all(o in places for o in graph.nodes[p].operands)]
    if len(used) < len(places):
        return _without_dead(remove_dead_nodes(graph), kept) if len(live) < len(graph.nodes) else graph
    nodes = tuple(replace(graph.nodes[p], operands=tuple(places[o] for o in graph.nodes[p].operands)) for p in places)
    inputs = {name: places[p] for name, p in graph.inputs.items() if p in places}
    return replace(graph, nodes=nodes, inputs=inputs, outputs={name: places[p] for name, p in graph.outputs.items()})


def _check_free(left: Graph, right: RankProgram, weights: WeightMap) -> None:
    """A tensor that a definition reads must not be defined itself."""
    lefts = {d.name for d in weights.of("left")}
    rights = {d.name for d in weights.of("right")}
    for definition in weights.definitions:
        other = lefts if definition.side == "right" else rights
        for name in names_in(definition.text):
            if name in other:
                raise ContradictoryRelations(
                    f"{definition.side} {definition.name!r} is made of {name!r}, which is itself defined by the map; "
                    "define one of them by the other"
                )


def _check_equal(left: Graph, right: RankProgram, weights: WeightMap) -> None:
    """Tensors that are shared under one name have one shape; ranks may hold shards."""
    if len(right.graphs) != 1:
        return
    graph = right.graphs[0]
    defined = {d.name for d in weights.definitions}
    for name, position in left.inputs.items():
        if name in graph.inputs and name not in defined:
            kinds = left.nodes[position].type, graph.nodes[graph.inputs[name]].type
            if kinds[0].shape != kinds[1].shape:
                raise ContradictoryRelations(
                    f"{name!r} is {kinds[0]} in the left program and {kinds[1]} in the right one; relate them by an "
                    "equation under [relations]"
                )


def _compose(graph: Graph, texts: Mapping[str, str], other: Graph) -> Graph:
    """The program with its defined inputs computed from inputs of the other program."""
    if not texts:
        return graph
    kept = {name for name in graph.inputs if name not in texts}
    places: dict[str, int] = {}
    names = {position: name for name, position in graph.inputs.items()}

    def source(builder: GraphBuilder, name: str) -> int:
        if name not in places:
            if name in kept:
                kind = other.nodes[other.inputs[name]].type, graph.nodes[graph.inputs[name]].type
                if kind[0].shape != kind[1].shape:
                    raise ContradictoryRelations(
                        f"{name!r} is {kind[0]} in one program and {kind[1]} in the other, and no equation relates them"
                    )
            places[name] = builder.input(name, other.nodes[other.inputs[name]].op)
        return places[name]

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        name = names.get(position)
        if name is None:
            return None
        if name not in texts:
            if name in places:
                return places[name]
            places[name] = builder.input(name, node.op)
            return places[name]
        builder.span = MAP_SPAN
        wanted = [n for n in names_in(texts[name]) if n in other.inputs]
        tensors = {n: source(builder, n) for n in wanted}
        try:
            return build_expression(texts[name], builder, tensors, node.type)
        except RewrightError as error:
            raise ContradictoryRelations(f"the map of {name!r} is wrong: {error}") from None

    return rebuild(graph, make)


def _unread(left: Graph, rights: Sequence[Graph], weights: WeightMap) -> tuple[tuple[Side, str], ...]:
    """Inputs that one side has and the other does not; raises RewrightError where both sides have such inputs."""
    mine, other = inputs_read(left), set[str]().union(*(inputs_read(graph) for graph in rights))
    known = set(left.inputs), set[str]().union(*(set(graph.inputs) for graph in rights))
    lefts = [n for n in left.inputs if n in mine and n not in known[1]]
    rights_ = [n for graph in rights[:1] for n in graph.inputs if n in other and n not in known[0]]
    if lefts and rights_:
        raise RewrightError(
            f"the weight map is partial: {len(lefts)} inputs of the left program ({', '.join(lefts[:3])}) and "
            f"{len(rights_)} of the right one ({', '.join(rights_[:3])}) are related to nothing; "
            "relate them by equations under [relations]"
        )
    return (*(("left", n) for n in lefts), *(("right", n) for n in rights_))


def inputs_read(graph: Graph) -> set[str]:
    """The inputs that some output depends on."""
    used = {p for node in remove_dead_nodes(graph).nodes for p in node.operands} | set(graph.outputs.values())
    small = remove_dead_nodes(graph)
    return {name for name, position in small.inputs.items() if position in used}


def _with_inputs(left: Graph, rights: Sequence[Graph]) -> tuple[Graph, list[Graph]]:
    """All programs with the same inputs; those that a program does not read are there and unused."""
    every: dict[str, Node] = {}
    for graph in (left, *rights):
        for name, position in graph.inputs.items():
            every.setdefault(name, graph.nodes[position])
    return _extend(left, every), [_extend(graph, every) for graph in rights]


def _extend(graph: Graph, every: Mapping[str, Node]) -> Graph:
    missing = [(name, node) for name, node in every.items() if name not in graph.inputs]
    shift = len(missing)
    nodes = [Node(node.op, (), node.type) for _, node in missing]
    nodes += [replace(node, operands=tuple(p + shift for p in node.operands)) for node in graph.nodes]
    inputs = {name: p + shift for name, p in graph.inputs.items()}
    inputs |= {name: number for number, (name, _) in enumerate(missing)}
    outputs = {name: p + shift for name, p in graph.outputs.items()}
    return replace(graph, nodes=tuple(nodes), inputs=inputs, outputs=outputs)


def _check_coverage(left: Graph, right: RankProgram, weights: WeightMap) -> tuple[str, ...]:
    """Raise RewrightError for a tensor that the map reads in part; the names of those too large to be looked at."""
    unchecked: list[str] = []
    known: dict[object, bool] = {}
    for side, source in (("right", left), ("left", right.graphs[0])):
        definitions = weights.of("right" if side == "right" else "left")
        by_name: dict[str, list[Definition]] = {}
        for definition in definitions:
            for name in names_in(definition.text):
                by_name.setdefault(name, []).append(definition)
        own = right.graphs[0] if side == "right" else left
        for name, readers in by_name.items():
            if name in own.inputs and all(d.name != name for d in definitions):
                continue  # shared under its own name, and so as a whole
            sizes: Shape = source.nodes[source.inputs[name]].type.shape if name in source.inputs else ()
            if not all(isinstance(n, int) for n in sizes) or _count(sizes) > _MOST_ELEMENTS:
                unchecked.append(name)
            elif not _all_used(name, readers, source, known):
                raise RewrightError(
                    f"the weight map is partial: {readers[0].side} {readers[0].name!r} and what else is made of "
                    f"{name!r} leave out a part of it; relate all of it"
                )
    return tuple(unchecked)


def _count(sizes: Sequence[object]) -> int:
    return math.prod(int(str(n)) for n in sizes)


def _all_used(name: str, readers: Sequence[Definition], source: Graph, known: dict[object, bool]) -> bool:
    """Whether every element of a tensor occurs in something that the map makes of it.

    ``known`` is what was found of other tensors: those of one layer are read as those of the next.
    """
    shape = _shape(source, name)
    moved = [_move(definition, name, source) for definition in readers]
    key = shape, tuple((digest(graph), own) for graph, own in moved)
    if key not in known:
        used = np.zeros(_count(shape) + 1, np.bool_)
        for graph, own in moved:
            given = {label: np.zeros(_shape(graph, label)) for label in graph.inputs}
            given[own] = np.arange(1, _count(shape) + 1, dtype=np.float64).reshape(shape)
            values = run_part(graph, given)
            if values is None:
                raise RewrightError(f"the map of {name!r} cannot be followed to the elements that it reads")
            used[values[graph.outputs["made"]].astype(np.int64).reshape(-1)] = True
        known[key] = bool(used[1:].all())
    return known[key]


def _move(definition: Definition, name: str, source: Graph) -> tuple[Graph, str]:
    """Where a definition moves the elements of its tensors, which are named by their order; and the name of one."""
    builder = GraphBuilder()
    read = [n for n in names_in(definition.text) if n in source.inputs]
    labels = {n: f"x{number}" for number, n in enumerate(read)}
    kinds = {n: source.nodes[source.inputs[n]].type for n in read}
    tensors = {n: builder.input(labels[n], ops.Input(labels[n], kinds[n])) for n in read}
    builder.output("made", build(definition.text, builder, tensors))
    return rebuild(builder.build(), _only_moving), labels[name]


def _shape(graph: Graph, name: str) -> tuple[int, ...]:
    return tuple(int(str(n)) for n in graph.nodes[graph.inputs[name]].type.shape)


def _only_moving(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
    """Arithmetic with a number as no operator at all."""
    if not isinstance(node.op, ops.Elementwise):
        return None
    return next(p for p in operands if not isinstance(builder.node(p).op, ops.Constant))
