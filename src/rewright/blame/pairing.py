"""One step back from a sequential tensor that the ranks should hold at a place and do not.

A *pair* is a sequential node and a place of the ranks that should hold it, and does not. Either the pair explains
itself (the operands are right and the result is not), or it leads to pairs further back. Steps that presume that both
programs compute alike cost nothing; those that skip an operator that only one of them has cost something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rewright import ops
from rewright.blame.holding import Holding
from rewright.blame.movement import spoiler, stretch
from rewright.blame.places import LAYOUT, Place
from rewright.ir.operator import Operator

Cause = Literal[
    "operator", "operands", "constant", "input", "missing", "term", "extra", "collective", "moved", "output"
]
Pair = tuple[int, Place]

SKIP = 2
"""What it costs to presume that only one of the programs has an operator, or that operands are paired otherwise."""
REMARKABLE = 1
"""What it costs to presume that an operator is missing or too much."""

_FREE: tuple[type[Operator], ...] = (*LAYOUT, ops.Collective)
_MOVING: tuple[type[Operator], ...] = (ops.Layout, ops.DynamicSlice)
"""What ranks do to get at their part of a tensor: plausible anywhere."""
_ANY_ORDER: tuple[type[Operator], ...] = (ops.Monoid, ops.DotGeneral)


@dataclass(frozen=True)
class Explained:
    """What is wrong at a pair.

    ``operator``: it reads what the sequential one reads, and computes something else; ``operands``: the same in
    another order; ``constant``; ``input``: a rank holds another part than its placement says; ``missing``: the ranks
    hold ``other``, which the sequential operator reads, and none applies that operator; ``term``: a sum lacks the
    term ``other``; ``extra`` and ``collective``: an operand is right, and the operator spoils it; ``moved``: the
    same, and all that the ranks do in several steps is to move data.
    """

    cost: int
    cause: Cause
    pair: Pair
    other: int | None = None


@dataclass(frozen=True)
class Back:
    """A pair further back, and what it costs to go there."""

    cost: int
    pair: Pair


Move = Explained | Back


class Pairing:
    """The moves from pairs of two programs."""

    def __init__(self, holding: Holding) -> None:
        self.holding = holding
        self.places = holding.places
        self.nodes = holding.sequential.nodes

    def moves(self, pair: Pair) -> Iterator[Move]:
        """Every way to explain a pair, or to go back from it."""
        position, place = pair
        operator = self.places.operator(place)
        if operator is type(self.nodes[position].op):
            yield from self._alike(pair)
        if ops.Add in (operator, type(self.nodes[position].op)):
            yield from self._sums(pair)
        yield from self._skip_rank(pair, operator)
        yield from self._skip_movement(pair)
        yield from self._skip_sequential(pair)

    def _alike(self, pair: Pair) -> Iterator[Move]:
        """Both have the same operator: pair the operands."""
        position, place = pair
        own, read = list(self.nodes[position].operands), self.places.operands(place)
        if len(own) != len(read):
            return
        if not own:
            if not isinstance(self.nodes[position].op, ops.Input):
                yield Explained(0, "constant", pair)
            elif self.places.label(place) in self._names(position):
                yield Explained(0, "input", pair)
            return
        orders = self._orders(pair, own, read)
        right = [[self.holding.holds(p, read[i]) is not None for p, i in zip(own, o, strict=True)] for o in orders]
        most = max(sum(found) for found in right)
        dear = SKIP if self._is_long_sum(pair) else 0
        for number, (order, found) in enumerate(zip(orders, right, strict=True)):
            if all(found):
                in_order = order == sorted(order) or self._takes_any_order(position)
                yield Explained(dear, "operator" if in_order else "operands", pair)
            elif most < len(own) and (number == 0 or self._takes_any_order(position)):
                turned = SKIP if number and most == 0 else 0
                for p, i, is_right in zip(own, order, found, strict=True):
                    if not is_right:
                        yield Back(dear + turned + (most - sum(found)) * SKIP, (p, read[i]))

    def _names(self, position: int) -> tuple[str, ...]:
        op = self.nodes[position].op
        return (op.label,) if isinstance(op, ops.Input) else ()

    def _takes_any_order(self, position: int) -> bool:
        return isinstance(self.nodes[position].op, _ANY_ORDER)

    def _orders(self, pair: Pair, own: list[int], read: list[Place]) -> list[list[int]]:
        """The orders of operands worth trying, the most plausible first."""
        straight = list(range(len(own)))
        if len(own) != 2:
            return [straight, straight[::-1]] if len(own) > 1 else [straight]
        unlike = [
            sum(self.places.unlikeness(p, read[i]) for p, i in zip(own, o, strict=True)) for o in ([0, 1], [1, 0])
        ]
        if self._takes_any_order(pair[0]) and unlike[1] < unlike[0]:
            return [[1, 0], [0, 1]]
        return [[0, 1], [1, 0]]

    def _is_long_sum(self, pair: Pair) -> bool:
        """Whether the terms of a sum should be paired rather than its operands: sums may be associated otherwise."""
        position, place = pair
        if not isinstance(self.nodes[position].op, ops.Add):
            return False
        return len(self.places.addends(position)) + len(self.places.rank_addends(place)) > 4

    def _sums(self, pair: Pair) -> Iterator[Move]:
        """Pair the terms of sums, however they are associated."""
        position, place = pair
        own, held = self.places.addends(position), self.places.rank_addends(place)
        if len(own) + len(held) <= 2:
            return
        total = len(own)
        for term in list(own):
            found = next((other for other in held if self.holding.holds(term, other) is not None), None)
            if found is not None:
                own.remove(term)
                held.remove(found)
        if len(own) == total and not (len(own) == len(held) and self._is_long_sum(pair)):
            return
        if not own and not held:
            yield Explained(0, "operator", pair)
        elif not held:
            yield Explained(REMARKABLE, "term", pair, own[0])
        elif not own:
            yield from (Explained(REMARKABLE, "extra", (position, term)) for term in held)
        elif len(own) != len(held):
            yield from (Back(SKIP, (term, other)) for term in own for other in held)
        while own and len(own) == len(held):
            term, other = min(((a, b) for a in own for b in held), key=lambda both: self.places.unlikeness(*both))
            own.remove(term)
            held.remove(other)
            yield Back(0, (term, other))

    def _skip_rank(self, pair: Pair, operator: type[Operator] | None) -> Iterator[Move]:
        """Only the ranks have the operator at the place, or only some of them."""
        position, place = pair
        if operator is None:
            for before in self.places.steps_back(place):
                if self.holding.holds(position, before) is not None:
                    yield Explained(REMARKABLE, "extra", pair)
                else:
                    yield Back(REMARKABLE, (position, before))
            return
        likely = issubclass(operator, _MOVING) or self._masks(place)
        cost = 0 if issubclass(operator, _FREE) else REMARKABLE if likely else SKIP
        collective = issubclass(operator, ops.Collective)
        for before in self.places.operands(place):
            if self._is_constant(before) and not self._is_number(position):
                continue
            if self.holding.holds(position, before) is None:
                yield Back(cost, (position, before))
            elif collective:
                yield Explained(0, "collective", pair)
            else:
                yield Explained(REMARKABLE, "extra", pair)

    def _masks(self, place: Place) -> bool:
        """Whether the ranks set something to a constant there, as they do with what belongs to others."""
        node = self.places.ranks[0].nodes[place[0]]
        if not isinstance(node.op, ops.Select):
            return False
        return any(self._is_constant(branch) for branch in self.places.operands(place)[1:])

    def _is_number(self, position: int) -> bool:
        return isinstance(self.nodes[self.places.laid_out(position)[-1]].op, ops.Constant)

    def _is_constant(self, place: Place) -> bool:
        return self.places.operator(self.places.laid_out_ranks(place)[-1]) is ops.Constant

    def _skip_movement(self, pair: Pair) -> Iterator[Move]:
        """Only the ranks move the data about, in several steps."""
        position, place = pair
        moved = stretch(self.holding, place)
        if moved is None:
            return
        if self.holding.holds(position, moved.source) is None:
            yield Back(REMARKABLE, (position, moved.source))
        else:
            yield Explained(REMARKABLE, "moved", (position, spoiler(self.holding, moved)))

    def _skip_sequential(self, pair: Pair) -> Iterator[Move]:
        """Only the sequential program has the operator."""
        position, place = pair
        layout = isinstance(self.nodes[position].op, LAYOUT)
        for before in self.nodes[position].operands:
            if self._is_number(before):
                # That the ranks have the same number there says nothing.
                continue
            if self.holding.holds(before, place) is None:
                yield Back(0 if layout else SKIP, (before, place))
            else:
                yield Explained(REMARKABLE, "missing", pair, before)
