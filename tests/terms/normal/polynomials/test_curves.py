"""Functions that grow: what they say of order, and of the largest of several values."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from fractions import Fraction

import pytest

from rewright.rules import (
    Tensor,
    absolute,
    constant,
    exp,
    floats,
    log,
    maximum,
    minimum,
    natural,
    rsqrt,
    rule,
    sigmoid,
    size,
    sqrt,
    tanh,
)
from rewright.rules.verdict import RuleVerdict, judge
from rewright.terms.normal.polynomials.atoms import (
    Atom,
    Base,
    Curve,
    Element,
    Exponential,
    Function,
    Polynomial,
    polynomial,
)
from rewright.terms.normal.polynomials.curves import same_sign
from rewright.terms.normal.polynomials.powers import exponential, logarithm, power

m, n = size("m"), size("n")
A, B, C = (floats(name, m, n) for name in "ABC")
V, E = floats("V", n), floats("E", natural("s"))
Sides = tuple[Tensor, Tensor, list[Tensor]]

SAME: dict[str, Sides] = {
    "exponentials": (exp(A) > exp(B), A > B, []),
    "equal exponentials": (exp(A).equals(exp(B)), A.equals(B), []),
    "an exponential and one": (exp(A) > 1.0, A > 0.0, []),
    "logarithms": (log(A) > 0.0, A > 1.0, [A > 0.0]),
    "roots": (sqrt(A) > sqrt(B), A > B, [A >= 0.0, B >= 0.0]),
    "a root and a number": (sqrt(A) > 2.0, A > 4.0, [A >= 0.0]),
    "one over a root falls": (rsqrt(A) > rsqrt(B), A < B, [A > 0.0, B > 0.0]),
    "sigmoids": (sigmoid(A) > sigmoid(B), A > B, []),
    "a sigmoid and a half": (sigmoid(A) > 0.5, A > 0.0, []),
    "hyperbolic tangents": (tanh(A) < tanh(B), A < B, []),
    "two shares of one sum": (exp(A) / (exp(A) + exp(C)) > exp(B) / (exp(A) + exp(C)), A > B, []),
    "the larger of two": (maximum(exp(-A), exp(-B)), exp(-minimum(A, B)), []),
    "the larger of two roots": (maximum(rsqrt(A), rsqrt(B)), rsqrt(minimum(A, B)), [A > 0.0, B > 0.0]),
    "the largest exponential": (exp(V).max(0), exp(V.max(0)), []),
    "the largest logarithm": (log(V).max(0), log(V.max(0)), [V > 0.0]),
    "the least exponential": (-((-exp(V)).max(0)), exp(-((-V).max(0))), []),
    "the largest share": (sigmoid(V).max(0), sigmoid(V.max(0)), []),
    "the least share": (sigmoid(V).min(0), sigmoid(V.min(0)), []),
    "the largest that falls": ((1.0 / (1.0 + exp(V))).max(0), 1.0 / (1.0 + exp(V.min(0))), []),
    "the largest hyperbolic tangent": (tanh(V).max(0), tanh(V.max(0)), []),
    "the largest soft plus": (log(1.0 + exp(V)).max(0), log(1.0 + exp(V.max(0))), []),
    "a root of a product": (sqrt(A * B * C), sqrt(A) * sqrt(B * C), [A >= 0.0, B >= 0.0, C >= 0.0]),
    "a root of a quotient": (sqrt(A / B), sqrt(A) / sqrt(B), [A >= 0.0, B > 0.0]),
}
DIFFERENT: dict[str, Sides] = {
    "the other order": (exp(A) > exp(B), A < B, []),
    "the share of the least": (sigmoid(V).max(0), sigmoid(V.min(0)), []),
    "what falls of the largest": ((1.0 / (1.0 + exp(V))).max(0), 1.0 / (1.0 + exp(V.max(0))), []),
    "neither grows nor falls": ((V * sigmoid(V)).max(0), V.max(0) * sigmoid(V.max(0)), []),
    "the largest square": ((V * V).max(0), V.max(0) * V.max(0), []),
    "another number": (exp(A) > 2.0, A > 2.0, []),
    "a root is not negative": (sqrt(A) > -2.0, A > 4.0, [A >= 0.0]),
    "sigmoids of zero": (sigmoid(A) > 0.0, A > 0.0, []),
    "a sum of exponentials": ((exp(A) + exp(B)) > exp(C), (A + B) > C, []),
    "squares": ((A * A) > (B * B), A > B, []),
    "one over": ((1.0 / A) > (1.0 / B), A < B, [A.differs(0.0), B.differs(0.0)]),
    "no growing function": ((A * sigmoid(A)) > (B * sigmoid(B)), A > B, []),
    "the least of two": (exp(maximum(A, B)), minimum(exp(A), exp(B)), []),
    "falls": (maximum(exp(-A), exp(-B)), exp(-maximum(A, B)), []),
    "the largest of what falls": (exp(-V).max(0), exp(-(V.max(0))), []),
    "twice": ((exp(V) * 2.0).max(0), exp(V.max(0)), []),
    "the largest of nothing": (exp(E).max(0), exp(E.max(0)), []),
    "not defined on one side": (log(maximum(A, B)), maximum(log(A), log(B)), []),
    "a root of two signs": (sqrt(A * B), sqrt(A) * sqrt(B), [A >= 0.0]),
    "an absolute value": (sqrt(A * A * B), A * sqrt(B), [B >= 0.0]),
}


def verdict(sides: Sides) -> RuleVerdict:
    left, right, conditions = sides
    return judge(rule("order", "left = right", left, right, where=conditions))


@pytest.mark.parametrize("name", SAME)
def test_order_goes_through_functions_that_grow(name: str) -> None:
    assert verdict(SAME[name]).status == "proved"


@pytest.mark.parametrize("name", DIFFERENT)
def test_no_order_goes_through_others(name: str) -> None:
    assert verdict(DIFFERENT[name]).status == "refuted"


def test_an_absolute_value_is_the_root_of_a_square_among_factors() -> None:
    assert verdict((sqrt(A * A * exp(B)), absolute(A) * sqrt(exp(B)), [])).status == "proved"


def test_what_is_true_of_a_rounded_logarithm_is_less() -> None:
    """Over the reals the logarithm of twice a value is a sum; no sum that is reassociated makes it one."""
    left, right = log(V + V), log(V) + log(constant(2.0)).broadcast((n,))

    found = verdict((left, right, [V > 0.0]))

    assert (found.status, found.grade) == ("proved", "real")


@pytest.mark.parametrize("seed", range(300))
def test_what_is_left_of_a_difference_has_its_sign(seed: int) -> None:
    """Of random functions one inside the other: compared at two places, with another value, and with one."""
    source = random.Random(seed)
    at = {name: polynomial(Element(name, (), False)) for name in "ab"}
    functions = source.choices(range(len(FUNCTIONS)), k=source.randint(1, 3))
    left, right = at["a"], at["b"]
    for chosen in functions:
        left, right = FUNCTIONS[chosen](left), FUNCTIONS[chosen](right)
    value = (left - source.choice([right, at["b"], Polynomial({(): 1})])) * source.choice([1, -1, 3])

    simple = same_sign(value)

    for _ in range(10):
        numbers = {name: abs(source.gauss(0, 1)) + 0.01 for name in at}
        before, after = (_number(side, numbers) for side in (value, simple))
        assert abs(before) < 1e-9 or (before > 0) == (after > 0), f"{value} became {simple}"


FUNCTIONS = (
    exponential,
    lambda x: exponential(-x),
    lambda x: power(exponential(-x) + 1, -1),
    lambda x: power(x * x + 1, Fraction(1, 2)),
    lambda x: power(x * x + 1, Fraction(-1, 2)),
    lambda x: logarithm(x * x + 1),
    lambda x: polynomial(Function("erf", (x,), curve=Curve(grows=True, parity="odd", at_zero=0.0, root=0.0))),
    lambda x: x * 2 - 1,
    lambda x: x * x,
)


def _number(value: Polynomial, numbers: Mapping[str, float]) -> float:
    return sum(
        float(coefficient) * math.prod(_atom(atom, numbers) ** float(exponent) for atom, exponent in monomial)
        for monomial, coefficient in value.terms.items()
    )


def _atom(atom: Atom, numbers: Mapping[str, float]) -> float:
    if isinstance(atom, Element):
        return numbers[atom.tensor]
    if isinstance(atom, Exponential):
        return math.exp(_number(atom.exponent, numbers))
    if isinstance(atom, Base):
        return _number(atom.value, numbers)
    assert isinstance(atom, Function)
    return {"log": math.log, "erf": math.erf}[atom.name](_number(atom.arguments[0], numbers))
