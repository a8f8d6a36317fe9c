"""Parts of a program replaced by others that lemmas say are equal, so that each replacement can be checked by itself.

A splice is a position, a lemma, and for every input of the lemma the nodes that hold it. It is right where the nodes
behind the position, up to these, are the right side of the lemma, and the analysis of values knows of the inputs what
the lemma is given; the left side is then put in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.digest import node_digests
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.printing import print_attributes
from rewright.ir.rebuilding import kept_places, remove_dead_nodes, with_places
from rewright.ir.types import DType
from rewright.ops.facts import Facts, includes
from rewright.proof.rewriting.lemma import Lemma
from rewright.proof.rewriting.parts import convert_node, copy_nodes
from rewright.proof.rewriting.splices import Splice, Stage
from rewright.proof.rewriting.within import facts_within


@dataclass(frozen=True)
class Put:
    """A part that takes the place of a node, over ``leaves``: by input of the part a node that holds it."""

    part: Graph
    leaves: Mapping[str, int]


def splice_stage(graph: Graph, stage: Stage) -> Graph:
    """The program with the left sides of the lemmas in their places; raises TypeMismatch where one does not fit."""
    return remove_dead_nodes(_with_places(graph, _puts(stage))[0])


def spliced_with_places(graph: Graph, stage: Stage) -> tuple[Graph, dict[int, int]]:
    """As :func:`splice_stage`, and where each of the old nodes that are still there, or what was put in for it, is."""
    made, places = _with_places(graph, _puts(stage))
    kept = kept_places(made)
    return remove_dead_nodes(made), {old: kept[new] for old, new in places.items() if new in kept}


def with_parts(graph: Graph, puts: Mapping[int, Put]) -> Graph:
    """The program with parts in the place of nodes; raises TypeMismatch where one does not fit."""
    return remove_dead_nodes(_with_places(graph, puts)[0])


def _puts(stage: Stage) -> dict[int, Put]:
    lemmas = stage.by_key()
    return {s.position: Put(lemmas[s.lemma].left, {n: held[0] for n, held in s.leaves}) for s in stage.splices}


def _with_places(graph: Graph, puts: Mapping[int, Put]) -> tuple[Graph, dict[int, int]]:
    names = {position: name for name, position in graph.inputs.items()}
    places: dict[int, int] = {}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        put = puts.get(position)
        if put is not None:
            places[position] = _put(builder, put, places, node)
        elif position in names:
            places[position] = builder.input(names[position], node.op)
        else:
            places[position] = builder.add(node.op, *operands)
        return places[position]

    return with_places(graph, make)


def _put(builder: GraphBuilder, put: Put, places: Mapping[int, int], node: Node) -> int:
    """Append a part over nodes of the program that is being made."""
    part, own = put.part, dict[int, int]()
    for name, position in part.inputs.items():
        own[position] = convert_node(builder, places[put.leaves[name]], part.nodes[position].type)
    copy_nodes(builder, part, range(len(part.nodes)), own)
    return convert_node(builder, own[next(iter(part.outputs.values()))], node.type)


def why_not(graph: Graph, stage: Stage, *, counts: bool = False) -> str | None:
    """Why some splice of a stage does not follow from its lemma; None where all of them do.

    With ``counts`` short integers of the program have no end.
    """
    lemmas, digests = stage.by_key(), node_digests(graph)
    known = facts_within(graph, stage.within, counts=counts) if any(lemma.given for lemma in stage.lemmas) else []
    seen: set[int] = set()
    for splice in stage.splices:
        where = f"the splice at node {splice.position}"
        lemma = lemmas.get(splice.lemma)
        if lemma is None:
            return f"{where} uses a lemma that is not there"
        if splice.position in seen or not 0 <= splice.position < len(graph.nodes):
            return f"{where} is of a node that does not exist or has another one"
        seen.add(splice.position)
        why = _unlike(graph, digests, splice, lemma) or _not_given(known, splice, lemma)
        if why is not None:
            return f"{where}: {why}"
    return None


def _unlike(graph: Graph, digests: Sequence[bytes], splice: Splice, lemma: Lemma) -> str | None:
    part, root = lemma.right, splice.position
    if len(part.outputs) != 1 or len(lemma.left.outputs) != 1:
        return "the lemma is not about one tensor"
    leaves = dict(splice.leaves)
    for name, held in leaves.items():
        # What is put in reads earlier nodes alone; what was there may be the node itself, of which something is known.
        last = splice.position - (name in lemma.left.inputs)
        if not held or not all(0 <= p <= last for p in held):
            return f"{name} is held by nodes that come later, or by none"
        if len({digests[p] for p in held}) > 1 or (len(set(held)) > 1 and _receives(graph, held)):
            return f"{name} is held by nodes that are other expressions"
    for side in (lemma.left, part):
        for name, position in side.inputs.items():
            if name not in leaves:
                return f"nothing holds {name}"
            kinds = side.nodes[position].type, graph.nodes[leaves[name][0]].type
            if kinds[0].shape != kinds[1].shape or not _same_numbers(kinds[0].dtype, kinds[1].dtype):
                return f"{name} is {kinds[0]} in the lemma and {kinds[1]} in the program"
    result = next(iter(part.outputs.values()))
    if lemma.left.nodes[next(iter(lemma.left.outputs.values()))].type != part.nodes[result].type:
        return "the sides of the lemma have other types"
    matched = _Match(graph, part, leaves).pairs(result, root)
    if matched is None:
        return "the program has something else there"
    for name, own in lemma.inner:
        if not any((own, p) in matched for p in leaves.get(name, ())):
            return f"{name} is not held by what the lemma says that it is"
    return None


def _receives(graph: Graph, positions: Sequence[int]) -> bool:
    """Whether nodes are made of messages: the next one of a kind is another one, and is the same expression."""
    return any(isinstance(graph.nodes[p].op, ops.Recv) for p in graph.ancestors(positions))


def _not_given(known: Sequence[Facts], splice: Splice, lemma: Lemma) -> str | None:
    """Why what a lemma is given is not known of the program; None where it is."""
    leaves = dict(splice.leaves)
    for name, facts in lemma.given:
        if name not in leaves:
            return f"nothing holds {name}"
        if not any(includes(facts, known[position]) for position in leaves[name]):
            return f"{name} is not known to be what the lemma is given"
    return None


def _same_numbers(a: DType, b: DType) -> bool:
    """Whether a cast between two element types is no operation over the reals."""
    return a is b or (a.is_float and b.is_float)


def matches(graph: Graph, root: int, part: Graph, leaves: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether a node of a program is the result of a part whose inputs these nodes hold."""
    return _Match(graph, part, leaves).pairs(next(iter(part.outputs.values())), root) is not None


