"""A kernel as statements on tiles: a block of rows, sweeps over tiles of a lane, and what is stored at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rewright.ir.types import DType
from rewright.optimize.kernel import Kernel, Store, Sweep
from rewright.optimize.phases import new_estimates, phases, variants
from rewright.optimize.planning.plan import Plan
from rewright.optimize.printing import statements
from rewright.optimize.printing.arguments import arguments
from rewright.optimize.printing.statements import (
    Function,
    If,
    Let,
    Loop,
    Name,
    Number,
    Scalar,
    Sum,
    call,
    equal,
    fold_left,
    total,
    whole,
)
from rewright.optimize.printing.tiles.context import (
    BEGIN,
    BLOCK_LANES,
    BLOCK_ROWS,
    FIRST,
    LANES,
    ROWS,
    Block,
    Context,
    Descriptors,
    Way,
    padded_size,
)
from rewright.optimize.printing.tiles.limits import Limits, Part
from rewright.optimize.printing.tiles.products import DEPTH, accumulate, pack_left, product
from rewright.optimize.printing.tiles.states import estimate_mean, finish_reduction, finish_states, renew, start, state
from rewright.optimize.printing.tiles.values import value, writer
from rewright.optimize.printing.tiles.vectors import with_vectors
from rewright.optimize.scalars.expressions import unreduced_parts
from rewright.optimize.scalars.finite import Certain

TOGETHER = 4
"""Tiles between two looks whether anything still changes."""


def lower(plan: Plan, kernel: Kernel) -> Function:
    """A kernel on tiles; raises RewrightError where tiles cannot express it."""
    k, c = Context(plan, kernel, Certain(plan)), Block()
    for loop in kernel.grid:
        k.ranges[loop.name], c.places[loop.name] = (0, loop.count - 1), Name(loop.name)
    row = kernel.row
    k.ranges[row.name] = (0, row.count - 1)
    c.places[row.name], c.ways[row.name] = Name(row.name), Way(0, FIRST, BLOCK_ROWS)
    c.guards[row.name] = Name("row_in")
    c.add(
        Let(ROWS.text, total(FIRST, call("arange", BLOCK_ROWS))),
        Let(row.name, call("as_rows", ROWS)),
        Let("row_in", _inside(row.name, row.count, BLOCK_ROWS)),
    )
    if (feature := kernel.features) is not None:
        k.ranges[feature.name] = (0, feature.count - 1)
        c.add(Let(f"{feature.name}_", call("arange", whole(padded_size(feature.count)))))
    is_longer_later = [_sweep(k, c, sweep) for sweep in kernel.sweeps]
    _finals(k, c)
    found = arguments(plan.graph, kernel)
    index = DType.I64 if any(k.is_huge(a.tensor) for a in found) else DType.I32
    is_reversed = any(is_longer_later)
    made = Function(kernel.name, found, kernel.grid, row.size, 0, (), (), c.body, index=index, is_reversed=is_reversed)
    return with_vectors(made)


def _inside(name: str, size: int, block: Name) -> Scalar:
    """Whether indices are below a size; known when the kernel is compiled where that is a multiple of the block."""
    is_even = call("is_zero", call("modulo", whole(size), block))
    return call("or", call("compare_LT", Name(name), whole(size)), is_even)


def _sweep(k: Context, c: Block, sweep: Sweep) -> bool:
    """The loops over tiles of a lane; whether later rows have more of them."""
    k.ranges[sweep.lane.name] = (0, sweep.lane.count - 1)
    k.ranges.update({p.depth.name: (0, p.depth.count - 1) for p in sweep.products})
    for running in sweep.running:
        start(k, c, running)
    lefts = {p.value.number: pack_left(k, c, p) for p in sweep.products if p.depth.count <= DEPTH}
    finish_states(k, c)
    limits = Limits(k, c, sweep, variants(k.table, sweep))
    parts = limits.parts()
    for estimate, _ in sweep.remainders:
        c.add(Let(f"guess{estimate.leaf.number}", call("zeros", BLOCK_ROWS, whole(1))))
    descriptors = Descriptors() if k.kernel.has_products else None
    loops = replace(c.nested(), descriptors=descriptors)
    for part in parts:
        _loop(k, loops, sweep, part, lefts)
    c.add(*(descriptors.statements if descriptors is not None else ()), *loops.body)
    c.add(*writer(k, c.inner()).settle(k.table, sweep, lambda e: state(k, e)))
    k.done.extend(sweep.running)
    return limits.is_longer_later()


def _loop(k: Context, c: Block, sweep: Sweep, part: Part, lefts: Mapping[int, Name]) -> None:
    """A loop over tiles of a lane."""
    lane, body = sweep.lane, c.nested()
    body.add(Let(LANES.text, total(BEGIN, call("arange", BLOCK_LANES))), Let(lane.name, call("as_columns", LANES)))
    body.places[lane.name], body.ways[lane.name] = Name(lane.name), Way(1, BEGIN, BLOCK_LANES)
    if not part.is_whole:
        body.add(Let("lane_in", _inside(lane.name, lane.count, BLOCK_LANES)))
        body.guards[lane.name] = Name("lane_in")
    if part.tests:
        tile = body.nested()
        _tile(k, tile, sweep, part, lefts)
        body.add(If(call("not_bool", fold_left("or", part.tests)), tile.body))
    else:
        _tile(k, body, sweep, part, lefts)
    is_piped = k.kernel.has_products
    found: statements.Statement
    if _settles(sweep):
        some = Name("some")
        states = [equal(call("smallest", state(k, r.value)), whole(1)) for r in sweep.running]
        end = call("least", total(some, (BLOCK_LANES, TOGETHER)), part.high)
        loop = Loop("begin", end, body.body, some, BLOCK_LANES, is_piped=is_piped)
        going_on = If(call("not_bool", fold_left("and", states)), (loop,), note="stops once nothing changes any more")
        found = Loop("some", part.high, (going_on,), part.low, Sum(((BLOCK_LANES, TOGETHER),)))
    else:
        found = Loop("begin", part.high, body.body, part.low, BLOCK_LANES, is_piped=is_piped)
    c.add(found if part.when is None else If(part.when, (found,)))


def _settles(sweep: Sweep) -> bool:
    """Whether every state may come to a value that nothing changes."""
    kinds = {r.value.bound.kind for r in sweep.running if r.value.bound}
    return bool(kinds) and kinds <= {"or"} and not sweep.stores


def _tile(k: Context, c: Block, sweep: Sweep, part: Part, lefts: Mapping[int, Name]) -> None:
    """Products, phases, sums over features."""
    factors = [e for running, _ in part.work.bodies for e in running.factors or ()]
    used = {e.number for root in (*part.work.values(), *factors) for e in unreduced_parts(root)}
    for found in sweep.products:
        if found.value.number in used:
            c.names[found.value.number] = product(k, c, found, lefts)
    known: set[int] = set()
    bodies = {r.value.number: (r, body) for r, body in part.work.bodies}
    for phase in phases(sweep, k.kernel):
        for estimate in new_estimates(phase, known):
            estimate_mean(k, c, sweep, estimate)
        for number in (r.value.number for r in phase):
            running, body = bodies[number]
            if running.factors is not None:
                accumulate(k, c, sweep, running)
            else:
                renew(k, c, sweep, running, body)
    for store, e in part.work.stores:
        _put(k, c, replace(store, value=e))


def _finals(k: Context, c: Block) -> None:
    """What is stored once for a row."""
    if not k.kernel.finals:
        return
    finish_states(k, c)
    feature = k.kernel.features
    for store in k.kernel.finals:
        if feature is None or feature.name not in store.axes:
            _put(k, c, store)
    if feature is None:
        return
    size = padded_size(feature.count)
    c.add(Let(feature.name, call("as_columns", Name(f"{feature.name}_"))))
    c.places[feature.name], c.ways[feature.name] = Name(feature.name), Way(1, whole(0), whole(size))
    if size != feature.size:
        c.add(Let("feature_in", call("compare_LT", Name(feature.name), whole(feature.size))))
        c.guards[feature.name] = Name("feature_in")
    for running in k.done:
        if running.factors is not None:
            c.names[running.value.number] = finish_reduction(k, c, running)
    for store in k.kernel.finals:
        if feature.name in store.axes:
            _put(k, c, store)


def _put(k: Context, c: Block, store: Store) -> None:
    """Write a tile of a tensor; what does not depend on an axis of the tile is broadcast along it."""
    dtype, terms, stride = k.graph.nodes[store.tensor].type.dtype, list[tuple[Scalar, int]](), 1
    for axis, size in zip(reversed(store.axes), reversed(k.shape(store.tensor)), strict=True):
        terms += [(c.places[axis], stride)] if size > 1 or axis in c.ways else []
        stride *= size
    guards = [g for n, g in c.guards.items() if n in store.axes or n == k.kernel.row.name]
    written = value(k, c, store.value)
    axes = [c.places[n] for n in store.axes if n in c.ways and n != k.kernel.row.name]
    zero = Sum(tuple((axis, 0) for axis in (call("as_rows", ROWS), *axes)))
    if dtype is DType.BOOL:
        tile = call("and", written, call("is_zero", zero))
    else:
        tile = call("add", call("cast", written, dtype=dtype), call("zeros_like", zero, dtype=dtype))
    place = Sum((*reversed(terms), (zero, 1)))
    guard = fold_left("and", guards) if guards else Number(True, DType.BOOL)
    c.add(statements.Store(store.tensor, place, tile, dtype, guard))
