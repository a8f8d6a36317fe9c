"""Why each step of a draft computes what was there before: a lemma about as little of the program as shows it.

What was put in reads certain nodes. Behind the node that it replaces the program is looked at up to these, at first
only a few operators deep, so that ``exp(x) / exp(y)`` is a quotient of two exponentials whatever ``x`` and ``y`` are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ops.facts import UNKNOWN, Facts, of_dtype
from rewright.proof.rewriting.evidence import LAW, NUMBERS, PROVED, Checked
from rewright.proof.rewriting.lemma import Given, Lemma
from rewright.proof.rewriting.numbers.closed import Taken, compare_closed
from rewright.proof.rewriting.parts import depends_on_inputs
from rewright.proof.rewriting.splices import Rewriting, Splice, Stage
from rewright.proof.rewriting.stages import Put
from rewright.refine.rewriting.drafts import Change, Draft

_DEPTHS = (1, 2, 3, 4, 6, 9, 14, 24, 64)
_MOST = 400
"""Operators of a part that are looked at."""
_MOST_CLOSED = 4096
_PLACED = "the rewrite of {0} at {1} is not shown to compute the same: {2}"


_Inside = Literal["nothing", "integers", "all"]
_Way = tuple[_Inside, int]
"""What is looked into, and how many operators deep."""


class NotShown(RewrightError):
    """Raised for a step that nothing in the checker proves to compute the same."""


@dataclass(frozen=True)
class _Cone:
    """What is behind a node: operators, and what they read."""

    inside: frozenset[int]
    leaves: Mapping[int, str]

    def part(self, graph: Graph, root: int) -> Graph:
        """As a program of its own."""
        builder, places = GraphBuilder("part"), dict[int, int]()
        for position, name in self.leaves.items():
            places[position] = builder.input(name, ops.Input(name, graph.nodes[position].type))
        for position in sorted(self.inside - self.leaves.keys()):
            node = graph.nodes[position]
            places[position] = builder.add(node.op, *(places[p] for p in node.operands))
        builder.output("result", places[root])
        return builder.build()


@dataclass
class LemmaSearch:
    """Finds lemmas for drafts; what was found of one layer holds for the next."""

    checked: Checked = field(default_factory=Checked)

    def premises(self, draft: Draft) -> Iterator[Taken]:
        """What the numbers of a draft take for granted; what is not a number takes nothing."""
        for change in draft.changes:
            puts = {position: put for position, put in change.puts.items() if not put.leaves}
            depends = depends_on_inputs(change.before) if puts else []
            for position, put in puts.items():
                lemma = None if depends[position] else _of_numbers(change.before, position, put)
                if lemma is not None:
                    yield from self._numbers(lemma) or ()

    def rewriting(self, draft: Draft) -> Rewriting:
        """The stages of a draft; raises NotShown for a step that nothing shows."""
        count = draft.counted_after or 0
        stages = [self._stage(change, counts=number >= count) for number, change in enumerate(draft.changes)]
        return Rewriting(tuple(stages[:count]), tuple(stages[count:]))

    def stages(self, draft: Draft, *, counts: bool) -> tuple[Stage, ...]:
        """The stages of a draft, whose short integers are unbounded with ``counts``; raises NotShown."""
        return tuple(self._stage(change, counts=counts) for change in draft.changes)

    def _numbers(self, lemma: Lemma) -> tuple[Taken, ...] | None:
        known = self.checked.taken
        if lemma.key not in known:
            found = compare_closed(lemma)
            if found is None:
                return None
            known[lemma.key] = found
        return known[lemma.key]

    def _stage(self, change: Change, *, counts: bool) -> Stage:
        finder = _Finder(change, self.checked, counts)
        lemmas: dict[str, Lemma] = {}
        splices: list[Splice] = []
        for position, put in change.puts.items():
            lemma, leaves = finder.found(position, put)
            kept = lemmas.setdefault(lemma.key, lemma)
            splices.append(Splice(position, kept.key, leaves))
        return Stage(tuple(splices), tuple(lemmas.values()), change.within)


def _of_numbers(graph: Graph, position: int, put: Put) -> Lemma | None:
    """The lemma that a closed part is what was there; None where that reads anything."""
    inside = frozenset(graph.ancestors([position]))
    if len(inside) > _MOST_CLOSED or any(isinstance(graph.nodes[p].op, ops.Collective) for p in inside):
        return None
    return Lemma("", put.part, _Cone(inside, {}).part(graph, position), NUMBERS)


Leaves = tuple[tuple[str, tuple[int, ...]], ...]


class _Finder:
    """Finds the lemma of each step of one change."""

    def __init__(self, change: Change, checked: Checked, counts: bool) -> None:
        self._change, self._checked, self._counts = change, checked, counts
        self._graph = change.before
        self._known: Sequence[Facts] | None = None
        self._depends: Sequence[bool] | None = None
        self._way: _Way = "nothing", 0
        """How the last cone was made."""
        self._shown: dict[tuple[str, int], _Way] = {}
        """By operator and size of a part how the cone was made that showed the last of its kind: layers repeat."""

    def found(self, position: int, put: Put) -> tuple[Lemma, Leaves]:
        """The lemma, and what holds its inputs; raises NotShown."""
        why = "nothing is known of it"
        for lemma, leaves in self._candidates(position, put):
            reason = self._checked.why_not(lemma, counts=self._counts)
            if reason is None:
                self._shown[_kind(self._graph, position, put)] = self._way
                return lemma, leaves
            why = reason
        node = self._graph.nodes[position]
        raise NotShown(_PLACED.format(node.op.name, node.span, why))

    def _candidates(self, position: int, put: Put) -> Iterator[tuple[Lemma, Leaves]]:
        if not put.leaves:
            if self._depends is None:
                self._depends = depends_on_inputs(self._graph)
            is_closed = not self._change.within and not self._depends[position]
            lemma = _of_numbers(self._graph, position, put) if is_closed else None
            if lemma is not None:
                yield lemma, ()
            facts = self._facts()[position]
            name = "b0"
            right = _Cone(frozenset(), {position: name}).part(self._graph, position)
            yield Lemma("", put.part, right, PROVED, (), ((name, _without_exactness(facts)),)), ((name, (position,)),)
        known = list[tuple[Lemma, Leaves]]()
        for cone in self._cones(position, put):
            right = cone.part(self._graph, position)
            held = {name: p for p, name in cone.leaves.items()}
            order = sorted(cone.inside - cone.leaves.keys())
            places = {p: len(cone.leaves) + number for number, p in enumerate(order)}
            inner = tuple((name, places[p]) for name, p in put.leaves.items() if p in places)
            leaves = tuple((name, (p,)) for name, p in (held | dict(put.leaves)).items())
            for evidence, given in self._ways(put, held):
                lemma = Lemma("", put.part, right, evidence, (), given, inner), leaves
                # A law tells at once whether it says it, and is asked of every cone before normal forms are.
                if evidence == PROVED and self._change.law:
                    known.append(lemma)
                else:
                    yield lemma
        yield from known

    def _ways(self, put: Put, held: Mapping[str, int]) -> Iterator[tuple[str, Given]]:
        if len(held) == 1 and self._graph.nodes[next(iter(held.values()))].type.dtype.value in ("i8", "ui8"):
            yield NUMBERS, ()
        if not (self._change.law or self._change.within):
            yield PROVED, ()
        known = self._facts()
        given = tuple(
            (name, _without_exactness(known[p]))
            for name, p in held.items()
            if _without_exactness(known[p]) not in (UNKNOWN, of_dtype(self._graph.nodes[p].type.dtype))
        )
        if self._change.law:
            yield LAW + self._change.law, given
            yield PROVED, ()
        # A choice is decided by its condition, whatever else is known.
        sure = tuple(entry for entry in given if entry[1].low == entry[1].high)
        if self._change.within and sure and sure != given:
            yield PROVED, sure
        if given:
            yield PROVED, given

    def _facts(self) -> Sequence[Facts]:
        if self._known is None:
            self._known = self._change.facts(counts=self._counts)
        return self._known

    def _cones(self, position: int, put: Put) -> Iterator[_Cone]:
        """What is behind a node up to what is read by what was put in, deeper and deeper."""
        names = {p: name for name, p in put.leaves.items()}
        before: _Cone | None = None
        # A law may have to see what was put in reads, too: that it is a choice, say, or what integers are made of.
        inside: tuple[_Inside, ...] = ("nothing", "integers", "all") if self._change.law else ("nothing",)
        likely = self._shown.get(_kind(self._graph, position, put)) if self._change.law else None
        first = None if likely is None else _behind(self._graph, position, names, likely[1], likely[0])
        if first is not None and likely is not None:
            self._way = likely
            yield first
        for looks_in in inside:
            for depth in _DEPTHS:
                self._way = looks_in, depth
                cone = _behind(self._graph, position, names, depth, looks_in)
                if cone is None:
                    break
                if before is None or cone.inside != before.inside:
                    yield cone
                before = cone


def _kind(graph: Graph, position: int, put: Put) -> tuple[str, int]:
    return graph.nodes[position].op.name, len(put.part.nodes)


def _without_exactness(facts: Facts) -> Facts:
    """What a lemma may be given; whether the machine's numbers are these is none of its business."""
    return replace(facts, exact=False)


