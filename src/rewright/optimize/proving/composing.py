"""The proof of a plan in pieces: every stored tensor is what the program makes of the stored tensors that it reads.

The program and the graph of the plan are cut at what the plan stores. A piece that occurs again, as in the layers of a
model, is proved once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from rewright import ops
from rewright.equiv.pieces import Piece, PiecewiseCertificate, Use, follows
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.optimize.planning.cutting import cut_graph
from rewright.optimize.planning.plan import Plan, writes
from rewright.optimize.proving.refusal import Late, NotComposed
from rewright.optimize.proving.regraph import regraph_plan

FIRST = 0.5
"""The share of its time that a piece gets before all others were tried."""
PATIENCE = 1.25
"""All pieces of the first plan together may take this many times as long as one, and those of a later plan half as long
as one more."""


@dataclass(frozen=True)
class Composed:
    """The program, the graph of the plan, and a certificate that the checker confirmed."""

    program: Graph
    written: Graph
    certificate: PiecewiseCertificate


@dataclass
class Known:
    """What is known of pieces of plans of one program, which need no second try."""

    proved: dict[str, Piece] = field(default_factory=dict[str, Piece])
    failed: dict[str, RewrightError] = field(default_factory=dict[str, RewrightError])
    """Why those that were tried have no proof."""
    spent: float = 0.0
    """Seconds of the processor: a machine that is busy with something else proves as much."""


Prover = Callable[[Graph, Graph, float, set[str]], Piece]
"""Proves that two programs are equal within seconds, and adds the digests of lemmas that were proved.

