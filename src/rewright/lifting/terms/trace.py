"""What lifting one part of a program read and made, so that an equal part need not be lifted again.

A trace lists, in order, the terms that were made and the terms whose structure was used. The same steps are right for
other operands wherever those have the structure that was used: a *template* checks that and makes the same terms
over the other operands. What else is known of a term, such as a range of its values, or was noted of it, is a *mark*:
it is asked or noted of the term that stands for it too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rewright.lifting.terms.store import Label, Terms

Found = TypeVar("Found")

Mark = Callable[[int], object]
"""Asks or notes something of a term; False where a term that stands for the first one gives another answer."""


@dataclass
class Trace:
    """The terms that were made and used, in order, each once."""

    events: list[tuple[int, Label | None, tuple[int, ...]]] = field(
        default_factory=list["tuple[int, Label | None, tuple[int, ...]]"]
    )
    """A term, and for one that was made its label and children."""
    marks: list[tuple[Mark, int]] = field(default_factory=list["tuple[Mark, int]"])
    """What was asked of a term, or noted of it, besides its structure."""
    opened: set[int] = field(default_factory=set[int])
    """Operators without laws of which more than their identity was used."""
    _known: set[int] = field(default_factory=set[int])

    def note_term(self, term: int, label: Label, children: tuple[int, ...]) -> None:
        """A term was made, or found where it was made before."""
        if term not in self._known:
            self._known.add(term)
            self.events.append((term, label, children))

    def note_use(self, term: int) -> None:
        """The label and the children of a term were used."""
        if term not in self._known:
            self._known.add(term)
            self.events.append((term, None, ()))

    def include(self, other: Trace) -> None:
        """All that another trace noted, behind what this one did."""
        for term, label, children in other.events:
            if label is None:
                self.note_use(term)
            else:
                self.note_term(term, label, children)
        self.marks += other.marks
        self.opened |= other.opened


def look(terms: Terms, search: Callable[[], Found | None]) -> Found | None:
    """What a search finds; what is looked into in vain is no part of a trace."""
    own = Trace()
    with terms.traced(own) as outer:
        found = search()
    if found is not None and outer is not None:
        outer.include(own)
    return found
