"""The order of operands where any order means the same: by term, by the variables that are read, and by offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from rewright.claims.language import Access
from rewright.ir.dims import Dim, SizeExpr

_Operand = tuple[int, Access]


def in_order(operands: Sequence[_Operand]) -> list[_Operand]:
    """Operands in the order of their terms; reads of one term are ordered by what they read."""
    distinct = len({term for term, _ in operands}) == len(operands)
    return sorted(operands, key=itemgetter(0) if distinct else operand_key)


def operand_key(operand: _Operand) -> tuple[object, ...]:
    """A deterministic order; offsets count last, so that all ranks order their operands alike."""
    term, access = operand
    if any(isinstance(n, SizeExpr) for low, strides in access for n in (low, *(s for _, s in strides))):
        return term, [(tuple((v, _in_order(s)) for v, s in strides), _in_order(low)) for low, strides in access]
    return term, [(strides, low) for low, strides in access]


def _in_order(size: Dim) -> int | _Symbolic:
    return _Symbolic(str(size)) if isinstance(size, SizeExpr) else size


@dataclass(frozen=True, slots=True)
class _Symbolic:
    """A size with symbols, which comes after all numbers."""

    text: str

    def __lt__(self, other: object) -> bool:
        return isinstance(other, _Symbolic) and self.text < other.text

    def __gt__(self, other: object) -> bool:
        return not isinstance(other, _Symbolic) or self.text > other.text
