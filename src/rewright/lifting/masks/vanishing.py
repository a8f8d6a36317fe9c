"""Parts of a fold that certainly add nothing where it is read, whatever the sizes are: what a mask rules out.

Under a causal mask the queries of a prefix have the same sums over their own keys as over all keys of the sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from fractions import Fraction

from rewright.claims.language import Access, Add, Apply, Fold, applies
from rewright.lifting.masks.positions import Ranges, boxes, decide, is_lowest, ranges_of
from rewright.lifting.recognition.signs import is_finite
from rewright.lifting.terms import regions
from rewright.lifting.terms.regions import Region, is_set
from rewright.lifting.terms.store import Operand, Terms
from rewright.lifting.terms.trace import look

_DEPTH = 12
_IsNeutral = Callable[[Terms, Operand, Ranges, int], bool]


def widen_region(terms: Terms, hole: int, access: Access, region: Region, known: Container[int]) -> Region | None:
    """A region that the sequential program folds over and that is this one but for what adds nothing; else None."""
    label, ranges = terms.label(hole), ranges_of(terms.window)
    neutral = _NEUTRAL.get(label.kind) if isinstance(label, Fold) else None
    if neutral is None or ranges is None:
        return None
    for closed in terms.closings.get(hole, ()):
        if closed in known:
            found = look(terms, lambda closed=closed: _wider(terms, (closed, hole, access), region, ranges, neutral))
            if found is not None:
                return found
    return None


def _wider(
    terms: Terms, folds: tuple[int, int, Access], region: Region, ranges: Ranges, neutral: _IsNeutral
) -> Region | None:
    """The region of a closed fold, if what it has more or less than another one adds nothing."""
    closed, hole, access = folds
    wanted = terms.region(closed)
    try:
        difference = regions.add([wanted, regions.scale(region, Fraction(-1))])
    except regions.NotAView:  # symbols leave open which is larger
        return None
    body = terms.children(hole)[0]
    found = list(boxes(terms, hole, access, difference, ranges))
    adds_nothing = len(found) == len(difference) and all(neutral(terms, (body, at), own, _DEPTH) for at, own in found)
    return wanted if adds_nothing else None


def _is_zero(terms: Terms, operand: Operand, ranges: Ranges, depth: int) -> bool:
    """Whether a number is zero for all values of its variables, whatever the inputs are."""
    label, masked = terms.label(operand[0]), terms.mask(operand)
    if depth == 0:
        return False
    if masked is not None:
        test, body, region = masked
        if is_set(region) and decide(terms, test, region, ranges) is False:
            return is_finite(terms, body, ranges)
        return _is_zero(terms, body, ranges, depth - 1)
    children = terms.operands(operand) if isinstance(label, Apply | Add) else []
    if applies(label, "exponential"):
        return _is_lowest(terms, children[0], ranges, depth - 1)
    if applies(label, "multiply"):
        zeros = [_is_zero(terms, child, ranges, depth - 1) for child in children]
        rest = (child for child, zero in zip(children, zeros, strict=True) if not zero)
        return any(zeros) and all(is_finite(terms, child, ranges) for child in rest)
    if isinstance(label, Add) or applies(label, "identity"):
        return bool(children) and all(_is_zero(terms, child, ranges, depth - 1) for child in children)
    return False


def _is_lowest(terms: Terms, operand: Operand, ranges: Ranges, depth: int) -> bool:
    """Whether a number is minus infinity for all values of its variables."""
    label, masked = terms.label(operand[0]), terms.mask(operand)
    if depth == 0:
        return False
    if masked is not None:
        test, body, region = masked
        holds = is_set(region) and decide(terms, test, region, ranges) is True
        return holds and _is_lowest(terms, body, ranges, depth - 1)
    if applies(label, "identity"):
        return _is_lowest(terms, terms.operands(operand)[0], ranges, depth - 1)
    if isinstance(label, Add):
        addends = terms.expand(*operand)
        lowest = [c > 0 and _is_lowest(terms, one, ranges, depth - 1) for c, one in addends]
        rest = (one for (_, one), low in zip(addends, lowest, strict=True) if not low)
        return any(lowest) and all(_is_no_infinity(terms, one, ranges) for one in rest)
    return is_lowest(terms, operand[0])


def _is_no_infinity(terms: Terms, operand: Operand, ranges: Ranges) -> bool:
    """Whether a number is finite, an infinity under a mask that holds nowhere included."""
    masked = terms.mask(operand)
    if masked is not None and is_set(masked[2]) and decide(terms, masked[0], masked[2], ranges) is False:
        return True
    return is_finite(terms, operand, ranges)


_NEUTRAL: dict[str, _IsNeutral] = {"sum": _is_zero, "maximum": _is_lowest}
"""By fold how to tell what adds nothing to it."""
