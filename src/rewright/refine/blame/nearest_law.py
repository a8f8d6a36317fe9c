"""Why the nearest law of the engine did not relate a tensor of the ranks to one of the sequential program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rewright import ops
from rewright.claims.language import Addend, Content, Fold, Ranged
from rewright.ir.graph import Node
from rewright.lifting.programs import UNKNOWN, Lifted
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import Named
from rewright.lifting.terms.value import NotAView, Value
from rewright.lifting.transfer import apply_law
from rewright.refine.blame.localise import addends
from rewright.refine.check import Proof
from rewright.refine.verdict import Where

_MEETING = (ops.AllReduce, ops.ReduceScatter)
_MOST_BOXES = 3


def why_not(proof: Proof, where: Where) -> str:
    """One sentence; empty where the place has no value, or its law fired and all is familiar.

    Args:
        proof: a proof that failed, in which every node was lifted.
        where: the place of a finding.
    """
    if where.distributed is None or not 0 <= where.rank < len(proof.ranks):
        return ""
    lifted = proof.ranks[where.rank]
    if where.distributed >= len(lifted.graph.nodes) or _value(proof, lifted, where.distributed) is None:
        return ""
    node = lifted.graph.nodes[where.distributed]
    if isinstance(node.op, ops.Constant):
        return "a constant is what it is: no law makes one number of another"
    return _open(proof, lifted, node, where) or _stopped(proof, lifted, node, where) or _nearest(proof, lifted, where)


def _value(proof: Proof, lifted: Lifted, position: int) -> Value | None:
    number = lifted.values[position] if position < len(lifted.values) else UNKNOWN
    return proof.lifter.values[number] if 0 <= number < len(proof.lifter.values) else None


def _open(proof: Proof, lifted: Lifted, node: Node, where: Where) -> str:
    """A sum of which only a part has been added up."""
    assert where.distributed is not None
    result = _value(proof, lifted, where.distributed)
    told = _part(proof, result, where.rank)
    if not told:
        operands = ((p, _part(proof, _value(proof, lifted, p), where.rank)) for p in node.operands)
        found = next(((p, part) for p, part in operands if part), None)
        if found is None:
            return ""
        return (
            f"the law of {node.op.name} takes whole tensors, and its operand from {lifted.graph.nodes[found[0]].span} "
            f"is {found[1]}; parts of a sum pass through what is linear, and through nothing else"
        )
    if isinstance(node.op, _MEETING):
        return f"the law of {node.op.name} adds up what its members hold, and that is {told}"
    return f"the law of {node.op.name} fired and gives {told}, which only a reduction over the ranks completes"


def _part(proof: Proof, value: Value | None, rank: int) -> str:
    """Which part of a sum a value is; empty where it is none."""
    for addend in () if value is None else addends(value):
        for hole, region in addend.parts:
            what = proof.lifter.algebra.terms.label(hole)
            kind = what.kind if isinstance(what, Fold) else "guarded tensor"
            line = _home(proof, hole)
            at = f" of {line}" if line else ""
            return f"the {kind}{at} over {_ranges(region)} on rank {rank}{_wanted(proof, hole)}"
    return ""


def _wanted(proof: Proof, hole: int) -> str:
    """The range that the sequential program takes of a fold."""
    terms = proof.lifter.algebra.terms
    for term in proof.lifter.algebra.known:
        if isinstance(terms.label(term), Ranged) and terms.children(term)[0] == hole:
            return f", where the sequential program takes {_ranges(terms.region(term))}"
    return ""


def _ranges(region: Region) -> str:
    """``0..4``, or ``2 times 0..4 and 4..8``."""
    told: list[str] = []
    for box, coefficient in region[:_MOST_BOXES]:
        times = "" if coefficient == 1 else f"{coefficient} times "
        told.append(times + " x ".join(f"{'-inf' if a is None else a}..{'inf' if b is None else b}" for a, b in box))
    more = f" and {len(region) - _MOST_BOXES} more" if len(region) > _MOST_BOXES else ""
    return (" and ".join(told) or "nothing") + more


def _stopped(proof: Proof, lifted: Lifted, node: Node, where: Where) -> str:
    """What a law said when it gave up."""
    values = [_value(proof, lifted, p) for p in node.operands]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or isinstance(node.op, ops.Collective | ops.Input):
        return ""
    types = [lifted.graph.nodes[p].type for p in node.operands]
    try:
        apply_law(proof.lifter.algebra, node.op, known, types, node.type)
    except NotAView as error:
        reason = str(error)
        said = "there is none" if reason == node.op.name else f"it needs what these operands do not have: {reason}"
        return f"the law of {node.op.name} did not fire on rank {where.rank}: {said}"
    return ""


def _head(content: Content | Named) -> tuple[object, ...]:
    """What a term is, but for where it reads its operands."""
    fields = (getattr(content, name) for name in content.__dataclass_fields__ if name not in ("accesses", "axes"))
    return type(content), *fields


def _nearest(proof: Proof, lifted: Lifted, where: Where) -> str:
    """The tensor of the sequential program that is most like the one that nobody there computes."""
    assert where.distributed is not None
    value, node = _value(proof, lifted, where.distributed), lifted.graph.nodes[where.distributed]
    strange = next(_strange(proof, () if value is None else tuple(addends(value))), None)
    if strange is None:
        return _known(proof, node, () if value is None else tuple(addends(value)))
    terms = proof.lifter.algebra.terms
    head, own = _head(terms.label(strange)), terms.children(strange)
    best: tuple[int, int, int] | None = None
    for position, number in enumerate(proof.sequential.values):
        for addend in addends(proof.lifter.values[number]):
            if _head(terms.label(addend.term)) == head and len(terms.children(addend.term)) == len(own):
                shared = sum(a == b for a, b in zip(terms.children(addend.term), own, strict=True))
                if best is None or shared > best[0]:
                    best = shared, position, addend.term
    kind = f"the law of {node.op.name} fired, and gives a tensor that the sequential program does not have"
    if best is None:
        return f"{kind}, nor one like it"
    line = proof.sequential.graph.nodes[best[1]].span
    pairs = zip(terms.children(best[2]), own, strict=True)
    differing = next(((a, b) for a, b in pairs if a != b), None)
    if differing is None:
        return f"{kind}: the nearest one, at {line}, reads other elements of the same operands"
    wanted, held = (_home(proof, term) or _inputs(proof, term) for term in differing)
    return f"{kind}: the nearest one, at {line}, reads {wanted} where this reads {held}"


def _known(proof: Proof, node: Node, found: Sequence[Addend]) -> str:
    """A tensor that the sequential program has, where another one belongs."""
    if not found:
        return ""
    told: list[str] = []
    for addend in found[:_MOST_BOXES]:
        times = "" if addend.coefficient == 1 else f"{float(addend.coefficient):g} times "
        told.append(times + (_home(proof, addend.term) or _inputs(proof, addend.term)))
    more = f" and {len(found) - _MOST_BOXES} more" if len(found) > _MOST_BOXES else ""
    tensors = " and ".join(told) + more
    return f"the law of {node.op.name} fired and gives what the sequential program has elsewhere: {tensors}"


def _strange(proof: Proof, found: Sequence[Addend]) -> Iterator[int]:
    horizon = proof.lifter.algebra.horizon
    return (addend.term for addend in found if addend.term >= horizon)


def _home(proof: Proof, term: int) -> str:
    """The sequential node that first computes a term, or the fold under it."""
    terms = proof.lifter.algebra.terms
    for position, number in enumerate(proof.sequential.values):
        for addend in addends(proof.lifter.values[number]):
            closed = isinstance(terms.label(addend.term), Ranged) and terms.children(addend.term)[0] == term
            if addend.term == term or closed:
                node = proof.sequential.graph.nodes[position]
                return f"input {node.op.label}" if isinstance(node.op, ops.Input) else f"{node.op.name} at {node.span}"
    return ""


def _inputs(proof: Proof, term: int) -> str:
    names = sorted(proof.lifter.algebra.terms.inputs(term))
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"something made of {', '.join(names[:2])}{more}" if names else "a constant"
