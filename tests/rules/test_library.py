"""Every rule of the library is proved for all sizes, by the prover that certificates rely on too."""

from __future__ import annotations

import pytest

from rewright.rules import Rule
from rewright.rules.library import EVIDENCE, TABLES, library, registered
from rewright.rules.record import load, rule_digest
from rewright.terms.normal.prove import prove


@pytest.mark.parametrize("rule", library(), ids=lambda rule: rule.name)
def test_a_rule_of_the_library_is_proved(rule: Rule) -> None:
    outcome = prove(rule.claim(), seconds=20)
    assert (outcome.status, outcome.reason) == ("proved", "")


def test_rules_have_names_of_their_own_and_a_statement() -> None:
    names = [rule.name for rule in library()]
    assert len(set(names)) == len(names)
    assert all(rule.statement and "\n" not in rule.statement for rule in library())


def test_no_two_rules_say_the_same() -> None:
    digests: dict[str, str] = {}
    for rule in library():
        digests.setdefault(rule_digest(rule), rule.name)
    assert [rule.name for rule in library() if digests[rule_digest(rule)] != rule.name] == []


def test_every_rule_is_registered_with_a_complete_record() -> None:
    registry = registered()
    assert len(registry.rules) == sum(len(table) for table in TABLES.values())
    assert all(record.complete for record in load(EVIDENCE).values())


def test_records_hold_twenty_tested_instances_and_refuted_mutants() -> None:
    records = load(EVIDENCE)
    assert all(record.tests["instances"] >= 20 for record in records.values())
    refuted = sum(mutant["fate"] == "refuted" for record in records.values() for mutant in record.mutants)
    assert refuted >= 300
