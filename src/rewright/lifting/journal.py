"""What lifting did, step by step, for whoever writes it down as a proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SEQUENTIAL = -1
"""The program that is not one of the ranks."""

Place = tuple[int, int]
"""A program, by its rank, and a position in it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Nodes that were lifted together, with their values and the terms that were looked into or made."""

    places: tuple[Place, ...]
    values: tuple[int, ...]
    terms: tuple[int, ...]
    meeting: bool
    whole: int | None = None
    """What the members of a meeting each keep a chunk of, if that is what they do."""


@dataclass(frozen=True, slots=True)
class Again:
    """Entries ``first`` to ``last`` (exclusive) once more, some nodes later by program, with other terms."""

    first: int
    last: int
    shifts: Mapping[int, int]
    images: Mapping[int, int]


@dataclass
class Journal:
    """Entries in the order of the work."""

    entries: list[Entry | Again] = field(default_factory=list[Entry | Again])
    _terms: dict[object, tuple[int, ...]] = field(default_factory=dict[object, tuple[int, ...]])

    def note(
        self,
        places: Sequence[Place],
        values: Sequence[int],
        key: object,
        terms: tuple[int, ...],
        meeting: bool,
        whole: int | None = None,
    ) -> None:
        """Write down a step; steps of one key were lifted once, and looked into the same terms."""
        terms = self._terms.setdefault(key, terms)
        self.entries.append(Entry(tuple(places), tuple(values), terms, meeting, whole))
