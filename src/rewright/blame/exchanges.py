"""Where two programs part: the first operators on both sides that compute something the other side never computes.

Values decide. From an output that is wrong one walks back through tensors that the other program does not have; where
that ends, the programs part. Then the right program is given what the left one computes there, and runs on: a place
after which it computes what the left program computes is what has to be changed.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np

from rewright import ops
from rewright.blame.cones import Cone, Cutter
from rewright.blame.layouts import Index, Layout, Numbers, agree, laid_out
from rewright.blame.regions import unknown_behind
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ops.base import Array, TensorOperator
from rewright.proof.rewriting.parts import depends_on_inputs
from rewright.proof.rewriting.stages import Put, with_parts

_LARGEST = 48
_NEAR = 40
"""Operators after the place of parting that are tried as the end of what is wrong."""
_MOST_TRIALS = 400
_MOST_PLACES = 130
_MOST_PERMUTED = 4
"""Axes whose orders are all tried where the shapes of two tensors differ."""
_MOST_SLICES = 8
"""One side may loop over an axis of no more elements: of experts, say."""
_PLAIN = (ops.Constant, ops.Iota)
_LAYOUT = (ops.Layout, ops.Convert)
_READ = 5
"""How much later than operators that are wrong those are tried that they read."""
_AHEAD = 32
"""The operators after an exchange, one of which becomes what the left program has."""
_SOON = 5
"""Everything is right this many operators after an exchange that helps."""
_HARDLY = 1
"""More than this many are right after one of the first operators that differ, after one that helped in another layer,
and after one that is taken where no other helps."""


@dataclass(frozen=True)
class Exchange:
    """A node of the right program that should be what a node of the left one is, in a layout.

    ``cones`` are what both compute the two nodes by, ``sources`` where the right program has the leaves of the left
    cone, and in which layout; None where the left program computes it from something that the right one has not.
    """

    left: int
    right: int
    layout: Layout
    cones: tuple[Cone, Cone] | None = None
    sources: Mapping[int, tuple[int, Layout]] = field(default_factory=dict[int, "tuple[int, Layout]"])

    def put(self, right: Graph) -> Put:
        """What the left program has there, over nodes of the right one; raises TypeMismatch where it does not fit."""
        assert self.cones is not None
        names = {leaf: f"t{number}" for number, leaf in enumerate(self.sources)}
        held = {names[leaf]: source for leaf, (source, _) in self.sources.items()}
        types = {name: right.nodes[source].type for name, source in held.items()}
        layouts = {leaf: layout for leaf, (_, layout) in self.sources.items()}
        result = self.layout, right.nodes[self.right].type
        return Put(self.cones[0].part(names, types, layouts, result), held)


@dataclass
class Parting:
    """Where the programs part, and what makes them equal again where something does."""

    left: int | None
    right: int
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    is_mended: bool = False
    """Whether the exchanges together make every output right."""
    values: tuple[float, float] | None = None
    """What both sides compute at one element of the first exchange."""


class Search:
    """The comparison of one pair of programs; the right one is changed value by value.

    What is ``given`` of the right program is what a relation makes of the left one's inputs, and so is right.
    With ``loosely`` nothing that depends on no input is taken for wrong, since programs may hold longer tables, and
    tensors may stand for each other whose axes are grouped otherwise.
    """

    def __init__(
        self, left: Graph, right: Graph, numbers: Numbers, given: Collection[int] = (), *, loosely: bool = False
    ) -> None:
        self._is_loose = loosely
        self._plain = [_numbers_of(graph, loosely=loosely) for graph in (left, right)]
        self._plain[1].update(given)
        self.left, self.right, self.numbers = left, right, numbers
        self.values: list[dict[int, Array]] = [dict(trial.ranks[0].values) for trial in numbers.trials]
        self._known: dict[int, bool] = {}
        self._helped: set[tuple[object, ...]] = set()
        """Where exchanges helped: in the next layer the same one is tried first."""
        self._start = 0
        self._parted: tuple[int | None, int] = None, 0
        self._is_weak = False
        """Whether little else is right after the first exchange."""

    # --- regions

    def _has(self, position: int, values: Sequence[Mapping[int, Array]]) -> bool:
        """Whether the left program has a tensor of the right one."""
        own = [v[position] for v in values]
        if position in self._plain[1] or _is_uniform(own[0]) or self.numbers.left_index.has(own):
            return True
        # One side may compute at one index of an axis, as of one of all experts.
        return own[0].dtype.kind == "f" and self._slices.has(own)

    @cached_property
    def _slices(self) -> Index:
        """What the left program computes, index by index along short axes."""
        kept = [p for p, node in enumerate(self.left.nodes) if not isinstance(node.op, _LAYOUT)]
        runs: list[dict[int, Array]] = []
        for trial in self.numbers.trials:
            parts = (part for p in kept for axis in _slice(trial.sequential.values[p]) for part in axis)
            runs.append(dict(enumerate(parts)))
        return Index(runs)

    def wrong(self) -> list[str]:
        """The outputs that differ."""
        return [name for name in self.left.outputs if not self._is_right(name, self.values)]

    def _is_right(self, name: str, values: Sequence[Mapping[int, Array]]) -> bool:
        if name not in self.right.outputs:
            return True
        theirs = self.numbers.left(self.left.outputs[name])
        own = [v[self.right.outputs[name]] for v in values]
        return all(a.shape == b.shape and agree(a, b) for a, b in zip(theirs, own, strict=True))

    def region(
        self, names: Sequence[str], values: Sequence[Mapping[int, Array]], known: dict[int, bool]
    ) -> dict[int, list[int]]:
        """Nodes of the right program behind wrong outputs that the left one does not have, and what they read of such.

        ``known`` keeps what was found of each.
        """

        def is_known(position: int) -> bool:
            if position not in known:
                known[position] = self._has(position, values)
            return known[position]

        return _region(self.right, names, is_known)

    def left_region(self, names: Sequence[str], values: Sequence[Mapping[int, Array]]) -> list[int]:
        """The same of the left program, in order."""
        index = Index(values)

        @cache
        def is_known(position: int) -> bool:
            own = self.numbers.left(position)
            is_plain = position in self._plain[0] or _is_uniform(own[0])
            return is_plain or index.has(own) or _is_stacked(own, index)

        return sorted(_region(self.left, names, is_known))

    # --- what makes it right

    def run(self, deadline: float | None = None) -> Parting | None:
        """The first parting, and the exchanges that mend the program; None where no output differs.

        Where little else is right after the first exchange, it counts only if all of them together mend the program.
        """
        found = self._run(deadline)
        if found is None or found.is_mended or not self._is_weak:
            return found
        return Parting(*self._parted)

    def _run(self, deadline: float | None) -> Parting | None:
        parting: Parting | None = None
        for _ in range(_MOST_PLACES):
            names = self.wrong()
            if not names:
                if parting is not None:
                    parting.is_mended = True
                return parting
            rights = sorted(self.region(names, self.values, self._known))
            lefts = self.left_region(names, self.values)
            if parting is None:
                self._parted = self._first(self.left, lefts), self._first(self.right, rights) or rights[0]
                parting = Parting(*self._parted)
            self._start = rights[0]
            if deadline is not None and time.monotonic() > deadline:
                return parting
            found = self._exchange(names, rights, lefts)
            if found is None:
                return parting
            exchange, reach = found
            if not parting.exchanges:
                self._is_weak = reach <= _SOON
                parting.values = self._example(exchange)
            exchange = self._with_cones(exchange)
            if not parting.exchanges and exchange.cones is not None:
                inside = [p for p in lefts if p in exchange.cones[0].positions]
                parting.left = inside[0] if inside else exchange.left
                parting.right = next((p for p in rights if p in exchange.cones[1].positions), exchange.right)
            parting.exchanges.append(exchange)
            self.values, _ = self._after(exchange)
            self._known = {}
        return parting

    def _first(self, graph: Graph, region: Sequence[int]) -> int | None:
        """The first node of a region that depends on an input, else the first one."""
        depends = depends_on_inputs(graph)
        return next((p for p in region if depends[p]), region[0] if region else None)

    def _example(self, exchange: Exchange) -> tuple[float, float] | None:
        own = self.values[0][exchange.right].astype(np.float64)
        theirs = self._given(exchange, 0).astype(np.float64)
        both = np.isfinite(own) & np.isfinite(theirs)
        if not both.any():
            return None
        with np.errstate(invalid="ignore"):
            where = int(np.where(both, np.abs(own - theirs), -1.0).argmax())
        return float(theirs.reshape(-1)[where]), float(own.reshape(-1)[where])

    def _exchange(
        self, names: Sequence[str], rights: Sequence[int], lefts: Sequence[int]
    ) -> tuple[Exchange, float] | None:
        mine, other = _with_read(self.left, lefts[:_NEAR]), _with_read(self.right, rights[:_NEAR])
        near = sorted(
            (self._lines(j, i) not in self._helped, cost + more, i, j)
            for i, more in other.items()
            for j, cost in mine.items()
        )
        best: tuple[Exchange, float] | None = None
        for exchange in self._different(near):
            reach = self._reach(exchange, names)
            is_first = (exchange.left, exchange.right) == (lefts[0], rights[0])
            is_likely = is_first or self._lines(exchange.left, exchange.right) in self._helped
            if reach > _HARDLY and best is None:
                best = exchange, reach
            if reach > (_HARDLY if is_likely else _SOON):
                best = exchange, reach
                break
        if best is not None:
            self._helped.add(self._lines(best[0].left, best[0].right))
        return best

    def _different(self, near: Sequence[tuple[bool, int, int, int]]) -> Iterator[Exchange]:
        """The exchanges of some nodes, each array that one may get only once, and no more than are tried."""
        seen: set[tuple[int, bytes]] = set()
        for _, _, right, left in near:
            for layout in self._possible(left, right):
                if len(seen) >= _MOST_TRIALS:
                    return
                exchange = Exchange(left, right, layout)
                try:
                    what = right, self._given(exchange, 0).tobytes()
                except ValueError:
                    continue
                if what not in seen:
                    seen.add(what)
                    yield exchange

    def _lines(self, left: int, right: int) -> tuple[object, ...]:
        """What two places have in common with those of other layers."""
        mine, theirs = self.left.nodes[left], self.right.nodes[right]
        return mine.op, mine.span.file, mine.span.line, theirs.op, theirs.span.file, theirs.span.line

    def _possible(self, left: int, right: int) -> Iterator[Layout]:
        mine, other = self.values[0][right], self.numbers.left(left)[0]
        if mine.size != other.size or mine.dtype.kind != other.dtype.kind or mine.size < 2:
            return
        small = [n for n in mine.shape if n != 1], [n for n in other.shape if n != 1]
        if small[0] == small[1]:
            yield Layout.of(other.ndim)
        elif other.ndim == mine.ndim and sorted(small[0]) == sorted(small[1]):
            order = tuple(other.shape.index(n) for n in mine.shape)
            if len(set(order)) == len(order):
                yield Layout(order, False)
        elif self._is_loose and other.ndim <= _MOST_PERMUTED:
            # One side may hold sequences, the other all tokens one after the other.
            single = [a for a, n in enumerate(other.shape) if n == 1]
            for order in itertools.permutations([a for a, n in enumerate(other.shape) if n != 1]):
                if _is_regrouped([other.shape[a] for a in order], mine.shape):
                    yield Layout((*order, *single), False)

    def _reach(self, exchange: Exchange, names: Sequence[str]) -> float:
        """How many operators after an exchange the programs part next; zero where it does not help."""
        try:
            if not self._begins_well(exchange):
                return 0
            values, changed = self._after(exchange)
        except (RewrightError, ValueError, IndexError):
            return 0
        if not changed:
            return 0
        wrong = [name for name in names if not self._is_right(name, values)]
        if not wrong:
            return math.inf
        known = {p: has for p, has in self._known.items() if p not in changed}
        region = self.region(wrong, values, known)
        if exchange.right in region or min(region) <= self._start:
            return 0
        steps = self._steps(exchange.right)
        first = (p for p, read in region.items() if not read)
        return min((steps.get(p, math.inf) for p in first), default=math.inf)

    def _begins_well(self, exchange: Exchange) -> bool:
        """Whether anything soon after an exchange becomes what the left program has, on the first draw.

        Most exchanges that do not help are seen by that, and running the rest of the program takes far longer.
        """
        outputs, computed = set(self.right.outputs.values()), 0
        for position, value in self._effects(exchange, 0):
            computed += position != exchange.right and not isinstance(self.right.nodes[position].op, _LAYOUT)
            if position in outputs or (computed and (_is_uniform(value) or self.numbers.left_index.has([value]))):
                return True
            if computed == _AHEAD:
                return False
        return False

    def _steps(self, start: int) -> dict[int, int]:
        """How many operators that compute lie between a node and those that depend on it, at least."""
        steps = {start: 0}
        for position in range(start + 1, len(self.right.nodes)):
            node = self.right.nodes[position]
            near = [steps[p] for p in node.operands if p in steps]
            if near:
                steps[position] = min(near) + (not isinstance(node.op, _LAYOUT))
        return steps

    def _after(self, exchange: Exchange) -> tuple[list[dict[int, Array]], set[int]]:
        """The values of the right program after an exchange, and the nodes whose values it changes."""
        found: list[dict[int, Array]] = []
        changed: set[int] = set()
        for draw, before in enumerate(self.values):
            effects = dict(self._effects(exchange, draw))
            if not effects:
                return found, set()
            changed |= effects.keys()
            found.append({**before, **effects})
        return found, changed

    def _effects(self, exchange: Exchange, draw: int) -> Iterator[tuple[int, Array]]:
        """The values of the right program that an exchange changes on a draw, in order."""
        before, given = self.values[draw], self._given(exchange, draw)
        if agree(given, before[exchange.right]):
            return
        values = {exchange.right: given}
        yield exchange.right, given
        for position in range(exchange.right + 1, len(self.right.nodes)):
            node = self.right.nodes[position]
            if values.keys().isdisjoint(node.operands) or not isinstance(node.op, TensorOperator):
                continue
            value = node.op.execute([values.get(p, before[p]) for p in node.operands], np.float64)
            if not np.array_equal(value, before[position], equal_nan=True):
                values[position] = value
                yield position, value

    def _given(self, exchange: Exchange, draw: int) -> Array:
        """What the left program computes, as the right one is to hold it."""
        shape = self.values[draw][exchange.right].shape
        return laid_out(self.numbers.left(exchange.left)[draw], exchange.layout, shape)

    # --- the parts of both programs that differ

    def _with_cones(self, exchange: Exchange) -> Exchange:
        """An exchange with what both programs compute the two nodes by, from tensors that both have."""
        index = Index(self.values)
        sources: dict[int, tuple[int, Layout]] = {}

        def left_leaf(position: int) -> int | None:
            node = self.left.nodes[position]
            if isinstance(node.op, ops.Input):
                held = self.right.inputs.get(node.op.label)
                found = None if held is None else (held, Layout.of(node.type.rank))
            else:
                alike = index.find_layouts(self.numbers.left(position), 16)
                found = next(((p, how) for p, how in alike if p < exchange.right), None)
            if found is None:
                return None
            sources[position] = found
            return position

        def right_leaf(position: int) -> int | None:
            is_input = isinstance(self.right.nodes[position].op, ops.Input)
            return position if is_input or self._has(position, self.values) else None

        left = Cutter(self.left).cone(exchange.left, left_leaf, _LARGEST)
        right = Cutter(self.right).cone(exchange.right, right_leaf, _LARGEST)
        if left is None or right is None:
            return exchange
        return replace(exchange, cones=(left, right), sources={p: sources[p] for p in left.leaves})


def _numbers_of(graph: Graph, *, loosely: bool) -> set[int]:
    """The nodes that are never wrong: numbers and positions, and loosely all that depends on no input."""
    depends = depends_on_inputs(graph)
    nodes = enumerate(graph.nodes)
    return {p for p, node in nodes if isinstance(node.op, _PLAIN) or (loosely and not depends[p])}


def _region(graph: Graph, names: Sequence[str], is_known: Callable[[int], bool]) -> dict[int, list[int]]:
    starts = [graph.outputs[name] for name in names if name in graph.outputs]
    return unknown_behind(starts, lambda position: graph.nodes[position].operands, is_known)


def _is_regrouped(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether neighbouring axes of one shape, put together, give the other, or the other way round."""
    mine, theirs = ({math.prod(shape[: k + 1]) for k in range(len(shape))} for shape in (one, other))
    return mine <= theirs or theirs <= mine


