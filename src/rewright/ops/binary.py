"""Elementwise operators of two operands of one dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewright.ir.types import TensorType
from rewright.ops.counts import Counts
from rewright.ops.elementwise import Elementwise, Homogeneous, Limiting, Linear
from rewright.ops.facts import Facts
from rewright.ops.functions import arithmetic, logic, order, powers, special, transcendental


class Binary(Elementwise):
    """Two operands; the result has their type."""

    __slots__ = ()


class Monoid(Binary):
    """An associative and commutative function with a neutral element: what reductions are made of."""

    __slots__ = ()


class Additive(Binary, Linear):
    """The sum or the difference of two operands."""

    __slots__ = ()


class Scaling(Binary):
    """A float in operand 0 is scaled by operand 1, or by one over it."""

    __slots__ = ()


class Extremum(Monoid, Limiting):
    """The larger or the smaller one of two operands."""

    __slots__ = ()


class Bitwise(Monoid):
    """A function of truth values, or of the bits of integers one by one."""

    __slots__ = ()

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        counts.digits(result, operands)


@dataclass(frozen=True, slots=True)
class Add(Monoid, Additive):
    """``x + y``."""

    scalar = arithmetic.ADD

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        return tuple(k for k in (0, 1) if operands[1 - k].is_finite)


@dataclass(frozen=True, slots=True)
class Subtract(Additive):
    """``x - y``."""

    scalar = arithmetic.SUBTRACT
    falls_with = (1,)

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        return (0,) if operands[1].is_finite else ()


@dataclass(frozen=True, slots=True)
class Multiply(Monoid, Scaling):
    """``x * y``."""

    scalar = arithmetic.MULTIPLY

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        return tuple(k for k in (0, 1) if operands[1 - k].is_finite and operands[1 - k].is_positive)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        counts.multiply(result, operands)


@dataclass(frozen=True, slots=True)
class Divide(Scaling):
    """``x / y``; integers are divided towards zero.

    An integer divided by zero has all bits set, as XLA has it; PyTorch raises there.
    """

    scalar = arithmetic.DIVIDE
    integer = arithmetic.DIVIDE_INTEGER

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        return (0,) if operands[1].is_finite and operands[1].is_positive else ()

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        is_zero = operands[1].zero and not result.dtype.is_float
        return self.needs if is_zero else super(Divide, self).condition(operands, result, found)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        counts.divide(result, operands)


@dataclass(frozen=True, slots=True)
class Remainder(Binary, Homogeneous):
    """What is left of x after dividing by y towards zero; it has the sign of x.

    Of an integer and zero it is x, as XLA has it; PyTorch raises there.
    """

    scalar = arithmetic.REMAINDER

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        is_zero = operands[1].zero and not result.dtype.is_float
        return self.needs if is_zero else super(Remainder, self).condition(operands, result, found)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        counts.divide(result, operands)
        counts.same([result, *operands])


@dataclass(frozen=True, slots=True)
class Power(Binary):
    """x to the power y; an integer to a negative power is truncated towards zero."""

    scalar = powers.POWER
    integer = powers.POWER_INTEGER


@dataclass(frozen=True, slots=True)
class Maximum(Extremum):
    """The larger one; NaN where either is NaN."""

    scalar = order.MAXIMUM


@dataclass(frozen=True, slots=True)
class Minimum(Extremum):
    """The smaller one; NaN where either is NaN."""

    scalar = order.MINIMUM


@dataclass(frozen=True, slots=True)
class And(Bitwise):
    """Conjunction: logical for booleans, bitwise for integers."""

    scalar = logic.AND


@dataclass(frozen=True, slots=True)
class Or(Bitwise):
    """Disjunction: logical for booleans, bitwise for integers."""

    scalar = logic.OR


@dataclass(frozen=True, slots=True)
class Xor(Bitwise):
    """Exclusive or: logical for booleans, bitwise for integers."""

    scalar = logic.XOR


@dataclass(frozen=True, slots=True)
class Atan2(Binary):
    """The angle of the point (y, x); operands (x, y), the first one opposite of the angle."""

    scalar = transcendental.ATAN2


@dataclass(frozen=True, slots=True)
class Zeta(Binary):
    """Hurwitz's zeta function: the sum of ``(y + k)^-x`` over k from 0 on."""

    scalar = special.ZETA