Raises NotComposed where there is no proof.
"""


@dataclass
class _Pieces:
    """The pieces that were proved, by what they say."""

    prove: Prover
    seconds: float
    until: float
    """How much may be spent on all pieces, those of other plans included."""
    known: Known
    found: dict[str, int] = field(default_factory=dict[str, int])
    pieces: list[Piece] = field(default_factory=list[Piece])
    lemmas: set[str] = field(default_factory=set[str])
    """The digests of lemmas that the checker proved, so that no piece has to have them proved again."""

    def number(self, left: Graph, right: Graph, share: float = 1.0) -> int:
        """The piece that says that two programs are equal; raises NotComposed where there is no proof.

        ``share`` is how much of the time for a piece it may take.
        """
        key = digest(left) + digest(right)
        if key in self.known.failed:
            raise self.known.failed[key]
        if key not in self.found:
            started = time.process_time()
            try:
                piece = self.known.proved.get(key) or self._proved(left, right, self.seconds * share)
            except RewrightError as error:
                if share == 1 or not isinstance(error, Late):
                    self.known.failed[key] = error
                raise
            finally:
                self.known.spent += time.process_time() - started
            self.known.proved[key] = piece
            self.found[key] = len(self.pieces)
            self.pieces.append(piece)
        return self.found[key]

    def _proved(self, left: Graph, right: Graph, seconds: float) -> Piece:
        if Piece(left, right).is_same:
            return Piece(left, right)
        left_over = min(seconds, self.until - self.known.spent)
        if left_over <= 0:
            raise Late("the budget is used up by other tensors")
        return self.prove(left, right, left_over, self.lemmas)


@dataclass(frozen=True)
class _Sides:
    """A stored tensor as the program and as the plan computes it, from leaves."""

    left: Graph
    right: Graph
    source: int
    place: int
    leaves: tuple[tuple[str, int, int], ...]

    @property
    def size(self) -> int:
        """How many nodes a proof goes through."""
        return len(self.left.nodes) + len(self.right.nodes)


def compose_proof(
    prove: Prover,
    program: Graph,
    plan: Plan,
    made: Mapping[int, int],
    seconds: float,
    total: float = math.inf,
    known: Known | None = None,
) -> Composed:
    """The proof of a plan in pieces.

    Args:
        prove: proves one piece.
        program: what the plan is for, as it was captured.
        plan: the plan.
        made: for positions of the program the ones of the graph that was planned.
        seconds: for the proof of one piece; all of them together may take ``PATIENCE`` times as long.
        total: for all of them together, where that is less.
        known: what was found out for other plans, to which this is added.

    Raises:
        NotComposed: naming the first tensor that has no proof.
    """
    written, memory = regraph_plan(plan)
    sources = {ready: position for position, ready in made.items()}
    known = Known() if known is None else known
    most = known.spent + total
    pieces = _Pieces(prove, seconds, min(max(PATIENCE * seconds, known.spent + seconds / 2), most), known)
    held = {written.inputs[name]: p for name, p in program.inputs.items() if name in written.inputs}
    sides: list[_Sides] = []
    wanted = [(sources[p], memory[p]) for p in _store(plan) if p in sources]  # others are parts of one reduction
    for source, place in [*wanted, *((p, written.outputs[name]) for name, p in program.outputs.items())]:
        if place in held:
            continue
        leaves = _leaves(program, written, source, place, held)
        left = cut_graph(program, source, {leaf[1]: leaf[0] for leaf in leaves})
        right = cut_graph(written, place, {leaf[2]: leaf[0] for leaf in leaves})
        sides.append(_Sides(left, right, source, place, leaves))
        held[place] = source
    missing: dict[int, str] = {}
    waiting = sorted(sides, key=lambda s: s.size)
    for share in (FIRST, 1.0):  # so that a piece that takes long, or has no proof, costs no other one its proof
        late: list[_Sides] = []
        for side in waiting:
            try:
                pieces.number(side.left, side.right, share)
                missing.pop(side.source, None)
            except RewrightError as error:
                node = program.nodes[side.source]
                missing[side.source] = f"{node.op.name} at {node.span} is not proved: {error}"
                late += [side] if isinstance(error, Late) else []
        waiting = late
        pieces.until = max(pieces.until, min(known.spent + seconds, most))  # one of them gets all of its time
    if missing:
        raise NotComposed(next(iter(missing.values())), [made[source] for source in missing])
    uses = [Use(pieces.number(s.left, s.right), s.source, s.place, s.leaves) for s in sides]
    certificate = PiecewiseCertificate(digest(program), digest(written), tuple(pieces.pieces), tuple(uses))
    try:
        follows(certificate, program, written)
    except RewrightError as error:
        raise NotComposed(str(error)) from None
    return Composed(program, written, certificate)


def _store(plan: Plan) -> Iterator[int]:
    """What the steps of a plan write, in order."""
    for step in plan.steps:
        yield from writes(step)


def _leaves(
    program: Graph, written: Graph, source: int, place: int, held: Mapping[int, int]
) -> tuple[tuple[str, int, int], ...]:
    """What a node of the plan's graph reads of what is known, by the names that it gets in a piece.

    The program reads the same, and perhaps inputs that what the plan reads is made of.
    """
    pairs = {held[q]: q for q in _reach(written, place, held)}
    for p in _reach(program, source, pairs):
        op = program.nodes[p].op
        pairs.setdefault(p, written.inputs.get(op.label, -1) if isinstance(op, ops.Input) else -1)
    if -1 in pairs.values():
        raise NotComposed("the plan has not all inputs of the program")
    return tuple((f"x{number}", p, q) for number, (p, q) in enumerate(pairs.items()))


def _reach(graph: Graph, root: int, stops: Collection[int]) -> list[int]:
    """The stops, and the inputs, that a node is computed from, in the order in which it reads them."""
    found: dict[int, None] = {}
    seen: set[int] = set()
    stack = list(reversed(graph.nodes[root].operands))
    while stack:
        position = stack.pop()
        if position in seen:
            continue
        seen.add(position)
        if position in stops or isinstance(graph.nodes[position].op, ops.Input):
            found[position] = None
        else:
            stack.extend(reversed(graph.nodes[position].operands))
    return list(found)
