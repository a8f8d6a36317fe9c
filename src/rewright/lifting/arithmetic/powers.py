"""Powers, roots and absolute values; roots of numbers are roots of primes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import isqrt

from rewright import ops
from rewright.claims.language import View
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.lifting.arithmetic.functions import function
from rewright.lifting.arithmetic.products import multiply
from rewright.lifting.arithmetic.rational import reciprocal
from rewright.lifting.arithmetic.roots import absolute, root_of_number
from rewright.lifting.terms.algebra import Algebra


def _reciprocal_square_root(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    return reciprocal(algebra, _square_root(algebra, op, views, types))


def _square_root(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """The root; that of a number is one of primes, or a number, as of the norm of a rank that has no elements."""
    number = algebra.as_constant(views[0])
    if number is not None and number >= 0:
        return algebra.settle(views[0].dims, [root_of_number(algebra.terms, number)])
    leading = views[0].addends[0].coefficient
    root = _exact_root(leading)
    if leading == 1 or root is None:
        return function(algebra, "sqrt", views[:1])
    rest = algebra.add(views[:1], [1 / leading])
    return algebra.add([function(algebra, "sqrt", [rest])], [root])


def _exact_root(number: Fraction) -> Fraction | None:
    """The root of the square of a rational number, such as a scale of a loss in a norm of gradients."""
    if number <= 0:
        return None
    root = Fraction(isqrt(number.numerator), isqrt(number.denominator))
    return root if root * root == number else None


def _power(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    exponent = algebra.as_constant(views[1])
    base = views[0]
    if not types[0].dtype.is_float:
        return function(algebra, "integer_power", views)
    if exponent is None:
        return function(algebra, op.name, views)
    if exponent.denominator == 1 and 1 <= exponent <= 4:
        result = base
        for _ in range(int(exponent) - 1):
            result = multiply(algebra, result, base)
        return result
    if exponent == Fraction(1, 2):
        return _square_root(algebra, op, views, types)
    if exponent == Fraction(-1, 2):
        return reciprocal(algebra, _square_root(algebra, op, views, types))
    if exponent == -1:
        return reciprocal(algebra, base)
    return function(algebra, op.name, views)


def _absolute(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    return absolute(algebra.terms, views[0]) or function(algebra, "abs", views)


LAWS: Mapping[type[Operator], Callable[..., View]] = {
    ops.Sqrt: _square_root,
    ops.Rsqrt: _reciprocal_square_root,
    ops.Power: _power,
    ops.Abs: _absolute,
}
