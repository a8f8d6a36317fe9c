"""Products over ranges, by how often each factor occurs in them."""

from __future__ import annotations

import pytest

from rewright.rules import Tensor, concat, exp, floats, natural, rule, scalar, size
from rewright.rules.verdict import judge

m, n, p, q = size("m"), size("n"), size("p"), size("q")
low, high = natural("low"), natural("high")
A, V, W = floats("A", m, n), floats("V", n), floats("W", n)
X, Y, Z = floats("X", p), floats("Y", q), floats("Z", m * n)
c = scalar("c")

SAME: dict[str, tuple[Tensor, Tensor]] = {
    "parts": (concat(0, X, Y).product(), X.product() * Y.product()),
    "parts in another order": (concat(0, X, Y).product(), concat(0, Y, X).product()),
    "one more": (concat(0, V, c.reshape(1)).product(), V.product() * c),
    "elementwise": (V.product() * W.product(), (V * W).product()),
    "squares": ((V * V).product(), V.product() * V.product()),
    "backwards": (V.reverse().product(), V.product()),
    "either axis first": (A.product(0).product(0), A.product(1).product(0)),
    "rows": (Z.reshape(m, n).product(1).product(0), Z.product()),
    "ones around": (V.pad(1.0, low, high).product(), V.product()),
    "ones between": (V.pad(1.0, 0, 0, low).product(), V.product()),
    "nothing": (V.slice(0, 0).product(), V.sum() * 0.0 + 1.0),
    "exponentials": (exp(V).product(), exp(V.sum())),
    "some exponentials": ((V * exp(W)).product(), exp(W.sum()) * V.product()),
}
DIFFERENT: dict[str, tuple[Tensor, Tensor]] = {
    "sum of parts": (concat(0, X, Y).product(), X.product() + Y.product()),
    "all but the last": (concat(0, X, Y).slice(0, p + q - 1).product(), X.product() * Y.product()),
    "zeros around": (V.pad(0.0, low, high).product(), V.product()),
    "a factor that may be zero": (concat(0, X * 0.0, Y).product(), Y.product()),
    "a part that may be zero": (concat(0, X, Y).product() * X.product(), Y.product()),
    "divided by itself": (V.product() / V.product(), V.sum() * 0.0 + 1.0),
    "a constant once": ((V * c).product(), V.product() * c),
    "the sign": ((-V).product(), -V.product()),
    "of sums": ((V + W).product(), V.product() + W.product()),
    "squares once": ((V * V).product(), V.product()),
    "the empty product": (V.slice(0, 0).product(), V.sum() * 0.0),
    "the largest exponential": (exp(V).product(), exp(V.max())),
}


@pytest.mark.parametrize("name", SAME)
def test_products_of_the_same_factors_are_proved(name: str) -> None:
    left, right = SAME[name]
    assert judge(rule(name, name, left, right)).status == "proved"


@pytest.mark.parametrize("name", DIFFERENT)
def test_products_of_other_factors_are_refuted(name: str) -> None:
    left, right = DIFFERENT[name]
    assert judge(rule(name, name, left, right)).status == "refuted"


def test_a_product_is_taken_in_another_order_only_where_that_may_round() -> None:
    assert judge(rule("reverse", "reverse", V.reverse().product(), V.product())).grade == "assoc"
    assert judge(rule("parts", "parts", concat(0, X, Y).product(), X.product() * Y.product())).grade == "real"
