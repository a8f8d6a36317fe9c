"""The scalar functions of denotations on guarded values: what they are over the reals, and where they are defined.

A function that has no algebra here is uninterpreted: equal arguments give equal values, and nothing else is known.
With a grade below ``real`` the arithmetic that rounds in floating point is uninterpreted too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Literal

from rewright.ops.functions import FUNCTIONS
from rewright.ops.functions.record import Sort, Trait
from rewright.terms.evaluate import Evaluator
from rewright.terms.normal.arithmetic.cases import branch, each, finite, truth
from rewright.terms.normal.arithmetic.division import floor_quotient, floor_remainder
from rewright.terms.normal.denoting.needs import Kind
from rewright.terms.normal.denoting.sorts import of_sort
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import (
    MINUS_INFINITY,
    NOT_A_NUMBER,
    PLUS_INFINITY,
    Choice,
    Guard,
    Infinite,
    Leaf,
    Value,
    at_least,
    at_least_zero,
    constant,
    is_zero,
)
from rewright.terms.normal.facts.signs import is_nonnegative, is_positive
from rewright.terms.normal.folds.maxima import larger, negative
from rewright.terms.normal.folds.presence import count_present, is_present, may_be_infinite, of_nothing, vanishes
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Atom,
    Base,
    Curve,
    Exponential,
    Function,
    Monomial,
    Number,
    Polynomial,
    Symbol,
    TooHard,
    polynomial,
    sorted_monomial,
)
from rewright.terms.normal.polynomials.curves import apply_uninterpreted
from rewright.terms.normal.polynomials.powers import exponential, logarithm, power
from rewright.terms.normal.polynomials.ranged import PrefixSum

Grade = Literal["move", "assoc", "real"]
Require = Callable[[Kind, Polynomial, str], None]

TOTAL = "?total "
"""Prefix of functions that are known to be total and nothing else: they have a value for NaN too."""
_LINEAR = frozenset({"add", "subtract"})
_BySigns = Callable[[Polynomial, Polynomial, int, int], Polynomial]


class Functions:
    """The functions under the facts of a context; ``require`` is told what has to hold for a value to exist.

    ``has_poles``: at the edge of its domain a logarithm is minus infinity; else it is required not to be there.
    """

    def __init__(self, context: Context, grade: Grade, require: Require, has_poles: bool = True) -> None:
        self.context = context
        self.grade = grade
        self.require = require
        self._has_poles = has_poles

    def apply(self, name: str, arguments: tuple[Value, ...], is_float: bool) -> Value:
        """The value of a function; raises TooHard for infinities that it has no value for."""
        if is_float and self._is_uninterpreted(name):
            return each(self.context, self._rounded(name), *arguments)
        if name == "maximum":
            return larger(self.context, *arguments)
        if name == "minimum":
            return negative(larger(self.context, negative(arguments[0]), negative(arguments[1])))
        if name == "clamp":
            low, value, high = arguments
            return self.apply("minimum", (self.apply("maximum", (value, low), is_float), high), is_float)

        def leaf(*leaves: Leaf) -> Value:
            return self._leaf(name, leaves, is_float)

        return each(self.context, leaf, *arguments)

    def _rounded(self, name: str) -> Callable[..., Value]:
        def leaf(*leaves: Leaf) -> Value:
            if not all(isinstance(one, Polynomial) for one in leaves):
                # Nothing is rounded at an infinity.
                return self._leaf(name, leaves, True)
            # Under another name, as over the reals more is known of some functions than that.
            return self.opaque(f"rounded {name}", leaves)

        return leaf

    def _is_uninterpreted(self, name: str) -> bool:
        if self.grade == "real" or _has(name, "exact"):
            return False
        return not (self.grade == "assoc" and name in _LINEAR)

    def opaque(self, name: str, leaves: tuple[Value, ...], integer: bool = False, sort: Sort = "finite") -> Value:
        """An uninterpreted function; those that commute in floating point have their arguments sorted.

        Of numbers it is of a sort, and of an infinity it may be anything, unless it is an integer.
        """
        found = [self._argument(leaf) for leaf in leaves]
        if _has(name.removeprefix("rounded "), "commutative"):
            found.sort(key=lambda p: p.key)
        if not integer and not all(isinstance(leaf, Polynomial) for leaf in leaves):
            sort = "partial"
        value = apply_uninterpreted(name, tuple(found), integer, _CURVES.get(name))
        atom = value.atom() if sort != "finite" else None
        return value if atom is None else of_sort(self.context, atom, sort)

    def _argument(self, leaf: Value) -> Polynomial:
        if isinstance(leaf, Polynomial):
            return leaf
        return polynomial(Function(f"={leaf}", ()))

    def _leaf(self, name: str, leaves: tuple[Value, ...], is_float: bool) -> Value:
        if name.startswith(TOTAL):
            return apply_uninterpreted(name, tuple(map(self._argument, leaves)))
        if NOT_A_NUMBER in leaves:
            return self._of_no_number(name, is_float)
        if name.startswith("compare_") and len(leaves) == 2:
            found = self._compared_with_infinity(name.removeprefix("compare_"), *leaves)
            if found is not None:
                return found
        if name not in _OF_INFINITIES and not name.startswith(("compare_", "convert_f", "convert_bf")):
            found = self._by_presence(name, leaves, is_float)
            if found is not None:
                return found
        finite = tuple(leaf for leaf in leaves if isinstance(leaf, Polynomial))
        if len(finite) < len(leaves):
            return self._infinite(name, leaves)
        if name.startswith("compare_"):
            return self._compare(name.removeprefix("compare_"), finite[0], finite[1])
        if name.startswith("?"):
            return self.opaque(name, finite, sort="partial")
        return self.of_numbers(name, finite, is_float)

    def of_numbers(self, name: str, leaves: tuple[Polynomial, ...], is_float: bool) -> Value:
        """By a law of its own, by its definition, or as a name."""
        if name == "remainder" and not is_float:
            return self._remainder(*leaves)
        if name in _RING:
            return _RING[name](*leaves)
        if name in _LAWS:
            return _LAWS[name](self, *leaves)
        record = FUNCTIONS.get(name)
        if record is not None and record.values.definition is not None:
            return Evaluator(_Definitions(self), lambda operand, _: leaves[operand]).scalar(
                record.values.definition, {}
            )
        if record is None or not record.has("opaque"):
            raise TooHard(f"the function {name}")
        if record.has("keeps whole") and leaves[0].integer:
            return leaves[0]
        return self.opaque(name, leaves, record.has("whole"), record.laws.sort)

    def settle(self, leaf: Leaf) -> Value:
        """A value as a choice between a number and an infinity, where it is a maximum that may be one of nothing."""
        atom = may_be_infinite(leaf)
        if atom is None or not isinstance(leaf, Polynomial) or is_present(self.context, atom):
            return leaf
        infinite = of_nothing(leaf)
        return branch(self.context, is_zero(count_present(self.context, atom)), lambda: infinite, lambda: leaf)

    def _by_presence(self, name: str, leaves: tuple[Value, ...], is_float: bool) -> Value | None:
        """A function where a maximum is one of nothing, and where it is not; None where no argument is such a one."""
        for position, leaf in enumerate(leaves):
            found = self.settle(leaf) if isinstance(leaf, (Polynomial, Infinite)) else leaf
            infinite = (*leaves[:position], found.yes if isinstance(found, Choice) else found, *leaves[position + 1 :])
            if isinstance(found, Choice):
                cases = [partial(self._leaf, name, case, is_float) for case in (infinite, leaves)]
                return branch(self.context, found.guard, *cases)
            if found != leaf:  # it is known that nothing is there
                return self._leaf(name, infinite, is_float)
        return None

    def _compared_with_infinity(self, direction: str, left: Value, right: Value) -> Value | None:
        """A maximum of what may be nothing is minus infinity where it is; None for all other comparisons."""
        if isinstance(left, Infinite) and isinstance(right, Polynomial):
            return self._compared_with_infinity(_MIRRORED[direction], right, left)
        atom = may_be_infinite(left)
        if atom is None or not isinstance(right, Infinite):
            return None
        assert isinstance(left, Polynomial)
        sign = -of_nothing(left).sign
        if right.sign == sign:
            return ONE if _COMPARED[direction](-sign, 0) else ZERO
        empty, rest = _COMPARED[direction](0, 0), _COMPARED[direction](sign, 0)
        if empty == rest:
            return ONE if empty else ZERO
        return self._truth(is_zero(count_present(self.context, atom)), empty)

    # --- order

    def _compare(self, direction: str, left: Polynomial, right: Polynomial) -> Value:
        sign = self._sign_of_sum(left - right)
        if sign:
            return ONE if _COMPARED[direction](sign, 0) else ZERO
        if direction in ("EQ", "NE"):
            return self._truth(is_zero(left - right), direction == "EQ")
        if direction in ("LE", "GT"):
            return self._truth(at_least_zero(right - left), direction == "LE")
        return self._truth(at_least_zero(left - right), direction == "GE")

    def _sign_of_sum(self, value: Polynomial) -> int:
        """One or minus one for a sum that has that sign by its form, such as one of exponentials; else zero."""
        if value.integer or not value.terms:
            return 0
        signs = {1 if coefficient > 0 else -1 for coefficient in value.terms.values()}
        if len(signs) > 1 and not any(isinstance(atom, PrefixSum) for atom in value.atoms()):
            return 0
        return next((sign for sign in sorted(signs) if is_positive(self.context, value * sign)), 0)

    def _truth(self, guard: Guard | bool, polarity: bool) -> Value:
        if polarity:
            return truth(self.context, guard)
        return branch(self.context, guard, lambda: ZERO, lambda: ONE)

    def absolute(self, value: Polynomial) -> Value:
        """The value or its negative, by its sign."""
        if is_nonnegative(self.context, value):
            return value
        return branch(self.context, at_least_zero(value), lambda: value, lambda: -value)

    def sign(self, value: Polynomial) -> Value:
        """Minus one, zero or one."""
        return branch(
            self.context,
            is_zero(value),
            lambda: ZERO,
            lambda: branch(self.context, at_least_zero(value), lambda: ONE, lambda: -ONE),
        )

    # --- field

    def divide(self, left: Polynomial, right: Polynomial) -> Value:
        """A quotient; the divisor is not zero."""
        self.require("not zero", right, "divide")
        return left * power(right, -1)

    def power(self, base: Polynomial, exponent: Polynomial) -> Value:
        """A power whose exponent is a number, or else an unknown function."""
        constant = exponent.constant()
        if constant is None:
            # Of numbers it is infinite at zero, and not a number at negative ones, by an exponent that is not known.
            return self.opaque("power", (base, exponent), sort="partial")
        if isinstance(constant, int):
            if constant < 0:
                self.require("not zero", base, "power")
            return power(base, constant)
        self.require("not negative" if constant > 0 else "positive", base, "power")
        return power(base, constant)

    def _root(self, value: Polynomial, exponent: Fraction) -> Value:
        """A square root or its inverse: positive factors leave, and the root of a square is an absolute value."""
        factors = self._nonnegative_factors(value)
        if factors:
            return each(self.context, _product, *(self._root(factor, exponent) for factor in factors))
        outside, rest = self._positive_part(value)
        factor = ONE
        for atom, inner in outside:
            factor = factor * power(polynomial(atom), inner * exponent)
        square = _square_root(rest)
        if square is None:
            return factor * power(rest, exponent)
        sign = 1 if exponent > 0 else -1

        def signed(leaf: Leaf) -> Value:
            return factor * power(finite(leaf), sign)

        return each(self.context, signed, self.absolute(square))

    def _nonnegative_factors(self, value: Polynomial) -> list[Polynomial]:
        """The factors of a product of several, where none is negative, so that each has a root; else nothing."""
        single = value.single()
        if single is None or len(single[0]) < 2 or single[1] < 0:
            return []
        factors = [power(polynomial(atom), exponent) for atom, exponent in single[0]]
        if not all(is_nonnegative(self.context, factor) for factor in factors):
            return []
        return factors if single[1] == 1 else [*factors, polynomial(single[1])]

    def _positive_part(self, value: Polynomial) -> tuple[Monomial, Polynomial]:
        """Sizes and exponentials that are factors, with what is left."""
        least: dict[Atom, Number] = {}
        for atom in {a.key: a for a in value.atoms()}.values():
            if isinstance(atom, Exponential) or (isinstance(atom, Symbol) and self.context.is_size(atom.name)):
                least[atom] = min(dict(monomial).get(atom, 0) for monomial in value.terms)
        outside = sorted_monomial((a, e) for a, e in least.items() if e)
        return outside, value * Polynomial({sorted_monomial((a, -e) for a, e in outside): 1}) if outside else value

    # --- functions over the reals

    def sqrt(self, value: Polynomial) -> Value:
        """The square root, of what is not negative."""
        self.require("not negative", value, "sqrt")
        return self._root(value, Fraction(1, 2))

    def rsqrt(self, value: Polynomial) -> Value:
        """One over the square root, of what is positive."""
        self.require("positive", value, "rsqrt")
        return self._root(value, Fraction(-1, 2))

    def log(self, value: Polynomial) -> Value:
        """The natural logarithm, of what is not negative; minus infinity of zero."""
        if is_positive(self.context, value):
            return logarithm(value)
        if not self._has_poles and not vanishes(self.context, value):
            self.require("positive", value, "log")
            return logarithm(value)
        self.require("not negative", value, "log")
        return branch(self.context, is_zero(value), lambda: MINUS_INFINITY, lambda: logarithm(value))

    # --- integers

    def quotient(self, left: Polynomial, right: Polynomial) -> Value:
        """Division of integers towards zero."""
        self.require("not zero", right, "divide")
        return self._by_signs(left, right, lambda a, b, sa, sb: floor_quotient(self.context, a, b) * (sa * sb))

    def _remainder(self, left: Polynomial, right: Polynomial) -> Value:
        """What division towards zero leaves; it has the sign of the dividend."""
        self.require("not zero", right, "remainder")
        return self._by_signs(left, right, lambda a, b, sa, _: floor_remainder(self.context, a, b) * sa)

    def _by_signs(self, left: Polynomial, right: Polynomial, function: _BySigns) -> Value:
        """A function of absolute values and signs; the right one is not zero."""

        def of(value: Polynomial, sign: int) -> Value:
            mine, other = partial(function, value, right, sign, 1), partial(function, value, -right, sign, -1)
            return branch(self.context, at_least(right, 1), mine, other)

        return branch(self.context, at_least_zero(left), lambda: of(left, 1), lambda: of(-left, -1))

    def remainder(self, left: Polynomial, right: Polynomial) -> Value:
        """What is left of a float, as an unknown function; the divisor is not zero."""
        self.require("not zero", right, "remainder")
        return self.opaque("remainder", (left, right))

    # --- infinities

    def _of_no_number(self, name: str, is_float: bool) -> Value:
        """What is not a number stays so, equals nothing and is not finite."""
        if name.startswith("compare_"):
            return ONE if name == "compare_NE" else ZERO
        if name == "is_finite":
            return ZERO
        if is_float and (_has(name, "nan") or name.startswith(("convert_f", "convert_bf"))):
            return NOT_A_NUMBER
        raise TooHard(f"{name} of what is not a number")

    def _infinite(self, name: str, leaves: tuple[Value, ...]) -> Value:
        """What functions are at infinity; two infinities that would cancel have no value."""
        value = leaves[0]
        if name == "is_finite":
            return ZERO
        if name.startswith(("convert_f", "convert_bf")):
            return value
        record = FUNCTIONS.get(name)
        if record is not None and record.curve is not None and isinstance(value, Infinite):
            found = record.curve.at_infinity(value.sign)
            return self.opaque(name, leaves) if found is None else constant(found)
        if len(leaves) == 2:
            return self._infinite_pair(name, leaves[0], leaves[1])
        if name.startswith("?"):
            return self.opaque(name, leaves)
        raise TooHard(f"{name} of an infinity")

    def _infinite_pair(self, name: str, left: Value, right: Value) -> Value:
        if name.startswith("compare_"):
            ranks = [leaf.sign if isinstance(leaf, Infinite) else 0 for leaf in (left, right)]
            if isinstance(left, (Infinite, Polynomial)) and isinstance(right, (Infinite, Polynomial)):
                return ONE if _COMPARED[name.removeprefix("compare_")](ranks[0], ranks[1]) else ZERO
        if name == "subtract":
            name, right = "add", negative(right)
        if name == "add":
            if isinstance(left, Polynomial):
                return right
            if isinstance(right, Polynomial) or left == right:
                return left
            return NOT_A_NUMBER
        if name == "divide" and isinstance(right, Infinite):
            return ZERO if isinstance(left, Polynomial) else NOT_A_NUMBER
        if name in ("multiply", "divide") and isinstance(right, Polynomial) and isinstance(left, Infinite):
            if name == "divide":
                self.require("not zero", right, "divide")
            return self._scale(left, right)
        if name == "multiply" and isinstance(right, Infinite):
            return self._scale(right, left) if isinstance(left, Polynomial) else self._of_both(left, right)
        if name == "power" and isinstance(left, Infinite) and isinstance(right, Polynomial):
            return self._infinite_power(left, right)
        if name.startswith("?"):
            return self.opaque(name, (left, right))
        raise TooHard(f"{name} of {left} and {right}")

    def _of_both(self, left: Value, right: Infinite) -> Value:
        if not isinstance(left, Infinite):
            raise TooHard(f"{left} times {right}")
        return left if right.sign > 0 else negative(left)

    def _infinite_power(self, base: Infinite, exponent: Polynomial) -> Value:
        """An infinity to a power that is a number; libraries do not agree on roots of minus infinity."""
        number = exponent.constant()
        if number == 0:
            return ONE
        if number is None or (base.sign < 0 and not isinstance(number, int)):
            return self.opaque("power", (base, exponent))
        if number < 0:
            return ZERO
        return base if number % 2 else PLUS_INFINITY

    def _scale(self, value: Infinite, factor: Polynomial) -> Value:
        """An infinity times or over a number, by the sign of that."""
        if not factor.terms or vanishes(self.context, factor):
            return NOT_A_NUMBER
        if is_positive(self.context, factor):
            return value
        if is_positive(self.context, -factor):
            return negative(value)
        return branch(
            self.context,
            is_zero(factor),
            lambda: NOT_A_NUMBER,
            lambda: branch(self.context, at_least_zero(factor), lambda: value, lambda: negative(value)),
        )


_OF_INFINITIES = frozenset({"negate", "is_finite"})
"""Functions that have a value at an infinity whatever else is there."""

_MIRRORED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}

_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class _Definitions:
    """Arithmetic on guarded values, in which definitions of functions are evaluated."""

    functions: Functions

    def literal(self, value: float | int | bool) -> Value:
        """A number as a polynomial."""
        return polynomial(Fraction(value))

    def apply(self, function: str, arguments: Sequence[Value]) -> Value:
        """A function of values; a quotient by what is positive needs nothing."""

        def leaf(*leaves: Leaf) -> Value:
            numbers = tuple(map(finite, leaves))
            if function == "divide" and is_positive(self.functions.context, numbers[1]):
                return numbers[0] * power(numbers[1], -1)
            return self.functions.of_numbers(function, numbers, is_float=True)

        return each(self.functions.context, leaf, *arguments)


_CURVES = {
    name: Curve(
        grows=record.curve.slope == "increasing" and record.laws.sort == "finite",
        parity=record.curve.parity,
        at_zero=record.curve.at_zero,
        root=record.curve.root,
    )
    for name, record in FUNCTIONS.items()
    if record.curve is not None
}
"""What is known of functions of one number that are names."""


def _has(name: str, trait: Trait) -> bool:
    """Whether a function is claimed to have a trait."""
    return name in FUNCTIONS and FUNCTIONS[name].has(trait)


def _product(*leaves: Leaf) -> Value:
    return math.prod((finite(leaf) for leaf in leaves), start=ONE)


def _square_root(value: Polynomial) -> Polynomial | None:
    """The square root of a single term, if it is a polynomial and no constant."""
    single = value.single()
    if single is None or not single[0] or single[1] < 0:
        return None
    if not all(isinstance(e, int) and e % 2 == 0 for _, e in single[0]) or any(
        isinstance(a, Base) for a, _ in single[0]
    ):
        return None
    fraction = Fraction(single[1])
    over, under = math.isqrt(fraction.numerator), math.isqrt(fraction.denominator)
    if over * over != fraction.numerator or under * under != fraction.denominator:
        return None
    return Polynomial({tuple((a, int(e) // 2) for a, e in single[0]): 1}) * Fraction(over, under)


def _exponential(_: Functions, value: Polynomial) -> Value:
    return exponential(value)


def _is_finite(functions: Functions, value: Polynomial) -> Value:
    atom = may_be_infinite(value)
    if atom is None:
        return ONE
    return branch(functions.context, is_zero(count_present(functions.context, atom)), lambda: ZERO, lambda: ONE)


_RING = {
    n: exact for n in ("add", "subtract", "multiply", "negate") if (exact := FUNCTIONS[n].values.exact) is not None
}
"""Functions whose values on polynomials are exact."""
_LAWS: dict[str, Callable[..., Value]] = {
    "divide": Functions.divide,
    "divide_integer": Functions.quotient,
    "remainder": Functions.remainder,
    "power": Functions.power,
    "abs": Functions.absolute,
    "sign": Functions.sign,
    "exponential": _exponential,
    "log": Functions.log,
    "sqrt": Functions.sqrt,
    "rsqrt": Functions.rsqrt,
    "is_finite": _is_finite,
}
"""What functions of numbers are as guarded polynomials; all others have a definition by these, or are names."""
