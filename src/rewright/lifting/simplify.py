"""What a guard knows about its body: inner guards on the same value are decided."""

from __future__ import annotations

from fractions import Fraction

from rewright.lifting import regions
from rewright.lifting.index import Access, Index, build, compose
from rewright.lifting.regions import Region
from rewright.lifting.terms import ONE, Operand, Terms
from rewright.lifting.value import Addend

_DEPTH = 10
_TRANSPARENT = ("apply", "add", "take", "ranged")


def simplify(terms: Terms, operand: Operand, value: Operand, region: Region, depth: int = _DEPTH) -> Addend:
    """The operand where the integer ``value`` lies in ``region``; equal to it there, and nowhere else in general."""
    term, access = operand
    if depth == 0 or value[0] not in terms.inside[term]:
        return Addend(ONE, term, access)
    label, children = terms.label(term), terms.children(term)
    if label[0] not in _TRANSPARENT:
        return Addend(ONE, term, access)
    if label[0] == "ranged":
        return _decide(terms, operand, value, region, depth)
    accesses = label[-1]
    assert isinstance(accesses, tuple)
    inner = [
        simplify(terms, (child, compose(a, access)), value, region, depth - 1)
        for child, a in zip(children, accesses, strict=True)
    ]
    if label[0] == "add":
        coefficients = label[1]
        assert isinstance(coefficients, tuple)
        total = terms.add(
            [(c * a.coefficient, a.term, a.access) for c, a in zip(coefficients, inner, strict=True)]
        )
        return total or Addend(Fraction(0), terms.one, ())
    if label[0] == "take":
        return take(terms, inner[0], inner[1:])
    if label[1] == "multiply":
        scale = Fraction(1)
        for a in inner:
            scale *= a.coefficient
        return Addend(scale, *terms.multiply([(a.term, a.access) for a in inner]))
    return Addend(ONE, *terms.apply(str(label[1]), [terms.freeze(a) for a in inner]))


def _decide(terms: Terms, operand: Operand, value: Operand, region: Region, depth: int) -> Addend:
    """An inner guard that tests the same value is its body or zero where the outer set settles it."""
    term, access = operand
    hole = terms.children(term)[0]
    label = terms.label(hole)
    if label[0] != "guard":
        return Addend(ONE, term, access)
    inner_value, body = terms.children(hole)
    accesses, own = label[1], terms.label(term)[1]
    assert isinstance(accesses, tuple) and isinstance(own, tuple)
    if (inner_value, compose(accesses[0], access)) != value:
        return Addend(ONE, term, access)
    common = regions.intersect(own, region)
    if not common:
        return Addend(Fraction(0), terms.one, ())
    if common == region:
        return simplify(terms, (body, compose(accesses[1], access)), value, region, depth - 1)
    return Addend(ONE, term, access)


def take(terms: Terms, data: Addend, indices: list[Addend]) -> Addend:
    """Read ``data`` where variable ``-k`` is the value of index k; constants and affine indices are folded in."""
    access: Access = data.access
    operands: list[Operand] = []
    for number, index in enumerate(indices, start=1):
        constant, scale, rest = _affine(terms, index)
        if rest is None:
            replacement: Index = (constant, ())
        elif rest[0] == terms.index:
            low, strides = rest[1][0]
            replacement = (constant + scale * low, tuple((v, scale * s) for v, s in strides))
        else:
            operands.append(rest)
            replacement = (constant, ((-1000 - len(operands), scale),))
        access = tuple(_replace(i, -number, replacement) for i in access)
    for number in range(1, len(operands) + 1):
        access = tuple(_replace(i, -1000 - number, (0, ((-number, 1),))) for i in access)
    if not operands:
        return Addend(data.coefficient, data.term, access)
    term, outer = terms.take([(data.term, access), *operands])
    return Addend(data.coefficient, term, outer, data.parts)


def _replace(index: Index, var: int, replacement: Index) -> Index:
    """The index with one variable replaced."""
    constant, terms = index
    strides = dict(terms)
    factor = strides.pop(var, 0)
    if factor == 0:
        return index
    for other, stride in replacement[1]:
        strides[other] = strides.get(other, 0) + factor * stride
    return build(constant + factor * replacement[0], strides)


def _affine(terms: Terms, index: Addend) -> tuple[int, int, Operand | None]:
    """An index value as ``constant + scale * term`` with whole numbers."""
    constant = Fraction(0)
    rest: list[tuple[Fraction, int, Access]] = []
    for factor, (term, access) in terms.summands(index.term, index.access):
        if term == terms.one:
            constant += factor * index.coefficient
        else:
            rest.append((factor * index.coefficient, term, access))
    total = terms.add(rest)
    if total is None:
        return int(constant), 0, None
    if constant.denominator == 1 and total.coefficient.denominator == 1:
        return int(constant), int(total.coefficient), (total.term, total.access)
    return 0, 1, terms.freeze(index)