class _Match:
    """Whether nodes of a program are a part, its inputs being certain nodes."""

    def __init__(self, graph: Graph, part: Graph, leaves: Mapping[str, tuple[int, ...]]) -> None:
        self._graph, self._part, self._leaves = graph, part, leaves
        self._names = {position: name for name, position in part.inputs.items()}

    def pairs(self, own: int, other: int) -> set[tuple[int, int]] | None:
        """Which nodes are which where node ``own`` of the part is ``other`` of the program; None where it is not."""
        stack = [(own, other)]
        seen: set[tuple[int, int]] = set()
        while stack:
            pair = stack.pop()
            if pair in seen:
                continue
            seen.add(pair)
            if self._is_leaf(*pair):
                continue
            mine, theirs = self._part.nodes[pair[0]], self._graph.nodes[pair[1]]
            if pair[0] in self._names or isinstance(theirs.op, ops.Input) or len(mine.operands) != len(theirs.operands):
                return None
            if mine.type != theirs.type or not _same_operator(mine, theirs):
                return None
            stack.extend(zip(mine.operands, theirs.operands, strict=True))
        return seen

    def _is_leaf(self, own: int, other: int) -> bool:
        """Whether a node of the part is an input that this node of the program holds, perhaps in other digits."""
        node, kind = self._part.nodes[own], self._graph.nodes[other].type
        if own not in self._names and isinstance(node.op, ops.Convert) and node.operands[0] in self._names:
            source = self._part.nodes[node.operands[0]].type
            if not (node.type == kind and source.dtype.is_float and kind.dtype.is_float):
                return False
            own = node.operands[0]
        elif own not in self._names or node.type != kind:
            return False
        return other in self._leaves[self._names[own]]


def _same_operator(mine: Node, theirs: Node) -> bool:
    """Equal operators; 1 and true are equal in Python, and so are 0.0 and -0.0, and are other attributes here."""
    if mine.op != theirs.op:
        return False
    return not isinstance(mine.op, ops.Constant | ops.CustomCall) or print_attributes(mine.op) == print_attributes(
        theirs.op
    )