def _behind(graph: Graph, root: int, names: Mapping[int, str], depth: int, looks_in: _Inside) -> _Cone | None:
    """So many operators behind a node, numbers not counted; None where there are too many.

    ``looks_in`` says which nodes that have names are looked into: of integers no further than to what is a float.
    """
    inside, leaves, level = set[int](), dict[int, str](), {root}
    behind_integers = set[int]()
    for distance in range(depth + 1):
        following: set[int] = set()
        for position in sorted(level - inside - leaves.keys()):
            node = graph.nodes[position]
            is_constant = isinstance(node.op, ops.Constant | ops.Iota)
            is_last = distance == depth or (position in behind_integers and node.type.dtype.is_float)
            is_named, is_float = position in names and position != root, node.type.dtype.is_float
            if is_named and (looks_in == "nothing" or (looks_in == "integers" and is_float)):
                leaves[position] = names[position]
            elif isinstance(node.op, ops.Input) or (is_last and not is_constant):
                leaves[position] = f"b{position}"
            else:
                inside.add(position)
                following.update(node.operands)
                if looks_in == "integers" and (is_named or position in behind_integers):
                    behind_integers.update(node.operands)
        level = following
    if len(inside) > _MOST:
        return None
    order = sorted(leaves, key=lambda p: (p not in names, p))
    numbered = {p: names.get(p) or f"b{number}" for number, p in enumerate(order)}
    return _Cone(frozenset(inside), numbered)


__all__ = ["LemmaSearch", "NotShown"]