def _slice(value: Array) -> Iterator[list[Array]]:
    """What a tensor holds at every index of an axis, for each short one."""
    if value.dtype.kind == "f" and value.ndim > 1:
        for axis, size in enumerate(value.shape):
            if 1 < size <= _MOST_SLICES:
                yield [value.take(k, axis) for k in range(size)]


def _is_stacked(values: Sequence[Array], index: Index) -> bool:
    """Whether a tensor is made of known ones that lie next to each other along an axis."""
    return any(
        all(index.has(parts) for parts in zip(*axes, strict=True)) for axes in zip(*map(_slice, values), strict=True)
    )


def _is_uniform(value: Array) -> bool:
    return value.size < 2 or bool((value == value.reshape(-1)[0]).all())


def _with_read(graph: Graph, region: Sequence[int]) -> dict[int, int]:
    """The nodes of a region by how far behind its start they are, and later what they read.

    An operator may be missing after a tensor that is right, so that what is read is a place too.
    """
    found = {position: number for number, position in enumerate(region)}
    for number, position in enumerate(region):
        stack = list(graph.nodes[position].operands)
        while stack:
            operand = stack.pop()
            node = graph.nodes[operand]
            if not isinstance(node.op, (*_PLAIN, ops.Input)) and operand not in found:
                found[operand] = number + _READ
                stack.extend(node.operands if isinstance(node.op, _LAYOUT) else ())
    return found


def apply_exchanges(right: Graph, exchanges: Sequence[Exchange]) -> Graph | None:
    """The right program with every exchange made; None where one cannot be written down or does not fit."""
    if any(exchange.cones is None for exchange in exchanges):
        return None
    try:
        return with_parts(right, {exchange.right: exchange.put(right) for exchange in exchanges})
    except RewrightError:
        return None
