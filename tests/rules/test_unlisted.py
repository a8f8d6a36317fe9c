"""Rules that the prover was not written for: right ones are proved, and wrong ones have a counterexample."""

from __future__ import annotations

import pytest

from rewright.rules.rule import Rule
from rewright.rules.verdict import judge
from tests.rules.unlisted import RIGHT, WRONG


@pytest.mark.parametrize("one", RIGHT, ids=lambda one: one.name)
def test_a_right_rule_is_proved(one: Rule) -> None:
    verdict = judge(one)
    assert verdict.status == "proved", str(verdict)


@pytest.mark.parametrize("one", WRONG, ids=lambda one: one.name)
def test_a_wrong_rule_is_refuted(one: Rule) -> None:
    assert judge(one).status == "refuted"
