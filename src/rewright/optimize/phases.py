"""The order of work inside a tile: which reductions need which others of the same sweep, and what is kept between."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace

from rewright.optimize.kernel import Kernel, Running, Store, Sweep
from rewright.optimize.online.update import Estimate
from rewright.optimize.scalars.expressions import Expression, Table, contains, walk
from rewright.optimize.scalars.values import Chosen, index_conditions, read_conditions, specialise, vanishes

Test = tuple[tuple[int, bool], ...]
"""Conditions, by number, and the values that they have everywhere in a tile."""


@dataclass(frozen=True)
class Work:
    """What a tile computes in one variant: a body for every reduction and every store along the lane."""

    bodies: tuple[tuple[Running, Expression], ...]
    stores: tuple[tuple[Store, Expression], ...]

    def map_expressions(self, change: Callable[[Expression], Expression]) -> Work:
        """The work with every expression changed."""
        return Work(
            tuple((r, e if r.factors is not None else change(e)) for r, e in self.bodies),
            tuple((s, change(e)) for s, e in self.stores),
        )

    def values(self) -> list[Expression]:
        """All expressions."""
        return [e for _, e in self.bodies] + [e for _, e in self.stores]


@dataclass(frozen=True)
class Mask:
    """A condition with a value that leaves nothing of a tile, if it has it everywhere; and what is finite then."""

    condition: Expression
    absorbs: bool
    taken: tuple[Expression, ...]


@dataclass(frozen=True)
class Variants:
    """Conditions on indices of a sweep, when a tile is skipped, and what it computes where they are known."""

    conditions: tuple[Expression, ...]
    skip: tuple[tuple[int, bool], ...]
    """A tile adds nothing where the condition with this number has this value everywhere."""
    special: tuple[tuple[tuple[int, bool], Work], ...]
    """Where one condition has a value everywhere."""
    plain: tuple[Test, Work] | None
    """Where all conditions have the values that mask nothing."""
    mixed: Work
    taken: Mapping[Test, tuple[Expression, ...]]
    """What each of these takes to be finite where its conditions have these values."""
    read: Mask | None
    """The first condition on what is read that may leave nothing of a tile."""


def work(table: Table, sweep: Sweep) -> Work:
    """What a tile computes where nothing is known about it."""
    return Work(tuple((r, body_of(table, r)) for r in sweep.running), tuple((s, s.value) for s in sweep.stores))


def body_of(table: Table, running: Running) -> Expression:
    """The body of a reduction in a tile.

    Factors may be taken from any number where an extremum has seen nothing; comparisons need it as it is, and read it
    under the name of its new value.
    """
    if running.update.reset is None:
        return running.body
    (old,), (new,) = running.update.depends, running.update.renewed
    return table.replace(running.body, lambda e: new if e is old else None)


def variants(table: Table, sweep: Sweep) -> Variants:
    """The variants of a sweep, from what its conditions on indices make of the bodies."""
    whole = work(table, sweep)
    conditions = tuple(c for c in index_conditions(whole.values()) if sweep.lane.name in c.free)[:4]
    skip: list[tuple[int, bool]] = []
    special: list[tuple[tuple[int, bool], Work]] = []
    unmasked: list[tuple[int, bool]] = []
    taken: dict[Test, tuple[Expression, ...]] = {}
    # An estimate counts the elements seen, so that its tiles are gone through one after the other; and what
    # is reset adds what it is reset to for every element that was seen.
    counted = bool(sweep.stores) or sweep.counts
    for number, condition in enumerate(conditions):
        for value in (True, False):
            finite: list[Expression] = []
            known = {condition: value}
            if not counted and all(vanishes(table, _kind(r), body, known, finite) for r, body in whole.bodies):
                skip.append((number, value))
                unmasked.append((number, not value))
                taken[((number, value),)] = tuple(finite)
                break
        else:
            for value in (True, False):
                finite = []
                special.append(((number, value), _under(table, whole, {condition: value}, finite)))
                taken[((number, value),)] = tuple(finite)
    read = None if counted else _read_mask(table, whole, sweep.lane.name)
    if special and (skip or len(conditions) > 1):
        special = []  # one condition at a time, so that code does not multiply
    plain = None
    if unmasked and len(unmasked) == len(conditions):
        finite = []
        plain = (tuple(unmasked), _under(table, whole, {conditions[n]: v for n, v in unmasked}, finite))
        taken[plain[0]] = tuple(finite)
    return Variants(conditions, tuple(skip), tuple(special), plain, whole, taken, read)


def _read_mask(table: Table, whole: Work, lane: str) -> Mask | None:
    for mask in (c for c in read_conditions(whole.values()) if lane in c.free):
        for value in (False, True):
            finite: list[Expression] = []
            if all(vanishes(table, _kind(r), body, {mask: value}, finite) for r, body in whole.bodies):
                return Mask(mask, value, tuple(finite))
    return None


def _kind(running: Running) -> str:
    assert running.value.bound is not None
    return running.value.bound.kind


def _under(table: Table, whole: Work, known: Chosen, taken: list[Expression]) -> Work:
    return Work(
        tuple((_factors_under(table, r, known, taken), specialise(table, e, known, taken)) for r, e in whole.bodies),
        tuple((s, specialise(table, e, known, taken)) for s, e in whole.stores),
    )


def _factors_under(table: Table, running: Running, known: Chosen, taken: list[Expression]) -> Running:
    """The reduction with the operands that its product of tiles has where conditions are known."""
    if running.factors is None:
        return running
    weight, item = running.factors
    return replace(running, factors=(specialise(table, weight, known, taken), specialise(table, item, known, taken)))


def phases(sweep: Sweep, kernel: Kernel) -> list[list[Running]]:
    """Reductions of a sweep, those first whose bodies read no others of it.

    Squares of ``x - e`` read the sum that e is an estimate of. That their state grows by the sum of ``x - e`` needs no
    other loop: it grows by what that was before the tile. So states of a phase are renewed in order.
    """
    place: dict[int, int] = {}
    found: list[list[Running]] = []
    for running in sweep.running:
        mine = 1 + max((place[e.number] for e in running.update.depends if _reads(running, e)), default=-1)
        place[running.value.number] = mine
        while len(found) <= mine:
            found.append([])
        found[mine].append(running)
    return found or [[]]


def _reads(running: Running, other: Expression) -> bool:
    """Whether what is reduced is made of another reduction; what starts again compares elements with it."""
    roots = (running.body,) if running.factors is None else running.factors
    return running.update.reset is not None or any(contains(root, other) for root in roots)


def overlap(
    earlier: Sequence[Expression],
    later: Sequence[Expression],
    worth: Mapping[int, bool],
    stored: Container[int] = (),
) -> list[Expression]:
    """The largest parts of later values that earlier ones compute anyway and that are worth a place in memory.

    The values whose numbers are ``stored`` have a place already.
    """
    available = {e.number for e in walk(*earlier)}
    found: dict[int, Expression] = {}
    seen: set[int] = set()
    stack = list(later)
    while stack:
        e = stack.pop()
        if e.number in seen:
            continue
        seen.add(e.number)
        if e.number in stored:
            continue
        if e.number in available and worth.get(e.number, False):
            found[e.number] = e
        elif e.op != "reduce":
            stack.extend(e.arguments)
    return list(found.values())


def new_estimates(phase: Sequence[Running], known: set[int]) -> list[Estimate]:
    """The estimates that a phase follows and that have no name yet in a tile; they are added to those that have."""
    found: list[Estimate] = []
    for estimate in (e for r in phase if r.update.growth is not None for e in r.update.growth.estimates):
        if estimate.leaf.number not in known:
            known.add(estimate.leaf.number)
            found.append(estimate)
    return found
