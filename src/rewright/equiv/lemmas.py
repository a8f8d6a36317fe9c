"""Equations between small parts of two programs that were proved because the engine could not relate them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from rewright import ops
from rewright.equiv.building import copy_nodes, pruned
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.expression import expression
from rewright.ir.graph import Graph, GraphBuilder
from rewright.rules.generalisation import generalised
from rewright.rules.reading import canonical
from rewright.rules.scheme import Scheme
from rewright.terms.normal.assumptions import Claim
from rewright.terms.normal.prove import prove

SECONDS = 4.0
_HURRIED = 2.0
"""Seconds for a part of a program that is only asked about to confirm an edit."""
_MOST_PARTS = 32
PROVED = "proved"
"""The evidence of a lemma that normal forms show for all inputs."""


@dataclass(frozen=True)
class Lemma:
    """Two small programs over the same inputs, and how it is known that they compute the same."""

    name: str
    left: Graph
    right: Graph
    evidence: str
    """``"proved"``: by normal forms, for all inputs at the sizes that the programs have, which may be symbols."""
    places: tuple[tuple[str, str], ...] = ()
    """Source lines of both sides, wherever it was used."""

    @property
    def key(self) -> str:
        """A digest of what it says."""
        return key_of(self.left, self.right)

    @property
    def statement(self) -> str:
        """What it says, as an equation over the inputs of both sides."""
        return " == ".join(expression(side, next(iter(side.outputs))) for side in (self.left, self.right))


def key_of(left: Graph, right: Graph) -> str:
    """A digest of the statement that two programs compute the same."""
    return digest(left) + digest(right)


@dataclass
class Prover:
    """Proves statements once each, and remembers what could not be proved."""

    seconds: float = SECONDS
    known: dict[str, bool] = field(default_factory=dict[str, bool])
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    attempts: int = 0
    schemes: list[Scheme] = field(default_factory=list[Scheme])
    """Proved for all sizes; what is an instance of one needs no proof."""
    claimed: list[Scheme] = field(default_factory=list[Scheme])
    """From a file: each is proved when it is first of use."""

    def proves(self, left: Graph, right: Graph) -> bool:
        """Whether two programs over the same inputs are proved to compute the same for all inputs."""
        key = key_of(left, right)
        if key not in self.known and self.covering(left, right) is not None:
            self.known[key] = True
        if key not in self.known:
            self.attempts += 1
            outcome = prove(Claim(left, right), self.seconds)
            self.known[key] = outcome.status == "proved" or self._proves_parts(left, right)
            self.reasons[key] = outcome.reason
        return self.known[key]

    def covering(self, left: Graph, right: Graph) -> Scheme | None:
        """A proved scheme of which two programs are an instance."""
        if not self.schemes and not self.claimed:
            return None
        sides = canonical(left, right)
        for scheme in self.schemes:
            if scheme.covers_canonical(sides):
                return scheme
        for scheme in [scheme for scheme in self.claimed if scheme.covers_canonical(sides)]:
            self.claimed.remove(scheme)
            if self._holds(scheme):
                self.schemes.append(scheme)
                return scheme
        return None

    def generalised(self, left: Graph, right: Graph, seconds: float) -> Scheme | None:
        """A proved scheme of which two programs are an instance, made of them where there is none yet."""
        found = self.covering(left, right)
        if found is None:
            found = generalised(left, right, seconds)
            if found is not None:
                self.schemes.append(found)
        return found

    def _holds(self, scheme: Scheme) -> bool:
        try:
            claim = scheme.rule.claim()
        except RewrightError:
            return False
        if prove(claim, self.seconds).status == "proved":
            return True
        return not scheme.is_general and self._proves_parts(claim.left, claim.right)

    def _proves_parts(self, left: Graph, right: Graph) -> bool:
        """Whether a side is put together from parts along an axis, and each is that part of the other side.

        A recurrence that is written out step by step is such a side, where the other one is a sum over all of the axis.
        """
        for whole, joined in ((left, right), (right, left)):
            parts = list(_parts(joined))
            if 1 < len(parts) <= _MOST_PARTS:
                claims = (Claim(_sliced(whole, where), part) for where, part in parts)
                return all(prove(claim, self.seconds / 2).status == "proved" for claim in claims)
        return False

    def hurried(self) -> Prover:
        """A prover that knows what this one knows and takes less time for what is new; it teaches this one nothing."""
        seconds = min(self.seconds, _HURRIED)
        return Prover(seconds, dict(self.known), dict(self.reasons), 0, list(self.schemes), list(self.claimed))

    def why_not(self, left: Graph, right: Graph) -> str:
        """Why a statement that was tried is not proved."""
        return self.reasons.get(key_of(left, right)) or "no reason is known"


_Where = tuple[int, int, int]
"""An axis, and where on it a part begins and ends."""


def _parts(graph: Graph) -> Iterator[tuple[_Where, Graph]]:
    """The parts that the result of a program is put together from; none where it is not."""
    ((name, position),) = graph.outputs.items()
    node = graph.nodes[position]
    if not isinstance(node.op, ops.Concatenate) or not node.type.is_static():
        return
    start, axis = 0, node.op.dimension
    for operand in node.operands:
        end = start + int(str(graph.nodes[operand].type.shape[axis]))
        yield (axis, start, end), pruned(replace(graph, outputs={name: operand}))
        start = end


def _sliced(graph: Graph, where: _Where) -> Graph:
    """The program with a part of its result."""
    builder = GraphBuilder(graph.name)
    places = {position: builder.input(name, graph.nodes[position].op) for name, position in graph.inputs.items()}
    copy_nodes(builder, graph, range(len(graph.nodes)), places)
    ((name, position),) = graph.outputs.items()
    axis, start, end = where
    sizes = [int(str(n)) for n in graph.nodes[position].type.shape]
    begins = tuple(start if a == axis else 0 for a in range(len(sizes)))
    ends = tuple(end if a == axis else n for a, n in enumerate(sizes))
    builder.output(name, builder.add(ops.Slice(begins, ends, (1,) * len(sizes)), places[position]))
    return builder.build()
