"""Variables of what a term reads, shifted and renumbered so that equal terms have one form."""

from __future__ import annotations

from rewright.claims.index import Access, Index, rename
from rewright.ir.dims import Dim, SizeExpr, divide


def split_constant(constant: Dim, stride: Dim) -> tuple[Dim, Dim]:
    """Quotient and rest of a constant by a stride; (0, constant) where symbols leave it open."""
    if isinstance(constant, int) and isinstance(stride, int):
        return divmod(constant, stride)
    exact = divide(constant, stride)
    return (exact, 0) if exact is not None else (0, constant)


def magnitude(stride: Dim) -> tuple[int, int, str]:
    """A sort key that puts larger strides later; symbolic ones above all numbers."""
    if isinstance(stride, SizeExpr):
        return (1, max(len(m) for m, _ in stride.terms), str(stride))
    return (0, abs(stride), str(stride))


class Frame:
    """Shifts variables so that the first index that reads each of them has offset zero."""

    def __init__(self) -> None:
        self.shift: dict[int, Dim] = {}
        self._axes: dict[int, int] = {}

    def place(self, index: Index) -> Index:
        """The index in the frame; new variables are placed by it, larger strides first."""
        constant, terms = index
        if not terms:
            return index
        if len(terms) == 1 and terms[0][1] == 1 and terms[0][0] >= 0:
            var = terms[0][0]
            if var not in self.shift:
                self._shift(var, constant)
                return 0, ((self._axes[var], 1),)
            return constant - self.shift[var], ((self._axes[var], 1),)
        fresh: list[tuple[int, Dim]] = []
        bound = any(v < 0 for v, _ in terms)
        for var, stride in terms:
            if var in self.shift:
                constant = constant - stride * self.shift[var]
            elif var >= 0:
                fresh.append((var, stride))
        fresh.sort(key=lambda item: magnitude(item[1]), reverse=True)
        for var, stride in fresh:
            quotient, constant = (0, constant) if bound else split_constant(constant, stride)
            self._shift(var, quotient)
        return rename((constant, terms), {v: self._axes[v] if v >= 0 else v for v, _ in terms})

    def _shift(self, var: int, by: Dim) -> None:
        """Place a variable on the next axis."""
        self._axes[var] = len(self._axes)
        self.shift[var] = by

    def access(self) -> Access:
        """Where the original variables read the framed term."""
        return tuple((shift, ((var, 1),)) for var, shift in self.shift.items())
