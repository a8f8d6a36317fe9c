"""Units of exponents: the number that a difference from a maximum is a multiple of.

``s - m`` with ``s = x c`` and m the maximum of s is ``(x - m / c) c``. The left side is rounded at the size of s, where
the right one has the exact difference of two numbers that are near where it matters, so that logits in the thousands
lose no more digits than small ones. A number that is a power of two rounds nothing on either side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from rewright.ir.types import DType
from rewright.optimize.online.derive import addends
from rewright.optimize.scalars.constants import closed_value
from rewright.optimize.scalars.expressions import Expression, Table, walk

_NARROW = (DType.F16, DType.BF16)


def unit(table: Table, exponent: Expression, made: frozenset[int]) -> Expression | None:
    """The positive number that everything that varies in an exponent is multiplied by; None without one of use.

    ``made`` are the tensors that kernels store, among which are statistics of rows. Exponents of 16 bits always have
    one, be it 1, so that no number goes inside of their difference.
    """
    found: dict[int, Expression] = {}
    extrema = 0
    for term, _ in addends(exponent):
        while term.op.startswith("convert_") and term.arguments[0].dtype.is_float:
            term = term.arguments[0]
        if term.op == "load" and term.tensor in made and term.free < exponent.free:
            extrema += 1
            continue
        if term.bound is not None and term.bound.kind in ("maximum", "minimum"):
            extrema += 1
            term = term.arguments[0]
        for factor in _factors(table, term):
            number = factor if factor is not None else table.constant(1.0, exponent.dtype)
            found[number.number] = number
    if not extrema or not found:
        return None
    scale = next(iter(found.values())) if len(found) == 1 else table.constant(1.0, exponent.dtype)
    value = closed_value(scale)
    if value is None or not 0 < value < math.inf:
        return None
    if math.frexp(value)[0] != 0.5:
        return scale
    return table.constant(1.0, exponent.dtype) if any(x.dtype in _NARROW for x in walk(exponent)) else None


def _factors(table: Table, e: Expression) -> Iterator[Expression | None]:
    """The number that each part of a value has as its last factor; None for a part that has none."""
    if closed_value(e) is not None:
        return
    if e.op.startswith("convert_"):
        yield from _factors(table, e.arguments[0])
    elif e.op == "select":
        for part in e.arguments[1:]:
            yield from _factors(table, part)
    elif e.op in ("add", "subtract") and any(_is_choice(a) for a in e.arguments):
        for part in e.arguments:
            if not _is_choice(part):
                yield from _factors(table, part)
    elif e.op in ("multiply", "divide") and closed_value(e.arguments[1]) is not None:
        number = e.arguments[1]
        yield number if e.op == "multiply" else table.apply("divide", table.constant(1.0, number.dtype), number)
    else:
        yield None


def _is_choice(e: Expression) -> bool:
    """Whether a value is one of several numbers, as a mask that is added is."""
    if e.op == "select":
        return all(map(_is_choice, e.arguments[1:]))
    return closed_value(e) is not None or (e.op.startswith("convert_") and _is_choice(e.arguments[0]))
