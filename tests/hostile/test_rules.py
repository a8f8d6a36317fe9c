"""Rules that were wrongly proved or refuted once: what may be infinite, what may be undefined, what is not known."""

from __future__ import annotations

import pytest

from rewright import ops, rules
from rewright.rules import Tensor
from rewright.rules.verdict import judge

INFINITY = float("inf")
n = rules.size("n")
x = rules.floats("x", n)
zero, one = rules.constant(0.0, ()), rules.constant(1.0, ())
negative, positive = rules.constant(-INFINITY, (n,)), rules.constant(INFINITY, (n,))


def wide(value: Tensor) -> Tensor:
    """A scalar for every element."""
    return value.broadcast((n,))


causal = rules.select(rules.iota((n,)) < 2, x, negative)
product = causal.product(0)
shifted = rules.exp(causal - wide(product))
of_nothing = rules.floats("q", n, n).slice((0, 0), (n, 0)).max(1)

PRODUCTS_OF_INFINITIES: dict[str, tuple[Tensor, Tensor]] = {
    "prod(-inf) - prod(-inf) = 0": (negative.product(0) - negative.product(0), zero),
    "prod(inf) * 0 = 0": (positive.product(0) * 0.0, zero),
    "exp(prod(masked)) / itself = 1": (rules.exp(product) / rules.exp(product), one),
    "softmax shifted by the product of masked scores": (
        shifted / wide(shifted.sum(0)),
        rules.exp(causal) / wide(rules.exp(causal).sum(0)),
    ),
    "prod(max over no elements) * 0 = 0": (of_nothing.product(0) * 0.0, zero),
}


@pytest.mark.parametrize("name", PRODUCTS_OF_INFINITIES)
def test_a_product_of_infinities_is_no_number(name: str) -> None:
    """All five were proved: a product that the normal form had no rules for became a term that was finite."""
    assert judge(rules.rule("r", name, *PRODUCTS_OF_INFINITIES[name])).status == "refuted"


UNKNOWN_TO_FIFTY_DIGITS: dict[str, tuple[Tensor, Tensor]] = {
    "sign(atan2(3, x)) = 1": (
        rules.apply(ops.Sign(), rules.apply(ops.Atan2(), rules.constant(3.0, (n,)), x)),
        rules.constant(1.0, (n,)),
    ),
    "(i0e(x) < 2) = true": (rules.apply(ops.BesselI0e(), x) < 2.0, x.equals(x)),
}


@pytest.mark.parametrize("name", UNKNOWN_TO_FIFTY_DIGITS)
def test_a_function_that_the_evaluator_does_not_know_refutes_nothing(name: str) -> None:
    """Both are true and were refuted: what is not known to 50 digits counted as not defined on the left."""
    verdict = judge(rules.rule("r", name, *UNKNOWN_TO_FIFTY_DIGITS[name]))
    assert verdict.status == "unknown"
    assert verdict.counterexample is None
