"""What one iteration does to what a loop carries, and the identities by which a fold is the loop's result.

Let ``u`` be carried, ``m`` a running extremum with ``m' = max(m, x)``, and ``u' = u * A(m, m') + B(m')``. Suppose that
``B(a) * A(a, b) = B(b)`` for all numbers ``a`` and ``b``, where ``A`` and ``B`` may be of different iterations. Then
after any number of them ``u`` is the sum of ``B`` of all at the last maximum: it is so after none, and one more
multiplies each addend by ``A(m, m')``, which turns ``B(m)`` into ``B(m')``, and adds the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from rewright import ops
from rewright.frontends.triton.meaning.folds.copies import Copied, dependents
from rewright.frontends.triton.meaning.folds.largest import First, first_of_step
from rewright.frontends.triton.meaning.folds.moments import Moments, moments_of_step
from rewright.ir.graph import Graph, GraphBuilder
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

Kind = Literal["sum", "maximum", "minimum", "moments", "first"]
_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Step:
    """A fold of what iterations contribute; ``follows`` is the extremum that addends are scaled by."""

    kind: Kind
    follows: int | None = None
    conditions: tuple[str, ...] = ()
    moments: Moments | None = None
    """The carried values that are a mean, ``m2`` and a count, of which it is one."""
    first: First | None = None
    """The carried values that are an extremum and what came with it first, of which it is one."""


def step_of(builder: GraphBuilder, unknown: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, Step] | None:
    """By number of a carried value what an iteration makes of it; None where some is no fold.

    ``unknown`` are the nodes of the values before an iteration, and ``ends`` those behind it.
    """
    graph = builder.build()
    found: dict[int, Step] = {}
    for number, end in ends.items():
        kind = _extremum(graph, unknown, unknown[number], end)
        if kind is not None:
            found[number] = Step(kind)
    others: list[int] = []
    for number, end in ends.items():
        if number not in found:
            step = _sum(graph, unknown, ends, found, number, end)
            if step is None:
                others.append(number)
            else:
                found[number] = step
    first = first_of_step(graph, unknown, ends, others)
    while first is not None:
        found |= dict.fromkeys((first.value, first.place), Step("first", first=first))
        others = [n for n in others if n not in (first.value, first.place)]
        first = first_of_step(graph, unknown, ends, others)
    if len(others) == 2:
        counts = [n for n, step in found.items() if step.kind == "sum" and step.follows is None]
        moments = moments_of_step(graph, unknown, ends, others, counts)
        if moments is not None:
            found |= dict.fromkeys((*others, moments.count), Step("moments", moments=moments))
            return found
    return None if others else found


def _extremum(graph: Graph, unknown: Mapping[int, int], own: int, end: int) -> Kind | None:
    node = graph.nodes[end]
    if not isinstance(node.op, ops.Maximum | ops.Minimum) or own not in node.operands:
        return None
    others = [p for p in node.operands if p != own]
    if len(others) != 1 or graph.ancestors(others) & set(unknown.values()):
        return None
    return "maximum" if isinstance(node.op, ops.Maximum) else "minimum"


def _sum(
    graph: Graph,
    unknown: Mapping[int, int],
    ends: Mapping[int, int],
    extrema: Mapping[int, Step],
    number: int,
    end: int,
) -> Step | None:
    own = unknown[number]
    cut = {ends[n]: n for n in extrema}
    linear = _Linear(graph, own, frozenset(cut))
    factors = linear.factors(end)
    if factors is None:
        return None
    reads = _reads(graph, end, cut, unknown.values(), without=own)
    olds = {n for n, p in unknown.items() if p in reads and n in extrema}
    if any(p in reads and n not in extrema for n, p in unknown.items() if p != own):
        return None
    follows = olds | {cut[p] for p in reads if p in cut}
    if not follows:
        return None if factors else Step("sum")
    if len(follows) != 1:
        return None
    (extremum,) = follows
    claim = _identity(graph, own, unknown[extremum], ends[extremum], end)
    if claim is None or prove(claim, _SECONDS).status != "proved":
        return None
    line = graph.nodes[end].span.line
    text = f"the running {extrema[extremum].kind} that line {line} follows is a number after the first iteration"
    return Step("sum", extremum, (text,))


class _Linear:
    """A node as ``own * factors + rest``."""

    def __init__(self, graph: Graph, own: int, cut: frozenset[int]) -> None:
        self._graph, self._own, self._cut = graph, own, cut
        self._depends = dependents(graph, own)

    def factors(self, position: int) -> list[int] | None:
        """The factors of what is carried; None where it is not linear."""
        if position == self._own:
            return []
        node = self._graph.nodes[position]
        inner = [p for p in node.operands if p in self._depends]
        if len(inner) != 1 or position in self._cut:
            return None
        found = self.factors(inner[0])
        if found is None:
            return None
        if isinstance(node.op, ops.Add) or (isinstance(node.op, ops.Subtract) and node.operands[0] == inner[0]):
            return found
        if isinstance(node.op, ops.Multiply):
            return [*found, *(p for p in node.operands if p != inner[0])]
        if isinstance(node.op, ops.Divide) and node.operands[0] == inner[0]:
            return [*found, node.operands[1]]
        return None


def _reads(graph: Graph, end: int, cut: Mapping[int, int], unknown: Iterable[int], without: int) -> set[int]:
    """The carried values, and the new extrema, that a node is made of."""
    leaves, seen, stack = set(unknown) - {without}, set[int](), [end]
    found: set[int] = set()
    while stack:
        position = stack.pop()
        if position in seen:
            continue
        seen.add(position)
        if position in cut or position in leaves:
            found.add(position)
        else:
            stack += graph.nodes[position].operands
    return found


def _identity(graph: Graph, own: int, old: int, new: int, end: int) -> Claim | None:
    """One iteration from ``u = B(a)``, of an earlier iteration, to ``B(b)`` of that and of this one, as a claim.

    On the left the extremum goes from ``a`` to ``b``. What the two iterations read is told apart: the factor of the
    one has to be right for what the other added.
    """
    moving = dependents(graph, old) | dependents(graph, new) | dependents(graph, own)
    kind = graph.nodes[old].type
    if graph.nodes[new].type != kind:
        return None
    left, right = (Copied(graph, moving) for _ in range(2))
    addend = left.of(end, {own: None, old: "a", new: "a"}, "earlier")
    left.builder.output("0", left.of(end, {own: addend, old: "a", new: "b"}, "now"))
    both = [right.of(end, {own: None, old: "b", new: "b"}, when) for when in ("earlier", "now")]
    right.builder.output("0", right.builder.add(ops.Add(), *both))
    names = {**left.leaves, **right.leaves, "a": kind, "b": kind}
    for copy in (left, right):
        for name, own_kind in names.items():
            copy.input(name, own_kind)
    return Claim(left.builder.build(), right.builder.build())


def added(builder: GraphBuilder, position: int, own: int) -> int | None:
    """What an iteration adds to a carried value: ``B`` of ``own * A + B``, and ``x`` of ``max(own, x)``."""
    graph = builder.build()
    depends = dependents(graph, own)

    def rest(place: int) -> int | None:
        if place not in depends:
            return place
        if place == own:
            return None
        node = graph.nodes[place]
        parts = [rest(p) for p in node.operands]
        if isinstance(node.op, ops.Add | ops.Maximum | ops.Minimum):
            kept = [p for p in parts if p is not None]
            return builder.add(node.op, *kept) if len(kept) == 2 else kept[0] if kept else None
        if parts[0] is None:  # scaled or laid out
            return None
        known = [p for p in parts if p is not None]
        return builder.add(node.op, *known) if len(known) == len(parts) else None

    return rest(position)
