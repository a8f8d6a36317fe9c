"""Where two programs part, by values: from an output that is wrong back to the first operator that is.

Whoever reads a wrong program asks of each tensor what it should be. That is known of outputs, and from there
backwards: where an operator of the ranks should compute what one of the sequential program does, its operands should
be that one's operands. Those that the ranks hold are right; one that they do not hold is followed further. The way
with the fewest presumptions wins, and it ends where all operands are right and the result is not.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, product
from typing import NamedTuple

from rewright import ops
from rewright.blame.holding import Holding
from rewright.blame.pairing import Cause, Explained, Pair, Pairing
from rewright.blame.places import LAYOUT, Place
from rewright.blame.whatif import mending_placement
from rewright.interp.placing import TOLERANCE
from rewright.interp.replay import Replay
from rewright.interp.trial import Trial
from rewright.ir.placement import Placement

CONVINCING = 2
"""Ways that presume more than this are guesses."""
_HELD_ELSEWHERE = 2
"""What it costs to presume that a tensor is missing at a place although the ranks hold it at another one."""
_OTHER_SHAPE = 1
_OTHER_TYPE = 2
_OTHER_RESULT = 2
_ANY_CONSTANT = 1
_LOCAL_INDEX = 2
_HARDLY = 100 * TOLERANCE
_HARDLY_OFF = 2
"""What it costs to presume that an operator is wrong whose result is off by little more than its operands may be."""
_MOST_PAIRS = 20_000
_MOST_RUNS = 16


Judge = Callable[[str, Placement | None, Trial], bool]
"""Whether the ranks of a trial hold an output, and in this placement where one is expected."""


@dataclass(frozen=True)
class Divergence:
    """The first place where the ranks hold something else than what they should hold there."""

    cause: Cause
    sequential: int
    """The node of the sequential program that the ranks should hold."""
    place: Place
    reader: Place
    """Where that is read: the next place on the way to the output, or the place itself."""
    output: str
    cost: int
    """How much had to be presumed; more than ``CONVINCING`` is a guess."""
    other: int | None = None
    """The sequential node that the ranks hold at the place instead, or the term that a sum there lacks."""
    is_shown: bool = False
    """Whether the output was seen to be right once the ranks hold there what they should."""
    placement: Placement | None = None
    """How they held it then."""


@dataclass(frozen=True)
class _Reached:
    pair: Pair
    before: Pair | None
    output: str


class _Explanation(NamedTuple):
    """A divergence, the pair that it explains, and where that is read."""

    divergence: Divergence
    pair: Pair
    reader: Place
    is_likely: bool
    """Whether more speaks for it than that it is on the way."""
    is_sent: bool
    """Whether it is that ranks are sent what others have: theirs may well be another part, so it is no guess."""


class Search:
    """The cheapest ways back from wrong outputs, over one trial.

    ``is_right`` says of another trial whether the ranks hold an output as it is expected.
    """

    def __init__(self, holding: Holding, is_right: Judge) -> None:
        self.holding, self.is_right = holding, is_right
        self.places = holding.places
        self.pairing = Pairing(holding)
        self._replay = Replay(holding.program.graphs, holding.trial.ranks)
        self._before: dict[Pair, Pair | None] = {}

    def first(
        self, outputs: Sequence[str], expected: Mapping[str, Placement], *, guess: bool = False
    ) -> Divergence | None:
        """The explanation that presumes least; among equals the earliest in the programs of the ranks.

        Integers come last among equals: ranks have constants of their own to address their shards by.

        Args:
            outputs: names of outputs that are known to differ.
            expected: placements of outputs at the sizes of the twin.
            guess: also tell what nothing speaks for but that it is on the way.

        Returns None where no way leads to an explanation.
        """
        misplaced = list(self._misplace(outputs, expected))
        if misplaced:
            return min(misplaced, key=lambda d: max(d.place))
        found = self._explanations(outputs, None)
        shown = self._first_shown(found, expected)
        if shown is None and found and found[0].divergence.cost < CONVINCING:
            # What presumes least may presume that something belongs together that does not.
            shown = self._first_shown(self._explanations(outputs, CONVINCING), expected)
        if shown is not None:
            return shown
        return next((one.divergence for one in found if one.is_likely or (guess and not one.is_sent)), None)

    def _first_shown(self, found: Sequence[_Explanation], expected: Mapping[str, Placement]) -> Divergence | None:
        """The first explanation with which the output is right once the ranks hold there what they should."""
        tried: set[tuple[Pair, Place, str]] = set()
        for divergence, pair, reader, *_ in found:
            key = (pair, reader, divergence.output)
            if len(tried) == _MOST_RUNS:
                break
            if key in tried:
                continue
            tried.add(key)
            is_right = partial(self.is_right, divergence.output, expected.get(divergence.output))
            placement = mending_placement(self.holding, self._replay, *pair, reader, divergence.output, is_right)
            if placement is not None:
                is_there = pair == (divergence.sequential, divergence.place)
                return replace(divergence, is_shown=True, placement=placement if is_there else None)
        return None

    def _is_broadcast(self, place: Place) -> bool:
        return self.places.operator(place) is ops.CollectiveBroadcast

    def _is_address(self, divergence: Divergence) -> bool:
        """Whether a wrong constant is an integer that ranks may well have a value of their own of."""
        node = self.holding.sequential.nodes[divergence.sequential]
        return divergence.cause == "constant" and not node.type.dtype.is_float

    def _misplace(self, outputs: Sequence[str], expected: Mapping[str, Placement]) -> Iterator[Divergence]:
        """Outputs that are right but for their placement."""
        for name in outputs:
            position, place = self.holding.sequential.outputs[name], self.places.output(name)
            held = None if place is None else self.holding.holds(position, place)
            if place is None or held is None:
                continue
            wanted = expected.get(name)
            if held.partial if wanted is None else (held.runs, held.partial) != (wanted.runs, wanted.partial):
                yield Divergence("output", position, place, place, name, 0, is_shown=True)

    def _explanations(self, outputs: Sequence[str], limit: int | None) -> list[_Explanation]:
        """The explanations that presume least, or all that presume no more than a limit, in order."""
        self._before.clear()
        number = count()
        heap: list[tuple[int, int, _Reached]] = []
        for name in outputs:
            place = self.places.output(name)
            pair = None if place is None else (self.holding.sequential.outputs[name], place)
            if pair is not None and self.holding.holds(*pair) is None:
                heapq.heappush(heap, (0, next(number), _Reached(pair, None, name)))
        found: list[_Explanation] = []
        best = limit
        while heap and len(self._before) < _MOST_PAIRS:
            cost, _, reached = heapq.heappop(heap)
            if best is not None and cost > best:
                break
            if reached.pair in self._before:
                continue
            self._before[reached.pair] = reached.before
            for move in self.pairing.moves(reached.pair):
                if isinstance(move, Explained):
                    divergence = self._divergence(cost, move, reached)
                    if limit is None:
                        best = divergence.cost if best is None else min(best, divergence.cost)
                    sent = move.cause == "collective" and self._is_broadcast(move.pair[1])
                    likely = not sent and move.cause != "moved"
                    likely = likely and (move.cause != "constant" or self._is_alone(reached))
                    found.append(_Explanation(divergence, reached.pair, self._reader(reached), likely, sent))
                else:
                    total = cost + move.cost + self._misfit(move.pair)
                    if best is None or total <= best:
                        heapq.heappush(heap, (total, next(number), _Reached(move.pair, reached.pair, reached.output)))
        found = [one for one in found if best is None or one.divergence.cost <= best]
        return sorted(found, key=lambda one: self._order(one.divergence))

    def _order(self, divergence: Divergence) -> tuple[int, bool, int]:
        return divergence.cost, self._is_address(divergence), max(divergence.place)

    def _reader(self, reached: _Reached) -> Place:
        """The next place on the way to the output, or the place itself."""
        place, before = reached.pair[1], reached.before
        reader = place
        while before is not None and reader == place:
            reader, before = before[1], self._before[before]
        return reader

    def _is_alone(self, reached: _Reached) -> bool:
        """Whether the operator that reads a constant has all its other operands right."""
        child, before = reached.pair, reached.before
        while before is not None and isinstance(self.holding.sequential.nodes[before[0]].op, LAYOUT):
            child, before = before, self._before[before]
        if before is None:
            return True
        others = [p for p in self.holding.sequential.nodes[before[0]].operands if p != child[0]]
        read = self.places.operands(before[1])
        return all(any(self.holding.holds(p, at) is not None for at in read) for p in others)

    def _misfit(self, pair: Pair) -> int:
        """What it costs to presume that a place should hold a tensor although the shapes do not fit."""
        if self.holding.fitting(*pair):
            return 0
        value, local = self.holding.value(pair[0]), self.holding.local(pair[1])
        return _OTHER_SHAPE if all(tensor.dtype.kind == value.dtype.kind for tensor in local) else _OTHER_TYPE

    def _divergence(self, cost: int, found: Explained, reached: _Reached) -> Divergence:
        position, place = found.pair
        cost += found.cost
        if found.cause == "operator" and not self.holding.fitting(position, place):
            cost += _OTHER_RESULT
        if found.cause in ("extra", "missing") and not self.holding.sequential.nodes[position].type.dtype.is_float:
            # Indices are shifted and masked to address a shard, and no one is surprised.
            cost += _LOCAL_INDEX
        if found.cause == "constant":
            # Programs have many constants that have nothing to do with each other.
            cost += _ANY_CONSTANT
        if found.cause == "operator" and self.holding.error(position, place) < _HARDLY:
            cost += _HARDLY_OFF
        if found.cause in ("operator", "missing", "term", "constant") and self.holding.holder(position) is not None:
            cost += _HELD_ELSEWHERE
        reader = self._reader(reached)
        if found.cause == "missing" and found.other is not None:
            place, reader = self._first_holder(found.other, place, reader)
        return Divergence(found.cause, position, place, reader, reached.output, cost, found.other)

    def _first_holder(self, position: int, place: Place, reader: Place) -> tuple[Place, Place]:
        """The place where the ranks first hold a tensor that they only move about after that, and its reader."""
        while True:
            before = next((at for at in self.places.operands(place) if self.holding.holds(position, at)), None)
            if before is None:
                return place, reader
            place, reader = before, place

    def origin(self, position: int, place: Place) -> Pair:
        """Where a sum that is not yet reduced over the ranks was computed, from a pair that holds it partially."""
        seen: set[Pair] = set()
        pair = position, place
        while pair not in seen:
            seen.add(pair)
            alike = product(self.holding.sequential.nodes[pair[0]].operands, self.places.operands(pair[1]))
            layouts = [(pair[0], at) for at in self.places.operands(pair[1])]
            before = [other for other in (*alike, *layouts) if self.is_partial(*other)]
            # Several addends are put together here, and here they are reduced together.
            pair = before[0] if len({at for _, at in before}) == 1 else pair
        return pair

    def is_partial(self, position: int, place: Place) -> bool:
        """Whether the ranks hold a tensor as a sum over ranks and in no other way."""
        held = self.holding.holds(position, place)
        return held is not None and bool(held.partial)
