"""Why the nearest law of the engine did not relate a tensor of the ranks to one of the sequential program."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.blame.localise import Localiser, addends
from rewright.blame.wording import describe_node, where
from rewright.claims.language import Addend, Content, Fold, Ranged
from rewright.ir.graph import Node
from rewright.ir.operator import call_operator
from rewright.lifting.programs import UNKNOWN
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import Named
from rewright.lifting.terms.value import NotAView, Value
from rewright.lifting.transfer import apply_law

_MEETING = (ops.AllReduce, ops.ReduceScatter)
_MOST_BOXES = 3


def why_not(localiser: Localiser, rank: int, position: int | None) -> str:
    """One sentence; empty where a node has no value, or its law fired and all is familiar."""
    if position is None or not 0 <= rank < len(localiser.ranks):
        return ""
    at = _At(localiser, rank)
    if position >= len(at.lifted.graph.nodes) or at.value(position) is None:
        return ""
    node = at.lifted.graph.nodes[position]
    if isinstance(node.op, ops.Constant):
        return "a constant is what it is"
    return at.open(node, position) or at.stopped(node) or at.nearest(node, position)


class _At:
    """The programs, and the rank that a question is about."""

    def __init__(self, localiser: Localiser, rank: int) -> None:
        self.localiser, self.rank, self.lifted = localiser, rank, localiser.ranks[rank]
        self.lifter, self.terms, self.sequential = localiser.lifter, localiser.terms, localiser.sequential

    def value(self, position: int) -> Value | None:
        """What a node of the rank computes, where that is known."""
        number = self.lifted.values[position] if position < len(self.lifted.values) else UNKNOWN
        return self.lifter.values[number] if 0 <= number < len(self.lifter.values) else None

    def open(self, node: Node, position: int) -> str:
        """A partial sum."""
        told = self._part(self.value(position))
        if not told:
            operands = ((p, self._part(self.value(p))) for p in node.operands)
            found = next(((p, part) for p, part in operands if part), None)
            if found is None:
                return ""
            line, part = self.lifted.graph.nodes[found[0]].span, found[1]
            return (
                f"the {call_operator(node.op)} needs whole tensors, and its operand from {line} is {part}; a partial "
                "sum passes through what is linear, and through nothing else"
            )
        if isinstance(node.op, _MEETING):
            return f"the {call_operator(node.op)} adds up what its members hold, and that is {told}"
        return f"the {call_operator(node.op)} gives {told}, which only a reduction over the ranks completes"

    def _part(self, value: Value | None) -> str:
        """Which part of a sum a value is; empty where it is none."""
        for addend in () if value is None else addends(value):
            for hole, region in addend.parts:
                label, line = self.terms.label(hole), self._home(hole)
                kind = label.kind if isinstance(label, Fold) else "masked tensor"
                what = line if line.startswith(f"{kind} ") else f"{kind} of the {line}" if line else kind
                return f"the {what} over {_ranges(region)} on rank {self.rank}{self._range_taken(hole)}"
        return ""

    def _range_taken(self, hole: int) -> str:
        """The range that the sequential program takes of a fold."""
        for term in self.lifter.algebra.known:
            if isinstance(self.terms.label(term), Ranged) and self.terms.children(term)[0] == hole:
                return f", where the sequential program takes {_ranges(self.terms.region(term))}"
        return ""

    def stopped(self, node: Node) -> str:
        """What a law said when it gave up."""
        values = [value for p in node.operands if (value := self.value(p)) is not None]
        if len(values) < len(node.operands) or isinstance(node.op, ops.Collective | ops.Input):
            return ""
        types = [self.lifted.graph.nodes[p].type for p in node.operands]
        try:
            apply_law(self.lifter.algebra, node.op, values, types, node.type)
        except NotAView as error:
            reason = str(error)
            needs = "" if reason == node.op.name else f": it needs what these operands do not have, {reason}"
            return f"no law of the engine relates the {call_operator(node.op)} on rank {self.rank}{needs}"
        return ""

    def nearest(self, node: Node, position: int) -> str:
        """The tensor of the sequential program that is most like the one that nobody there computes."""
        value, horizon = self.value(position), self.lifter.algebra.horizon
        found = () if value is None else tuple(addends(value))
        strange = next((addend.term for addend in found if addend.term >= horizon), None)
        if strange is None:
            return self._known(node, found)
        best = self._most_alike(strange)
        kind = f"the {call_operator(node.op)} gives a tensor that the sequential program does not have"
        if best is None:
            return f"{kind}, nor one like it"
        line = self.sequential.graph.nodes[best[0]].span
        pairs = zip(self.terms.children(best[1]), self.terms.children(strange), strict=True)
        differing = next(((a, b) for a, b in pairs if a != b), None)
        if differing is None:
            return f"{kind}: the nearest one, at {line}, uses other elements of the same operands"
        wanted, held = map(self._tensor, differing)
        return f"{kind}: the nearest one, at {line}, uses {wanted} where this rank uses {held}"

    def _most_alike(self, term: int) -> tuple[int, int] | None:
        """The sequential node and its term that share most operands with a term of the same kind."""
        head, own = _head(self.terms.label(term)), self.terms.children(term)
        best: tuple[int, int, int] | None = None
        for position, number in enumerate(self.sequential.values):
            for addend in addends(self.lifter.values[number]):
                theirs = self.terms.children(addend.term)
                if _head(self.terms.label(addend.term)) == head and len(theirs) == len(own):
                    shared = sum(a == b for a, b in zip(theirs, own, strict=True))
                    if best is None or shared > best[0]:
                        best = shared, position, addend.term
        return None if best is None else best[1:]

    def _known(self, node: Node, found: Sequence[Addend]) -> str:
        """A tensor that the sequential program has, where another one belongs."""
        if not found:
            return ""
        told: list[str] = []
        for addend in found[:_MOST_BOXES]:
            times = "" if addend.coefficient == 1 else f"{float(addend.coefficient):g} times "
            told.append(times + self._tensor(addend.term))
        more = f" and {len(found) - _MOST_BOXES} more" if len(found) > _MOST_BOXES else ""
        tensors = " and ".join(told) + more
        return f"the {call_operator(node.op)} gives what the sequential program has elsewhere: {tensors}"

    def _home(self, term: int) -> str:
        """The sequential node that first computes a term, or the fold under it."""
        position = self.localiser.home.get(term)
        node = None if position is None else self.sequential.graph.nodes[position]
        return "" if node is None else where(node) if isinstance(node.op, ops.Input) else describe_node(node)

    def _tensor(self, term: int) -> str:
        names = sorted(self.terms.inputs(term))
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        made = f"something made of {', '.join(names[:2])}{more}" if names else "a constant"
        return self._home(term) or made


def _ranges(region: Region) -> str:
    """``0..4``, or ``2 times 0..4 and 4..8``."""
    told: list[str] = []
    for box, coefficient in region[:_MOST_BOXES]:
        times = "" if coefficient == 1 else f"{coefficient} times "
        told.append(times + " x ".join(f"{'-inf' if a is None else a}..{'inf' if b is None else b}" for a, b in box))
    more = f" and {len(region) - _MOST_BOXES} more" if len(region) > _MOST_BOXES else ""
    return (" and ".join(told) or "nothing") + more


def _head(content: Content | Named) -> tuple[object, ...]:
    """What a term is, but for where it reads its operands."""
    fields = (getattr(content, name) for name in content.__dataclass_fields__ if name not in ("accesses", "axes"))
    return type(content), *fields
