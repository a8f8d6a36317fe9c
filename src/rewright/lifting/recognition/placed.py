"""Terms at known places, written out: a row of a function of rows is the function of that row."""

from __future__ import annotations

from rewright.claims.language import Access, Add, Addend, Apply, View
from rewright.lifting.terms.store import ONE, Operand, Terms
from rewright.lifting.terms.value import Pieces, Value

_DEPTH = 40


def written_out(terms: Terms, value: Value) -> Value:
    """The value with every function of a tensor read at known places as that function of what it reads there."""
    if isinstance(value, Pieces):
        return Pieces(value.axis, value.outer, tuple(written_out(terms, part) for part in value.parts))
    addends: list[Addend] = []
    for a in value.addends:
        if a.parts:
            addends.append(a)
            continue
        there = at_place(terms, (a.term, a.access))
        addends.append(Addend(a.coefficient * there.coefficient, there.term, there.access))
    return View(value.dims, tuple(addends))


def at_place(terms: Terms, operand: Operand, depth: int = _DEPTH) -> Addend:
    """An operand that is read at known places, as a function of what it reads there."""
    term, access = operand
    label = terms.label(term)
    if depth == 0 or not _is_fixed(access) or not isinstance(label, Apply | Add):
        return Addend(ONE, term, access)
    return terms.remake(term, [at_place(terms, child, depth - 1) for child in terms.operands(operand)])


def _is_fixed(access: Access) -> bool:
    """Whether some index is a number."""
    return any(not strides for _, strides in access)
