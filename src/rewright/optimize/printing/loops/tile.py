"""One tile of a sweep: products, then for every row the phases, then sums over features."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from rewright.ir.dims import divide
from rewright.ir.types import DType
from rewright.optimize.kernel import Running, Sweep
from rewright.optimize.phases import Work, new_estimates, overlap, phases
from rewright.optimize.printing.loops.context import BEGIN, COLUMN, COLUMNS, ROW, ROWS, VECTOR, Context
from rewright.optimize.printing.loops.hoisting import COSTLY, Factors, gather_narrow, hoist_values
from rewright.optimize.printing.loops.interchange import interchanged
from rewright.optimize.printing.loops.packing import pack_tile, product, rows_in_memory
from rewright.optimize.printing.loops.rows import enter_row
from rewright.optimize.printing.loops.scopes import Scope
from rewright.optimize.printing.loops.states import estimate_mean, partial, renew, renew_features
from rewright.optimize.printing.loops.values import is_costly, put, value
from rewright.optimize.printing.statements import (
    AddRows,
    Assign,
    BlockProduct,
    Element,
    Let,
    Loop,
    ReadProduct,
    Scalar,
    Statement,
    call,
    element_at,
    total,
    whole,
)
from rewright.optimize.scalars.expressions import Expression, walk


@dataclass(frozen=True, slots=True)
class Tile:
    """What is computed in a tile, and where what was computed for all of its rows is in memory."""

    sweep: Sweep
    work: Work
    lanes: int
    products: Mapping[int, str]
    weights: Factors
    buffers: Mapping[int, str]
    """The memory of weights, by the number of the sum."""
    places: Mapping[int, Element]
    """Values that were computed before the rows."""

    @property
    def bodies(self) -> dict[int, Expression]:
        """The bodies of reductions by number."""
        return {r.value.number: e for r, e in self.work.bodies}

    def root(self, running: Running) -> Expression:
        """What is computed for a reduction."""
        number = running.value.number
        return self.weights[number][0] if number in self.weights else self.bodies[number]


def lowered_tile(k: Context, sweep: Sweep, work: Work, lanes: int, left: Mapping[int, str]) -> tuple[Statement, ...]:
    """The statements of a tile."""
    with k.scopes.block() as body:
        needed = {e.number for e in walk(*work.values())}
        wanted = [p for p in sweep.products if p.value.number in needed]
        products = {p.value.number: product(k, body, sweep, p, lanes, left[p.value.number]) for p in wanted}
        weights = {r.value.number: r.factors for r, _ in work.bodies if r.factors is not None}
        work, weights, places = hoist_values(k, body, sweep, work, weights, lanes)
        shared = {r.value.number for r in sweep.running if r.is_shared}
        buffers = {n: k.buffer("weight", k.block * lanes) for n in weights if n not in shared}
        tile = Tile(sweep, work, lanes, products, weights, buffers, places)
        with k.scopes.block(k.kernel.row.name) as row:
            enter_row(k, row)
            _run_phases(k, tile, row)
        body.add(*(interchanged(k, row.body) if k.is_across else (Loop("r", ROWS, row.body),)))
        for running, _ in work.bodies:
            if running.value.number in weights:
                _add_features(k, body, tile, running.value.number)
    return body.body


def _add_features(k: Context, body: Scope, tile: Tile, number: int) -> None:
    """A sum over features as a product of tiles."""
    features = k.kernel.features
    assert features is not None
    factor, target = tile.weights[number][1], (k.states[number], k.features)
    rows = rows_in_memory(k, factor, tile.sweep, features) if k.reads_rows and number in tile.buffers else None
    if rows is not None and features.count == k.features:
        own = tile.buffers[number], tile.lanes
        body.add(ReadProduct(ROWS, whole(k.features), COLUMNS, own, *rows, target, True, k.real))
        return
    item = pack_tile(k, body, factor, tile.sweep, features, tile.lanes, False)
    if number not in tile.buffers:
        body.add(AddRows(COLUMNS, k.features, item, target[0], k.real))
        return
    operands = (tile.buffers[number], tile.lanes), (item, k.features), target
    is_narrow = k.real is DType.F32 and factor.dtype is DType.BF16  # then the program's weights are rounded too
    body.add(BlockProduct(ROWS, k.features, COLUMNS, *operands, is_added=True, dtype=k.real, is_narrow=is_narrow))


def _run_phases(k: Context, tile: Tile, row: Scope) -> None:
    """For one row: loops over the lane, each followed by the new states."""
    sweep, order = tile.sweep, phases(tile.sweep, k.kernel)
    roots = [[tile.root(r) for r in phase] for phase in order]
    roots[-1] = [*roots[-1], *(e for _, e in tile.work.stores)]
    worth = _worth_keeping(k, tile, [e for p in roots for e in p])
    saved: dict[int, Element] = {}
    known: set[int] = set()
    for number, phase in enumerate(order):
        for estimate in new_estimates(phase, known):
            estimate_mean(k, row, estimate)
        later = [e for p in roots[number + 1 :] for e in p]
        keep = [e for e in overlap(roots[number], later, worth, tile.places) if e.number not in saved]
        gathered = gather_narrow(k, row, sweep, roots[number], tile.lanes, {*saved, *tile.places, *tile.products})
        with k.scopes.block(sweep.lane.name) as loop:
            loop.add(Let(sweep.lane.name, total(BEGIN, COLUMN), DType.I64))
            loop.names.update({n: element_at(name, (ROW, tile.lanes), COLUMN) for n, name in tile.products.items()})
            loop.names.update(saved)
            loop.names.update(tile.places)
            loop.names.update(gathered)
            stores = tile.work.stores if number == len(order) - 1 else ()
            is_padded = not stores and _runs_over_vectors(k, tile, roots[number], saved)
            reductions = _partial_results(k, tile, phase, row, loop, is_padded)
            for store, e in stores:
                loop.add(put(k, store, e))
            for e in keep:
                memory = k.buffer("kept", tile.lanes * (k.block if k.is_across else 1), k.computed(e.dtype))
                saved[e.number] = element_at(memory, ROW, (COLUMN, k.block)) if k.is_across else Element(memory, COLUMN)
                loop.add(Assign(saved[e.number], value(k, e)))
        count = total((call("quotient", total(COLUMNS, VECTOR - 1), whole(VECTOR)), VECTOR)) if is_padded else COLUMNS
        row.add(Loop("c", count, loop.body, reductions=tuple(reductions)))
        for running in phase:
            if running.factors is None:
                renew(k, row, sweep, running)
    for running in (r for phase in reversed(order) for r in reversed(phase)):  # what one grows by is added as it was
        if running.factors is not None:
            renew_features(k, row, sweep, running)


def _runs_over_vectors(k: Context, tile: Tile, values: Sequence[Expression], saved: Container[int]) -> bool:
    """Whether a loop may go on to the end of its last vector, and is worth it.

    A compiler computes the elements after the last whole vector one by one. What is read of tensors ends there.
    """
    lane, is_slow = tile.sweep.lane, False
    stack = list(values)
    while stack:
        e = stack.pop()
        if e.number in saved or e.number in tile.places or e.number in tile.products or e.op == "reduce":
            continue
        if e.op == "load" and e.tensor >= 0 and lane.name in e.free:
            return False
        is_slow |= e.op in COSTLY and lane.name in e.free
        stack.extend(e.arguments)
    return is_slow and not k.is_across and divide(lane.size, VECTOR) is None


def _worth_keeping(k: Context, tile: Tile, values: Sequence[Expression]) -> dict[int, bool]:
    """Which values, by number, are kept for a later phase where that needs them.

    What is compared with its own extremum is computed once, so that one of them is equal to it in every bit.
    """
    lane, products = tile.sweep.lane.name, tile.products
    same = {tile.bodies[e.number].number for r in tile.sweep.running if r.update.reset for e in r.update.depends}
    return {
        e.number: lane in e.free
        and (k.kernel.row.name in e.free or e.number in products or e.number in same)
        and is_costly(e, products)
        for e in walk(*values)
    }


def _partial_results(
    k: Context, tile: Tile, phase: Sequence[Running], row: Scope, loop: Scope, is_padded: bool
) -> list[tuple[str, str]]:
    """The partial results of a phase; returns the reductions of the vector loop."""
    inside = call("compare_LT", COLUMN, COLUMNS) if is_padded else None
    reductions: list[tuple[str, str]] = []
    for running in phase:
        number = running.value.number
        if number not in tile.weights:
            reductions += partial(k, row, loop, tile.sweep, running, tile.bodies[number], inside)
        elif number in tile.buffers:
            place: Scalar = value(k, tile.weights[number][0])
            loop.add(Assign(element_at(tile.buffers[number], (ROW, tile.lanes), COLUMN), place))
    return reductions
