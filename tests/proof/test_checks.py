"""Some checks are taken out of the checker, and the tests must notice; ``make mutants-checker`` takes out all."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.checker import Check, checks, killed, without

SOURCE = Path(__file__).parents[2] / "src" / "rewright" / "proof"
CHECKS = list(checks(SOURCE))


def test_checks_are_found_in_every_module_that_refuses() -> None:
    assert len(CHECKS) > 100
    assert {check.module for check in CHECKS} >= {"checker", "ledger", "relations", "lemma", "meaning", "forms"}


def test_a_check_that_is_taken_out_is_the_only_change() -> None:
    text = "def f(x):\n    if x:\n        raise Refused('no')\n    if x:\n        raise Refused('never')\n"
    assert without(text, Check("module", 2, 4, "")) == text.replace("if x", "if False", 1).rstrip()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("start", "test"),
    [
        ("if position <= self._last", "attacks"),
        ("if other.operands != tuple(", "ends"),
        ("check_definition(term, definitions)", "attacks"),
    ],
)
def test_no_check_is_idle(start: str, test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    (check,) = (check for check in CHECKS if check.text.startswith(start))
    assert killed(check, [test]).startswith(f"test_{test}.py")
