"""Wrong rules are never proved, and each is refuted by an instance at which its sides differ."""

from __future__ import annotations

import pytest

from rewright.ir.errors import RewrightError
from rewright.rules import AtMost, Rule, Same, Tensor, floats, natural, rule, scalar, size
from rewright.rules.counterexample import find
from rewright.rules.library.sums import DILATION
from rewright.rules.pattern import absolute, exp, log, rsqrt, select, sqrt
from rewright.rules.verdict import judge
from rewright.terms.normal.prove import prove
from tests.rules.near_misses import WRONG

m, n = size("m"), size("n")
A, B = floats("A", m, n), floats("B", m, n)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_rule_is_not_proved(wrong: Rule) -> None:
    assert prove(wrong.claim(), seconds=5).status == "unknown"


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_rule_has_a_counterexample(wrong: Rule) -> None:
    assert find(wrong) is not None


def test_the_counterexample_is_the_smallest() -> None:
    verdict = judge(rule("wrong", "", A - B, B - A))
    assert verdict.status == "refuted"
    assert str(verdict.counterexample) == (
        "m=1, n=1: element [0, 0] is -1 on the left and 1 on the right (A=[0]; B=[1])"
    )


@pytest.mark.parametrize(
    ("left", "right", "condition", "word"),
    [
        (A / A, A * 0.0 + 1.0, A.differs(0.0), "not zero"),
        (exp(log(A)), A, A >= 0.0, "not negative"),
        (sqrt(A) * sqrt(A), A, A >= 0.0, "not negative"),
        ((A * B) / B, A + B * 0.0, B.differs(0.0), "not zero"),
        (1.0 / rsqrt(A), sqrt(A), A > 0.0, "positive"),
    ],
    ids=["quotient", "log", "sqrt", "product", "rsqrt"],
)
def test_where_only_one_side_is_defined_it_has_to_be_said(
    left: Tensor, right: Tensor, condition: Tensor, word: str
) -> None:
    """The condition makes the rule; without it one side has a value where the other has none."""
    assert prove(rule("with", "", left, right, where=[condition]).claim()).status == "proved"
    outcome = prove(rule("without", "", left, right).claim())
    assert outcome.status == "unknown"
    assert word in outcome.reason


def test_the_root_of_a_square_is_an_absolute_value() -> None:
    assert prove(rule("", "", sqrt(A * A), absolute(A)).claim()).status == "proved"


def test_conditions_that_contradict_each_other_are_an_error() -> None:
    s, e = natural("s"), natural("e")
    empty = rule("nothing", "", A.slice((s, 0), (e, n)), A.slice((s, 0), (e, n)), where=[AtMost(e + 1, s)])
    with pytest.raises(RewrightError, match="contradict each other"):
        judge(empty)


def test_a_choice_needs_only_the_chosen_side() -> None:
    """Division by zero on the side that is not chosen does no harm; on the side that is, it does."""
    safe = select(A.differs(0.0), B / A, 0.0)
    assert prove(rule("", "", safe, safe + 0.0).claim()).status == "proved"
    assert prove(rule("", "", safe, (B / A) * select(A.differs(0.0), A / A, 0.0)).claim()).status == "unknown"


def test_equal_sizes_can_be_a_condition() -> None:
    s, e = natural("s"), natural("e")
    row = floats("row", n)
    condition = [Same(s, e)]
    assert prove(rule("", "", row.slice(s, n), row.slice(e, n), where=condition).claim()).status == "proved"


def test_the_budget_is_wall_clock() -> None:
    outcome = prove(DILATION.claim(), seconds=0.3)
    assert outcome.status == "unknown"
    assert "budget of 0.3 s" in outcome.reason


def test_shared_subterms_cost_nothing() -> None:
    """silu iterated: a prover that denotes every use again doubles its time at each step."""
    x = floats("x", n)
    left = right = x
    for _ in range(8):
        left = left * (1.0 / (1.0 + exp(-left)))
        right = right / (1.0 + exp(-right))
    outcome = prove(rule("", "", left, right).claim(), seconds=20)
    assert outcome.status == "proved"


def test_a_scalar_that_stands_for_several_tensors_is_refused() -> None:
    with pytest.raises(RewrightError, match="two types"):
        rule("mixed", "", floats("A", m, n) + 0.0, floats("A", n, m).transpose())
    with pytest.raises(RewrightError, match="does not have it"):
        rule("unknown", "", A, A + scalar("c"))
