"""The rule library: an explicit table of tables, and the evidence that comes with each rule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rewright.ir.errors import RewrightError
from rewright.rules.library import arithmetic, layout, models, scales, slicing, sums
from rewright.rules.record import Record, load, rule_digest
from rewright.rules.rule import Rule

TABLES: Mapping[str, tuple[Rule, ...]] = {
    "arithmetic": arithmetic.RULES,
    "layout": layout.RULES,
    "slicing": slicing.RULES,
    "sums": sums.RULES,
    "models": models.RULES,
    "scales": scales.RULES,
}
"""Rules by the family that they belong to."""
EVIDENCE = Path(__file__).parent / "evidence.json"


def library() -> tuple[Rule, ...]:
    """All rules, in the order of the tables."""
    return tuple(rule for table in TABLES.values() for rule in table)


class Registry:
    """Rules that may be used: each with an evidence record for exactly this rule.

    A rule that is only tested is quarantined: a caller has to allow it by name.
    """

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._records = dict(records)
        self._rules: dict[str, Rule] = {}

    def register(self, rule: Rule, allow: frozenset[str] = frozenset()) -> Record:
        """Add a rule; raises RewrightError where its record is missing, for another rule, or not complete."""
        record = self._records.get(rule.name)
        if record is None:
            raise RewrightError(f"rule {rule.name!r} has no evidence record; run rewright rules prove and keep it")
        if record.digest != rule_digest(rule):
            raise RewrightError(f"the evidence record of {rule.name!r} is for another rule; make it again")
        if not record.complete and not (record.tier == "tested" and rule.name in allow):
            raise RewrightError(f"rule {rule.name!r} is {record.tier} only; allow it by name to use it")
        self._rules[rule.name] = rule
        return record

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules registered so far."""
        return tuple(self._rules.values())

    def record(self, name: str) -> Record:
        """The record of a rule; raises RewrightError where there is none."""
        if name not in self._records:
            raise RewrightError(f"there is no evidence record for rule {name!r}")
        return self._records[name]


def registered() -> Registry:
    """The library with its evidence; raises RewrightError where a record is missing or is for another rule."""
    registry = Registry(load(EVIDENCE))
    for rule in library():
        registry.register(rule)
    return registry
