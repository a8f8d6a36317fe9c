"""Templates: a part that was lifted, with its trace, applied to other operands that have the structure it used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from rewright.claims.language import Addend, Number, Position, Table, View
from rewright.lifting.terms.store import Label, Terms
from rewright.lifting.terms.trace import Trace
from rewright.lifting.terms.value import Pieces, Value

_LEAVES = (Number, Position, Table)
UNSET = -1
_Event = tuple[int, "Label", tuple[int, ...], bool]
"""A term, its label, its children, and whether it is made, else checked to have that structure; terms are numbers."""


class NotReusable(Exception):
    """A trace that came by a term which neither its operands nor its own steps explain."""


class Template:
    """A trace over local numbers: those of the operands first, then what was read and made."""

    def __init__(
        self, terms: Terms, trace: Trace, operands: Sequence[Value], results: Iterable[Value], ranged: Set[int]
    ) -> None:
        """``ranged`` are terms with known ranges, of which a trace may speak by themselves.

        Raises NotReusable.
        """
        self._terms = terms
        self.operands = operands
        self._numbers: dict[int, int] = {}
        self._fixed: dict[int, None] = {}
        for value in operands:
            for term in terms_of(value):
                self._numbers.setdefault(term, len(self._numbers))
        self._known = set(ranged).union(*(terms.inside[t] for t in self._numbers))
        self._before = set(self._numbers)
        self._events = [e for event in trace.events if (e := self._event(*event)) is not None]
        self._marks = [(mark, self._number(term)) for mark, term in trace.marks]
        for value in results:
            for term in terms_of(value):
                self._number(term)
        self._names = list(self._numbers)

    def _number(self, term: int) -> int:
        """The local number of a term; one that stands for itself everywhere gets a new one."""
        found = self._numbers.get(term)
        if found is None:
            if not isinstance(self._terms.label(term), _LEAVES) and term not in self._known:
                raise NotReusable
            found = self._numbers[term] = len(self._numbers)
            self._fixed[term] = None
        return found

    def _event(self, term: int, label: Label | None, children: tuple[int, ...]) -> _Event | None:
        terms = self._terms
        if label is not None:
            numbers = tuple(self._number(c) for c in children)
            own = self._numbers.setdefault(term, len(self._numbers))
            return own, label, numbers, True
        own = self._number(term)
        if term in self._fixed:
            self._known.update(terms.graph.node(term)[1])
            return None
        kind, children = terms.node_label(term), terms.graph.node(term)[1]
        for child in children:
            if child not in self._numbers:
                self._numbers[child] = len(self._numbers)
                self._before.add(child)
        return own, kind, tuple(self._numbers[c] for c in children), False

    def apply(self, operands: Sequence[Value]) -> Instance | None:
        """Make the terms of the trace over other operands; None where they are not alike in all that was used."""
        numbers = self._numbers
        image = [UNSET] * len(numbers)
        for term in self._fixed:
            image[numbers[term]] = term
        for mine, other in zip(self.operands, operands, strict=True):
            if mine is other:
                pairs = [(t, t) for t in terms_of(mine)]
            elif have_equal_form(mine, other):
                pairs = list(zip(terms_of(mine), terms_of(other), strict=True))
            else:
                return None
            for term, new in pairs:
                if not self._bind(image, term, new):
                    return None
        if not self._follow(image) or not self._holes_match(image):
            return None
        if len(set(image)) != len(image):
            return None  # what was told apart, such as two open folds, must stay apart
        if any(mark(image[number]) is False for mark, number in self._marks):
            return None
        return Instance(numbers, image)

    def _bind(self, image: list[int], term: int, new: int) -> bool:
        """Let a term that existed before stand for another that did."""
        number = self._numbers[term]
        if image[number] != UNSET:
            return image[number] == new
        image[number] = new
        terms = self._terms
        if term == new:
            return True
        if isinstance(terms.label(term), _LEAVES):
            return False
        if terms.open[term] and not _open_alike(terms, term, new):
            return False
        return terms.arity[term] == terms.arity[new] and (new not in terms.infinite or term in terms.infinite)

    def _holes_match(self, image: list[int]) -> bool:
        """Whether the terms that existed before are open in the same folds."""
        terms, numbers = self._terms, self._numbers
        for term in self._before:
            new = image[numbers[term]]
            if new == term or not (terms.open[term] or terms.open[new]):
                continue
            if any(hole not in numbers for hole in terms.open[term]):
                return False
            if frozenset(image[numbers[hole]] for hole in terms.open[term]) != terms.open[new]:
                return False
        return True

    def _follow(self, image: list[int]) -> bool:
        place, node, names = self._terms.place, self._terms.graph.node, self._names
        for own, label, numbers, made in self._events:
            if made:
                children = [image[c] for c in numbers]
                if label.ordered and children != sorted(children):
                    return False  # another term than the one that lifting would make
                new = place(label, tuple(children))
                if image[own] != new:
                    if image[own] != UNSET:
                        return False
                    image[own] = new
                continue
            there, children = node(image[own])
            if there is not label:
                return False
            for number, child in zip(numbers, children, strict=True):
                if not self._bind(image, names[number], child):
                    return False
        return True


@dataclass(frozen=True, slots=True)
class Instance:
    """A template applied: which term stands for each term of the trace."""

    numbers: dict[int, int]
    image: list[int]

    def value(self, value: Value) -> Value:
        """A value of the trace over the new terms."""
        if isinstance(value, Pieces):
            return Pieces(value.axis, value.outer, tuple(self.value(part) for part in value.parts))
        numbers, image = self.numbers, self.image
        return View(
            value.dims,
            tuple(
                Addend(
                    a.coefficient,
                    image[numbers[a.term]],
                    a.access,
                    tuple((image[numbers[hole]], region) for hole, region in a.parts),
                )
                for a in value.addends
            ),
        )


def _open_alike(terms: Terms, term: int, other: int) -> bool:
    """Whether two terms are made alike down to their open folds, which whoever reads them looks into."""
    if term == other:
        return True
    if terms.node_label(term) is not terms.node_label(other):
        return False
    pairs = zip(terms.graph.node(term)[1], terms.graph.node(other)[1], strict=True)
    return all(_open_alike(terms, mine, its) for mine, its in pairs if terms.open[mine] or terms.open[its])


def terms_of(value: Value) -> Iterator[int]:
    """The terms that a value names, in order."""
    if isinstance(value, Pieces):
        for part in value.parts:
            yield from terms_of(part)
        return
    for a in value.addends:
        yield a.term
        for hole, _ in a.parts:
            yield hole


def have_equal_form(left: Value, right: Value) -> bool:
    """Whether two values are equal but for the terms that they name."""
    if isinstance(left, Pieces) or isinstance(right, Pieces):
        return (
            isinstance(left, Pieces)
            and isinstance(right, Pieces)
            and (left.axis, left.outer) == (right.axis, right.outer)
            and len(left.parts) == len(right.parts)
            and all(have_equal_form(a, b) for a, b in zip(left.parts, right.parts, strict=True))
        )
    return (
        left.dims == right.dims
        and len(left.addends) == len(right.addends)
        and all(_alike_addends(a, b) for a, b in zip(left.addends, right.addends, strict=True))
    )


def _alike_addends(left: Addend, right: Addend) -> bool:
    return (
        left.coefficient == right.coefficient
        and left.access == right.access
        and len(left.parts) == len(right.parts)
        and all(a == b for (_, a), (_, b) in zip(left.parts, right.parts, strict=True))
    )
