"""What may be infinite or not a number enters proofs by its sort, so that no law about numbers meets it."""

from __future__ import annotations

import pytest

from rewright import ops
from rewright.ir.types import DType
from rewright.ops.functions.record import Sort
from rewright.rules import Tensor, absolute, apply, exp, floats, log, rule, select, size, sqrt
from rewright.rules.verdict import judge
from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.decision.equality import difference
from rewright.terms.normal.denoting.denote import Denoter
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import Value
from rewright.terms.normal.polynomials.atoms import ZERO, Polynomial, polynomial

n = size("n")
x, y = floats("x", n), floats("y", n)
zero, one = x * 0.0, x * 0.0 + 1.0


def is_same(left: Tensor, right: Tensor, sort: Sort) -> bool:
    """Whether two programs of x and y are equal where the elements of x are of a sort."""
    context = new_context(20)
    context.sorts["x"] = sort
    return difference(context, *(first_element(context, side) for side in (left, right))) is None


def first_element(context: Context, program: Tensor) -> Value:
    """The first element of a program of vectors of three."""
    graph = rule("r", "", program, program).left
    denoter = Denoter(context, graph, lambda size: polynomial(size) if isinstance(size, int) else polynomial(3))
    return denoter.value(graph.outputs["0"], (ZERO,))


HOLD_FOR_ALL: dict[str, tuple[Tensor, Tensor]] = {
    "x + y = y + x": (x + y, y + x),
    "x * 1 = x": (x * 1.0, x + 0.0),
    "exp(x) = exp(x)": (exp(x) + y, y + exp(x)),
    "-(0 - x) = x": (-(0.0 - x), x + 0.0),
    "abs(-x) = abs(x)": (absolute(-x), absolute(x)),
    "max(x, x) = x": (select(x < x, y, x), x + 0.0),
}
HOLD_FOR_NUMBERS: dict[str, tuple[Tensor, Tensor]] = {
    "x - x = 0": (x - x, y * 0.0),
    "0 x = 0": (x * 0.0, y * 0.0),
    "2 x - x = x": (x + x - x, x + 0.0),
    "(x + y) - x = y": ((x + y) - x, y + 0.0),
    "exp(x) - exp(x) = 0": (exp(x) - exp(x), y * 0.0),
    "exp(-x) exp(x) = 1": (exp(-x) * exp(x), y * 0.0 + 1.0),
    "floor(x) - floor(x) = 0": (apply(ops.Floor(), x) - apply(ops.Floor(), x), y * 0.0),
    "x is finite": (select(apply(ops.IsFinite(), x), y, y + 1.0), y + 0.0),
    "sin(x) - sin(x) = 0": (apply(ops.Sine(), x) - apply(ops.Sine(), x), y * 0.0),
}
HOLD_FOR_INFINITIES: dict[str, tuple[Tensor, Tensor]] = {
    "erf(x) - erf(x) = 0": (apply(ops.Erf(), x) - apply(ops.Erf(), x), y * 0.0),
    "tanh(x) - tanh(x) = 0": (apply(ops.Tanh(), x) - apply(ops.Tanh(), x), y * 0.0),
    "x = x": (select(x.equals(x), y, y + 1.0), y + 0.0),
}


@pytest.mark.parametrize("sort", ["finite", "extended", "partial"])
@pytest.mark.parametrize("name", HOLD_FOR_ALL)
def test_laws_of_all_values(name: str, sort: Sort) -> None:
    assert is_same(*HOLD_FOR_ALL[name], sort)


@pytest.mark.parametrize("name", HOLD_FOR_NUMBERS)
def test_laws_of_numbers(name: str) -> None:
    left, right = HOLD_FOR_NUMBERS[name]
    assert is_same(left, right, "finite")
    assert not is_same(left, right, "extended")
    assert not is_same(left, right, "partial")


@pytest.mark.parametrize("name", HOLD_FOR_INFINITIES)
def test_functions_are_known_at_infinity(name: str) -> None:
    left, right = HOLD_FOR_INFINITIES[name]
    assert is_same(left, right, "extended")
    assert not is_same(left, right, "partial")


def test_what_is_infinite_is_so_on_both_sides() -> None:
    """A tensor is infinite at the same places wherever it is read, and two tensors are not."""
    assert is_same(apply(ops.Sine(), x) + y, y + apply(ops.Sine(), x), "extended")
    assert not is_same(x * 0.0, y * 0.0, "extended")


def test_a_polynomial_of_a_finite_tensor_has_no_cases() -> None:
    assert isinstance(first_element(new_context(20), x + y), Polynomial)


GUARDED: dict[str, tuple[Tensor, Tensor]] = {
    "a quotient that is finite": (select(apply(ops.IsFinite(), x / y), x / y, 0.0), x / y),
    "a root that is a number": (select(sqrt(x).differs(sqrt(x)), 0.0, sqrt(x)), sqrt(x)),
    "a logarithm that is finite": (select(apply(ops.IsFinite(), log(x)), log(x), -100.0), log(x)),
    "a quotient that is positive": (select(1.0 / x > 0.0, y, 1.0), select(x > 0.0, y, 1.0)),
    "a truth value of a quotient": (select((x / y).convert(DType.BOOL), y, 1.0), select(x.differs(0.0), y, 1.0)),
}


@pytest.mark.parametrize("name", GUARDED)
def test_what_asks_whether_a_value_is_a_number_is_not_the_value(name: str) -> None:
    """Such rules were proved: both sides counted as defined only where the value is."""
    assert judge(rule("r", name, *GUARDED[name])).status != "proved"


TRUE: dict[str, tuple[Tensor, Tensor]] = {
    "cos(-x) = cos(x)": (apply(ops.Cosine(), -x), apply(ops.Cosine(), x)),
    "cos(x - y) = cos(y - x)": (apply(ops.Cosine(), x - y), apply(ops.Cosine(), y - x)),
    "sin(-x) = -sin(x)": (apply(ops.Sine(), -x), -apply(ops.Sine(), x)),
    "erf(-x) = -erf(x)": (apply(ops.Erf(), -x), -apply(ops.Erf(), x)),
    "tanh(-x) = -tanh(x)": (apply(ops.Tanh(), -x), -apply(ops.Tanh(), x)),
    "i0e(-x) = i0e(x)": (apply(ops.BesselI0e(), -x), apply(ops.BesselI0e(), x)),
    "sin(0) = 0": (apply(ops.Sine(), zero), zero),
    "cos(0) = 1": (apply(ops.Cosine(), zero), one),
    "erf(-x) < erf(y)": (
        select(apply(ops.Erf(), -x) < apply(ops.Erf(), y), x, y),
        select(-x < y, x, y),
    ),
    "x ** 0 = 1": (apply(ops.Power(), x, x * 0.0), one),
    "log(0) = -inf": (exp(log(zero)) + x, x + 0.0),
    "masks as logarithms": (
        exp(x + log(select(y > 0.0, one, 0.0))),
        select(y > 0.0, exp(x), 0.0),
    ),
    "tanh(inf) = 1": (apply(ops.Tanh(), x + float("inf")), one),
}


@pytest.mark.parametrize("name", TRUE)
def test_parity_and_infinities(name: str) -> None:
    verdict = judge(rule("r", name, *TRUE[name]))
    assert (verdict.status, verdict.reason) == ("proved", "")
