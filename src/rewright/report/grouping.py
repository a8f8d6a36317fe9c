"""Outputs that differ only in numbers (layers, experts) and are related alike, told as one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from rewright.refine.verdict import OutputRelation


@dataclass(frozen=True)
class Family:
    """Outputs with one relation: ``grad:layers.{0..31}.weight`` stands for 32 of them."""

    name: str
    members: tuple[OutputRelation, ...]

    @property
    def relation(self) -> str:
        """The placement that all members have, or the equation of a single one."""
        first = self.members[0]
        return first.placement or first.equation

    @property
    def expected(self) -> str | None:
        """The placement that was asked for, where one was."""
        return self.members[0].expected

    @property
    def holds(self) -> bool:
        """Whether the relation was shown, and is the expected one where one was asked for."""
        return self.members[0].holds


def families(relations: Iterable[OutputRelation]) -> list[Family]:
    """Group relations, in order of first appearance; one without a placement stays alone."""
    groups: dict[tuple[object, ...], list[tuple[tuple[int, ...], OutputRelation]]] = {}
    for relation in relations:
        template, numbers = _split(relation.name)
        alone = relation.name if not relation.placement else ""
        key = (template, relation.placement, relation.expected, relation.holds, alone)
        groups.setdefault(key, []).append((numbers, relation))
    return [family for group in groups.values() for family in _name(group)]


def _name(group: list[tuple[tuple[int, ...], OutputRelation]]) -> list[Family]:
    """One family where the numbers form a full grid, else one per value of the first number."""
    members = tuple(relation for _, relation in group)
    columns = [sorted(set(column)) for column in zip(*(numbers for numbers, _ in group), strict=True)]
    if prod(len(column) for column in columns) == len(group):
        template, _ = _split(members[0].name)
        parts = iter(_ranges(column) for column in columns)
        return [Family(".".join(next(parts) if part is None else part for part in template), members)]
    by_first: dict[int, list[tuple[tuple[int, ...], OutputRelation]]] = {}
    varying = next(i for i, column in enumerate(columns) if len(column) > 1)
    for numbers, relation in group:
        by_first.setdefault(numbers[varying], []).append((numbers, relation))
    return [family for part in by_first.values() for family in _name(part)]


def _split(name: str) -> tuple[tuple[str | None, ...], tuple[int, ...]]:
    """Dotted parts with None where a number stands, and the numbers."""
    parts = name.split(".")
    template = tuple(None if part.isdecimal() else part for part in parts)
    return template, tuple(int(part) for part in parts if part.isdecimal())


def _ranges(numbers: Sequence[int]) -> str:
    """``"7"``, ``"{0..31}"`` or ``"{0..3,5}"`` for sorted distinct numbers."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    text = ",".join(str(low) if low == high else f"{low}..{high}" for low, high in runs)
    return text if len(numbers) == 1 else "{" + text + "}"
