"""Casts between dtypes: which ones keep every number, and what becomes of the others."""

from __future__ import annotations

from rewright.ir.types import DType
from rewright.ops.facts import DIGITS
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import Guard, Value, at_least
from rewright.terms.normal.polynomials.atoms import Element, Function, Polynomial, TooHard, polynomial


def truncate(value: Value) -> Value:
    """A float as an integer, which whole numbers are already; raises TooHard for what is no number."""
    if not isinstance(value, Polynomial):
        raise TooHard(f"{value} as an integer")
    return value if value.integer else polynomial(Function("truncate", (value,), True))


def holds(target: DType, source: DType) -> bool:
    """Whether every number of an integer dtype is one of another dtype; sums of floats round in the dtype they have."""
    if source is DType.BOOL:
        return True
    if source.is_float:
        return False
    bits = bits_of(source) - (not source.is_unsigned)
    if target.is_float:
        return bits <= DIGITS[target]
    return bits <= bits_of(target) - (not target.is_unsigned) and (source.is_unsigned or not target.is_unsigned)


_NARROW = 16


def declare_bounds(context: Context, tensor: str, dtype: DType) -> None:
    """Tell a context what the elements of an integer tensor may be, where its type has few numbers or no negative."""
    bits = bits_of(dtype)
    if bits > _NARROW and not dtype.is_unsigned:
        return
    low, high = (0, 2**bits) if dtype.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    limit_elements(context, tensor, low, high - 1)


def limit_elements(context: Context, tensor: str, low: int, high: int) -> None:
    """Tell a context the least and the greatest number that any element of a tensor is."""
    if tensor in context.bounded:
        return
    context.bounded.add(tensor)

    def limits(element: Element) -> list[tuple[Guard | bool, bool]]:
        value = polynomial(element)
        return [(at_least(value, low), True), (at_least(polynomial(high), value), True)]

    context.universal.setdefault(tensor, []).append(limits)


def bits_of(dtype: DType) -> int:
    """The number of bits of an integer type."""
    return int(dtype.value.lstrip("ui"))
