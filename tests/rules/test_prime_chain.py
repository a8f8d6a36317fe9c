"""Rules of the library hold in the prime chain too, a field in which exp is a homomorphism, and wrong ones do not."""

from __future__ import annotations

import random

import pytest

from rewright.interp.program import run
from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.rules import Rule, floats
from rewright.rules.concrete import concrete
from rewright.rules.instances import sample
from rewright.rules.library import library
from rewright.rules.library.models import plain_softmax, rms_norm, scalar, softmax
from rewright.rules.pattern import Tensor, exp, log, sqrt
from rewright.rules.rule import graph
from tests.rules.near_misses import WRONG
from tests.rules.prime_chain import CHAIN, PrimeChain, compare_in_chain


def is_prime(n: int) -> bool:
    """Miller and Rabin's test, exact below 3.4e14 with these bases."""
    d, r = n - 1, 0
    while d % 2 == 0:
        d, r = d // 2, r + 1
    for base in (2, 3, 5, 7, 11, 13, 17):
        x = pow(base, d, n)
        if x not in (1, n - 1) and not any((x := x * x % n) == n - 1 for _ in range(r - 1)):
            return False
    return True


def test_the_chain_is_one_of_primes() -> None:
    assert all(is_prime(p) and p % 4 == 3 for p in CHAIN)
    assert all(q == 2 * p + 1 for p, q in zip(CHAIN, CHAIN[1:], strict=False))
    assert CHAIN[-1] < 2**31


def test_exp_of_a_sum_is_a_product() -> None:
    chain = PrimeChain()
    x, y = chain.residues(12345), chain.residues(67)
    both = chain.apply("exponential", [chain.apply("add", [x, y])])
    apart = chain.apply("multiply", [chain.apply("exponential", [x]), chain.apply("exponential", [y])])
    assert both == apart
    assert chain.apply("exponential", [both]).levels[:2] == (None, None)


def equal(left: Tensor, right: Tensor) -> bool:
    return compare_in_chain(graph([left], "left"), graph([right], "right")).equal


A, B = floats("A", 3, 5), floats("B", 3, 5)


def test_safe_softmax_is_softmax() -> None:
    result = compare_in_chain(graph([softmax(A)], "safe"), graph([plain_softmax(A)], "plain"))
    assert result.equal
    assert result.elements == 15
    assert result.bound < 1e-5


def test_exp_nests() -> None:
    assert equal(exp(exp(A) + exp(B)), exp(exp(A)) * exp(exp(B)))
    assert not equal(exp(exp(A + B)), exp(exp(A)) * exp(exp(B)))


def test_an_epsilon_that_low_precision_cannot_see() -> None:
    """1e-6 for 1e-5: float32 values agree to four digits, the field says that they differ."""
    x, weight = floats("x", 2, 4), floats("weight", 4)

    def norm(epsilon: float) -> Tensor:
        mean = (x * x).sum(1) / 4.0
        return x / sqrt(mean + epsilon).broadcast((2, 4), (0,)) * weight.broadcast((2, 4), (1,))

    assert equal(norm(1e-6), norm(1e-6) * 1.0)
    assert not equal(norm(1e-6), norm(1e-5))
    given = {"x": [[1.0, 2.0, 3.0, 4.0]] * 2, "weight": [1.0] * 4}
    values = [run(graph([norm(e)], ""), given)["0"] for e in (1e-6, 1e-5)]  # type: ignore[arg-type]
    assert abs(values[0] - values[1]).max() < 1e-5
    assert rms_norm(x, weight).type == norm(1e-6).type
    assert scalar("eps").rank == 0


def test_what_the_chain_does_not_have_is_said() -> None:
    with pytest.raises(RewrightError, match="log has no value in the prime chain"):
        equal(log(A), log(A))
    deep = A
    for _ in range(6):
        deep = exp(deep)
    with pytest.raises(RewrightError, match="no level of the prime chain is left"):
        equal(deep, deep)


NOT_THE_REALS = {
    "max-over": "residues are ordered otherwise",
    "rsqrt-squared": "half of the residues have no root",
}


def in_the_chain(rule: Rule) -> bool | None:
    """Whether both sides of a rule are valid and agree at small sizes; None where the chain does not say."""
    source = random.Random(1)
    agree: list[bool] = []
    for _ in range(8):
        instance = sample(rule, source, most=4)
        if instance is not None:
            try:
                left, right = (concrete(side, instance.sizes) for side in (rule.left, rule.right))
                agree.append(compare_in_chain(left, right, instance.inputs).equal)
            except TypeMismatch:
                return False
            except (RewrightError, TypeError):
                return None
    return all(agree) if agree else None


def test_rules_of_the_library_hold_in_the_chain() -> None:
    found = {rule.name: in_the_chain(rule) for rule in library()}
    assert {name for name, holds in found.items() if holds is False} == set(NOT_THE_REALS)
    assert sum(holds is True for holds in found.values()) >= 200


def test_most_wrong_rules_do_not() -> None:
    found = [in_the_chain(rule) for rule in WRONG]
    assert found.count(False) >= 50
